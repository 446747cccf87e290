"""Conversations with a server, written down so that two servers can be compared.

A conversation is a generator: it yields steps and is sent the answer to each. What it may not depend on are names, ids,
ports and times: `Notes` writes answers down with those replaced.
"""

import re
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from ottla.model.errors import Errors
from ottla.protocol import messages as m
from ottla.protocol.codec import Message, Struct
from tests.support.patience import PATIENCE_MS
from tests.support.requests import (
    NAMED_FETCH,
    NAMED_PRODUCE,
    batch,
    create_topic_request,
    fetch_partition,
    fetch_request,
    produce_request,
    records_in,
    settle,
    wait_for_topic,
)
from tests.support.wire import Closed, Deadline, Wire, versions


class Step(NamedTuple):
    label: str
    request: Message
    version: int


Conversation = Generator[Step, Any, None]
Note = tuple[str, Any]
"""A step's label and its answer as plain values."""

UNKNOWN_ID = bytes(range(16))
UNWRITTEN = "not written down"
TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
CHANGES_METADATA = (19, 20, 33, 37, 44, 57)
KEPT = {"retention.ms": "-1"}
"""The records are of 2023: Kafka looks for what is too old to keep half a minute after its start."""


class Notes:
    """Answers as plain values, without what has to differ between two servers."""

    def __init__(self, prefix: str, wire: Wire) -> None:
        cluster = wire.ask(m.DescribeClusterRequest())
        (directory,) = wire.ask(m.DescribeLogDirsRequest(topics=[])).results
        self._prefix = prefix
        self._words = {directory.log_dir: "<dir>", prefix: "T", cluster.cluster_id: "<cluster>"}

    # Values that are different on any two servers, or between two moments: only their kind is kept.
    _VOLATILE = frozenset(
        [
            *("port", "topic_id", "log_dir", "producer_id", "session_id", "finalized_features_epoch"),
            *("total_bytes", "usable_bytes", "log_end_offset", "log_append_time_ms"),
            *("last_timestamp", "last_fetch_timestamp", "last_caught_up_timestamp", "transaction_start_time_ms"),
        ]
    )
    _VOLATILE_OF_QUORUM = frozenset(["high_watermark", "leader_epoch"])
    _PROSE = frozenset(["error_message", "batch_index_error_message", "documentation"])

    def plain(self, value: Any, field: str = "", within: str = "") -> Any:
        if isinstance(value, Struct):
            return self._struct(value)
        if isinstance(value, list):
            items = [self.plain(item, field, within) for item in value]
            return sorted(items, key=repr)
        if field in self._VOLATILE or (within == "DescribeQuorumResponse" and field in self._VOLATILE_OF_QUORUM):
            return _kind(value)
        if field in self._PROSE:
            return value if not value else "<text>"
        if field == "records":
            return [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in records_in(value)]
        if isinstance(value, str):
            return self._text(value)
        return value

    def _struct(self, struct: Struct) -> dict[str, Any]:
        within = type(struct).__qualname__.split(".")[0]
        if isinstance(struct, m.ListGroupsResponse):
            struct.groups = [group for group in struct.groups if group.group_id.startswith(self._prefix)]
        return {name: self.plain(getattr(struct, name), name, within) for name in struct.FIELDS}

    def _text(self, value: str) -> str:
        for word, stand_in in self._words.items():
            value = value.replace(word, stand_in)
        value = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uuid>", value)
        return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:<port>", value)


def _kind(value: Any) -> str:
    if isinstance(value, bytes):
        return "<no id>" if value == bytes(16) else "<unknown id>" if value == UNKNOWN_ID else "<id>"
    if isinstance(value, int):
        return "<negative>" if value < 0 else "<number>"
    return f"<{type(value).__name__}>"


def _answered(wire: Wire, step: Step) -> Any:
    """A coordinator that is still reading its log says so: on a busy machine, to any first request."""
    deadline = Deadline(f"an answer to {step.label}")
    while True:
        answer = wire.ask(step.request, step.version)
        if getattr(answer, "error_code", 0) != Errors.COORDINATOR_LOAD_IN_PROGRESS:
            return answer
        deadline.check(answer)


