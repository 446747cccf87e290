"""`ottla start --nodes N`: a cluster on one machine, each node a process of its own under this one."""

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.cli.failures import Failure
from ottla.cli.listening import PLATFORM_PORTS, listeners, metrics_listener
from ottla.cli.output import counted, note
from ottla.cli.parser import UsageError
from ottla.model.ids import uuid_text
from ottla.model.properties import Settings
from ottla.model.properties.file import format_properties
from ottla.net.listening import refusal
from ottla.runtime.clock import SystemIds
from ottla.runtime.standard_streams import announce
from ottla.runtime.stop_signals import WHOLE_CLUSTER_STOPS, stop_signals
from ottla.storage.checkpoints import CorruptCheckpoint, decode_meta_properties
from ottla.storage.names import META_PROPERTIES

if TYPE_CHECKING:
    from ottla.cli.secure import Secured

_PORTS_PER_NODE: Final = 2
_READY_SECONDS: Final = 60.0
_GREETING_SECONDS: Final = 5.0
_STOP_SECONDS: Final = 30.0
_COPIES: Final = 3
_LAST_PORT: Final = 65535


_OWN: Final = (
    "process.roles",
    "node.id",
    "listeners",
    "http.listeners",
    "registry.listeners",
    "connect.listeners",
    "sql.listeners",
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
    ca: str = ""
    """The authority behind its certificate; empty: clients speak to it as they are."""

    @property
    def file(self) -> str:
        """Its server.properties: with it, one node can be started again beside those that still run."""
        return f"{self.data}.properties"


def plan(
    count: int,
    host: str,
    port: int,
    data: str,
    overrides: Mapping[str, str],
    platform: Mapping[str, str] | None = None,
    secured: "Secured | None" = None,
) -> list[NodePlan]:
    """Nodes 1 to `count` on neighbouring ports, each broker and controller, with as many copies as make sense. The
    platform is beside the first of them."""
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
        **(secured.settings if secured is not None else {}),
        **overrides,
    }
    name = "PLAINTEXT" if secured is None else "SASL_SSL"
    return [
        NodePlan(
            node_id,
            host,
            first,
            f"{data}/node-{node_id}",
            {
                "node.id": str(node_id),
                **listeners(host, first, first + 1, name),
                "http.listeners": metrics_listener(port, node_id - 1),
                **((platform or {}) if node_id == 1 else {}),
                **shared,
            },
            "" if secured is None else secured.ca,
        )
        for node_id, first in ports.items()
    ]


def cluster_of(data: str, count: int) -> str:
    """The id of the cluster whose nodes keep their data there; one of them is enough, the others may never have come so
    far as to write it down. A new cluster draws its own: made from the quorum, as nodes do it that start one by one, it
    would be that of every cluster on these ports. Raises Failure."""
    for node_id in range(1, count + 1):
        path = f"{data}/node-{node_id}/{META_PROPERTIES}"
        try:
            with open(path, "rb") as file:
                return decode_meta_properties(file.read()).cluster_id
        except FileNotFoundError:
            continue
        except CorruptCheckpoint as error:
            raise Failure(f"{path}: {error}") from error
    return uuid_text(SystemIds().uuid())


def check_data(data: str, count: int) -> None:
    """The members of a quorum are fixed when it begins: a directory keeps the number of nodes it was made with."""
    if os.path.exists(f"{data}/meta.properties"):
        raise Failure(f"{data} holds the data of a single node\n  name another directory with --data DIR")
    found = nodes_in(data)
    if found and found != count:
        raise Failure(
            f"{data} holds a cluster of {counted(found, 'node')}: start it with --nodes {found}, or name another --data"
        )


def check_ports(plans: list[NodePlan]) -> None:
    """Before anything starts: whoever else answers on one of the ports would be taken for our node."""
    for each in plans:
        for host, port in ((each.host, each.port), ("127.0.0.1", each.port + 1)):
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            with socket.socket(family, socket.SOCK_STREAM) as taken:
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    taken.bind((host, port))
                except OSError as error:
                    raise Failure(f"node {each.node_id} {refusal(error, host, port)}") from error


def nodes_in(data: str) -> int:
    """How many nodes of a cluster keep their data there; 0 for none."""
    node_id = 0
    while os.path.exists(f"{data}/node-{node_id + 1}/meta.properties"):
        node_id += 1
    return node_id


def run(plans: list[NodePlan], secured: "Secured | None" = None) -> int:
    """Starts every node, waits for Ctrl-C or SIGTERM, stops them all. Returns the exit code."""
    children: dict[int, subprocess.Popen[bytes]] = {}
    stopping: list[int] = []
    ready = False
    lifeline, _ours = os.pipe()  # nobody writes: it ends when this process does
    for number in stop_signals():
        signal.signal(number, lambda received, _: stopping.append(received))
    try:
        for each in plans:
            children[each.node_id] = _spawn(each, lifeline)
        ready = _wait_until_ready(plans, children, stopping)
        if ready:
            if secured is not None:
                _make_admin(plans, secured)
            announce(_banner(plans, children))
        _watch(plans, children, stopping)
    finally:
        _stop(children, majority=len(plans) // 2 + 1 if ready else len(plans) + 1)
    return 0 if stopping else 1


def _make_admin(plans: list[NodePlan], secured: "Secured") -> None:
    from ottla.cli.secure import make_admin_of_running  # noqa: PLC0415  an unsecured cluster does without

    told = make_admin_of_running(secured, ",".join(f"{each.host}:{each.port}" for each in plans))
    if told:
        announce(told)


def _spawn(each: NodePlan, lifeline: int) -> "subprocess.Popen[bytes]":
    settings = Settings.defaults(each.data, **each.settings)
    os.makedirs(os.path.dirname(each.file), exist_ok=True)
    # It may hold passwords, so it is its owner's from the first byte on.
    os.close(os.open(each.file, os.O_CREAT | os.O_WRONLY, 0o600))
    os.chmod(each.file, 0o600)
    with open(each.file, "w", encoding="utf-8") as file:
        file.write(format_properties(settings.given))
    command = [sys.executable, "-m", "ottla.cli.node_of_several", each.file, str(lifeline)]
    # A session of its own: Ctrl-C reaches this process alone, which then stops the nodes in good order.
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, pass_fds=[lifeline], start_new_session=True)


