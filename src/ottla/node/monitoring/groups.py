"""Groups of the coordinators on this broker: how many, in which state, and how far behind."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ottla.broker.services import Services
from ottla.metrics import names
from ottla.metrics.text import SLICE, Sample, labels, many, one, some

if TYPE_CHECKING:  # on a node without groups they are not loaded for a scrape
    from ottla.coordinator.group.committed import ByTopic
    from ottla.coordinator.group.shard import GroupShard

Spot = tuple[str, int]
"""Topic and partition."""


@dataclass(slots=True)
class FoundGroups:
    groups: int = 0
    offsets: int = 0
    states: dict[tuple[str, str], int] = field(default_factory=dict)
    """By kind and state."""
    members: list[Sample] = field(default_factory=list)
    rows: list[tuple[str, str, int, int]] = field(default_factory=list)
    """Group, topic, partition, committed offset."""


def shards(services: Services) -> "list[GroupShard]":
    """Those that are loaded."""
    return [runner.shard for runner in services.coordination.groups.runners() if runner.error is None]


def walk(services: Services, most: int, found: FoundGroups) -> Iterator[str]:
    """Fills `found`. What it gives are pauses."""
    looked_at = 0
    for shard in shards(services):
        for group_id in list(shard.state.groups):
            group = shard.state.groups.get(group_id)
            if group is None:
                continue
            found.groups += 1
            kind = (group.KIND, group.state_name())
            found.states[kind] = found.states.get(kind, 0) + 1
            if len(found.members) < most:
                found.members.append((labels(consumergroup=group_id), len(group.members)))
            looked_at += 1 + _note_offsets(found, group_id, shard.state.offsets.by_group.get(group_id, {}), most)
            if looked_at >= SLICE:
                looked_at = 0
                yield ""


def _note_offsets(found: FoundGroups, group_id: str, topics: "ByTopic", most: int) -> int:
    noted = 0
    for topic, partitions in topics.items():
        noted += len(partitions)
        if len(found.rows) < most:
            found.rows += [(group_id, topic, index, kept.offset) for index, kept in partitions.items()]
    found.offsets += noted
    return noted


def pieces(found: FoundGroups) -> Iterator[str]:
    yield one(names.GROUPS, found.groups) + one(names.GROUP_OFFSETS, found.offsets)
    yield some(
        names.GROUPS_BY_STATE,
        [(labels(protocol=kind, state=state), number) for (kind, state), number in found.states.items()],
    )


def exported(found: FoundGroups, end_of: Callable[[str, int], int | None]) -> Iterator[str]:
    """`end_of` gives the offset that consumers of a partition may read up to; None if nobody knows now."""
    lags: list[tuple[str, str, int, int]] = []
    for at, (group, topic, index, offset) in enumerate(found.rows):
        if at % SLICE == SLICE - 1:
            yield ""
        end = end_of(topic, index)
        if end is not None:
            lags.append((group, topic, index, max(0, end - offset)))
    yield from many(names.GROUP_MEMBERS, found.members)
    yield from many(names.GROUP_OFFSET, ((_mark(g, t, i), offset) for g, t, i, offset in found.rows))
    yield from many(names.GROUP_OFFSET_SUM, _sums((g, t, offset) for g, t, _, offset in found.rows))
    yield from many(names.GROUP_LAG, ((_mark(g, t, i), lag) for g, t, i, lag in lags))
    yield from many(names.GROUP_LAG_SUM, _sums((g, t, lag) for g, t, _, lag in lags))


def _mark(group: str, topic: str, index: int) -> str:
    return labels(consumergroup=group, topic=topic, partition=index)


def _sums(values: Iterator[tuple[str, str, int]]) -> Iterator[Sample]:
    sums: dict[tuple[str, str], int] = {}
    for group, topic, value in values:
        sums[group, topic] = sums.get((group, topic), 0) + value
    for (group, topic), total in sums.items():
        yield labels(consumergroup=group, topic=topic), total