def hold(bootstrap: str, conversation: Callable[[Wire, str], Conversation], prefix: str) -> list[Note]:
    """Holds the conversation with a server and writes down what it said."""
    wire = Wire(bootstrap)
    notes = Notes(prefix, wire)
    talk = conversation(wire, prefix)
    written: list[Note] = []
    try:
        step = next(talk)
        while True:
            label = f"{step.label} v{step.version}"
            try:
                answer = _answered(wire, step)
            except Closed:
                written.append((label, "closed"))
                break
            if step.label != UNWRITTEN:
                written.append((label, notes.plain(answer)))
            if step.request.API_KEY in CHANGES_METADATA:
                settle(wire)
            step = talk.send(answer)
    except StopIteration:
        pass
    finally:
        wire.__exit__(None, None, None)
    return written


def topics(wire: Wire, t: str) -> Conversation:
    """CreateTopics, DeleteTopics, CreatePartitions."""
    creation = m.CreateTopicsRequest

    def create(label: str, *wanted: Any, version: int = 7, validate: bool = False) -> Step:
        request = creation(topics=list(wanted), timeout_ms=PATIENCE_MS, validate_only=validate)
        return Step(f"create: {label}", request, version)

    def assigned(replicas: list[tuple[int, list[int]]], partitions: int = -1) -> Any:
        rows = [creation.CreatableReplicaAssignment(partition_index=i, broker_ids=ids) for i, ids in replicas]
        return creation.CreatableTopic(
            name=f"{t}assigned", num_partitions=partitions, replication_factor=-1, assignments=rows
        )

    new = create_topic_request
    yield create("defaults, only validated", new(f"{t}dry", -1, None, -1), validate=True)
    for version in versions(19):
        yield create("plain", new(f"{t}v{version}", 2, {"retention.ms": "77777777"}), version=version)
    yield create("there already", new(f"{t}v7"))
    for count in (0, -2):
        yield create(f"{count} partitions", new(f"{t}n", count))
    for factor in (0, -2, 2):
        yield create(f"replication factor {factor}", new(f"{t}n", 1, None, factor))
    yield create("bad names", new(""), new("."), new(".."), new("a" * 250), new("a b"), new("ž"), validate=True)
    yield create("the longest name", new("a" * 249), validate=True)
    yield create("one name twice", new(f"{t}dup"), new(f"{t}dup"), new(f"{t}beside"))
    yield create("a config without value", new(f"{t}n", 1, {"retention.ms": None}))
    yield create("an unknown config", new(f"{t}n", 1, {"no.such": "1"}))
    yield create("a config out of range", new(f"{t}n", 1, {"retention.ms": "-2"}))
    yield create("a name with dots", new(f"{t}x.y"))
    yield create("the same but for a dot", new(f"{t}x_y"))
    yield create("assigned", assigned([(0, [1]), (1, [1])]))
    yield create("assigned, broker unknown", assigned([(0, [9])]))
    yield create("assigned, not from 0", assigned([(1, [1])]))
    yield create("assigned, a broker twice", assigned([(0, [1, 1])]))
    yield create("assigned, to nobody", assigned([(0, [])]))
    yield create("assigned, with a hole", assigned([(0, [1]), (2, [1])]))
    yield create("assigned, one partition twice", assigned([(0, [1]), (0, [1])]))
    yield create("assigned, with a count", assigned([(0, [1])], partitions=3))

    wait_for_topic(wire, f"{t}assigned", 2)
    yield from _deletions(wire, t)
    yield from _partitions(wire, t)


def _deletions(wire: Wire, t: str) -> Conversation:
    deletion = m.DeleteTopicsRequest
    state = deletion.DeleteTopicState

    def delete(label: str, *states: Any) -> Step:
        return Step(f"delete: {label}", deletion(topics=list(states), timeout_ms=PATIENCE_MS), 6)

    for version in range(1, 6):
        names = [f"{t}v{version + 1}", f"{t}never"]
        yield Step("delete: one there, one not", deletion(topic_names=names, timeout_ms=PATIENCE_MS), version)
    seventh = wait_for_topic(wire, f"{t}v7", 2)
    yield delete("by id", state(name=None, topic_id=seventh), state(name=None, topic_id=UNKNOWN_ID))
    beside = wait_for_topic(wire, f"{t}beside")
    yield delete("by name and id", state(name=f"{t}beside", topic_id=beside))
    yield delete("one name twice", state(name=f"{t}beside"), state(name=f"{t}beside"))
    yield delete("by name, and by id", state(name=f"{t}beside"), state(name=None, topic_id=beside))
    yield delete("by neither", state(name=None))
    yield delete("at last", state(name=f"{t}beside"))


