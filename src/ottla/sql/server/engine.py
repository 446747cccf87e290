"""What statements ask for, done: the catalog by the log, topics by the cluster, rows by a producer."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from ottla.client import admin
from ottla.client.aio.cluster import Cluster
from ottla.client.aio.producer import Producer, Written
from ottla.client.aio.reader import Reader
from ottla.client.errors import ClientError, KafkaError
from ottla.client.fetching import Fetched
from ottla.model.errors import Errors
from ottla.registry.lookup import Registry, RegistryUnavailable, UnknownSchema
from ottla.serdes.base import SerdeError, Where, placed
from ottla.sql import tree as t
from ottla.sql.analysis.inserting import values_row
from ottla.sql.analysis.typed import Joining
from ottla.sql.catalog import (
    Catalog,
    Change,
    PersistentQuery,
    QueryEnded,
    QueryPaused,
    QuerySet,
    Settings,
    SourceDropped,
    SourceSet,
)
from ottla.sql.compile import Formats, topology
from ottla.sql.errors import ASSERTION_FAILED, BAD_STATEMENT, SERVER_ERROR, SqlError
from ottla.sql.formats import FORMATS
from ottla.sql.functions import find
from ottla.sql.functions.declare import Refused
from ottla.sql.model import Columns, DataSource
from ottla.sql.parser import parse
from ottla.sql.server import entities
from ottla.sql.server.log import Logged, StatementLog, as_text
from ottla.sql.server.results import Client, Computing, Plain, Row, as_stream, computing, understood
from ottla.sql.server.views import TooManyRows, Views, spans
from ottla.sql.session import Session
from ottla.streams.topology.graph import TopologyError

logger = logging.getLogger(__name__)

T = TypeVar("T")

BELONGS_TO_QUERY: Final = 40002
_OUTCOMES: Final = 1_000
"""Results of statements that are remembered for who asks how they went."""
_ASSERT_S: Final = 1.0
_ASSERT_PAUSE_S: Final = 0.1
_LOGGED: Final = (t.CreateSource, t.CreateAs, t.InsertInto, t.AlterSource, t.Drop, t.CreateType, t.Control)


class Persistent(Protocol):
    """Who runs queries that write topics."""

    def start(self, query: PersistentQuery, statements: list[tuple[int, Logged]]) -> None: ...
    def stop(self, query_id: str) -> None: ...
    def states(self) -> Mapping[str, str]: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a statement of the log went."""

    command: str
    message: str
    query_id: str | None = None
    error: SqlError | None = None


@dataclass(slots=True)
class Result:
    """A query of a client: what its rows are, and they."""

    query_id: str
    columns: Columns
    keys: tuple[str, ...]
    rows: AsyncIterator[Row]
    is_push: bool
    limit: int | None = None
    closed: asyncio.Event = field(default_factory=asyncio.Event)


class Encoded(NamedTuple):
    key: bytes | None
    value: bytes | None


class Writer:
    """Turns rows of one source into records."""

    def __init__(self, target: DataSource, registry: Registry | None) -> None:
        formats = Formats(registry)
        self.target = target
        self.knows_its_schemas = False
        """Whether it has written one: from then on nobody is asked."""
        self._key = placed(formats.key(target), Where(target.topic))
        self._value = placed(formats.value(target), Where(target.topic))

    def encoded(self, key: Any, value: Any) -> Encoded:
        """Raises SerdeError."""
        made = Encoded(self._key.serialize(key), self._value.serialize(value))
        self.knows_its_schemas = self.knows_its_schemas or key is not None
        return made


