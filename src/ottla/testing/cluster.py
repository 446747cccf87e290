"""A real cluster inside your test process: real sockets on free ports, a directory of its own, gone when done."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from ottla.broker.settings import loggers
from ottla.metadata.image import EMPTY
from ottla.model.acls import Acl
from ottla.model.ids import NO_LEADER, Uuid
from ottla.model.properties import STATIC, Settings, SettingsError
from ottla.model.properties.property import closest
from ottla.net.peer import Ways
from ottla.node.node import Node
from ottla.node.surroundings import Surroundings
from ottla.testing import rights
from ottla.testing.addresses import Addresses
from ottla.testing.cut import CuttablePeers
from ottla.testing.emptying import (
    Configs,
    configs,
    delete_topics,
    restore_configs,
    restore_security,
    topic_ids,
    without_security_of_a_test,
)
from ottla.testing.lent import listening, reaching
from ottla.testing.node_thread import PATIENCE_SECONDS, NodeThread
from ottla.testing.security import ClusterSecurity, as_java, new_password, scram_user

if TYPE_CHECKING:  # a test that has a client of its own, as most have, does without ours
    from ottla.client.blocking.cluster import Cluster as Client
    from ottla.testing.connect_thread import ConnectThread
    from ottla.testing.records import Record, Text
    from ottla.testing.registry_thread import RegistryThread

T = TypeVar("T")

_FOR_TESTS: Final = {
    # Tests open many short connections from one address.
    "ottla_connection_creation_rate_per_ip": "0",
    "max_connections_per_ip": str(2**31 - 1),
    # A node that is paused or cut off is given up after two seconds, not nine: nobody wants to wait in a test.
    "broker_session_timeout_ms": "2000",
    "broker_heartbeat_interval_ms": "400",
    "controller_quorum_fetch_timeout_ms": "1000",
}
_OWN: Final = ("node_id", "listeners", "controller_quorum_voters")
"""What differs from node to node."""
_LOOK_AGAIN_SECONDS: Final = 0.002


class Cluster:
    """Kafka for tests: one node, or several that replicate. Use it with `with` or `async with`, or `start` and `stop`.

    `port` is where node 1 listens for clients, the others take the next ones; without it all are free ports. Other
    keyword arguments are settings of every node with underscores for dots: `Cluster(num_partitions=3)`. Nodes are
    numbered from 1; each is broker and controller. With `registry=True` a schema registry is there from the start;
    without it, it comes when somebody asks for `schema_registry_url`. `connect=True` and `connect_url` are the same for
    a Connect worker.
    With `security="SASL_PLAINTEXT"` everybody logs in, with "SASL_SSL" over TLS; `user` makes users, with the rights
    that they are given.
    """

    def __init__(
        self,
        nodes: int = 1,
        *,
        port: int | None = None,
        data_dir: str | Path | None = None,
        security: object = None,
        **settings: object,
    ) -> None:
        if nodes < 1:
            raise ValueError(f"a cluster of {nodes} nodes: it takes at least one")
        self._with_registry = bool(settings.pop("registry", False))
        self._with_connect = bool(settings.pop("connect", False))
        self._given = {name: _text(value) for name, value in settings.items()}
        _check(self._given, nodes, port)
        # Of any type, so that a dict of settings may still be spread into the call.
        self._security = None if security is None else ClusterSecurity(str(security))
        self._size = nodes
        self._first_port = port
        self._directory = Path(data_dir) if data_dir is not None else None
        self._temporary: Path | None = None
        self._addresses: Addresses | None = None
        self._threads: dict[int, NodeThread] = {}
        self._peers: dict[int, CuttablePeers] = {}
        self._first_configs: Configs = {}
        self._first_image = EMPTY
        self._registry: RegistryThread | None = None
        self._connect: ConnectThread | None = None

    @property
    def schema_registry_url(self) -> str:
        """Of a schema registry that keeps its schemas in this cluster, started now if it does not run. In a cluster
        with security it is for the cluster's users (HTTP Basic), who may do with subjects what ACLs allow on topics."""
        from ottla.testing.registry_thread import RegistryThread  # noqa: PLC0415  most clusters do without

        if self._registry is None:
            self._registry = RegistryThread()
        if not self._registry.alive:
            self._registry.start(self.bootstrap_servers, {} if self._security is None else self._security.registry())
        return self._registry.url

    @property
    def connect_url(self) -> str:
        """Of a Connect worker in front of this cluster, started now if it does not run. It converts as JSON without
        schemas; Spark comes with the first connector. In a cluster with security it is for the cluster's users (HTTP
        Basic): who looks needs DESCRIBE on the cluster, who changes anything ALTER."""
        from ottla.testing.connect_thread import ConnectThread  # noqa: PLC0415  most clusters do without

        if self._connect is None:
            self._connect = ConnectThread()
        if not self._connect.alive:
            self._connect.start(self.bootstrap_servers, {} if self._security is None else self._security.connect())
        return self._connect.url

    @property
    def bootstrap_servers(self) -> str:
        """host:port of every node, what every client calls bootstrap servers."""
        return ",".join(self.bootstrap_server(node_id) for node_id in self.running)

    def bootstrap_server(self, node_id: int) -> str:
        """host:port of one node, for a client that is to begin there."""
        return self._node(node_id).bootstrap_servers

    def http_address(self, node_id: int) -> str:
        """Where a node answers /metrics, /healthz, /readyz and /version, in a cluster that was made with
        http_listeners="http://127.0.0.1:0"."""
        addresses = self._node(node_id).http_addresses
        if not addresses:
            raise ValueError('this cluster has no HTTP: make it with Cluster(http_listeners="http://127.0.0.1:0")')
        return addresses[0]

    @property
    def running(self) -> list[int]:
        """The ids of the nodes that are up."""
        self._thread(1)
        return [node_id for node_id, thread in self._threads.items() if thread.alive]

    # ---- life

    def start(self) -> Self:
        """Returns when clients can produce to every node. Raises StartFailed, SettingsError."""
        if self._addresses is not None:
            raise ValueError("the cluster is started already; stop() ends it")
        self._addresses = Addresses(self._size, self._first_port)
        if self._directory is None:
            self._directory = self._temporary = Path(tempfile.mkdtemp(prefix="ottla-"))
        if self._security is not None:
            self._security.prepare(self._directory)
        try:
            for node_id in range(1, self._size + 1):
                self._launch(node_id)
            for thread in self._threads.values():
                thread.ready()
        except BaseException:
            self._clean_up()
            raise
        self._first_configs = configs(self._node(1))
        self._first_image = self._node(1).control_plane.image
        if self._with_registry:
            assert self.schema_registry_url
        if self._with_connect:
            assert self.connect_url
        return self

    def _launch(self, node_id: int) -> None:
        surroundings = Surroundings(
            listen=listening(), peers=partial(self._make_peers, node_id), registry=self._registry_if_any
        )
        thread = self._threads[node_id] = NodeThread(self._settings(node_id), surroundings)
        thread.start()

    def _registry_if_any(self) -> str | None:
        """That somebody has asked for: on the loop of a node, which must not wait for one that starts."""
        registry = self._registry
        return registry.url if registry is not None and registry.alive else None

    def _make_peers(self, node_id: int, loop: asyncio.AbstractEventLoop, client_id: str, ways: Ways) -> CuttablePeers:
        peers = self._peers[node_id] = CuttablePeers(loop, reaching()(loop, client_id, ways))
        return peers

    def stop(self) -> None:
        """A clean shutdown of every node, as by SIGTERM."""
        if self._connect is not None:
            self._connect.close()
            self._connect = None
        if self._registry is not None:
            self._registry.close()
            self._registry = None
        for thread in reversed(self._threads.values()):
            thread.stop(hand_over=False)
        self._clean_up()

    def reset(self) -> None:
        """Ends every fault, deletes every topic, every ACL and the users and delegation tokens that were made, and
        takes back quotas and what was set on brokers, their loggers, groups and client metrics: a test that comes after
        finds an empty and healthy cluster. If there was no fault it takes milliseconds."""
        if self._connect is not None:
            self._connect.stop()
        if self._registry is not None:
            self._registry.stop()  # what it remembers is about to be deleted
        self._mend()
        doomed = list(dict.fromkeys(each for node in self._nodes() for each in topic_ids(node)))
        self._call(1, delete_topics(self._node(1), doomed))
        self._call(1, restore_configs(self._node(1), self._first_configs))
        self._call(1, rights.forget(self._node(1)))
        self._call(1, restore_security(self._node(1), self._first_image))
        loggers.undo()
        self._await(lambda: not any(map(self._knows_one_of(doomed), self._nodes())), "no node knows a topic")
        self._await(lambda: not any(node.control_plane.image.acls for node in self._nodes()), "no node has an ACL")
        self._await(
            lambda: all(
                without_security_of_a_test(node.control_plane.image, self._first_image) for node in self._nodes()
            ),
            "no node has a quota or a user of a test",
        )

    def _knows_one_of(self, topics: list[Uuid]) -> Callable[[Node], bool]:
        return lambda node: any(each in topics for each in topic_ids(node))

    def _mend(self) -> None:
        for node_id, thread in self._threads.items():
            thread.resume()
            if not thread.alive:
                self._launch(node_id)
        for thread in self._threads.values():
            thread.ready()
        self.heal()
        self._await(lambda: all(map(self._knows_all, self._nodes())), "all nodes are up again")

    def _knows_all(self, node: Node) -> bool:
        image = node.control_plane.image
        known = [broker for broker in image.brokers.values() if not broker.fenced]
        return len(known) == self._size and node.control_plane.leader_id >= 0

    def _await(self, reached: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not reached():
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {PATIENCE_SECONDS:g} s in vain until {what}")
            time.sleep(_LOOK_AGAIN_SECONDS)

    # ---- users, in a cluster with security

    def user(self, name: str, password: str | None = None, *, may: Sequence[str] | None = None) -> dict[str, str]:
        """Makes a user who logs in by SCRAM, or gives one another password; returns what a client has to be told, under
        the names of confluent-kafka. All nodes know him when it returns.

        `may=["produce orders", "consume orders group billing"]` is all that he may (see `allow`); without it a new user
        may do everything."""
        secured = self._secured()
        password = password or new_password()
        request = scram_user(name, password)
        self._call(1, self._node(1).control_plane.submit(request))
        salt = request.upsertions[0].salt
        key = (request.upsertions[0].mechanism, name)

        def knows(node: Node) -> bool:
            found = node.control_plane.image.scram.get(key)
            return found is not None and found.salt == salt

        self._await(lambda: all(knows(self._node(each)) for each in self.running), f"all nodes know {name}")
        if may is not None:
            self._call(1, rights.forget(self._node(1), name))
            self.allow(name, *may)
        elif rights.decide(self._node(1)) and not rights.of(self._node(1), name):
            self.allow(name, *rights.EVERYTHING)
        return {"bootstrap.servers": self.bootstrap_servers, **secured.user(name, password)}

    @property
    def admin(self) -> dict[str, str]:
        """What a client has to be told to be the administrator, a super user."""
        return {"bootstrap.servers": self.bootstrap_servers, **self._secured().admin()}

    def renew_certificate(self) -> None:
        """Another certificate of the same authority, with another key, as an operator would put it there: without a
        restart. All nodes that run show it to new connections when it returns."""
        import ssl  # noqa: PLC0415  for who has TLS

        shown = self._secured().renew()

        def shows(node_id: int) -> bool:
            host, _, port = self.bootstrap_server(node_id).rpartition(":")
            return ssl.PEM_cert_to_DER_cert(shown) == ssl.PEM_cert_to_DER_cert(
                ssl.get_server_certificate((host, int(port)))
            )

        self._await(lambda: all(shows(each) for each in self.running), "all nodes show the new certificate")

    def _secured(self) -> ClusterSecurity:
        if self._security is None:
            raise ValueError('nobody logs in here: make the cluster with Cluster(security="SASL_PLAINTEXT")')
        return self._security

    def _client(self) -> "Client":
        """As the administrator, where there is one."""
        from ottla.client.addresses import parse_bootstrap  # noqa: PLC0415
        from ottla.client.blocking.cluster import Cluster as Client  # noqa: PLC0415
        from ottla.client.security import PLAINTEXT, security  # noqa: PLC0415

        secured = PLAINTEXT if self._security is None else security(as_java(self._security.admin()))
        return Client(parse_bootstrap(self.bootstrap_servers), security=secured)

    # ---- topics and records, for tests without a client

    def create_topic(self, name: str, partitions: int = -1, replication_factor: int = -1, **configs: object) -> None:
        """With the cluster's defaults for what is not said; settings as `cleanup_policy="compact"`. Raises
        KafkaError."""
        dotted = {name.replace("_", "."): _text(value) for name, value in configs.items()}
        from ottla.testing import records  # noqa: PLC0415

        records.create_topic(self._client(), name, partitions, replication_factor, dotted)

    def produce(
        self,
        topic: str,
        *values: "Text",
        key: "Text" = None,
        partition: int | None = None,
        headers: "Mapping[str, Text] | None" = None,
        timestamp_ms: int | None = None,
    ) -> "list[Record]":
        """Writes a record for each value and returns them as they stand in the log. A topic that is not there is
        made. Raises KafkaError."""
        from ottla.testing import records  # noqa: PLC0415

        return records.produce(self._client(), topic, values, key, partition, headers or {}, timestamp_ms)

    def consume(self, topic: str, count: int | None = None, *, timeout_s: float = 30.0) -> "list[Record]":
        """All records that are in the topic now; with `count`, waits until there are so many. Raises TimeoutError,
        KafkaError."""
        from ottla.testing import records  # noqa: PLC0415

        return records.consume(self._client(), topic, count, timeout_s)

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
        assert self._addresses is not None
        for node_id, peers in self._peers.items():
            others = [n for n in self._threads if side_of.get(n, -1) != side_of.get(node_id, -1)]
            peers.cut(self._addresses.of(others))

    def heal(self) -> None:
        for peers in self._peers.values():
            peers.cut(frozenset())

    # ---- rights, in a cluster with an authorizer

    def allow(self, user: str, *what: str) -> None:
        """`kafka.allow("alice", "produce orders", "consume orders group billing", "alter topic:orders")`: in force on
        every node when it returns. `alice` is User:alice, * everybody; a name that ends with * is a prefix; `from
        10.0.0.1` at the end is for that address only."""
        self._change_rights(rights.given(user, what, rights.ALLOW))

    def deny(self, user: str, *what: str) -> None:
        """As `allow`. What is denied is denied, whatever is allowed besides."""
        self._change_rights(rights.given(user, what, rights.DENY))

    def rights(self) -> list[str]:
        """Every entry as a sentence, sorted: what is denied goes first."""
        return rights.sentences(self._node(self.running[0]))

    def _change_rights(self, acls: list[Acl]) -> None:
        if not all(map(rights.decide, self._nodes())):
            raise ValueError(rights.NONE_HERE)
        self._call(self.running[0], rights.create(self._node(self.running[0]), acls))
        self._await(lambda: all(rights.has(node, acls) for node in self._nodes()), "the rights are in force everywhere")

    # ---- looking

    def leader_of(self, topic: str, partition: int = 0, *, seen_by: int | None = None) -> int:
        """The node that leads a partition, as one node (the first that runs) knows it; -1 for nobody."""
        found = self._node(seen_by or self.running[0]).control_plane.image.partition(topic, partition)
        return found.leader if found is not None else NO_LEADER

    def in_sync(self, topic: str, partition: int = 0) -> list[int]:
        """The in-sync replicas of a partition."""
        found = self._node(self.running[0]).control_plane.image.partition(topic, partition)
        return list(found.isr) if found is not None else []

    @property
    def controller(self) -> int:
        """The node with the active controller; -1 while there is none."""
        return self._node(self.running[0]).control_plane.leader_id

    def _existing(self, node_id: int) -> int:
        if node_id == NO_LEADER:
            raise ValueError("-1 is no node: nobody leads the partition that was asked for, or it does not exist")
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

    def _nodes(self) -> list[Node]:
        return [self._node(node_id) for node_id in self._threads]

    def _settings(self, node_id: int) -> Settings:
        assert self._directory is not None and self._addresses is not None
        of_cluster = self._addresses.settings(node_id, self._given)
        secured = {} if self._security is None else self._security.settings()
        settings = {**_FOR_TESTS, **of_cluster, **secured, **self._given, "listeners": of_cluster["listeners"]}
        directory = self._directory if self._size == 1 else self._directory / f"node-{node_id}"
        return Settings.defaults(str(directory), **settings)

    def _call(self, node_id: int, work: Coroutine[Any, Any, T]) -> T:
        return self._threads[node_id].call(work)

    def _clean_up(self) -> None:
        for thread in self._threads.values():
            thread.kill()
        self._threads = {}
        self._peers = {}
        if self._addresses is not None:
            self._addresses.release()
            self._addresses = None
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


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check(given: Mapping[str, str], nodes: int, port: int | None) -> None:
    """A keyword that does nothing would be found out much later. Raises SettingsError."""
    problems = []
    for keyword in given:
        name = keyword.replace("_", ".")
        if name not in STATIC and not name.startswith("listener.name."):
            meant = closest(name, STATIC)
            hint = f"; did you mean {meant.replace('.', '_')}?" if meant else ""
            problems.append(f"{keyword}: not a known setting{hint}")
        elif nodes > 1 and keyword in _OWN:
            problems.append(f"{keyword}: each of {nodes} nodes has its own; port=N says where the first listens")
    if port is not None and "listeners" in given:
        problems.append("port: listeners say already where to listen")
    if port is not None and not 1 <= port <= 65536 - nodes:
        problems.append(f"port={port}: 1 to {65536 - nodes}")
    if problems:
        raise SettingsError(problems)
