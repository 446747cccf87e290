"""What an administrator asks of a cluster: topics, partitions, records, configs, log dirs, quorum, features.

Each operation sends one kind of request and gives back its answer in a form a tool can print. A refusal of one item
is in the result of that item (`KafkaError`); a refusal of all is raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from ottla import __version__
from ottla.client.errors import ConnectionLost, KafkaError, check, known
from ottla.client.routing import Outcomes, Routing, Work, ask_until_heard, asking, at_leaders, call, metadata
from ottla.client.steps import ANY, Ask, Steps, begin, operation
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import messages

# Types of config resources (KIP-133 and later).
TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32

# Operations of IncrementalAlterConfigs (KIP-339).
SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3

# Where a setting's value comes from (KIP-226).
FROM_TOPIC: Final = 1
FROM_BROKER: Final = 2
FROM_CLUSTER: Final = 3
FROM_FILE: Final = 4
FROM_DEFAULT: Final = 5
FROM_CLIENT_METRICS: Final = 7
FROM_GROUP: Final = 8

ADMIN_TIMEOUT_MS: Final = 15_000
_TELLS_FENCED: Final = 2
_DELETE_BY_STATE: Final = 6


class NewTopic(NamedTuple):
    name: str
    partitions: int = -1
    """-1: the broker's num.partitions."""
    replication_factor: int = -1
    configs: Mapping[str, str] = {}
    assignment: Sequence[Sequence[int]] = ()
    """Broker ids of each partition's replicas; stands in place of the two numbers."""


class CreatedTopic(NamedTuple):
    name: str
    topic_id: bytes
    partitions: int
    replication_factor: int


class ConfigChange(NamedTuple):
    name: str
    operation: int
    value: str | None = None


class LogDir(NamedTuple):
    broker: int
    path: str
    error: KafkaError | None
    total_bytes: int
    usable_bytes: int
    replicas: Mapping[TopicPartition, int]
    """Size in bytes of each replica that lies here."""
    coming: Mapping[TopicPartition, int] = MappingProxyType({})
    """Replicas that move here from another directory of the broker (KIP-113): how many offsets each is behind."""


class Feature(NamedTuple):
    name: str
    lowest: int
    highest: int
    finalized: int
    """0: not finalized."""


@operation
def create_topics(
    routing: Routing, topics: Sequence[NewTopic], *, validate_only: bool = False
) -> Steps[dict[str, CreatedTopic | KafkaError]]:
    request = messages.CreateTopicsRequest(
        topics=[_creatable(topic) for topic in topics], timeout_ms=ADMIN_TIMEOUT_MS, validate_only=validate_only
    )
    response = yield from call(routing, request, messages.CreateTopicsResponse)
    return {
        topic.name: KafkaError(known(topic.error_code), topic.name, topic.error_message)
        if topic.error_code
        else CreatedTopic(topic.name, topic.topic_id, topic.num_partitions, topic.replication_factor)
        for topic in response.topics
    }


def _creatable(topic: NewTopic) -> messages.CreateTopicsRequest.CreatableTopic:
    return messages.CreateTopicsRequest.CreatableTopic(
        name=topic.name,
        num_partitions=-1 if topic.assignment else topic.partitions,
        replication_factor=-1 if topic.assignment else topic.replication_factor,
        assignments=[
            messages.CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in enumerate(topic.assignment)
        ],
        configs=[
            messages.CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
            for name, value in topic.configs.items()
        ],
    )


@operation
def delete_topics(routing: Routing, names: Sequence[str]) -> Steps[dict[str, KafkaError | None]]:
    kind = messages.DeleteTopicsRequest

    def make(version: int) -> messages.DeleteTopicsRequest:
        if version < _DELETE_BY_STATE:
            return kind(topic_names=list(names), timeout_ms=ADMIN_TIMEOUT_MS)
        return kind(topics=[kind.DeleteTopicState(name=name) for name in names], timeout_ms=ADMIN_TIMEOUT_MS)

    ask = Ask(ANY, kind, make, messages.DeleteTopicsResponse)
    response = yield from ask_until_heard(routing, ask, messages.DeleteTopicsResponse)
    return {
        topic.name or "": KafkaError(known(topic.error_code), topic.name or "", topic.error_message)
        if topic.error_code
        else None
        for topic in response.responses
    }


