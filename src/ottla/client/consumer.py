"""An assigning consumer: ranges of offsets over many partitions, no group. Finds offsets by time, follows what grows.

Fetches from all leaders at once: a request stands open at each, and whichever answers first is served first.
"""

from __future__ import annotations

import select
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from ottla.client.batches import readable_batches
from ottla.client.cluster import Cluster, Outcomes
from ottla.client.connection import Connection
from ottla.client.deadline import Deadline
from ottla.client.errors import ConnectionLost, CorruptAnswer, KafkaError, Unreachable, known
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import batch as b
from ottla.protocol import messages
from ottla.protocol.compression import DecompressionError
from ottla.protocol.records import CorruptBatch, Record, read_records

EARLIEST: Final = -2
LATEST: Final = -1
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1

FETCH_BYTES: Final = 8 << 20
PARTITION_BYTES: Final = 1 << 20
MAX_WAIT_MS: Final = 500


class Found(NamedTuple):
    """What ListOffsets knows: offset -1 when no record is as new as the time asked for."""

    offset: int
    timestamp: int
    leader_epoch: int


class Fetched(NamedTuple):
    """Records of one partition in order, and what the broker said about it."""

    place: TopicPartition
    records: Iterator[Record]
    """Read out of their batches as they are asked for: who wants one record does not pay for a megabyte of them.
    Raises CorruptAnswer."""
    leader_epoch: int
    high_watermark: int
    log_start_offset: int


def list_offsets(
    cluster: Cluster, times: Mapping[TopicPartition, int], *, isolation: int = READ_UNCOMMITTED
) -> Outcomes[Found]:
    """For each partition the first offset at or after a time in ms, or EARLIEST, or LATEST."""
    return cluster.at_leaders(list(times), partial(_list_offsets, cluster, times, isolation), "finding offsets")


def _list_offsets(
    cluster: Cluster,
    times: Mapping[TopicPartition, int],
    isolation: int,
    leader: int,
    places: Sequence[TopicPartition],
    deadline: Deadline,
) -> Outcomes[Found]:
    topics: dict[str, messages.ListOffsetsRequest.ListOffsetsTopic] = {}
    for place in places:
        topic = topics.setdefault(place.topic, messages.ListOffsetsRequest.ListOffsetsTopic(name=place.topic))
        topic.partitions.append(
            messages.ListOffsetsRequest.ListOffsetsPartition(partition_index=place.partition, timestamp=times[place])
        )
    request = messages.ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=list(topics.values()))
    response = cluster.call_once(request, messages.ListOffsetsResponse, deadline, broker=leader)
    outcomes: Outcomes[Found] = {}
    for answer in response.topics:
        for partition in answer.partitions:
            place = TopicPartition(answer.name, partition.partition_index)
            if partition.error_code:
                outcomes[place] = KafkaError(known(partition.error_code), str(place))
            else:
                outcomes[place] = Found(partition.offset, partition.timestamp, partition.leader_epoch)
    missing = [place for place in places if place not in outcomes]
    if missing:
        raise CorruptAnswer(f"a ListOffsets response says nothing about {missing[0]}")
    return outcomes


class _Partition:
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


class _Asked(NamedTuple):
    connection: Connection
    correlation: int
    partitions: list[_Partition]


