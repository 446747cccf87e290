"""One partition between two offsets, as whole batches that nobody has decoded: for readers that turn them into columns.

The next fetch is under way while the caller works on the last answer. Offsets that were deleted are an error unless
the caller says otherwise: who asks for an exact range must not get less in silence.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from ottla.client.batches import readable_batches
from ottla.client.blocking.cluster import Cluster, Sent
from ottla.client.blocking.deadline import now_s
from ottla.client.errors import ClientError, ConnectionLost, CorruptAnswer, KafkaError, Unreachable, known
from ottla.client.fetching import LAST_BY_NAME
from ottla.client.offsets import EARLIEST, LATEST, READ_COMMITTED, list_offsets, offset_of
from ottla.client.routing import find_leaders, refresh
from ottla.client.steps import NEWEST, Ask, Attempts, Steps, begin
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

logger = logging.getLogger(__name__)


class DataLost(ClientError):
    """Offsets that were asked for are not in the log any more, or the log ends before them."""

    def __init__(self, place: TopicPartition, first: int, last: int, reason: str) -> None:
        self.place = place
        self.first = first
        self.last = last
        super().__init__(f"offsets {first} to {last - 1} of {place} cannot be read: {reason}")


class PartitionReader:
    """Iterate: batches of [start, end) as they arrive. Those of a part may begin below its offset, the last may end
    beyond `end`: leaving such records out is up to who decodes them."""

    __slots__ = (
        "_cluster", "_end", "_isolation", "_place", "_position", "_seen_bytes", "_seen_offsets", "_sent", "_skip_lost",
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
        self._sent: Sent | None = None
        self._trouble: Attempts | None = None
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
            if self._sent is not None:
                self._cluster.abandon(self._sent)

    # Asking.

    def _ask_ahead(self) -> None:
        """A leader that cannot be reached now is somebody's problem when its answer is needed."""
        if self._position < self._end and self._trouble is None:
            try:
                self._sent = self._send()
            except (ConnectionLost, Unreachable):
                self._sent = None

    def _send(self) -> Sent:
        place, routing = self._place, self._cluster.routing
        self._cluster.run(find_leaders(routing, [place], self._trouble))
        by_id = routing.ids_of([place.topic])

        def make(version: int) -> messages.FetchRequest:
            return self._request(routing.topic_ids[place.topic] if version > LAST_BY_NAME else None)

        ask = Ask(
            routing.leaders[place],
            messages.FetchRequest,
            make,
            messages.FetchResponse,
            NEWEST if by_id else LAST_BY_NAME,
        )
        return self._cluster.send(ask, self._cluster.until_s())

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
            sent = self._sent or self._send()
            self._sent = None
            response = self._cluster.receive(sent, self._cluster.until_s())
        except (ConnectionLost, Unreachable) as error:
            self._cluster.leaders.pop(self._place, None)
            self._try_again(error)
            return None
        assert isinstance(response, messages.FetchResponse)
        if response.error_code:
            raise KafkaError(known(response.error_code), f"a fetch from {sent.connection.address}")
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
        self._cluster.run(self._trying_again(error))

    def _trying_again(self, error: Exception) -> Steps[None]:
        routing = self._cluster.routing
        if self._trouble is None:
            self._trouble = yield from self._began()
        yield from self._trouble.again(error)
        yield from refresh(routing, [self._place.topic], self._trouble)

    def _began(self) -> Steps[Attempts]:
        return begin(f"reading {self._place} from offset {self._position}", self._cluster.timeout_s)

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
        return offset_of(list_offsets(self._cluster, {self._place: which}, isolation=self._isolation)[self._place])

    def _lost(self, until: int, reason: str) -> None:
        loss = DataLost(self._place, self._position, until, reason)
        if not self._skip_lost:
            raise loss
        logger.warning("%s; going on, as failOnDataLoss=false asks for", loss)

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
            self._trouble = self._cluster.run(self._began())
        if now_s() < self._trouble.end_s:
            return
        reason = f"the leader's log gives nothing beyond {self._position}, its high watermark is {data.high_watermark}"
        self._lost(self._end, reason)
        self._position = self._end
