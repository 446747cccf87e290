"""Three nodes as processes of their own, ottla's or Apache Kafka's, from the same properties."""

import os
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ottla.protocol import messages as m
from tests.faults.clocks import WallClock
from tests.faults.disks import Disk, LoopDisk, PlainDisk
from tests.faults.door import CLIENT, Door
from tests.faults.network import Network
from tests.support import jvm
from tests.support.sasl import plain_login
from tests.support.wire import Closed, Wire

START_S = 90.0
STOP_S = 60.0
GLANCE_S = 1.0
"""How long a node may take to say what it knows before it counts as not answering."""
PROPERTIES = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=PLAINTEXT://{advertised_host}:{advertised_port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
offsets.topic.num.partitions=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
transaction.state.log.num.partitions=3
share.coordinator.state.topic.replication.factor=3
share.coordinator.state.topic.min.isr=2
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
"""


class Glance(Wire):
    """A connection to a node that may be paused or cut off."""

    def __init__(self, bootstrap: str, door: Door | None) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=GLANCE_S)
        self._client_id = "glance"
        self._correlation_id = 0
        try:
            self._log_in(door, host)
        except BaseException:  # of a node that is paused or cut off
            self._socket.close()
            raise

    def _log_in(self, door: Door | None, host: str) -> None:
        if door is not None:
            self._socket = door.context.wrap_socket(self._socket, server_hostname=host)
            assert plain_login(self, "node", "node-secret").error_code == 0


class Member(ABC):
    """One node. Its files are in a directory of its own; `log` holds what it printed."""

    flavour: ClassVar[str]

    def __init__(self, number: int, directory: Path, disk: Disk, network: Network, clock: WallClock | None) -> None:
        self.number = number
        self.disk = disk
        self.log = directory / f"node-{number}.log"
        self.address = network.address(number)
        self.advertised = network.advertised(number)
        self.properties = directory / f"node-{number}.properties"
        self._network = network
        self.clock = clock
        self.door: Door | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{self.advertised[0]}:{self.advertised[1]}"

    @property
    def data(self) -> Path:
        return self.disk.directory / "data"

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @abstractmethod
    def command(self) -> list[str]: ...

    def format(self) -> None:  # noqa: B027  ottla needs none
        """What has to be done before the first start in a new directory."""

    def start(self) -> None:
        """Returns at once."""
        assert not self.alive
        environment = {**os.environ, **(self.clock.environment if self.clock else {})}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._network.prefix(self.number), *self.command()],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=environment,
            )
        self._network.started(self.number, self.pid)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"node {self.number} ignored SIGTERM for {STOP_S:.0f} s:\n{self.tail()}") from None
        finally:
            self._process = None

    def tail(self, size: int = 3000) -> str:
        return self.log.read_bytes()[-size:].decode(errors="replace") if self.log.exists() else ""

    def metadata(self, *topics: str) -> m.MetadataResponse | None:
        """What the node knows now; None if it does not answer at once."""
        wanted = [m.MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
        try:
            with Glance(self.bootstrap, self.door) as wire:
                answer: m.MetadataResponse = wire.ask(m.MetadataRequest(topics=wanted), 12)
                return answer
        except (OSError, Closed):
            return None


class OttlaMember(Member):
    flavour: ClassVar[str] = "ottla"

    def command(self) -> list[str]:
        return [sys.executable, "-m", "ottla", "start", str(self.properties)]


class KafkaMember(Member):
    flavour: ClassVar[str] = "kafka"
    HEAP: ClassVar[tuple[str, ...]] = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m")

    def format(self) -> None:
        words = ["kafka.tools.StorageTool", "format", "-t", "ottlaFaultClusterId000", "-c", str(self.properties)]
        done = subprocess.run(jvm.java(jvm.kafka_jars(), *words), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def command(self) -> list[str]:
        return jvm.java(jvm.kafka_jars(), "kafka.Kafka", str(self.properties), flags=self.HEAP)


FLAVOURS: dict[str, type[Member]] = {"ottla": OttlaMember, "kafka": KafkaMember}


class FaultyCluster:
    """The nodes together with the network and the disks they stand on."""

    def __init__(
        self,
        flavour: str,
        directory: Path,
        network: Network,
        *,
        nodes: int = 3,
        loop_disks: bool = False,
        faketime: Path | None = None,
        extra: Mapping[str, str] | None = None,
        secured: bool = False,
    ) -> None:
        self.directory = directory
        self.network = network
        self.members: list[Member] = []
        for number in range(1, nodes + 1):
            place = directory / f"node-{number}"
            disk = LoopDisk(place) if loop_disks else PlainDisk(place)
            clock = WallClock(faketime, directory / f"node-{number}.clock") if faketime else None
            self.members.append(FLAVOURS[flavour](number, directory, disk, network, clock))
        voters = ",".join(f"{member.number}@{member.advertised[0]}:{member.advertised[2]}" for member in self.members)
        self.door = None
        if secured:
            self.door = Door(directory, [member.advertised[0] for member in self.members])
            for member in self.members:
                member.door = self.door
        lines = {**(self.door.properties() if self.door is not None else {}), **(extra or {})}
        more = "".join(f"{name}={value}\n" for name, value in lines.items())
        for member in self.members:
            text = PROPERTIES.format(
                node=member.number,
                voters=voters,
                host=member.address[0],
                port=member.address[1],
                controller_port=member.address[2],
                advertised_host=member.advertised[0],
                advertised_port=member.advertised[1],
                data=member.data,
            )
            member.properties.write_text(text + more)

    @property
    def bootstrap(self) -> str:
        return ",".join(member.bootstrap for member in self.members)

    def member(self, number: int) -> Member:
        return self.members[number - 1]

    def start(self) -> None:
        """Returns when all nodes know each other."""
        for member in self.members:
            member.format()
            member.disk.settle()
        for member in self.members:
            member.start()
        self.wait("all nodes see each other", self._complete)

    def _complete(self) -> bool:
        answers = [member.metadata() for member in self.members]
        return all(answer is not None and len(answer.brokers) == len(self.members) for answer in answers)

    def create_topic(self, name: str, partitions: int, **configs: str) -> None:
        admin = AdminClient({**CLIENT, "bootstrap.servers": self.bootstrap})
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=len(self.members), config=settings)
        admin.create_topics([topic], operation_timeout=60, request_timeout=60)[name].result(START_S)
        self.wait(f"{name} has all replicas in sync", lambda: self.in_sync(name))

    def in_sync(self, *topics: str) -> bool:
        return not self.out_of_sync(*topics)

    def out_of_sync(self, *topics: str) -> list[str]:
        """The partitions of these topics that lack a replica or a leader, as one node that answers has it."""
        for member in self.members:
            answer = member.metadata(*topics)
            if answer is not None:
                everyone = len(self.members)
                return [f"{topic.name} has error {topic.error_code}" for topic in answer.topics if topic.error_code] + [
                    f"{topic.name}-{p.partition_index}: leader {p.leader_id}, in sync {p.isr_nodes}"
                    for topic in answer.topics
                    for p in topic.partitions
                    if p.leader_id < 0 or len(p.isr_nodes) < everyone
                ]
        return ["no node answers"]

    def leaders(self, topic: str) -> dict[int, int]:
        """Partition to its leader."""
        for member in self.members:
            answer = member.metadata(topic)
            if answer is not None and answer.topics[0].error_code == 0:
                return {p.partition_index: p.leader_id for p in answer.topics[0].partitions}
        return {}

    def wait(
        self,
        what: str,
        condition: Callable[[], bool],
        seconds: float = START_S,
        seen: Callable[[], object] = lambda: "",
    ) -> float:
        """Returns how long it took. `seen` is asked what there is instead when it took too long."""
        began = time.monotonic()
        while not condition():
            waited = time.monotonic() - began
            assert waited < seconds, f"after {waited:.0f} s still not: {what} {seen()}\n{self.tails()}"
            time.sleep(0.05)
        return time.monotonic() - began

    def tails(self) -> str:
        return "\n".join(f"--- node {member.number}, alive: {member.alive}\n{member.tail()}" for member in self.members)

    def heal(self) -> None:
        """Links, clocks and processes as they were at the start."""
        self.network.heal()
        for member in self.members:
            if isinstance(member.disk, LoopDisk):
                member.disk.free()
            if member.clock is not None:
                member.clock.set(0)
            if not member.alive:
                member.start()

    def stop(self) -> None:
        """kill -9 of all: what they have written is in their files, and the last of three has nobody to resign to."""
        for member in self.members:
            if member.alive:
                member.kill()

    def close(self) -> None:
        for member in self.members:
            if member.alive:
                member.kill()
            member.disk.close()
        self.network.close()

    def segments(self, topic: str, partition: int) -> dict[int, list[bytes]]:
        """Node to the contents of its segment files, in order."""
        return {member.number: list(_segments(member.data / f"{topic}-{partition}")) for member in self.members}


def _segments(directory: Path) -> Iterator[bytes]:
    for path in sorted(directory.glob("*.log")):
        yield path.read_bytes()
