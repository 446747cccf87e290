"""A partition's leader asks for another ISR: AlterPartition (KIP-497, KIP-704, KIP-841, KIP-903, KIP-966)."""

from ottla.controller.brokers import stale_epoch
from ottla.controller.decision import Decision
from ottla.controller.effective import topic_rules
from ottla.controller.partitions import ElectionRules, Wanted, change_partition, eligible_leaders
from ottla.metadata.delta import NO_LEADER_CHANGE, merged
from ottla.metadata.image import RECOVERED, RECOVERING, MetadataImage, PartitionImage
from ottla.model.errors import Errors
from ottla.model.ids import Uuid
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.protocol.codec import MetadataRecord

ANY_EPOCH = -1
"""KIP-903: a broker epoch that is not compared, of leaders or followers too old to know theirs."""

Members = list[tuple[int, int]]
"""Broker ids with the epochs the leader knows them by."""


def alter_partition(
    image: MetadataImage, settings: Settings, request: "messages.AlterPartitionRequest"
) -> "Decision[messages.AlterPartitionResponse]":
    kind = messages.AlterPartitionResponse
    if stale_epoch(image, request.broker_id, request.broker_epoch):
        return Decision(kind(error_code=Errors.STALE_BROKER_EPOCH))
    records: list[MetadataRecord] = []
    answers = []
    for topic_data in request.topics:
        topic = image.topics_by_id.get(Uuid(topic_data.topic_id))
        if topic is None:
            unknown = [_refused(p.partition_index, Errors.UNKNOWN_TOPIC_ID) for p in topic_data.partitions]
            answers.append(kind.TopicData(topic_id=topic_data.topic_id, partitions=unknown))
            continue
        rules = topic_rules(image, settings, topic, may_lead=eligible_leaders(image))
        results = []
        for asked in topic_data.partitions:
            partition = topic.partitions.get(asked.partition_index)
            result, record = _alter_one(image, request.broker_id, topic.id, partition, asked, rules)
            results.append(result)
            if record is not None:
                records.append(record)
        answers.append(kind.TopicData(topic_id=topic.id, partitions=results))
    return Decision(kind(topics=answers), tuple(records))


def _alter_one(
    image: MetadataImage,
    leader: int,
    topic_id: Uuid,
    partition: PartitionImage | None,
    asked: "messages.AlterPartitionRequest.PartitionData",
    rules: ElectionRules,
) -> "tuple[messages.AlterPartitionResponse.PartitionData, messages.PartitionChangeRecord | None]":
    members = _members(asked)
    index = asked.partition_index
    if partition is None:
        return _refused(index, Errors.UNKNOWN_TOPIC_OR_PARTITION), None
    error = _refusal(image, leader, partition, asked, members)
    if error is not Errors.NONE:
        return _refused(index, error), None
    wanted = Wanted(isr=tuple([id_ for id_, _ in members]), recovery_state=asked.leader_recovery_state)
    record = change_partition(topic_id, index, partition, wanted, rules)
    if record is None:
        return _accepted(index, partition), None
    if record.leader not in (leader, NO_LEADER_CHANGE):
        # The leader stands down, or the new ISR ended a reassignment that takes it away. The change counts and is
        # answered with an error, so that the asker waits for the metadata instead of going on as leader.
        return _refused(index, Errors.NEW_LEADER_ELECTED), record
    return _accepted(index, merged(partition, record)), record


def _members(asked: "messages.AlterPartitionRequest.PartitionData") -> Members:
    """Version 2 knows no broker epochs."""
    if asked.new_isr_with_epochs:
        return [(state.broker_id, state.broker_epoch) for state in asked.new_isr_with_epochs]
    return [(broker_id, ANY_EPOCH) for broker_id in asked.new_isr]


def _refusal(
    image: MetadataImage,
    leader: int,
    partition: PartitionImage,
    asked: "messages.AlterPartitionRequest.PartitionData",
    members: Members,
) -> Errors:
    if asked.leader_epoch > partition.leader_epoch or asked.partition_epoch > partition.partition_epoch:
        # The asker knows more than this controller: there must be a newer one.
        return Errors.NOT_CONTROLLER
    if asked.leader_epoch < partition.leader_epoch:
        return Errors.FENCED_LEADER_EPOCH
    if leader != partition.leader:
        return Errors.INVALID_REQUEST
    if asked.partition_epoch < partition.partition_epoch:
        return Errors.INVALID_UPDATE_VERSION
    if not _is_possible(partition, asked.leader_recovery_state, [id_ for id_, _ in members]):
        return Errors.INVALID_REQUEST
    if not all(_is_eligible(image, broker_id, epoch) for broker_id, epoch in members):
        return Errors.INELIGIBLE_REPLICA
    return Errors.NONE


def _is_possible(partition: PartitionImage, recovery: int, isr: list[int]) -> bool:
    if len(dict.fromkeys(isr)) != len(isr) or any(r not in partition.replicas for r in isr):
        return False
    if recovery not in (RECOVERED, RECOVERING):
        return False
    if partition.leader not in isr:
        # A leader that leaves stands down for those in sync with it. Kafka's controller refuses that; its leaders have
        # no need of it, for a Kafka broker whose disk is full gives up.
        return bool(isr) and recovery == RECOVERED and all(replica in partition.isr for replica in isr)
    if recovery == RECOVERING:
        # KIP-704: after an unclean election nobody joins before the leader is done, and it is done only once.
        return len(isr) == 1 and partition.leader_recovery_state == RECOVERING
    return True


def _is_eligible(image: MetadataImage, broker_id: int, epoch: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.is_active and epoch in (ANY_EPOCH, broker.epoch)


def _refused(index: int, error: Errors) -> "messages.AlterPartitionResponse.PartitionData":
    return messages.AlterPartitionResponse.PartitionData(partition_index=index, error_code=error)


def _accepted(index: int, partition: PartitionImage) -> "messages.AlterPartitionResponse.PartitionData":
    return messages.AlterPartitionResponse.PartitionData(
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )
