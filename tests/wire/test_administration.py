"""Topics, configs and the cluster itself, as an administrator asks for them.

tests/peer/test_side_by_side.py compares many more of these answers with Apache Kafka's; here stand the rules.
"""

from typing import Any

import pytest

from ottla.protocol import messages as m
from tests.support.requests import (
    batch,
    create_topic,
    create_topic_request,
    describe_topic,
    produced,
    settle,
    wait_for_topic,
)
from tests.support.wire import Deadline, Wire, versions

UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_TOPIC_EXCEPTION = 17
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_REPLICA_ASSIGNMENT = 39
INVALID_CONFIG = 40
INVALID_REQUEST = 42
FEATURE_UPDATE_FAILED = 95
UNKNOWN_TOPIC_ID = 100

TOPIC, BROKER, LOGGERS = 2, 4, 8
OF_TOPIC, OF_BROKER, OF_ALL_BROKERS, STATIC, DEFAULT, OF_LOGGER = 1, 2, 3, 4, 5, 6
SET, DELETE, APPEND, SUBTRACT = range(4)


def created(wire: Wire, topic: Any, *, version: int | None = None, validate_only: bool = False) -> Any:
    request = m.CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=validate_only)
    (answer,) = wire.ask(request, version).topics
    return answer


def described(
    wire: Wire, kind: int, name: str, keys: list[str] | None = None, *, version: int | None = None
) -> dict[str, Any]:
    wanted = m.DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    request = m.DescribeConfigsRequest(resources=[wanted], include_synonyms=True)
    (answer,) = wire.ask(request, version).results
    assert answer.error_code == 0, answer
    return {entry.name: entry for entry in answer.configs}


def changed(wire: Wire, kind: int, name: str, *changes: tuple[str, int, str | None]) -> int:
    rows = [
        m.IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = m.IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=rows
    )
    (answer,) = wire.ask(m.IncrementalAlterConfigsRequest(resources=[resource])).responses
    settle(wire)
    code: int = answer.error_code
    return code


@pytest.fixture
def node_id(wire: Wire) -> str:
    return str(wire.ask(m.MetadataRequest(topics=[])).brokers[0].node_id)


def test_topics_are_created_at_every_version(wire: Wire, topic: str) -> None:
    for version in versions(19):
        answer = created(wire, create_topic_request(f"{topic}-{version}", 2), version=version)

        assert answer.error_code == 0
        assert (answer.num_partitions, answer.replication_factor) == ((2, 1) if version >= 5 else (-1, -1))
        topic_id = wait_for_topic(wire, f"{topic}-{version}", 2)
        assert answer.topic_id == (topic_id if version >= 7 else bytes(16))


def test_minus_one_means_the_brokers_default(wire: Wire, topic: str, node_id: str) -> None:
    default = int(described(wire, BROKER, node_id, ["num.partitions"])["num.partitions"].value)

    answer = created(wire, create_topic_request(topic, -1, replication_factor=-1))

    assert (answer.error_code, answer.num_partitions, answer.replication_factor) == (0, default, 1)


def test_a_creation_that_is_only_validated_creates_nothing(wire: Wire, topic: str) -> None:
    assert created(wire, create_topic_request(topic), validate_only=True).error_code == 0
    assert describe_topic(wire, topic).error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert created(wire, create_topic_request(topic, replication_factor=3), validate_only=True).error_code != 0


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"partitions": 0}, INVALID_PARTITIONS),
        ({"partitions": -2}, INVALID_PARTITIONS),
        ({"replication_factor": 0}, INVALID_REPLICATION_FACTOR),
        ({"replication_factor": 2}, INVALID_REPLICATION_FACTOR),
        ({"replication_factor": 4}, INVALID_REPLICATION_FACTOR),
        ({"configs": {"retention.ms": "x"}}, INVALID_CONFIG),
        ({"configs": {"no.such.config": "x"}}, INVALID_CONFIG),
        ({"configs": {"retention.ms": None}}, INVALID_CONFIG),
    ],
)
def test_what_can_not_be_is_refused_with_its_own_error(wire: Wire, topic: str, wanted: Any, error: int) -> None:
    answer = created(wire, create_topic_request(topic, **wanted))

    assert (answer.error_code, answer.topic_id) == (error, bytes(16))
    assert answer.error_message
    assert describe_topic(wire, topic).error_code == UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "a b", "a/b", "ž"])
def test_a_bad_name_is_refused(wire: Wire, name: str) -> None:
    assert created(wire, create_topic_request(name), validate_only=True).error_code == INVALID_TOPIC_EXCEPTION


def test_names_that_differ_in_dots_and_underscores_only_collide(wire: Wire, topic: str) -> None:
    create_topic(wire, f"{topic}.a_b")

    assert created(wire, create_topic_request(f"{topic}_a.b")).error_code == INVALID_TOPIC_EXCEPTION


