"""Three nodes of one server as one cluster, each node a process of its own, from the same properties.

Owns their ports, their properties and the topics in them; the processes are those of `servers.py`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench import wire
from bench.context import Context, Factory
from bench.process_cost import Cpu, Memory, cpu_of, memory_of
from bench.servers import Server, ServerFailed, free_ports, settle

NODES = 3
PATIENCE_SECONDS = 120.0
POLL_SECONDS = 0.05
ANSWER_SECONDS = 5.0
GLANCE_SECONDS = 1.0
PROPERTIES = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={directory}/data
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
share.coordinator.state.topic.replication.factor=3
share.coordinator.state.topic.min.isr=2
group.initial.rebalance.delay.ms=0
log.segment.delete.delay.ms=1000
"""
_numbers = count()


class Cluster:
    """Nodes 1, 2 and 3, each broker and controller."""

    def __init__(self, nodes: Sequence[Server]) -> None:
        self.nodes = list(nodes)
        self.ready_seconds = 0.0
        ports = free_ports(len(self.nodes))
        voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(ports, 1))
        for number, (node, port) in enumerate(zip(self.nodes, ports, strict=True), 1):
            text = PROPERTIES.format(
                node=number, voters=voters, port=node.port, controller_port=port, directory=node.directory
            )
            node.properties.write_text(text + node.more_properties(port))

    @property
    def name(self) -> str:
        return self.nodes[0].name

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes)

    def node(self, number: int) -> Server:
        return self.nodes[number - 1]

    def start(self) -> None:
        """Returns when every node knows every other."""
        for node in self.nodes:
            node.format()
        for node in self.nodes:
            node.spawn()
        self.ready_seconds = self.wait("every node knows the others", self.complete)

    def kill(self) -> None:
        """All of them: of three nodes that are asked to stop, the last has nobody to hand its partitions to."""
        for node in self.nodes:
            node.kill()

    def cpu(self) -> Cpu:
        taken = [cpu_of(node.pid) for node in self.nodes]
        return Cpu(sum(one.user for one in taken), sum(one.system for one in taken))

    def memory(self) -> Memory:
        taken = [memory_of(node.pid) for node in self.nodes]
        return Memory(
            sum(one.resident for one in taken), sum(one.peak for one in taken), sum(one.proportional for one in taken)
        )

    def complete(self) -> bool:
        return all(len(self._brokers(node)) == len(self.nodes) for node in self.nodes)

    def _brokers(self, node: Server) -> list[int]:
        try:
            with wire.Connection(node.port, GLANCE_SECONDS) as connection:
                return wire.metadata_brokers(connection.ask(wire.metadata_request([])))
        except OSError:
            return []

    def partitions(self, topics: list[str] | None, node: Server | None = None) -> list[wire.Partition]:
        """As `node` has them, else the first node that answers. None asks for every topic."""
        for asked in [node] if node else self.nodes:
            try:
                with wire.Connection(asked.port, ANSWER_SECONDS) as connection:
                    return wire.metadata_partitions(connection.ask(wire.metadata_request(topics)))
            except OSError:
                continue
        return []

    def in_sync(self, topics: list[str] | None, partitions: int) -> bool:
        found = self.partitions(topics)
        return len(found) >= partitions and all(one.error == 0 and len(one.in_sync) == len(self.nodes) for one in found)

    def whole(self, topics: list[str] | None, partitions: int) -> bool:
        """Every node is back, and has all there is."""
        return self.complete() and self.in_sync(topics, partitions)

    def wait(self, what: str, condition: Callable[[], bool]) -> float:
        """Seconds it took."""
        began = time.perf_counter()
        while not condition():
            waited = time.perf_counter() - began
            if waited > PATIENCE_SECONDS:
                tails = "\n".join(f"--- node {number}\n{node.log_tail()}" for number, node in enumerate(self.nodes, 1))
                raise ServerFailed(f"{self.name}: after {waited:.0f} s still not: {what}\n{tails}")
            time.sleep(POLL_SECONDS)
        return time.perf_counter() - began

    def create(self, topics: Sequence[str], partitions: int) -> None:
        """Returns when they are there; not when all replicas are in sync."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        wanted = [NewTopic(name, partitions, NODES) for name in topics]
        for done in admin.create_topics(wanted, request_timeout=PATIENCE_SECONDS).values():
            done.result(PATIENCE_SECONDS)

    @contextmanager
    def topic(self, partitions: int) -> Iterator[str]:
        """One for a trial, in sync when it begins; gone, and earlier writes on disk, when the next one begins."""
        name = f"bench-{next(_numbers)}"
        self.create([name], partitions)
        self.wait(f"{name} is in sync", lambda: self.in_sync([name], partitions))
        settle()
        yield name
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for done in admin.delete_topics([name]).values():
            done.result(PATIENCE_SECONDS)
        self.wait(f"{name} is deleted", lambda: not self._on_disk(name))

    def _on_disk(self, topic: str) -> bool:
        return any(any((node.directory / "data").glob(f"{topic}-*")) for node in self.nodes)


@contextmanager
def three(context: Context, factory: Factory) -> Iterator[Cluster]:
    """A new cluster that is up; gone at the end, however it ends."""
    cluster = Cluster([context.new_server(factory) for _ in range(NODES)])
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill()
        for node in cluster.nodes:
            context.discard(node)


@contextmanager
def both(context: Context) -> Iterator[list[Cluster]]:
    """Apache Kafka's, then ottla's, up at the same time."""
    with ExitStack() as stack:
        yield [stack.enter_context(three(context, factory)) for factory in context.factories]
