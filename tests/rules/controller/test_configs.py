"""Altering dynamic configs: which values, of which resources, by which operation."""

import pytest

from ottla.controller.configs import APPEND, DELETE, SET, SUBTRACT
from ottla.metadata.image import BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from ottla.model.errors import Errors
from ottla.protocol import messages
from ottla.protocol.messages import IncrementalAlterConfigsRequest as Incremental
from tests.rules.controller.scene import Scene, features

Change = tuple[str, int, str | None]


def a_scene() -> Scene:
    scene = Scene().with_brokers(1)
    scene.created("t")
    return scene


def request(kind: int, name: str, *changes: Change, validate_only: bool = False) -> Incremental:
    configs = [Incremental.AlterableConfig(name=n, config_operation=o, value=v) for n, o, v in changes]
    resource = Incremental.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return Incremental(resources=[resource], validate_only=validate_only)


def alter(scene: Scene, kind: int, name: str, *changes: Change, validate_only: bool = False) -> int:
    reply = scene.play(request(kind, name, *changes, validate_only=validate_only)).reply
    assert isinstance(reply, messages.IncrementalAlterConfigsResponse)
    ((error, text),) = [(r.error_code, r.error_message) for r in reply.responses]
    assert bool(text) == bool(error)
    return error


def test_set_and_delete_change_one_config_and_leave_the_others() -> None:
    scene = a_scene()
    assert alter(scene, TOPIC_RESOURCE, "t", ("retention.ms", SET, "5"), ("max.message.bytes", SET, "9")) == 0
    assert scene.image.topic_configs("t") == {"retention.ms": "5", "max.message.bytes": "9"}
    assert alter(scene, TOPIC_RESOURCE, "t", ("retention.ms", DELETE, None)) == 0
    assert scene.image.topic_configs("t") == {"max.message.bytes": "9"}


def test_nobody_subscribes_to_metrics_that_are_not_collected_and_what_kafka_left_can_be_removed() -> None:
    scene = a_scene()
    assert alter(scene, CLIENT_METRICS_RESOURCE, "s", ("interval.ms", SET, "5000")) == Errors.INVALID_REQUEST
    left = messages.ConfigRecord(CLIENT_METRICS_RESOURCE, "s", "interval.ms", "5000")
    scene.replay([left])
    assert alter(scene, CLIENT_METRICS_RESOURCE, "s", ("interval.ms", DELETE, None)) == 0
    assert (CLIENT_METRICS_RESOURCE, "s") not in scene.image.configs


def test_append_starts_from_the_default_and_adds_each_item_once() -> None:
    scene = a_scene()
    assert alter(scene, TOPIC_RESOURCE, "t", ("cleanup.policy", APPEND, "compact,delete")) == 0
    assert scene.image.topic_configs("t") == {"cleanup.policy": "delete,compact"}
    assert alter(scene, TOPIC_RESOURCE, "t", ("cleanup.policy", SUBTRACT, "delete,unknown")) == 0
    assert scene.image.topic_configs("t") == {"cleanup.policy": "compact"}


def test_only_lists_can_be_appended_to() -> None:
    assert alter(a_scene(), TOPIC_RESOURCE, "t", ("retention.ms", APPEND, "5")) == Errors.INVALID_CONFIG


def test_an_equal_value_writes_nothing_for_a_topic_and_a_record_for_a_broker() -> None:
    # KAFKA-14136: brokers reload key stores when they see the record.
    scene = a_scene()
    alter(scene, TOPIC_RESOURCE, "t", ("retention.ms", SET, "5"))
    assert scene.decide(request(TOPIC_RESOURCE, "t", ("retention.ms", SET, "5"))).records == ()
    alter(scene, BROKER_RESOURCE, "1", ("log.cleaner.threads", SET, "2"))
    assert len(scene.decide(request(BROKER_RESOURCE, "1", ("log.cleaner.threads", SET, "2"))).records) == 1


