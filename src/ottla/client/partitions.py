"""Where replicas live and who leads: reassignments (KIP-455) and leader elections (KIP-460)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ottla.client.admin import ADMIN_TIMEOUT_MS
from ottla.client.errors import KafkaError, check, known
from ottla.client.routing import Routing, call, metadata
from ottla.client.steps import Steps, operation
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import messages

PREFERRED: Final = 0
UNCLEAN: Final = 1


class Placed(NamedTuple):
    """One partition as the cluster's metadata shows it."""

    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]


class Reassignment(NamedTuple):
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@operation
def placements(routing: Routing, topics: Sequence[str] | None = None) -> Steps[dict[TopicPartition, Placed]]:
    """Of the named topics, or of all, in order. Raises KafkaError for a topic that is not there."""
    found: dict[TopicPartition, Placed] = {}
    answer = yield from metadata.steps(routing, topics)
    for topic in sorted(answer.topics, key=lambda t: t.name or ""):
        check(topic.error_code, topic.name or "a topic")
        for each in sorted(topic.partitions, key=lambda p: p.partition_index):
            found[TopicPartition(topic.name or "", each.partition_index)] = Placed(
                each.leader_id, tuple(each.replica_nodes), tuple(each.isr_nodes), tuple(each.offline_replicas)
            )
    return found


@operation
def racks(routing: Routing) -> Steps[dict[int, str | None]]:
    """The brokers that are up, each with its rack."""
    answer = yield from metadata.steps(routing, [])
    return {broker.node_id: broker.rack for broker in answer.brokers}


@operation
def reassign(
    routing: Routing, targets: Mapping[TopicPartition, Sequence[int] | None]
) -> Steps[dict[TopicPartition, KafkaError | None]]:
    """Begins to move each partition to its replicas; None takes back a move that is under way."""
    kind = messages.AlterPartitionReassignmentsRequest
    topics: dict[str, list[messages.AlterPartitionReassignmentsRequest.ReassignablePartition]] = {}
    for place, replicas in targets.items():
        topics.setdefault(place.topic, []).append(
            kind.ReassignablePartition(
                partition_index=place.partition, replicas=None if replicas is None else list(replicas)
            )
        )
    request = kind(
        timeout_ms=ADMIN_TIMEOUT_MS,
        topics=[kind.ReassignableTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )
    response = yield from call(routing, request, messages.AlterPartitionReassignmentsResponse)
    check(response.error_code, "the reassignment", response.error_message)
    return {
        TopicPartition(topic.name, each.partition_index): _outcome(topic.name, each.partition_index, each)
        for topic in response.responses
        for each in topic.partitions
    }


@operation
def reassignments(routing: Routing) -> Steps[dict[TopicPartition, Reassignment]]:
    """What is moving now."""
    request = messages.ListPartitionReassignmentsRequest(timeout_ms=ADMIN_TIMEOUT_MS, topics=None)
    response = yield from call(routing, request, messages.ListPartitionReassignmentsResponse)
    check(response.error_code, "the reassignments", response.error_message)
    return {
        TopicPartition(topic.name, each.partition_index): Reassignment(
            tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
        )
        for topic in response.topics
        for each in topic.partitions
    }


@operation
def elect(
    routing: Routing, partitions: Sequence[TopicPartition] | None, election: int
) -> Steps[dict[TopicPartition, KafkaError | None]]:
    """None for all partitions. One that needs no election is left out when all are asked for."""
    kind = messages.ElectLeadersRequest
    topics: dict[str, list[int]] = {}
    for place in partitions or ():
        topics.setdefault(place.topic, []).append(place.partition)
    request = kind(
        election_type=election,
        topic_partitions=None
        if partitions is None
        else [kind.TopicPartitions(topic=name, partitions=indexes) for name, indexes in topics.items()],
        timeout_ms=ADMIN_TIMEOUT_MS,
    )
    response = yield from call(routing, request, messages.ElectLeadersResponse)
    check(response.error_code, "the election")
    found = {
        TopicPartition(topic.topic, each.partition_id): _outcome(topic.topic, each.partition_id, each)
        for topic in response.replica_election_results
        for each in topic.partition_result
    }
    if partitions is None:
        return {p: e for p, e in found.items() if e is None or e.error != Errors.ELECTION_NOT_NEEDED}
    return found


def _outcome(
    topic: str,
    index: int,
    result: (
        messages.AlterPartitionReassignmentsResponse.ReassignablePartitionResponse
        | messages.ElectLeadersResponse.PartitionResult
    ),
) -> KafkaError | None:
    if not result.error_code:
        return None
    return KafkaError(known(result.error_code), f"{topic}-{index}", result.error_message)
