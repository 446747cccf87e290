"""Servers as processes of their own, from one and the same server.properties: ottla's and Apache Kafka's."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from ottla.protocol import messages as m
from tests.support import jvm
from tests.support.patience import PATIENCE_SECONDS
from tests.support.wire import Closed, Wire

START_S = PATIENCE_SECONDS
"""For a JVM on a busy machine. Nobody waits that long unless something is wrong."""
# Records of the tests may be years old: nobody looks for what is too old to keep.
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=86400000
"""


PORTS = range(10_000, 32_000)
"""Below those that the system hands out by itself: a port must not go to somebody's connection before, or between two
starts of, the node it is meant for. Such a node's test would talk to a stranger."""


def free_ports(count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        port = secrets.choice(PORTS)
        if port not in found and is_free(port):
            found.append(port)
    return found


def is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


class Node:
    """One server over one data directory. `log` holds what it printed."""

    name: ClassVar[str]

    def __init__(self, directory: Path, data: Path | None = None, extra: Mapping[str, str] | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.data = data or directory / "data"
        self.log = directory / "server.log"
        self.port, controller_port = free_ports(2)
        self.properties = directory / "server.properties"
        more = "".join(f"{name}={value}\n" for name, value in (extra or {}).items())
        self.properties.write_text(
            PROPERTIES.format(port=self.port, controller_port=controller_port, data=self.data) + more
        )
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        raise NotImplementedError

    def format(self) -> None:
        """What has to be done before the first start in a new directory."""

    def start(self) -> Self:
        """Returns when the node serves."""
        if not self.data.exists():
            self.format()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        end = time.monotonic() + START_S
        while not self._serves():
            assert self.process.poll() is None, f"{self.name} ended with {self.process.returncode}:\n{self.printed()}"
            assert time.monotonic() < end, f"{self.name} does not serve:\n{self.printed()}"
        assert self.process.poll() is None, f"another server has the port of {self.name}:\n{self.printed()}"
        return self

    def _serves(self) -> bool:
        try:
            with Wire(self.bootstrap) as wire:
                if wire.ask(m.MetadataRequest(topics=[]), 12).brokers:
                    return True
        except (OSError, Closed):
            pass
        # The one wait in this suite that no client call can do: nobody listens yet.
        time.sleep(0.005)
        return False

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> int:
        if self.process is None:
            return 0
        self.process.send_signal(how)
        code = self.process.wait(START_S)
        self.process = None
        return code

    def printed(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


class Ottla(Node):
    name: ClassVar[str] = "ottla"

    def command(self) -> list[str]:
        return [sys.executable, "-m", "ottla", "start", str(self.properties)]


class ApacheKafka(Node):
    name: ClassVar[str] = "Apache Kafka"

    def __init__(self, directory: Path, data: Path | None = None, extra: Mapping[str, str] | None = None) -> None:
        self._jars = jvm.kafka_jars()
        super().__init__(directory, data, extra)

    def format(self) -> None:
        words = ["kafka.tools.StorageTool", "format", "-t", "ottlaPeerClusterId0000", "-c", str(self.properties)]
        done = subprocess.run(jvm.java(self._jars, *words), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def command(self) -> list[str]:
        flags = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m")
        return jvm.java(self._jars, "kafka.Kafka", str(self.properties), flags=flags)


def resident_bytes(pid: int) -> int:
    """What a process holds in memory now."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cleaners_of(pid: int) -> list[int]:
    """The processes that clean for a node, by the process it lives in."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in children.read_text().split():
                if b"ottla.runtime.cleaner" in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0"):
                    found.append(int(child))
        except (FileNotFoundError, ProcessLookupError):
            continue  # the child, or the thread that started it, has just ended
    return found
