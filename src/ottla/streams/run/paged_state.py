"""A sorted map over Spark's MapState that is read and written in pages.

Every call of Spark's state is a round trip to the JVM (0.1 to 0.4 ms) that costs nearly the same for a hundred entries
as for one. So entries lie in pages of some kilobytes, in the order of their keys; pages are read when they are first
needed and written once, at the end of the batch. A directory of all pages' first keys is one more entry.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, Protocol

MOST_ENTRIES: Final = 256
"""A page with more is split when it is written."""
MOST_BYTES: Final = 64 << 10
READ_ALL: Final = 16
"""When so many pages were read one by one, and that is a good part of them, the others come in one sweep."""

MOST_READ: Final = 4096
"""Pages in memory, about half a million entries. Where a batch needs more, those that were read first are written away:
a store may be larger than memory, and a batch touch all of it."""

_LENGTHS: Final = Struct(">ii")
_INT: Final = Struct(">i")
DIRECTORY: Final = b"d"


class Pages(Protocol):
    """Where pages lie: Spark's MapState in tasks, a dict in tests."""

    def get(self, name: bytes) -> bytes | None: ...
    def put(self, name: bytes, content: bytes) -> None: ...
    def remove(self, name: bytes) -> None: ...
    def items(self) -> Iterable[tuple[bytes, bytes]]: ...


