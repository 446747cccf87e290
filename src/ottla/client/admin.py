"""What an administrator asks of a cluster: topics, partitions, records, configs, log dirs, quorum, features.

Each function sends one kind of request and gives back its answer in a form a tool can print. A refusal of one item
is in the result of that item (`KafkaError`); a refusal of all is raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from ottla import __version__
from ottla.client.cluster import ANY, Cluster, Outcomes
from ottla.client.deadline import Deadline
from ottla.client.errors import ConnectionLost, KafkaError, check, known
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


class Feature(NamedTuple):
    name: str
    lowest: int
    highest: int
    finalized: int
    """0: not finalized."""


def create_topics(
    cluster: Cluster, topics: Sequence[NewTopic], *, validate_only: bool = False
) -> dict[str, CreatedTopic | KafkaError]:
    request = messages.CreateTopicsRequest(
        topics=[_creatable(topic) for topic in topics], timeout_ms=ADMIN_TIMEOUT_MS, validate_only=validate_only
    )
    response = cluster.call(request, messages.CreateTopicsResponse)
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


def delete_topics(cluster: Cluster, names: Sequence[str]) -> dict[str, KafkaError | None]:
    by_name = cluster.connection(ANY, cluster.deadline()).version_for(messages.DeleteTopicsRequest) < 6
    request = messages.DeleteTopicsRequest(timeout_ms=ADMIN_TIMEOUT_MS)
    if by_name:
        request.topic_names = list(names)
    else:
        request.topics = [messages.DeleteTopicsRequest.DeleteTopicState(name=name) for name in names]
    response = cluster.call(request, messages.DeleteTopicsResponse)
    return {
        topic.name or "": KafkaError(known(topic.error_code), topic.name or "", topic.error_message)
        if topic.error_code
        else None
        for topic in response.responses
    }


def create_partitions(
    cluster: Cluster, topic: str, count: int, *, assignment: Sequence[Sequence[int]] = (), validate_only: bool = False
) -> None:
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
    for result in cluster.call(request, messages.CreatePartitionsResponse).results:
        check(result.error_code, result.name, result.error_message)


def delete_records(cluster: Cluster, offsets: Mapping[TopicPartition, int]) -> Outcomes[int]:
    """Everything below an offset (-1: below the high watermark); gives each partition's new first offset."""
    return cluster.at_leaders(list(offsets), partial(_delete_records, cluster, offsets), "deleting records")


def _delete_records(
    cluster: Cluster,
    offsets: Mapping[TopicPartition, int],
    leader: int,
    places: Sequence[TopicPartition],
    deadline: Deadline,
) -> Outcomes[int]:
    topics: dict[str, messages.DeleteRecordsRequest.DeleteRecordsTopic] = {}
    for place in places:
        topic = topics.setdefault(place.topic, messages.DeleteRecordsRequest.DeleteRecordsTopic(name=place.topic))
        topic.partitions.append(
            messages.DeleteRecordsRequest.DeleteRecordsPartition(partition_index=place.partition, offset=offsets[place])
        )
    request = messages.DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=ADMIN_TIMEOUT_MS)
    response = cluster.call_once(request, messages.DeleteRecordsResponse, deadline, broker=leader)
    outcomes: Outcomes[int] = {}
    for answer in response.topics:
        for partition in answer.partitions:
            place = TopicPartition(answer.name, partition.partition_index)
            outcomes[place] = (
                KafkaError(known(partition.error_code), str(place)) if partition.error_code else partition.low_watermark
            )
    return outcomes


def describe_configs(
    cluster: Cluster,
    kind: int,
    names: Sequence[str],
    *,
    synonyms: bool = False,
    documentation: bool = False,
    broker: int = ANY,
) -> dict[str, list[messages.DescribeConfigsResponse.DescribeConfigsResourceResult] | KafkaError]:
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
    results = cluster.call(request, messages.DescribeConfigsResponse, broker=broker).results
    return {
        result.resource_name: KafkaError(known(result.error_code), result.resource_name, result.error_message)
        if result.error_code
        else result.configs
        for result in results
    }


