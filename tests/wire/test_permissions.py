"""Every request asks the authorizer: with one that allows nothing, nothing is done and nothing is told."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.broker.security.authorizer import Rights, Underway
from ottla.model.errors import Errors
from ottla.model.permissions import Operation, Permission, Resource
from ottla.model.properties import Settings
from ottla.node.node import Node
from ottla.protocol import messages as m
from ottla.protocol.apis import Asks, ListenerType, OfCluster, entrances
from ottla.protocol.codec import Struct
from ottla.protocol.records import NewRecord, build_batch
from tests.support.authorizing import ByFunction
from tests.support.nodes import free_ports
from tests.support.wire import Wire, latest

REFUSED = {
    Errors.TOPIC_AUTHORIZATION_FAILED,
    Errors.GROUP_AUTHORIZATION_FAILED,
    Errors.CLUSTER_AUTHORIZATION_FAILED,
    Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
TOPIC = "secret"
BY_NAME = 12
"""The last version of Fetch that names topics."""


ON_BROKERS = {entrance.api.key: entrance for entrance in entrances(ListenerType.BROKER)}
ON_CONTROLLERS = {entrance.api.key: entrance for entrance in entrances(ListenerType.CONTROLLER)}


class Gate(ByFunction):
    """Lets everybody through until it is shut, and remembers what it was asked."""

    def __init__(self) -> None:
        self.open = True
        self.denied: Operation | None = None
        self.asked: set[Permission] = set()
        self.glanced: set[Permission] = set()
        """What it was asked in passing, for words of an answer among others."""

    def for_client(self, principal: str, host: str, underway: Underway) -> Rights:
        assert (principal, host) == ("User:ANONYMOUS", "127.0.0.1")
        return super().for_client(principal, host, underway)._replace(sees=self.shows)

    def shows(self, operation: Operation, resource: Resource, name: str) -> bool:
        self.glanced.add(Permission(operation, resource))
        return self.open and operation != self.denied

    def allows(self, operation: Operation, resource: Resource, name: str) -> bool:
        self.asked.add(Permission(operation, resource))
        return self.open and operation != self.denied


class Told(NamedTuple):
    """What a node that allows nothing answered, and what its authorizer was asked before."""

    answer: Any
    asked: set[Permission]
    glanced: set[Permission]


def batch() -> bytes:
    return bytes(build_batch([NewRecord(b"k", b"v", 0)]))


def requests(topic_id: bytes) -> dict[int, Any]:
    """One request for each key, about a topic that exists."""
    produce = m.ProduceRequest.TopicProduceData(
        topic_id=topic_id, partition_data=[m.ProduceRequest.PartitionProduceData(0, batch())]
    )
    fetch = m.FetchRequest.FetchTopic(
        topic_id=topic_id, partitions=[m.FetchRequest.FetchPartition(partition=0, partition_max_bytes=1000)]
    )
    offsets = m.ListOffsetsRequest.ListOffsetsTopic(TOPIC, [m.ListOffsetsRequest.ListOffsetsPartition(timestamp=-1)])
    epochs = m.OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
        TOPIC, [m.OffsetForLeaderEpochRequest.OffsetForLeaderPartition(leader_epoch=0)]
    )
    trim = m.DeleteRecordsRequest.DeleteRecordsTopic(TOPIC, [m.DeleteRecordsRequest.DeleteRecordsPartition(0, 0)])
    downgrade = m.UpdateFeaturesRequest.FeatureUpdateKey("group.version", 0, upgrade_type=3)
    incremental = m.IncrementalAlterConfigsRequest
    moves = m.AlterReplicaLogDirsRequest
    return {
        0: m.ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[produce]),
        1: m.FetchRequest(max_bytes=1000, topics=[fetch]),
        2: m.ListOffsetsRequest(replica_id=-1, topics=[offsets]),
        3: m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=TOPIC)]),
        10: m.FindCoordinatorRequest(coordinator_keys=["group"]),
        19: m.CreateTopicsRequest(topics=[m.CreateTopicsRequest.CreatableTopic("other", 1, 1)]),
        20: m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest.DeleteTopicState(name=TOPIC)]),
        21: m.DeleteRecordsRequest(topics=[trim]),
        22: m.InitProducerIdRequest(transactional_id=None),
        23: m.OffsetForLeaderEpochRequest(replica_id=-1, topics=[epochs]),
        32: m.DescribeConfigsRequest(resources=[m.DescribeConfigsRequest.DescribeConfigsResource(2, TOPIC, None)]),
        33: m.AlterConfigsRequest(resources=[m.AlterConfigsRequest.AlterConfigsResource(2, TOPIC, [])]),
        34: m.AlterReplicaLogDirsRequest([moves.AlterReplicaLogDir("/", [moves.AlterReplicaLogDirTopic(TOPIC, [0])])]),
        35: m.DescribeLogDirsRequest(topics=None),
        37: m.CreatePartitionsRequest(topics=[m.CreatePartitionsRequest.CreatePartitionsTopic(TOPIC, 5, None)]),
        44: incremental(resources=[incremental.AlterConfigsResource(2, TOPIC, [])]),
        55: m.DescribeQuorumRequest(),
        57: m.UpdateFeaturesRequest(feature_updates=[downgrade]),
        60: m.DescribeClusterRequest(),
        61: m.DescribeProducersRequest(topics=[m.DescribeProducersRequest.TopicRequest(TOPIC, [0])]),
        74: m.ListConfigResourcesRequest(),
        75: m.DescribeTopicPartitionsRequest(topics=[m.DescribeTopicPartitionsRequest.TopicRequest(TOPIC)]),
    }


def group_requests(topic_id: bytes) -> dict[int, Any]:
    commit = m.OffsetCommitRequest
    fetch = m.OffsetFetchRequest
    committed = commit.OffsetCommitRequestTopic(topic_id=topic_id, partitions=[commit.OffsetCommitRequestPartition()])
    return {
        8: commit("group", topics=[committed]),
        9: fetch(groups=[fetch.OffsetFetchRequestGroup("group", topics=None)]),
        11: m.JoinGroupRequest("group", protocol_type="consumer"),
        12: m.HeartbeatRequest("group"),
        13: m.LeaveGroupRequest("group"),
        14: m.SyncGroupRequest("group", protocol_type="consumer", protocol_name="range"),
        15: m.DescribeGroupsRequest(["group"]),
        42: m.DeleteGroupsRequest(["group"]),
        47: m.OffsetDeleteRequest("group"),
        68: m.ConsumerGroupHeartbeatRequest("group", member_id="me", member_epoch=0, rebalance_timeout_ms=1000),
        69: m.ConsumerGroupDescribeRequest(["group"]),
    }


def transaction_requests() -> dict[int, Any]:
    add = m.AddPartitionsToTxnRequest
    markers = m.WriteTxnMarkersRequest
    commit = m.TxnOffsetCommitRequest
    committed = commit.TxnOffsetCommitRequestTopic(TOPIC, partitions=[commit.TxnOffsetCommitRequestPartition()])
    marked = markers.WritableTxnMarkerTopic(TOPIC, [0])
    return {
        24: add(transactions=[add.AddPartitionsToTxnTransaction("id", 1, 0)]),
        25: m.AddOffsetsToTxnRequest("id", 1, 0, "group"),
        26: m.EndTxnRequest("id", 1, 0, True),
        27: markers(markers=[markers.WritableTxnMarker(1, 0, True, [marked])]),
        28: commit("id", "group", 1, 0, topics=[committed]),
        65: m.DescribeTransactionsRequest(["id"]),
    }


def cluster_requests() -> dict[int, Any]:
    acl = (2, TOPIC, 3, "User:alice", "*", 3, 3)
    scram = m.AlterUserScramCredentialsRequest
    alter = m.AlterClientQuotasRequest
    rate = alter.OpData("producer_byte_rate", 1.0)
    return {
        29: m.DescribeAclsRequest(*acl),
        30: m.CreateAclsRequest([m.CreateAclsRequest.AclCreation(*acl)]),
        31: m.DeleteAclsRequest([m.DeleteAclsRequest.DeleteAclsFilter(*acl)]),
        43: m.ElectLeadersRequest(topic_partitions=None),
        45: m.AlterPartitionReassignmentsRequest(),
        46: m.ListPartitionReassignmentsRequest(topics=None),
        48: m.DescribeClientQuotasRequest(),
        49: alter(entries=[alter.EntryData([alter.EntityData("user", "u")], [rate])]),
        50: m.DescribeUserScramCredentialsRequest(users=None),
        51: scram(upsertions=[scram.ScramCredentialUpsertion("alice", 1, 4096, b"salt", b"salted")]),
        64: m.UnregisterBrokerRequest(broker_id=1),
        80: m.AddRaftVoterRequest(voter_id=9),
        81: m.RemoveRaftVoterRequest(voter_id=9),
    }


LISTS_ONLY_WHAT_ONE_MAY_SEE = {16, 66}
GREETING = 18
ON_CONTROLLER = 1000
"""Added to the key of what a controller's listener was asked."""
BEFORE_ANYTHING = {GREETING, 17, 36}
"""ApiVersions greets anyone; the login is for those who have not said who they are."""
NOT_FOR_STRANGERS = {38, 39, 40, 41}
"""Delegation tokens: who has not logged in is not even asked for permission (test_sasl_tokens.py)."""
ALWAYS_ANSWERED = {*BEFORE_ANYTHING, *NOT_FOR_STRANGERS, 60}
"""DescribeCluster tells only what one had to know to connect, as in Kafka."""