@pytest.mark.parametrize(
    ("kind", "name", "change", "error"),
    [
        (TOPIC_RESOURCE, "gone", ("retention.ms", SET, "5"), Errors.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC_RESOURCE, "", ("retention.ms", SET, "5"), Errors.INVALID_TOPIC_EXCEPTION),
        (TOPIC_RESOURCE, "t", ("retention.ms", SET, "soon"), Errors.INVALID_CONFIG),
        (TOPIC_RESOURCE, "t", ("retention.ms", SET, None), Errors.INVALID_REQUEST),
        (TOPIC_RESOURCE, "t", ("retention.ms", 9, "5"), Errors.INVALID_REQUEST),
        (TOPIC_RESOURCE, "t", ("nonsense", SET, "5"), Errors.INVALID_CONFIG),
        (TOPIC_RESOURCE, "t", ("retention.ms", SET, "1" * 40_000), Errors.INVALID_CONFIG),
        (BROKER_RESOURCE, "7", ("log.cleaner.threads", SET, "2"), Errors.BROKER_ID_NOT_REGISTERED),
        (BROKER_RESOURCE, "one", ("log.cleaner.threads", SET, "2"), Errors.INVALID_REQUEST),
        (BROKER_RESOURCE, "1", ("node.id", SET, "2"), Errors.INVALID_REQUEST),
        (BROKER_RESOURCE, "1", ("log.cleaner.threads", SET, "many"), Errors.INVALID_REQUEST),
        (BROKER_RESOURCE, "", ("advertised.listeners", SET, "PLAINTEXT://h:1"), Errors.INVALID_REQUEST),
        (BROKER_RESOURCE, "", ("log.cleaner.threads", SET, "2"), Errors.NONE),
        (BROKER_RESOURCE, "1", ("a.plugin.knows.this", SET, "2"), Errors.NONE),
        (GROUP_RESOURCE, "", ("consumer.session.timeout.ms", SET, "50000"), Errors.INVALID_REQUEST),
        (GROUP_RESOURCE, "g", ("consumer.session.timeout.ms", SET, "50000"), Errors.NONE),
        (GROUP_RESOURCE, "g", ("consumer.session.timeout.ms", SET, "1"), Errors.INVALID_CONFIG),
        (GROUP_RESOURCE, "g", ("nonsense", SET, "1"), Errors.INVALID_CONFIG),
        (CLIENT_METRICS_RESOURCE, "m", ("interval.ms", SET, "1000"), Errors.INVALID_REQUEST),
        (CLIENT_METRICS_RESOURCE, "m", ("interval.ms", SET, "1"), Errors.INVALID_REQUEST),
        (CLIENT_METRICS_RESOURCE, "m", ("nonsense", SET, "1"), Errors.INVALID_REQUEST),
        (CLIENT_METRICS_RESOURCE, "m", ("interval.ms", SET, "soon"), Errors.INVALID_CONFIG),
        (CLIENT_METRICS_RESOURCE, "m", ("match", SET, "who=me"), Errors.INVALID_CONFIG),
        (CLIENT_METRICS_RESOURCE, "m", ("match", SET, "client_id=["), Errors.INVALID_CONFIG),
        (BROKER_RESOURCE, "1", ("min.insync.replicas", SET, "none"), Errors.INVALID_REQUEST),
        (3, "x", ("nonsense", SET, "1"), Errors.UNSUPPORTED_VERSION),
        (8, "1", ("root", SET, "INFO"), Errors.INVALID_REQUEST),
    ],
)
def test_each_kind_of_resource_has_its_rules(kind: int, name: str, change: Change, error: Errors) -> None:
    scene = a_scene()
    before = scene.image
    assert alter(scene, kind, name, change) == error
    assert (scene.image is before) == (error != Errors.NONE)


def test_one_bad_config_spoils_its_resource_and_no_other() -> None:
    scene = a_scene()
    scene.created("u")
    bad = request(TOPIC_RESOURCE, "t", ("retention.ms", SET, "5"), ("retention.bytes", SET, "x")).resources
    good = request(TOPIC_RESOURCE, "u", ("retention.ms", SET, "5")).resources
    reply = scene.play(Incremental(resources=bad + good)).reply
    assert isinstance(reply, messages.IncrementalAlterConfigsResponse)
    assert [r.error_code for r in reply.responses] == [Errors.INVALID_CONFIG, Errors.NONE]
    assert scene.image.topic_configs("t") == {}
    assert scene.image.topic_configs("u") == {"retention.ms": "5"}


