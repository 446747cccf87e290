"""One setting: what parse accepts, what it refuses and with which words, how values are printed."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model import properties
from ottla.model.properties import Importance, Property, Type
from ottla.model.properties.property import java_double

TABLES = (
    properties.BROKER,
    properties.DYNAMIC_ONLY,
    properties.OWN,
    properties.TOPIC,
    properties.GROUP,
    properties.CLIENT_METRICS,
    properties.AUTHORIZER,
)
ALL = [entry for table in TABLES for entry in table.values()]


def refusal(entry: Property, text: str) -> str:
    with pytest.raises(ValueError) as caught:
        entry.parse(text)
    return str(caught.value)


def test_a_refusal_names_the_setting_the_value_and_what_is_allowed() -> None:
    retention = properties.TOPIC["retention.ms"]
    assert refusal(retention, "abc") == "retention.ms: 'abc' is not a whole number (long), allowed: -1 or more"
    assert refusal(retention, "-2") == "retention.ms: '-2' is not allowed: allowed is -1 or more"
    assert refusal(properties.TOPIC["cleanup.policy"], "compact,purge") == (
        "cleanup.policy: 'compact,purge' is not allowed: 'purge' is none of compact, delete"
    )
    assert (
        refusal(properties.TOPIC["preallocate"], "yes") == "preallocate: 'yes' is not a boolean, allowed: true or false"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("node.id", "2147483648"),
        ("node.id", "1_000"),
        ("node.id", "1.0"),
        ("node.id", ""),
        ("node.id", "٣"),
        ("node.id", "9" * 5000),
        ("offsets.topic.replication.factor", "32768"),
        ("offsets.topic.replication.factor", "0"),
        ("log.retention.ms", "9223372036854775808"),
        ("log.cleaner.min.cleanable.ratio", "1.1"),
        ("log.cleaner.min.cleanable.ratio", "nan"),
        ("log.cleaner.min.cleanable.ratio", "0_1"),
        ("compression.gzip.level", "0"),
        ("compression.gzip.level", "10"),
        ("listeners", ""),
        ("log.dirs", "/a,,/b"),
        ("controller.quorum.voters", "localhost:9093"),
        ("controller.quorum.voters", "1@localhost"),
        ("controller.quorum.bootstrap.servers", "localhost"),
        ("group.consumer.migration.policy", "sideways"),
        ("remote.log.storage.manager.impl.prefix", ""),
    ],
)
def test_values_kafka_refuses_are_refused(name: str, text: str) -> None:
    assert refusal(properties.BROKER[name], text).startswith(f"{name}: ")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("node.id", " +007\t", 7),
        ("log.retention.ms", "-9223372036854775808", -(1 << 63)),
        ("auto.create.topics.enable", " TRUE ", True),
        ("log.dirs", "/a , /b", ("/a", "/b")),
        ("log.dirs", "/a,/b, /a", ("/a", "/b")),
        ("log.cleanup.policy", "delete,delete", ("delete",)),
        ("controller.quorum.voters", "1@a:1,1@a:1", ("1@a:1", "1@a:1")),
        ("metric.reporters", "", ()),
        ("log.cleaner.min.cleanable.ratio", ".5d", 0.5),
        ("compression.gzip.level", "-1", -1),
        ("group.consumer.migration.policy", "Upgrade", "Upgrade"),
        ("controller.quorum.voters", "1@[::1]:9093,2@host:9093", ("1@[::1]:9093", "2@host:9093")),
        ("ssl.key.password", " secret ", "secret"),
        ("broker.rack", "", ""),
    ],
)
def test_values_are_read_as_kafka_reads_them(name: str, text: str, value: properties.Value) -> None:
    assert properties.BROKER[name].parse(text) == value


@pytest.mark.parametrize("text", ["*", "0:1,1:2", "", "0:1,0:1"])
def test_throttled_replicas_are_a_star_or_pairs(text: str) -> None:
    properties.TOPIC["leader.replication.throttled.replicas"].parse(text)


@pytest.mark.parametrize("text", ["all", "0", "0:1,*", "0:-1"])
def test_other_throttled_replicas_are_refused(text: str) -> None:
    refusal(properties.TOPIC["leader.replication.throttled.replicas"], text)


@pytest.mark.parametrize("text", ["latest", "earliest", "by_duration:PT1H", "by_duration:P2DT3.5S"])
def test_kip_932_a_share_group_starts_at_an_end_or_a_duration_back(text: str) -> None:
    assert properties.GROUP["share.auto.offset.reset"].parse(text) == text


@pytest.mark.parametrize(
    "text", ["none", "by_duration:-PT1H", "by_duration:P", "by_duration:PT", "by_duration:1h", "earliest:"]
)
def test_other_starts_of_a_share_group_are_refused(text: str) -> None:
    refusal(properties.GROUP["share.auto.offset.reset"], text)


def test_a_password_is_never_shown() -> None:
    secret = properties.BROKER["ssl.key.password"]
    assert (secret.sensitive, secret.render("hunter2"), secret.render(None)) == (True, "[hidden]", None)


def test_every_default_is_allowed_and_survives_printing() -> None:
    for entry in ALL:
        if entry.default is None or isinstance(entry.default, properties.Required):
            continue
        text = entry.render(entry.default)
        assert text is not None and entry.parse(text) == entry.default, entry


def test_every_setting_says_in_one_sentence_what_it_is_for() -> None:
    assert [entry.name for entry in ALL if not entry.doc.endswith(".") or not 15 < len(entry.doc) < 200] == []


def test_every_synonym_is_a_broker_setting() -> None:
    assert [name for entry in ALL for name in entry.synonyms if name not in properties.BROKER] == []


def test_a_default_that_is_not_kafkas_says_why() -> None:
    ours = {entry.name: (entry.default, entry.kafka_default) for entry in ALL if entry.differs}
    unlimited = (1 << 31) - 1
    assert ours == {
        "socket.request.max.bytes": (16 << 20, 100 << 20),
        "queued.max.request.bytes": (64 << 20, -1),
        "max.connections": (4096, unlimited),
        "max.connections.per.ip": (1024, unlimited),
    }


def test_types_have_the_numbers_of_describe_configs() -> None:
    assert {kind.name: int(kind) for kind in Type} == {
        "UNKNOWN": 0,
        "BOOLEAN": 1,
        "STRING": 2,
        "INT": 3,
        "SHORT": 4,
        "LONG": 5,
        "DOUBLE": 6,
        "LIST": 7,
        "CLASS": 8,
        "PASSWORD": 9,
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (0.0, "0.0"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (12345678.9, "1.23456789E7"),
        (1e-3, "0.001"),
        (9.5e-4, "9.5E-4"),
        (-2.5e-10, "-2.5E-10"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (1e16, "1.0E16"),
        (1.2e22, "1.2E22"),
        (math.inf, "Infinity"),
    ],
)
def test_doubles_are_printed_as_java_prints_them(value: float, text: str) -> None:
    assert java_double(value) == text


@given(st.floats(allow_nan=False))
def test_a_printed_double_reads_back_as_itself(value: float) -> None:
    assert float(java_double(value).replace("Infinity", "inf")) == value


@given(st.text())
def test_any_text_is_read_or_refused_with_the_settings_name(text: str) -> None:
    for entry in (
        properties.BROKER["node.id"],
        properties.TOPIC["min.cleanable.dirty.ratio"],
        properties.BROKER["log.dirs"],
    ):
        try:
            value = entry.parse(text)
        except ValueError as error:
            assert str(error).startswith(f"{entry.name}: ")
        else:
            assert entry.parse(entry.render(value) or "") == value


def test_importance_has_kafkas_three_levels() -> None:
    assert [level.name for level in Importance] == ["HIGH", "MEDIUM", "LOW"]
