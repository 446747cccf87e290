"""Checks on what a cluster says of itself: watermarks, leaders, owners of partitions in a group."""

from collections.abc import Iterable, Iterator
from typing import ClassVar, NamedTuple

from ottla.testing.checkers.anomaly import Anomaly


class Watermarks(NamedTuple):
    """What one reader was told at one moment."""

    reader: str
    partition: str
    high_watermark: int
    last_stable_offset: int | None = None


class WatermarksAdvance:
    """For each reader the high watermark and the last stable offset never go back (KIP-207, KIP-98)."""

    name: ClassVar[str] = "watermark-retreat"

    def find(self, seen: Iterable[Watermarks]) -> Iterator[Anomaly]:
        high: dict[tuple[str, str], int] = {}
        stable: dict[tuple[str, str], int] = {}
        for reader, partition, high_watermark, last_stable_offset in seen:
            key = (reader, partition)
            if high_watermark < high.get(key, high_watermark):
                yield self._retreat(reader, partition, "high watermark", high[key], high_watermark)
            high[key] = max(high.get(key, high_watermark), high_watermark)
            if last_stable_offset is None:
                continue
            if last_stable_offset < stable.get(key, last_stable_offset):
                yield self._retreat(reader, partition, "last stable offset", stable[key], last_stable_offset)
            stable[key] = max(stable.get(key, last_stable_offset), last_stable_offset)
            if last_stable_offset > high_watermark:
                story = f"{reader} was told of a last stable offset {last_stable_offset} above {high_watermark}"
                yield Anomaly(self.name, partition, story, (last_stable_offset, high_watermark))

    def _retreat(self, reader: str, partition: str, what: str, before: int, after: int) -> Anomaly:
        return Anomaly(self.name, partition, f"{reader} saw the {what} go from {before} to {after}", (before, after))


class Leadership(NamedTuple):
    """Somebody says who leads in an epoch. A leader below 0 is nobody."""

    partition: str
    epoch: int
    leader: int


class OneLeaderPerEpoch:
    """A partition, or the quorum, has at most one leader in an epoch, whoever is asked."""

    name: ClassVar[str] = "two-leaders"

    def find(self, seen: Iterable[Leadership]) -> Iterator[Anomaly]:
        leaders: dict[tuple[str, int], int] = {}
        for partition, epoch, leader in seen:
            if leader < 0:
                continue
            known = leaders.setdefault((partition, epoch), leader)
            if known != leader:
                yield Anomaly(self.name, partition, f"epoch {epoch} has leaders {known} and {leader}", (known, leader))


class Ownership(NamedTuple):
    """A member of a group owned a partition from one moment to another; `until` is None if it still does.

    A member's time ends when it has heard that the partition is taken from it. If it died, or was declared dead,
    `until` is the moment of that: what it did later as one who does not know yet must be kept out by its epoch.
    """

    group: str
    partition: str
    member: str
    since: int
    until: int | None = None


class OneOwner:
    """No partition is owned by two members of a group at the same time."""

    name: ClassVar[str] = "two-owners"

    def find(self, seen: Iterable[Ownership]) -> Iterator[Anomaly]:
        owners: dict[tuple[str, str], list[Ownership]] = {}
        for ownership in seen:
            owners.setdefault((ownership.group, ownership.partition), []).append(ownership)
        for (group, partition), intervals in owners.items():
            intervals.sort(key=lambda interval: interval.since)
            longest: Ownership | None = None
            for interval in intervals:
                if longest is not None and (longest.until is None or interval.since < longest.until):
                    story = f"{longest.member} and {interval.member} of {group} both own it at {interval.since}"
                    if longest.member != interval.member:
                        yield Anomaly(self.name, partition, story, (interval.since,))
                if longest is None or _later(interval, longest):
                    longest = interval


def _later(one: Ownership, other: Ownership) -> bool:
    return other.until is not None and (one.until is None or one.until >= other.until)
