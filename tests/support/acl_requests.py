"""A request for every API that asks for a permission, about things that are there and things that are not.

Whatever it is allowed, it changes nothing that a later request could see: topics are only tried, producers and members
are unknown, and what is written lies the same on both servers.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ottla.protocol import messages as m
from ottla.protocol.apis import API
from ottla.protocol.batch import TRANSACTIONAL
from ottla.protocol.codec import Message
from tests.support.patience import PATIENCE_MS
from tests.support.requests import NOON, batch
from tests.support.wire import latest

ONE, TWO, NONE = "one", "two", "none"
"""Two topics, and one that does not exist."""
GROUP, NO_GROUP = "g-one", "g-two"
TRANSACTION = "x-one"
BY_NAME_PRODUCE, BY_NAME_FETCH = 12, 12


class Asked(NamedTuple):
    label: str
    request: Message
    version: int


class Ids(NamedTuple):
    one: bytes
    two: bytes


def asked(label: str, request: Message, version: int | None = None) -> Asked:
    return Asked(label, request, latest(request.API_KEY) if version is None else version)


def requests(ids: Ids, *, may_delete: bool = False) -> Iterator[Asked]:
    """`may_delete`: there may be a right to delete the topics that all of this is about, so it is not tried."""
    yield from _records(ids)
    yield from _metadata(ids)
    yield from _groups(ids)
    yield from _transactions()
    yield from _topics(ids, may_delete)
    yield from _cluster()


def _records(ids: Ids) -> Iterator[Asked]:
    data = m.ProduceRequest.PartitionProduceData
    topic = m.ProduceRequest.TopicProduceData
    named = [topic(name=name, partition_data=[data(0, batch(start=NOON))]) for name in (ONE, TWO, NONE)]
    yield asked("produce: by name", m.ProduceRequest(None, -1, 5000, named), BY_NAME_PRODUCE)
    by_id = [topic(topic_id=each, partition_data=[data(0, batch(start=NOON))]) for each in (*ids, bytes(range(16)))]
    yield asked("produce: by id", m.ProduceRequest(None, -1, 5000, by_id))
    transactional = batch(start=NOON, producer_id=4711, producer_epoch=0, base_sequence=5, attributes=TRANSACTIONAL)
    for label, name in (("with", TRANSACTION), ("without", None)):
        within = [topic(name=ONE, partition_data=[data(0, transactional)])]
        yield asked(f"produce: transactional {label} an id", m.ProduceRequest(name, -1, 5000, within), BY_NAME_PRODUCE)
    fetched = m.FetchRequest.FetchTopic
    place = [m.FetchRequest.FetchPartition(partition=0, partition_max_bytes=1000)]
    yield asked(
        "fetch: by name",
        m.FetchRequest(max_bytes=1000, topics=[fetched(name, partitions=place) for name in (ONE, TWO, NONE)]),
        BY_NAME_FETCH,
    )
    by_id_fetch = [fetched(topic_id=each, partitions=place) for each in (*ids, bytes(range(16)))]
    yield asked("fetch: by id", m.FetchRequest(max_bytes=1000, topics=by_id_fetch))
    follower = m.FetchRequest(max_bytes=1000, topics=by_id_fetch)
    follower.replica_state = m.FetchRequest.ReplicaState(replica_id=7, replica_epoch=-1)
    yield asked("fetch: as a follower", follower)
    offsets = m.ListOffsetsRequest
    places = [offsets.ListOffsetsPartition(0, -1, -2)]
    yield asked("offsets", offsets(-1, 0, [offsets.ListOffsetsTopic(name, places) for name in (ONE, TWO, NONE)]))
    epochs = m.OffsetForLeaderEpochRequest
    of = [epochs.OffsetForLeaderPartition(0, -1, 0)]
    yield asked("epochs", epochs(-1, [epochs.OffsetForLeaderTopic(name, of) for name in (ONE, TWO, NONE)]))
    trim = m.DeleteRecordsRequest
    to = [trim.DeleteRecordsPartition(0, 0)]
    yield asked("trim", trim([trim.DeleteRecordsTopic(name, to) for name in (ONE, TWO, NONE)], 5000))
    producers = m.DescribeProducersRequest
    yield asked("producers", producers([producers.TopicRequest(name, [0]) for name in (ONE, TWO, NONE)]))


def _metadata(ids: Ids) -> Iterator[Asked]:
    kind = m.MetadataRequest
    named = [kind.MetadataRequestTopic(name=name) for name in (ONE, TWO, NONE)]
    by_id = [kind.MetadataRequestTopic(topic_id=each, name=None) for each in (*ids, bytes(range(16)))]
    for label, topics in (("all", None), ("named", named), ("by id", by_id)):
        request = kind(topics, allow_auto_topic_creation=False, include_topic_authorized_operations=True)
        yield asked(f"metadata: {label}", request, 12)
    clusters = kind([], include_cluster_authorized_operations=True)
    yield asked("metadata: of the cluster", clusters, 8)
    pages = m.DescribeTopicPartitionsRequest
    for label, names in (("all", ()), ("named", (ONE, TWO, NONE))):
        yield asked(f"pages: {label}", pages([pages.TopicRequest(name) for name in names], 2000, None))
    yield asked("cluster", m.DescribeClusterRequest(include_cluster_authorized_operations=True))


def _groups(ids: Ids) -> Iterator[Asked]:
    commit = m.OffsetCommitRequest
    place = [commit.OffsetCommitRequestPartition(0, 1)]
    topics = [commit.OffsetCommitRequestTopic(name=name, partitions=place) for name in (ONE, TWO, NONE)]
    yield asked("commit: by name", commit(GROUP, -1, "", None, -1, topics), 9)
    by_id = [commit.OffsetCommitRequestTopic(topic_id=each, partitions=place) for each in (*ids, bytes(range(16)))]
    yield asked("commit: by id", commit(GROUP, -1, "", None, -1, by_id))
    fetch = m.OffsetFetchRequest
    for label, named in (("all", None), ("named", (ONE, TWO, NONE))):
        of = None if named is None else [fetch.OffsetFetchRequestTopics(name, partition_indexes=[0]) for name in named]
        groups = [fetch.OffsetFetchRequestGroup(group, topics=of) for group in (GROUP, NO_GROUP)]
        yield asked(f"committed: {label}", fetch(groups=groups), 9)
    for label, kind, keys in (
        ("groups", 0, [GROUP, NO_GROUP]),
        ("transactions", 1, [TRANSACTION, "x-two"]),
        ("shares", 2, []),
    ):
        yield asked(f"find: {label}", m.FindCoordinatorRequest("", kind, keys))
    protocols = [m.JoinGroupRequest.JoinGroupRequestProtocol("range", b"")]
    for group in (GROUP, NO_GROUP):
        yield asked(f"join: {group}", m.JoinGroupRequest(group, 10_000, 10_000, "who", None, "consumer", protocols))
        yield asked(f"beat: {group}", m.HeartbeatRequest(group, 3, "who"))
        leaving = m.LeaveGroupRequest.MemberIdentity("who")
        yield asked(f"leave: {group}", m.LeaveGroupRequest(group, members=[leaving]))
        yield asked(f"sync: {group}", m.SyncGroupRequest(group, 3, "who", None, "consumer", "range"))
        beat = m.ConsumerGroupHeartbeatRequest
        for label, names, pattern in (("names", [ONE, TWO], None), ("nothing", None, None)):
            request = beat(group, "who", 3, subscribed_topic_names=names, subscribed_topic_regex=pattern)
            yield asked(f"consumer beats with {label}: {group}", request)
    yield asked("groups: classic", m.DescribeGroupsRequest([GROUP, NO_GROUP], True))
    yield asked("groups: consumer", m.ConsumerGroupDescribeRequest([GROUP, NO_GROUP], True))
    yield asked("groups: all", m.ListGroupsRequest())
    yield asked("groups: delete", m.DeleteGroupsRequest([NO_GROUP]))
    forget = m.OffsetDeleteRequest
    of_group = [forget.OffsetDeleteRequestTopic(name, [forget.OffsetDeleteRequestPartition(9)]) for name in (ONE, NONE)]
    yield asked("groups: forget", forget(GROUP, of_group))


def _transactions() -> Iterator[Asked]:
    init = m.InitProducerIdRequest
    yield asked("producer id", init(None, 60_000))
    yield asked("producer id: of a transaction", init("x-two", 60_000), 5)
    add = m.AddPartitionsToTxnRequest
    topics = [add.AddPartitionsToTxnTopic(name, [0]) for name in (ONE, TWO, NONE, "__consumer_offsets")]
    old = add(
        v3_and_below_transactional_id=TRANSACTION,
        v3_and_below_producer_id=4711,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=topics,
    )
    yield asked("add partitions", old, 3)
    batched = add([add.AddPartitionsToTxnTransaction(TRANSACTION, 4711, 0, True, topics[:1])])
    yield asked("add partitions: as a broker", batched)
    yield asked("add offsets", m.AddOffsetsToTxnRequest(TRANSACTION, 4711, 0, GROUP))
    yield asked("end", m.EndTxnRequest(TRANSACTION, 4711, 0, True), 4)
    commit = m.TxnOffsetCommitRequest
    place = [commit.TxnOffsetCommitRequestPartition(0, 1)]
    offsets = [commit.TxnOffsetCommitRequestTopic(name, place) for name in (ONE, TWO, NONE)]
    yield asked("commit in a transaction", commit(TRANSACTION, GROUP, 4711, 0, topics=offsets), 4)
    markers = m.WriteTxnMarkersRequest
    marked = markers.WritableTxnMarkerTopic(NONE, [0])
    yield asked("markers", markers([markers.WritableTxnMarker(4711, 0, True, [marked], 0)]))
    yield asked("transactions: describe", m.DescribeTransactionsRequest([TRANSACTION, "x-none"]))
    yield asked("transactions: all", m.ListTransactionsRequest())


def _topics(ids: Ids, may_delete: bool) -> Iterator[Asked]:
    create = m.CreateTopicsRequest
    new = [create.CreatableTopic(name, 1, 1) for name in (ONE, TWO, NONE)]
    yield asked("create", create(new, 5000, True))
    delete = m.DeleteTopicsRequest
    gone = [delete.DeleteTopicState(NONE), delete.DeleteTopicState(None, bytes(range(16)))]
    yield asked("delete: what is not there", delete(gone, timeout_ms=PATIENCE_MS))
    if not may_delete:
        there = [delete.DeleteTopicState(ONE), delete.DeleteTopicState(None, ids.two)]
        yield asked("delete", delete(there, timeout_ms=PATIENCE_MS))
    grow = m.CreatePartitionsRequest
    yield asked("grow", grow([grow.CreatePartitionsTopic(name, 3, None) for name in (ONE, TWO, NONE)], 5000, True))


CONFIGS = ((2, ONE), (2, TWO), (2, NONE), (4, "1"), (32, GROUP), (16, "m-one"))
"""Topics, the broker, a group, a subscription."""


def _cluster() -> Iterator[Asked]:
    describe = m.DescribeConfigsRequest
    wanted = [describe.DescribeConfigsResource(kind, name, ["retention.ms"]) for kind, name in (*CONFIGS, (8, "1"))]
    yield asked("settings: describe", describe(wanted))
    alter = m.AlterConfigsRequest
    kept = [alter.AlterConfigsResource(2, name, [alter.AlterableConfig("retention.ms", "-1")]) for name in (ONE, TWO)]
    yield asked("settings: replace", alter(kept, True))
    change = m.IncrementalAlterConfigsRequest
    one = [change.AlterableConfig("retention.ms", 0, "-1")]
    changed = [change.AlterConfigsResource(2, name, one) for name in (ONE, TWO, NONE)]
    changed.append(change.AlterConfigsResource(4, "1", [change.AlterableConfig("log.cleaner.threads", 0, "1")]))
    changed.append(change.AlterConfigsResource(32, GROUP, [change.AlterableConfig("consumer.session.timeout.ms", 1)]))
    yield asked("settings: change", change(changed, True))
    yield asked("settings: whose", m.ListConfigResourcesRequest([32]))
    yield asked("directories", m.DescribeLogDirsRequest([]))
    elect = m.ElectLeadersRequest
    yield asked("elect", elect(0, [elect.TopicPartitions(NONE, [0])], 5000))
    yield asked("reassign", m.AlterPartitionReassignmentsRequest(5000, topics=[]))
    yield asked("reassignments", m.ListPartitionReassignmentsRequest(5000, None))
    quorum = m.DescribeQuorumRequest
    log = [quorum.TopicData("__cluster_metadata", [quorum.PartitionData(0)])]
    yield asked("quorum", quorum(log))
    features = m.UpdateFeaturesRequest
    yield asked("features", features(5000, [features.FeatureUpdateKey("no.such.feature", 1)], True))
    yield asked("unregister", m.UnregisterBrokerRequest(99))
    yield asked("acls: describe", m.DescribeAclsRequest(2, "no-such", 3, None, None, 1, 1))
    yield asked("acls: create", m.CreateAclsRequest([m.CreateAclsRequest.AclCreation(2, "", 3, "User:x", "*", 3, 3)]))
    yield asked(
        "acls: delete",
        m.DeleteAclsRequest([m.DeleteAclsRequest.DeleteAclsFilter(2, "no-such", 3, None, None, 1, 1)]),
    )
    yield from _users()


def _users() -> Iterator[Asked]:
    describe = m.DescribeUserScramCredentialsRequest
    # Somebody by name: to a refused question for all, Kafka never answers.
    yield asked("users: describe", describe([describe.UserName("nobody")]))
    alter = m.AlterUserScramCredentialsRequest
    yield asked("users: alter", alter([alter.ScramCredentialDeletion("nobody", 1)], []))
    yield asked("tokens: create", m.CreateDelegationTokenRequest())
    yield asked("tokens: describe", m.DescribeDelegationTokenRequest(None))
    yield asked("tokens: renew", m.RenewDelegationTokenRequest(b"x", 1))
    yield asked("tokens: expire", m.ExpireDelegationTokenRequest(b"x", 1))
    quotas = m.DescribeClientQuotasRequest
    if API[quotas.API_KEY].served is not None:
        yield asked("quotas: describe", quotas([], False))
        yield asked("quotas: alter", m.AlterClientQuotasRequest([], True))