def _partitions(wire: Wire, t: str) -> Conversation:
    creation = m.CreatePartitionsRequest

    def grow(label: str, *wanted: tuple[str, int, Any], version: int = 3, validate: bool = False) -> Step:
        rows = [
            creation.CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=ids and [creation.CreatePartitionsAssignment(broker_ids=i) for i in ids],
            )
            for name, count, ids in wanted
        ]
        return Step(f"grow: {label}", creation(topics=rows, timeout_ms=PATIENCE_MS, validate_only=validate), version)

    name = f"{t}assigned"
    for version in versions(37):
        yield grow("one there, one not", (name, 3 + version, None), (f"{t}never", 2, None), version=version)
    yield grow("only validated", (name, 10, None), validate=True)
    for count in (2, 6, 0, -1):
        yield grow(f"to {count}", (name, count, None))
    yield grow("with assignments", (name, 8, [[1], [1]]))
    yield grow("with too few assignments", (name, 10, [[1]]))
    yield grow("to an unknown broker", (name, 9, [[7]]))
    yield grow("one topic twice", (name, 50, None), (name, 51, None))
    wait_for_topic(wire, name, 8)
    yield from _described(t)


def _described(t: str) -> Conversation:
    description = m.DescribeTopicPartitionsRequest

    def describe(label: str, names: list[str], limit: int = 2000, cursor: tuple[str, int] | None = None) -> Step:
        request = description(
            topics=[description.TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=None if cursor is None else description.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        )
        return Step(f"describe: {label}", request, 0)

    name = f"{t}assigned"
    yield describe("there, not there, impossible", [name, f"{t}never", "bad/"])
    yield describe("two partitions", [name], 2)
    yield describe("from a cursor", [name], 2, (name, 3))
    yield describe("to the end", [name], 20, (name, 3))
    yield describe("no partitions", [name, f"{t}x.y"], 0)
    yield describe("a negative limit", [name], -1)
    yield describe("a cursor behind all topics", [name], 2, ("zzzz", 0))
    yield describe("a cursor behind all partitions", [name], 2, (name, 99))
    yield describe("a negative cursor", [name], 2, (name, -1))
    yield describe("one name twice", [name, name])


def configs(wire: Wire, t: str) -> Conversation:
    """DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""
    yield Step(
        "create",
        m.CreateTopicsRequest(
            topics=[create_topic_request(f"{t}c", 1, {"retention.ms": "1234567"})], timeout_ms=PATIENCE_MS
        ),
        7,
    )
    wait_for_topic(wire, f"{t}c")
    name = f"{t}c"
    for version in versions(32):
        label = "describe: topic, partly, unknown, impossible"
        yield describe(label, (TOPIC, name, ["retention.ms", "no.such"]), (TOPIC, f"{t}never", None), version=version)
    yield describe("describe: a topic, all of it", (TOPIC, name, None))
    yield describe("describe: no synonyms", (TOPIC, name, ["retention.ms", "cleanup.policy"]), synonyms=False)
    yield describe("describe: nothing of a topic", (TOPIC, name, []))
    yield describe("describe: a broker, all of it", (BROKER, "1", None))
    yield describe("describe: all brokers", (BROKER, "", None))
    yield describe("describe: other types", (BROKER, "7", None), (BROKER, "abc", None), (0, "", None), (77, "q", None))
    yield describe("describe: no name", (TOPIC, "", None))
    yield describe("describe: client metrics and groups", (METRICS, f"{t}m", None), (GROUP, f"{t}g", None))

    yield from _alterations(t)
    yield from _changes(t)
    yield from _broker_changes(t)
    yield from _other_changes(t)


def _alterations(t: str) -> Conversation:
    name = f"{t}c"
    for version in versions(33):
        yield alter("alter: one there, one not", (TOPIC, name, {"retention.ms": "99"}), (TOPIC, f"{t}never", {}),
                    version=version)  # fmt: skip
    yield alter("alter: invalid", (TOPIC, name, {"retention.ms": "x"}))
    yield alter("alter: unknown", (TOPIC, name, {"no.such": "x"}))
    yield alter("alter: null", (TOPIC, name, {"retention.ms": None}))
    yield alter("alter: read-only of a broker", (BROKER, "1", {"num.partitions": "3"}))
    yield alter("alter: all away", (TOPIC, name, {}))
    yield describe("describe: after", (TOPIC, name, ["retention.ms"]))


def _changes(t: str) -> Conversation:
    name = f"{t}c"
    for version in versions(44):
        yield change("change: set", (TOPIC, name, [("retention.ms", SET, "5000")]), version=version)
    yield change("change: append", (TOPIC, name, [("cleanup.policy", APPEND, "compact")]))
    yield change("change: append what is there", (TOPIC, name, [("cleanup.policy", APPEND, "compact")]))
    yield describe("describe: appended", (TOPIC, name, ["cleanup.policy"]))
    yield change("change: subtract", (TOPIC, name, [("cleanup.policy", SUBTRACT, "delete")]))
    yield describe("describe: subtracted", (TOPIC, name, ["cleanup.policy"]))
    yield change("change: subtract what is not there", (TOPIC, name, [("cleanup.policy", SUBTRACT, "delete")]))
    for operation in (APPEND, SUBTRACT):
        yield change(f"change: {operation} on a number", (TOPIC, name, [("retention.ms", operation, "5")]))
    yield change("change: delete", (TOPIC, name, [("retention.ms", DELETE, None), ("cleanup.policy", DELETE, "x")]))
    yield change("change: delete an unknown one", (TOPIC, name, [("no.such", DELETE, None)]))
    yield describe("describe: deleted", (TOPIC, name, ["retention.ms", "cleanup.policy"]))
    yield change("change: null", (TOPIC, name, [("retention.ms", SET, None)]))
    yield change("change: repeated", (TOPIC, name, [("cleanup.policy", SET, "compact,delete,compact")]))
    yield describe("describe: repeated", (TOPIC, name, ["cleanup.policy"]))
    yield change("change: append repeatedly", (TOPIC, name, [("cleanup.policy", APPEND, "delete, delete")]))
    yield describe("describe: appended repeatedly", (TOPIC, name, ["cleanup.policy"]))
    yield change("change: the list back", (TOPIC, name, [("cleanup.policy", DELETE, None)]))
    yield change("change: append null", (TOPIC, name, [("cleanup.policy", APPEND, None)]))
    yield change("change: empty", (TOPIC, name, [("retention.ms", SET, "")]))
    yield change("change: one key twice", (TOPIC, name, [("retention.ms", SET, "5"), ("retention.ms", SET, "6")]))
    yield change("change: one topic twice", (TOPIC, name, []), (TOPIC, name, []))
    yield change("change: unknown topic", (TOPIC, f"{t}never", [("retention.ms", SET, "5")]))
    yield change("change: unknown config", (TOPIC, name, [("no.such", SET, "5")]))
    yield change("change: only validated", (TOPIC, name, [("retention.ms", SET, "5")]), validate=True)
    yield describe("describe: unchanged", (TOPIC, name, ["retention.ms"]))
    yield change("change: unknown type", (77, "q", []))


def _broker_changes(t: str) -> Conversation:
    name = f"{t}c"
    yield change("change: a broker, read-only", (BROKER, "1", [("num.partitions", SET, "5")]))
    yield change("change: a broker", (BROKER, "1", [("log.retention.ms", SET, "5000000")]))
    yield change("change: all brokers", (BROKER, "", [("log.retention.ms", SET, "50000000")]))
    yield change("change: another broker", (BROKER, "9", [("log.retention.ms", SET, "5")]))
    yield change("change: nobody may connect", (BROKER, "1", [("max.connections", SET, "0")]))
    yield change("change: no broker", (BROKER, "abc", [("log.retention.ms", SET, "5")]))
    yield change("change: what only all brokers share", (BROKER, "", [("listeners", SET, "PLAINTEXT://:1")]))
    yield from _taken_up(BROKER, "1", "log.retention.ms", "5000000")
    yield describe("describe: dynamic", (BROKER, "1", ["log.retention.ms", "num.partitions", "no.such"]))
    yield describe("describe: dynamic default", (BROKER, "", None))
    yield describe("describe: topic inherits", (TOPIC, name, ["retention.ms"]))
    yield change("change: brokers back", (BROKER, "1", [("log.retention.ms", DELETE, None)]),
                 (BROKER, "", [("log.retention.ms", DELETE, None)]))  # fmt: skip


def _other_changes(t: str) -> Conversation:
    yield change("change: client metrics", (METRICS, f"{t}m", [("interval.ms", SET, "1000")]))
    yield change("change: client metrics, invalid", (METRICS, f"{t}m", [("interval.ms", SET, "1")]))
    yield change("change: group", (GROUP, f"{t}g", [("consumer.session.timeout.ms", SET, "50000")]))
    yield from _taken_up(GROUP, f"{t}g", "consumer.session.timeout.ms", "50000")
    yield describe("describe: set ones", (METRICS, f"{t}m", None), (GROUP, f"{t}g", None))

    for types in ([16], [32], [4], [16, 32]):
        yield Step(f"resources: {types}", m.ListConfigResourcesRequest(resource_types=types), 1)
    yield Step("resources", m.ListConfigResourcesRequest(), 0)
    yield Step("resources: unknown", m.ListConfigResourcesRequest(resource_types=[0]), 1)
    yield change("change: back", (METRICS, f"{t}m", [("interval.ms", DELETE, None)]),
                 (GROUP, f"{t}g", [("consumer.session.timeout.ms", DELETE, None)]))  # fmt: skip


def _taken_up(kind: int, name: str, key: str, value: str) -> Conversation:
    """Kafka's brokers go by a setting a moment after they have heard of it."""
    deadline = Deadline(f"{key}={value} of {name}")
    while True:
        (result,) = (yield describe(UNWRITTEN, (kind, name, [key]))).results
        if [config.value for config in result.configs] == [value]:
            return
        deadline.check(result)


def describe(
    label: str, *resources: tuple[int, str, list[str] | None], version: int = 4, synonyms: bool = True
) -> Step:
    request = m.DescribeConfigsRequest(
        resources=[
            m.DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=keys
            )
            for kind, name, keys in resources
        ],
        include_synonyms=synonyms,
        include_documentation=version >= 3,
    )
    return Step(label, request, version)