class Consumer:
    """`poll` until `active` is False, or for ever. Records of a partition come in order."""

    __slots__ = ("_asked", "_cluster", "_isolation", "_max_wait_ms", "_partitions", "_trouble", "skipped")

    def __init__(
        self,
        cluster: Cluster,
        spans: Mapping[TopicPartition, tuple[int, int | None]],
        *,
        isolation: int = READ_UNCOMMITTED,
        max_wait_ms: int = MAX_WAIT_MS,
    ) -> None:
        """`spans`: from which offset, and up to but without which (None: follow)."""
        self._cluster = cluster
        self._partitions = {place: _Partition(place, *span) for place, span in spans.items()}
        self._isolation = isolation
        self._max_wait_ms = max_wait_ms
        self._asked: dict[int, _Asked] = {}
        self._trouble: Deadline | None = None
        self.skipped: dict[TopicPartition, tuple[int, int]] = {}
        """Offsets that were gone (retention, DeleteRecords) before they could be read."""

    @property
    def active(self) -> bool:
        return any(not partition.done for partition in self._partitions.values())

    def positions(self) -> dict[TopicPartition, int]:
        """The next offset to fetch of each partition: behind what `poll` gave, markers of transactions included."""
        return {place: partition.position for place, partition in self._partitions.items()}

    def poll(self, timeout_s: float) -> list[Fetched]:
        """What has arrived, waiting at most that long for something. Raises KafkaError, TimedOut."""
        self._ask()
        fetched: list[Fetched] = []
        for leader in self._ready(timeout_s):
            try:
                fetched += self._take(leader)
            except ConnectionLost as error:
                self._lost(leader, error)
        return fetched

    def _ready(self, timeout_s: float) -> list[int]:
        """Leaders whose answer is here, or whose socket has something to say."""
        # Another request on the same connection may have read the answer, or found the connection broken.
        at_once = [
            leader
            for leader, asked in self._asked.items()
            if asked.connection.closed or asked.connection.arrived(asked.correlation)
        ]
        if at_once or not self._asked:
            return at_once
        waiting = {asked.connection.fileno(): leader for leader, asked in self._asked.items()}
        poller = select.poll()
        for fd in waiting:
            poller.register(fd, select.POLLIN)
        return [waiting[fd] for fd, _ in poller.poll(timeout_s * 1000)]

    def _ask(self) -> None:
        """A fetch stands open at each leader of a partition that is not done."""
        groups: dict[int, list[_Partition]] = {}
        for partition in self._partitions.values():
            if not partition.done:
                groups.setdefault(self._leader(partition.place), []).append(partition)
        for leader, partitions in groups.items():
            if leader in self._asked:
                continue
            try:
                self._asked[leader] = self._send(leader, partitions)
            except (ConnectionLost, Unreachable) as error:
                self._lost(leader, error)

    def _leader(self, place: TopicPartition) -> int:
        leader = self._cluster.leaders.get(place)
        if leader is not None:
            return leader
        self._cluster.partitions(place.topic)  # raises if the topic is gone
        deadline = self._cluster.deadline()
        while (leader := self._cluster.leaders.get(place)) is None:
            deadline.pause(f"finding the leader of {place}", KafkaError(Errors.LEADER_NOT_AVAILABLE, str(place)))
            self._cluster.metadata([place.topic])
        return leader

    def _send(self, leader: int, partitions: list[_Partition]) -> _Asked:
        deadline = self._cluster.deadline()
        connection = self._cluster.connection(leader, deadline)
        ids = self._cluster.topic_ids
        # From v13 on topics go by id alone; a broker old enough to lack ids is asked by name.
        have_ids = all(any(ids.get(partition.place.topic, b"")) for partition in partitions)
        at_most = 0x7FFF if have_ids else 12
        by_id = connection.version_for(messages.FetchRequest, at_most) >= 13
        topics: dict[str, messages.FetchRequest.FetchTopic] = {}
        for partition in partitions:
            name = partition.place.topic
            if name not in topics:
                topics[name] = (
                    messages.FetchRequest.FetchTopic(topic_id=ids[name])
                    if by_id
                    else messages.FetchRequest.FetchTopic(topic=name)
                )
            topics[name].partitions.append(
                messages.FetchRequest.FetchPartition(
                    partition=partition.place.partition,
                    fetch_offset=partition.position,
                    partition_max_bytes=PARTITION_BYTES,
                )
            )
        request = messages.FetchRequest(
            max_wait_ms=self._max_wait_ms,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=self._isolation,
            topics=list(topics.values()),
        )
        return _Asked(connection, connection.submit(request, deadline=deadline.end, at_most=at_most), partitions)

    def _lost(self, leader: int, error: ConnectionLost | Unreachable) -> None:
        self._cluster.drop(leader)
        self._asked.pop(leader, None)
        self._try_again(error, sorted({place.topic for place in self._partitions}))

    def _try_again(self, error: Exception, topics: Sequence[str]) -> None:
        """Fresh metadata after a pause; gives up when nothing but trouble came for as long as a deadline."""
        if self._trouble is None:
            self._trouble = self._cluster.deadline()
        self._trouble.pause(f"fetching from {', '.join(topics)}", error)
        self._cluster.metadata(topics)

    def _take(self, leader: int) -> list[Fetched]:
        asked = self._asked[leader]
        connection, deadline = asked.connection, self._cluster.deadline()
        if connection.closed:
            raise ConnectionLost(str(connection.address), "it broke while a fetch was waiting")
        if not connection.arrived(asked.correlation):
            connection.pump(deadline.end)
        if not connection.arrived(asked.correlation):
            return []
        response = connection.receive(asked.correlation, messages.FetchResponse, deadline=deadline.end)
        del self._asked[leader]
        if response.error_code:
            raise KafkaError(known(response.error_code), f"a fetch from {connection.address}")
        return self._serve(response, asked.partitions)

    def _serve(self, response: messages.FetchResponse, asked: Sequence[_Partition]) -> list[Fetched]:
        names = {self._cluster.topic_ids.get(p.place.topic, b""): p.place.topic for p in asked}
        fetched: list[Fetched] = []
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for data in topic.partitions:
                partition = self._partitions.get(TopicPartition(name, data.partition_index))
                if partition is None:
                    raise CorruptAnswer(
                        f"a fetch response names {name}-{data.partition_index}, which was not asked for"
                    )
                if data.error_code:
                    self._refused(partition, known(data.error_code))
                    continue
                self._trouble = None
                found = self._read(partition, data)
                if found is not None:
                    fetched.append(found)
        return fetched

    def _refused(self, partition: _Partition, error: Errors) -> None:
        if error == Errors.OFFSET_OUT_OF_RANGE:
            self._back_into_range(partition)
            return
        refusal = KafkaError(error, str(partition.place))
        if not refusal.retriable:
            raise refusal
        self._cluster.leaders.pop(partition.place, None)
        self._try_again(refusal, [partition.place.topic])

    def _back_into_range(self, partition: _Partition) -> None:
        place, position = partition.place, partition.position
        earliest = _offset(list_offsets(self._cluster, {place: EARLIEST})[place])
        if position < earliest:
            self.skipped[place] = (position, earliest)
            partition.moved_to(earliest)
            return
        latest = _offset(list_offsets(self._cluster, {place: LATEST}, isolation=self._isolation)[place])
        if position > latest:
            # Asked for an offset that is yet to come: wait at the end, and give out nothing below it. But after some
            # records were read, the log has shrunk (unclean election): what comes now is new.
            if position != partition.wanted:
                partition.wanted = latest
            partition.moved_to(latest)

    def _read(self, partition: _Partition, data: messages.FetchResponse.PartitionData) -> Fetched | None:
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


def _offset(outcome: Found | KafkaError) -> int:
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome.offset
