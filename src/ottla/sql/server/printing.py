"""PRINT: the records of a topic as text, in whatever format they seem to be.

What keys and values are is guessed from their bytes: each record leaves fewer formats possible, and all that are still
possible are told, the likeliest first, in ksqlDB's words. It is told again when a record rules one out.
"""

import asyncio
import base64
import json
import struct
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ottla.client.aio.cluster import Cluster
from ottla.client.aio.reader import Reader
from ottla.model.errors import Errors
from ottla.protocol.records import Record
from ottla.registry.lookup import Registry, RegistryUnavailable, UnknownSchema
from ottla.serdes.base import Serde, SerdeError
from ottla.sql import tree as t
from ottla.sql.errors import BAD_STATEMENT, SqlError
from ottla.sql.server.views import Spans, spans
from ottla.streams.serdes import Serdes

_SLICE: Final = 500
"""Records that a thread turns into lines before others have their turn."""
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_LAST_MS: Final = 4_102_444_800_000
"""The year 2100: later times are no times of windows."""
_NO_DATA: Final = "¯\\_(ツ)_/¯ - no data processed"
_NULL: Final = "<null>"

Reading = Callable[[bytes], str]
"""The text of bytes. Raises ValueError if they are none of the format."""


@dataclass(frozen=True, slots=True)
class Printed:
    """Lines, as they come; they end with the LIMIT, or never."""

    lines: AsyncIterator[str]


async def printed(
    cluster: Cluster, registry: Registry | None, statement: t.PrintTopic, from_beginning: bool
) -> Printed:
    """Raises SqlError, ClientError."""
    (found,) = (await cluster.metadata([statement.topic])).topics
    if found.error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION:
        raise SqlError(BAD_STATEMENT, f"there is no topic {statement.topic}: SHOW TOPICS lists those there are")
    if statement.interval == 0 or statement.limit == 0:
        raise SqlError(BAD_STATEMENT, "INTERVAL and LIMIT are 1 at least")
    begin = statement.from_beginning or from_beginning
    whole = await spans(cluster, [statement.topic], from_beginning=begin, to_end=False)
    return Printed(_lines(cluster, whole, Printing(registry, statement.interval or 1, statement.limit)))


async def _lines(cluster: Cluster, whole: Spans, printing: "Printing") -> AsyncIterator[str]:
    async with Reader(cluster, whole) as reader:
        while reader.active and not printing.is_over:
            for fetched in await reader.poll():
                records = list(fetched.records)
                for begin in range(0, len(records), _SLICE):
                    some = records[begin : begin + _SLICE]
                    for line in await asyncio.to_thread(printing.lines, fetched.place.partition, some):
                        yield line


class Printing:
    """Lines of records: what they are in, if that is news, and they."""

    def __init__(self, registry: Registry | None, interval: int, limit: int | None) -> None:
        self._keys, self._values = Guess("Key", registry), Guess("Value", registry)
        self._interval = interval
        self._left = limit
        self._seen = 0

    @property
    def is_over(self) -> bool:
        return self._left == 0

    def lines(self, partition: int, records: Iterable[Record]) -> list[str]:
        found: list[str] = []
        for record in records:
            self._seen += 1
            if (self._seen - 1) % self._interval or self.is_over:
                continue
            if self._left is not None:
                self._left -= 1
            line = self._line(record, partition)
            found += [*self._keys.news(), *self._values.news(), line]
        return found

    def _line(self, record: Record, partition: int) -> str:
        key, value = self._keys.text(record.key), self._values.text(record.value)
        moment = _EPOCH + timedelta(milliseconds=min(max(record.timestamp, 0), _LAST_MS))
        rowtime = f"{moment:%Y/%m/%d %H:%M:%S}.{moment.microsecond // 1000:03d} Z"
        return f"rowtime: {rowtime}, key: {key}, value: {value}, partition: {partition}"


