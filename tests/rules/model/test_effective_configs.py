"""What DescribeConfigs says: value, source, synonyms; and which changes are allowed."""

import pytest

from ottla.model import properties
from ottla.model.properties import ConfigEntry, Settings, Source, Synonym, Type

SETTINGS = Settings.defaults("data")


def topic(overrides: dict[str, str] | None = None, settings: Settings = SETTINGS) -> dict[str, ConfigEntry]:
    return {entry.name: entry for entry in properties.effective_topic_config(overrides or {}, settings)}


def broker(settings: Settings = SETTINGS) -> dict[str, ConfigEntry]:
    return {entry.name: entry for entry in properties.effective_broker_config(settings)}


def test_every_topic_config_is_listed_in_order_of_name() -> None:
    names = [entry.name for entry in properties.effective_topic_config({}, SETTINGS)]
    assert names == sorted(name for name, entry in properties.TOPIC.items() if not entry.internal)


def test_a_topic_config_left_alone_is_the_brokers_default() -> None:
    assert topic()["segment.bytes"] == ConfigEntry(
        "segment.bytes",
        "1073741824",
        Source.DEFAULT_CONFIG,
        read_only=False,
        sensitive=False,
        type=Type.INT,
        synonyms=(Synonym("log.segment.bytes", "1073741824", Source.DEFAULT_CONFIG),),
        doc=properties.TOPIC["segment.bytes"].doc,
    )
    assert topic()["segment.bytes"].is_default


def test_a_topic_override_comes_before_the_brokers_layers() -> None:
    settings = Settings.defaults("data", log_segment_bytes="3000000").with_dynamic(
        {"log.segment.bytes": "4000000"}, {"log.segment.bytes": "5000000"}
    )
    entry = topic({"segment.bytes": " 2000000"}, settings)["segment.bytes"]
    assert (entry.value, entry.source, entry.is_default) == ("2000000", Source.DYNAMIC_TOPIC_CONFIG, False)
    assert entry.synonyms == (
        Synonym("segment.bytes", "2000000", Source.DYNAMIC_TOPIC_CONFIG),
        Synonym("log.segment.bytes", "5000000", Source.DYNAMIC_BROKER_CONFIG),
        Synonym("log.segment.bytes", "4000000", Source.DYNAMIC_DEFAULT_BROKER_CONFIG),
        Synonym("log.segment.bytes", "3000000", Source.STATIC_BROKER_CONFIG),
        Synonym("log.segment.bytes", "1073741824", Source.DEFAULT_CONFIG),
    )


def test_hours_and_minutes_of_the_broker_become_milliseconds_of_the_topic() -> None:
    hours = properties.topic_values({}, Settings.defaults("d", log_retention_hours="2", log_roll_hours="3"))
    assert (hours["retention.ms"], hours["segment.ms"]) == (7_200_000, 10_800_000)
    minutes = Settings.defaults("d", log_retention_hours="2", log_retention_minutes="5")
    assert properties.topic_values({}, minutes)["retention.ms"] == 300_000
    forever = Settings.defaults("d", log_retention_minutes="-7")
    assert properties.topic_values({}, forever)["retention.ms"] == -1


def test_as_in_kafka_hours_alone_leave_the_topics_retention_without_synonyms() -> None:
    entry = topic({}, Settings.defaults("d", log_retention_hours="2"))["retention.ms"]
    assert (entry.value, entry.source, entry.synonyms) == ("7200000", Source.DEFAULT_CONFIG, ())


def test_an_internal_config_is_shown_only_when_it_is_set() -> None:
    assert "internal.segment.bytes" not in topic()
    assert topic({"internal.segment.bytes": "100"})["internal.segment.bytes"].value == "100"


