"""ASSERT, as a test run answers it: without waiting, since nothing else is at work. What does not hold is an SqlError.

ASSERT TOPIC and ASSERT SCHEMA look at what there is before any query has run; ASSERT STREAM, TABLE at a source of the
catalog; ASSERT VALUES at the next record of a source's topic, once all queries have run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ottla.registry.lookup import UnknownSchema
from ottla.serdes.types import Type
from ottla.sql import tree as t
from ottla.sql.analysis.formats import Defaults
from ottla.sql.analysis.inserting import values_row
from ottla.sql.analysis.refusals import refuse
from ottla.sql.analysis.sources import created
from ottla.sql.errors import ASSERTION_FAILED
from ottla.sql.model import DataSource

if TYPE_CHECKING:
    from ottla.registry.lookup import Registry

AT_REST: Final = 0
"""What time it is in tests, whose clock stands still."""


def _fails(message: str, node: t.Node) -> NoReturn:
    refuse(message, node, ASSERTION_FAILED)


def check_topic(statement: t.AssertTopic, known: Mapping[str, Mapping[str, int | None]]) -> None:
    """`known`: what is known of each topic that there is, PARTITIONS and REPLICAS."""
    found = known.get(statement.topic)
    if (found is not None) != statement.exists:
        _fails(f"topic {statement.topic} does {'not exist' if statement.exists else 'exist'}", statement)
    for name, wanted in statement.properties if found is not None else ():
        there = found.get(name.upper()) if found else None
        if there is not None and there != wanted:
            _fails(f"topic {statement.topic} has {there} {name.upper()}, not {wanted}", statement)


def check_schema(statement: t.AssertSchema, registry: "Registry") -> None:
    wanted = f"schema with id {statement.id}" if statement.subject is None else f"schema of {statement.subject}"
    try:
        found = registry.latest(statement.subject) if statement.subject else registry.by_id(int(statement.id or 0))
        there = statement.id is None or found.id == statement.id
    except UnknownSchema:
        there = False
    if there != statement.exists:
        _fails(f"a {wanted} does {'not exist' if statement.exists else 'exist'}", statement)


def check_source(statement: t.AssertSource, there: DataSource, custom: Mapping[str, Type]) -> None:
    """Columns, and what WITH says of formats and topic; what it leaves out is not compared."""
    written = statement.source
    named = {name.upper() for name, _ in written.properties}
    needed: list[tuple[str, t.Constant]] = [("KAFKA_TOPIC", there.topic)]
    if "FORMAT" not in named:
        needed += [("KEY_FORMAT", there.key_format.name), ("VALUE_FORMAT", there.value_format.name)]
    filled = (*written.properties, *(each for each in needed if each[0] not in named))
    expected = created(
        t.CreateSource(written.kind, written.name, written.columns, filled, at=written.at), custom, Defaults()
    )
    pairs: Sequence[tuple[str, Any, Any]] = (
        ("kind", expected.kind, there.kind),
        ("topic", expected.topic, there.topic),
        ("key format", expected.key_format.name, there.key_format.name),
        ("value format", expected.value_format.name, there.value_format.name),
        ("timestamp column", expected.event_time, there.event_time if "TIMESTAMP" in named else expected.event_time),
    )
    if expected.schema_text() != there.schema_text():
        _fails(f"{there.name} has other columns: ({there.schema_text()}), not ({expected.schema_text()})", statement)
    for what, wanted, found in pairs:
        if wanted != found:
            _fails(f"{there.name}: {what} {wanted} expected, found {found}", statement)


def check_values(
    statement: t.AssertValues, source: DataSource, record: tuple[Any, Any, int] | None, custom: Mapping[str, Type]
) -> None:
    """`record`: key, value and timestamp of the next one that was written; None if there is none."""
    if record is None:
        _fails(f"{source.name} has no further record", statement)
    columns, values = statement.columns, statement.values
    if statement.tombstone:
        columns = columns or tuple(name for name, _ in source.keys)
    wanted = values_row(
        t.InsertValues(source.name, columns, values, at=statement.at), _writable(source), custom, AT_REST
    )
    key, value, timestamp = record
    if statement.tombstone and value is not None:
        _fails(f"{source.name}: a tombstone expected, found {value}", statement)
    if not statement.tombstone and value is None:
        _fails(f"{source.name}: {wanted.value} expected, found a tombstone", statement)
    if wanted.key != key:
        _fails(f"{source.name}: the key {wanted.key} expected, found {key}", statement)
    said = columns or tuple(name for name, _ in (*source.keys, *source.values))
    for name, each in wanted.value.items() if not statement.tombstone else ():
        if name in said and value.get(name) != each:
            _fails(f"{source.name}: {name} {each!r} expected, found {value.get(name)!r}", statement)
    if wanted.timestamp is not None and wanted.timestamp != timestamp:
        _fails(f"{source.name}: ROWTIME {wanted.timestamp} expected, found {timestamp}", statement)


def _writable(source: DataSource) -> DataSource:
    """The same columns, without what forbids INSERT."""
    return replace(source, is_source=False, window=None)