def test_a_name_asked_for_twice_in_one_request_is_created_by_neither(wire: Wire, topic: str) -> None:
    request = m.CreateTopicsRequest(topics=[create_topic_request(topic), create_topic_request(topic)], timeout_ms=5000)

    assert {(t.name, t.error_code) for t in wire.ask(request).topics} == {(topic, INVALID_REQUEST)}


def test_replicas_may_be_assigned_by_hand(wire: Wire, topic: str, node_id: str) -> None:
    def assigned(*replicas: list[int]) -> Any:
        rows = [
            m.CreateTopicsRequest.CreatableReplicaAssignment(partition_index=i, broker_ids=ids)
            for i, ids in enumerate(replicas)
        ]
        return m.CreateTopicsRequest.CreatableTopic(
            name=topic, num_partitions=-1, replication_factor=-1, assignments=rows
        )

    here = int(node_id)
    assert created(wire, assigned([here + 7])).error_code == INVALID_REPLICA_ASSIGNMENT
    assert created(wire, assigned([here, here])).error_code == INVALID_REPLICA_ASSIGNMENT
    answer = created(wire, assigned([here], [here], [here]))
    assert (answer.error_code, answer.num_partitions, answer.replication_factor) == (0, 3, 1)


def test_topics_are_deleted_at_every_version(wire: Wire, topic: str) -> None:
    for version in versions(20):
        name = f"{topic}-{version}"
        topic_id = create_topic(wire, name)
        request = m.DeleteTopicsRequest(timeout_ms=10_000)
        if version < 6:
            request.topic_names = [name, f"{topic}-never"]
        else:
            state = m.DeleteTopicsRequest.DeleteTopicState
            request.topics = [state(name=None, topic_id=topic_id), state(name=f"{topic}-never")]

        answers = {answer.name: answer.error_code for answer in wire.ask(request, version).responses}

        assert answers == {name: 0, f"{topic}-never": UNKNOWN_TOPIC_OR_PARTITION}
        settle(wire)
        assert describe_topic(wire, name).error_code == UNKNOWN_TOPIC_OR_PARTITION


def test_each_topic_that_is_to_grow_gets_one_answer(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    for version in versions(37):
        rows = [
            m.CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=count, assignments=None)
            for name, count in ((topic, version + 2), (f"{topic}-never", 9))
        ]
        answers = wire.ask(m.CreatePartitionsRequest(topics=rows, timeout_ms=10_000), version).results

        assert {(a.name, a.error_code) for a in answers} == {(topic, 0), (f"{topic}-never", UNKNOWN_TOPIC_OR_PARTITION)}
        wait_for_topic(wire, topic, version + 2)
    for count in (1, 5):
        row = m.CreatePartitionsRequest.CreatePartitionsTopic(name=topic, count=count, assignments=None)
        (answer,) = wire.ask(m.CreatePartitionsRequest(topics=[row], timeout_ms=10_000)).results
        assert answer.error_code == INVALID_PARTITIONS
    assert produced(wire, topic, batch(1), partition=4) == 0


def test_all_configs_of_a_topic_are_listed(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, configs={"retention.ms": "60000"})
    everything = described(wire, TOPIC, topic)

    assert len(everything) == 33
    assert {name for name, entry in everything.items() if entry.config_source == OF_TOPIC} == {"retention.ms"}
    retention = everything["retention.ms"]
    assert (retention.value, retention.read_only, retention.is_sensitive, retention.config_type) == (
        "60000", False, False, 5,
    )  # fmt: skip
    assert [(s.name, s.value, s.source) for s in retention.synonyms] == [("retention.ms", "60000", OF_TOPIC)]
    cleanup = everything["cleanup.policy"]
    assert [(s.name, s.value, s.source) for s in cleanup.synonyms] == [("log.cleanup.policy", "delete", DEFAULT)]
    assert {entry.config_type for entry in everything.values()} >= {1, 2, 3, 5, 6, 7}  # of every type that is in use


def test_all_configs_of_a_broker_are_listed(wire: Wire, node_id: str) -> None:
    everything = described(wire, BROKER, node_id)

    assert len(everything) > 250
    assert everything["num.network.threads"].value == "3"
    assert everything["node.id"].value == node_id
    assert everything["node.id"].read_only
    assert not everything["log.retention.ms"].read_only
    secrets = [entry for entry in everything.values() if entry.is_sensitive]
    assert secrets and all(entry.value is None for entry in secrets)


def test_configs_are_described_at_every_version(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, configs={"cleanup.policy": "compact"})
    for version in versions(32):
        found = described(wire, TOPIC, topic, ["cleanup.policy", "no.such.config"], version=version)

        assert {name: entry.value for name, entry in found.items()} == {"cleanup.policy": "compact"}


