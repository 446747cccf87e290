"""Ranges of offsets over many partitions, read without a group: what to fetch from whom, and what came. No socket here.

A fetch stands open at each leader; whichever answers first is served first. A face sends what `asks` gives and tells
`heard` what came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.client.batches import readable_batches
from ottla.client.errors import ClientError, ConnectionLost, CorruptAnswer, KafkaError, Unreachable, known
from ottla.client.offsets import EARLIEST, LATEST, READ_UNCOMMITTED, list_offsets, offset_of
from ottla.client.routing import Routing, find_leaders, refresh
from ottla.client.steps import NEWEST, Ask, Attempts, Steps, begin
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import batch as b
from ottla.protocol import messages
from ottla.protocol.codec import Message
from ottla.protocol.compression import DecompressionError
from ottla.protocol.records import CorruptBatch, Record, read_records

FETCH_BYTES: Final = 8 << 20
PARTITION_BYTES: Final = 1 << 20
MAX_WAIT_MS: Final = 500
LAST_BY_NAME: Final = 12
"""From Fetch v13 on topics go by id alone; a broker old enough to lack ids is asked by name."""


class Fetched(NamedTuple):
    """Records of one partition in order, and what the broker said about it."""

    place: TopicPartition
    records: Iterator[Record]
    """Read out of their batches as they are asked for: who wants one record does not pay for a megabyte of them.
    Raises CorruptAnswer."""
    leader_epoch: int
    high_watermark: int
    log_start_offset: int


class Position:
    """Where one partition is read."""

    __slots__ = ("done", "last", "place", "position", "wanted")

    def __init__(self, place: TopicPartition, first: int, last: int | None) -> None:
        self.place = place
        self.position = first
        """Next offset to fetch."""
        self.wanted = first
        """Records below are not given out: a batch may begin before the offset that was asked for."""
        self.last = last
        self.done = last is not None and first >= last

    def moved_to(self, offset: int) -> None:
        self.position = offset
        self.done = self.last is not None and offset >= self.last


class Fetching:
    __slots__ = ("_arrived", "_asked", "_isolation", "_max_wait_ms", "_partitions", "_timeout_s", "_trouble", "skipped")

    def __init__(
        self,
        spans: Mapping[TopicPartition, tuple[int, int | None]],
        *,
        isolation: int = READ_UNCOMMITTED,
        max_wait_ms: int = MAX_WAIT_MS,
        timeout_s: float | None = None,
    ) -> None:
        """`spans`: from which offset, and up to but without which (None: follow). Nothing but trouble for as long as
        `timeout_s` (None: the cluster's) ends it."""
        self._partitions = {place: Position(place, *span) for place, span in spans.items()}
        self._isolation = isolation
        self._max_wait_ms = max_wait_ms
        self._timeout_s = timeout_s
        self._asked: dict[int, list[Position]] = {}
        self._trouble: Attempts | None = None
        self._arrived: list[Fetched] = []
        """Kept until somebody takes them: what goes wrong elsewhere meanwhile, or who gives up, costs none of them."""
        self.skipped: dict[TopicPartition, tuple[int, int]] = {}
        """Offsets that were gone (retention, DeleteRecords) before they could be read."""

    @property
    def active(self) -> bool:
        return bool(self._arrived) or any(not partition.done for partition in self._partitions.values())

    def positions(self) -> dict[TopicPartition, int]:
        """The next offset to fetch of each partition: behind what was given, markers of transactions included."""
        return {place: partition.position for place, partition in self._partitions.items()}

    # Asking.

    def asks(self, routing: Routing, lane: str = "") -> Steps[dict[int, Ask]]:
        """For each leader of a partition that is not done, and that is not asked yet, the fetch to send."""
        unfinished = [partition for partition in self._partitions.values() if not partition.done]
        yield from find_leaders(routing, [partition.place for partition in unfinished], self._trouble)
        led: dict[int, list[Position]] = {}
        for partition in unfinished:
            led.setdefault(routing.leaders[partition.place], []).append(partition)
        fresh = {leader: partitions for leader, partitions in led.items() if leader not in self._asked}
        self._asked.update(fresh)
        return {leader: self._ask(routing, leader, partitions, lane) for leader, partitions in fresh.items()}

    def _ask(self, routing: Routing, leader: int, partitions: Sequence[Position], lane: str) -> Ask:
        at_most = NEWEST if routing.ids_of(partition.place.topic for partition in partitions) else LAST_BY_NAME

        def make(version: int) -> messages.FetchRequest:
            kind = messages.FetchRequest
            topics: dict[str, messages.FetchRequest.FetchTopic] = {}
            for partition in partitions:
                name = partition.place.topic
                if name not in topics:
                    topics[name] = (
                        kind.FetchTopic(topic_id=routing.topic_ids[name])
                        if version > LAST_BY_NAME
                        else kind.FetchTopic(topic=name)
                    )
                topics[name].partitions.append(
                    kind.FetchPartition(
                        partition=partition.place.partition,
                        fetch_offset=partition.position,
                        partition_max_bytes=PARTITION_BYTES,
                    )
                )
            return kind(
                max_wait_ms=self._max_wait_ms,
                min_bytes=1,
                max_bytes=FETCH_BYTES,
                isolation_level=self._isolation,
                topics=list(topics.values()),
            )

        return Ask(leader, messages.FetchRequest, make, messages.FetchResponse, at_most, lane=lane)

    # Hearing.

    def taken(self) -> list[Fetched]:
        """What was heard since the last time."""
        taken, self._arrived = self._arrived, []
        return taken

    def heard(self, routing: Routing, leader: int, answer: Message | ClientError) -> Steps[None]:
        """What came from a leader, or why nothing did. Raises KafkaError, TimedOut."""
        asked = self._asked.pop(leader)
        if isinstance(answer, ConnectionLost | Unreachable):
            yield from self._try_again(routing, answer, sorted({place.topic for place in self._partitions}))
            return
        if isinstance(answer, ClientError):
            raise answer
        assert isinstance(answer, messages.FetchResponse)
        if answer.error_code:
            raise KafkaError(known(answer.error_code), f"a fetch from broker {leader}")
        yield from self._serve(routing, answer, asked)

    def _try_again(self, routing: Routing, error: Exception, topics: Sequence[str]) -> Steps[None]:
        """Fresh metadata after a pause; gives up when nothing but trouble came for as long as it may."""
        if self._trouble is None:
            timeout_s = routing.timeout_s if self._timeout_s is None else self._timeout_s
            self._trouble = yield from begin(f"fetching from {', '.join(topics)}", timeout_s)
        yield from self._trouble.again(error)
        yield from refresh(routing, topics, self._trouble)

    def _serve(self, routing: Routing, response: messages.FetchResponse, asked: Sequence[Position]) -> Steps[None]:
        names = {routing.topic_ids.get(each.place.topic, b""): each.place.topic for each in asked}
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for data in topic.partitions:
                partition = self._partitions.get(TopicPartition(name, data.partition_index))
                if partition is None:
                    raise CorruptAnswer(
                        f"a fetch response names {name}-{data.partition_index}, which was not asked for"
                    )
                if data.error_code:
                    yield from self._refused(routing, partition, known(data.error_code))
                    continue
                self._trouble = None
                found = self._read(partition, data)
                if found is not None:
                    self._arrived.append(found)

    def _refused(self, routing: Routing, partition: Position, error: Errors) -> Steps[None]:
        if error == Errors.OFFSET_OUT_OF_RANGE:
            yield from self._back_into_range(routing, partition)
            return
        refusal = KafkaError(error, str(partition.place))
        if not refusal.retriable:
            raise refusal
        routing.leaders.pop(partition.place, None)
        yield from self._try_again(routing, refusal, [partition.place.topic])

    def _back_into_range(self, routing: Routing, partition: Position) -> Steps[None]:
        place, position = partition.place, partition.position
        earliest = offset_of((yield from list_offsets.steps(routing, {place: EARLIEST}))[place])
        if position < earliest:
            self.skipped[place] = (position, earliest)
            partition.moved_to(earliest)
            return
        found = yield from list_offsets.steps(routing, {place: LATEST}, isolation=self._isolation)
        latest = offset_of(found[place])
        if position > latest:
            # Asked for an offset that is yet to come: wait at the end, and give out nothing below it. But after some
            # records were read, the log has shrunk (unclean election): what comes now is new.
            if position != partition.wanted:
                partition.wanted = latest
            partition.moved_to(latest)

    def _read(self, partition: Position, data: messages.FetchResponse.PartitionData) -> Fetched | None:
        if not data.records:
            return None
        # Who was served goes to the end of the next request, so that a full response starves nobody.
        self._partitions[partition.place] = self._partitions.pop(partition.place)
        aborted = [(a.first_offset, a.producer_id) for a in data.aborted_transactions or ()]
        batches: list[tuple[memoryview, int]] = []
        epoch = -1
        for header, batch in readable_batches(str(partition.place), memoryview(data.records), aborted):
            if partition.done:
                break
            if header.last_offset < partition.position:
                continue
            if batch is not None:
                batches.append((batch, max(partition.wanted, partition.position)))
                epoch = header.leader_epoch
            partition.moved_to(header.last_offset + 1)
        if not batches:
            return None
        records = _records(partition.place, batches, partition.last)
        return Fetched(partition.place, records, epoch, data.high_watermark, data.log_start_offset)


def _records(place: TopicPartition, batches: Sequence[tuple[memoryview, int]], high: int | None) -> Iterator[Record]:
    """Of each batch the records from an offset on, up to but without `high`."""
    for batch, low in batches:
        try:
            for record in read_records(batch):
                if record.offset >= low and (high is None or record.offset < high):
                    yield record
        except (CorruptBatch, DecompressionError) as error:
            offset = b.read_header(batch).base_offset
            raise CorruptAnswer(f"the batch at offset {offset} of {place} cannot be read: {error}") from error
