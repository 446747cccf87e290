"""MirrorSourceConnector: records of a partition there become records of the same partition here, in Arrow's columns.

Position: the offset of the last record that was copied, filed under cluster, partition and topic, as MirrorMaker files
it; so either of the two goes on where the other stopped. Copies and position are one transaction on the target. Syncs
are part of it where they are written on the target. On the source they are written before the commit: if that fails,
they point at an offset at or before the copy that comes later, so whoever begins there misses nothing.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.partition_reader import Part, PartitionReader
from ottla.client.blocking.producer import Producer
from ottla.client.errors import ClientError, KafkaError
from ottla.client.offsets import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets, offset_of
from ottla.connect import spi
from ottla.mirror.config import SourceMirrorConfig
from ottla.mirror.formats import OffsetSync
from ottla.mirror.measures import of_copies
from ottla.mirror.own_topics import ensure_compacted
from ottla.mirror.policy import policy_of
from ottla.mirror.remote import Remote
from ottla.mirror.selection import Selection, TopicSettings, topics_of
from ottla.mirror.sides import SideError, connected, isolation_of
from ottla.mirror.syncs import PartitionSyncs
from ottla.mirror.tending import Tending
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.pipelines.source.columns import HEADERS_TYPE, Columns, read_columns

_CLUSTER: Final = "cluster"
MANY: Final = 5_000
"""Who asks for so many records at once has a backlog to read, and will ask again."""


class _Tended:
    """What is known of the topics of a flow, and when each part was looked at last."""

    def __init__(self, config: SourceMirrorConfig) -> None:
        self.tending = _tending(config)
        self.topics: dict[str, int] = {}
        self.due: dict[str, float] = {}

    def is_due(self, what: str, every_s: int, now_s: float) -> bool:
        if now_s < self.due.get(what, float("-inf")):
            return False
        self.due[what] = now_s + every_s
        return True


class _Following(NamedTuple):
    """A backlog that is read from one answer to the next."""

    parts: Iterator[Part]
    position: int
    end: int


class MirrorSource(spi.Source[SourceMirrorConfig]):
    exactly_once: ClassVar[bool] = True

    def __init__(self, config: SourceMirrorConfig, name: str, partition: spi.Partition = {}) -> None:  # noqa: B006
        super().__init__(config, name, partition)
        self._policy = policy_of(config.everything)
        self._alias = config.source_cluster_alias
        self._source: Cluster | None = None
        self._syncs = PartitionSyncs(config.offset_lag_max)
        self._read_ms: int | None = None
        self._following: _Following | None = None
        self._topics: _Tended | None = None
        """Of the instance that is asked for partitions."""

    def validate(self) -> None:
        try:
            policy_of(self.config.everything)
            for side in ("source", "target"):
                connected(self.config.everything, side).close()
        except (SideError, ValueError) as error:
            raise spi.ConfigRefused("", str(error)) from error

    def partitions(self) -> Sequence[spi.Partition]:
        if not self.config.enabled:
            return []
        topics = self._tended()
        return [
            {_CLUSTER: self._alias, "partition": partition, "topic": topic}
            for topic, count in topics.items()
            for partition in range(count)
        ]

    @classmethod
    def check_offset(cls, partition: spi.Partition, offset: spi.Offset | None) -> None:
        spi.text_of(partition, _CLUSTER, "topic")
        spi.number_of(partition, "partition", "partition")
        if offset is not None:
            spi.number_of(offset, "offset")

    def read(self, start: spi.Offset | None, limit: int) -> spi.Read:
        place = TopicPartition(str(self.partition["topic"]), int(self.partition["partition"]))
        try:
            columns, last, more = self._columns(place, start, limit)
        except KafkaError as error:
            if error.error == Errors.UNKNOWN_TOPIC_OR_PARTITION:
                return spi.Read([], None)  # deleted on the source: its copy stays
            raise spi.TryAgain(str(error)) from error
        except ClientError as error:
            raise spi.TryAgain(str(error)) from error
        if last is None:
            return spi.Read([], None)
        self._read_ms = time.time_ns() // 1_000_000
        return spi.Read(self._copies(place, columns), {"offset": last}, more)

    def delivered(self, reads: Sequence[spi.Read], first_offsets: Mapping[tuple[str, int], int]) -> Sequence[spi.Row]:
        if not self.config.emit_offset_syncs_enabled:
            return ()
        topic, partition = str(self.partition["topic"]), int(self.partition["partition"])
        downstream = first_offsets.get((self._policy.remote_topic(self._alias, topic), partition))
        offsets = [read.rows.offsets.to_numpy() for read in reads if isinstance(read.rows, spi.Copies)]
        if downstream is None or not offsets:
            return ()
        pairs: list[tuple[int, int]] = []
        for upstream, count in _stretches(np.concatenate(offsets)):
            pairs += self._syncs.copied_span(upstream, downstream, count)
            downstream += count
            last = (upstream + count - 1, downstream - 1)
        # The end of what was read, too: a quiet topic is exact there.
        return self._emitted([OffsetSync(topic, partition, *pair) for pair in dict.fromkeys([*pairs, last])])

    def observed(self, reads: Sequence[spi.Read], now_ms: int) -> Sequence[spi.Observed]:
        flow = self._alias, self.config.target_cluster_alias
        return [
            each
            for read in reads
            if isinstance(read.rows, spi.Copies) and len(read.rows.values)
            for each in of_copies(flow, read.rows, self._read_ms or now_ms, now_ms)
        ]

    def poll_interval_ms(self) -> int:
        return self.config.consumer_poll_timeout_ms

    def close(self) -> None:
        if self._source is not None:
            self._source.close()
            self._source = None
        if self._topics is not None:
            self._topics.tending.close()
            self._topics = None

    def _columns(
        self, place: TopicPartition, start: spi.Offset | None, limit: int
    ) -> tuple[list[Columns], int | None, bool]:
        """What lies behind `start`, the last offset that was looked at, and whether there is more."""
        following = self._following
        if following is not None and start is not None and following.position == int(start["offset"]) + 1:
            return self._followed(place, following)
        source = self._opened()
        committed = isolation_of(self.config.everything) == "read_committed"
        isolation = READ_COMMITTED if committed else READ_UNCOMMITTED
        end = offset_of(list_offsets(source, {place: LATEST}, isolation=isolation)[place])
        first = offset_of(list_offsets(source, {place: EARLIEST})[place])
        begin = first if start is None else max(int(start["offset"]) + 1, first)
        if start is not None and begin > end:
            # The source was made anew: its offsets begin again, and so do we.
            begin = first
        stop = min(end, begin + limit)
        if begin >= stop:
            return [], None, False
        reader = PartitionReader(
            source, place, begin, end if limit >= MANY else stop, isolation=isolation, skip_lost=True
        )
        if limit >= MANY:
            self._following = _Following(iter(reader), begin, end)
            return self._followed(place, self._following)
        found: list[Columns] = []
        for low, batches in reader:
            found += read_columns(str(place), batches, low, stop, with_headers=True)
        return found, stop - 1, stop < end

    def _followed(self, place: TopicPartition, following: "_Following") -> tuple[list[Columns], int | None, bool]:
        """One answer of the source; the next is under way meanwhile. What it takes in memory is used again by the next,
        which costs less than the copying itself would with memory that nobody has touched."""
        self._following = None  # whatever fails here, the next read begins anew
        part = next(following.parts, None)
        if part is None:
            return [], following.end - 1, False
        low, batches = part
        found = list(read_columns(str(place), batches, low, following.end, with_headers=True))
        position = min(batches[-1][0].last_offset + 1, following.end)
        if position < following.end:
            self._following = following._replace(position=position)
        return found, position - 1, position < following.end

    def _copies(self, place: TopicPartition, found: Sequence[Columns]) -> spi.Copies | list[spi.Row]:
        taken = [columns for columns in found if len(columns)]
        if not taken:
            return []
        headers = [
            pa.nulls(len(columns), HEADERS_TYPE) if columns.headers is None else columns.headers.cast(HEADERS_TYPE)
            for columns in taken
        ]
        return spi.Copies(
            self._policy.remote_topic(self._alias, place.topic),
            place.partition,
            _joined([columns.keys for columns in taken], pa.binary()),
            _joined([columns.values for columns in taken], pa.binary()),
            _joined([pa.array(columns.timestamps, pa.int64()) for columns in taken], pa.int64()),
            _joined(headers, HEADERS_TYPE),
            _joined([pa.array(columns.offsets, pa.int64()) for columns in taken], pa.int64()),
        )

    def _emitted(self, syncs: Sequence[OffsetSync]) -> Sequence[spi.Row]:
        config = self.config
        on_source = config.offset_syncs_topic_location == "source"
        topic = self._policy.offset_syncs_topic(config.target_cluster_alias if on_source else self._alias)
        if not on_source:
            return [spi.Row(topic, sync.value(), sync.key(), partition=0) for sync in syncs]
        producer = Producer(self._opened())
        for sync in syncs:
            producer.send(topic, sync.value(), key=sync.key(), partition=0)
        producer.flush()
        return ()

    def _tended(self) -> dict[str, int]:
        config = self.config
        now_s = time.monotonic()
        try:
            known = self._topics
            if known is None:
                known = _Tended(config)
                self._make_syncs_topic(known.tending)
                self._topics = known
            if not known.topics or (
                config.refresh_topics_enabled and known.is_due("topics", config.refresh_topics_interval_seconds, now_s)
            ):
                known.topics = known.tending.refreshed()
            if config.sync_topic_configs_enabled and known.is_due(
                "settings", config.sync_topic_configs_interval_seconds, now_s
            ):
                known.tending.sync_settings(sorted(known.topics))
            if config.sync_topic_acls_enabled and known.is_due("acls", config.sync_topic_acls_interval_seconds, now_s):
                known.tending.sync_acls()
        except ClientError as error:
            raise spi.TryAgain(str(error)) from error
        return known.topics

    def _make_syncs_topic(self, tending: Tending) -> None:
        if not self.config.emit_offset_syncs_enabled:
            return
        on_source = self.config.offset_syncs_topic_location == "source"
        alias = self.config.target_cluster_alias if on_source else self._alias
        ensure_compacted(
            tending.source if on_source else tending.target,
            self._policy.offset_syncs_topic(alias),
            self.config.offset_syncs_topic_replication_factor,
        )

    def _opened(self) -> Cluster:
        if self._source is None:
            self._source = connected(self.config.everything, "source", "consumer")
        return self._source


def _tending(config: SourceMirrorConfig) -> Tending:
    everything = config.everything
    policy = policy_of(everything)
    selection = Selection(
        policy, topics_of(everything), config.target_cluster_alias, config.heartbeats_replication_enabled
    )
    remote = Remote(policy, selection, TopicSettings.of(everything), config.source_cluster_alias)
    return Tending(remote, connected(everything, "source"), connected(everything, "target"), config.replication_factor)


def _stretches(offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    """(first offset, records) of stretches in which no offset is left out."""
    breaks = [0, *((offsets[1:] != offsets[:-1] + 1).nonzero()[0] + 1).tolist(), len(offsets)]
    return [(int(offsets[begin]), end - begin) for begin, end in pairwise(breaks)]


def _joined(arrays: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if len(arrays) == 1 and arrays[0].type == kind:
        return arrays[0]
    return pa.concat_arrays([array.cast(kind) if array.type != kind else array for array in arrays])