def test_lists_can_be_appended_to_and_subtracted_from(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)

    def policy() -> str:
        value: str = described(wire, TOPIC, topic)["cleanup.policy"].value
        return value

    assert changed(wire, TOPIC, topic, ("cleanup.policy", APPEND, "compact")) == 0
    assert policy() == "delete,compact"
    assert changed(wire, TOPIC, topic, ("cleanup.policy", SUBTRACT, "delete")) == 0
    assert policy() == "compact"
    assert changed(wire, TOPIC, topic, ("cleanup.policy", DELETE, None)) == 0
    assert policy() == "delete"
    assert changed(wire, TOPIC, topic, ("retention.ms", APPEND, "5")) == INVALID_CONFIG


def test_a_change_is_all_or_nothing(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)

    wrong = changed(wire, TOPIC, topic, ("retention.ms", SET, "5000"), ("segment.bytes", SET, "none"))

    assert wrong == INVALID_CONFIG
    assert described(wire, TOPIC, topic)["retention.ms"].config_source == DEFAULT


def test_the_old_way_to_alter_replaces_all(wire: Wire, topic: str) -> None:
    for version in versions(33):
        name = f"{topic}-{version}"
        create_topic(wire, name, configs={"retention.ms": "60000"})
        row = m.AlterConfigsRequest.AlterableConfig(name="segment.bytes", value="2000000")
        resource = m.AlterConfigsRequest.AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=[row])

        (answer,) = wire.ask(m.AlterConfigsRequest(resources=[resource]), version).responses

        assert answer.error_code == 0
        settle(wire)
        own = {n for n, entry in described(wire, TOPIC, name).items() if entry.config_source == OF_TOPIC}
        assert own == {"segment.bytes"}


def test_topics_inherit_from_brokers(wire: Wire, topic: str, node_id: str) -> None:
    create_topic(wire, topic)
    try:
        assert changed(wire, BROKER, "", ("log.retention.ms", SET, "50000000")) == 0
        assert changed(wire, BROKER, node_id, ("log.retention.ms", SET, "40000000")) == 0
        deadline = Deadline("the broker's own value in its topics")  # Kafka's brokers take it up a moment later
        while (inherited := described(wire, TOPIC, topic)["retention.ms"]).value != "40000000":
            deadline.check(inherited)
        assert inherited.config_source == OF_BROKER
        assert [(s.name, s.value, s.source) for s in inherited.synonyms] == [
            ("log.retention.ms", "40000000", OF_BROKER),
            ("log.retention.ms", "50000000", OF_ALL_BROKERS),
            ("log.retention.hours", "168", DEFAULT),
        ]
    finally:
        changed(wire, BROKER, node_id, ("log.retention.ms", DELETE, None))
        changed(wire, BROKER, "", ("log.retention.ms", DELETE, None))
    deadline = Deadline("the default after all is taken back")
    while (inherited := described(wire, TOPIC, topic)["retention.ms"]).value != "604800000":
        deadline.check(inherited)


def test_what_is_fixed_at_the_start_can_not_be_changed(wire: Wire, node_id: str) -> None:
    assert changed(wire, BROKER, node_id, ("node.id", SET, "9")) == INVALID_REQUEST
    assert changed(wire, BROKER, node_id, ("num.partitions", SET, "9")) == INVALID_REQUEST


def test_what_a_running_broker_cannot_become_in_one_step_is_refused(wire: Wire, node_id: str) -> None:
    for name in (node_id, ""):
        assert changed(wire, BROKER, name, ("num.io.threads", SET, "1000")) == INVALID_REQUEST
        assert changed(wire, BROKER, name, ("log.local.retention.ms", SET, "-1")) == INVALID_REQUEST
        assert changed(wire, BROKER, name, ("group.consumer.assignment.interval.ms", SET, "99999")) == INVALID_REQUEST


