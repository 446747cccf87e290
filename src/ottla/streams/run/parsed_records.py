"""Records whose keys and values are parsed in the tasks that read them: a stage of `reading_stages`.

Where they are JSON with ksqlDB's conversions Arrow reads a column of documents in a fraction of the time that Spark's
parser and the conversions behind it take (`serdes.lenient_json_arrow`), and Spark is given typed columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ottla.serdes.arrow import arrow_type
from ottla.serdes.base import Serde
from ottla.serdes.lenient_json import LenientJsonSerde
from ottla.serdes.lenient_json_arrow import decoded
from ottla.serdes.types import BINARY, INT, LONG, STRING, Type, array_of, struct_of
from ottla.streams.topology.graph import SourceNode

if TYPE_CHECKING:
    from ottla.streams.run.reading_stages import ReadingTask

_HEADERS: Final = array_of(struct_of({"key": STRING, "value": BINARY}))


def decoded_name(part: str) -> str:
    """Of the column that holds a key or value and what is wrong with its bytes."""
    return f"decoded_{part}"


@dataclass(frozen=True, slots=True)
class ParsedRecords:
    serdes: tuple[tuple[str, LenientJsonSerde], ...]
    """Of key, value or both."""
    headers: bool
    origin: bool
    bytes_too: bool
    """What is parsed, also as it came: for dead letters."""

    def columns(self) -> dict[str, Type]:
        parsed = [] if self.bytes_too else [part for part, _ in self.serdes]
        wanted = {part: BINARY for part in ("key", "value") if part not in parsed}
        for part, serde in self.serdes:
            wanted[decoded_name(part)] = struct_of({"value": serde.type, "error": STRING})
        wanted |= {"topic": STRING, "partition": INT, "offset": LONG, "timestamp": LONG}
        wanted |= {"headers": _HEADERS} if self.headers else {}
        return wanted | ({"origin": LONG} if self.origin else {})

    def rows(self, batches: Iterator[pa.RecordBatch], _: ReadingTask) -> Iterator[pa.RecordBatch]:
        columns = self.columns()
        for batch in batches:
            made = {name: _column(batch, name, kind) for name, kind in columns.items() if name in _READ}
            for part, serde in self.serdes:
                name = decoded_name(part)
                made[name] = _decoded(serde, batch.column(part), arrow_type(columns[name]))
            yield pa.record_batch({name: made[name] for name in columns})


_READ: Final = frozenset(("key", "value", "topic", "partition", "offset", "timestamp", "headers", "origin"))


def _decoded(serde: LenientJsonSerde, data: pa.Array, kind: pa.DataType) -> pa.Array:
    found = decoded(serde, data)
    return pa.StructArray.from_arrays([found.values, found.errors], fields=list(kind))


def _column(batch: pa.RecordBatch, name: str, kind: Type) -> pa.Array:
    """Headers are not there where no record has any."""
    if name in batch.schema.names:
        return batch.column(name)
    return pa.nulls(batch.num_rows, arrow_type(kind))


def parsed_parts(source: SourceNode) -> tuple[tuple[str, LenientJsonSerde], ...]:
    serdes: dict[str, Serde[Any] | None] = {"key": source.key_serde, "value": source.value_serde}
    return tuple((part, serde) for part, serde in serdes.items() if isinstance(serde, LenientJsonSerde))
