"""One batch, written whole or not at all, under a producer's identity that its owner keeps.

For who keeps state in a partition of its own and must be the only one that writes there: it takes the identity of a
transactional id (`Transacting.initialise`) without using transactions. Once a successor has written anything under its
higher epoch, the partition refuses the batches of the old one, and readers need not know of any of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ottla.client.errors import CorruptAnswer, KafkaError, RequestTooLarge
from ottla.client.producing import ACK_TIMEOUT_MS, ALL, LAST_BY_NAME, Delivered, Identity, outcome_of, request_limit
from ottla.client.routing import Outcomes, Routing, Work, at_leaders
from ottla.client.steps import NEWEST, Attempts, Steps, operation
from ottla.model.ids import TopicPartition
from ottla.protocol import messages
from ottla.protocol.records import NewRecord, build_batch


@operation
def append(
    routing: Routing, place: TopicPartition, records: Sequence[NewRecord], identity: Identity, base_sequence: int
) -> Steps[Delivered]:
    """Acknowledged by all in-sync replicas; repeated after a lost connection it is still written once. Raises
    KafkaError: what became of the batch is then known only if the error says so (MESSAGE_TOO_LARGE, a fenced epoch)."""
    encoded = build_batch(
        records, producer_id=identity.producer_id, producer_epoch=identity.epoch, base_sequence=base_sequence
    )
    kind = messages.ProduceRequest

    def make(_: Sequence[TopicPartition], version: int) -> messages.ProduceRequest:
        data = kind.PartitionProduceData(index=place.partition, records=encoded)
        by_id = version > LAST_BY_NAME
        topic = kind.TopicProduceData(topic_id=routing.topic_ids[place.topic]) if by_id else None
        topic = topic or kind.TopicProduceData(name=place.topic)
        topic.partition_data.append(data)
        return kind(acks=ALL, timeout_ms=ACK_TIMEOUT_MS, topic_data=[topic])

    def read(response: messages.ProduceResponse, _: Sequence[TopicPartition]) -> Outcomes[Delivered]:
        for topic in response.responses:
            for answer in topic.partition_responses:
                return {place: outcome_of(place, records, answer)}
        raise CorruptAnswer("a ProduceResponse without a partition")

    at_most = NEWEST if routing.ids_of([place.topic]) else LAST_BY_NAME
    explain = partial(_explain, place, len(encoded))
    work = Work(kind, messages.ProduceResponse, make, read, at_most, explain=explain)
    outcomes = yield from at_leaders(routing, [place], work, "append", new_topics=True)
    outcome = outcomes[place]
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome


def _explain(
    place: TopicPartition, size: int, attempts: Attempts, leader: int, _: Sequence[TopicPartition]
) -> Steps[Outcomes[Delivered]]:
    limit = yield from request_limit(attempts, leader, size)
    return {place: RequestTooLarge(str(place), size, limit)} if size > limit else {}
