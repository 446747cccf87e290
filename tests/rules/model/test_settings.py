"""A node's configuration: Kafka's files are taken as they are, mistakes are refused with what to do."""

import re

import pytest

from ottla.metadata.scram import ScramKeys
from ottla.model.properties import HostPort, Listener, Settings, SettingsError, Voter
from ottla.model.properties.jaas import parse_jaas
from ottla.model.properties.sasl import OwnLogin
from tests.rules.model.node_files import (
    BROKEN,
    BROKER_ONLY,
    COMBINED,
    CONTROLLER_ONLY,
    REFUSED_LATER_BY_KAFKA,
    SAMPLE,
)


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
    elsewhere = Settings.defaults("data", node_id="7", listeners="PLAINTEXT://[::1]:1,CONTROLLER://[::1]:2")
    assert elsewhere.voters == (Voter(7, "::1", 2),)
    assert Settings.defaults("data", num_partitions="6").get_int("num.partitions") == 6


def test_values_are_typed_and_defaults_fill_the_rest() -> None:
    settings = Settings.from_properties({**COMBINED, "log.segment.bytes": " 2097152 ", "broker.rack": "r1"})
    assert settings["log.segment.bytes"] == settings.get_int("log.segment.bytes") == 2097152
    assert settings.get_bool("auto.create.topics.enable") is True
    assert settings.get_float("log.cleaner.min.cleanable.ratio") == 0.5
    assert settings.get_list("process.roles") == ("broker", "controller")
    assert (settings.find_str("broker.rack"), settings.find_int("log.retention.ms")) == ("r1", None)
    with pytest.raises(TypeError, match=r"log\.retention\.ms"):
        settings.get_int("log.retention.ms")
    with pytest.raises(KeyError):
        settings["no.such.name"]


def test_a_misspelt_name_is_refused_with_what_was_meant() -> None:
    assert refused({**COMBINED, "log.retention.hour": "5"}) == (
        "log.retention.hour: not a known setting; did you mean log.retention.hours?"
    )


@pytest.mark.parametrize("name", ["log_retention_hours", "Log.Retention.Hours", "log-retention-hours"])
def test_a_name_in_other_letters_is_refused_with_the_usual_ones(name: str) -> None:
    assert refused({**COMBINED, name: "5"}) == f"{name}: not a known setting; did you mean log.retention.hours?"


def test_names_that_are_nothing_like_a_setting_are_told_as_not_used() -> None:
    """A file that starts Apache Kafka starts ottla; Kafka logs them as supplied and not used."""
    given = {**COMBINED, "zebra": "5", "plugin.path": "/p", "max.poll.records": "1", "transaction.timeout.ms": "1"}
    assert Settings.from_properties(given).warnings == (
        "not used, since no setting here has such a name: zebra, plugin.path, max.poll.records, transaction.timeout.ms",
    )


def test_a_setting_of_topics_is_not_used_and_the_default_for_all_topics_named() -> None:
    assert Settings.from_properties({**COMBINED, "retention.ms": "5"}).warnings == (
        "retention.ms: a setting of topics, not used here; the default of all topics is log.retention.ms",
    )


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
    ],
)
def test_names_that_kafka_passes_on_are_kept_without_a_warning(name: str) -> None:
    settings = Settings.from_properties({**COMBINED, name: "1"})
    assert (settings.given[name], settings.warnings) == ("1", ())


def test_a_foreign_plugin_may_have_names_of_its_own() -> None:
    given = {**COMBINED, "metric.reporters": "com.example.Reporter", "example.host": "h"}
    assert Settings.from_properties(given).warnings == (
        "not used, since no setting here has such a name: example.host",
        "metric.reporters: has no effect in this version, which runs no reporters: http.listeners has the metrics",
    )


STANDARD = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}


def test_kafkas_own_authorizer_is_built_in_and_another_class_is_refused() -> None:
    assert Settings.from_properties({**COMBINED, **STANDARD, "super.users": "User:a"}).warnings == ()
    assert refused({**COMBINED, "authorizer.class.name": "com.example.Mine"}) == (
        "authorizer.class.name: com.example.Mine is not built in; "
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer is, and no other class is run"
    )
    assert Settings.from_properties({**COMBINED, "authorizer.class.name": ""}).warnings == ()


def test_a_class_that_would_decide_on_quotas_is_refused() -> None:
    assert refused({**COMBINED, "client.quota.callback.class": "a.B"}) == (
        "client.quota.callback.class: no class of yours is run; quotas are those that `ottla quotas set` or Kafka's "
        "tools have set"
    )


def test_a_super_user_has_a_type() -> None:
    assert refused({**COMBINED, **STANDARD, "super.users": "User:a;bob"}) == (
        "super.users: bob is no principal: it takes a type and a name, for example User:bob"
    )


def test_super_users_without_an_authorizer_are_not_alone_and_are_told() -> None:
    given = {**COMBINED, "super.users": "User:a", "allow.everyone.if.no.acl.found": "false"}
    assert Settings.from_properties(given).warnings == (
        "super.users: no effect without authorizer.class.name: everybody may do everything",
    )


