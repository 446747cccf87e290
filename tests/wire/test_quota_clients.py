"""Quotas as people meet them: clients that wait by themselves and one that does not, command line, metrics."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from ottla.cli.app import run
from ottla.testing import Cluster
from tests.support.prometheus import parsed
from tests.support.quotas import described, limit
from tests.support.wire import Wire

RATE = 200_000
WINDOW_S = 10


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(http_listeners="http://127.0.0.1:0", auto_create_topics_enable=False) as cluster:
        yield cluster


@pytest.fixture
def admin(kafka: Cluster) -> Iterator[Wire]:
    with Wire(kafka.bootstrap_servers, client_id="admin") as wire:
        yield wire
        for entity, values in described(wire).items():
            limit(wire, dict(entity), **dict.fromkeys(values))


def test_librdkafka_is_told_and_nothing_is_lost(kafka: Cluster, admin: Wire) -> None:
    kafka.create_topic("rd")
    limit(admin, {"client-id": "rd"}, producer_byte_rate=RATE, consumer_byte_rate=RATE)
    told: list[float] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "client.id": "rd",
        "throttle_cb": lambda event: told.append(event.throttle_time),
        "linger.ms": 0,
        "batch.size": 100_000,
    }
    producer = Producer(settings)
    started = time.monotonic()
    for number in range(26):  # half a second more than may be used at once
        producer.produce("rd", value=bytes(90_000), key=str(number))
        producer.flush()
    assert max(told) > 0.05
    assert time.monotonic() - started > 0.25
    consumer = Consumer(settings | {"group.id": "rd", "auto.offset.reset": "earliest"})
    consumer.subscribe(["rd"])
    keys: list[bytes | None] = []
    while len(keys) < 26:
        message = consumer.poll(30)
        assert message is not None
        keys.append(message.key())
    consumer.close()
    assert keys == [str(number).encode() for number in range(26)]


def test_a_client_that_does_not_wait_by_itself_is_held_all_the_same(kafka: Cluster, admin: Wire) -> None:
    """kafka-python #2506: only a connection that is not read stops it."""
    from kafka import KafkaProducer  # noqa: PLC0415  pytest's filters hold for its warnings then

    kafka.create_topic("kp")
    limit(admin, {"client-id": "kp"}, producer_byte_rate=RATE)
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, client_id="kp", max_request_size=2_000_000)
    started = time.monotonic()
    try:
        for _ in range(5):
            producer.send("kp", bytes(450_000)).get(60)
        producer.send("kp", b"one more").get(60)
        assert time.monotonic() - started > 0.8  # 2.25 MB where 2 may be used at once: 1.25 s, less what passed
    finally:
        producer.close()


def shown(capture: pytest.CaptureFixture[str], *words: str, ends: int = 0) -> str:
    capture.readouterr()
    code = run(words)
    found = capture.readouterr()
    assert code == ends, found
    return found.out + found.err


def test_quotas_on_the_command_line(
    kafka: Cluster, admin: Wire, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTTLA_BOOTSTRAP", kafka.bootstrap_servers)

    def quotas(*words: str, ends: int = 0) -> str:
        return shown(capsys, "quotas", *words, ends=ends)

    assert quotas("set", "--user", "alice", "producer_byte_rate=1MiB", "request_percentage=2.5") == (
        "user alice: producer_byte_rate=1048576, request_percentage=2.5\n"
    )
    quotas("set", "--default-user", "--client", "app", "producer_byte_rate=1000")
    quotas("set", "--default-ip", "connection_creation_rate=1000")
    assert quotas("list").splitlines() == [
        "USER       CLIENT ID  IP         QUOTA                     VALUE",
        "<default>  app        -          producer_byte_rate        1000",
        "-          -          <default>  connection_creation_rate  1000",
        "alice      -          -          producer_byte_rate        1048576",
        "alice      -          -          request_percentage        2.5",
    ]
    applied = json.loads(quotas("show", "--user", "alice", "--client", "app", "--json"))
    assert applied[0] == {
        "quota": "producer_byte_rate",
        "value": "1048576",
        "used_now": None,
        "set_for": "user alice",
        "counted_for": "all clients of user alice",
    }
    assert applied[1]["value"] == "unlimited"
    (other,) = [
        row for row in json.loads(quotas("show", "--client", "app", "--json")) if row["quota"] == "producer_byte_rate"
    ]
    assert (other["set_for"], other["counted_for"]) == (
        "default user, client app",
        "client 'app' of user ANONYMOUS",
    )
    assert quotas("remove", "--user", "alice", "request_percentage") == "user alice: request_percentage removed\n"
    assert "no request_percentage set for user alice" in quotas(
        "remove", "--user", "alice", "request_percentage", ends=1
    )
    assert quotas("remove", "--user", "alice") == "user alice: producer_byte_rate removed\n"
    assert "whose quota?" in quotas("set", "producer_byte_rate=1", ends=2)
    assert "a number is expected" in quotas("set", "--user", "u", "producer_byte_rate=much", ends=2)
    assert "there are the quotas" in quotas("set", "--user", "u", "bytes=1", ends=2)
    assert "must be greater than 0" in quotas("set", "--user", "u", "producer_byte_rate=-1", ends=1)


def test_what_is_used_is_in_the_metrics_and_beside_what_applies(
    kafka: Cluster, admin: Wire, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import urllib.request  # noqa: PLC0415

    kafka.create_topic("seen")
    limit(admin, {"client-id": "seen"}, producer_byte_rate=10_000)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "client.id": "seen"})
    producer.produce("seen", value=bytes(120_000))
    producer.flush()
    with urllib.request.urlopen(f"{kafka.http_address(1)}/metrics") as page:
        samples = parsed(page.read().decode())
    ((_, rate),) = samples.found("kafka_server_quota_byte_rate", resource="Produce", clientId="seen", user="").items()
    assert 9_000 < rate < 13_000
    ((_, held),) = samples.found("kafka_server_quota_throttle_time", resource="Produce", clientId="seen").items()
    assert 1_500 < held < 3_000
    monkeypatch.setenv("OTTLA_BOOTSTRAP", kafka.bootstrap_servers)
    text = shown(capsys, "quotas", "show", "--client", "seen", "--metrics", kafka.http_address(1), "--json")
    assert float(json.loads(text)[0]["used_now"]) > 5_000
    assert "does not tell what is used" in shown(capsys, "quotas", "show", "--metrics", "127.0.0.1:1", ends=1)
