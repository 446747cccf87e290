"""Statements over records, in this process: no broker, no Spark, no waiting.

    outputs, sources = run("CREATE STREAM s (id INT KEY, v STRING) WITH (kafka_topic='t', value_format='JSON');"
                           "CREATE STREAM o AS SELECT id, UCASE(v) AS v FROM s;",
                           [{"topic": "t", "key": 1, "value": {"V": "a"}}])
    assert outputs == [{"topic": "O", "key": 1, "value": {"V": "A"}, "timestamp": 0, "window": None, "headers": []}]

Records are dicts: topic, key, value, timestamp, window {start, end, type}, headers [{KEY, VALUE}]; `plain` tells how
keys and values look. Queries run in the order of their statements, each over all of its input records in the order
given, then over what earlier queries wrote. All that is wrong with a statement is an `SqlError`.
"""

import base64
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ottla.registry.in_memory import MemoryRegistry
from ottla.registry.schemas.base import LanguageName
from ottla.serdes.base import Where, placed
from ottla.sql import plain
from ottla.sql import tree as t
from ottla.sql.analysis.inserting import values_row
from ottla.sql.analysis.queries import analysed
from ottla.sql.catalog import PersistentQuery, QueryEnded, QuerySet
from ottla.sql.compile import Formats, topology
from ottla.sql.errors import BAD_REQUEST, BAD_STATEMENT, SERVER_ERROR, SqlError
from ottla.sql.model import DataSource
from ottla.sql.session import Session
from ottla.sql.types import sql_text
from ottla.streams.errors import StreamsError
from ottla.streams.record import Headers, Raw
from ottla.streams.serdes import SessionWindowedSerde, TimeWindowedSerde
from ottla.streams.test_driver import TopologyTestDriver
from ottla.streams.topology.graph import TopologyError

if TYPE_CHECKING:
    from ottla.serdes.base import Serde

Record = dict[str, Any]

ENGINES: Final = ("driver", "spark")


def run(
    statements: str | Iterable[str],
    inputs: Iterable[Mapping[str, Any]],
    properties: Mapping[str, Any] | None = None,
    topics: Sequence[Any] = (),
    engine: str = "driver",
) -> tuple[list[Record], list[Record]]:
    """What the queries wrote, and the sources that there are in the end. Raises SqlError alone."""
    text = statements if isinstance(statements, str) else "\n".join(_ended(each) for each in statements)
    if engine not in ENGINES:
        raise SqlError(BAD_STATEMENT, f"{engine!r} is no engine: there are {', '.join(ENGINES)}")
    try:
        registry = MemoryRegistry()
        for each in topics:
            _register(each, registry)
        session = Session(registry=registry)
        return _Run(dict(properties or {}), registry, session, engine).all(text, list(inputs))
    except SqlError:
        raise
    except (StreamsError, TopologyError) as error:
        raise SqlError(SERVER_ERROR, str(error)) from error


def _register(topic: Any, registry: MemoryRegistry) -> None:
    """A topic is a name, or a dict of its name and, as they are there, its schemas and their formats."""
    if not isinstance(topic, Mapping):
        return
    for part in ("key", "value"):
        schema = topic.get(f"{part}_schema", topic.get(f"{part}Schema"))
        if schema is None and part == "value":
            schema = topic.get("schema")
        if schema is None:
            continue
        format = topic.get(f"{part}_format", topic.get(f"{part}Format", topic.get("format", "AVRO")))
        name = str(format.get("format") if isinstance(format, Mapping) else format).upper()
        text = schema if isinstance(schema, str) and name == "PROTOBUF" else json.dumps(schema)
        registry.register(f"{topic['name']}-{part}", _LANGUAGES[name], text)


_LANGUAGES: Final[dict[str, LanguageName]] = {"AVRO": "AVRO", "JSON_SR": "JSON", "JSON": "JSON", "PROTOBUF": "PROTOBUF"}


def _ended(statement: str) -> str:
    return statement if statement.rstrip().endswith(";") else statement + ";"