def test_topic_values_are_typed() -> None:
    values = properties.topic_values({"cleanup.policy": "compact,delete", "retention.ms": "-1"}, SETTINGS)
    assert (values["cleanup.policy"], values["retention.ms"]) == (("compact", "delete"), -1)
    assert (values["preallocate"], values["min.cleanable.dirty.ratio"]) == (False, 0.5)
    assert sorted(values) == sorted(properties.TOPIC)


def test_a_broker_lists_all_its_settings_and_ottlas_own() -> None:
    shown = broker()
    expected = {name for table in (properties.BROKER, properties.OWN) for name, e in table.items() if not e.internal}
    assert set(shown) == expected
    assert (shown["node.id"].value, shown["node.id"].source) == ("1", Source.STATIC_BROKER_CONFIG)
    assert shown["node.id"].read_only and not shown["log.segment.bytes"].read_only


def test_secrets_and_unknown_names_are_described_without_their_value() -> None:
    shown = broker(Settings.defaults("d", ssl_key_password="hunter2", confluent_secret="hunter2"))
    assert "hunter2" not in repr(shown)
    assert (shown["ssl.key.password"].sensitive, shown["ssl.key.password"].value) == (True, None)
    assert (shown["confluent.secret"].sensitive, shown["confluent.secret"].type) == (True, Type.UNKNOWN)


def test_the_cluster_default_shows_only_what_was_set() -> None:
    assert properties.effective_cluster_default_config({"message.max.bytes": "5"}) == [
        ConfigEntry(
            "message.max.bytes",
            "5",
            Source.DYNAMIC_DEFAULT_BROKER_CONFIG,
            read_only=False,
            sensitive=False,
            type=Type.INT,
            synonyms=(Synonym("message.max.bytes", "5", Source.DYNAMIC_DEFAULT_BROKER_CONFIG),),
            doc=properties.BROKER["message.max.bytes"].doc,
        )
    ]


def test_a_group_config_follows_the_broker() -> None:
    settings = Settings.defaults("d", group_consumer_session_timeout_ms="50000")
    entries = {
        e.name: e for e in properties.effective_group_config({"share.isolation.level": "read_committed"}, settings)
    }
    assert entries["consumer.session.timeout.ms"].synonyms == (
        Synonym("group.consumer.session.timeout.ms", "50000", Source.STATIC_BROKER_CONFIG),
        Synonym("group.consumer.session.timeout.ms", "45000", Source.DEFAULT_CONFIG),
    )
    assert entries["share.isolation.level"].synonyms == (
        Synonym("share.isolation.level", "read_committed", Source.GROUP_CONFIG),
        Synonym("share.isolation.level", "read_uncommitted", Source.DEFAULT_CONFIG),
    )


def test_a_client_metrics_subscription_shows_what_it_sets() -> None:
    entries = properties.effective_client_metrics_config({"metrics": "*"})
    assert [(entry.name, entry.value, entry.source) for entry in entries] == [
        ("interval.ms", "300000", Source.DEFAULT_CONFIG),
        ("match", "", Source.DEFAULT_CONFIG),
        ("metrics", "*", Source.CLIENT_METRICS_CONFIG),
    ]


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        ({"retention.mss": "1"}, "retention.mss: not a topic config; did you mean retention.ms?"),
        ({"zebra": "1"}, "zebra: not a topic config"),
        ({"retention.ms": "x"}, "retention.ms: 'x' is not a whole number (long), allowed: -1 or more"),
        (
            {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"},
            "min.compaction.lag.ms: 5 is not allowed: up to max.compaction.lag.ms, which is 4",
        ),
        (
            {"remote.storage.enable": "true"},
            "remote.storage.enable: tiered storage is off here (remote.log.storage.system.enable=false)",
        ),
    ],
)
def test_topic_changes_that_make_no_sense_are_refused(overrides: dict[str, str], problem: str) -> None:
    with pytest.raises(ValueError) as caught:
        properties.check_topic_config(overrides, SETTINGS)
    assert str(caught.value) == problem


