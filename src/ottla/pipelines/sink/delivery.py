"""Writes batches that are ready: several requests under way at each leader, order and sequence numbers kept.

What fails in a way that can pass is written again with the same sequence number, so the broker drops what it has
already (it remembers the last five batches of a producer, hence five requests). Anything else is raised: the
transaction cannot be saved then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ottla.client.blocking.cluster import Cluster, Sent
from ottla.client.errors import ConnectionLost, CorruptAnswer, KafkaError, Unreachable, known
from ottla.client.producing import ALL, FIRST_OF_SECOND, LAST_BY_NAME
from ottla.client.routing import Outcomes, Work, at_leaders, find_leaders
from ottla.client.steps import NEWEST, Ask
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink.encoding import Encoded
from ottla.protocol import messages

IN_FLIGHT: Final = 5
REQUEST_BYTES: Final = 1 << 20
ACK_TIMEOUT_MS: Final = 30_000


class Delivered(NamedTuple):
    """All that one partition got."""

    records: int
    size: int
    first_offset: int
    """-1 where the broker no longer knew."""


class _Batch(NamedTuple):
    place: TopicPartition
    encoded: Encoded


class _Flight(NamedTuple):
    sent: Sent
    batches: list[_Batch]


class Delivery:
    """`send` in order, `flush` at the end. After an exception it is of no further use."""

    __slots__ = ("_at_most", "_cluster", "_confirmed", "_flights", "_forming", "_sizes", "_transactional_id")

    def __init__(self, cluster: Cluster, transactional_id: str, *, second: bool) -> None:
        self._cluster = cluster
        self._transactional_id = transactional_id
        self._at_most = NEWEST if second else FIRST_OF_SECOND - 1
        self._forming: dict[int, dict[TopicPartition, _Batch]] = {}
        self._sizes: dict[int, int] = {}
        self._flights: deque[_Flight] = deque()
        self._confirmed: dict[TopicPartition, Delivered] = {}

    @property
    def delivered(self) -> dict[TopicPartition, Delivered]:
        return self._confirmed

    def send(self, place: TopicPartition, encoded: Encoded) -> None:
        """Returns before it is written, but not before there is room for it."""
        leader = self._leader(place)
        forming = self._forming.get(leader, {})
        if place in forming or (forming and self._sizes[leader] + len(encoded.data) > REQUEST_BYTES):
            self._launch(leader)
        self._await_first(place)
        leader = self._leader(place)  # landing may have found another one
        self._forming.setdefault(leader, {})[place] = _Batch(place, encoded)
        self._sizes[leader] = self._sizes.get(leader, 0) + len(encoded.data)

    def flush(self) -> None:
        """Returns when all is acknowledged."""
        for leader in list(self._forming):
            self._launch(leader)
        while self._flights:
            self._land()

    def _await_first(self, place: TopicPartition) -> None:
        """A partition's first batch goes alone: it may be refused while the transaction before is still ending, and
        those behind it would then all be out of order."""
        while place not in self._confirmed and any(b.place == place for f in self._flights for b in f.batches):
            self._land()

    def _leader(self, place: TopicPartition) -> int:
        leader = self._cluster.leaders.get(place)
        if leader is None:
            self._cluster.run(find_leaders(self._cluster.routing, [place]))
            leader = self._cluster.leaders[place]
        return leader

    # Requests.

    def _launch(self, leader: int) -> None:
        batches = list(self._forming.pop(leader, {}).values())
        self._sizes.pop(leader, None)
        if not batches:
            return
        while sum(flight.sent.ask.broker == leader for flight in self._flights) >= IN_FLIGHT:
            self._land()
        ask = Ask(
            leader,
            messages.ProduceRequest,
            lambda version: self._request(batches, version),
            messages.ProduceResponse,
            self._at_most,
        )
        try:
            sent = self._cluster.send(ask, self._cluster.until_s())
        except (ConnectionLost, Unreachable) as error:
            self._recover(batches, KafkaError(Errors.NETWORK_EXCEPTION, f"broker {leader}", str(error)))
            return
        self._flights.append(_Flight(sent, batches))

    def _request(self, batches: Sequence[_Batch], version: int) -> messages.ProduceRequest:
        kind = messages.ProduceRequest
        by_id = version > LAST_BY_NAME
        topics: dict[str, messages.ProduceRequest.TopicProduceData] = {}
        for place, encoded in batches:
            if place.topic not in topics:
                topics[place.topic] = (
                    kind.TopicProduceData(topic_id=self._cluster.topic_ids[place.topic])
                    if by_id
                    else kind.TopicProduceData(name=place.topic)
                )
            topics[place.topic].partition_data.append(kind.PartitionProduceData(place.partition, encoded.data))
        return kind(self._transactional_id, ALL, ACK_TIMEOUT_MS, list(topics.values()))

    def _land(self) -> None:
        """Takes the answer to the oldest request."""
        outcomes, batches = self._answer(self._flights.popleft())
        failed = self._settle(batches, outcomes, frozenset())
        if failed:
            self._recover(failed, next(o for o in outcomes.values() if isinstance(o, KafkaError)))

    def _answer(self, flight: _Flight) -> tuple[Outcomes[int], list[_Batch]]:
        places = [batch.place for batch in flight.batches]
        try:
            response = self._cluster.receive(flight.sent, self._cluster.until_s())
        except ConnectionLost as error:
            lost = KafkaError(Errors.NETWORK_EXCEPTION, str(flight.sent.connection.address), str(error))
            return dict.fromkeys(places, lost), flight.batches
        assert isinstance(response, messages.ProduceResponse)
        return self._outcomes(response, places), flight.batches

    def _outcomes(self, response: messages.ProduceResponse, places: Sequence[TopicPartition]) -> Outcomes[int]:
        names = {self._cluster.topic_ids.get(place.topic): place.topic for place in places}
        outcomes: Outcomes[int] = {
            TopicPartition(topic.name or names.get(topic.topic_id, ""), each.index): _outcome(topic.name, each)
            for topic in response.responses
            for each in topic.partition_responses
        }
        missing = [place for place in places if place not in outcomes]
        if missing:
            raise CorruptAnswer(f"a produce response says nothing about {missing[0]}")
        return outcomes

    def _settle(
        self, batches: Sequence[_Batch], outcomes: Outcomes[int], behind: frozenset[TopicPartition]
    ) -> list[_Batch]:
        """Counts what was written and gives back what may be tried again. A batch `behind` one that failed is out of
        order for that reason alone."""
        failed: list[_Batch] = []
        for batch in batches:
            outcome = outcomes[batch.place]
            if isinstance(outcome, int):
                self._confirm(batch, outcome)
            elif outcome.retriable or (outcome.error == Errors.OUT_OF_ORDER_SEQUENCE_NUMBER and batch.place in behind):
                failed.append(batch)
            else:
                raise outcome
        return failed

    def _confirm(self, batch: _Batch, offset: int) -> None:
        before = self._confirmed.get(batch.place, Delivered(0, 0, offset))
        self._confirmed[batch.place] = Delivered(
            before.records + batch.encoded.records, before.size + len(batch.encoded.data), before.first_offset
        )

    # Trouble.

    def _recover(self, failed: Sequence[_Batch], cause: KafkaError) -> None:
        """Everything under way lands first; then what failed is written again, a batch of each partition at a time,
        wherever its leader is by now."""
        left: dict[TopicPartition, deque[_Batch]] = {}
        for batch in failed:
            left.setdefault(batch.place, deque()).append(batch)
        while self._flights:
            outcomes, batches = self._answer(self._flights.popleft())
            for batch in self._settle(batches, outcomes, frozenset(left)):
                left.setdefault(batch.place, deque()).append(batch)
        # Requests in the making were meant for the leaders of before.
        for forming in self._forming.values():
            for batch in forming.values():
                left.setdefault(batch.place, deque()).append(batch)
        self._forming.clear()
        self._sizes.clear()
        self._cluster.deadline().pause("writing", cause)
        self._cluster.metadata(sorted({place.topic for place in left}))
        while left:
            heads = {place: waiting[0] for place, waiting in left.items()}
            outcomes = self._cluster.run(
                at_leaders(self._cluster.routing, list(heads), self._work(heads), "writing", new_topics=True)
            )
            for place, batch in heads.items():
                outcome = outcomes[place]
                if isinstance(outcome, KafkaError):
                    raise outcome
                self._confirm(batch, outcome)
                left[place].popleft()
                if not left[place]:
                    del left[place]

    def _work(self, heads: Mapping[TopicPartition, _Batch]) -> Work[messages.ProduceResponse, int]:
        return Work(
            messages.ProduceRequest,
            messages.ProduceResponse,
            lambda places, version: self._request([heads[place] for place in places], version),
            self._outcomes,
            self._at_most,
        )


def _outcome(topic: str, answer: messages.ProduceResponse.PartitionProduceResponse) -> int | KafkaError:
    if answer.error_code == Errors.DUPLICATE_SEQUENCE_NUMBER:
        return -1
    if not answer.error_code:
        return answer.base_offset
    reasons = [error.batch_index_error_message for error in answer.record_errors]
    message = answer.error_message or next((reason for reason in reasons if reason), None)
    return KafkaError(known(answer.error_code), f"{topic}-{answer.index}", message)