@dataclass(slots=True)
class _Run:
    properties: dict[str, Any]
    registry: MemoryRegistry
    session: Session
    engine: str
    written: list[Raw] = field(default_factory=list)
    """By INSERT VALUES, before anything else."""
    alive: dict[str, tuple[PersistentQuery, Any]] = field(default_factory=dict)

    def all(self, text: str, inputs: list[Mapping[str, Any]]) -> tuple[list[Record], list[Record]]:
        for statement, own_text in self.session.statements(text):
            try:
                self._do(statement, own_text)
            except SqlError as error:
                raise error.of(own_text) from None
        records = [*self.written, *(raw for each in inputs if (raw := self._raw(each)) is not None)]
        outputs = [self._plain(raw) for raw in self.written]
        for query, made in self.alive.values():
            found = self._ran(query, made, records)
            records += found
            outputs += [self._plain(raw, query.sink) for raw in found]
        return outputs, [_source(each) for each in self.session.catalog.sources.values()]

    # ---- statements

    def _do(self, statement: t.Statement, text: str) -> None:
        if self.session.set(statement):
            return
        match statement:
            case t.InsertValues():
                self._insert(statement)
            case t.SelectQuery():
                analysed(statement.query, self.session.catalog.surroundings(), stored=False)
            case t.CreateSource() | t.CreateAs() | t.InsertInto() | t.AlterSource() | t.Drop() | t.CreateType():
                self._change(statement, text)
            case t.Control():
                self._change(statement, text)
            case _:
                return

    def _change(self, statement: t.Statement, text: str) -> None:
        for change in self.session.change(statement, text, self.properties):
            match change:
                case QuerySet(query):
                    self.alive[query.id] = query, topology(query.query, query.sink, self.registry)
                case QueryEnded(query_id):
                    self.alive.pop(query_id, None)

    def _insert(self, statement: t.InsertValues) -> None:
        catalog = self.session.catalog
        target = catalog.find(t.Source(statement.name, at=statement.name_at))
        row = values_row(statement, target, catalog.types)
        formats = Formats(self.registry)
        where = Where(target.topic)
        key = placed(formats.key(target), where).serialize(row.key)
        value = placed(formats.value(target), where).serialize(row.value)
        self.written.append(Raw(target.topic, 0, -1, key, value, row.timestamp or 0, ()))

    # ---- records

    def _of_topic(self, topic: str) -> DataSource | None:
        sources = self.session.catalog.sources.values()
        return next((each for each in sources if each.topic == topic), None)

    def _raw(self, record: Mapping[str, Any]) -> Raw | None:
        source = self._of_topic(record.get("topic", ""))
        if source is None:
            return None
        try:
            return self._encoded(record, source)
        except (ValueError, TypeError, KeyError, struct.error) as error:
            raise SqlError(BAD_REQUEST, f"the record {dict(record)} is none of {source.name}: {error}") from error

    def _encoded(self, record: Mapping[str, Any], source: DataSource) -> Raw:
        formats = Formats(self.registry)
        keys: Any = formats.key(source)
        inner = getattr(keys, "inner", keys) if source.window else keys
        key = plain.to_bytes(record.get("key"), source.key_format, source.keys, "key", inner, source.topic)
        if source.window and key is not None:
            key += _bounds(record.get("window") or {}, keys)
        value = plain.to_bytes(
            record.get("value"), source.value_format, source.values, "value", formats.value(source), source.topic
        )
        return Raw(source.topic, 0, -1, key, value, int(record.get("timestamp") or 0), _headers(record))

    def _plain(self, raw: Raw, source: DataSource | None = None) -> Record:
        known = source or self._of_topic(raw.topic)
        assert known is not None, "nothing is written to a topic that no source has"
        formats = Formats(self.registry)
        keys: Any = formats.key(known)
        data, window = raw.key, None
        inner = keys
        if known.window is not None:
            inner = keys.inner
            data, window = _without_window(keys, raw.key)
        return {
            "topic": raw.topic,
            "key": plain.from_bytes(data, known.key_format, known.keys, "key", inner, raw.topic),
            "value": plain.from_bytes(
                raw.value, known.value_format, known.values, "value", formats.value(known), raw.topic
            ),
            "timestamp": raw.timestamp,
            "window": window,
            "headers": [
                {"KEY": name, "VALUE": None if data is None else base64.b64encode(data).decode()}
                for name, data in raw.headers
            ],
        }

    # ---- queries

    def _ran(self, query: PersistentQuery, made: Any, records: list[Raw]) -> list[Raw]:
        fails = str(self._setting("ksql.fail.on.deserialization.error")).lower() == "true"
        config = {"deserialization.exception.handler": "fail" if fails else "continue"}
        if self.engine == "spark":
            from ottla.sql.on_spark import SparkEngine  # noqa: PLC0415  only who asks for Spark pays for it

            return SparkEngine.of(self.properties, self.registry).ran(query, records, config)
        topics = {source.topic for source in query.query.reads()}
        with TopologyTestDriver(made, query.id, config) as driver:
            for raw in records:
                if raw.topic in topics:
                    driver.pipe_raw(raw.topic, raw.key, raw.value, raw.timestamp, raw.headers)
            return [*driver.output(query.sink.topic)]

    def _setting(self, name: str) -> Any:
        return self.session.properties.get(name, self.properties.get(name))


def _bounds(window: Mapping[str, Any], serde: "Serde[Any]") -> bytes:
    start = int(window.get("start", 0))
    if isinstance(serde, SessionWindowedSerde):
        return struct.pack(">qq", int(window.get("end", start)), start)
    return struct.pack(">q", start)


def _without_window(serde: "Serde[Any]", data: bytes | None) -> tuple[bytes | None, Record | None]:
    if data is None:
        return None, None
    if isinstance(serde, SessionWindowedSerde):
        end, start = struct.unpack(">qq", data[-16:])
        return data[:-16], {"start": start, "end": end, "type": "session"}
    assert isinstance(serde, TimeWindowedSerde)
    start = int.from_bytes(data[-8:], "big", signed=True)
    return data[:-8], {"start": start, "end": start + serde.size_ms, "type": "time"}


def _headers(record: Mapping[str, Any]) -> Headers:
    found = record.get("headers") or ()
    return tuple(
        (each["KEY"], None if each.get("VALUE") is None else base64.b64decode(each["VALUE"])) for each in found
    )


def _source(source: DataSource) -> Record:
    return {
        "name": source.name,
        "type": source.kind.lower(),
        "topic": source.topic,
        "schema": source.schema_text(),
        "columns": [
            *({"name": name, "type": sql_text(kind), "key": True} for name, kind in source.keys),
            *({"name": name, "type": sql_text(kind), "key": False} for name, kind in source.values),
        ],
        "key_format": source.key_format.name,
        "value_format": source.value_format.name,
        "window": None if source.window is None else source.window.kind,
        "window_size_ms": None if source.window is None else source.window.size_ms,
        "query": source.query_id,
    }
