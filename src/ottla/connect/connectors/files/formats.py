"""What a file holds: records to bytes. A record that cannot be written is refused alone."""

import csv
import gzip
import io
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from ottla.connect import spi
from ottla.connect.connectors.files.config import FilesConfig
from ottla.connect.connectors.tables.rows import rows_of
from ottla.connect.converters.json import JsonConverter
from ottla.connect.data.errors import ConnectException
from ottla.connect.data.record import ConnectRecord, SchemaAndValue


class Written(NamedTuple):
    data: bytes
    refused: list[tuple[int, str]]
    """Places among the records, and why."""


Write: TypeAlias = Callable[[Sequence[ConnectRecord]], Written]
Render: TypeAlias = Callable[[pa.Table, str], bytes]
"""Rows of a topic."""


class Format(NamedTuple):
    extension: str
    write: Write
    render: Render | None = None
    """Where a file is a table. Records are made one first."""


_JSON: Final = "json"


def format_of(config: FilesConfig) -> Format:
    """Raises ConfigRefused."""
    name = config.format_class.rpartition(".")[2]
    known: dict[str, Callable[[FilesConfig], Format]] = {
        "JsonFormat": _json,
        "CsvFormat": _csv,
        "ByteArrayFormat": _raw,
        "ParquetFormat": _parquet,
        "AvroFormat": _avro,
    }
    if name not in known:
        raise spi.ConfigRefused("format.class", f"{name} is none of {', '.join(known)}")
    return known[name](config)


def _json(config: FilesConfig) -> Format:
    converter = JsonConverter({"schemas.enable": "false", "decimal.format": "NUMERIC"}, "value")

    def write(records: Sequence[ConnectRecord]) -> Written:
        given = [SchemaAndValue(record.value_schema, record.value) for record in records]
        lines = converter.from_connect(records[0].topic, given)
        good = [line for line in lines if isinstance(line, bytes)]
        bad = [(at, str(line)) for at, line in enumerate(lines) if isinstance(line, ConnectException)]
        return Written(b"".join(line + b"\n" for line in good), bad)

    return _compressed(config, Format(f".{_JSON}", write))


def _raw(config: FilesConfig) -> Format:
    separator = config.format_bytearray_separator.encode()

    def write(records: Sequence[ConnectRecord]) -> Written:
        parts: list[bytes] = []
        bad: list[tuple[int, str]] = []
        for at, record in enumerate(records):
            value = record.value
            if isinstance(value, str):
                value = value.encode()
            if isinstance(value, bytes):
                parts.append(value + separator)
            else:
                bad.append(
                    (at, "its value is no bytes: value.converter has to be ByteArrayConverter or StringConverter")
                )
        return Written(b"".join(parts), bad)

    return _compressed(config, Format(config.format_bytearray_extension, write))


def _csv(config: FilesConfig) -> Format:
    def render(table: pa.Table, _: str) -> bytes:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(table.column_names)
        writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))
        return text.getvalue().encode()

    return _compressed(config, _tabular(".csv", render))


def _parquet(config: FilesConfig) -> Format:
    def render(table: pa.Table, _: str) -> bytes:
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression=config.parquet_codec)
        data: bytes = sink.getvalue().to_pybytes()
        return data

    codec = "" if config.parquet_codec == "none" else f".{config.parquet_codec}"
    return _tabular(f"{codec}.parquet", render)


def _avro(config: FilesConfig) -> Format:
    from ottla.connect.connectors.files.avro import write_avro  # noqa: PLC0415  fastavro, where it is asked for

    return _tabular(".avro", lambda table, topic: write_avro(table, topic, config.avro_codec))


def _tabular(extension: str, render: Render) -> Format:
    def write(records: Sequence[ConnectRecord]) -> Written:
        made = rows_of(records, None)
        return Written(render(made.table, records[0].topic), [(each.at, each.reason) for each in made.refused])

    return Format(extension, write, render)


def _compressed(config: FilesConfig, plain: Format) -> Format:
    if config.s3_compression_type == "none":
        return plain

    def packed(data: bytes) -> bytes:
        # Without a time in its head: the same records are the same bytes.
        return gzip.compress(data, mtime=0)

    def write(records: Sequence[ConnectRecord]) -> Written:
        made = plain.write(records)
        return made._replace(data=packed(made.data))

    render = plain.render
    return Format(
        f"{plain.extension}.gz", write, None if render is None else lambda table, topic: packed(render(table, topic))
    )


def size_of(value: Any) -> int:
    """About how many bytes a record's value takes, without writing it."""
    if isinstance(value, bytes | str):
        return len(value)
    if isinstance(value, dict):
        parts: Iterable[Any] = chain(value, value.values())
    elif isinstance(value, list):
        parts = value
    else:
        parts = getattr(value, "values", None) or ()
    total = 8
    for part in parts:
        kind = type(part)
        if kind is str or kind is bytes:
            total += len(part)
        else:
            total += 8 if kind in _SMALL else size_of(part)
    return total


_SMALL: Final = frozenset((int, float, bool, type(None)))
