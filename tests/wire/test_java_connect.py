"""Apache's Connect worker, distributed mode: lines go from a file through a topic into a file, over restarts of all."""

import http.client
import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ottla.protocol import messages as m
from tests.support import jvm
from tests.support.committed import committed
from tests.support.nodes import Ottla, free_ports
from tests.support.programs import Program
from tests.support.requests import wait_until_stable
from tests.support.wire import Wire

pytestmark = pytest.mark.jvm

WORKER = """\
bootstrap.servers={bootstrap}
group.id=workers
listeners=http://127.0.0.1:{port}
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
config.storage.topic=connect-configs
config.storage.replication.factor=1
offset.storage.topic=connect-offsets
offset.storage.replication.factor=1
offset.storage.partitions=2
status.storage.topic=connect-status
status.storage.replication.factor=1
status.storage.partitions=2
offset.flush.interval.ms=100
scheduled.rebalance.max.delay.ms=0
plugin.discovery=service_load
consumer.session.timeout.ms=6000
consumer.heartbeat.interval.ms=1000
"""
"""A worker that misses its node for three seconds closes the sink's consumer, which cannot say goodbye: the next one
waits until the session of that one is over."""


class Connect:
    """One worker over two files, and its REST interface."""

    def __init__(self, node: Ottla, directory: Path) -> None:
        self.directory = directory
        self.source, self.sink = directory / "source.txt", directory / "sink.txt"
        (self._port,) = free_ports(1)
        directory.mkdir()
        self.source.touch()
        self.sink.touch()
        self._properties = directory / "worker.properties"
        self._properties.write_text(WORKER.format(bootstrap=node.bootstrap, port=self._port))

    def start(self, **more: str) -> Program:
        """`more` are further settings of the worker, with underscores for dots."""
        with self._properties.open("a") as properties:
            properties.writelines(f"{name.replace('_', '.')}={value}\n" for name, value in more.items())
        words = ("org.apache.kafka.connect.cli.ConnectDistributed", str(self._properties))
        return Program("worker", jvm.java(jvm.program_jars(), *words), self.directory)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The answer, or None while there is none to be had."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            said = answer.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        if answer.status in (404, 409, 500, 503):  # starting, or in the midst of a rebalance
            return None
        assert answer.status < 300, said
        return json.loads(said)

    def configure(self, worker: Program, name: str, kind: str, **settings: str) -> None:
        settings |= {"connector.class": f"org.apache.kafka.connect.file.FileStream{kind}Connector", "tasks.max": "1"}
        worker.until(f"connector {name}", partial(self.ask, "PUT", f"/connectors/{name}/config", settings))

    def offsets(self, name: str) -> list[dict[str, Any]] | None:
        """Where a connector would go on."""
        answer = self.ask("GET", f"/connectors/{name}/offsets")
        return [entry["offset"] for entry in answer["offsets"]] if answer else None

    def write(self, lines: Iterable[str]) -> None:
        with self.source.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def arrived(self) -> list[str]:
        return self.sink.read_text().splitlines()

    def has(self, lines: Iterable[str]) -> bool:
        return set(lines) <= set(self.arrived())


def values(node: Ottla) -> list[str]:
    """What is committed in the topic."""
    return [record.value for record in committed(node.bootstrap, "lines")]


def numbered(name: str) -> list[str]:
    return [f"{name} {number}" for number in range(100)]


@pytest.mark.matrix
def test_lines_arrive_over_restarts_of_the_node_and_of_the_worker(tmp_path: Path) -> None:
    node = Ottla(tmp_path / "node").start()
    connect = Connect(node, tmp_path / "connect")
    first, stopped, killed, resumed, once = map(numbered, ("first", "stopped", "killed", "resumed", "once"))
    with connect.start() as worker:
        connect.write(first)
        connect.configure(worker, "in", "Source", topic="lines", file=str(connect.source))
        connect.configure(worker, "out", "Sink", topics="lines", file=str(connect.sink))
        worker.until("the first lines", lambda: connect.has(first))
        for lines, end in ((stopped, node.stop), (killed, node.kill)):
            end()
            connect.write(lines)  # nobody is there to take them
            node.start()
            worker.until("lines after a restart", partial(connect.has, lines))
        settled(connect, worker, node)
        worker.stop_or_kill()  # one was seen to ignore SIGTERM for two minutes
    arrived, in_topic = connect.arrived(), values(node)
    # A line may come twice where an answer was lost with the node; none is missing, none overtakes another.
    assert list(dict.fromkeys(in_topic)) == list(dict.fromkeys(arrived)) == first + stopped + killed

    # The worker comes back, now with sources that write in transactions.
    connect.write(resumed)
    with connect.start(exactly_once_source_support="enabled") as worker:
        worker.until("lines after a restart of the worker", lambda: connect.has(resumed))
        settled(connect, worker, node)
        assert connect.arrived() == arrived + resumed, "the sink went on where it was"
        node.kill()
        connect.write(once)
        node.start()
        worker.until("lines of a transaction", lambda: connect.has(once))
        settled(connect, worker, node)
        worker.stop_or_kill()  # one was seen to ignore SIGTERM for two minutes
    assert values(node) == in_topic + resumed + once, "the source went on where it was, every line once"
    check_internal_topics(node)
    assert node.stop() == 0
    assert "Traceback" not in node.printed()


def settled(connect: Connect, worker: Program, node: Ottla) -> None:
    """Waits until both connectors have stored that they are through with everything."""
    size = connect.source.stat().st_size
    worker.until("the source's offset", lambda: connect.offsets("in") == [{"position": size}])
    with Wire(node.bootstrap) as wire:
        wait_until_stable(wire, "lines")
    end = committed(node.bootstrap, "lines")[-1].offset + 1
    worker.until("the sink's offset", lambda: connect.offsets("out") == [{"kafka_offset": end}])


def check_internal_topics(node: Ottla) -> None:
    with Wire(node.bootstrap) as wire:
        for topic in ("connect-configs", "connect-offsets", "connect-status"):
            asked = m.DescribeConfigsRequest.DescribeConfigsResource(2, topic, ["cleanup.policy"])
            (answer,) = wire.ask(m.DescribeConfigsRequest(resources=[asked])).results
            assert [config.value for config in answer.configs] == ["compact"]
