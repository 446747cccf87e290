"""Records of several partitions in the order of their time, as a task of Kafka Streams takes them. A core.

Needed for history: a stream that is read from its beginning has to meet the table as it was, not as far as it happens
to have come. While history is read (up to the offsets of the start) nothing is given before every partition that has
more to come has shown its next record; from then on records are given as they come.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ottla.model.ids import TopicPartition
from ottla.protocol.records import Record

MOST_HELD: Final = 200_000
"""Records that wait for others. With more the order is given up, not the memory."""


class Placed(NamedTuple):
    place: TopicPartition
    record: Record


class Merging:
    def __init__(self, ends: dict[TopicPartition, int], first_topics: Sequence[str] = ()) -> None:
        """`ends`: where each partition's history ends. Of records of one time those of `first_topics` go first."""
        self._left = {place: end for place, end in ends.items()}
        self._first = frozenset(first_topics)
        self._waiting: dict[TopicPartition, deque[Record]] = {place: deque() for place in ends}
        self._held = 0

    @property
    def is_history(self) -> bool:
        return bool(self._left)

    def add(self, place: TopicPartition, records: Iterable[Record]) -> None:
        waiting = self._waiting[place]
        before = len(waiting)
        waiting.extend(records)
        self._held += len(waiting) - before

    def reached(self, place: TopicPartition, position: int) -> None:
        """How far a partition has been read: markers of transactions included."""
        end = self._left.get(place)
        if end is not None and position >= end:
            del self._left[place]

    def take(self) -> Iterator[Placed]:
        """What may go on now."""
        while self._held and (self._held > MOST_HELD or self._complete()):
            place = min((each for each, waiting in self._waiting.items() if waiting), key=self._order)
            self._held -= 1
            yield Placed(place, self._waiting[place].popleft())

    def _complete(self) -> bool:
        return all(self._waiting[place] for place in self._left)

    def _order(self, place: TopicPartition) -> tuple[int, bool, TopicPartition]:
        return self._waiting[place][0].timestamp, place.topic not in self._first, place