def alter_configs(
    cluster: Cluster, kind: int, name: str, changes: Sequence[ConfigChange], *, validate_only: bool = False
) -> None:
    """All changes or none. Those of one broker go to that broker, which alone knows whether they fit."""
    broker = int(name) if kind == BROKER and name.isdigit() else ANY
    if broker != ANY and broker not in cluster.brokers:
        cluster.metadata([])
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
    for result in cluster.call(request, messages.IncrementalAlterConfigsResponse, broker=broker).responses:
        check(result.error_code, result.resource_name or name, result.error_message)


def list_config_resources(cluster: Cluster, kinds: Sequence[int]) -> list[tuple[int, str]]:
    """Resources that exist as such: (type, name). An empty list of kinds means all."""
    response = cluster.call(
        messages.ListConfigResourcesRequest(resource_types=list(kinds)), messages.ListConfigResourcesResponse
    )
    check(response.error_code, "config resources")
    return [(resource.resource_type, resource.resource_name) for resource in response.config_resources]


def describe_cluster(cluster: Cluster, *, fenced_too: bool = False) -> messages.DescribeClusterResponse:
    """Fenced brokers are told by servers that know DescribeCluster v2 (Kafka 4.0)."""
    known_since = cluster.connection(ANY, cluster.deadline()).version_for(messages.DescribeClusterRequest)
    request = messages.DescribeClusterRequest(include_fenced_brokers=fenced_too and known_since >= _TELLS_FENCED)
    response = cluster.call(request, messages.DescribeClusterResponse)
    check(response.error_code, "the cluster", response.error_message)
    return response


def describe_log_dirs(cluster: Cluster, brokers: Sequence[int]) -> list[LogDir]:
    """Of each named broker, asked one by one: nobody else knows its disks."""
    found: list[LogDir] = []
    for broker in brokers:
        response = cluster.call(
            messages.DescribeLogDirsRequest(topics=None), messages.DescribeLogDirsResponse, broker=broker
        )
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
        },
    )


def describe_quorum(cluster: Cluster, patience: Deadline | None = None) -> messages.DescribeQuorumResponse:
    """Asked again while the quorum changes its leader, for as long as `patience` lasts."""
    request = messages.DescribeQuorumRequest(
        topics=[
            messages.DescribeQuorumRequest.TopicData(
                topic_name="__cluster_metadata",
                partitions=[messages.DescribeQuorumRequest.PartitionData(partition_index=0)],
            )
        ]
    )
    deadline = patience or cluster.deadline()
    while True:
        try:
            return _quorum_described(cluster.call_once(request, messages.DescribeQuorumResponse, deadline))
        except (KafkaError, ConnectionLost) as error:
            if isinstance(error, KafkaError) and not error.retriable:
                raise
            deadline.pause("describing the metadata quorum", error)


def _quorum_described(response: messages.DescribeQuorumResponse) -> messages.DescribeQuorumResponse:
    check(response.error_code, "the metadata quorum", response.error_message)
    for topic in response.topics:
        for partition in topic.partitions:
            check(partition.error_code, "the metadata quorum", partition.error_message)
    return response


def features(cluster: Cluster) -> tuple[int, list[Feature]]:
    """The epoch of the finalized levels, and each feature with what the asked broker supports."""
    request = messages.ApiVersionsRequest(client_software_name="ottla", client_software_version=__version__)
    response = cluster.call(request, messages.ApiVersionsResponse, at_most=4)
    check(response.error_code, "feature levels")
    levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
    found = [
        Feature(feature.name, feature.min_version, feature.max_version, levels.get(feature.name, 0))
        for feature in response.supported_features
    ]
    return response.finalized_features_epoch, sorted(found)


def update_feature(
    cluster: Cluster, name: str, level: int, *, upgrade_type: int = 1, validate_only: bool = False
) -> None:
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
    response = cluster.call(request, messages.UpdateFeaturesResponse)
    check(response.error_code, name, response.error_message)
    for result in response.results:
        check(result.error_code, result.feature, result.error_message)
