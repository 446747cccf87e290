"""Brokers with several directories say which of their replicas is in which: AssignReplicasToDirs (KIP-858)."""

from ottla.controller.brokers import stale_epoch
from ottla.controller.decision import Decision
from ottla.controller.effective import topic_rules
from ottla.controller.partitions import ElectionRules, Wanted, change_partition, eligible_leaders
from ottla.metadata.image import BrokerRegistration, MetadataImage, TopicImage
from ottla.metadata.records import DIRECTORY_ASSIGNMENT_LEVEL
from ottla.model.errors import Errors
from ottla.model.ids import Uuid
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.protocol.codec import MetadataRecord


def assign_replicas(
    image: MetadataImage, settings: Settings, request: "messages.AssignReplicasToDirsRequest"
) -> "Decision[messages.AssignReplicasToDirsResponse]":
    kind = messages.AssignReplicasToDirsResponse
    if image.metadata_version < DIRECTORY_ASSIGNMENT_LEVEL:
        return Decision(kind(error_code=Errors.UNSUPPORTED_VERSION))
    if stale_epoch(image, request.broker_id, request.broker_epoch):
        return Decision(kind(error_code=Errors.STALE_BROKER_EPOCH))
    broker = image.brokers[request.broker_id]
    records: list[MetadataRecord] = []
    directories = []
    for asked in request.directories:
        topics = [_assign_topic(image, settings, broker, Uuid(asked.id), t, records) for t in asked.topics]
        directories.append(kind.DirectoryData(id=asked.id, topics=topics))
    return Decision(kind(directories=directories), tuple(records))


def _assign_topic(
    image: MetadataImage,
    settings: Settings,
    broker: BrokerRegistration,
    directory: Uuid,
    asked: "messages.AssignReplicasToDirsRequest.TopicData",
    records: list[MetadataRecord],
) -> "messages.AssignReplicasToDirsResponse.TopicData":
    kind = messages.AssignReplicasToDirsResponse
    topic = image.topics_by_id.get(Uuid(asked.topic_id))
    answers = []
    rules = None if topic is None else _rules(image, settings, broker, directory, topic)
    for partition in asked.partitions:
        index = partition.partition_index
        error = Errors.UNKNOWN_TOPIC_ID
        if topic is not None and rules is not None:
            error = _assign_one(broker, directory, topic, index, rules, records)
        answers.append(kind.PartitionData(partition_index=index, error_code=error))
    return kind.TopicData(topic_id=asked.topic_id, partitions=answers)


def _rules(
    image: MetadataImage, settings: Settings, broker: BrokerRegistration, directory: Uuid, topic: TopicImage
) -> ElectionRules:
    if broker.has_directory(directory):
        return topic_rules(image, settings, topic, may_lead=eligible_leaders(image))
    return topic_rules(image, settings, topic, may_lead=eligible_leaders(image, without=broker.id))


def _assign_one(
    broker: BrokerRegistration,
    directory: Uuid,
    topic: TopicImage,
    index: int,
    rules: ElectionRules,
    records: list[MetadataRecord],
) -> Errors:
    partition = topic.partitions.get(index)
    if partition is None:
        return Errors.UNKNOWN_TOPIC_OR_PARTITION
    if broker.id not in partition.replicas:
        return Errors.NOT_LEADER_OR_FOLLOWER
    isr = partition.isr
    if not broker.has_directory(directory):
        # The directory was lost before the controller knew what was in it: this replica is lost with it.
        isr = tuple(r for r in isr if r != broker.id)
    wanted = Wanted(isr=isr, directories={broker.id: directory})
    record = change_partition(topic.id, index, partition, wanted, rules)
    if record is not None:
        records.append(record)
    return Errors.NONE