def error_codes(value: object) -> Iterator[int]:
    if isinstance(value, Struct):
        for name in value.FIELDS:
            if name == "error_code":
                yield getattr(value, name)
            else:
                yield from error_codes(getattr(value, name))
    elif isinstance(value, list):
        for item in value:
            yield from error_codes(item)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Any]:
    """Each key's answer from a node that allows nothing."""
    return asyncio.run(ask_everything(tmp_path_factory.mktemp("gated")))


async def ask_everything(directory: Path) -> dict[int, Any]:
    gate = Gate()
    controller = f"127.0.0.1:{free_ports(1)[0]}"
    listeners = f"PLAINTEXT://127.0.0.1:0,CONTROLLER://{controller}"
    settings = Settings.defaults(str(directory), listeners=listeners, ottla_disk_reserve_bytes="0")
    node = Node(settings, gate)
    await node.start()
    try:
        return await asyncio.to_thread(converse, node.bootstrap_servers, controller, gate)
    finally:
        await node.stop()


def told(wire: Wire, gate: Gate, request: Any) -> Told:
    gate.asked.clear()
    gate.glanced.clear()
    answer = wire.ask(request, latest(request.API_KEY))
    return Told(answer, set(gate.asked), set(gate.glanced))


def converse(bootstrap: str, controller: str, gate: Gate) -> dict[int, Any]:
    with Wire(bootstrap) as wire, Wire(controller) as controllers:
        created = wire.ask(m.CreateTopicsRequest(topics=[m.CreateTopicsRequest.CreatableTopic(TOPIC, 1, 1)]))
        gate.open = False
        topic_id = created.topics[0].topic_id
        asked = requests(topic_id) | group_requests(topic_id) | transaction_requests() | cluster_requests()
        found: dict[int, Any] = {key: told(wire, gate, request) for key, request in asked.items()}
        found[16] = told(wire, gate, m.ListGroupsRequest())
        found[66] = told(wire, gate, m.ListTransactionsRequest())
        for key in set(ON_CONTROLLERS) - BEFORE_ANYTHING - NOT_FOR_STRANGERS:
            found[ON_CONTROLLER + key] = told(controllers, gate, asked.get(key) or m.request_class(key)())
        gate.open = True
        found[-1] = wire.ask(m.MetadataRequest(topics=None))
        gate.open = False
        by_id = m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=topic_id)])
        found[-5] = wire.ask(by_id)
        found[-7] = wire.ask(by_name("no-such-topic"), BY_NAME)
        gate.open = True
        gate.denied = Operation.DESCRIBE_CONFIGS
        found[-2] = wire.ask(m.CreateTopicsRequest(topics=[m.CreateTopicsRequest.CreatableTopic("opaque", 1, 1)]))
        gate.denied = Operation.CREATE
        found[-6] = wire.ask(m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="new")]))
        gate.denied = Operation.DELETE
        found[-3] = wire.ask(by_id)
        gate.denied = Operation.CLUSTER_ACTION
        found[-4] = wire.ask(copying(topic_id))
        return found