def alter(
    label: str, *resources: tuple[int, str, dict[str, str | None]], version: int = 2, validate: bool = False
) -> Step:
    kind_of = m.AlterConfigsRequest
    rows = [
        kind_of.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[kind_of.AlterableConfig(name=key, value=value) for key, value in changes.items()],
        )
        for kind, name, changes in resources
    ]
    return Step(label, kind_of(resources=rows, validate_only=validate), version)


def change(
    label: str, *resources: tuple[int, str, list[tuple[str, int, str | None]]], version: int = 1, validate: bool = False
) -> Step:
    kind_of = m.IncrementalAlterConfigsRequest
    rows = [
        kind_of.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                kind_of.AlterableConfig(name=key, config_operation=operation, value=value)
                for key, operation, value in changes
            ],
        )
        for kind, name, changes in resources
    ]
    return Step(label, kind_of(resources=rows, validate_only=validate), version)


def cluster(wire: Wire, t: str) -> Conversation:
    """DescribeCluster, DescribeQuorum, UpdateFeatures, FindCoordinator, InitProducerId, ApiVersions."""
    for version in versions(60):
        yield Step("cluster", m.DescribeClusterRequest(include_cluster_authorized_operations=True), version)
    for endpoint in (2, 9):
        yield Step(f"cluster: endpoint {endpoint}", m.DescribeClusterRequest(endpoint_type=endpoint), 2)
    yield Step("cluster: fenced too", m.DescribeClusterRequest(include_fenced_brokers=True), 2)

    quorum = m.DescribeQuorumRequest
    for name in ("__cluster_metadata", "other"):
        for version in versions(55):
            part = quorum.TopicData(topic_name=name, partitions=[quorum.PartitionData(partition_index=0)])
            yield Step(f"quorum: {name}", quorum(topics=[part]), version)
    yield Step("quorum: nothing", quorum(topics=[]), 2)

    update = m.UpdateFeaturesRequest
    key = update.FeatureUpdateKey
    for label, keys, version in (
        ("the same", [key(feature="metadata.version", max_version_level=30)], 0),
        ("the same", [key(feature="metadata.version", max_version_level=30)], 1),
        ("the same", [key(feature="metadata.version", max_version_level=30)], 2),
        ("too high", [key(feature="metadata.version", max_version_level=31)], 1),
        ("down by mistake", [key(feature="metadata.version", max_version_level=29)], 1),
        ("unknown", [key(feature="no.such", max_version_level=1)], 1),
        ("unnamed", [key(feature="", max_version_level=1)], 1),
        ("group down by mistake", [key(feature="group.version", max_version_level=0)], 1),
        ("nothing", [], 1),
        ("unknown kind", [key(feature="metadata.version", max_version_level=30, upgrade_type=0)], 1),
        ("unknown kind", [key(feature="metadata.version", max_version_level=30, upgrade_type=7)], 1),
    ):
        yield Step(f"features: {label}", update(timeout_ms=PATIENCE_MS, feature_updates=keys), version)
    safe = [key(feature="group.version", max_version_level=0, upgrade_type=2)]
    yield Step("features: only validated", update(timeout_ms=PATIENCE_MS, feature_updates=safe, validate_only=True), 1)

    find = m.FindCoordinatorRequest
    while (yield Step(UNWRITTEN, find(coordinator_keys=[t]), 6)).coordinators[0].error_code:
        pass  # the topic of the offsets is created when it is first asked for
    for version in versions(10):
        request = find(coordinator_keys=[t, "other"]) if version >= 4 else find(key=t)
        yield Step("find: group", request, version)
    yield Step("find: unknown kind", find(coordinator_keys=[t], key_type=5), 6)
    yield Step("find: share without a proper key", find(coordinator_keys=[t], key_type=2), 6)

    init = m.InitProducerIdRequest
    while (yield Step(UNWRITTEN, init(transactional_id=None, transaction_timeout_ms=1000), 5)).error_code:
        pass  # the first block of ids is on its way
    for version in versions(22):
        yield Step("producer id", init(transactional_id=None, transaction_timeout_ms=1000), version)
    yield Step("producer id: empty transactional id", init(transactional_id="", transaction_timeout_ms=1000), 5)
    yield Step("producer id: only an id", init(transactional_id=None, producer_id=4), 5)

    for version in range(5):
        hello = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")
        yield Step("greeting", hello, version)