class Engine:
    def __init__(
        self,
        cluster: Cluster,
        producer: Producer,
        *,
        service_id: str,
        registry: Registry | None = None,
        persistent: Persistent | None = None,
        defaults: Mapping[str, str] | None = None,
    ) -> None:
        self.catalog = Catalog()
        self.service_id = service_id
        self.outcomes: OrderedDict[int, Outcome] = OrderedDict()
        self.running: dict[str, Result] = {}
        """Push queries of clients."""
        self._cluster = cluster
        self._producer = producer
        self._registry = registry
        self._persistent = persistent
        self._defaults = dict(defaults or {})
        self._views = Views(cluster)
        self._turn = asyncio.Lock()
        self._statements: list[tuple[int, Logged]] = []
        self._live = False
        self._numbers = 0
        self.log = StatementLog(cluster, producer, f"_ottla-sql-{service_id}-statements", self._replayed)

    # ---- its life

    async def ready(self) -> None:
        """When all statements have been read: queries begin. Raises ClientError."""
        await self.log.caught_up()
        self._live = True
        for query in self.catalog.queries.values():
            if not self.catalog.paused.get(query.id):
                self._start(query)

    async def close(self) -> None:
        for result in list(self.running.values()):
            result.closed.set()
        await self._views.close()

    # ---- the log

    def _replayed(self, offset: int, logged: Logged) -> None:
        """One statement of the log, at its place. What is wrong with it now was decided by whoever was first."""
        try:
            (statement,) = parse(logged.text)
            changes = self.catalog.decide(statement, logged.text, offset, self._settings(logged.properties))
        except SqlError as error:
            self._remember(offset, Outcome("", str(error), error=error))
            return
        self._statements.append((offset, logged))
        for change in changes:
            self.catalog.replay(change)
            self._act(change)
        self._remember(offset, _outcome(statement, changes))

    def _act(self, change: Change) -> None:
        if not self._live or self._persistent is None:
            return
        match change:
            case QuerySet(query):
                self._persistent.stop(query.id)
                self._start(query)
            case QueryEnded(query_id):
                self._persistent.stop(query_id)
            case QueryPaused(query_id, paused):
                if paused:
                    self._persistent.stop(query_id)
                else:
                    self._start(self.catalog.queries[query_id])

    def _start(self, query: PersistentQuery) -> None:
        if self._persistent is not None:
            self._persistent.start(query, list(self._statements))

    def _remember(self, offset: int, outcome: Outcome) -> None:
        self.outcomes[offset] = outcome
        while len(self.outcomes) > _OUTCOMES:
            self.outcomes.popitem(last=False)

    def _settings(self, properties: Mapping[str, object]) -> Settings:
        return Settings.of({**self._defaults, **properties})

    def states(self) -> Mapping[str, str]:
        """Of persistent queries, by id."""
        known = {} if self._persistent is None else self._persistent.states()
        return {
            query: "PAUSED" if self.catalog.paused.get(query) else known.get(query, "RUNNING")
            for query in self.catalog.queries
        }

    # ---- statements

    async def execute(
        self, text: str, properties: Mapping[str, Any], variables: Mapping[str, str], until: int | None = None
    ) -> list[entities.Entity]:
        """One after another. Raises SqlError, whose `entities` are what was done before."""
        if until is not None:
            await self.log.replayed(until)
        session = Session(self.catalog, as_text(properties), dict(variables))
        done: list[entities.Entity] = []
        try:
            for statement, own in session.statements(text):
                try:
                    found = await self._one(statement, own, session)
                except Refused as refused:
                    raise SqlError(BAD_STATEMENT, str(refused), own) from None
                except SqlError as error:
                    raise error.of(own) from None
                if found is not None:
                    done.append(found)
        except SqlError as error:
            error.entities = done  # type: ignore[attr-defined]
            raise
        return done

    async def _one(self, statement: t.Statement, text: str, session: Session) -> entities.Entity | None:
        if session.set(statement):
            return None
        if isinstance(statement, _LOGGED):
            return await self._logged(statement, text, session)
        match statement:
            case t.InsertValues():
                await self._insert(statement)
                return None
            case t.SelectQuery() | t.PrintTopic():
                raise SqlError(BELONGS_TO_QUERY, "SELECT and PRINT give rows: send them to /query-stream or /query")
            case t.Show():
                return await self._show(statement, text, session)
            case t.Describe():
                return self._describe(statement, text)
            case t.Explain():
                return self._explain(statement, text)
            case t.AssertTopic():
                return await self._assert_topic(statement, text)
        raise SqlError(BAD_STATEMENT, f"{type(statement).__name__} is nothing that this server does")

    async def _logged(self, statement: t.Statement, text: str, session: Session) -> entities.Entity:
        async with self._turn:
            await self.log.caught_up()
            settings = self._settings(session.properties)
            changes = self.catalog.decide(statement, text, self.log.position, settings)
            await self._prepare(changes)
            outcome = _outcome(statement, changes)
            offset = await self.log.append(outcome.command, Logged(text, session.properties))
            await self.log.replayed(offset)
        outcome = self.outcomes[offset]
        if outcome.error is not None:
            raise outcome.error
        await self._after(changes)
        return entities.current_status(text, outcome.command, outcome.message, offset, outcome.query_id)

    async def _prepare(self, changes: list[Change]) -> None:
        """Topics that have to be there before the statement is true. Raises SqlError."""
        queries = [change.query for change in changes if isinstance(change, QuerySet)]
        for change in changes:
            if isinstance(change, SourceSet):
                await self._topic(change.source, next((each for each in queries if each.sink == change.source), None))
        for query in queries:
            try:
                await self._done(partial(topology, query.query, query.sink, self._registry), self._touched(query))
            except TopologyError as error:
                raise SqlError(BAD_STATEMENT, str(error)) from None

    @staticmethod
    def _touched(query: PersistentQuery) -> list[DataSource]:
        return [*query.query.reads(), query.sink]

    async def _topic(self, source: DataSource, query: PersistentQuery | None) -> None:
        response = await self._cluster.metadata([source.topic])
        (found,) = response.topics
        if found.error_code != Errors.UNKNOWN_TOPIC_OR_PARTITION:
            there = len(found.partitions)
            if source.partitions is not None and there != source.partitions:
                raise SqlError(
                    BAD_STATEMENT,
                    f"topic {source.topic} has {there} partitions, not {source.partitions}: leave PARTITIONS out, or "
                    "name another KAFKA_TOPIC",
                )
            return
        partitions = source.partitions
        if partitions is None and query is not None:
            partitions = len(await self._cluster.partitions(query.query.reads()[0].topic))
        if partitions is None:
            raise SqlError(
                BAD_STATEMENT,
                f"topic {source.topic} does not exist: create it, or say how many PARTITIONS a new one has: "
                f"WITH (KAFKA_TOPIC='{source.topic}', PARTITIONS=1, ...)",
            )
        compact = {"cleanup.policy": "compact"} if source.is_table and source.window is None else {}
        new = admin.NewTopic(
            source.topic, partitions, source.replicas or min(1, len(response.brokers)), configs=compact
        )
        outcome = (await admin.create_topics(self._cluster, [new]))[source.topic]
        if isinstance(outcome, KafkaError) and outcome.error != Errors.TOPIC_ALREADY_EXISTS:
            raise SqlError(SERVER_ERROR, f"topic {source.topic} cannot be created: {outcome}")

    async def _after(self, changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change, SourceDropped) and change.deleted_topic is not None:
                await self._views.forget(change.deleted_topic)
                await admin.delete_topics(self._cluster, [change.deleted_topic])

    async def _insert(self, statement: t.InsertValues) -> None:
        target = self.catalog.find(t.Source(statement.name, at=statement.at))
        row = values_row(statement, target, self.catalog.types)
        await self.write(target, row.key, row.value, row.timestamp)

    async def write(self, target: DataSource, key: Any, value: Any, timestamp: int | None) -> None:
        """One row, acknowledged. Raises SqlError, ClientError."""
        await (await self.post(await self.writer(target), key, value, timestamp))

    async def writer(self, target: DataSource) -> "Writer":
        """Of rows of a source, made once for many. Raises SqlError."""
        return await self._done(partial(Writer, target, self._registry), [target])

    async def post(
        self, writer: "Writer", key: Any, value: Any, timestamp: int | None = None
    ) -> "asyncio.Future[Written]":
        """Taken; what it gives is done when the row is acknowledged. Raises SqlError, ClientError."""
        try:
            if writer.knows_its_schemas:
                made = writer.encoded(key, value)
            else:
                made = await self._done(partial(writer.encoded, key, value), [writer.target])
        except SerdeError as error:
            name = writer.target.value_format.name
            raise SqlError(BAD_STATEMENT, f"the row cannot be written as {name}: {error}") from None
        return await self._producer.post(writer.target.topic, made.value, key=made.key, timestamp=timestamp)

    async def _done(self, work: Callable[[], T], sources: Sequence[DataSource]) -> T:
        """Work with the serdes of sources: in a thread where one may have to ask the registry, which takes its time,
        and may be served by this very loop. Raises SqlError."""
        if not any(FORMATS[each.name].needs_registry for it in sources for each in (it.key_format, it.value_format)):
            return work()
        try:
            return await asyncio.to_thread(work)
        except RegistryUnavailable as error:
            raise SqlError(SERVER_ERROR, str(error)) from None
        except UnknownSchema as error:
            raise SqlError(BAD_STATEMENT, str(error)) from None

    # ---- telling

    async def _show(self, statement: t.Show, text: str, session: Session) -> entities.Entity:
        match statement.what:
            case "STREAMS" | "TABLES":
                kind = statement.what[:-1]
                if statement.extended:
                    return entities.source_descriptions(text, kind, self.catalog, self.states())
                return entities.source_list(text, kind, self.catalog)
            case "QUERIES":
                states = self.states()
                return entities.query_list(
                    text, [entities.query_row(each, states[each.id]) for each in self.catalog.queries.values()]
                )
            case "TOPICS":
                return await self._topics(text, statement.all)
            case "FUNCTIONS":
                return entities.function_names(text)
            case "TYPES":
                return entities.type_list(text, self.catalog)
            case "PROPERTIES":
                return entities.properties(text, {**self._defaults, **session.properties})
            case "VARIABLES":
                return entities.variables(text, session.variables)
        raise SqlError(BAD_STATEMENT, f"SHOW {statement.what} needs Connect, which this server is not connected with")

    async def _topics(self, text: str, internal: bool) -> entities.Entity:
        response = await self._cluster.metadata(None)
        found = [
            (topic.name or "", [len(each.replica_nodes) for each in topic.partitions])
            for topic in response.topics
            if internal or not (topic.is_internal or (topic.name or "").startswith("_"))
        ]
        return entities.topics(text, sorted(found))

    def _describe(self, statement: t.Describe, text: str) -> entities.Entity:
        match statement.kind:
            case "STREAMS" | "TABLES":
                return entities.source_descriptions(text, statement.kind[:-1], self.catalog, self.states())
            case "FUNCTION":
                return entities.function_description(text, find((statement.name or "").upper()))
            case "SOURCE":
                source = self.catalog.find(t.Source(statement.name or "", at=statement.at))
                return entities.source_description(text, source, self.catalog, self.states())
        raise SqlError(BAD_STATEMENT, "connectors are described by Connect, which this server is not connected with")

    def _explain(self, statement: t.Explain, text: str) -> entities.Entity:
        query = self.catalog.queries.get(statement.query_id or "")
        if query is None and isinstance(statement.statement, t.CreateAs | t.InsertInto):
            changes = self.catalog.decide(statement.statement, text, self.log.position, self._settings({}))
            query = next(change.query for change in changes if isinstance(change, QuerySet))
        if query is None:
            raise SqlError(BAD_STATEMENT, f"there is no query {statement.query_id}: SHOW QUERIES lists those there are")
        made = topology(query.query, query.sink, self._registry)
        state = self.states().get(query.id, "NOT_RUNNING")
        return entities.query_description(text, query, state, str(made.describe()), str(made.describe()))

    async def _assert_topic(self, statement: t.AssertTopic, text: str) -> entities.Entity:
        patience_s = _ASSERT_S if statement.timeout is None else statement.timeout.ms / 1000
        deadline = asyncio.get_running_loop().time() + patience_s
        while True:
            wrong = await self._topic_unlike(statement)
            if wrong is None:
                return entities.entity("assert_topic", text, topicName=statement.topic, exists=statement.exists)
            if asyncio.get_running_loop().time() >= deadline:
                raise SqlError(ASSERTION_FAILED, wrong)
            await asyncio.sleep(_ASSERT_PAUSE_S)

    async def _topic_unlike(self, statement: t.AssertTopic) -> str | None:
        (found,) = (await self._cluster.metadata([statement.topic])).topics
        there = found.error_code != Errors.UNKNOWN_TOPIC_OR_PARTITION
        if there != statement.exists:
            return f"topic {statement.topic} does {'not exist' if statement.exists else 'exist'}"
        wanted = {name.upper(): value for name, value in statement.properties}
        facts = {
            "PARTITIONS": len(found.partitions),
            "REPLICAS": len(found.partitions[0].replica_nodes) if found.partitions else 0,
        }
        for name, value in wanted.items():
            if statement.exists and name in facts and facts[name] != value:
                return f"topic {statement.topic} has {facts[name]} {name}, not {value}"
        return None

    # ---- queries of clients

    async def select(self, text: str, properties: Mapping[str, Any], variables: Mapping[str, str]) -> Result:
        """A push or pull query. Raises SqlError."""
        session = Session(self.catalog, as_text(properties), dict(variables))
        found = [(statement, own) for statement, own in session.statements(text) if not session.set(statement)]
        if len(found) != 1 or not isinstance(found[0][0], t.SelectQuery):
            raise SqlError(BAD_STATEMENT, "one SELECT is expected here; other statements belong to /ksql", text)
        statement, own = found[0]
        assert isinstance(statement, t.SelectQuery)
        query = statement.query
        try:
            client = understood(query, self.catalog.surroundings())
            self._numbers += 1
            is_push = query.emit is not None
            if is_push:
                from_beginning = session.properties.get("auto.offset.reset", "latest") == "earliest"
                rows = await self._pushed(client, from_beginning)
            else:
                rows = await self._pulled(client, query)
        except Refused as refused:
            raise SqlError(BAD_STATEMENT, str(refused), own) from None
        except TopologyError as error:
            raise SqlError(BAD_STATEMENT, str(error), own) from None
        except SqlError as error:
            raise error.of(own) from None
        query_id = f"{'transient' if is_push else 'pull'}_{self.service_id}_{self._numbers}"
        keys = tuple(name for name, _ in client.query.keys)
        result = Result(query_id, client.columns, keys, rows, is_push, query.limit)
        if is_push:
            self.running[query_id] = result
        return result

    def ended(self, result: Result) -> None:
        self.running.pop(result.query_id, None)

    async def _pushed(self, client: Client, from_beginning: bool) -> AsyncIterator[Row]:
        plain = client.is_plain
        asked = as_stream(client) if plain else client
        work = await self._done(partial(computing, asked, self._registry), client.sources())
        topics = list(dict.fromkeys(source.topic for source in client.sources()))
        # A table is what it is from its beginning on.
        whole = from_beginning or (not plain and any(source.is_table for source in client.sources()))

        async def rows() -> AsyncIterator[Row]:
            async with Reader(
                self._cluster, await spans(self._cluster, topics, from_beginning=whole, to_end=False)
            ) as all_:
                while all_.active:
                    for fetched in await all_.poll():
                        for row in await self._done(partial(_rows, work, fetched), client.sources()):
                            yield row

        return rows()

    async def _pulled(self, client: Client, query: t.Query) -> AsyncIterator[Row]:
        if isinstance(client.query.source, Joining) or not client.is_plain or query.partition_by:
            raise SqlError(
                BAD_STATEMENT,
                "a pull query reads one stream or table as it is now, without JOIN, GROUP BY, WINDOW and PARTITION BY: "
                "add EMIT CHANGES for a query that goes on",
            )
        source = client.sources()[0]
        work = await self._done(partial(Plain, as_stream(client), self._registry), [source])
        return self._view_rows(source, work, query) if source.is_table else self._stream_rows(source, work)

    async def _stream_rows(self, source: DataSource, work: Plain) -> AsyncIterator[Row]:
        whole = await spans(self._cluster, [source.topic], from_beginning=True, to_end=True)
        async with Reader(self._cluster, whole) as reader:
            while reader.active:
                for fetched in await reader.poll():
                    for row in await self._done(partial(_rows, work, fetched), [source]):
                        yield row

    async def _view_rows(self, source: DataSource, work: Plain, query: t.Query) -> AsyncIterator[Row]:
        try:
            view = await self._views.of(source.topic)
        except TooManyRows as error:
            raise SqlError(BAD_STATEMENT, str(error)) from None
        keys = _keys_asked(query.where, source, Formats(self._registry))
        found = list(view.rows.values()) if keys is None else [view.rows[key] for key in keys if key in view.rows]

        def rows() -> list[Row]:
            return [row for partition, record in found for row in work.rows(source.topic, partition, record)]

        for row in await self._done(rows, [source]):
            yield row