def by_name(topic: str) -> "m.FetchRequest":
    partition = m.FetchRequest.FetchPartition(partition=0, partition_max_bytes=1000)
    return m.FetchRequest(max_bytes=1000, topics=[m.FetchRequest.FetchTopic(topic, partitions=[partition])])


def copying(topic_id: bytes) -> "m.FetchRequest":
    """A client's fetch in the name of a broker."""
    fetch = requests(topic_id)[1]
    fetch.replica_state = m.FetchRequest.ReplicaState(replica_id=1, replica_epoch=-1)
    assert isinstance(fetch, m.FetchRequest)
    return fetch


@pytest.mark.parametrize("key", sorted(set(ON_BROKERS) - ALWAYS_ANSWERED - LISTS_ONLY_WHAT_ONE_MAY_SEE))
def test_what_is_not_allowed_is_refused_with_the_code_for_it(answers: dict[int, Any], key: int) -> None:
    assert REFUSED & set(error_codes(answers[key].answer)), answers[key]


@pytest.mark.parametrize("key", sorted(set(ON_CONTROLLERS) - BEFORE_ANYTHING - NOT_FOR_STRANGERS))
def test_so_it_is_on_a_controllers_listener(answers: dict[int, Any], key: int) -> None:
    assert REFUSED & set(error_codes(answers[ON_CONTROLLER + key].answer)), answers[ON_CONTROLLER + key]


