"""What a query reads may change while its state stays: where it goes on in partitions that its checkpoint does not
know.

Spark's checkpoint tells for each partition how far it was read. Of a partition that came since it tells nothing, and a
source that has nothing else to go by would read it from its start, also what the group has committed, by another query
of an earlier version. So a file beside the checkpoint holds where each partition was begun to be read, and, of those
that are not read any more, where that ended.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ottla.model.ids import TopicPartition
from ottla.pipelines.checkpoint import Batches, batches_of, offsets_of_batch
from ottla.pipelines.files import kept_text
from ottla.pipelines.source.offsets import from_json
from ottla.streams.run.state_directory import initial_offsets_of

Offsets = Mapping[TopicPartition, int]


def last_ends(checkpoint: str, batches: Batches | None = None) -> list[dict[TopicPartition, int]]:
    """Where the group may be: at the end of the last batch, or, if that was not written, of the one before. Nothing if
    no batch was begun."""
    begun, done = batches or batches_of(checkpoint)
    if begun is None:
        return []
    numbers = [begun] if done == begun else [begun, begun - 1]
    found = [offsets_of_batch(checkpoint, number) for number in numbers if number >= 0]
    if numbers[-1] < 0 and (text := kept_text(initial_offsets_of(checkpoint))):
        found.append(from_json(text))
    return found


def unknown(read: Collection[TopicPartition], ends: Sequence[Offsets]) -> list[TopicPartition]:
    """Of the partitions that are read those that none of the last batches has."""
    return [place for place in read if not any(place in end for end in ends)]


def renewed(began: Offsets, ends: Sequence[Offsets], read: Collection[TopicPartition], new: Offsets) -> Offsets:
    """Where each partition was begun, and where others ended. `began` is what was known of it, `new` says it of the
    partitions that are unknown. A batch that was begun may run again, so what it goes by stays as it is."""
    left = {place: offset for end in reversed(ends) for place, offset in end.items() if place not in read}
    return {**began, **left, **new}


def written_without(ends: Sequence[Offsets], committed: Offsets, read: Collection[TopicPartition]) -> list[str]:
    """Topics that are not read any more, of which a batch that is out read records that are not in the state yet: it
    was not finished, and computing it again needs them."""
    if len(ends) < 2:
        return []
    last, before = ends
    return sorted(
        {
            place.topic
            for place, offset in last.items()
            if place not in read and committed.get(place, 0) >= offset > before.get(place, 0)
        }
    )


def left_behind(began: Offsets, read: Collection[TopicPartition]) -> int:
    """How many offsets are behind all that is read: those of partitions that are not read any more."""
    return sum(offset for place, offset in began.items() if place not in read)
