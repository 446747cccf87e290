"""A node's configuration: Kafka's files are taken as they are, mistakes are refused with what to do."""

import re

import pytest

from ottla.model.properties import HostPort, Listener, Settings, SettingsError, Voter

COMBINED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
}
BROKER_ONLY = {
    "process.roles": "broker",
    "node.id": "2",
    "listeners": "PLAINTEXT://localhost:9092",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
}
CONTROLLER_ONLY = {
    "process.roles": "controller",
    "node.id": "1",
    "listeners": "CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
}

# The settings of the sample file that comes with Apache Kafka 4.
SAMPLE = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
#log.flush.interval.messages=10000
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def refused(given: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as caught:
        Settings.from_properties(given)
    return str(caught.value)


def test_kafkas_sample_file_is_accepted() -> None:
    settings = Settings.from_properties(SAMPLE)
    assert settings.warnings == ()
    assert (settings.node_id, settings.is_broker, settings.is_controller) == (1, True, True)
    assert settings.listeners == (
        Listener("PLAINTEXT", "PLAINTEXT", "", 9092),
        Listener("CONTROLLER", "PLAINTEXT", "", 9093),
    )
    assert settings.advertised_listeners == (Listener("PLAINTEXT", "PLAINTEXT", "localhost", 9092),)
    assert settings.advertised_controller_listeners == (Listener("CONTROLLER", "PLAINTEXT", "localhost", 9093),)
    assert settings.bootstrap_controllers == (HostPort("localhost", 9093),)
    assert (settings.log_dirs, settings.metadata_log_dir) == (("/tmp/kraft-combined-logs",), "/tmp/kraft-combined-logs")
    assert settings.get_int("queued.max.request.bytes") == 100 << 20


def test_no_file_means_one_node_that_does_everything_on_loopback() -> None:
    settings = Settings.defaults("data")
    assert settings.listeners == (
        Listener("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092),
        Listener("CONTROLLER", "PLAINTEXT", "127.0.0.1", 9093),
    )
    assert settings.voters == (Voter(1, "127.0.0.1", 9093),)
    assert settings.log_dirs == ("data",)
    assert [settings[name] for name in ("offsets.topic.replication.factor", "transaction.state.log.min.isr")] == [1, 1]
    assert Settings.defaults("data", num_partitions="6").get_int("num.partitions") == 6


def test_values_are_typed_and_defaults_fill_the_rest() -> None:
    settings = Settings.from_properties({**COMBINED, "log.segment.bytes": " 2097152 ", "broker.rack": "r1"})
    assert settings["log.segment.bytes"] == settings.get_int("log.segment.bytes") == 2097152
    assert settings.get_bool("auto.create.topics.enable") is True
    assert settings.get_float("log.cleaner.min.cleanable.ratio") == 0.5
    assert settings.get_list("process.roles") == ("broker", "controller")
    assert (settings.find_str("broker.rack"), settings.find_int("log.retention.ms")) == ("r1", None)
    with pytest.raises(TypeError, match="log.retention.ms"):
        settings.get_int("log.retention.ms")
    with pytest.raises(KeyError):
        settings["no.such.name"]


def test_a_misspelt_name_is_refused_with_what_was_meant() -> None:
    assert refused({**COMBINED, "log.retention.hour": "5"}) == (
        "log.retention.hour: not a known setting; did you mean log.retention.hours?"
    )


def test_a_wholly_unknown_name_is_refused() -> None:
    assert refused({**COMBINED, "zebra": "5"}).startswith("zebra: not a known setting; ")


def test_all_problems_are_told_at_once() -> None:
    given = {**COMBINED, "num.partitions": "none", "log.segment.bytes": "1"}
    del given["node.id"]
    lines = refused(given).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["num.partitions", "log.segment.bytes", "node.id"]


@pytest.mark.parametrize(
    "name",
    [
        "listener.name.plaintext.max.connections",
        "listener.name.internal.scram-sha-256.sasl.jaas.config",
        "config.providers.file.param.allowed.paths",
        "rsm.config.bucket",
        "rlmm.config.remote.log.metadata.topic.replication.factor",
        "metrics.jmx.include",
        "confluent.license.topic.replication.factor",
        "super.users",
    ],
)
def test_names_that_kafka_passes_on_are_kept_without_a_warning(name: str) -> None:
    settings = Settings.from_properties({**COMBINED, name: "1"})
    assert (settings.given[name], settings.warnings) == ("1", ())


def test_a_foreign_plugin_may_have_names_of_its_own() -> None:
    given = {**COMBINED, "metric.reporters": "com.example.Reporter", "example.host": "h"}
    assert Settings.from_properties(given).warnings == (
        "example.host: unknown here, kept for the plugin classes this file names",
    )


def test_settings_of_earlier_releases_are_ignored_with_a_warning() -> None:
    given = {**COMBINED, "zookeeper.connect": "z:2181", "inter.broker.protocol.version": "3.9"}
    assert Settings.from_properties(given).warnings == (
        "zookeeper.connect: a setting of earlier Kafka releases, ignored",
        "inter.broker.protocol.version: a setting of earlier Kafka releases, ignored",
    )


def test_a_bad_value_of_a_listener_is_refused_as_the_plain_one_is() -> None:
    assert refused({**COMBINED, "listener.name.plaintext.ssl.client.auth": "maybe"}) == (
        "listener.name.plaintext.ssl.client.auth: ssl.client.auth: 'maybe' is not allowed: allowed is one of required, "
        "requested, none"
    )


def test_a_listener_prefix_wins_on_its_listener() -> None:
    settings = Settings.from_properties({**COMBINED, "listener.name.plaintext.max.connections": "7"})
    assert settings.for_listener("PLAINTEXT", "max.connections") == 7
    assert settings.for_listener("CONTROLLER", "max.connections") == 4096


def test_the_old_name_of_the_node_id_is_enough() -> None:
    given = {name: value for name, value in COMBINED.items() if name != "node.id"}
    assert Settings.from_properties({**given, "broker.id": "1"}).node_id == 1


def test_an_advertised_address_may_differ_from_the_listener() -> None:
    settings = Settings.from_properties({**COMBINED, "advertised.listeners": "PLAINTEXT://broker.example:19092"})
    assert settings.advertised_listeners == (Listener("PLAINTEXT", "PLAINTEXT", "broker.example", 19092),)
    assert settings.inter_broker_listener == "PLAINTEXT"


def test_a_controller_on_every_interface_is_advertised_by_its_voter_address() -> None:
    given = {**COMBINED, "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://0.0.0.0:9093"}
    assert Settings.from_properties(given).advertised_controller_listeners == (
        Listener("CONTROLLER", "PLAINTEXT", "localhost", 9093),
    )


def test_ipv6_listeners_are_read_in_brackets() -> None:
    settings = Settings.from_properties(
        {
            **COMBINED,
            "listeners": "PLAINTEXT://[::1]:9092,INNER://127.0.0.1:9092,CONTROLLER://localhost:9093",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INNER:SSL,CONTROLLER:PLAINTEXT",
        }
    )
    assert settings.broker_listeners == (
        Listener("PLAINTEXT", "PLAINTEXT", "::1", 9092),
        Listener("INNER", "SSL", "127.0.0.1", 9092),
    )
    assert str(settings.listeners[0]) == "PLAINTEXT://[::1]:9092"


def test_log_dirs_win_over_log_dir() -> None:
    assert Settings.from_properties({**COMBINED, "log.dir": "/a"}).log_dirs == ("/a",)
    assert Settings.from_properties({**COMBINED, "log.dir": "/a", "log.dirs": "/b,/c"}).log_dirs == ("/b", "/c")
    both = Settings.from_properties({**COMBINED, "log.dirs": "/b,/c", "metadata.log.dir": "/m"})
    assert both.metadata_log_dir == "/m"


@pytest.mark.parametrize("given", [BROKER_ONLY, CONTROLLER_ONLY, COMBINED], ids=["broker", "controller", "combined"])
def test_each_role_has_a_smallest_file(given: dict[str, str]) -> None:
    settings = Settings.from_properties(given)
    assert (settings.is_broker, settings.is_controller) == (
        "broker" in given["process.roles"],
        given is not BROKER_ONLY,
    )


BROKEN: list[tuple[dict[str, str], dict[str, str], str]] = [
    (COMBINED, {"broker.id": "2"}, "broker.id: 2 differs from node.id 1"),
    (COMBINED, {"controller.quorum.voters": ""}, "controller.quorum.voters: neither it nor"),
    (
        COMBINED,
        {"controller.quorum.voters": "2@localhost:9093"},
        "controller.quorum.voters: node.id 1 has the controller role",
    ),
    (BROKER_ONLY, {"node.id": "1"}, "controller.quorum.voters: node.id 1 is only a broker"),
    (COMBINED, {"controller.quorum.voters": "1@0.0.0.0:9093"}, "controller.quorum.voters: 0.0.0.0"),
    (
        COMBINED,
        {"listeners": "PLAINTEXT://localhost:9092"},
        "controller.listener.names: CONTROLLER is not among the listeners",
    ),
    (
        COMBINED,
        {"listeners": "PLAINTEXT://a:1,PLAINTEXT://b:2,CONTROLLER://c:3"},
        "listeners: two listeners have the same name",
    ),
    (COMBINED, {"listeners": "PLAINTEXT://a:9093,CONTROLLER://a:9093"}, "listeners: port 9093 is used twice"),
    (COMBINED, {"listeners": "nonsense,CONTROLLER://a:9093"}, "listeners: 'nonsense' is not a listener"),
    (
        COMBINED,
        {"listeners": "PLAINTEXT://a:99999,CONTROLLER://a:9093"},
        "listeners: 'PLAINTEXT://a:99999' is not a listener",
    ),
    (
        COMBINED,
        {"listeners": "OTHER://a:9092,CONTROLLER://a:9093"},
        "listeners: no security protocol is known for the listener OTHER",
    ),
    (
        COMBINED,
        {"listener.security.protocol.map": "PLAINTEXT:PLAIN"},
        "listener.security.protocol.map: 'PLAIN' of PLAINTEXT",
    ),
    (COMBINED, {"listeners": "CONTROLLER://localhost:9093"}, "listeners: none is left for clients"),
    (COMBINED, {"advertised.listeners": "SSL://a:9092"}, "advertised.listeners: SSL is not among the listeners"),
    (
        COMBINED,
        {"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"},
        "advertised.listeners: PLAINTEXT://0.0.0.0:9092 cannot be reached",
    ),
    (
        COMBINED,
        {"listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://a:9093"},
        "advertised.listeners: PLAINTEXT://0.0.0.0:9092",
    ),
    (COMBINED, {"advertised.listeners": "what"}, "advertised.listeners: 'what' is not a listener"),
    (COMBINED, {"inter.broker.listener.name": "SSL"}, "inter.broker.listener.name: SSL is not advertised"),
    (
        COMBINED,
        {"inter.broker.listener.name": "NONE"},
        "inter.broker.listener.name: NONE is not in listener.security.protocol.map",
    ),
    (
        COMBINED,
        {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
        "inter.broker.listener.name: give it or security.inter.broker.protocol",
    ),
    (
        BROKER_ONLY,
        {"listeners": "PLAINTEXT://a:1,CONTROLLER://a:2"},
        "listeners: CONTROLLER://a:2 belongs to controllers",
    ),
    (BROKER_ONLY, {"controller.quorum.auto.join.enable": "true"}, "controller.quorum.auto.join.enable: only a node"),
    (
        BROKER_ONLY,
        {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"},
        "controller.listener.names: CONTROLLER has no entry in listener.security.protocol.map",
    ),
    (
        CONTROLLER_ONLY,
        {"listeners": "PLAINTEXT://a:1,CONTROLLER://a:2"},
        "listeners: PLAINTEXT://a:1 is not in controller.listener",
    ),
    (COMBINED, {"early.start.listeners": "LATE"}, "early.start.listeners: LATE is not among"),
    (COMBINED, {"cordoned.log.dirs": "/elsewhere"}, "cordoned.log.dirs: /elsewhere is not among log.dirs"),
    (COMBINED, {"cordoned.log.dirs": "*,/a"}, "cordoned.log.dirs: * means all"),
    (COMBINED, {"log.retention.ms": "0"}, "log.retention.ms: 0 is not allowed"),
    (COMBINED, {"log.retention.hours": "0"}, "log.retention.hours: 0 is not allowed"),
    (COMBINED, {"log.roll.ms": "0"}, "log.roll.ms: 0 is not allowed: 1 or more"),
    (COMBINED, {"log.cleaner.threads": "128"}, "log.cleaner.dedupe.buffer.size: 134217728 is not allowed"),
    (COMBINED, {"replica.fetch.wait.max.ms": "40000"}, "replica.socket.timeout.ms: 30000 is not allowed"),
    (COMBINED, {"queued.max.request.bytes": "1000"}, "queued.max.request.bytes: 1000 is not allowed"),
    (COMBINED, {"max.connections.per.ip": "0"}, "max.connections.per.ip: 0 is allowed only"),
    (COMBINED, {"max.connections.per.ip.overrides": "host"}, "max.connections.per.ip.overrides: 'host' is not a pair"),
    (
        COMBINED,
        {"connection.failed.authentication.delay.ms": "600000"},
        "connection.failed.authentication.delay.ms: 600000",
    ),
    (COMBINED, {"group.coordinator.rebalance.protocols": "consumer"}, "group.coordinator.rebalance.protocols: classic"),
    (COMBINED, {"group.consumer.session.timeout.ms": "1"}, "group.consumer.session.timeout.ms: 1 is not allowed: from"),
    (COMBINED, {"group.share.max.share.sessions": "1"}, "group.share.max.share.sessions: 1 is not allowed"),
    (
        COMBINED,
        {
            "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "inter.broker.listener.name": "PLAINTEXT",
        },
        "sasl.mechanism.inter.broker.protocol: GSSAPI is not in sasl.enabled.mechanisms",
    ),
]


@pytest.mark.parametrize(("base", "change", "problem"), BROKEN, ids=[problem[:60] for _, _, problem in BROKEN])
def test_settings_that_contradict_each_other_are_refused(
    base: dict[str, str], change: dict[str, str], problem: str
) -> None:
    assert any(line.startswith(problem) for line in refused({**base, **change}).splitlines())


def test_a_frame_too_small_for_a_batch_is_warned_about() -> None:
    settings = Settings.from_properties({**COMBINED, "message.max.bytes": "20000000"})
    assert settings.warnings == (
        "message.max.bytes: batches of 20000000 bytes do not fit into socket.request.max.bytes (16777216)",
    )


def test_secrets_do_not_show_in_the_representation() -> None:
    assert "hunter2" not in repr(Settings.from_properties({**COMBINED, "ssl.key.password": "hunter2"}))


def test_config_providers_are_looked_up_by_the_edge() -> None:
    given = {**COMBINED, "config.providers": "env", "broker.rack": "${env:RACK}", "log.dir": "/d/${file:/p:k}"}
    settings = Settings.from_properties(given, lambda provider, path, key: f"<{provider}|{path}|{key}>")
    assert (settings["broker.rack"], settings["log.dir"]) == ("<env||RACK>", ("/d/${file:/p:k}",))
    assert re.match(r"config.providers: \$\{env:RACK\} cannot be looked up", refused(given))


def test_without_providers_a_dollar_is_a_dollar() -> None:
    assert Settings.from_properties({**COMBINED, "broker.rack": "${env:RACK}"})["broker.rack"] == "${env:RACK}"


def test_kip_226_a_brokers_dynamic_config_wins_over_the_clusters_and_both_over_the_file() -> None:
    settings = Settings.from_properties({**COMBINED, "log.cleaner.threads": "1", "message.max.bytes": "1000"})
    changed = settings.with_dynamic(
        {"log.cleaner.threads": "2", "message.max.bytes": "2000"}, {"log.cleaner.threads": "3"}
    )
    assert (changed["log.cleaner.threads"], changed["message.max.bytes"]) == (3, 2000)
    assert (changed.with_dynamic()["log.cleaner.threads"], settings["message.max.bytes"]) == (1, 1000)


def test_dynamic_configs_that_cannot_be_applied_are_left_out() -> None:
    settings = Settings.from_properties(COMBINED)
    changed = settings.with_dynamic(
        {"node.id": "9", "message.max.bytes": "abc", "listeners": "PLAINTEXT://x:1"}, {"listeners": "WHAT://x:1"}
    )
    assert (changed.dynamic_default, changed.dynamic_broker) == ({}, {})
    assert changed.listeners == settings.listeners


def test_a_dynamic_time_silences_the_coarser_ones_of_the_file() -> None:
    changed = Settings.from_properties({**COMBINED, "log.retention.hours": "24"}).with_dynamic(
        {"log.retention.ms": "5"}
    )
    assert (changed["log.retention.ms"], changed["log.retention.hours"]) == (5, 168)


def test_dynamic_assignment_intervals_are_brought_into_their_bounds() -> None:
    changed = Settings.from_properties(COMBINED).with_dynamic({"group.consumer.assignment.interval.ms": "99999"})
    assert changed["group.consumer.assignment.interval.ms"] == 15000
