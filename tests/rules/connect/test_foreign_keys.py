"""Keys of others' connectors that ours do not have: refused where they would change what is written, told otherwise."""

import pytest

from ottla.connect.connectors.postgresql.config import PostgresConfig
from ottla.connect.providers import Providers
from ottla.connect.spi import ConfigRefused, parse
from ottla.connect.validation import Judge, Verdict

CDC = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "database.dbname": "shop",
    "topic.prefix": "shop",
}
SOURCE = {"connector.class": "JdbcSourceConnector", "connection.url": "jdbc:sqlite:/none", "topic.prefix": "a-"}
SINK = {"connector.class": "JdbcSinkConnector", "connection.url": "jdbc:sqlite:/none", "topics": "t"}
MIRROR = {
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "a",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
}


def judged(config: dict[str, str]) -> Verdict:
    return Judge({}, Providers({})).judge({"name": "a", **config})


def blamed(verdict: Verdict) -> dict[str, tuple[str, ...]]:
    return {value.name: value.errors for _, value in verdict.configs if value.errors}


@pytest.mark.parametrize(
    ("config", "key", "value", "reason"),
    [
        (CDC, "column.mask.with.4.chars", "public.orders.card", "columns are published as they are"),
        (CDC, "column.mask.hash.v2.SHA-256.with.salt.x", "public.orders.card", "columns are published as they are"),
        (CDC, "column.truncate.to.4.chars", "public.orders.card", "columns are published as they are"),
        (CDC, "snapshot.select.statement.overrides.public.orders", "SELECT 1", "tables are read whole"),
        (CDC, "skip.messages.without.change", "true", "a change of other columns is told too"),
        (CDC, "schema.name.adjustment.mode", "avro", "schemas are called as tables are"),
        (CDC, "topic.delimiter", "_", "is always a dot"),
        (SOURCE, "db.timezone", "Europe/Amsterdam", "times without a zone are UTC"),
        (SOURCE, "timestamp.initial", "-1", "the first read is from the beginning"),
        (SINK, "db.timezone", "Europe/Amsterdam", "times without a zone are UTC"),
        (SINK, "table.naming.strategy", "own.Strategy", "is Java code"),
        (MIRROR, "topic.filter.class", "own.Filter", "topics and topics.exclude say which"),
    ],
)
def test_what_would_change_the_data_is_refused_with_the_reason(
    config: dict[str, str], key: str, value: str, reason: str
) -> None:
    found = blamed(judged({**config, key: value}))
    assert list(found) == [key]
    assert reason in found[key][0]


@pytest.mark.parametrize(
    ("config", "key", "value"),
    [
        (CDC, "skip.messages.without.change", "false"),
        (CDC, "schema.name.adjustment.mode", "none"),
        (CDC, "topic.naming.strategy", "io.debezium.schema.SchemaTopicNamingStrategy"),
        (SOURCE, "db.timezone", "UTC"),
        (MIRROR, "topic.filter.class", "org.apache.kafka.connect.mirror.DefaultTopicFilter"),
    ],
)
def test_what_asks_for_what_is_done_anyway_is_taken(config: dict[str, str], key: str, value: str) -> None:
    assert blamed(judged({**config, key: value})) == {}


def test_a_connector_without_a_worker_refuses_them_too() -> None:
    with pytest.raises(ConfigRefused, match=r"column.mask.with.4.chars: is not there, and columns are published"):
        parse(PostgresConfig, {**CDC, "column.mask.with.4.chars": "public.orders.card"})


def test_keys_that_nobody_looks_at_are_told() -> None:
    given = {
        **SINK,
        "max.retries": "3",
        "retry.backoff.ms": "100",
        "value.converter.schemas.enable": "false",
        "consumer.override.max.poll.records": "10",
        "errors.tolerance": "all",
        "transforms": "a",
        "transforms.a.type": "HoistField$Value",
        "transforms.a.field": "b",
    }
    assert judged(given).unheeded == ("max.retries", "retry.backoff.ms")
    assert judged({**CDC, "snapshot.isolation.mode": "serializable"}).unheeded == ("snapshot.isolation.mode",)
    assert judged({**MIRROR, "source.consumer.fetch.max.bytes": "1"}).unheeded == ()
