"""Replicas hold the same bytes below the high watermark."""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, NamedTuple

from ottla.protocol.batch import HEADER_SIZE, read_header
from ottla.testing.checkers.anomaly import Anomaly


class StoredBatch(NamedTuple):
    base_offset: int
    last_offset: int
    data: bytes


def batches(segments: Iterable[bytes]) -> Iterator[StoredBatch]:
    """The batches of a log's segment files, given in order. A torn end is where a log ends."""
    for segment in segments:
        position = 0
        while position + HEADER_SIZE <= len(segment):
            header = read_header(segment, position)
            end = position + header.size
            if header.size < HEADER_SIZE or end > len(segment):
                break
            yield StoredBatch(header.base_offset, header.last_offset, segment[position:end])
            position = end


class ReplicasIdentical:
    """Compares the logs of one partition batch by batch, leader epochs and all."""

    name: ClassVar[str] = "replicas-differ"

    def find(self, partition: str, high_watermark: int, replicas: Mapping[int, Iterable[bytes]]) -> Iterator[Anomaly]:
        """`replicas`: node to the contents of its segments in order. Old segments may be gone on some of them."""
        logs = {
            node: [batch for batch in batches(segments) if batch.base_offset < high_watermark]
            for node, segments in replicas.items()
        }
        for node, log in logs.items():
            end = log[-1].last_offset + 1 if log else 0
            if end < high_watermark:
                story = f"node {node} ends at {end}, below the high watermark {high_watermark}"
                yield Anomaly(self.name, partition, story, (node,))
        start = max((log[0].base_offset for log in logs.values() if log), default=0)
        common = {node: [batch for batch in log if batch.base_offset >= start] for node, log in logs.items()}
        nodes = sorted(common)
        for node in nodes[1:]:
            yield from self._differences(partition, (nodes[0], common[nodes[0]]), (node, common[node]))

    def _differences(
        self, partition: str, one: tuple[int, list[StoredBatch]], other: tuple[int, list[StoredBatch]]
    ) -> Iterator[Anomaly]:
        for mine, theirs in zip(one[1], other[1], strict=False):
            if mine.data != theirs.data:
                story = (
                    f"nodes {one[0]} and {other[0]} differ from offset {min(mine.base_offset, theirs.base_offset)} on:"
                    f" {mine.base_offset}..{mine.last_offset} in {len(mine.data)} bytes beside"
                    f" {theirs.base_offset}..{theirs.last_offset} in {len(theirs.data)} bytes"
                )
                yield Anomaly(self.name, partition, story, (one[0], other[0]))
                return