def data(wire: Wire, t: str) -> Conversation:
    """Produce, Fetch, ListOffsets, DeleteRecords, OffsetForLeaderEpoch, and what describes their outcome."""
    name = f"{t}d"
    yield Step("create", m.CreateTopicsRequest(topics=[create_topic_request(name, 3, KEPT)], timeout_ms=PATIENCE_MS), 7)
    topic_id = wait_for_topic(wire, name, 3)
    for version in versions(0):
        yield from _produced(t, name if version <= NAMED_PRODUCE else topic_id, version)
    for version in versions(1):
        yield from _fetched(t, name if version <= NAMED_FETCH else topic_id, version)
        if version >= 7:
            yield from _session(name if version <= NAMED_FETCH else topic_id, version)
    yield from _offsets(name)
    yield from _ends(name)
    yield from _described_data(t)
    yield from _metadata(t, topic_id)


def _produced(t: str, where: str | bytes, version: int) -> Conversation:
    broken = bytearray(batch(2))
    broken[-1] ^= 1
    yield Step("produce", produce_request(where, batch(2)), version)
    yield Step("produce: broken", produce_request(where, bytes(broken)), version)
    yield Step("produce: no such partition", produce_request(where, batch(1), partition=9), version)
    yield Step("produce: no such acks", produce_request(where, batch(1), acks=2), version)
    unknown = f"{t}never" if isinstance(where, str) else UNKNOWN_ID
    yield Step("produce: unknown topic", produce_request(unknown, batch(1)), version)


