"""Topics and partitions are created and deleted here (KIP-464, KIP-599's limits, KIP-516's ids)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ottla.controller import configs
from ottla.controller.decision import Decision
from ottla.controller.partitions import default_directory
from ottla.controller.permits import UNLIMITED, Allowance
from ottla.controller.placement import place, why_misplaced
from ottla.controller.refusal import Refusal
from ottla.metadata.image import RECOVERED, TOPIC_RESOURCE, MetadataImage, PartitionImage, TopicImage
from ottla.metadata.records import partition_record
from ottla.model import topic_names
from ottla.model.errors import Errors
from ottla.model.ids import ZERO_UUID, Uuid
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.protocol.codec import MetadataRecord

CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
MAX_PARTITIONS_PER_REQUEST: Final = 10_000
MAX_RECORDS_PER_REQUEST: Final = 10_000


def unified_name(name: str) -> str | None:
    """The name as metrics write it, if that differs between topics: such names are indexed to find collisions."""
    return name.replace(".", "_") if "." in name or "_" in name else None


@dataclass(frozen=True, slots=True)
class NewTopics:
    """A CreateTopics request with all that the core cannot make up itself."""

    request: "messages.CreateTopicsRequest"
    topic_ids: Sequence[Uuid]
    """One fresh id for each topic of the request."""
    allowance: Allowance = UNLIMITED
    described: "dict[tuple[tuple[str, str], ...], list[messages.CreateTopicsResponse.CreatableTopicConfigs]]" = field(
        default_factory=dict
    )
    """Topics of one request mostly have the same overrides, and describing them is most of the work."""

    def describe(
        self, image: MetadataImage, settings: Settings, overrides: Mapping[str, str]
    ) -> "list[messages.CreateTopicsResponse.CreatableTopicConfigs]":
        key = tuple(sorted(overrides.items()))
        if key not in self.described:
            self.described[key] = configs.described_topic_configs(image, settings, overrides)
        return self.described[key]


def create_topics(
    image: MetadataImage, settings: Settings, colliding: Mapping[str, Sequence[str]], new: NewTopics
) -> "Decision[messages.CreateTopicsResponse]":
    request = new.request
    wanted = request.topics
    if _total_partitions(wanted, settings) > MAX_PARTITIONS_PER_REQUEST:
        refusal = Refusal(
            Errors.POLICY_VIOLATION, f"One request may create at most {MAX_PARTITIONS_PER_REQUEST} partitions."
        )
        return Decision(_all_refused(wanted, refusal))
    repeated = _repeated([t.name for t in wanted])
    results = []
    records: list[MetadataRecord] = []
    for topic, topic_id in zip(wanted, new.topic_ids, strict=True):
        if topic.name in repeated:
            continue
        outcome = _name_refusal(image, colliding, topic.name) or _create(image, settings, topic, topic_id, new)
        if isinstance(outcome, Refusal):
            results.append(_refused(topic.name, outcome))
        else:
            result, topic_records = outcome
            results.append(result)
            records += topic_records
    results += [_refused(n, Refusal(Errors.INVALID_REQUEST, f"Topic {n} is named twice.")) for n in repeated]
    if len(records) > MAX_RECORDS_PER_REQUEST:
        return Decision(_all_refused(wanted, _TOO_LARGE))
    reply = messages.CreateTopicsResponse(topics=results)
    return Decision(reply, () if request.validate_only else tuple(records))


_TOO_LARGE: Final = Refusal(
    Errors.POLICY_VIOLATION, f"One request may cause at most {MAX_RECORDS_PER_REQUEST} metadata records."
)


def _total_partitions(wanted: "Sequence[messages.CreateTopicsRequest.CreatableTopic]", settings: Settings) -> int:
    total = 0
    for topic in wanted:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == -1:
            total += settings.get_int("num.partitions")
        else:
            total += max(topic.num_partitions, 0)
    return total


def _repeated(names: Iterable[str]) -> dict[str, None]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return {name: None for name, count in counts.items() if count > 1}


def _refused(name: str, refusal: Refusal) -> "messages.CreateTopicsResponse.CreatableTopicResult":
    return messages.CreateTopicsResponse.CreatableTopicResult(
        name=name, error_code=refusal.error, error_message=refusal.message
    )


def _all_refused(
    wanted: "Sequence[messages.CreateTopicsRequest.CreatableTopic]", refusal: Refusal
) -> "messages.CreateTopicsResponse":
    names = dict.fromkeys(t.name for t in wanted)
    return messages.CreateTopicsResponse(topics=[_refused(name, refusal) for name in names])


def _name_refusal(image: MetadataImage, colliding: Mapping[str, Sequence[str]], name: str) -> Refusal | None:
    if name == CLUSTER_METADATA_TOPIC:
        return Refusal(Errors.INVALID_REQUEST, f"{CLUSTER_METADATA_TOPIC} is the quorum's own and cannot be created.")
    if name in image.topics:
        return Refusal(Errors.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    problem = topic_names.why_invalid(name)
    if problem is not None:
        return Refusal(Errors.INVALID_TOPIC_EXCEPTION, f"Invalid topic name: {problem}.")
    rivals = colliding.get(unified_name(name) or "")
    if rivals:
        return Refusal(
            Errors.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with topic '{rivals[0]}': their metrics would have the same name.",
        )
    return None


def _create(
    image: MetadataImage,
    settings: Settings,
    topic: "messages.CreateTopicsRequest.CreatableTopic",
    topic_id: Uuid,
    new: NewTopics,
) -> "tuple[messages.CreateTopicsResponse.CreatableTopicResult, list[MetadataRecord]] | Refusal":
    nulls = [c.name for c in topic.configs if c.value is None]
    if nulls:
        return Refusal(Errors.INVALID_CONFIG, f"These configs of topic {topic.name} have no value: {', '.join(nulls)}.")
    overrides = {c.name: c.value for c in topic.configs if c.value is not None}
    problem = configs.why_invalid_topic_configs(overrides, settings)
    if problem is not None:
        return problem
    replica_lists = _assigned(image, topic) if topic.assignments else _placed(image, settings, topic, topic_id)
    if isinstance(replica_lists, Refusal):
        return replica_lists
    exhausted = new.allowance.refusal(len(replica_lists))
    if exhausted is not None:
        return exhausted
    created = TopicImage(topic.name, topic_id, dict(enumerate(new_partition(image, r) for r in replica_lists)))
    records: list[MetadataRecord] = [messages.TopicRecord(name=topic.name, topic_id=topic_id)]
    # Kafka's order: a reader that builds the topic knows its configs before its first partition.
    records += [configs.config_record(TOPIC_RESOURCE, topic.name, k, v) for k, v in overrides.items()]
    records += [partition_record(topic_id, index, partition) for index, partition in created.partitions.items()]
    return _created(created, new.describe(image, settings, overrides)), records


def _created(
    topic: TopicImage, described: "list[messages.CreateTopicsResponse.CreatableTopicConfigs]"
) -> "messages.CreateTopicsResponse.CreatableTopicResult":
    return messages.CreateTopicsResponse.CreatableTopicResult(
        name=topic.name,
        topic_id=topic.id,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=described,
    )


def _placed(
    image: MetadataImage,
    settings: Settings,
    topic: "messages.CreateTopicsRequest.CreatableTopic",
    topic_id: Uuid,
) -> list[tuple[int, ...]] | Refusal:
    factor = topic.replication_factor
    if factor < -1 or factor == 0:
        return Refusal(
            Errors.INVALID_REPLICATION_FACTOR,
            f"Replication factor {factor}: give a number above 0, or -1 for the default.",
        )
    count = topic.num_partitions
    if count < -1 or count == 0:
        return Refusal(Errors.INVALID_PARTITIONS, f"{count} partitions: give a number above 0, or -1 for the default.")
    count = settings.get_int("num.partitions") if count == -1 else count
    factor = settings.get_int("default.replication.factor") if factor == -1 else factor
    placed = place(image.brokers.values(), count, factor, start_of(topic_id))
    return placed if isinstance(placed, Refusal) else _with_live_replica(image, placed)


def start_of(topic_id: Uuid) -> int:
    """Where striping starts for a topic: ids are random, so topics spread without dice."""
    return int.from_bytes(topic_id[-4:], "big")


def _with_live_replica(image: MetadataImage, placed: list[tuple[int, ...]]) -> list[tuple[int, ...]] | Refusal:
    if all(any(is_active(image, r) for r in replicas) for replicas in placed):
        return placed
    return Refusal(
        Errors.INVALID_REPLICATION_FACTOR, "All brokers that could take a replica are fenced or shutting down."
    )


def _assigned(
    image: MetadataImage, topic: "messages.CreateTopicsRequest.CreatableTopic"
) -> list[tuple[int, ...]] | Refusal:
    if topic.replication_factor != -1 or topic.num_partitions != -1:
        return Refusal(
            Errors.INVALID_REQUEST,
            "With a manual assignment the number of partitions and the replication factor must both be -1.",
        )
    by_index: dict[int, tuple[int, ...]] = {}
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in by_index:
            return Refusal(Errors.INVALID_REPLICA_ASSIGNMENT, f"Partition {index} is assigned twice.")
        replicas = tuple(assignment.broker_ids)
        factor = len(next(iter(by_index.values()))) if by_index else None
        refusal = _assignment_refusal(image, index, replicas, factor)
        if refusal is not None:
            return refusal
        by_index[index] = replicas
    if sorted(by_index) != list(range(len(by_index))):
        return Refusal(Errors.INVALID_REPLICA_ASSIGNMENT, "Partitions must be numbered from 0 without a gap.")
    return [by_index[index] for index in range(len(by_index))]


def _assignment_refusal(
    image: MetadataImage, index: int, replicas: tuple[int, ...], factor: int | None
) -> Refusal | None:
    problem = why_misplaced(image.brokers, replicas)
    if problem is None and factor is not None and len(replicas) != factor:
        problem = f"has {len(replicas)} replica(s) where the partitions before it have {factor}"
    elif problem is None and not any(is_active(image, r) for r in replicas):
        problem = "names only brokers that are fenced or shutting down"
    if problem is None:
        return None
    return Refusal(Errors.INVALID_REPLICA_ASSIGNMENT, f"The assignment of partition {index} {problem}.")


def is_active(image: MetadataImage, broker_id: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.is_active


def new_partition(image: MetadataImage, replicas: tuple[int, ...]) -> PartitionImage:
    isr = tuple(r for r in replicas if is_active(image, r))
    return PartitionImage(
        replicas=replicas,
        directories=tuple([default_directory(image, r) for r in replicas]),
        isr=isr,
        removing_replicas=(),
        adding_replicas=(),
        elr=(),
        last_known_elr=(),
        leader=isr[0],
        leader_recovery_state=RECOVERED,
        leader_epoch=0,
        partition_epoch=0,
    )


# Deleting


def delete_topics(
    image: MetadataImage, settings: Settings, request: "messages.DeleteTopicsRequest", allowance: Allowance = UNLIMITED
) -> "Decision[messages.DeleteTopicsResponse]":
    kind = messages.DeleteTopicsResponse.DeletableTopicResult
    asked = [*((name, ZERO_UUID) for name in request.topic_names), *((t.name, t.topic_id) for t in request.topics)]
    results = []
    doomed: dict[Uuid, None] = {}
    repeated = _repeated_topics(image, asked)
    for name, topic_id in _one_mention_each(image, asked):
        found = _find_doomed(image, settings, name, Uuid(topic_id), repeated)
        if not isinstance(found, Refusal):
            found = allowance.refusal(len(found.partitions)) or found
        if isinstance(found, Refusal):
            results.append(kind(name=name, topic_id=topic_id, error_code=found.error, error_message=found.message))
        else:
            results.append(kind(name=found.name, topic_id=found.id))
            doomed[found.id] = None
    records = tuple(messages.RemoveTopicRecord(topic_id=topic_id) for topic_id in doomed)
    return Decision(messages.DeleteTopicsResponse(responses=results), records)


def _one_mention_each(
    image: MetadataImage, asked: Sequence[tuple[str | None, bytes]]
) -> Iterator[tuple[str | None, bytes]]:
    """A topic asked for both by name and by id is answered once, under both."""
    mentions = dict.fromkeys(asked)
    for name, topic_id in mentions:
        topic = image.topics.get(name) if name is not None else image.topics_by_id.get(Uuid(topic_id))
        if topic is None or not ((topic.name, ZERO_UUID) in mentions and (None, topic.id) in mentions):
            yield name, topic_id
        elif name is not None:
            yield topic.name, topic.id


def _repeated_topics(image: MetadataImage, asked: Sequence[tuple[str | None, bytes]]) -> dict[str | bytes, None]:
    """Names and ids that mean one topic more than once; none of the mentions is carried out."""
    mentions: dict[str | bytes, int] = {}
    for name, topic_id in asked:
        topic = image.topics.get(name) if name is not None else image.topics_by_id.get(Uuid(topic_id))
        key = topic.name if topic is not None else name if name is not None else topic_id
        mentions[key] = mentions.get(key, 0) + 1
    return {key: None for key, count in mentions.items() if count > 1}


def _find_doomed(
    image: MetadataImage,
    settings: Settings,
    name: str | None,
    topic_id: Uuid,
    repeated: Mapping[str | bytes, None],
) -> TopicImage | Refusal:
    if not settings.get_bool("delete.topic.enable"):
        return Refusal(Errors.TOPIC_DELETION_DISABLED, "delete.topic.enable is false on this cluster.")
    if name is not None and topic_id != ZERO_UUID:
        return Refusal(Errors.INVALID_REQUEST, "A topic is deleted by its name or by its id, not by both.")
    if name is None and topic_id == ZERO_UUID:
        return Refusal(Errors.INVALID_REQUEST, "Neither the name nor the id of a topic is given.")
    topic = image.topics.get(name) if name is not None else image.topics_by_id.get(topic_id)
    if (topic.name if topic else name or topic_id) in repeated:
        return Refusal(Errors.INVALID_REQUEST, "The same topic is named more than once.")
    if topic is None:
        error = Errors.UNKNOWN_TOPIC_ID if name is None else Errors.UNKNOWN_TOPIC_OR_PARTITION
        return Refusal(error, error.text)
    return topic


# More partitions


def create_partitions(
    image: MetadataImage, request: "messages.CreatePartitionsRequest", allowance: Allowance = UNLIMITED
) -> "Decision[messages.CreatePartitionsResponse]":
    kind = messages.CreatePartitionsResponse.CreatePartitionsTopicResult
    repeated = _repeated([t.name for t in request.topics])
    results = [
        kind(name=name, error_code=Errors.INVALID_REQUEST, error_message=f"Topic {name} is named twice.")
        for name in repeated
    ]
    records: list[MetadataRecord] = []
    for topic in request.topics:
        if topic.name in repeated:
            continue
        added = _added_partitions(image, topic, allowance)
        if isinstance(added, Refusal):
            results.append(kind(name=topic.name, error_code=added.error, error_message=added.message))
        else:
            results.append(kind(name=topic.name, error_message=None))
            records += added
    if len(records) > MAX_RECORDS_PER_REQUEST:
        results = [
            kind(name=name, error_code=_TOO_LARGE.error, error_message=_TOO_LARGE.message)
            for name in dict.fromkeys(t.name for t in request.topics)
        ]
        records = []
    reply = messages.CreatePartitionsResponse(results=results)
    return Decision(reply, () if request.validate_only else tuple(records))


def _added_partitions(
    image: MetadataImage, asked: "messages.CreatePartitionsRequest.CreatePartitionsTopic", allowance: Allowance
) -> list[MetadataRecord] | Refusal:
    topic = image.topics.get(asked.name)
    if topic is None:
        return Refusal(Errors.UNKNOWN_TOPIC_OR_PARTITION, Errors.UNKNOWN_TOPIC_OR_PARTITION.text)
    have = len(topic.partitions)
    if asked.count <= have:
        return Refusal(
            Errors.INVALID_PARTITIONS,
            f"Topic {asked.name} has {have} partition(s) already; {asked.count} would not be more.",
        )
    more = asked.count - have
    if more > MAX_RECORDS_PER_REQUEST:
        return _TOO_LARGE
    if asked.assignments is not None and len(asked.assignments) != more:
        return Refusal(
            Errors.INVALID_REPLICA_ASSIGNMENT,
            f"{more} partition(s) would be added but {len(asked.assignments)} assignment(s) are given.",
        )
    exhausted = allowance.refusal(more)
    if exhausted is not None:
        return exhausted
    factor = len(next(iter(topic.partitions.values())).replicas)
    placed: list[tuple[int, ...]] | Refusal
    if asked.assignments is None:
        placed = place(image.brokers.values(), more, factor, start_of(topic.id) + have)
        placed = placed if isinstance(placed, Refusal) else _with_live_replica(image, placed)
    else:
        placed = _checked(image, have, factor, [tuple(a.broker_ids) for a in asked.assignments])
    if isinstance(placed, Refusal):
        return placed
    return [
        partition_record(topic.id, index, new_partition(image, replicas)) for index, replicas in enumerate(placed, have)
    ]


def _checked(
    image: MetadataImage, first: int, factor: int, replica_lists: list[tuple[int, ...]]
) -> list[tuple[int, ...]] | Refusal:
    for index, replicas in enumerate(replica_lists, first):
        refusal = _assignment_refusal(image, index, replicas, factor)
        if refusal is not None:
            return refusal
    return replica_lists