def test_a_smaller_limit_holds_at_once(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    assert produced(wire, topic, batch(50)) == 0
    assert changed(wire, TOPIC, topic, ("max.message.bytes", SET, "100")) == 0

    request = m.ProduceRequest.PartitionProduceData(index=0, records=batch(50))
    data = [m.ProduceRequest.TopicProduceData(name=topic, partition_data=[request])]
    answer = wire.ask(m.ProduceRequest(acks=-1, timeout_ms=5000, topic_data=data), 12)

    assert answer.responses[0].partition_responses[0].error_code == 10


def test_a_large_topic_is_described_page_by_page(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, partitions=7)
    asked = m.DescribeTopicPartitionsRequest
    seen: list[int] = []
    cursor = None
    for _ in range(4):
        request = asked(topics=[asked.TopicRequest(name=topic)], response_partition_limit=2, cursor=cursor)
        answer = wire.ask(request)
        seen += [part.partition_index for part in answer.topics[0].partitions]
        if answer.next_cursor is None:
            break
        cursor = asked.Cursor(
            topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index
        )

    assert seen == list(range(7))


def test_the_cluster_describes_itself(wire: Wire, bootstrap: str) -> None:
    for version in versions(60):
        answer = wire.ask(m.DescribeClusterRequest(include_cluster_authorized_operations=True), version)

        (broker,) = answer.brokers
        assert f"{broker.host}:{broker.port}" == bootstrap
        assert (answer.error_code, len(answer.cluster_id)) == (0, 22)
        assert answer.cluster_authorized_operations > 0


def test_the_quorum_is_one_and_leads(wire: Wire, node_id: str) -> None:
    place = m.DescribeQuorumRequest.PartitionData(partition_index=0)
    row = m.DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[place])
    for version in versions(55):
        (part,) = wire.ask(m.DescribeQuorumRequest(topics=[row]), version).topics[0].partitions

        assert (part.error_code, part.leader_id) == (0, int(node_id))
        assert [voter.replica_id for voter in part.current_voters] == [int(node_id)]
        assert part.high_watermark > 0


def test_a_feature_level_that_nobody_supports_is_refused(wire: Wire) -> None:
    update = m.UpdateFeaturesRequest
    for version in versions(57):
        key = update.FeatureUpdateKey(feature="metadata.version", max_version_level=99)
        assert wire.ask(update(timeout_ms=5000, feature_updates=[key]), version).error_code == FEATURE_UPDATE_FAILED


def test_log_dirs_tell_the_size_of_partitions(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, partitions=2)
    data = batch(10)
    produced(wire, topic, data, partition=1)
    rows = [m.DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=[0, 1])]
    for version in versions(35):
        (directory,) = wire.ask(m.DescribeLogDirsRequest(topics=rows), version).results

        (found,) = directory.topics
        assert {p.partition_index: p.partition_size for p in found.partitions} == {0: 0, 1: len(data)}
        assert (directory.total_bytes > 0) == (version >= 4)


def test_the_level_of_a_logger_can_be_changed_while_the_node_runs(wire: Wire, node_id: str) -> None:
    name = "ottla.broker.front.session"
    before = described(wire, LOGGERS, node_id)
    assert before["root"].config_source == OF_LOGGER and not before["root"].read_only

    assert changed(wire, LOGGERS, node_id, (name, SET, "ERROR")) == 0
    assert described(wire, LOGGERS, node_id, [name])[name].value == "ERROR"
    assert changed(wire, LOGGERS, node_id, (name, DELETE, None)) == 0
    assert described(wire, LOGGERS, node_id, [name])[name].value == before[name].value


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("ottla.broker.front.session", SET, "LOUD"), INVALID_CONFIG),
        (("no.such.logger", SET, "INFO"), INVALID_CONFIG),
        (("no.such.logger", DELETE, None), INVALID_CONFIG),
        (("root", DELETE, None), INVALID_REQUEST),
        (("ottla.broker.front.session", APPEND, "INFO"), INVALID_REQUEST),
        (("ottla.broker.front.session", SUBTRACT, "INFO"), INVALID_REQUEST),
    ],
)
def test_a_level_that_makes_no_sense_is_refused_and_nothing_changes(
    wire: Wire, node_id: str, change: tuple[str, int, str | None], error: int
) -> None:
    before = {name: entry.value for name, entry in described(wire, LOGGERS, node_id).items()}
    assert changed(wire, LOGGERS, node_id, ("ottla.broker.front.server", SET, "FATAL"), change) == error
    assert {name: entry.value for name, entry in described(wire, LOGGERS, node_id).items()} == before


def test_another_brokers_loggers_are_not_ours_to_change(wire: Wire) -> None:
    assert changed(wire, LOGGERS, "99", ("root", SET, "INFO")) == INVALID_REQUEST


def test_config_resources_are_listed(wire: Wire, node_id: str, topic: str) -> None:
    create_topic(wire, topic)

    answer = wire.ask(m.ListConfigResourcesRequest(resource_types=[TOPIC, BROKER]))

    found = {(r.resource_type, r.resource_name) for r in answer.config_resources}
    assert {(TOPIC, topic), (BROKER, node_id)} <= found


def test_the_coordinator_of_a_group_is_found(wire: Wire, node_id: str) -> None:
    for version in versions(10):
        while True:  # the first to ask has the topic of the offsets created
            if version >= 4:
                answer = wire.ask(m.FindCoordinatorRequest(coordinator_keys=["some-group"]), version).coordinators[0]
            else:
                answer = wire.ask(m.FindCoordinatorRequest(key="some-group"), version)
            if answer.error_code != 15:
                break
        assert (answer.error_code, answer.node_id) == (0, int(node_id))