class Guess:
    """Which formats the keys, or the values, of all records so far may be in."""

    def __init__(self, part: str, registry: Registry | None) -> None:
        self._part = part
        self._all = {} if registry is None else _by_schema(registry)
        self._all |= _PLAIN
        self._all |= _WINDOWED if part == "Key" else {}
        self._possible: dict[str, Reading] | None = None
        self._told: str | None = None

    def text(self, data: bytes | None) -> str:
        if data is None:
            return _NULL
        found = _readable(self._all if self._possible is None else self._possible, data)
        # None: something else than all before. It is guessed anew.
        self._possible = found or _readable(self._all, data)
        for reading in self._possible.values():
            return reading(data)
        return _hex(data)

    def news(self) -> list[str]:
        """A line, if what is possible has changed."""
        told = _NO_DATA if self._possible is None else " or ".join(self._possible) or "UNRECOGNISED_BYTES"
        if told == self._told:
            return []
        self._told = told
        return [f"{self._part} format: {told}"]


def _readable(readings: dict[str, Reading], data: bytes) -> dict[str, Reading]:
    found = {}
    for name, reading in readings.items():
        try:
            reading(data)
        except (ValueError, UnknownSchema, RegistryUnavailable):
            continue
        found[name] = reading
    return found


def _is_text(data: bytes) -> bool:
    return all(byte >= 0x20 or byte in b"\t\n\r" for byte in data)


def _json(data: bytes) -> str:
    """As it was written. A bare text or number may as well be a KAFKA_STRING, which comes after it."""
    text = data.decode()
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(found, dict | list) and not text.startswith('"'):
        raise ValueError("neither object nor list nor text in quotes")
    return text


def _string(data: bytes) -> str:
    text = data.decode()
    if not _is_text(data):
        raise ValueError("bytes that are no text")
    return text


def _number(form: struct.Struct) -> Reading:
    def reading(data: bytes) -> str:
        if len(data) != form.size:
            raise ValueError("of another length")
        (number,) = form.unpack(data)
        return str(number)

    return reading


def _windowed(form: struct.Struct) -> Reading:
    """A text with the times of its window behind it."""

    def reading(data: bytes) -> str:
        if len(data) <= form.size:
            raise ValueError("too short for a window")
        moments: tuple[int, ...] = form.unpack(data[-form.size :])
        if not 0 <= min(moments) <= max(moments) < _LAST_MS or list(moments) != sorted(moments, reverse=True):
            raise ValueError("no times of a window")
        end = moments[0] if len(moments) > 1 else "-"
        return f"[{_string(data[: -form.size])}@{moments[-1]}/{end}]"

    return reading


_PLAIN: Final[dict[str, Reading]] = {
    "JSON": _json,
    "KAFKA_INT": _number(struct.Struct(">i")),
    "KAFKA_BIGINT": _number(struct.Struct(">q")),
    "KAFKA_DOUBLE": _number(struct.Struct(">d")),
    "KAFKA_STRING": _string,
}
_WINDOWED: Final[dict[str, Reading]] = {
    "SESSION(KAFKA_STRING)": _windowed(struct.Struct(">qq")),
    "HOPPING(KAFKA_STRING)": _windowed(struct.Struct(">q")),
    "TUMBLING(KAFKA_STRING)": _windowed(struct.Struct(">q")),
}


def _by_schema(registry: Registry) -> dict[str, Reading]:
    """With the id of a schema in front."""

    def of(language: str, serde: Serde[Any]) -> Reading:
        def reading(data: bytes) -> str:
            if len(data) < 5 or data[0] != 0:
                raise ValueError("no id of a schema")
            if registry.by_id(int.from_bytes(data[1:5], "big")).language != language:
                raise ValueError("of another language")
            try:
                return json.dumps(serde.deserialize(data), default=_text, ensure_ascii=False)
            except SerdeError as error:
                raise ValueError(str(error)) from None

        return reading

    return {
        "AVRO": of("AVRO", Serdes.avro(registry)),
        "PROTOBUF": of("PROTOBUF", Serdes.protobuf(registry)),
        "JSON_SR": of("JSON", Serdes.json_schema(registry)),
    }


def _text(value: object) -> str:
    """What JSON has no word for: bytes in base64, all else (decimals, dates, times) as it is written."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _hex(data: bytes) -> str:
    """Bytes that are nothing known."""
    return "[" + " ".join(f"{byte:02x}" for byte in data[:64]) + (" ...]" if len(data) > 64 else "]")
