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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ottla.registry.in_memory import MemoryRegistry
from ottla.registry.schemas.base import LanguageName
from ottla.serdes.base import Where, placed
from ottla.sql import assertions, plain
from ottla.sql import tree as t
from ottla.sql.analysis.inserting import values_row
from ottla.sql.analysis.queries import analysed
from ottla.sql.analysis.refusals import at, meant, refuse
from ottla.sql.catalog import PersistentQuery, QueryEnded, QuerySet, Settings
from ottla.sql.compile import topology
from ottla.sql.errors import BAD_REQUEST, BAD_STATEMENT, SERVER_ERROR, SqlError
from ottla.sql.functions import find
from ottla.sql.model import DataSource
from ottla.sql.processing_log.entries import TOPIC, entry
from ottla.sql.processing_log.review import Review
from ottla.sql.properties import check_of_file, is_known
from ottla.sql.records import Formats
from ottla.sql.session import Session
from ottla.sql.types import sql_text
from ottla.streams.errors import StreamsError
from ottla.streams.record import Headers, Raw
from ottla.streams.serdes import SessionWindowedSerde, TimeWindowedSerde
from ottla.streams.test_driver import TopologyTestDriver
from ottla.streams.topology.errors import TopologyError

if TYPE_CHECKING:
    from ottla.serdes.base import Serde

Record = dict[str, Any]

ENGINES: Final = ("driver", "spark")
PROCESSING_LOG: Final = f"default_{TOPIC}"
"""Of the server that nobody named otherwise."""
_ROWS: Final = "ksql.logging.processing.rows.include"


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
        for name, value in (properties or {}).items():
            if is_known(name):
                check_of_file(name, str(value).lower() if isinstance(value, bool) else str(value))
        given = list(inputs)
        there = _facts(topics, given)
        return _Run(dict(properties or {}), registry, session, engine, there).all(text, given)
    except SqlError:
        raise
    except (StreamsError, TopologyError) as error:
        raise SqlError(SERVER_ERROR, str(error)) from error


