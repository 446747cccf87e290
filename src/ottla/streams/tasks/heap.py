"""A priority queue that breaks ties as Java's does: which of two records with one timestamp comes first is visible."""

from typing import Generic, TypeVar

T = TypeVar("T")


class Heap(Generic[T]):
    """Items with a number each, the lowest first."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[int, T]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def first(self) -> tuple[int, T]:
        return self._entries[0]

    def items(self) -> list[tuple[int, T]]:
        return list(self._entries)

    def add(self, rank: int, item: T) -> None:
        entries = self._entries
        entries.append((rank, item))
        place = len(entries) - 1
        while place:
            parent = (place - 1) >> 1
            if rank >= entries[parent][0]:
                break
            entries[place] = entries[parent]
            place = parent
        entries[place] = (rank, item)

    def take(self) -> tuple[int, T]:
        entries = self._entries
        last = entries.pop()
        if not entries:
            return last
        taken = entries[0]
        size = len(entries)
        place = 0
        while place < size >> 1:
            child = 2 * place + 1
            if child + 1 < size and entries[child][0] > entries[child + 1][0]:
                child += 1
            if last[0] <= entries[child][0]:
                break
            entries[place] = entries[child]
            place = child
        entries[place] = last
        return taken