def _rows(work: Computing, fetched: Fetched) -> list[Row]:
    place = fetched.place
    return [row for record in fetched.records for row in work.rows(place.topic, place.partition, record)]


def _keys_asked(where: t.Expr | None, source: DataSource, formats: Formats) -> list[bytes] | None:
    """The keys that a condition asks for, as they lie in the topic; None: it does not say which."""
    if source.window is not None or len(source.keys) != 1 or where is None:
        return None
    name, kind = source.keys[0]
    for part in where.terms if isinstance(where, t.Chain) and where.operator == "AND" else (where,):
        constants: list[t.Expr] = []
        match part:
            case t.Binary(operator="=", left=t.Column(name=named), right=t.Literal() as given) if named == name:
                constants = [given]
            case t.Binary(operator="=", left=t.Literal() as given, right=t.Column(name=named)) if named == name:
                constants = [given]
            case t.In(operand=t.Column(name=named), choices=choices, negated=False) if named == name:
                constants = list(choices)
        if constants and all(isinstance(each, t.Literal) and _is_of(each.value, kind.name) for each in constants):
            serde = formats.key(source)
            made = [serde.serialize(each.value) for each in constants if isinstance(each, t.Literal)]
            return [key for key in dict.fromkeys(made) if key is not None]
    return None