@pytest.mark.parametrize(
    ("given", "warning"),
    [
        ({"ssl.provider": "SunJSSE"}, "ssl.provider: has no effect in this version, which has OpenSSL's own of it"),
        (
            {"sasl.kerberos.service.name": "kafka"},
            "sasl.kerberos.service.name: has no effect in this version, which has no Kerberos",
        ),
        (
            {"sasl.login.connect.timeout.ms": "10"},
            "sasl.login.connect.timeout.ms: has no effect in this version, which asks an identity provider once for "
            "each login, within sasl.login.read.timeout.ms, connecting included",
        ),
        (
            {"ssl.protocol": "TLSv1.2"},
            "ssl.protocol: has no effect in this version, which goes by ssl.enabled.protocols",
        ),
        (
            {"sasl.login.refresh.window.factor": "0.7"},
            "sasl.login.refresh.window.factor: has no effect in this version, which asks for a token of its own when "
            "it logs in and four fifths of the last one's time are over",
        ),
        (
            {"early.start.listeners": "PLAINTEXT,CONTROLLER"},
            "early.start.listeners: PLAINTEXT opens when the metadata is there all the same, as it is a listener of "
            "brokers",
        ),
        (
            {"create.topic.policy.class.name": "a.B"},
            "create.topic.policy.class.name: has no effect in this version, which runs no policy classes",
        ),
        (
            {"alter.config.policy.class.name": "a.B"},
            "alter.config.policy.class.name: has no effect in this version, which runs no policy classes",
        ),
        (
            {"remote.log.storage.system.enable": "true"},
            "remote.log.storage.system.enable: has no effect in this version, which has no tiered storage",
        ),
    ],
    ids=lambda case: next(iter(case)) if isinstance(case, dict) else "",
)
def test_what_is_not_built_yet_has_no_effect_and_says_so(given: dict[str, str], warning: str) -> None:
    assert Settings.from_properties({**COMBINED, **given}).warnings == (warning,)


def test_a_default_written_down_is_no_reason_to_warn() -> None:
    given = {**COMBINED, "ssl.client.auth": "none", "remote.log.storage.system.enable": "false", "super.users": ""}
    assert Settings.from_properties(given).warnings == ()


def test_settings_of_earlier_releases_are_ignored_with_a_warning() -> None:
    given = {**COMBINED, "zookeeper.connect": "z:2181", "inter.broker.protocol.version": "3.9"}
    assert Settings.from_properties(given).warnings == (
        "zookeeper.connect: a setting of earlier Kafka releases, ignored",
        "inter.broker.protocol.version: a setting of earlier Kafka releases, ignored",
    )


@pytest.mark.parametrize("sign", [{"zookeeper.connect": "z:2181", "broker.id": "0"}, {"broker.id": "0"}])
def test_a_file_from_the_time_of_zookeeper_is_told_of_kraft_first(sign: dict[str, str]) -> None:
    lines = refused({**sign, "log.dirs": "/tmp/kafka-logs"}).splitlines()
    assert lines[0].startswith(f"{next(iter(sign))}: this file is for Kafka with ZooKeeper")
    assert "controller.quorum.voters=1@localhost:9093" in lines[0]


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


def test_a_listener_on_every_interface_is_advertised_by_the_name_of_the_machine() -> None:
    given = {**COMBINED, "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}
    given["controller.quorum.bootstrap.servers"] = given.pop("controller.quorum.voters").removeprefix("1@")
    settings = Settings.from_properties(given).with_host_name(lambda: "host.example")
    assert settings.advertised_listeners == (Listener("PLAINTEXT", "PLAINTEXT", "host.example", 9092),)
    assert settings.advertised_controller_listeners == (Listener("CONTROLLER", "PLAINTEXT", "host.example", 9093),)
    assert settings.listeners == Settings.from_properties(given).listeners
    assert settings.with_dynamic({"num.io.threads": "9"}).advertised_listeners == settings.advertised_listeners


def test_nobody_is_asked_for_the_name_of_the_machine_when_all_that_is_advertised_has_one() -> None:
    settings = Settings.from_properties(SAMPLE)
    assert settings.with_host_name(lambda: pytest.fail("asked")) is settings


def test_kafkas_assignors_go_by_their_classes_too() -> None:
    classes = "org.apache.kafka.coordinator.group.assignor.RangeAssignor,uniform"
    settings = Settings.from_properties({**COMBINED, "group.consumer.assignors": classes})
    assert settings.get_list("group.consumer.assignors") == tuple(classes.split(","))


def test_ipv6_listeners_are_read_in_brackets() -> None:
    settings = Settings.from_properties(
        {
            **COMBINED,
            "listeners": "PLAINTEXT://[::1]:9092,INNER://127.0.0.1:9092,CONTROLLER://localhost:9093",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INNER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }
    )
    assert settings.broker_listeners == (
        Listener("PLAINTEXT", "PLAINTEXT", "::1", 9092),
        Listener("INNER", "PLAINTEXT", "127.0.0.1", 9092),
    )
    assert str(settings.listeners[0]) == "PLAINTEXT://[::1]:9092"


@pytest.mark.parametrize("address", ["http://[::1:9404", "http://::1:9404", "http://[12]:9404", "http://h:70000"])
def test_an_http_address_that_is_no_url_is_refused_before_the_node_starts(address: str) -> None:
    assert refused({**COMBINED, "http.listeners": address}) == (
        f"http.listeners: {address!r} is not allowed: {address!r} is not an address: http://host:port or "
        "https://host:port is expected"
    )


@pytest.mark.parametrize("address", ["http://[::1]:9404", "http://:9404", "http://a-host.example:0"])
def test_an_http_address_may_be_of_ipv6_a_name_or_nothing(address: str) -> None:
    assert Settings.from_properties({**COMBINED, "http.listeners": address}).get_list("http.listeners") == (address,)


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


REFUSED = BROKEN + REFUSED_LATER_BY_KAFKA


@pytest.mark.parametrize(("base", "change", "problem"), REFUSED, ids=[problem[:60] for _, _, problem in REFUSED])
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
    text = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="hunter2";'
    assert "hunter2" not in repr(parse_jaas(text))
    assert "hunter2" not in repr(OwnLogin("PLAIN", "a", "hunter2"))
    assert "hunter2" not in repr(ScramKeys(b"hunter2", b"hunter2"))


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