@operation
def create_partitions(
    routing: Routing, topic: str, count: int, *, assignment: Sequence[Sequence[int]] = (), validate_only: bool = False
) -> Steps[None]:
    """Grows `topic` to `count` partitions in all; `assignment` names the replicas of the new ones."""
    request = messages.CreatePartitionsRequest(
        topics=[
            messages.CreatePartitionsRequest.CreatePartitionsTopic(
                name=topic,
                count=count,
                assignments=[
                    messages.CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=list(brokers))
                    for brokers in assignment
                ]
                or None,
            )
        ],
        timeout_ms=ADMIN_TIMEOUT_MS,
        validate_only=validate_only,
    )
    for result in (yield from call(routing, request, messages.CreatePartitionsResponse)).results:
        check(result.error_code, result.name, result.error_message)


@operation
def delete_records(routing: Routing, offsets: Mapping[TopicPartition, int]) -> Steps[Outcomes[int]]:
    """Everything below an offset (-1: below the high watermark); gives each partition's new first offset."""
    kind = messages.DeleteRecordsRequest

    def make(places: Sequence[TopicPartition], _: int) -> messages.DeleteRecordsRequest:
        topics: dict[str, messages.DeleteRecordsRequest.DeleteRecordsTopic] = {}
        for place in places:
            topic = topics.setdefault(place.topic, kind.DeleteRecordsTopic(name=place.topic))
            topic.partitions.append(kind.DeleteRecordsPartition(place.partition, offsets[place]))
        return kind(topics=list(topics.values()), timeout_ms=ADMIN_TIMEOUT_MS)

    work = Work(kind, messages.DeleteRecordsResponse, make, _low_watermarks)
    return at_leaders(routing, list(offsets), work, "deleting records")


def _low_watermarks(response: messages.DeleteRecordsResponse, _: object) -> Outcomes[int]:
    outcomes: Outcomes[int] = {}
    for topic in response.topics:
        for partition in topic.partitions:
            place = TopicPartition(topic.name, partition.partition_index)
            outcomes[place] = (
                KafkaError(known(partition.error_code), str(place)) if partition.error_code else partition.low_watermark
            )
    return outcomes


@operation
def describe_configs(
    routing: Routing,
    kind: int,
    names: Sequence[str],
    *,
    synonyms: bool = False,
    documentation: bool = False,
    broker: int = ANY,
) -> Steps[dict[str, list[messages.DescribeConfigsResponse.DescribeConfigsResourceResult] | KafkaError]]:
    """Of each named resource. A broker's own settings are known to that broker alone: pass its id as `broker` too."""
    request = messages.DescribeConfigsRequest(
        resources=[
            messages.DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=None
            )
            for name in names
        ],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )
    results = (yield from call(routing, request, messages.DescribeConfigsResponse, broker=broker)).results
    return {
        result.resource_name: KafkaError(known(result.error_code), result.resource_name, result.error_message)
        if result.error_code
        else result.configs
        for result in results
    }


@operation
def alter_configs(
    routing: Routing, kind: int, name: str, changes: Sequence[ConfigChange], *, validate_only: bool = False
) -> Steps[None]:
    """All changes or none. Those of one broker go to that broker, which alone knows whether they fit."""
    broker = int(name) if kind == BROKER and name.isdigit() else ANY
    if broker != ANY and broker not in routing.brokers:
        yield from metadata.steps(routing, [])
    request = messages.IncrementalAlterConfigsRequest(
        resources=[
            messages.IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    messages.IncrementalAlterConfigsRequest.AlterableConfig(
                        name=change.name, config_operation=change.operation, value=change.value
                    )
                    for change in changes
                ],
            )
        ],
        validate_only=validate_only,
    )
    answer = yield from call(routing, request, messages.IncrementalAlterConfigsResponse, broker=broker)
    for result in answer.responses:
        check(result.error_code, result.resource_name or name, result.error_message)


@operation
def describe_cluster(routing: Routing, *, fenced_too: bool = False) -> Steps[messages.DescribeClusterResponse]:
    """Fenced brokers are told by servers that know DescribeCluster v2 (Kafka 4.0)."""
    kind = messages.DescribeClusterRequest
    ask = Ask(
        ANY,
        kind,
        lambda version: kind(include_fenced_brokers=fenced_too and version >= _TELLS_FENCED),
        messages.DescribeClusterResponse,
    )
    response = yield from ask_until_heard(routing, ask, messages.DescribeClusterResponse)
    check(response.error_code, "the cluster", response.error_message)
    return response