TIERED = Settings.defaults("d", remote_log_storage_system_enable="true")


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        ({"cleanup.policy": "compact"}, "remote.storage.enable: a tiered topic cannot be compacted"),
        ({"local.retention.ms": "-1"}, "local.retention.ms: -1 is not allowed"),
        ({"retention.bytes": "10", "local.retention.bytes": "11"}, "local.retention.bytes: 11 is not allowed"),
        (
            {"remote.log.copy.disable": "true", "local.retention.ms": "5"},
            "local.retention.ms: 5 has to equal retention.ms",
        ),
    ],
)
def test_tiered_topics_have_rules_of_their_own(overrides: dict[str, str], problem: str) -> None:
    properties.check_topic_config({"remote.storage.enable": "true"}, TIERED)
    with pytest.raises(ValueError, match=f"^{problem}"):
        properties.check_topic_config({"remote.storage.enable": "true", **overrides}, TIERED)


def test_kip_950_tiering_is_not_switched_off_without_a_word_about_the_remote_data() -> None:
    existing = {"remote.storage.enable": "true"}
    with pytest.raises(ValueError, match=r"^remote.storage.enable: switching it off deletes remote data"):
        properties.check_topic_config({}, TIERED, existing)
    properties.check_topic_config({"remote.log.delete.on.disable": "true"}, TIERED, existing)


@pytest.mark.parametrize(
    ("configs", "per_broker", "problem"),
    [
        ({"node.id": "2"}, True, "node.id: read-only"),
        ({"log.cleaner.threads": "x"}, False, "log.cleaner.threads: 'x' is not a whole number"),
        ({"log.cleaner.threads": "0"}, False, "log.cleaner.threads: 0 is not allowed"),
        ({"cordoned.log.dirs": "data"}, False, "cordoned.log.dirs: can be changed per broker only"),
        ({"ssl.keystore.location": "/k"}, True, "ssl.keystore.location: can be changed per listener only"),
        (
            {"listener.name.plaintext.ssl.keystore.location": "/k"},
            False,
            "listener.name.plaintext.ssl.keystore.location: can",
        ),
        ({"log.roll.ms": "0"}, True, "log.roll.ms: 0 is not allowed"),
        (
            {"group.share.assignment.interval.ms": "1000000"},
            False,
            "group.share.assignment.interval.ms: 1000000 is not allowed: from",
        ),
        ({"listeners": "WHAT://a:1"}, True, "listeners: 'WHAT://a:1' does not fit"),
    ],
)
def test_kip_226_broker_changes_that_cannot_be_made_are_refused(
    configs: dict[str, str], per_broker: bool, problem: str
) -> None:
    with pytest.raises(ValueError) as caught:
        properties.check_broker_config(configs, SETTINGS, per_broker=per_broker)
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    ("configs", "per_broker"),
    [
        ({"log.cleaner.threads": "2", "leader.replication.throttled.rate": "100"}, False),
        ({"listener.name.plaintext.ssl.keystore.location": "/k", "cordoned.log.dirs": "data"}, True),
        ({"listener.name.plaintext.max.connections": "5"}, False),
        ({"some.plugin.setting": "1"}, False),
    ],
)
def test_kip_226_other_broker_changes_are_allowed(configs: dict[str, str], per_broker: bool) -> None:
    properties.check_broker_config(configs, SETTINGS, per_broker=per_broker)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"num.io.threads": "17"}, "num.io.threads: 17 is not allowed: from half to double of what it is now, 8"),
        ({"num.io.threads": "3"}, "num.io.threads: 3 is not allowed"),
        ({"log.cleaner.threads": "3"}, "log.cleaner.threads: 3 is not allowed"),
        ({"log.local.retention.ms": "-1"}, "log.local.retention.ms: -1 is not allowed: -2, or from 0 to"),
        ({"log.local.retention.ms": "604800001"}, "log.local.retention.ms: 604800001 is not allowed"),
        ({"log.local.retention.ms": "50", "log.retention.ms": "49"}, "log.local.retention.ms: 50 is not allowed"),
        ({"log.retention.bytes": "9", "log.local.retention.bytes": "10"}, "log.local.retention.bytes: 10 is not"),
    ],
)
@pytest.mark.parametrize("per_broker", [False, True])
def test_kip_226_a_running_broker_changes_in_steps(changes: dict[str, str], problem: str, per_broker: bool) -> None:
    with pytest.raises(ValueError) as caught:
        properties.check_running_broker(changes, SETTINGS, per_broker=per_broker)
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    "changes",
    [
        {"num.io.threads": "4"},
        {"num.io.threads": "16"},
        {"num.io.threads": "many"},
        {"log.local.retention.ms": "-2"},
        {"log.local.retention.ms": "604800000"},
        {"log.local.retention.ms": "-1", "log.retention.ms": "-1"},
        {"log.local.retention.bytes": "5"},
    ],
)
def test_kip_226_small_steps_and_what_cannot_be_read_pass_here(changes: dict[str, str]) -> None:
    properties.check_running_broker(changes, SETTINGS, per_broker=True)


