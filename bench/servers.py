"""The two servers under test, started as a user starts them, from the same server.properties.

Owns their processes and directories. A server is measured only through its process id and its port.
"""

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from bench import wire
from bench.kafka_jars import java_command

REPOSITORY = Path(__file__).parent.parent
START_PATIENCE_SECONDS = 120.0
STOP_PATIENCE_SECONDS = 120.0
POLL_SECONDS = 0.002
# What Kafka's own start script passes to the JVM, with its default heap.
KAFKA_HEAP = "-Xmx1g -Xms1g"
KAFKA_JVM_OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={directory}/data
num.partitions=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.segment.delete.delay.ms=1000
"""


class ServerFailed(RuntimeError):
    """A server did not start, did not stop, or died."""


class Server(ABC):
    """One node with a directory of its own. `spawn` returns at once, `start` when the node has taken a record."""

    name: ClassVar[str]

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port, controller_port = free_ports(2)
        self.properties = directory / "server.properties"
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True)
        self.properties.write_text(
            PROPERTIES.format(port=self.port, controller_port=controller_port, directory=directory)
            + self.more_properties(controller_port)
        )

    def more_properties(self, controller_port: int) -> str:
        """What a workload's own kind of server is to have besides; what stands there twice counts as it stands last."""
        return ""

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ServerFailed(f"{self.name} is not running")
        return self._process.pid

    def format(self) -> None:  # noqa: B027 - ottla formats a new directory by itself
        """What must be done once before the first start."""

    @abstractmethod
    def command(self) -> list[str]: ...

    def spawn(self) -> None:
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def start(self) -> None:
        self.format()
        self.spawn()
        self.first_acknowledged()

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired as late:
            self._process.kill()
            self._process.wait()
            raise ServerFailed(f"{self.name} ignored SIGTERM for {STOP_PATIENCE_SECONDS} s") from late
        finally:
            self._process = None

    def kill(self) -> None:
        """kill -9: what it had not handed to the kernel is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def connect(self) -> wire.Connection:
        """A connection as soon as the server takes one."""
        deadline = time.monotonic() + START_PATIENCE_SECONDS
        while True:
            try:
                return wire.Connection(self.port)
            except OSError as refused:
                self._must_live(deadline, refused)
                time.sleep(POLL_SECONDS)

    def first_acknowledged(self, topic: str = "first") -> None:
        """Returns at the first acknowledged record of `topic`, which the server creates by itself."""
        deadline = time.monotonic() + START_PATIENCE_SECONDS
        batch = wire.one_record_batch(b"first")
        while True:
            try:
                with self.connect() as connection:
                    self._until_acknowledged(connection, topic, batch, deadline)
                    return
            except OSError as broken:
                self._must_live(deadline, broken)

    def _until_acknowledged(self, connection: wire.Connection, topic: str, batch: bytes, deadline: float) -> None:
        produce = wire.produce_request(topic, 0, batch)
        create = wire.metadata_request([topic], create=True)
        while True:
            connection.ask(create)
            error = wire.produced(connection.ask(produce)).error
            if error == 0:
                return
            self._must_live(deadline, f"Produce answers with error {error}")
            time.sleep(POLL_SECONDS)

    def _must_live(self, deadline: float, trouble: object) -> None:
        if self._process is None or self._process.poll() is not None or time.monotonic() > deadline:
            raise ServerFailed(f"{self.name} does not serve ({trouble}); its log ends:\n{self.log_tail()}")

    def log_tail(self, size: int = 2000) -> str:
        return (self.directory / "server.log").read_bytes()[-size:].decode(errors="replace")


class ApacheKafka(Server):
    name = "Apache Kafka"

    def format(self) -> None:
        arguments = ("format", "-t", "b3R0bGEtYmVuY2gtMDAwMA", "-c", str(self.properties))
        command = java_command("kafka.tools.StorageTool", *arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ServerFailed(f"StorageTool cannot format: {done.stdout}{done.stderr}")

    def command(self) -> list[str]:
        return java_command("kafka.Kafka", str(self.properties), heap=KAFKA_HEAP, options=KAFKA_JVM_OPTIONS)


class Ottla(Server):
    name = "ottla"
    executable: ClassVar[Path] = Path(sys.executable).parent / "ottla"
    """Next to the Python that runs the bench, unless told otherwise: `make bench` measures the wheel."""

    def command(self) -> list[str]:
        return [str(self.executable), "start", str(self.properties)]


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for candidate in sockets:
        candidate.bind(("127.0.0.1", 0))
    ports: list[int] = [candidate.getsockname()[1] for candidate in sockets]
    for candidate in sockets:
        candidate.close()
    return ports


def raise_file_limit() -> None:
    """For the servers, which inherit it: Kafka keeps a file open per partition; a login shell often allows 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def settle() -> None:
    """Lets the kernel write what earlier rounds left, so that the next one is not billed for it."""
    os.sync()