def _is_of(value: Any, name: str) -> bool:
    """Whether it is one of the type as it is, so that its bytes are those of equal keys."""
    match value:
        case bool():
            return False
        case int():
            return name in {"int", "long"}
        case str():
            return name == "string"
    return False


def _outcome(statement: t.Statement, changes: list[Change]) -> Outcome:
    """How a statement is called, and what is said of it."""
    query_id = next((change.query.id for change in changes if isinstance(change, QuerySet)), None)
    match statement:
        case t.CreateSource(kind=kind, name=name):
            done = "created" if changes else "already there"
            return Outcome(f"{kind.lower()}/{name}/create", f"{kind.capitalize()} {done}")
        case t.CreateAs(kind=kind, name=name):
            return Outcome(f"{kind.lower()}/{name}/create", f"Created query with ID {query_id}", query_id)
        case t.InsertInto(name=name):
            return Outcome(f"stream/{name}/create", f"Created query with ID {query_id}", query_id)
        case t.AlterSource(kind=kind, name=name):
            return Outcome(f"{kind.lower()}/{name}/alter", f"{kind.capitalize()} altered")
        case t.Drop(kind=kind, name=name):
            return Outcome(f"{kind.lower()}/{name}/drop", f"{kind.capitalize()} {name} dropped")
        case t.CreateType(name=name):
            return Outcome(f"type/{name}/create", f"Type {name} registered")
        case t.Control(action=action, query_id=given):
            return Outcome(f"{action.lower()}/{given or 'ALL'}/execute", f"Query {action.lower()}d", given)
    raise AssertionError(f"{statement} is not logged")


__all__ = ["ClientError", "Engine", "Outcome", "Persistent", "Result"]
