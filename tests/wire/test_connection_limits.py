"""How many may connect: limits that are named, limits of the system, and changing them while the node runs."""

import os
import re
import resource
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.conversation import BROKER, DELETE, SET, change
from tests.support.nodes import Ottla
from tests.support.patience import eventually
from tests.support.requests import batch, create_topic, produced
from tests.support.wire import Closed, Deadline, Wire


class Confined(Ottla):
    """A node that may open few files."""

    descriptors = ""

    def command(self) -> list[str]:
        return ["bash", "-c", f'ulimit {self.descriptors} && exec "$@"', "confined", *super().command()]


def is_let_in(bootstrap: str) -> bool:
    try:
        with Wire(bootstrap) as wire:
            create_topic(wire, f"probe-{os.urandom(4).hex()}")
    except (Closed, OSError):
        return False
    return True


def crowd(stack: ExitStack, node: Ottla, count: int) -> list[socket.socket]:
    found = [socket.create_connection(("127.0.0.1", node.port), timeout=60) for _ in range(count)]
    for each in found:
        stack.callback(each.close)
    return found


def let_in(sockets: list[socket.socket]) -> int:
    """How many of them the node has not hung up on: the others are at their end."""
    for each in sockets:
        each.setblocking(False)
    return sum(not _is_at_end(each) for each in sockets)


def _is_at_end(each: socket.socket) -> bool:
    try:
        return each.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


UNHURRIED = {"ottla.connection.creation.rate.per.ip": "0"}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Ottla]:
    with Ottla(tmp_path / "node", extra=UNHURRIED) as node:
        yield node


def test_limits_can_be_changed_while_the_node_runs(node: Ottla) -> None:
    with Wire(node.bootstrap) as wire, ExitStack() as stack:
        crowd(stack, node, 3)
        for setting, value in (
            ("max.connections", "2"),
            ("max.connections.per.ip", "2"),
            ("max.connections.per.ip.overrides", "127.0.0.1:2"),
            ("listener.name.plaintext.max.connections", "2"),
        ):
            for who in ("", "1") if not setting.startswith("listener") else ("1",):
                (answer,) = wire.ask(change("", (BROKER, who, [(setting, SET, value)])).request).responses
                assert answer.error_code == 0, answer
                assert not is_let_in(node.bootstrap), setting
                (answer,) = wire.ask(change("", (BROKER, who, [(setting, DELETE, None)])).request).responses
                assert is_let_in(node.bootstrap), setting


def test_nobody_can_lock_everybody_out_while_the_node_runs(node: Ottla) -> None:
    with Wire(node.bootstrap) as wire:
        (answer,) = wire.ask(change("", (BROKER, "", [("max.connections", SET, "0")])).request).responses
        assert (answer.error_code, "nobody could connect" in answer.error_message) == (42, True)
        assert is_let_in(node.bootstrap)


def test_a_node_takes_the_descriptors_that_the_system_allows(tmp_path: Path) -> None:
    node = Confined(tmp_path / "node")
    node.descriptors = "-Sn 200"
    with node:
        assert node.process is not None
        limits = Path(f"/proc/{node.process.pid}/limits").read_text()
        soft, hard = re.search(r"Max open files\s+(\d+)\s+(\d+)", limits).groups()  # type: ignore[union-attr]
        assert soft == hard


def test_connections_leave_the_descriptors_that_logs_need(tmp_path: Path) -> None:
    node = Confined(tmp_path / "node", extra=UNHURRIED)
    node.descriptors = "-n 400"
    with node, Wire(node.bootstrap) as wire, ExitStack() as stack:
        assert "80 connections at most: the process may open no more files (ulimit -n)" in node.printed()
        sockets = crowd(stack, node, 500)
        deadline = Deadline("an answer to everybody who came")
        while let_in(sockets) > 80:
            deadline.check(let_in(sockets))
        create_topic(wire, "while-crowded", 50)
        for partition in range(50):
            produced(wire, "while-crowded", batch(1), partition=partition)
        assert node.printed().count("refusing a connection") == 1


def test_with_too_few_descriptors_a_node_does_not_start(tmp_path: Path) -> None:
    node = Confined(tmp_path / "node")
    node.descriptors = "-n 128"
    done = subprocess.run(node.command(), capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        "ottla cannot start: the process may open 128 files (ulimit -n), 256 at least are needed. "
        "Raise the limit; with 10000 or more it is of no concern.\n",
    )


def test_without_a_descriptor_left_newcomers_wait_and_logs_are_written_on_those_that_they_have(tmp_path: Path) -> None:
    with (
        Ottla(tmp_path / "node", extra={**UNHURRIED, "ottla.open.files.max": "64"}) as node,
        Wire(node.bootstrap) as wire,
    ):
        assert node.process is not None
        pid = node.process.pid
        create_topic(wire, "more-than-are-kept-open", 100)
        for partition in range(100):
            produced(wire, "more-than-are-kept-open", batch(1), partition=partition)
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{pid}/fd")), hard))
        began = time.monotonic()
        with ExitStack() as stack:
            crowd(stack, node, 20)
            eventually(lambda: "no connection can be accepted for 1 s" in node.printed())
            for partition in range(100):
                produced(wire, "more-than-are-kept-open", batch(1), partition=partition)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        eventually(lambda: is_let_in(node.bootstrap))
        assert node.printed().count("no connection can be accepted") <= 5 + int(time.monotonic() - began)
        assert "Traceback" not in node.printed()


def sockets_held(node: Ottla) -> int:
    assert node.process is not None
    held = 0
    for descriptor in Path(f"/proc/{node.process.pid}/fd").iterdir():
        try:
            held += os.readlink(descriptor).startswith("socket:")
        except FileNotFoundError:
            continue
    return held


def reset(each: socket.socket) -> None:
    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    each.close()


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(bytes.fromhex("0000000a0012"), id="part of a request"),
        # Produce v3 with acks=0 of no topic: there is no answer that could fail to be sent.
        pytest.param(bytes.fromhex("00000016 0000 0003 00000001 ffff ffff 0000 00007530 00000000"), id="no answer due"),
    ],
)
def test_a_reset_right_behind_bytes_ends_the_connection_at_once_not_when_it_has_been_idle(
    node: Ottla, sent: bytes
) -> None:
    assert node.process is not None
    with Wire(node.bootstrap) as wire, ExitStack() as stack:
        before = sockets_held(node)
        sockets = crowd(stack, node, 50)
        eventually(lambda: sockets_held(node) == before + 50, "everybody was let in")
        # The node finds bytes and reset together: uvloop calls its reader once then, and never again.
        node.process.send_signal(signal.SIGSTOP)
        for each in sockets:
            each.sendall(sent)
            reset(each)
        node.process.send_signal(signal.SIGCONT)
        create_topic(wire, "an-honest-client")
        eventually(lambda: sockets_held(node) == before, "all who were reset are gone")
