"""`ottla start --nodes N`: a cluster on one machine, each node a process of its own under this one."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.cli.failures import Failure
from ottla.cli.listening import listeners
from ottla.cli.output import counted, note
from ottla.cli.parser import UsageError
from ottla.runtime.stop_signals import stop_signals

_PORTS_PER_NODE: Final = 2
_READY_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 30.0
_COPIES: Final = 3
_LAST_PORT: Final = 65535


_OWN: Final = (
    "process.roles",
    "node.id",
    "listeners",
    "controller.quorum.voters",
    "controller.quorum.bootstrap.servers",
    "log.dirs",
    "log.dir",
    "metadata.log.dir",
)
"""What differs from node to node, or ties them together."""


class NodePlan(NamedTuple):
    node_id: int
    host: str
    port: int
    """For clients; the controller takes the next one."""
    data: str
    settings: Mapping[str, str]


def plan(count: int, host: str, port: int, data: str, overrides: Mapping[str, str]) -> list[NodePlan]:
    """Nodes 1 to `count` on neighbouring ports, each broker and controller, with as many copies as make sense."""
    last = port + _PORTS_PER_NODE * count - 1
    if not 1 <= port <= last <= _LAST_PORT:
        raise UsageError(f"--port {port}: {count} nodes take {_PORTS_PER_NODE * count} ports from there on")
    for name in _OWN:
        if name in overrides:
            raise UsageError(f"-o {name}: --nodes decides it; write a server.properties for each node and start those")
    ports = {node_id: port + _PORTS_PER_NODE * (node_id - 1) for node_id in range(1, count + 1)}
    voters = ",".join(f"{node_id}@127.0.0.1:{first + 1}" for node_id, first in ports.items())
    copies = min(_COPIES, count)
    shared = {
        "controller.quorum.voters": voters,
        "default.replication.factor": str(copies),
        "min.insync.replicas": str(copies // 2 + 1),
        "offsets.topic.replication.factor": str(copies),
        "transaction.state.log.replication.factor": str(copies),
        "transaction.state.log.min.isr": str(copies // 2 + 1),
        **overrides,
    }
    return [
        NodePlan(
            node_id,
            host,
            first,
            f"{data}/node-{node_id}",
            {"node.id": str(node_id), **listeners(host, first, first + 1), **shared},
        )
        for node_id, first in ports.items()
    ]


def check_data(data: str, count: int) -> None:
    """The members of a quorum are fixed when it begins: a directory keeps the number of nodes it was made with."""
    if os.path.exists(f"{data}/meta.properties"):
        raise Failure(f"{data} holds the data of a single node\n  name another directory with --data DIR")
    found = nodes_in(data)
    if found and found != count:
        raise Failure(f"{data} holds a cluster of {found} nodes: start it with --nodes {found}, or name another --data")


def nodes_in(data: str) -> int:
    """How many nodes of a cluster keep their data there; 0 for none."""
    node_id = 0
    while os.path.exists(f"{data}/node-{node_id + 1}/meta.properties"):
        node_id += 1
    return node_id


def run(plans: list[NodePlan]) -> int:
    """Starts every node, waits for Ctrl-C or SIGTERM, stops them together. Returns the exit code."""
    children: dict[int, subprocess.Popen[bytes]] = {}
    stopping: list[int] = []
    for number in stop_signals():
        signal.signal(number, lambda received, _: stopping.append(received))
    try:
        for each in plans:
            children[each.node_id] = _spawn(each)
        _wait_until_ready(plans, children, stopping)
        if not stopping:
            _banner(plans)
        _watch(children, stopping)
    finally:
        _stop(children)
    return 0 if stopping else 1


def _spawn(each: NodePlan) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "ottla", "start", "--data", each.data]
    for name, value in each.settings.items():
        command += ["-o", f"{name}={value}"]
    # A session of its own: Ctrl-C reaches this process alone, which then stops the nodes in good order.
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)


def _wait_until_ready(
    plans: list[NodePlan], children: "dict[int, subprocess.Popen[bytes]]", stopping: list[int]
) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    waiting = list(plans)
    while waiting and not stopping:
        dead = [node_id for node_id, child in children.items() if child.poll() is not None]
        if dead:
            raise Failure(f"node {dead[0]} did not start: the reason is above")
        waiting = [each for each in waiting if not _accepts(each)]
        if time.monotonic() > deadline:
            raise Failure(f"node {waiting[0].node_id} does not answer on port {waiting[0].port}")
        time.sleep(0.02)


def _accepts(each: NodePlan) -> bool:
    """A node takes its port at once and accepts on it when it serves clients: an ApiVersions answer is the sign."""
    hello = bytes.fromhex("0000000a 0012 0000 00000001 0000")  # v0, correlation id 1, an empty client id
    try:
        with socket.create_connection((each.host, each.port), timeout=0.5) as connection:
            connection.sendall(hello)
            return len(connection.recv(4)) == 4
    except OSError:
        return False


def _banner(plans: list[NodePlan]) -> None:
    from ottla import __version__  # noqa: PLC0415  start time is felt

    print(f"ottla {__version__}: {len(plans)} nodes are ready")
    print(f"  kafka    {','.join(f'{each.host}:{each.port}' for each in plans)}")
    print(f"  data     {plans[0].data.rpartition('/')[0]}")
    print("  stop with Ctrl-C", flush=True)


def _watch(children: "dict[int, subprocess.Popen[bytes]]", stopping: list[int]) -> None:
    """A node that dies is named once; the others carry on, that is what they are for."""
    named: dict[int, None] = {}
    while not stopping:
        for node_id, child in children.items():
            if child.poll() is not None and node_id not in named:
                named[node_id] = None
                others = len(children) - len(named)
                carry_on = f"; {counted(others, 'node')} left" if others else ""
                note(f"ottla: node {node_id} (process {child.pid}) {_ending(child.returncode)}{carry_on}")
        if len(named) == len(children):
            return
        time.sleep(0.2)


def _ending(code: int) -> str:
    return f"was ended by signal {-code}" if code < 0 else f"has ended with code {code}"


def _stop(children: "dict[int, subprocess.Popen[bytes]]") -> None:
    for child in children.values():
        if child.poll() is None:
            child.terminate()
    deadline = time.monotonic() + _STOP_SECONDS
    for node_id, child in children.items():
        try:
            child.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            note(f"ottla: node {node_id} does not stop, it is killed")
            child.kill()
            child.wait()
