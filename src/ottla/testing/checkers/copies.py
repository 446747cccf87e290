"""Exactly once: a transactional copy holds every record of its source, once, in its order."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import ClassVar

from ottla.testing.checkers.anomaly import Anomaly


class ExactlyOnceCopy:
    """Compares a partition with the one that it is a copy of, both read to the end with read_committed."""

    name: ClassVar[str] = "not-exactly-once"

    def find(
        self, partition: str, source: Sequence[int], copy: Sequence[int], origin: Callable[[int], int]
    ) -> list[Anomaly]:
        """`origin`: from a value of the copy to that of its source; each attempt to copy makes a value of its own."""
        places = {value: place for place, value in enumerate(source)}
        copied = [origin(value) for value in copy]
        found: list[Anomaly] = []
        seen: set[int] = set()
        for value in copied:
            if value in seen:
                found.append(Anomaly(self.name, partition, f"{value} was copied twice", (value,)))
            elif value not in places:
                found.append(Anomaly(self.name, partition, f"{value} was copied and is not in the source", (value,)))
            seen.add(value)
        for value in source:
            if value not in seen:
                found.append(Anomaly(self.name, partition, f"{value} was not copied", (value,)))
        for first, second in pairwise(value for value in copied if value in places):
            if places[first] > places[second]:
                found.append(Anomaly(self.name, partition, f"{first} was copied before {second}", (first, second)))
        return found