def test_kip_226_a_step_is_measured_from_the_value_in_force() -> None:
    doubled = SETTINGS.with_dynamic({"num.io.threads": "16"})
    properties.check_running_broker({"num.io.threads": "32"}, doubled, per_broker=False)
    with pytest.raises(ValueError, match="of what it is now, 16"):
        properties.check_running_broker({"num.io.threads": "7"}, doubled, per_broker=False)


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        ({"session.timeout.ms": "1"}, "session.timeout.ms: not a group config"),
        (
            {"consumer.session.timeout.ms": "1"},
            "consumer.session.timeout.ms: 1 is not allowed: from group.consumer.min.",
        ),
        ({"share.delivery.count.limit": "11"}, "share.delivery.count.limit: 11 is not allowed: from"),
        ({"streams.num.standby.replicas": "3"}, "streams.num.standby.replicas: 3 is not allowed: up to"),
        ({"consumer.assignment.interval.ms": "15001"}, "consumer.assignment.interval.ms: 15001 is not allowed"),
    ],
)
def test_group_changes_outside_the_brokers_bounds_are_refused(overrides: dict[str, str], problem: str) -> None:
    with pytest.raises(ValueError) as caught:
        properties.check_group_config(overrides, SETTINGS)
    assert str(caught.value).startswith(problem)


def test_group_changes_inside_the_bounds_are_allowed() -> None:
    properties.check_group_config(
        {"consumer.session.timeout.ms": "50000", "streams.num.standby.replicas": "2"}, SETTINGS
    )


@pytest.mark.parametrize(
    "configs",
    [
        {"interval.ms": "99"},
        {"interval.ms": "3600001"},
        {"match": "who=me"},
        {"match": "client_id"},
        {"match": "client_id=["},
        {"x": "1"},
    ],
)
def test_kip_714_bad_subscriptions_are_refused(configs: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        properties.check_client_metrics_config(configs)


def test_kip_714_good_subscriptions_are_allowed() -> None:
    properties.check_client_metrics_config(
        {"interval.ms": "100", "match": "client_id=a.*,client_source_port=1", "metrics": "*"}
    )


def test_sources_have_the_numbers_of_the_wire() -> None:
    assert [(source.name, int(source)) for source in Source] == [
        ("UNKNOWN", 0),
        ("DYNAMIC_TOPIC_CONFIG", 1),
        ("DYNAMIC_BROKER_CONFIG", 2),
        ("DYNAMIC_DEFAULT_BROKER_CONFIG", 3),
        ("STATIC_BROKER_CONFIG", 4),
        ("DEFAULT_CONFIG", 5),
        ("DYNAMIC_BROKER_LOGGER_CONFIG", 6),
        ("CLIENT_METRICS_CONFIG", 7),
        ("GROUP_CONFIG", 8),
    ]