def test_a_resource_or_a_config_named_twice_is_refused() -> None:
    scene = a_scene()
    once = request(TOPIC_RESOURCE, "t", ("retention.ms", SET, "5")).resources
    reply = scene.play(Incremental(resources=once + once)).reply
    assert isinstance(reply, messages.IncrementalAlterConfigsResponse)
    assert [r.error_code for r in reply.responses] == [Errors.INVALID_REQUEST]
    twice = (("retention.ms", SET, "5"), ("retention.ms", SET, "6"))
    assert alter(scene, TOPIC_RESOURCE, "t", *twice) == Errors.INVALID_REQUEST
    assert scene.image.topic_configs("t") == {}


def test_validate_only_changes_nothing() -> None:
    scene = a_scene()
    assert alter(scene, TOPIC_RESOURCE, "t", ("retention.ms", SET, "5"), validate_only=True) == Errors.NONE
    assert scene.image.topic_configs("t") == {}


def test_the_old_call_takes_away_what_it_does_not_name() -> None:
    scene = a_scene()
    alter(scene, TOPIC_RESOURCE, "t", ("retention.ms", SET, "5"), ("max.message.bytes", SET, "9"))
    kind = messages.AlterConfigsRequest
    configs = [kind.AlterableConfig(name="segment.bytes", value="2000000")]
    resource = kind.AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name="t", configs=configs)
    reply = scene.play(kind(resources=[resource])).reply
    assert isinstance(reply, messages.AlterConfigsResponse)
    assert [r.error_code for r in reply.responses] == [Errors.NONE]
    assert scene.image.topic_configs("t") == {"segment.bytes": "2000000"}


def test_kip_966_a_new_min_isr_clears_the_elr_that_was_computed_for_the_old() -> None:
    scene = a_scene()
    change = ("min.insync.replicas", SET, "2")
    records = scene.decide(request(TOPIC_RESOURCE, "t", change)).records
    assert [repr(record) for record in records[1:]] == ["ClearElrRecord(topic_name='t')"]
    records = scene.decide(request(BROKER_RESOURCE, "", change)).records
    assert [repr(record) for record in records[1:]] == ["ClearElrRecord(topic_name='')"]


def test_kip_966_with_elr_on_min_isr_is_a_matter_of_topics_and_the_cluster() -> None:
    scene = a_scene()
    assert alter(scene, BROKER_RESOURCE, "1", ("min.insync.replicas", SET, "2")) == Errors.INVALID_CONFIG
    assert alter(scene, BROKER_RESOURCE, "", ("min.insync.replicas", DELETE, None)) == Errors.INVALID_CONFIG
    without = Scene(records=features(elr=0)).with_brokers(1)
    assert alter(without, BROKER_RESOURCE, "1", ("min.insync.replicas", SET, "2")) == Errors.NONE


@pytest.mark.parametrize(
    ("kind", "name", "config", "value"),
    [
        (TOPIC_RESOURCE, "t", "leader.replication.throttled.replicas", "0:1,1:2"),
        (TOPIC_RESOURCE, "t", "follower.replication.throttled.replicas", "*"),
        (BROKER_RESOURCE, "1", "leader.replication.throttled.rate", "1000000"),
        (BROKER_RESOURCE, "1", "follower.replication.throttled.rate", "1000000"),
        (BROKER_RESOURCE, "1", "replica.alter.log.dirs.io.max.bytes.per.second", "1000000"),
    ],
)
def test_kip_73_the_throttles_of_a_reassignment_are_configs(kind: int, name: str, config: str, value: str) -> None:
    scene = a_scene()
    assert alter(scene, kind, name, (config, SET, value)) == Errors.NONE
    assert scene.image.configs[kind, name][config] == value
    assert alter(scene, kind, name, (config, DELETE, None)) == Errors.NONE
    assert (kind, name) not in scene.image.configs
