"""CREATE STREAM and CREATE TABLE with columns: a topic that is there becomes a source."""

import re
from collections.abc import Mapping
from typing import Final

from ottla.serdes.types import BINARY, LONG, STRING, TIMESTAMP, Type
from ottla.sql import tree as t
from ottla.sql.analysis import properties
from ottla.sql.analysis.formats import Defaults, formats
from ottla.sql.analysis.keeping import topic_settings
from ottla.sql.analysis.properties import Properties
from ottla.sql.analysis.refusals import meant, refuse
from ottla.sql.analysis.types import resolved
from ottla.sql.model import SYSTEM, Columns, DataSource, EventTime, HeaderColumn, WindowedKey
from ottla.streams.expressions.bound import HEADERS
from ottla.streams.expressions.time_patterns import check_readable

_WINDOW_SIZE: Final = re.compile(r"\s*(\d{1,15})\s+([A-Za-z]+?)S?\s*")


def created(statement: t.CreateSource, custom: Mapping[str, Type], defaults: Defaults) -> DataSource:
    said = properties.read(statement.properties, properties.CREATE, statement)
    keys, values, headers = _columns(statement, custom)
    topic = said.text("KAFKA_TOPIC")
    if topic is None:
        refuse(f"KAFKA_TOPIC is missing: WITH (KAFKA_TOPIC='{statement.name.lower()}', ...)", statement)
    key_format, value_format = formats(said, keys, values, statement, None, defaults)
    if statement.kind == "TABLE" and not keys:
        refuse("a TABLE needs a PRIMARY KEY column: name STRING PRIMARY KEY", statement)
    if not values and not headers and not keys:
        refuse("the statement has no columns, and the format has no schema that would tell them", statement)
    window = _window(said, keys, statement)
    return DataSource(
        statement.name,
        statement.kind,
        topic,
        keys,
        values,
        key_format,
        value_format,
        headers,
        window,
        event_time(said, (*keys, *values), statement),
        said.number("PARTITIONS"),
        said.number("REPLICAS"),
        statement.is_source,
        topic_settings=topic_settings(said, statement, windowed=window is not None),
    )


def _columns(
    statement: t.CreateSource, custom: Mapping[str, Type]
) -> tuple[Columns, Columns, tuple[HeaderColumn, ...]]:
    keys: list[tuple[str, Type]] = []
    values: list[tuple[str, Type]] = []
    headers: list[HeaderColumn] = []
    seen: set[str] = set()
    for column in statement.columns:
        if column.name in SYSTEM:
            refuse(f"{column.name} is there already in every record, and cannot be declared", column)
        if column.name in seen:
            refuse(f"the column {column.name} is there twice", column)
        seen.add(column.name)
        kind = resolved(column.type, custom)
        if column.role in ("KEY", "PRIMARY KEY"):
            _check_role(statement, column)
            if kind.has("map"):
                refuse(f"a key cannot hold a MAP, whose entries have no order: {column.name}", column)
            keys.append((column.name, kind))
        elif column.role:
            headers.append(_header(column, kind, headers))
        else:
            values.append((column.name, kind))
    return tuple(keys), tuple(values), tuple(headers)


def _check_role(statement: t.CreateSource, column: t.ColumnDef) -> None:
    if statement.kind == "TABLE" and column.role == "KEY":
        refuse(f"the key of a TABLE is unique: write {column.name} ... PRIMARY KEY", column)
    if statement.kind == "STREAM" and column.role == "PRIMARY KEY":
        refuse(f"the key of a STREAM is not unique: write {column.name} ... KEY", column)


def _header(column: t.ColumnDef, kind: Type, others: list[HeaderColumn]) -> HeaderColumn:
    wanted, words = (HEADERS, "ARRAY<STRUCT<key STRING, value BYTES>>") if column.header is None else (BINARY, "BYTES")
    if kind != wanted:
        refuse(f"{column.name} {column.role} has the type {words}", column)
    if any((each.key is None) or (column.header is None) for each in others):
        refuse("a source has either one HEADERS column or some of HEADER('key')", column)
    if any(each.key == column.header for each in others):
        refuse(f"there are two columns for the header {column.header!r}", column)
    return HeaderColumn(column.name, column.header)


def _window(said: Properties, keys: Columns, statement: t.Node) -> WindowedKey | None:
    kind = said.upper("WINDOW_TYPE")
    node, size_at = said.place("WINDOW_TYPE", statement), said.place("WINDOW_SIZE", statement)
    size = said.text("WINDOW_SIZE")
    if kind is None:
        if size is not None:
            refuse("WINDOW_SIZE needs WINDOW_TYPE='TUMBLING' or 'HOPPING' beside it", size_at)
        return None
    if kind not in ("TUMBLING", "HOPPING", "SESSION"):
        refuse(f"{kind} is no WINDOW_TYPE{meant(kind, ('TUMBLING', 'HOPPING', 'SESSION'))}", node)
    if not keys:
        refuse("WINDOW_TYPE is about windowed keys, but there is no key column: add one with KEY", node)
    if kind == "SESSION":
        if size is not None:
            refuse("a SESSION has no WINDOW_SIZE: its bounds are in the key", size_at)
        return WindowedKey(kind)
    if size is None:
        refuse(f"WINDOW_SIZE is missing: a {kind} window has one, such as WINDOW_SIZE='5 MINUTES'", node)
    return WindowedKey(kind, _duration_ms(size, size_at))


def _duration_ms(text: str, node: t.Node | t.Word) -> int:
    match = _WINDOW_SIZE.fullmatch(text)
    unit = match[2].upper() if match else ""
    if match is None or unit not in t.UNIT_MS or int(match[1]) == 0:
        refuse(f"{text!r} is no WINDOW_SIZE: write a number and MILLISECONDS, SECONDS, MINUTES, HOURS or DAYS", node)
    size = int(match[1]) * t.UNIT_MS[unit]
    if size > t.LONGEST_MS:
        refuse(f"WINDOW_SIZE={text!r} is more than the {t.LONGEST} there may be", node)
    return size


def event_time(said: Properties, columns: Columns, statement: t.Node) -> EventTime | None:
    name = said.text("TIMESTAMP")
    node, format_at = said.place("TIMESTAMP", statement), said.place("TIMESTAMP_FORMAT", statement)
    if name is None:
        return None
    name = name[1:-1] if len(name) > 1 and name[0] == name[-1] == "`" else name.upper()
    kind = dict(columns).get(name)
    format = said.text("TIMESTAMP_FORMAT")
    if kind is None:
        refuse(f"TIMESTAMP={name!r}: there is no such column{meant(name, dict(columns))}", node)
    if kind == STRING and format is None:
        refuse(f"TIMESTAMP={name!r} is a STRING: say how to read it by TIMESTAMP_FORMAT='yyyy-MM-dd ...'", node)
    if kind != STRING and format is not None:
        refuse(f"TIMESTAMP_FORMAT is for a STRING, but {name} is none: leave it out", format_at)
    if kind not in (STRING, LONG, TIMESTAMP):
        refuse(f"TIMESTAMP={name!r} has to be a BIGINT, a TIMESTAMP, or a STRING with TIMESTAMP_FORMAT", node)
    if format is not None:
        _check_pattern(format, format_at)
    return EventTime(name, format)


def _check_pattern(pattern: str, node: t.Node | t.Word) -> None:
    try:
        check_readable(pattern)
    except ValueError as error:
        refuse(f"TIMESTAMP_FORMAT={pattern!r}: {error}", node)
