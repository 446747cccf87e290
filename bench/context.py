"""What a workload gets: the two servers, how long to measure, and fresh topics. Owns the lifetime of every server."""

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.servers import ApacheKafka, Ottla, Server, ServerFailed, settle

ADMIN_PATIENCE_SECONDS = 60.0
DELETE_PATIENCE_SECONDS = 15.0
Factory = type[Server]


@dataclass(slots=True)
class Context:
    """`factories` make servers; the pair is started at the first workload that needs it and stays up."""

    directory: Path
    rounds: int
    quick: bool
    partitions: int
    factories: tuple[Factory, Factory] = (ApacheKafka, Ottla)
    made: list[Server] = field(default_factory=list)
    _pair: list[Server] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    @property
    def warmups(self) -> range:
        """How many warm-up rounds at least, and below what number. A quick run does not wait for Kafka to be warm."""
        return range(1, 2) if self.quick else range(3, 11)

    def amount(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    def pair(self) -> list[Server]:
        """Apache Kafka, then ottla, both up and shared by all workloads that measure warm servers."""
        for factory in self.factories[len(self._pair) :]:
            server = self.new_server(factory)
            server.start()
            self._pair.append(server)
        return self._pair

    def new_server(self, factory: Factory) -> Server:
        server = factory(self.directory / f"server-{next(self._numbers)}")
        self.made.append(server)
        return server

    def discard(self, server: Server) -> None:
        self.made.remove(server)
        server.stop()
        shutil.rmtree(server.directory)

    @contextmanager
    def topic(self, server: Server, partitions: int = 6, *, kept: bool = False) -> Iterator[str]:
        """A topic of its own for one trial; what earlier trials wrote is on disk and gone before it begins. Records
        that claim to be old have to be `kept`: retention would take them within minutes."""
        name = f"bench-{next(self._numbers)}"
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        config = {"retention.ms": "-1"} if kept else {}
        for done in admin.create_topics([NewTopic(name, partitions, 1, config=config)]).values():
            done.result(ADMIN_PATIENCE_SECONDS)
        settle()
        yield name
        for done in admin.delete_topics([name]).values():
            done.result(ADMIN_PATIENCE_SECONDS)
        self._wait_deleted(server, name)

    def _wait_deleted(self, server: Server, topic: str) -> None:
        deadline = time.monotonic() + DELETE_PATIENCE_SECONDS
        while any((server.directory / "data").glob(f"{topic}*")) and time.monotonic() < deadline:
            time.sleep(0.1)

    def close(self) -> None:
        """Stops whatever is up, also what a failed workload left behind; the next workload starts anew."""
        self._pair.clear()
        while self.made:
            try:
                self.discard(self.made[-1])
            except ServerFailed as stubborn:
                print(f"  {stubborn}", file=sys.stderr)
