"""Entries by slice of time and key: the ground under window stores, session stores and buffers in time order.

A backend answers point lookups at a price and scans at a high one. So what belongs together lies together: a cell holds
the entries of one key in one slice of time, as one value. A slice also has an index of its keys, in chunks that only
grow. To drop a slice its keys are read from the index; nothing is ever scanned. The directory of slices and the store's
own numbers (stream time, sequence) are one value more. All of it is read once and written once per batch.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from ottla.streams.tasks.stores.base import to_write
from ottla.streams.topology.stores import StoreBackend

Entry = tuple[int, int, bytes]
"""Two numbers, by which a cell is in order, and a value."""

HOME: Final = -1
"""The slice of cells that hold the entries of all times of their key."""

_CHUNK: Final = 128
_META: Final = b"m"
_CELL: Final = Struct(">cq")
_INDEX: Final = Struct(">cqi")
pack_cell: Final = _CELL.pack
"""(b"c", slice), in front of the key: the address of a cell."""
_ENTRY: Final = Struct(">qqI")
_SLICE: Final = Struct(">qqq")
_LENGTH: Final = Struct(">I")
_NUMBER: Final = Struct(">q")


class Cells:
    """`numbers` belong to the store; whoever changes one calls `touch`."""

    __slots__ = (
        "_backend",
        "_cells",
        "_changed",
        "_chunks",
        "_chunks_changed",
        "_first",
        "_touched",
        "numbers",
        "slices",
    )

    def __init__(self, backend: StoreBackend, numbers: tuple[int, ...]) -> None:
        self._backend = backend
        self._first = numbers
        self._cells: dict[bytes, list[Entry] | None] = {}
        self._changed: dict[bytes, None] = {}
        self._chunks: dict[bytes, list[bytes]] = {}
        self._chunks_changed: dict[bytes, None] = {}
        self._touched = False
        self.numbers: list[int] = []
        self.slices: dict[int, list[int]] = {}
        """Of each slice: how many keys its index has, and how many entries are alive (where the store counts them)."""
        self._load()

    def touch(self) -> None:
        self._touched = True

    @staticmethod
    def address(slice_: int, key: bytes) -> bytes:
        return _CELL.pack(b"c", slice_) + key

    def cell(self, address: bytes) -> list[Entry] | None:
        """None: there never was one. Whoever changes what is returned calls `changed`."""
        try:
            return self._cells[address]
        except KeyError:
            data = self._backend.get(address)
            found = self._cells[address] = None if data is None else _unpacked(data)
            return found

    def changed(self, address: bytes) -> None:
        self._changed[address] = None

    def create(self, address: bytes) -> list[Entry]:
        cell: list[Entry] = []
        self._cells[address] = cell
        self._changed[address] = None
        return cell

    def remove(self, address: bytes) -> None:
        self._cells[address] = None
        self._changed[address] = None

    def enter(self, slice_: int, key: bytes) -> None:
        """Puts a key into the index of a slice. Once is enough; the store knows whether it did."""
        counts = self.slices.setdefault(slice_, [0, 0])
        address = _INDEX.pack(b"i", slice_, counts[0] // _CHUNK)
        chunk = self._chunk(address)
        chunk.append(key)
        self._chunks_changed[address] = None
        counts[0] += 1
        self._touched = True

    def keys(self, slice_: int) -> Iterator[bytes]:
        for number in range(self._chunk_count(slice_)):
            yield from self._chunk(_INDEX.pack(b"i", slice_, number))

    def forget_slice(self, slice_: int) -> None:
        """Its index goes. The cells are the store's to remove, before."""
        for number in range(self._chunk_count(slice_)):
            address = _INDEX.pack(b"i", slice_, number)
            self._chunks[address] = []
            self._chunks_changed[address] = None
        del self.slices[slice_]
        self._touched = True

    def drop(self, slice_: int) -> None:
        """A slice whose cells are its own, with all that is in them."""
        for key in self.keys(slice_):
            self.remove(self.address(slice_, key))
        self.forget_slice(slice_)

    def flush(self) -> None:
        put, delete = self._backend.put, self._backend.delete
        for address in to_write(self._changed):
            cell = self._cells[address]
            if cell is None:
                delete(address)
            else:
                put(address, _packed(cell))
        self._changed.clear()
        for address in self._chunks_changed:
            chunk = self._chunks[address]
            if chunk:
                put(address, b"".join([_LENGTH.pack(len(key)) + key for key in chunk]))
            else:
                delete(address)
        self._chunks_changed.clear()
        if self._touched:
            put(_META, self._meta())
            self._touched = False

    def forget(self) -> None:
        self._cells.clear()
        self._chunks.clear()
        self._load()

    def _chunk_count(self, slice_: int) -> int:
        return -(-self.slices[slice_][0] // _CHUNK)

    def _chunk(self, address: bytes) -> list[bytes]:
        found = self._chunks.get(address)
        if found is None:
            data = self._backend.get(address)
            found = self._chunks[address] = [] if data is None else _unpacked_keys(data)
        return found

    def _meta(self) -> bytes:
        numbers = b"".join([_NUMBER.pack(number) for number in self.numbers])
        return numbers + b"".join([_SLICE.pack(slice_, *counts) for slice_, counts in self.slices.items()])

    def _load(self) -> None:
        data = self._backend.get(_META)
        self.slices = {}
        if data is None:
            self.numbers = list(self._first)
            return
        count = len(self._first)
        self.numbers = [_NUMBER.unpack_from(data, 8 * index)[0] for index in range(count)]
        for position in range(8 * count, len(data), _SLICE.size):
            slice_, keys, alive = _SLICE.unpack_from(data, position)
            self.slices[slice_] = [keys, alive]


def _packed(cell: list[Entry]) -> bytes:
    return b"".join([_ENTRY.pack(first, second, len(value)) + value for first, second, value in cell])


def _unpacked(data: bytes) -> list[Entry]:
    cell = []
    position = 0
    end = len(data)
    while position < end:
        first, second, length = _ENTRY.unpack_from(data, position)
        position += 20
        cell.append((first, second, data[position : position + length]))
        position += length
    return cell


def _unpacked_keys(data: bytes) -> list[bytes]:
    keys = []
    position = 0
    end = len(data)
    while position < end:
        (length,) = _LENGTH.unpack_from(data, position)
        position += 4
        keys.append(data[position : position + length])
        position += length
    return keys