@operation
def describe_log_dirs(routing: Routing, brokers: Sequence[int]) -> Steps[list[LogDir]]:
    """Of each named broker: nobody else knows its disks."""
    found: list[LogDir] = []
    for broker in brokers:
        request = messages.DescribeLogDirsRequest(topics=None)
        response = yield from call(routing, request, messages.DescribeLogDirsResponse, broker=broker)
        check(response.error_code, f"the log directories of broker {broker}")
        found += [_log_dir(broker, result) for result in response.results]
    return found


def _log_dir(broker: int, result: messages.DescribeLogDirsResponse.DescribeLogDirsResult) -> LogDir:
    return LogDir(
        broker,
        result.log_dir,
        KafkaError(known(result.error_code), result.log_dir) if result.error_code else None,
        result.total_bytes,
        result.usable_bytes,
        {
            TopicPartition(topic.name, partition.partition_index): partition.partition_size
            for topic in result.topics
            for partition in topic.partitions
            if not partition.is_future_key
        },
        {
            TopicPartition(topic.name, partition.partition_index): partition.offset_lag
            for topic in result.topics
            for partition in topic.partitions
            if partition.is_future_key
        },
    )


@operation
def alter_replica_log_dirs(
    routing: Routing, broker: int, paths: Mapping[TopicPartition, str]
) -> Steps[dict[TopicPartition, Errors]]:
    """Where replicas of a broker shall lie. REPLICA_NOT_AVAILABLE: it is not there yet, and will be made there."""
    kind = messages.AlterReplicaLogDirsRequest
    wanted: dict[str, dict[str, list[int]]] = {}
    for place, path in paths.items():
        wanted.setdefault(path, {}).setdefault(place.topic, []).append(place.partition)
    request = kind(
        [
            kind.AlterReplicaLogDir(path, [kind.AlterReplicaLogDirTopic(name, found) for name, found in topics.items()])
            for path, topics in wanted.items()
        ]
    )
    response = yield from call(routing, request, messages.AlterReplicaLogDirsResponse, broker=broker)
    return {
        TopicPartition(topic.topic_name, each.partition_index): known(each.error_code)
        for topic in response.results
        for each in topic.partitions
    }


@operation
def describe_quorum(routing: Routing, *, timeout_s: float | None = None) -> Steps[messages.DescribeQuorumResponse]:
    """Asked again while the quorum changes its leader."""
    kind = messages.DescribeQuorumRequest
    topic = kind.TopicData("__cluster_metadata", [kind.PartitionData(partition_index=0)])
    ask = asking(kind(topics=[topic]), messages.DescribeQuorumResponse)
    attempts = yield from begin("describing the metadata quorum", timeout_s or routing.timeout_s)
    while True:
        try:
            return _quorum_described((yield from attempts.ask(ask, messages.DescribeQuorumResponse)))
        except (KafkaError, ConnectionLost) as error:
            if isinstance(error, KafkaError) and not error.retriable:
                raise
            yield from attempts.again(error)


def _quorum_described(response: messages.DescribeQuorumResponse) -> messages.DescribeQuorumResponse:
    check(response.error_code, "the metadata quorum", response.error_message)
    for topic in response.topics:
        for partition in topic.partitions:
            check(partition.error_code, "the metadata quorum", partition.error_message)
    return response


@operation
def features(routing: Routing) -> Steps[tuple[int, list[Feature]]]:
    """The epoch of the finalized levels, and each feature with what the asked broker supports."""
    request = messages.ApiVersionsRequest(client_software_name="ottla", client_software_version=__version__)
    response = yield from call(routing, request, messages.ApiVersionsResponse, at_most=4)
    check(response.error_code, "feature levels")
    levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
    found = [
        Feature(feature.name, feature.min_version, feature.max_version, levels.get(feature.name, 0))
        for feature in response.supported_features
    ]
    return response.finalized_features_epoch, sorted(found)


@operation
def update_feature(
    routing: Routing, name: str, level: int, *, upgrade_type: int = 1, validate_only: bool = False
) -> Steps[None]:
    """upgrade_type 1: up, 2: down when it is safe, 3: down at any price (KIP-584)."""
    request = messages.UpdateFeaturesRequest(
        timeout_ms=ADMIN_TIMEOUT_MS,
        feature_updates=[
            messages.UpdateFeaturesRequest.FeatureUpdateKey(
                feature=name, max_version_level=level, upgrade_type=upgrade_type
            )
        ],
        validate_only=validate_only,
    )
    response = yield from call(routing, request, messages.UpdateFeaturesResponse)
    check(response.error_code, name, response.error_message)
    for result in response.results:
        check(result.error_code, result.feature, result.error_message)
