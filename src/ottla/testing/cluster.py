"""A real cluster inside your test process: real sockets on free ports, a directory of its own, gone when done."""

import asyncio
import shutil
import socket
import tempfile
from collections.abc import Coroutine, Iterable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from ottla.metadata.image import TOPIC_RESOURCE, ConfigKey
from ottla.model.properties import Settings
from ottla.net.peer import Address
from ottla.node import Node
from ottla.node.surroundings import Surroundings
from ottla.protocol.messages import DeleteTopicsRequest, IncrementalAlterConfigsRequest
from ottla.testing.cut import CuttablePeers
from ottla.testing.node_thread import NodeThread

T = TypeVar("T")

_HOST = "127.0.0.1"
_SET, _DELETE = 0, 1
"""Of IncrementalAlterConfigs."""

Configs = dict[ConfigKey, dict[str, str]]


class Cluster:
    """Kafka for tests: one node, or several that replicate. Use it with `with` or `async with`, or `start` and `stop`.

    Keyword arguments are settings of every node with underscores for dots: `Cluster(num_partitions=3)`. Nodes are
    numbered from 1; each is broker and controller.
    """

    def __init__(self, nodes: int = 1, *, data_dir: str | Path | None = None, **settings: object) -> None:
        if nodes < 1:
            raise ValueError(f"a cluster of {nodes} nodes: it takes at least one")
        self._given = settings
        self._size = nodes
        self._directory = Path(data_dir) if data_dir is not None else None
        self._temporary: Path | None = None
        self._ports: dict[int, tuple[_Port, _Port]] = {}
        self._threads: dict[int, NodeThread] = {}
        self._peers: dict[int, CuttablePeers] = {}
        self._first_configs: Configs = {}

    @property
    def bootstrap_servers(self) -> str:
        """host:port of every node, what every client calls bootstrap servers."""
        return ",".join(self.bootstrap_server(node_id) for node_id in self.running)

    def bootstrap_server(self, node_id: int) -> str:
        """host:port of one node, for a client that is to begin there."""
        return self._node(node_id).bootstrap_servers

    @property
    def running(self) -> list[int]:
        """The ids of the nodes that are up."""
        assert self._threads, "the cluster is not started"
        return [node_id for node_id, thread in self._threads.items() if thread.alive]

    # ---- life

    def start(self) -> Self:
        """Returns when clients can produce to every node."""
        if self._directory is None:
            self._directory = self._temporary = Path(tempfile.mkdtemp(prefix="ottla-"))
        if self._size > 1:
            self._ports = {node_id: (_Port(), _Port()) for node_id in range(1, self._size + 1)}
        try:
            for node_id in range(1, self._size + 1):
                self._launch(node_id)
            for thread in self._threads.values():
                thread.ready()
        except BaseException:
            self._clean_up()
            raise
        self._first_configs = _configs(self._node(1))
        return self

    def _launch(self, node_id: int) -> None:
        surroundings = Surroundings(peers=partial(self._make_peers, node_id))
        thread = self._threads[node_id] = NodeThread(self._settings(node_id), surroundings)
        thread.start()

    def _make_peers(self, node_id: int, loop: asyncio.AbstractEventLoop, client_id: str) -> CuttablePeers:
        peers = self._peers[node_id] = CuttablePeers(loop, client_id)
        return peers

    def stop(self) -> None:
        """A clean shutdown of every node, as by SIGTERM."""
        for thread in reversed(self._threads.values()):
            thread.stop(hand_over=False)
        self._clean_up()

    def reset(self) -> None:
        """Deletes every topic and takes back what was set on brokers, groups and client metrics: a test that comes
        after finds an empty cluster, in a few milliseconds."""
        node_id = self.running[0]
        self._call(node_id, _delete_all_topics(self._node(node_id)))
        self._call(node_id, _restore_configs(self._node(node_id), self._first_configs))

    # ---- faults

    def kill(self, node_id: int) -> None:
        """As by kill -9: nothing is flushed and nobody is told."""
        self._thread(node_id).kill()

    def shut_down(self, node_id: int) -> None:
        """One node stops cleanly: its leaders move first."""
        self._thread(node_id).stop()

    def restart(self, node_id: int) -> None:
        """Starts a node again that was killed or shut down, on its directory and ports; one that runs is shut down
        first. Returns when it serves clients."""
        if self._thread(node_id).alive:
            self.shut_down(node_id)
        self._launch(node_id)
        self._threads[node_id].ready()

    def pause(self, node_id: int) -> None:
        """As by SIGSTOP: its connections stay open and nothing is answered until `resume`."""
        thread = self._thread(node_id)
        if not thread.alive:
            raise ValueError(f"node {node_id} is not running and cannot be paused: restart({node_id}) starts it")
        thread.pause()

    def resume(self, node_id: int) -> None:
        self._thread(node_id).resume()

    def partition(self, *sides: Iterable[int]) -> None:
        """Nodes of different sides no longer reach each other; clients still reach all of them. `heal` ends it."""
        side_of = {self._existing(node_id): number for number, side in enumerate(sides) for node_id in side}
        for node_id, peers in self._peers.items():
            others = [n for n in self._ports if side_of.get(n, -1) != side_of.get(node_id, -1)]
            peers.cut(frozenset(Address(_HOST, port.number) for other in others for port in self._ports[other]))

    def heal(self) -> None:
        for peers in self._peers.values():
            peers.cut(frozenset())

    # ---- looking

    def leader_of(self, topic: str, partition: int = 0, *, seen_by: int | None = None) -> int:
        """The node that leads a partition, as one node (the first that runs) knows it; -1 for nobody."""
        found = self._node(seen_by or self.running[0]).control_plane.image.partition(topic, partition)
        return found.leader if found is not None else -1

    def in_sync(self, topic: str, partition: int = 0) -> list[int]:
        """The in-sync replicas of a partition."""
        found = self._node(self.running[0]).control_plane.image.partition(topic, partition)
        return list(found.isr) if found is not None else []

    @property
    def controller(self) -> int:
        """The node with the active controller; -1 while there is none."""
        return self._node(self.running[0]).control_plane.leader_id

    def _existing(self, node_id: int) -> int:
        if not 1 <= node_id <= self._size:
            there = "there is only node 1" if self._size == 1 else f"1 to {self._size}"
            raise ValueError(f"there is no node {node_id}: {there}")
        return node_id

    def _thread(self, node_id: int) -> NodeThread:
        self._existing(node_id)
        if node_id not in self._threads:
            raise ValueError("the cluster is not started: use `with Cluster() as kafka:`, or call start()")
        return self._threads[node_id]

    def _node(self, node_id: int) -> Node:
        node = self._thread(node_id).node
        assert node is not None, "the node is not started"
        return node

    def _settings(self, node_id: int) -> Settings:
        assert self._directory is not None
        settings = {
            # Tests open many short connections from one address.
            "ottla_connection_creation_rate_per_ip": "0",
            "max_connections_per_ip": str(2**31 - 1),
            **self._addresses(node_id),
        }
        settings.update({name: _text(value) for name, value in self._given.items()})
        directory = self._directory if self._size == 1 else self._directory / f"node-{node_id}"
        return Settings.defaults(str(directory), **settings)

    def _addresses(self, node_id: int) -> dict[str, str]:
        if self._size == 1:
            return {"listeners": f"PLAINTEXT://{_HOST}:0,CONTROLLER://{_HOST}:0"}
        copies = min(3, self._size)
        broker, controller = self._ports[node_id]
        return {
            "node_id": str(node_id),
            "listeners": f"PLAINTEXT://{_HOST}:{broker.number},CONTROLLER://{_HOST}:{controller.number}",
            "controller_quorum_voters": ",".join(
                f"{other}@{_HOST}:{port.number}" for other, (_, port) in self._ports.items()
            ),
            "default_replication_factor": str(copies),
            "min_insync_replicas": str(copies // 2 + 1),
            "offsets_topic_replication_factor": str(copies),
            "transaction_state_log_replication_factor": str(copies),
            "transaction_state_log_min_isr": str(copies // 2 + 1),
        }

    def _call(self, node_id: int, work: Coroutine[Any, Any, T]) -> T:
        return self._threads[node_id].call(work)

    def _clean_up(self) -> None:
        for thread in self._threads.values():
            thread.kill()
        self._threads = {}
        self._peers = {}
        for ports in self._ports.values():
            for port in ports:
                port.release()
        self._ports = {}
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._directory = self._temporary = None

    # ---- with, async with

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)


class _Port:
    """A free port, kept for this cluster: bound but not listened on, so that a node can take it again and again."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((_HOST, 0))
        self.number: int = self._socket.getsockname()[1]

    def release(self) -> None:
        self._socket.close()


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


async def _delete_all_topics(node: Node) -> None:
    topics = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in node.control_plane.image.topics]
    if topics:
        await node.control_plane.submit(DeleteTopicsRequest(topics=topics))


def _configs(node: Node) -> Configs:
    """Everything that can be configured besides topics, which are deleted as a whole."""
    return {key: dict(values) for key, values in node.control_plane.image.configs.items() if key[0] != TOPIC_RESOURCE}


async def _restore_configs(node: Node, first: Configs) -> None:
    now = _configs(node)
    kind = IncrementalAlterConfigsRequest
    resources = []
    for key in dict.fromkeys((*now, *first)):
        wanted, found = first.get(key, {}), now.get(key, {})
        changes = [kind.AlterableConfig(name=n, config_operation=_DELETE) for n in found if n not in wanted]
        changes += [
            kind.AlterableConfig(name=n, config_operation=_SET, value=v) for n, v in wanted.items() if found.get(n) != v
        ]
        if changes:
            resources.append(kind.AlterConfigsResource(resource_type=key[0], resource_name=key[1], configs=changes))
    if resources:
        await node.control_plane.submit(kind(resources=resources))
