"""What a file holds, read back: bytes to records. A record that is no good is told alone."""

from __future__ import annotations

import csv
import io
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from ottla.connect import spi
from ottla.connect.connectors.files.config import StoreConfig
from ottla.connect.converters.json import JsonConverter
from ottla.connect.data.columns import as_told, schema_of, structs
from ottla.connect.data.record import SchemaAndValue
from ottla.connect.data.schema import BYTES, OPTIONAL_STRING, struct_schema
from ottla.connect.data.struct import Struct

Item: TypeAlias = SchemaAndValue | spi.Unreadable | None
"""None: an empty line."""

LETTER_BYTES: Final = 64 << 10
"""So much of the beginning of a broken file is in its dead letter."""
_GZIP: Final = 16 + zlib.MAX_WBITS


class Contents(ABC):
    """Of one file. Its items are made when they are asked for."""

    held: str = ""
    """Why there may be more to come: its end is not whole. Empty: it is."""
    rest: bytes = b""
    """What `held` is about, or the beginning of it."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def items(self, start: int, stop: int) -> Sequence[Item]: ...


Open: TypeAlias = Callable[[bytes, bool], Contents]
"""Bytes, and whether nobody writes them any more: then a last line needs no end."""


class Reading(NamedTuple):
    """A format."""

    extensions: tuple[str, ...]
    """Of the files that it reads."""
    open: Open


def reading_of(config: StoreConfig) -> Reading:
    """Raises ConfigRefused."""
    name = config.format_class.rpartition(".")[2]
    raw = config.format_bytearray_extension
    separator = config.format_bytearray_separator.encode()
    known = {
        "JsonFormat": Reading((".json", ".jsonl", ".json.gz", ".jsonl.gz"), _Json),
        "CsvFormat": Reading((".csv", ".csv.gz"), _Csv),
        "ByteArrayFormat": Reading((raw, f"{raw}.gz"), lambda data, settled: _Raw(data, settled, separator)),
        "ParquetFormat": Reading((".parquet",), lambda data, _: _parquet(data)),
        "AvroFormat": Reading((".avro",), lambda data, _: _avro(data)),
    }
    if name not in known:
        raise spi.ConfigRefused("format.class", f"{name} is none of {', '.join(known)}")
    return known[name]


def contents_of(reading: Reading, path: str, data: bytes, *, settled: bool, most: int) -> Contents:
    """`most`: bytes, also when it is unpacked."""
    if len(data) > most:
        return _Broken(f"it is larger than {most:,} bytes: file.max.bytes may be raised", data)
    if not path.endswith(".gz"):
        return reading.open(data, settled)
    plain = _unpacked(data, most)
    return _Broken(plain, data) if isinstance(plain, str) else reading.open(plain, settled)


def _unpacked(data: bytes, most: int) -> bytes | str:
    """Or why not."""
    pieces: list[bytes] = []
    size, left = 0, data
    while left:
        unpacking = zlib.decompressobj(_GZIP)
        try:
            pieces.append(unpacking.decompress(left, most + 1 - size))
        except zlib.error as error:
            return f"it is not packed as its name says: {error}"
        size += len(pieces[-1])
        if size > most:
            return f"it is larger than {most:,} bytes when it is unpacked: file.max.bytes may be raised"
        if not unpacking.eof:
            return "it is cut off: its end is missing"
        left = unpacking.unused_data
    return b"".join(pieces)


class _Broken(Contents):
    """Nothing of it can be read."""

    def __init__(self, reason: str, data: bytes) -> None:
        self.held = reason
        self.rest = data[:LETTER_BYTES]

    def __len__(self) -> int:
        return 0

    def items(self, start: int, stop: int) -> Sequence[Item]:
        return ()


class _Cut(Contents):
    """Pieces with a separator behind each."""

    def __init__(self, data: bytes, settled: bool, separator: bytes) -> None:
        self._pieces = data.split(separator)
        last = self._pieces.pop()
        if last and settled:
            self._pieces.append(last)
        elif last:
            self.held = "its last record has no end"

    def __len__(self) -> int:
        return len(self._pieces)


class _Json(_Cut):
    def __init__(self, data: bytes, settled: bool) -> None:
        super().__init__(data, settled, b"\n")
        self._converter = JsonConverter({"schemas.enable": "false"}, "value")

    def items(self, start: int, stop: int) -> Sequence[Item]:
        lines = self._pieces[start:stop]
        found = self._converter.to_connect("", lines)
        return [
            None if not line.strip() else each if isinstance(each, SchemaAndValue) else spi.Unreadable(line, str(each))
            for line, each in zip(lines, found, strict=True)
        ]


class _Raw(_Cut):
    def __init__(self, data: bytes, settled: bool, separator: bytes) -> None:
        if separator:
            super().__init__(data, settled, separator)
            return
        self._pieces = [data] if settled else []  # all of a file is one record
        self.held = "" if settled else "it is one record"

    def items(self, start: int, stop: int) -> Sequence[Item]:
        return [SchemaAndValue(BYTES, piece) for piece in self._pieces[start:stop]]


class _Csv(Contents):
    """The first line names the columns; values are texts, and an empty cell is null: CSV knows no more."""

    def __init__(self, data: bytes, settled: bool) -> None:
        whole = data if settled else data[: data.rfind(b"\n") + 1]
        self.held = "" if len(whole) == len(data) else "its last line has no end"
        csv.field_size_limit(max(csv.field_size_limit(), len(data)))
        self._rows: list[list[str]] = []
        try:
            self._rows += csv.reader(io.StringIO(whole.decode(errors="surrogateescape"), newline=""), strict=True)
        except csv.Error as error:
            self.held, self.rest = f"it is no CSV behind its row {len(self._rows)}: {error}", data[:LETTER_BYTES]
        head = self._rows.pop(0) if self._rows else []
        if len(set(head)) < len(head):
            self.held, self.rest = "two of its columns have one name", data[:LETTER_BYTES]
            self._rows = []
        self._schema = struct_schema([(name, OPTIONAL_STRING) for name in dict.fromkeys(head)])

    def __len__(self) -> int:
        return len(self._rows)

    def items(self, start: int, stop: int) -> Sequence[Item]:
        return [self._item(row) for row in self._rows[start:stop]]

    def _item(self, row: list[str]) -> Item:
        if not row:
            return None
        wanted = len(self._schema.fields)
        if len(row) != wanted:
            return _bad_row(row, f"it has {len(row)} cells, and {wanted} columns have names")
        if any(_is_garbled(cell) for cell in row):
            return _bad_row(row, "it is no UTF-8")
        return SchemaAndValue(self._schema, Struct.of(self._schema, [cell or None for cell in row]))


def _bad_row(row: list[str], reason: str) -> spi.Unreadable:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(row)
    return spi.Unreadable(text.getvalue().encode(errors="surrogateescape"), reason)


def _is_garbled(cell: str) -> bool:
    return not cell.isascii() and any("\ud800" <= letter <= "\udfff" for letter in cell)


class _Rows(Contents):
    """Of a table in Arrow's columns."""

    def __init__(self, table: pa.Table, held: str, data: bytes) -> None:
        """Raises ArrowException for values that Connect has no room for."""
        fields = [(field.name, schema_of(field.type)) for field in table.schema]
        self._schema = struct_schema(fields)
        columns = [as_told(column, kind) for column, (_, kind) in zip(table.columns, fields, strict=True)]
        self._table = pa.table(columns, names=table.column_names)
        self.held = held
        self.rest = data[:LETTER_BYTES] if held else b""

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def items(self, start: int, stop: int) -> Sequence[Item]:
        found = structs(self._schema, self._table.slice(start, stop - start))
        return [SchemaAndValue(self._schema, each) for each in found]


def _parquet(data: bytes) -> Contents:
    try:
        return _Rows(pq.read_table(pa.BufferReader(data)), "", data)
    except (pa.ArrowException, OSError) as error:
        return _Broken(f"it is no whole Parquet file: {error}", data)


def _avro(data: bytes) -> Contents:
    from ottla.connect.connectors.files.avro import read_avro  # noqa: PLC0415  fastavro, where it is asked for

    try:
        found = read_avro(data)
        return _Rows(found.table, found.broken, data)
    except pa.ArrowException as error:
        return _Broken(f"it is no Avro file of rows: {error}", data)