def _fetched(t: str, where: str | bytes, version: int) -> Conversation:
    for partition, offset in ((0, 0), (0, 7), (0, 22), (0, 23), (0, -1), (1, 0), (9, 0)):
        request = fetch_request({where: [fetch_partition(partition, offset, max_bytes=300)]})
        yield Step(f"fetch: {partition}/{offset}", request, version)
    unknown = f"{t}never" if isinstance(where, str) else UNKNOWN_ID
    yield Step("fetch: unknown topic", fetch_request({unknown: [fetch_partition()]}), version)
    yield Step("fetch: nothing", fetch_request({}), version)


def _session(where: str | bytes, version: int) -> Conversation:
    opening = fetch_request({where: [fetch_partition(i) for i in range(3)]}, session_id=0, session_epoch=0)
    opened = yield Step("fetch: session", opening, version)
    following = fetch_request({where: [fetch_partition(0, 22)]}, session_id=opened.session_id, session_epoch=1)
    yield Step("fetch: session goes on", following, version)
    wrong = fetch_request({}, session_id=opened.session_id, session_epoch=9)
    yield Step("fetch: session at the wrong epoch", wrong, version)
    closing = fetch_request({}, session_id=opened.session_id, session_epoch=-1)
    yield Step("fetch: session ends", closing, version)
    yield Step("fetch: session is gone", following, version)