def _facts(topics: Sequence[Any], inputs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int | None]]:
    """Which topics there are before the first statement, and what is known of each."""
    known: dict[str, dict[str, int | None]] = {str(each.get("topic", "")): {} for each in inputs}
    for topic in topics:
        said = topic if isinstance(topic, Mapping) else {"name": topic}
        known[str(said["name"])] = {
            "PARTITIONS": said.get("partitions", said.get("numPartitions")),
            "REPLICAS": said.get("replicas"),
        }
    return known


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
    topics: dict[str, dict[str, int | None]]
    """Those there are, before any query has made one."""
    expected: list[tuple[t.AssertValues, str]] = field(default_factory=list)
    """Of ASSERT VALUES, looked at when all queries have run; with the statement's text."""
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
            told = self._told(query, records)
            records += found + told
            outputs += [self._plain(raw, query.sink) for raw in found]
            outputs += [self._plain(raw) for raw in told]
        self._check_values(records)
        return outputs, [_source(each) for each in self.session.catalog.sources.values()]

    # ---- statements

    def _do(self, statement: t.Statement, text: str) -> None:
        if self.session.set(statement):
            if isinstance(statement, t.SetProperty):
                with at(statement):
                    check_of_file(statement.name, statement.value)
            return
        match statement:
            case t.InsertValues():
                self._insert(statement)
            case t.SelectQuery():
                analysed(statement.query, self.session.catalog.vocabulary(), stored=False)
            case (
                t.CreateSource()
                | t.CreateAs()
                | t.InsertInto()
                | t.AlterSource()
                | t.Drop()
                | t.CreateType()
                | t.CreateFunction()
            ):
                self._change(statement, text)
            case t.Control():
                self._change(statement, text)
            case t.AssertTopic() | t.AssertSchema() | t.AssertSource() | t.AssertValues():
                self._assert(statement, text)
            case t.Describe() | t.Explain():
                self._look(statement, text)
            case t.PrintTopic() if statement.topic not in self._known_topics():
                refuse(f"there is no topic {statement.topic}{meant(statement.topic, self._known_topics())}", statement)
            case t.RunScript() | t.CreateConnector():
                refuse(f"{text.split(None, 2)[0].upper()} is for a server and its shell, not for a test", statement)
            case _:
                return

    def _assert(self, statement: t.Statement, text: str) -> None:
        catalog = self.session.catalog
        match statement:
            case t.AssertTopic():
                assertions.check_topic(statement, self._known_topics())
            case t.AssertSchema():
                assertions.check_schema(statement, self.registry)
            case t.AssertSource(source=written):
                there = catalog.find(t.Source(written.name, at=statement.at))
                assertions.check_source(statement, there, catalog.types)
            case t.AssertValues(name=name):
                catalog.find(t.Source(name, at=statement.at))
                self.expected.append((statement, text))

    def _check_values(self, records: list[Raw]) -> None:
        """Each ASSERT VALUES takes the next record of its source."""
        left: dict[str, Iterator[Raw]] = {}
        for statement, text in self.expected:
            source = self.session.catalog.find(t.Source(statement.name, at=statement.at))
            found = left.setdefault(source.topic, iter([each for each in records if each.topic == source.topic]))
            raw = next(found, None)
            read = None if raw is None else (*self._read(raw, source), raw.timestamp)
            try:
                assertions.check_values(statement, source, read, self.session.catalog.types)
            except SqlError as error:
                raise error.of(text) from None

    def _read(self, raw: Raw, source: DataSource) -> tuple[Any, Any]:
        formats, where = Formats(self.registry), Where(raw.topic)
        key = placed(formats.key(source), where).deserialize(raw.key)
        if source.window is not None and key is not None:
            key = key.key
        return key, placed(formats.value(source), where).deserialize(raw.value)

    def _look(self, statement: t.Describe | t.Explain, text: str) -> None:
        """Nothing is shown, but what is not there is refused."""
        catalog = self.session.catalog
        match statement:
            case t.Describe(kind="SOURCE", name=str(name)):
                catalog.find(t.Source(name, at=statement.at))
            case t.Describe(kind="FUNCTION", name=str(name)):
                with at(statement):
                    find(name.upper(), catalog.functions)
            case t.Explain(query_id=str(query_id)) if query_id not in catalog.queries:
                refuse(f"there is no query {query_id}{meant(query_id, catalog.queries)}", statement)
            case t.Explain(statement=t.SelectQuery(query=query)):
                analysed(query, catalog.vocabulary(), stored=False)
            case t.Explain(statement=t.Statement() as explained):
                settings = Settings.of({**self.properties, **self.session.properties})
                catalog.decide(explained, text, self.session.position, settings)

    def _known_topics(self) -> dict[str, dict[str, int | None]]:
        made = {
            each.topic: {"PARTITIONS": each.partitions, "REPLICAS": each.replicas}
            for each in self.session.catalog.sources.values()
        }
        return {**made, **self.topics}

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
        row = values_row(statement, target, catalog.types, assertions.AT_REST)
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
        # Without caches each update comes out, on Spark as here: that of a row that was not there is one too.
        config = {
            "deserialization.exception.handler": "fail" if fails else "continue",
            "statestore.cache.max.bytes": 0,
        }
        if self.engine == "spark":
            from ottla.sql.on_spark import SparkEngine  # noqa: PLC0415  only who asks for Spark pays for it

            return SparkEngine.of(self.properties, self.registry).ran(query, records, config)
        topics = {source.topic for source in query.query.reads()}
        with TopologyTestDriver(made, query.id, config) as driver:
            for raw in records:
                if raw.topic in topics:
                    driver.pipe_raw(raw.topic, raw.key, raw.value, raw.timestamp, raw.headers)
            return [*driver.output(query.sink.topic)]

    def _told(self, query: PersistentQuery, records: list[Raw]) -> list[Raw]:
        """What the query writes to the processing log, for statements that have declared it."""
        if self._of_topic(PROCESSING_LOG) is None:
            return []
        review, rows = Review(query.query, self.registry), str(self._setting(_ROWS)).lower() == "true"
        return [
            Raw(PROCESSING_LOG, 0, -1, None, entry(query.id, problem, raw.timestamp, rows=rows), raw.timestamp)
            for raw in records
            for problem in review.problems(raw, raw.timestamp)
        ]

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
