"""Where offsets are, by time: ListOffsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ottla.client.errors import KafkaError, known
from ottla.client.routing import Outcomes, Routing, Work, at_leaders
from ottla.client.steps import Steps, operation
from ottla.model.ids import TopicPartition
from ottla.protocol import messages

EARLIEST: Final = -2
LATEST: Final = -1
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1


class Found(NamedTuple):
    """What ListOffsets knows: offset -1 when no record is as new as the time asked for."""

    offset: int
    timestamp: int
    leader_epoch: int


@operation
def list_offsets(
    routing: Routing, times: Mapping[TopicPartition, int], *, isolation: int = READ_UNCOMMITTED
) -> Steps[Outcomes[Found]]:
    """For each partition the first offset at or after a time in ms, or EARLIEST, or LATEST."""
    kind = messages.ListOffsetsRequest

    def make(places: Sequence[TopicPartition], _: int) -> messages.ListOffsetsRequest:
        topics: dict[str, messages.ListOffsetsRequest.ListOffsetsTopic] = {}
        for place in places:
            topic = topics.setdefault(place.topic, kind.ListOffsetsTopic(name=place.topic))
            topic.partitions.append(kind.ListOffsetsPartition(partition_index=place.partition, timestamp=times[place]))
        return kind(replica_id=-1, isolation_level=isolation, topics=list(topics.values()))

    work = Work(kind, messages.ListOffsetsResponse, make, _found)
    return at_leaders(routing, list(times), work, "finding offsets")


def _found(response: messages.ListOffsetsResponse, _: object) -> Outcomes[Found]:
    outcomes: Outcomes[Found] = {}
    for topic in response.topics:
        for partition in topic.partitions:
            place = TopicPartition(topic.name, partition.partition_index)
            outcomes[place] = (
                KafkaError(known(partition.error_code), str(place))
                if partition.error_code
                else Found(partition.offset, partition.timestamp, partition.leader_epoch)
            )
    return outcomes


def offset_of(outcome: Found | KafkaError) -> int:
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome.offset