def _offsets(name: str) -> Conversation:
    asked = m.ListOffsetsRequest
    for version in versions(2):
        for timestamp in (0, *range(-1, -8, -1)):
            rows = [asked.ListOffsetsPartition(partition_index=i, timestamp=timestamp) for i in (0, 1, 9)]
            request = asked(replica_id=-1, topics=[asked.ListOffsetsTopic(name=name, partitions=rows)])
            yield Step(f"list offsets: {timestamp}", request, version)


def _ends(name: str) -> Conversation:
    asked = m.OffsetForLeaderEpochRequest
    for version in versions(23):
        for epoch in (0, 1, -1):
            rows = [asked.OffsetForLeaderPartition(partition=i, leader_epoch=epoch) for i in (0, 9)]
            request = asked(replica_id=-1, topics=[asked.OffsetForLeaderTopic(topic=name, partitions=rows)])
            yield Step(f"epoch end: {epoch}", request, version)
    deletion = m.DeleteRecordsRequest
    for version in versions(21):
        for before in (version + 1, 0, -2, 999):
            places = [deletion.DeleteRecordsPartition(partition_index=i, offset=before) for i in (0, 9)]
            topic = deletion.DeleteRecordsTopic(name=name, partitions=places)
            yield Step(f"delete records: {before}", deletion(topics=[topic], timeout_ms=PATIENCE_MS), version)


def _described_data(t: str) -> Conversation:
    dirs = m.DescribeLogDirsRequest
    for version in versions(35):
        rows = [dirs.DescribableLogDirTopic(topic=n, partitions=[0, 1, 9]) for n in (f"{t}d", f"{t}never")]
        yield Step("log dirs", dirs(topics=rows), version)
    yield Step("log dirs: no topics", dirs(topics=[]), 4)
    moves = m.AlterReplicaLogDirsRequest
    for version in versions(34):
        moved = [moves.AlterReplicaLogDirTopic(n, [0, 9]) for n in (f"{t}d", f"{t}never")]
        yield Step("alter log dirs", moves([moves.AlterReplicaLogDir("/no/such/directory", moved)]), version)
    who = m.DescribeProducersRequest
    places = [who.TopicRequest(name=n, partition_indexes=[0, 9]) for n in (f"{t}d", f"{t}never")]
    yield Step("producers", who(topics=places), 0)


def _metadata(t: str, topic_id: bytes) -> Conversation:
    asked = m.MetadataRequest
    for version in versions(3):
        # Below version 4 asking for an unknown topic creates it.
        names = (f"{t}d", f"{t}never", "bad/") if version >= 4 else (f"{t}d",)
        request = asked(
            topics=[asked.MetadataRequestTopic(name=n) for n in names],
            allow_auto_topic_creation=version < 4,
            include_cluster_authorized_operations=8 <= version <= 10,
            include_topic_authorized_operations=version >= 8,
        )
        yield Step("metadata", request, version)
    by_id = [asked.MetadataRequestTopic(topic_id=i, name=None) for i in (topic_id, UNKNOWN_ID)]
    yield Step("metadata: by id", asked(topics=by_id, allow_auto_topic_creation=False), 12)


CONVERSATIONS = {"topics": topics, "configs": configs, "cluster": cluster, "data": data}
