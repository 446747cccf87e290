"""What a node's standard streams are connected to is no reason for it to end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.protocol import messages as m
from tests.support.nodes import free_ports
from tests.support.patience import eventually
from tests.support.wire import Closed, Wire


def goes_on_serving(port: int) -> bool:
    """Answers for longer than it takes from the first answer to the banner."""
    try:
        with Wire(f"127.0.0.1:{port}") as wire:
            return all(wire.ask(m.MetadataRequest(topics=[]), 12).brokers for _ in range(20))
    except (OSError, Closed):
        return False


def command(data: Path, port: int) -> list[str]:
    return [sys.executable, "-m", "ottla", "start", "--port", str(port), "--data", str(data), "--log-level", "ERROR"]


def test_a_banner_that_nobody_reads(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(command(tmp_path / "data", port), stdout=writing, stderr=subprocess.PIPE) as node:
        os.close(writing)
        eventually(lambda: goes_on_serving(port))
        node.send_signal(signal.SIGTERM)
        assert (node.wait(60), node.stderr.read() if node.stderr else b"") == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
def test_a_banner_for_which_the_disk_has_no_room(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with (
        open("/dev/full", "wb") as full,
        subprocess.Popen(command(tmp_path / "data", port), stdout=full, stderr=subprocess.PIPE) as node,
    ):
        eventually(lambda: goes_on_serving(port))
        node.send_signal(signal.SIGTERM)
        assert (node.wait(60), node.stderr.read() if node.stderr else b"") == (0, b"")


def test_no_standard_streams_at_all(tmp_path: Path) -> None:
    """Else the loop's own descriptors would have their numbers, and a message to number 2 would end the node."""
    (port,) = free_ports(1)
    with subprocess.Popen(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command(tmp_path / "data", port)]) as node:
        eventually(lambda: goes_on_serving(port))
        opened = [os.readlink(f"/proc/{node.pid}/fd/{number}") for number in (0, 1, 2)]
        node.send_signal(signal.SIGTERM)
        assert (node.wait(60), opened) == (0, ["/dev/null"] * 3)
