"""The property table beside Apache Kafka's: what the jars declare, and what a running broker says of its configs."""

import itertools
import json
import re
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ottla.model import properties
from ottla.model.properties import ConfigEntry, Property, Settings, parse_properties, topic
from ottla.protocol import messages
from ottla.protocol.frames import RequestHeader, decode_response_header, encode_request_header
from tests.rules.model.node_files import BROKEN, BROKER_ONLY, COMBINED, CONTROLLER_ONLY, SAMPLE
from tests.support.jvm import java, kafka_jars
from tests.support.nodes import START_S, free_ports

pytestmark = pytest.mark.jvm

TABLES: dict[str, Mapping[str, Property]] = {
    "BROKER": properties.BROKER,
    "DYNAMIC_ONLY": properties.DYNAMIC_ONLY,
    "TOPIC": {entry.name: entry for entry in topic.PROPERTIES},  # without those that only ottla has
    "GROUP": properties.GROUP,
    "CLIENT_METRICS": properties.CLIENT_METRICS,
}


@pytest.fixture(scope="module")
def declared() -> list[dict[str, Any]]:
    program = Path(__file__).parent / "java" / "PropertyTable.java"
    done = subprocess.run(java(kafka_jars(), str(program)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_name_kafka_declares_is_declared_here_and_no_other(declared: list[dict[str, Any]]) -> None:
    theirs = sorted((facts["table"], facts["name"]) for facts in declared)
    assert sorted((table, name) for table, entries in TABLES.items() for name in entries) == theirs


def test_types_defaults_importance_update_modes_and_synonyms_are_kafkas(declared: list[dict[str, Any]]) -> None:
    ours = {(table, name): _facts(table, entry) for table, entries in TABLES.items() for name, entry in entries.items()}
    keys = next(iter(ours.values())).keys()
    theirs = {(facts["table"], facts["name"]): {key: facts[key] for key in keys} for facts in declared}
    assert ours == theirs


def _facts(table: str, entry: Property) -> dict[str, object]:
    required = entry.kafka_default is properties.REQUIRED
    return {
        "table": table,
        "name": entry.name,
        "type": entry.type.name,
        "required": required,
        "default": None if isinstance(entry.kafka_default, properties.Required) else entry.render(entry.kafka_default),
        "importance": entry.importance.name,
        "internal": entry.internal,
        "update": entry.update.value,
        "synonyms": list(entry.synonyms),
    }


def test_bounds_and_choices_are_kafkas(declared: list[dict[str, Any]]) -> None:
    for facts in declared:
        entry = TABLES[facts["table"]][facts["name"]]
        assert entry.allow_empty == (facts["empty"] and facts["validator"] != "NonEmptyString"), entry
        if facts["validator"] == "Range":
            bounds = facts["allowed"].strip("[]").split(",")
            most = None if bounds[-1] == "..." else float(bounds[-1])
            assert (entry.at_least, entry.at_most) == (float(bounds[0]), most), entry
        elif facts["validator"] in ("ValidString", "CaseInsensitiveValidString", "ValidList"):
            choices = re.findall(r"[^\[\], ]+", facts["allowed"].removeprefix("(case insensitive)"))
            assert sorted(entry.one_of or ()) == sorted(choices), entry


def test_kafka_refuses_the_files_we_refuse_and_takes_those_we_take(tmp_path: Path) -> None:
    good = [parse_properties(SAMPLE), COMBINED, BROKER_ONLY, CONTROLLER_ONLY]
    files = {f"good-{number}": given for number, given in enumerate(good)}
    files |= {f"bad-{number:02}": {**base, **change} for number, (base, change, _) in enumerate(BROKEN)}
    for name, given in files.items():
        (tmp_path / name).write_text("".join(f"{key}={value}\n" for key, value in given.items()))
    program = Path(__file__).parent / "java" / "NodeFiles.java"
    done = subprocess.run(java(kafka_jars(), str(program), str(tmp_path)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert {name: answer.startswith("taken") for name, answer in answers.items()} == {
        name: name.startswith("good") for name in files
    }, answers


class Broker:
    """One connection to a broker; speaks the few requests these tests need."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._numbers = itertools.count()

    def __enter__(self) -> "Broker":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: Any, version: int) -> Any:
        header = RequestHeader(request.API_KEY, version, next(self._numbers), "peer-test")
        body = encode_request_header(header) + request.encode(version)
        self._socket.sendall(struct.pack(">i", len(body)) + body)
        (size,) = struct.unpack(">i", self._exactly(4))
        answer = self._exactly(size)
        _, position = decode_response_header(answer, request.API_KEY, version)
        return messages.response_class(request.API_KEY).decode(answer, version, position)

    def _exactly(self, count: int) -> bytes:
        read = b""
        while len(read) < count:
            chunk = self._socket.recv(count - len(read))
            assert chunk, "the broker hung up"
            read += chunk
        return read

    def alter(self, kind: int, name: str, configs: Mapping[str, str]) -> None:
        message = messages.IncrementalAlterConfigsRequest
        changes = [message.AlterableConfig(name=key, config_operation=0, value=value) for key, value in configs.items()]
        resource = message.AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)
        answer = self.ask(message(resources=[resource]), 1)
        assert [result.error_code for result in answer.responses] == [0], answer

    def describe(self, kind: int, name: str) -> dict[str, ConfigEntry]:
        message = messages.DescribeConfigsRequest
        resource = message.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        answer = self.ask(message(resources=[resource], include_synonyms=True), 4)
        (result,) = answer.results
        assert result.error_code == 0, result
        return {each.name: _as_entry(each) for each in result.configs}


def _as_entry(result: Any) -> ConfigEntry:
    return ConfigEntry(
        result.name,
        result.value,
        properties.Source(result.config_source),
        result.read_only,
        result.is_sensitive,
        properties.Type(result.config_type),
        tuple(properties.Synonym(each.name, each.value, properties.Source(each.source)) for each in result.synonyms),
        None,
    )


TOPIC_KIND, BROKER_KIND, CLIENT_METRICS_KIND, GROUP_KIND = 2, 4, 16, 32
TOPIC_OVERRIDES = {
    "retention.ms": "1000",
    "cleanup.policy": "compact, delete",
    "min.cleanable.dirty.ratio": "0.25",
    "segment.bytes": " 2097152",
}
GROUP_OVERRIDES = {"consumer.session.timeout.ms": "50000", "share.auto.offset.reset": "earliest"}
CLIENT_METRICS_OVERRIDES = {"interval.ms": "1000", "match": "client_id=a.*"}
DYNAMIC_BROKER = {
    "log.cleaner.backoff.ms": "2000",
    "log.roll.ms": "7200000",
    "leader.replication.throttled.rate": "1000000",
}
DYNAMIC_DEFAULT = {"log.cleaner.backoff.ms": "3000", "log.retention.bytes": "123456789", "max.connections": "9999"}

# KIP-966: a controller with eligible leader replicas pins min.insync.replicas as a cluster default at first start.
IN_FORCE_DEFAULT = {**DYNAMIC_DEFAULT, "min.insync.replicas": "1"}


def _server_properties(directory: Path, port: int, controller_port: int) -> str:
    # Spellings on purpose: blanks, continuation, an old name, a listener's own setting, a secret, a plugin's setting.
    return f"""
# a file as Kafka's users write them
process.roles = broker, controller
node.id:1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},\\
          CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names CONTROLLER
log.dirs={directory}/data
offsets.topic.replication.factor=1
log.retention.hours=24
log.roll.hours=48
log.segment.bytes=1048576
unclean.leader.election.enable=TRUE
log.cleaner.min.cleanable.ratio=.25
log.cleaner.io.max.bytes.per.second=12345678
log.initial.task.delay.ms=500
listener.name.plaintext.ssl.client.auth=none
ssl.key.password=secret
group.consumer.session.timeout.ms=46000
super.users=User:admin
metrics.jmx.exclude=nothing
"""


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Settings]]:
    """A running broker with static and dynamic settings, and the same file read by us."""
    directory = tmp_path_factory.mktemp("kafka")
    port, controller_port = free_ports(2)
    file = directory / "server.properties"
    file.write_text(_server_properties(directory, port, controller_port))
    jars = kafka_jars()
    words = ("kafka.tools.StorageTool", "format", "-t", "bWFkZS11cC1pZC0wMDAwMQ", "-c", str(file))
    subprocess.run(java(jars, *words), check=True, capture_output=True)
    with (
        (directory / "server.log").open("w") as log,
        subprocess.Popen(java(jars, "kafka.Kafka", str(file)), stdout=log, stderr=log) as process,
    ):
        try:
            _wait_until_it_answers(port)
            with Broker(port) as broker:
                _configure(broker)
                yield broker, Settings.from_properties(file.read_text())
        finally:
            process.kill()


def _wait_until_it_answers(port: int) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            with Broker(port) as broker:
                # One that is fenced answers too, but there can be no topics on it yet.
                assert broker.ask(messages.MetadataRequest(topics=[]), 12).brokers
                broker.describe(BROKER_KIND, "1")
                return
        except (OSError, AssertionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _configure(broker: Broker) -> None:
    message = messages.CreateTopicsRequest
    configs = [message.CreatableTopicConfig(name=name, value=value) for name, value in TOPIC_OVERRIDES.items()]
    topics = [
        message.CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=overrides)
        for name, overrides in (("plain", []), ("tuned", configs))
    ]
    answer = broker.ask(message(topics=topics, timeout_ms=30_000), 7)
    assert [topic.error_code for topic in answer.topics] == [0, 0], answer
    broker.alter(BROKER_KIND, "1", DYNAMIC_BROKER)
    broker.alter(BROKER_KIND, "", DYNAMIC_DEFAULT)
    broker.alter(GROUP_KIND, "tuned", GROUP_OVERRIDES)
    broker.alter(CLIENT_METRICS_KIND, "tuned", CLIENT_METRICS_OVERRIDES)
    deadline = time.monotonic() + 60
    # An altered config is answered when it is committed; the broker applies it a moment later.
    while (
        broker.describe(BROKER_KIND, "1")["max.connections"].value != "9999"
        or broker.describe(GROUP_KIND, "tuned")["consumer.session.timeout.ms"].value != "50000"
        or broker.describe(CLIENT_METRICS_KIND, "tuned")["interval.ms"].value != "1000"
    ):
        assert time.monotonic() < deadline, "the dynamic configs were not applied"
        time.sleep(0.05)


def _ours(entries: list[ConfigEntry]) -> dict[str, ConfigEntry]:
    """Without the docs, which are ours, and with Kafka's default where ours differs on purpose."""
    return {entry.name: _with_kafkas_default(entry) for entry in entries if entry.name not in properties.OWN}


def _with_kafkas_default(entry: ConfigEntry) -> ConfigEntry:
    declared = properties.BROKER.get(entry.name)
    if declared is None or declared.differs is None:
        return entry._replace(doc=None)
    default = declared.render(declared.differs.kafka_default)
    synonyms = tuple(each._replace(value=default) if each.source == 5 else each for each in entry.synonyms)
    return entry._replace(doc=None, synonyms=synonyms, value=default if entry.is_default else entry.value)


def test_a_broker_is_described_as_kafka_does(kafka: tuple[Broker, Settings]) -> None:
    broker, settings = kafka
    ours = _ours(properties.effective_broker_config(settings, DYNAMIC_BROKER, IN_FORCE_DEFAULT))
    assert ours == broker.describe(BROKER_KIND, "1")


def test_the_cluster_default_is_described_as_kafka_does(kafka: tuple[Broker, Settings]) -> None:
    broker, _ = kafka
    ours = _ours(properties.effective_cluster_default_config(IN_FORCE_DEFAULT))
    assert ours == broker.describe(BROKER_KIND, "")


@pytest.mark.parametrize(("topic", "overrides"), [("plain", {}), ("tuned", TOPIC_OVERRIDES)])
def test_a_topic_is_described_as_kafka_does(
    kafka: tuple[Broker, Settings], topic: str, overrides: dict[str, str]
) -> None:
    broker, settings = kafka
    ours = _ours(properties.effective_topic_config(overrides, settings, DYNAMIC_BROKER, IN_FORCE_DEFAULT))
    assert ours == broker.describe(TOPIC_KIND, topic)


@pytest.mark.parametrize(("group", "overrides"), [("plain", {}), ("tuned", GROUP_OVERRIDES)])
def test_a_group_is_described_as_kafka_does(
    kafka: tuple[Broker, Settings], group: str, overrides: dict[str, str]
) -> None:
    broker, settings = kafka
    ours = _ours(properties.effective_group_config(overrides, settings, DYNAMIC_BROKER, IN_FORCE_DEFAULT))
    assert ours == broker.describe(GROUP_KIND, group)


def test_a_client_metrics_subscription_is_described_as_kafka_does(kafka: tuple[Broker, Settings]) -> None:
    broker, _ = kafka
    ours = _ours(properties.effective_client_metrics_config(CLIENT_METRICS_OVERRIDES))
    assert ours == broker.describe(CLIENT_METRICS_KIND, "tuned")
