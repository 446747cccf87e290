"""An image back into records (what a snapshot holds), and the version each record is written at.

Order follows Kafka's image writer: metadata.version first, because it says how to read the rest.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ottla.metadata.image import (
    METADATA_VERSION,
    BrokerRegistration,
    ControllerRegistration,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from ottla.model.ids import Uuid
from ottla.protocol import messages
from ottla.protocol.codec import MetadataRecord

MIGRATION_LEVEL: Final = 8  # 3.4-IV0
DIRECTORY_ASSIGNMENT_LEVEL: Final = 17  # 3.7-IV2, KIP-858
ELR_LEVEL: Final = 23  # 4.0-IV1, KIP-966
CORDONED_DIRECTORIES_LEVEL: Final = 30  # 4.3-IV0, KIP-1066


def record_version(record: object, metadata_version: int) -> int:
    """The version Kafka would write `record` at, so that the oldest broker this metadata.version admits can read it."""
    rule = _VERSIONS.get(type(record).__name__)
    return 0 if rule is None else rule(record, metadata_version)


def _partition_version(record: object, level: int) -> int:
    return 2 if level >= ELR_LEVEL else 1 if level >= DIRECTORY_ASSIGNMENT_LEVEL else 0


def _registration_version(record: object, level: int) -> int:
    if level >= CORDONED_DIRECTORIES_LEVEL:
        return 4
    return 3 if level >= DIRECTORY_ASSIGNMENT_LEVEL else 2 if level >= MIGRATION_LEVEL else 1


def _registration_change_version(record: "messages.BrokerRegistrationChangeRecord", level: int) -> int:
    if record.cordoned_log_dirs is not None:
        return 3
    return 2 if record.log_dirs else 1 if record.in_controlled_shutdown else 0


_VERSIONS: Final[Mapping[str, Callable[..., int]]] = {
    "PartitionRecord": _partition_version,
    "PartitionChangeRecord": _partition_version,
    "RegisterBrokerRecord": _registration_version,
    "BrokerRegistrationChangeRecord": _registration_change_version,
}


def image_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Records that replay into an image equal to `image` but for its offset, epoch and time."""
    yield from _feature_records(image)
    for broker in image.brokers.values():
        yield broker_record(broker)
    for controller in image.controllers.values():
        yield controller_record(controller)
    for topic in image.topics_by_id.values():
        yield from _topic_records(topic)
    for (resource_type, resource_name), entries in image.configs.items():
        for name, value in entries.items():
            yield messages.ConfigRecord(
                resource_type=resource_type, resource_name=resource_name, name=name, value=value
            )
    yield from _quota_records(image)
    if image.next_producer_id >= 0:
        yield messages.ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from image.acls.values()
    yield from image.scram.values()
    yield from image.delegation_tokens.values()


def _feature_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    if METADATA_VERSION in image.features:
        yield messages.FeatureLevelRecord(name=METADATA_VERSION, feature_level=image.metadata_version)
    for name, level in image.features.items():
        if name != METADATA_VERSION:
            yield messages.FeatureLevelRecord(name=name, feature_level=level)


def _topic_records(topic: TopicImage) -> Iterator[MetadataRecord]:
    yield messages.TopicRecord(name=topic.name, topic_id=topic.id)
    for index, partition in topic.partitions.items():
        yield partition_record(topic.id, index, partition)


def partition_record(topic_id: Uuid, index: int, partition: PartitionImage) -> "messages.PartitionRecord":
    return messages.PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories),
        # Tagged: absent costs nothing, an empty list would cost three bytes a partition.
        eligible_leader_replicas=list(partition.elr) or None,
        last_known_elr=list(partition.last_known_elr) or None,
    )


def broker_record(broker: BrokerRegistration) -> "messages.RegisterBrokerRecord":
    kind = messages.RegisterBrokerRecord
    return kind(
        broker_id=broker.id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            kind.BrokerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in broker.listeners
        ],
        features=[
            kind.BrokerFeature(name=name, min_supported_version=r.min, max_supported_version=r.max)
            for name, r in broker.features.items()
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.log_dirs),
        cordoned_log_dirs=None if broker.cordoned_log_dirs is None else list(broker.cordoned_log_dirs),
    )


def controller_record(controller: ControllerRegistration) -> "messages.RegisterControllerRecord":
    kind = messages.RegisterControllerRecord
    return kind(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=[
            kind.ControllerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in controller.listeners
        ],
        features=[
            kind.ControllerFeature(name=name, min_supported_version=r.min, max_supported_version=r.max)
            for name, r in controller.features.items()
        ],
    )


def _quota_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    for entity, values in image.client_quotas.items():
        for key, value in values.items():
            yield messages.ClientQuotaRecord(
                entity=[
                    messages.ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity
                ],
                key=key,
                value=value,
                remove=False,
            )