def _wait_until_ready(
    plans: list[NodePlan], children: "dict[int, subprocess.Popen[bytes]]", stopping: list[int]
) -> bool:
    """False if it is to stop before. Raises Failure for a node that ends, or says nothing for too long."""
    deadline = time.monotonic() + _READY_SECONDS
    waiting = list(plans)
    while waiting and not stopping:
        waiting = [each for each in waiting if not _accepts(each)]
        # After the question, not before: if a node has ended, it was another who answered on its port.
        dead = [node_id for node_id, child in children.items() if child.poll() is not None]
        if dead:
            raise Failure(f"node {dead[0]} did not start: the reason is above")
        if waiting and time.monotonic() > deadline:
            raise Failure(f"node {waiting[0].node_id} does not answer on port {waiting[0].port}")
        time.sleep(0.02)
    return not stopping


def _accepts(each: NodePlan) -> bool:
    """A node takes its port at once and accepts on it when it serves clients: an ApiVersions answer is the sign."""
    hello = bytes.fromhex("0000000a 0012 0000 00000001 0000")  # v0, correlation id 1, an empty client id
    try:
        with socket.create_connection((each.host, each.port), timeout=_GREETING_SECONDS) as connection:
            if each.ca:
                return _greeted(_encrypted(connection, each), hello)
            return _greeted(connection, hello)
    except OSError:
        return False


def _greeted(connection: socket.socket, hello: bytes) -> bool:
    connection.sendall(hello)
    return len(connection.recv(4)) == 4


def _encrypted(connection: socket.socket, each: NodePlan) -> socket.socket:
    import ssl  # noqa: PLC0415  an unsecured cluster does without

    return ssl.create_default_context(cafile=each.ca).wrap_socket(connection, server_hostname=each.host)


def _banner(plans: list[NodePlan], children: "dict[int, subprocess.Popen[bytes]]") -> str:
    from ottla import __version__  # noqa: PLC0415  start time is felt

    lines = [
        f"ottla {__version__}: {counted(len(plans), 'node')} are ready",
        f"  kafka    {','.join(f'{each.host}:{each.port}' for each in plans)}",
        *(f"  node {each.node_id}   {each.host}:{each.port}  process {children[each.node_id].pid}" for each in plans),
        f"  metrics  {', '.join(each.settings['http.listeners'] for each in plans)}",
        *(
            f"  {service:<8} {plans[0].settings[name]}"
            for service in PLATFORM_PORTS
            if (name := f"{service}.listeners") in plans[0].settings
        ),
        f"  data     {os.path.dirname(plans[0].data)}",
        "  stop with Ctrl-C",
    ]
    return "\n".join(lines)


def _watch(plans: list[NodePlan], children: "dict[int, subprocess.Popen[bytes]]", stopping: list[int]) -> None:
    """A node that dies is named once, with how to bring it back; the others carry on, that is what they are for."""
    named: dict[int, None] = {}
    while not stopping:
        for each in plans:
            child = children[each.node_id]
            if child.poll() is not None and each.node_id not in named:
                named[each.node_id] = None
                others = len(children) - len(named)
                carry_on = f"; {counted(others, 'node')} left" if others else ""
                note(f"ottla: node {each.node_id} (process {child.pid}) {_ending(child.returncode)}{carry_on}")
                if others:
                    note(f"  bring it back from another terminal: ottla start {shlex.quote(each.file)}")
        if len(named) == len(children):
            return
        time.sleep(0.2)


def _ending(code: int) -> str:
    return f"was ended by signal {-code}" if code < 0 else f"has ended with code {code}"


def _stop(children: "dict[int, subprocess.Popen[bytes]]", majority: int) -> None:
    """One after another, each handing over to those that remain, while they are a majority and can decide anything;
    then the rest at once."""
    deadline = time.monotonic() + _STOP_SECONDS
    alive = {node_id: child for node_id, child in children.items() if child.poll() is None}
    while len(alive) >= majority:
        node_id, child = alive.popitem()
        child.terminate()
        _await_end(node_id, child, deadline)
    for child in alive.values():
        child.send_signal(WHOLE_CLUSTER_STOPS)
    for node_id, child in alive.items():
        _await_end(node_id, child, deadline)


def _await_end(node_id: int, child: "subprocess.Popen[bytes]", deadline: float) -> None:
    try:
        child.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        note(f"ottla: node {node_id} does not stop, it is killed")
        child.kill()
        child.wait()
