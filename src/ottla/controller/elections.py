"""Leaders are elected because somebody asked, or because it is time: ElectLeaders (KIP-460), balancing, unclean."""

from collections.abc import Iterable
from typing import Final

from ottla.controller.decision import Decision
from ottla.controller.effective import allows_unclean_election, topic_rules
from ottla.controller.partitions import AS_IT_IS, Election, ElectionRules, change_partition, eligible_leaders
from ottla.controller.refusal import Refusal
from ottla.controller.watchlist import Places, partitions_at
from ottla.metadata.image import MetadataImage, TopicImage
from ottla.model.errors import Errors
from ottla.model.ids import Uuid
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.protocol.codec import MetadataRecord

MAX_ELECTIONS_AT_ONCE: Final = 1000
"""As in Kafka: what is left is done with the next tick, so that requests come in between."""

_TYPES: Final = {0: Election.PREFERRED, 1: Election.UNCLEAN}


def elect_leaders(
    image: MetadataImage, settings: Settings, request: "messages.ElectLeadersRequest", *, max_records: int
) -> "Decision[messages.ElectLeadersResponse]":
    kind = messages.ElectLeadersResponse
    election = _TYPES.get(request.election_type)
    if election is None:
        return Decision(kind(error_code=Errors.INVALID_REQUEST))
    records: list[MetadataRecord] = []
    results = []
    wanted: Iterable[tuple[str, Iterable[int]]]
    if request.topic_partitions is None:
        wanted = [(topic.name, topic.partitions) for topic in image.topics.values()]
    else:
        wanted = [(asked.topic, asked.partitions) for asked in request.topic_partitions]
    for name, indexes in wanted:
        answers = _elect_in_topic(image, settings, name, indexes, election, records)
        if request.topic_partitions is None:
            # Asked about everything, Kafka answers only about what it tried.
            answers = [a for a in answers if a.error_code != Errors.ELECTION_NOT_NEEDED]
        results.append(kind.ReplicaElectionResult(topic=name, partition_result=answers))
    if len(records) > max_records:
        return Decision(kind(error_code=Errors.POLICY_VIOLATION))
    return Decision(kind(replica_election_results=results), tuple(records))


def _elect_in_topic(
    image: MetadataImage,
    settings: Settings,
    name: str,
    indexes: Iterable[int],
    election: Election,
    records: list[MetadataRecord],
) -> "list[messages.ElectLeadersResponse.PartitionResult]":
    kind = messages.ElectLeadersResponse.PartitionResult
    topic = image.topics.get(name)
    rules = None
    if topic is not None:
        rules = topic_rules(image, settings, topic, may_lead=eligible_leaders(image), election=election)
    answers = []
    for index in indexes:
        outcome = _elect_one(topic, name, index, rules)
        if isinstance(outcome, Refusal):
            answers.append(kind(partition_id=index, error_code=outcome.error, error_message=outcome.message))
        else:
            records.append(outcome)
            answers.append(kind(partition_id=index, error_message=None))
    return answers


def _elect_one(
    topic: TopicImage | None, name: str, index: int, rules: ElectionRules | None
) -> "messages.PartitionChangeRecord | Refusal":
    partition = topic.partitions.get(index) if topic is not None else None
    if topic is None or rules is None or partition is None:
        return Refusal(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {index} of a topic {name}.")
    is_preferred = rules.election is Election.PREFERRED
    if partition.leader == partition.replicas[0] if is_preferred else partition.leader >= 0:
        return Refusal(Errors.ELECTION_NOT_NEEDED, Errors.ELECTION_NOT_NEEDED.text)
    record = change_partition(topic.id, index, partition, AS_IT_IS, rules)
    if record is None:
        error = Errors.PREFERRED_LEADER_NOT_AVAILABLE if is_preferred else Errors.ELIGIBLE_LEADERS_NOT_AVAILABLE
        return Refusal(error, error.text)
    return record


def balance(image: MetadataImage, settings: Settings, imbalanced: Places) -> list[MetadataRecord]:
    """Leadership goes back to first replicas that can take it."""
    return _elect_where(image, settings, imbalanced, Election.PREFERRED)


def elect_uncleanly(image: MetadataImage, settings: Settings, leaderless: Places) -> list[MetadataRecord]:
    """Partitions without a leader get one where their topic says that is better than none."""
    allowed: dict[Uuid, bool] = {}
    places: Places = {}
    for topic, index, _ in partitions_at(image, leaderless):
        if topic.id not in allowed:
            allowed[topic.id] = allows_unclean_election(image, settings, topic)
        if allowed[topic.id]:
            places[topic.id, index] = None
    return _elect_where(image, settings, places, Election.UNCLEAN)


def _elect_where(image: MetadataImage, settings: Settings, places: Places, election: Election) -> list[MetadataRecord]:
    may_lead = eligible_leaders(image)
    rules: dict[Uuid, ElectionRules] = {}
    records: list[MetadataRecord] = []
    for topic, index, partition in partitions_at(image, places):
        if topic.id not in rules:
            rules[topic.id] = topic_rules(image, settings, topic, may_lead=may_lead, election=election)
        record = change_partition(topic.id, index, partition, AS_IT_IS, rules[topic.id])
        if record is not None:
            records.append(record)
        if len(records) >= MAX_ELECTIONS_AT_ONCE:
            break
    return records
