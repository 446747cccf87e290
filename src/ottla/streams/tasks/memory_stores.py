"""A store backend in memory: for the test driver."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator


class MemoryBackend:
    """A dict, and its keys in order once somebody asked for a range."""

    __slots__ = ("_entries", "_ordered", "size")

    def __init__(self) -> None:
        self._entries: dict[bytes, bytes] = {}
        self._ordered: list[bytes] | None = None
        self.size = 0
        """Bytes of keys and values."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes) -> bytes | None:
        return self._entries.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        if self._ordered is not None and key not in self._entries:
            insort(self._ordered, key)
        before = self._entries.get(key)
        self.size += len(value) - len(before) if before is not None else len(key) + len(value)
        self._entries[key] = value

    def delete(self, key: bytes) -> None:
        before = self._entries.pop(key, None)
        if before is None:
            return
        self.size -= len(key) + len(before)
        if self._ordered is not None:
            del self._ordered[bisect_left(self._ordered, key)]

    def scan(self, first: bytes | None = None, last: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        ordered = self._ordered
        if ordered is None:
            ordered = self._ordered = sorted(self._entries)
        begin = 0 if first is None else bisect_left(ordered, first)
        end = len(ordered) if last is None else bisect_right(ordered, last)
        for key in ordered[begin:end]:
            yield key, self._entries[key]
