"""Partitions move to other brokers: AlterPartitionReassignments and its list (KIP-455, KIP-860).

A reassignment adds the newcomers to the replicas, waits until the leader has taken them into the ISR (AlterPartition),
and then drops those that leave; `partitions.change_partition` ends it with whichever change makes that possible.
"""

from collections.abc import Iterable

from ottla.controller.decision import Decision
from ottla.controller.effective import allows_unclean_election, topic_rules
from ottla.controller.partitions import Election, Wanted, change_partition, eligible_leaders
from ottla.controller.placement import why_misplaced
from ottla.controller.refusal import Refusal
from ottla.controller.watchlist import Places
from ottla.metadata.image import MetadataImage, PartitionImage, TopicImage
from ottla.model.errors import Errors
from ottla.model.ids import Uuid
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.protocol.codec import MetadataRecord


def alter_reassignments(
    image: MetadataImage,
    settings: Settings,
    request: "messages.AlterPartitionReassignmentsRequest",
    *,
    max_records: int,
) -> "Decision[messages.AlterPartitionReassignmentsResponse]":
    kind = messages.AlterPartitionReassignmentsResponse
    allow = request.allow_replication_factor_change
    records: list[MetadataRecord] = []
    responses = []
    for asked in request.topics:
        answers = []
        for target in asked.partitions:
            outcome = _alter_one(image, settings, asked.name, target, allow_factor_change=allow)
            refusal = outcome if isinstance(outcome, Refusal) else Refusal(Errors.NONE, "")
            answers.append(
                kind.ReassignablePartitionResponse(
                    partition_index=target.partition_index,
                    error_code=refusal.error,
                    error_message=refusal.message or None,
                )
            )
            if isinstance(outcome, messages.PartitionChangeRecord):
                records.append(outcome)
        responses.append(kind.ReassignableTopicResponse(name=asked.name, partitions=answers))
    if len(records) > max_records:
        message = f"One request may cause at most {max_records} metadata records."
        return Decision(kind(error_code=Errors.POLICY_VIOLATION, error_message=message))
    return Decision(
        kind(allow_replication_factor_change=allow, error_message=None, responses=responses), tuple(records)
    )


def _alter_one(
    image: MetadataImage,
    settings: Settings,
    name: str,
    target: "messages.AlterPartitionReassignmentsRequest.ReassignablePartition",
    *,
    allow_factor_change: bool,
) -> "messages.PartitionChangeRecord | Refusal | None":
    topic = image.topics.get(name)
    partition = topic.partitions.get(target.partition_index) if topic is not None else None
    if topic is None or partition is None:
        return Refusal(
            Errors.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {target.partition_index} of a topic {name}."
        )
    if target.replicas is None:
        return _cancel(image, settings, topic, target.partition_index, partition)
    replicas = tuple(target.replicas)
    problem = why_misplaced(image.brokers, replicas)
    if problem is not None:
        return Refusal(Errors.INVALID_REPLICA_ASSIGNMENT, f"The new assignment {problem}.")
    factor = _factor(partition)
    if not allow_factor_change and len(replicas) != factor:
        return Refusal(
            Errors.INVALID_REPLICATION_FACTOR,
            f"The partition has {factor} replica(s), the new assignment {len(replicas)}, and the request does not "
            "allow the number to change.",
        )
    return _change(image, settings, topic, target.partition_index, partition, replicas)


def is_reassigning(partition: PartitionImage) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def _factor(partition: PartitionImage) -> int:
    """The replicas there will be when the present reassignment, if any, has ended."""
    members = dict.fromkeys((*partition.replicas, *partition.adding_replicas))
    return len([r for r in members if r not in partition.removing_replicas])


def _change(
    image: MetadataImage,
    settings: Settings,
    topic: TopicImage,
    index: int,
    partition: PartitionImage,
    replicas: tuple[int, ...],
) -> "messages.PartitionChangeRecord | None":
    """Towards `replicas`. What an unfinished reassignment was adding and nobody wants any more is dropped at once.

    Kafka computes the lists against the present replicas, newcomers included, and keeps the old list where the new one
    would be empty: going back to where one came from then waits for a replica that is both added and removed.
    """
    dropped = [r for r in partition.adding_replicas if r not in replicas]
    isr = tuple(r for r in partition.isr if r not in dropped)
    if not isr:
        dropped, isr = [r for r in dropped if r not in partition.isr], partition.isr
    before = [r for r in partition.replicas if r not in partition.adding_replicas]
    removing = tuple(sorted(r for r in partition.replicas if r not in replicas and r not in dropped))
    adding = tuple(sorted(r for r in replicas if r not in before))
    rules = topic_rules(image, settings, topic, may_lead=eligible_leaders(image), election=Election.ONLINE)
    wanted = Wanted(isr=isr, replicas=(*replicas, *removing), removing=removing, adding=adding)
    return change_partition(topic.id, index, partition, wanted, rules)


def _cancel(
    image: MetadataImage, settings: Settings, topic: TopicImage, index: int, partition: PartitionImage
) -> "messages.PartitionChangeRecord | Refusal | None":
    if not is_reassigning(partition):
        return Refusal(Errors.NO_REASSIGNMENT_IN_PROGRESS, Errors.NO_REASSIGNMENT_IN_PROGRESS.text)
    adding = partition.adding_replicas
    replicas = tuple(r for r in partition.replicas if r not in adding)
    isr = tuple(r for r in partition.isr if r not in adding)
    if not replicas:
        return Refusal(Errors.INVALID_REPLICA_ASSIGNMENT, "Every replica of the partition is a new one.")
    if not isr:
        if not allows_unclean_election(image, settings, topic):
            return Refusal(
                Errors.INVALID_REPLICA_ASSIGNMENT,
                f"Only new replicas of {topic.name}-{index} are in sync: going back would lose records, and the topic "
                "does not allow that (unclean.leader.election.enable).",
            )
        isr = replicas[:1]
    rules = topic_rules(image, settings, topic, may_lead=eligible_leaders(image))
    wanted = Wanted(isr=isr, replicas=replicas, removing=(), adding=())
    return change_partition(topic.id, index, partition, wanted, rules)


def list_reassignments(
    image: MetadataImage, reassigning: Places, request: "messages.ListPartitionReassignmentsRequest"
) -> "Decision[messages.ListPartitionReassignmentsResponse]":
    kind = messages.ListPartitionReassignmentsResponse
    found: list[tuple[TopicImage, Iterable[int]]] = []
    if request.topics is None:
        by_topic: dict[Uuid, list[int]] = {}
        for topic_id, index in reassigning:
            by_topic.setdefault(topic_id, []).append(index)
        found = [(image.topics_by_id[topic_id], indexes) for topic_id, indexes in by_topic.items()]
    else:
        found = [(image.topics[t.name], t.partition_indexes) for t in request.topics if t.name in image.topics]
    topics = []
    for topic, indexes in found:
        ongoing = [
            kind.OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding_replicas),
                removing_replicas=list(partition.removing_replicas),
            )
            for index in indexes
            if (partition := topic.partitions.get(index)) is not None and is_reassigning(partition)
        ]
        if ongoing:
            topics.append(kind.OngoingTopicReassignment(name=topic.name, partitions=ongoing))
    return Decision(kind(error_message=None, topics=topics))