def packed(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    parts: list[bytes] = []
    for key, value in entries:
        parts += (_LENGTHS.pack(len(key), len(value)), key, value)
    return b"".join(parts)


def unpacked(content: bytes) -> dict[bytes, bytes]:
    entries: dict[bytes, bytes] = {}
    position, end = 0, len(content)
    while position < end:
        key_length, value_length = _LENGTHS.unpack_from(content, position)
        middle = position + 8 + key_length
        position, start = middle + value_length, position + 8
        entries[content[start:middle]] = content[middle:position]
    return entries


class _Page:
    """Entries in memory; in order only when somebody asked for that."""

    __slots__ = ("dirty", "entries", "ordered", "stored")

    def __init__(self, entries: dict[bytes, bytes], *, stored: bool) -> None:
        self.entries = entries
        self.stored = stored
        self.ordered: list[bytes] | None = None
        self.dirty = False

    def in_order(self) -> list[bytes]:
        if self.ordered is None:
            self.ordered = sorted(self.entries)
        return self.ordered


class PagedState:
    """A StoreBackend. `flush` at the end of a batch, or nothing was written."""

    __slots__ = (
        "_count",
        "_firsts",
        "_most_read",
        "_names",
        "_next",
        "_pages",
        "_read",
        "_reads",
        "_rewritten",
        "_scans",
    )

    def __init__(self, pages: Pages, most_read: int = MOST_READ) -> None:
        self._pages = pages
        self._most_read = most_read
        self._scans = 0
        self._read: dict[int, _Page] = {}
        self._reads = 0
        self._rewritten = False
        self._firsts: list[bytes] = []
        """The key from which on each page holds entries; the first is open to the left."""
        self._names: list[int] = []
        self._next = 0
        self._count = 0
        self._open(pages.get(DIRECTORY))

    def _open(self, directory: bytes | None) -> None:
        if directory is None:
            return
        self._next, self._count = _LENGTHS.unpack_from(directory)
        for first, name in unpacked(directory[8:]).items():
            self._firsts.append(first)
            self._names.append(_INT.unpack(name)[0])

    def __len__(self) -> int:
        return self._count

    @property
    def pages_in_memory(self) -> int:
        return len(self._read)

    # ---- one entry

    def get(self, key: bytes) -> bytes | None:
        page = self._page_of(key)
        return None if page is None else page.entries.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        page = self._page_of(key)
        if page is None:
            page = self._first_page()
        if key not in page.entries:
            self._count += 1
            if page.ordered is not None:
                insort(page.ordered, key)
        page.entries[key] = value
        page.dirty = True

    def delete(self, key: bytes) -> None:
        page = self._page_of(key)
        if page is None or page.entries.pop(key, None) is None:
            return
        self._count -= 1
        page.dirty = True
        if page.ordered is not None:
            del page.ordered[bisect_left(page.ordered, key)]

    def scan(self, first: bytes | None = None, last: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """In the order of keys, both ends inclusive. Entries may be put and deleted meanwhile."""
        if not self._names:
            return
        begin = 0 if first is None else self._place(first)
        end = len(self._names) - 1 if last is None else self._place(last)
        if end - begin >= READ_ALL and end - begin <= self._most_read:
            self._read_all()
        self._scans += 1  # what it looks at stays in memory until it is through
        try:
            for name in self._names[begin : end + 1]:
                page = self._page(name)
                keys = page.in_order()
                low = 0 if first is None else bisect_left(keys, first)
                high = len(keys) if last is None else bisect_right(keys, last)
                for key in keys[low:high]:
                    value = page.entries.get(key)
                    if value is not None:
                        yield key, value
        finally:
            self._scans -= 1

    # ---- pages

    def _place(self, key: bytes) -> int:
        return max(bisect_right(self._firsts, key) - 1, 0)

    def _page_of(self, key: bytes) -> _Page | None:
        if not self._names:
            return None
        name = self._names[bisect_right(self._firsts, key) - 1] if len(self._names) > 1 else self._names[0]
        return self._read.get(name) or self._page(name)

    def _page(self, name: int) -> _Page:
        page = self._read.get(name)
        if page is not None:
            return page
        self._reads += 1
        if self._reads > READ_ALL and self._reads * 8 > len(self._names) and len(self._names) <= self._most_read:
            self._read_all()
            return self._read[name]
        if len(self._read) >= self._most_read and not self._scans:
            self._let_go()
        return self._keep(name, self._pages.get(_INT.pack(name)))

    def _keep(self, name: int, content: bytes | None) -> _Page:
        if content is None:
            raise ValueError(f"page {name} of a store is missing: the checkpoint is damaged")
        page = self._read[name] = _Page(unpacked(content), stored=True)
        return page

    def _read_all(self) -> None:
        if all(name in self._read for name in self._names):
            return
        wanted = frozenset(self._names)
        for packed_name, content in self._pages.items():
            if packed_name == DIRECTORY:
                continue
            name = _INT.unpack(packed_name)[0]
            if name in wanted and name not in self._read:
                self._keep(name, content)

    def _first_page(self) -> _Page:
        page = self._read[self._next] = _Page({}, stored=False)
        self._firsts.append(b"")
        self._names.append(self._next)
        self._next += 1
        self._rewritten = True
        return page

    # ---- writing

    def _let_go(self) -> None:
        """Of half of the pages, those that were read first."""
        for name in list(self._read)[: len(self._read) // 2]:
            page = self._read[name]
            if page.dirty:
                self._write(name, page)
                self._rewritten = True  # the directory has the number of entries
            self._read.pop(name, None)

    def flush(self) -> None:
        """Writes the pages that changed. Afterwards what was read is still there, as far as it may be: a page that is
        written may become many."""
        before = len(self)
        dirty = [name for name, page in self._read.items() if page.dirty]
        for name in dirty:
            self._write(name, self._read[name])
        if dirty or self._rewritten:
            entries = zip(self._firsts, (_INT.pack(name) for name in self._names), strict=True)
            self._pages.put(DIRECTORY, _LENGTHS.pack(self._next, before) + packed(entries))
        self._rewritten = False
        while len(self._read) > self._most_read and not self._scans:
            self._let_go()

    def _write(self, name: int, page: _Page) -> None:
        page.dirty = False
        if not page.entries:
            self._drop(name)
            return
        runs = list(_runs(page))
        place = self._place(runs[0][0][0])
        if len(runs) > 1:
            page = self._read[name] = _Page(dict(runs[0]), stored=True)
        page.stored = True
        self._pages.put(_INT.pack(name), packed(runs[0]))
        for offset, run in enumerate(runs[1:], start=1):
            new = self._next
            self._next += 1
            self._firsts.insert(place + offset, run[0][0])
            self._names.insert(place + offset, new)
            self._read[new] = _Page(dict(run), stored=True)
            self._pages.put(_INT.pack(new), packed(run))
            self._rewritten = True

    def _drop(self, name: int) -> None:
        place = self._names.index(name)
        page = self._read.pop(name)
        del self._names[place], self._firsts[place]
        if place == 0 and self._firsts:
            self._firsts[0] = b""
        if page.stored:
            self._pages.remove(_INT.pack(name))
        self._rewritten = True


def _runs(page: _Page) -> Iterator[list[tuple[bytes, bytes]]]:
    """The page's entries in portions that are small enough; half-full ones, so that they have room to grow."""
    size = sum(len(key) + len(value) for key, value in page.entries.items())
    if len(page.entries) <= MOST_ENTRIES and (size <= MOST_BYTES or len(page.entries) == 1):
        yield list(page.entries.items())
        return
    run: list[tuple[bytes, bytes]] = []
    used = 0
    for key in page.in_order():
        value = page.entries[key]
        if run and (len(run) >= MOST_ENTRIES // 2 or used + len(key) + len(value) > MOST_BYTES // 2):
            yield run
            run, used = [], 0
        run.append((key, value))
        used += len(key) + len(value)
    yield run