@pytest.mark.parametrize(
    ("at", "needs"),
    [(key, entrance.needs) for key, entrance in ON_BROKERS.items() if key not in ALWAYS_ANSWERED]
    + [
        (ON_CONTROLLER + key, entrance.needs)
        for key, entrance in ON_CONTROLLERS.items()
        if key not in ALWAYS_ANSWERED or key == 60
    ],
)
def test_a_request_needs_what_its_row_says(answers: dict[int, Any], at: int, needs: Asks | OfCluster) -> None:
    _, asked, glanced = answers[at]
    if isinstance(needs, OfCluster):
        assert asked | glanced == set(needs.any_of)
    elif at in LISTS_ONLY_WHAT_ONE_MAY_SEE:
        assert asked | glanced <= set(needs.permissions)  # there is nothing to be seen yet
    else:
        assert asked
        assert asked <= set(needs.permissions)


def test_groups_and_transactions_one_may_not_see_are_not_listed(answers: dict[int, Any]) -> None:
    assert (answers[16].answer.groups, answers[66].answer.transaction_states) == ([], [])


def test_nothing_was_done_for_those_who_may_do_nothing(answers: dict[int, Any]) -> None:
    topics = {topic.name: len(topic.partitions) for topic in answers[-1].topics}
    assert topics == {TOPIC: 1}


def test_a_topic_one_may_not_see_is_told_apart_from_none_by_nobody(answers: dict[int, Any]) -> None:
    (topic,) = answers[3].answer.topics
    assert (topic.topic_id, topic.partitions) == (bytes(16), [])


def test_nor_by_a_fetch_that_names_it(answers: dict[int, Any]) -> None:
    ((partition,),) = [topic.partitions for topic in answers[-7].responses]
    assert partition.error_code == Errors.TOPIC_AUTHORIZATION_FAILED


def test_who_may_create_a_topic_but_not_look_at_its_settings_is_told_its_id_only(answers: dict[int, Any]) -> None:
    (created,) = answers[-2].topics
    assert (created.error_code, created.num_partitions, created.configs) == (0, -1, [])
    assert created.topic_config_error_code == Errors.TOPIC_AUTHORIZATION_FAILED
    assert any(created.topic_id)


def test_who_may_not_create_a_topic_is_told_so_when_it_would_be_created(answers: dict[int, Any]) -> None:
    (topic,) = answers[-6].topics
    assert (topic.name, topic.error_code) == ("new", Errors.TOPIC_AUTHORIZATION_FAILED)


def test_who_may_see_a_topic_but_not_delete_it_is_told_its_name(answers: dict[int, Any]) -> None:
    (result,) = answers[-3].responses
    assert (result.name, result.error_code) == (TOPIC, Errors.TOPIC_AUTHORIZATION_FAILED)


def test_a_topic_one_may_not_see_is_not_named_by_its_id(answers: dict[int, Any]) -> None:
    assert answers[-5].responses[0].name is None


def test_who_may_read_a_topic_may_not_copy_it_as_a_broker_does(answers: dict[int, Any]) -> None:
    """Else a client would read what is not committed, and its leader would wait for it."""
    ((partition,),) = [topic.partitions for topic in answers[-4].responses]
    assert (partition.error_code, partition.records) == (Errors.TOPIC_AUTHORIZATION_FAILED, b"")
