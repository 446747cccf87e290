"""What becomes a file at the end of the micro-batch: `end` may be called again where a store was away, `write` is not
the place to find that out."""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from ottla.connect.connectors.files.formats import size_of
from ottla.connect.data.record import ConnectRecord


class _Part(NamedTuple):
    places: list[int] | range
    """Among the records of the micro-batch."""
    given: list[ConnectRecord] | pa.Table


class GatheredFile:
    """Records, and rows that were never any."""

    __slots__ = ("_open", "_parts", "count", "is_first", "offset", "origin", "size")

    def __init__(self, offset: int, origin: tuple[str, int], *, is_first: bool) -> None:
        self.offset = offset
        """Of the first record."""
        self.origin = origin
        """Where it was read."""
        self.is_first = is_first
        """Of its folder in this micro-batch."""
        self.count = 0
        self.size = 0
        self._parts: list[_Part] = []
        self._open: _Part | None = None

    def add(self, record: ConnectRecord, place: int) -> None:
        part = self._open
        if part is None:
            part = self._open = _Part([], [])
            self._parts.append(part)
        part.places.append(place)  # type: ignore[union-attr]
        part.given.append(record)
        self.count += 1
        self.size += size_of(record.value)

    def add_rows(self, rows: pa.Table, places: range, size: int) -> None:
        self._parts.append(_Part(places, rows))
        self._open = None
        self.count += len(rows)
        self.size += size

    def places(self) -> Sequence[int]:
        return [place for part in self._parts for place in part.places]

    def rows(self) -> pa.Table | None:
        """All of it as one table; None if that takes more than to put parts on end."""
        parts = [part.given for part in self._parts]
        if not all(isinstance(part, pa.Table) for part in parts):
            return None
        try:
            return pa.concat_tables(parts, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            return None

    def records(self, topic: str, partition: int) -> list[ConnectRecord]:
        found: list[ConnectRecord] = []
        for part in self._parts:
            if isinstance(part.given, pa.Table):
                found += [ConnectRecord(topic, partition, value=row) for row in part.given.to_pylist()]
            else:
                found += part.given
        return found
