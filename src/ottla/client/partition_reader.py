"""One partition between two offsets, as whole batches that nobody has decoded: for readers that turn them into columns.

The next fetch is under way while the caller works on the last answer. Offsets that were deleted are an error unless
the caller says otherwise: who asks for an exact range must not get less in silence.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.client.batches import readable_batches
from ottla.client.cluster import Cluster
from ottla.client.connection import Connection
from ottla.client.consumer import EARLIEST, LATEST, READ_COMMITTED, Found, list_offsets
from ottla.client.deadline import Deadline
from ottla.client.errors import ClientError, ConnectionLost, CorruptAnswer, KafkaError, Unreachable, known
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import batch as b
from ottla.protocol import messages

FETCH_BYTES: Final = 4 << 20
LEAST_FETCH_BYTES: Final = 64 << 10
FIRST_GUESS_BYTES: Final = 512
"""What a record may weigh as long as none was seen: a short range should not fetch megabytes beyond its end."""
MAX_WAIT_MS: Final = 500

Batches = list[tuple[b.BatchHeader, memoryview]]
Part = tuple[int, Batches]
"""Batches of one answer, and the offset from which on their records were asked for."""

_log = logging.getLogger(__name__)


class DataLost(ClientError):
    """Offsets that were asked for are not in the log any more, or the log ends before them."""

    def __init__(self, place: TopicPartition, first: int, last: int, reason: str) -> None:
        self.place = place
        self.first = first
        self.last = last
        super().__init__(f"offsets {first} to {last - 1} of {place} cannot be read: {reason}")


class _Asked(NamedTuple):
    leader: int
    connection: Connection
    correlation: int


class PartitionReader:
    """Iterate: batches of [start, end) as they arrive. Those of a part may begin below its offset, the last may end
    beyond `end`: leaving such records out is up to who decodes them."""

    __slots__ = (
        "_asked", "_cluster", "_end", "_isolation", "_place", "_position", "_seen_bytes", "_seen_offsets", "_skip_lost",
        "_trouble",
    )  # fmt: skip

    def __init__(
        self,
        cluster: Cluster,
        place: TopicPartition,
        start: int,
        end: int,
        *,
        isolation: int = READ_COMMITTED,
        skip_lost: bool = False,
    ) -> None:
        self._cluster = cluster
        self._place = place
        self._position = start
        self._end = end
        self._isolation = isolation
        self._skip_lost = skip_lost
        self._asked: _Asked | None = None
        self._trouble: Deadline | None = None
        self._seen_bytes = 0
        self._seen_offsets = 0

    def __iter__(self) -> Iterator[Part]:
        try:
            while self._position < self._end:
                data = self._receive()
                if data is None:
                    continue
                low = self._position
                batches = self._take(data)
                self._ask_ahead()
                if batches:
                    yield low, batches
        finally:
            if self._asked is not None:  # its answer would be taken for that of a later request
                self._cluster.drop(self._asked.leader)

    # Asking.

    def _ask_ahead(self) -> None:
        """A leader that cannot be reached now is somebody's problem when its answer is needed."""
        if self._position < self._end and self._trouble is None:
            try:
                self._asked = self._send()
            except (ConnectionLost, Unreachable):
                self._asked = None

    def _send(self) -> _Asked:
        leader = self._leader()
        deadline = self._cluster.deadline()
        try:
            connection = self._cluster.connection(leader, deadline)
            topic_id = self._cluster.topic_ids.get(self._place.topic, b"")
            # From v13 on topics go by id alone; a broker old enough to lack ids is asked by name.
            at_most = 0x7FFF if any(topic_id) else 12
            by_id = connection.version_for(messages.FetchRequest, at_most) >= 13
            request = self._request(topic_id if by_id else None)
            return _Asked(leader, connection, connection.submit(request, deadline=deadline.end, at_most=at_most))
        except (ConnectionLost, Unreachable):
            self._cluster.drop(leader)
            raise

    def _leader(self) -> int:
        place = self._place
        leader = self._cluster.leaders.get(place)
        if leader is not None:
            return leader
        if place.partition not in self._cluster.partitions(place.topic):  # raises if the topic is gone
            raise KafkaError(Errors.UNKNOWN_TOPIC_OR_PARTITION, str(place))
        deadline = self._cluster.deadline()
        while (leader := self._cluster.leaders.get(place)) is None:
            deadline.pause(f"finding the leader of {place}", KafkaError(Errors.LEADER_NOT_AVAILABLE, str(place)))
            self._cluster.metadata([place.topic])
        return leader

    def _request(self, topic_id: bytes | None) -> messages.FetchRequest:
        size = self._fetch_bytes()
        kind = messages.FetchRequest
        partition = kind.FetchPartition(
            partition=self._place.partition, fetch_offset=self._position, partition_max_bytes=size
        )
        topic = (
            kind.FetchTopic(topic=self._place.topic, partitions=[partition])
            if topic_id is None
            else kind.FetchTopic(topic_id=topic_id, partitions=[partition])
        )
        return kind(
            max_wait_ms=MAX_WAIT_MS, min_bytes=1, max_bytes=size, isolation_level=self._isolation, topics=[topic]
        )

    def _fetch_bytes(self) -> int:
        """About what is left, so that little is fetched beyond the end."""
        each = self._seen_bytes / self._seen_offsets if self._seen_offsets else FIRST_GUESS_BYTES
        return max(LEAST_FETCH_BYTES, min(int((self._end - self._position) * each * 1.1), FETCH_BYTES))

    # Receiving.

    def _receive(self) -> messages.FetchResponse.PartitionData | None:
        """What came for this partition; None when something went wrong and the next attempt is due."""
        try:
            asked = self._asked or self._send()
            self._asked = None
            deadline = self._cluster.deadline()
            response = asked.connection.receive(asked.correlation, messages.FetchResponse, deadline=deadline.end)
        except (ConnectionLost, Unreachable) as error:
            leader = self._cluster.leaders.pop(self._place, None)
            if leader is not None:
                self._cluster.drop(leader)
            self._try_again(error)
            return None
        if response.error_code:
            raise KafkaError(known(response.error_code), f"a fetch from {asked.connection.address}")
        for topic in response.responses:
            for data in topic.partitions:
                if data.partition_index == self._place.partition:
                    return None if data.error_code and self._refused(known(data.error_code)) else data
        raise CorruptAnswer(f"a fetch response says nothing about {self._place}")

    def _refused(self, error: Errors) -> bool:
        if error == Errors.OFFSET_OUT_OF_RANGE:
            self._out_of_range()
            return True
        refusal = KafkaError(error, str(self._place))
        if not refusal.retriable:
            raise refusal
        self._cluster.leaders.pop(self._place, None)
        self._try_again(refusal)
        return True

    def _try_again(self, error: Exception) -> None:
        if self._trouble is None:
            self._trouble = self._cluster.deadline()
        self._trouble.pause(f"reading {self._place} from offset {self._position}", error)
        self._cluster.metadata([self._place.topic])

    def _out_of_range(self) -> None:
        earliest = self._log_end(EARLIEST)
        if self._position < earliest:
            gone = min(earliest, self._end)
            self._lost(gone, f"the log begins at {earliest}, what was before is deleted")
            self._position = gone
            return
        latest = self._log_end(LATEST)
        if self._position > latest:
            self._lost(self._end, f"the log ends at {latest}: it was truncated, or the topic made anew")
            self._position = self._end
        else:  # a leader that is behind what was promised, for the moment
            self._try_again(KafkaError(Errors.OFFSET_OUT_OF_RANGE, str(self._place)))

    def _log_end(self, which: int) -> int:
        found = list_offsets(self._cluster, {self._place: which}, isolation=self._isolation)[self._place]
        if isinstance(found, Found):
            return found.offset
        raise found

    def _lost(self, until: int, reason: str) -> None:
        loss = DataLost(self._place, self._position, until, reason)
        if not self._skip_lost:
            raise loss
        _log.warning("%s; going on, as failOnDataLoss=false asks for", loss)

    def _take(self, data: messages.FetchResponse.PartitionData) -> Batches:
        batches: Batches = []
        began = self._position
        records = memoryview(data.records or b"")
        aborted = [(a.first_offset, a.producer_id) for a in data.aborted_transactions or ()]
        for header, batch in readable_batches(str(self._place), records, aborted):
            if header.base_offset >= self._end:
                self._position = self._end
                break
            if header.last_offset < self._position:
                continue
            if batch is not None:
                batches.append((header, batch))
            self._position = header.last_offset + 1
        if self._position == began:
            self._nothing_new(data)
        else:
            self._trouble = None
            self._seen_bytes += len(records)
            self._seen_offsets += self._position - began
        return batches

    def _nothing_new(self, data: messages.FetchResponse.PartitionData) -> None:
        """The end was known to be there, so this passes (a new leader's high watermark lags), or the log has shrunk."""
        if self._trouble is None:
            self._trouble = self._cluster.deadline()
        if self._trouble.left():
            return
        reason = f"the leader's log gives nothing beyond {self._position}, its high watermark is {data.high_watermark}"
        self._lost(self._end, reason)
        self._position = self._end
