"""What statements ask for, done: the catalog by the log, topics by the cluster, rows by a producer."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

from ottla.client import admin
from ottla.client.aio.cluster import Cluster
from ottla.client.aio.producer import Producer, Written
from ottla.model.permissions import ALTER_CLUSTER, DESCRIBE_TOPIC, READ_TOPIC, WRITE_TOPIC
from ottla.registry.doors.subject_rights import cluster_instead
from ottla.registry.lookup import Registry, RegistryUnavailable
from ottla.sql import tree as t
from ottla.sql.analysis.inference import with_columns
from ottla.sql.analysis.inserting import values_row
from ottla.sql.analysis.refusals import placed, refuse
from ottla.sql.catalog import (
    Change,
    QuerySet,
    Settings,
    SourceDropped,
    SourceSet,
)
from ottla.sql.errors import BAD_REQUEST, BAD_STATEMENT, REGISTRY_MISSING, SERVER_ERROR, SqlError
from ottla.sql.functions import AGGREGATES
from ottla.sql.functions.declare import Refused
from ottla.sql.history.text import is_history
from ottla.sql.lexer import pieces
from ottla.sql.model import DataSource
from ottla.sql.properties import Effective, check, check_all
from ottla.sql.server import asserting, entities, topics
from ottla.sql.server.askers import ANYBODY, Asker
from ottla.sql.server.connectors import Connectors
from ottla.sql.server.history import HistoryHost, HistoryQueries
from ottla.sql.server.log import Logged, StatementLog, as_text
from ottla.sql.server.measuring import Measuring
from ottla.sql.server.printing import Printed, printed
from ottla.sql.server.replaying import Persistent, Replaying, outcome_of
from ottla.sql.server.selecting import LONG_TEXT, ClientLimits, Result, Selecting
from ottla.sql.server.telling import Telling
from ottla.sql.server.writing import Writer, asks_registry
from ottla.sql.session import Session
from ottla.sql.text import text_of
from ottla.streams.topology.errors import TopologyError

T = TypeVar("T")

BELONGS_TO_QUERY: Final = 40002
CATCHING_UP: Final = 50301
_CATCH_UP_S: Final = 5.0
"""How long a statement waits for those that its client has seen done (ksql.server.command.response.timeout.ms)."""
_LOGGED: Final = (
    *(t.CreateSource, t.CreateAs, t.InsertInto, t.AlterSource, t.Drop),
    *(t.CreateType, t.CreateFunction, t.Control, t.SetProperty),
)


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
        limits: ClientLimits | None = None,
        connectors: Connectors | None = None,
        history: HistoryHost | None = None,
        dead_letters: bool = False,
        python_functions: bool = True,
    ) -> None:
        self.replaying = Replaying(persistent, defaults or {})
        self.catalog = self.replaying.catalog
        self.service_id = service_id
        self.clients = Selecting(self.catalog, cluster, registry, service_id, limits or ClientLimits())
        self.replaying.unread = self.clients.views.drop
        self.log = StatementLog(cluster, producer, f"_ottla-sql-{service_id}-statements", self._replayed)
        self._cluster = cluster
        self._producer = producer
        self._registry = registry
        measuring = Measuring(cluster, service_id, self.replaying.progress)
        self._telling = Telling(self.replaying, cluster, registry, self.clients, measuring, dead_letters=dead_letters)
        self._connectors = connectors or Connectors("")
        self._history = HistoryQueries(history, self.catalog, self.clients.looking, self.clients.limits.history)
        self._python_functions = python_functions
        self._turn = asyncio.Lock()

    async def _replayed(self, offset: int, logged: Logged) -> None:
        self.replaying.change(
            offset, logged, await _beside(partial(self.replaying.decided, offset, logged), logged.text)
        )

    # ---- its life

    async def ready(self) -> None:
        """When all statements have been read: queries begin. Raises ClientError."""
        await self.log.caught_up()
        self.replaying.begin()

    async def close(self) -> None:
        await self.clients.close()

    # ---- statements

    async def execute(
        self,
        text: str,
        properties: Mapping[str, Any],
        variables: Mapping[str, str],
        until: int | None = None,
        asker: Asker = ANYBODY,
    ) -> list[entities.Entity]:
        """One after another. Raises SqlError, whose `entities` are what was done before."""
        if until is not None:
            await self._caught_up_to(until)
        session = self._session(properties, variables)
        done: list[entities.Entity] = []
        try:
            async for statement, own in _parsed(session, text, self.clients.limits.statements):
                try:
                    found = await self._one(statement, own, session, asker)
                except (Refused, TopologyError) as error:
                    raise SqlError(BAD_STATEMENT, str(error), own, *statement.at) from None
                except SqlError as error:
                    raise placed(error, statement).of(own) from None
                if found is not None:
                    done.append(found)
        except SqlError as error:
            error.entities = done  # type: ignore[attr-defined]
            raise
        return done

    async def _caught_up_to(self, offset: int) -> None:
        try:
            async with asyncio.timeout(_CATCH_UP_S):
                await self.log.replayed(offset)
        except TimeoutError:
            raise SqlError(
                CATCHING_UP, f"statement {offset} was not read within {_CATCH_UP_S:g} s: ask again, or without it"
            ) from None

    @staticmethod
    def _session_properties(properties: Mapping[str, Any]) -> dict[str, str]:
        given = as_text(properties)
        check_all(given)
        return given

    def _session(self, properties: Mapping[str, Any], variables: Mapping[str, str]) -> Session:
        """Raises SqlError for properties that are none."""
        return Session(self.catalog, self._session_properties(properties), dict(variables), self.log.position)

    def _set(self, statement: t.Statement, session: Session) -> bool:
        """Whether it was about the session alone. Raises SqlError."""
        match statement:
            case t.SetProperty(name=name, value=value):
                check(name, value)
        return session.set(statement)

    async def _one(self, statement: t.Statement, text: str, session: Session, asker: Asker) -> entities.Entity | None:
        if self._set(statement, session):
            return None
        match statement:
            case t.Drop(kind="CONNECTOR") | t.Describe(kind="CONNECTOR") | t.CreateConnector():
                return await self._connectors.run(statement, text, asker.shown)
            case t.Show(what="CONNECTORS" | "CONNECTOR PLUGINS"):
                return await self._connectors.run(statement, text, asker.shown)
        if isinstance(statement, _LOGGED):
            return await self._logged(statement, text, session, asker)
        match statement:
            case t.InsertValues():
                await self._insert(statement, text, asker)
                return None
            case t.SelectQuery() | t.PrintTopic():
                raise SqlError(BELONGS_TO_QUERY, "SELECT and PRINT give rows: send them to /query-stream or /query")
            case t.Show():
                return await self._telling.show(statement, text, session, asker)
            case t.Describe():
                return await self._telling.describe(statement, text, asker)
            case t.Explain():
                return await self._telling.explain(statement, text, session, asker)
            case t.AssertTopic():
                asker.check(DESCRIBE_TOPIC, statement.topic)
                return await asserting.topic(self._cluster, statement, text)
            case t.AssertSchema():
                asker.check(*cluster_instead(DESCRIBE_TOPIC, statement.subject or ""))
                return await asserting.schema(self._registry, statement, text)
            case t.RunScript():
                raise SqlError(BAD_STATEMENT, "RUN SCRIPT is for the shell, which has the file: ottla sql -f FILE")
        raise SqlError(BAD_STATEMENT, "ASSERT of values and sources is for tests: ottla sql test FILE")

    async def _logged(self, statement: t.Statement, text: str, session: Session, asker: Asker) -> entities.Entity:
        if isinstance(statement, t.CreateFunction) or (isinstance(statement, t.Drop) and statement.kind == "FUNCTION"):
            asker.check(ALTER_CLUSTER)  # before anything of it is looked at: it is code
        push = statement.query_id if isinstance(statement, t.Control) else None
        if push is not None and (running := self.clients.running.get(push)) is not None:
            return self._ended_push(running, statement, text, asker)
        try:
            return await self._written(statement, text, session, asker)
        except SqlError:
            if isinstance(statement, t.CreateAs | t.InsertInto):
                await self.clients.looking.refuse_stored(statement.query, asker)
            raise

    async def _written(self, statement: t.Statement, text: str, session: Session, asker: Asker) -> entities.Entity:
        async with self._turn:
            await self.log.caught_up()
            # Here alone, not at replay: the log says which functions there are, on all servers of the service id.
            settings = replace(self.replaying.settings(session.properties), python_functions=self._python_functions)
            statement, text = await self._with_columns(statement, text, settings)
            decide = partial(self.catalog.snapshot().decide, statement, text, self.log.position, settings)
            changes = await _beside(decide, text)
            asker.check_changes(changes, self.catalog)
            await self._prepare(changes, text, asker)
            outcome = outcome_of(statement, changes)
            offset = await self.log.append(outcome.command, Logged(text, session.properties))
            await self.log.replayed(offset)
        outcome = self.replaying.outcomes[offset]
        if outcome.error is not None:
            raise outcome.error
        await self._after(changes)
        return entities.current_status(text, outcome.command, outcome.message, offset, outcome.query_id)

    def _ended_push(self, running: Result, statement: t.Statement, text: str, asker: Asker) -> entities.Entity:
        assert isinstance(statement, t.Control)
        if statement.action != "TERMINATE":
            raise SqlError(BAD_STATEMENT, f"{running.query_id} is a push query, which can be ended alone")
        asker.check_ends(running.owner)
        running.closed.set()
        return entities.entity("terminate_query", text, queryId=running.query_id, wasTerminated=True)

    async def _with_columns(self, statement: t.Statement, text: str, settings: Settings) -> tuple[t.Statement, str]:
        """Columns that a schema tells go into the log with the statement: replay asks nobody. Raises SqlError."""
        if not isinstance(statement, t.CreateSource):
            return statement, text
        try:
            found = await asyncio.to_thread(with_columns, statement, self._registry, settings.formats)
        except RegistryUnavailable as error:
            raise SqlError(SERVER_ERROR, str(error)) from None
        return (statement, text) if found is statement else (found, text_of(found) + ";")

    async def _prepare(self, changes: list[Change], text: str, asker: Asker) -> None:
        """Topics that have to be there before the statement is true. Raises SqlError."""
        for change in changes:
            if isinstance(change, SourceSet):
                self._check_registry(change.source)
        queries = [change.query for change in changes if isinstance(change, QuerySet)]
        if queries and (why := self.replaying.missing()) is not None:
            raise SqlError(SERVER_ERROR, f"a query that writes a topic runs on Spark, which cannot run here: {why}")
        for query in queries:
            from ottla.sql.compile import topology  # noqa: PLC0415  a server without queries starts sooner

            touched = [*query.query.reads(), query.sink]
            await self.clients.done(partial(topology, query.query, query.sink, self._registry), touched, text)
        for change in changes:
            if isinstance(change, SourceSet):
                own = next((each for each in queries if each.sink == change.source), None)
                await topics.prepare(self._cluster, change.source, own, asker)

    def _check_registry(self, source: DataSource) -> None:
        if self._registry is None and asks_registry(source):
            names = sorted({each.name for each in (source.key_format, source.value_format)} - {"KAFKA", "JSON", "NONE"})
            raise SqlError(
                REGISTRY_MISSING,
                f"{' and '.join(names)} needs a schema registry, and there is none: name one by "
                "ksql.schema.registry.url, or say a format without",
            )

    async def _after(self, changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change, SourceDropped) and change.deleted_topic is not None:
                await admin.delete_topics(self._cluster, [change.deleted_topic])

    # ---- rows

    async def _insert(self, statement: t.InsertValues, text: str, asker: Asker) -> None:
        target = self.catalog.find(t.Source(statement.name, at=statement.at))
        asker.check(WRITE_TOPIC, target.topic)
        computed = partial(values_row, statement, target, self.catalog.types, time.time_ns() // 1_000_000)
        # Calls may take their time: functions of functions, and series.
        calls = any(isinstance(part, t.Call) for each in statement.values for part in each.walk())
        row = await asyncio.to_thread(computed) if calls or len(text) > LONG_TEXT else computed()
        await (await self.post(await self.writer(target), row.key, row.value, row.timestamp))

    async def writer(self, target: DataSource) -> Writer:
        """Of rows of a source, made once for many. Raises SqlError."""
        return await self.clients.done(partial(Writer, target, self._registry), [target])

    async def post(
        self, writer: Writer, key: Any, value: Any, timestamp: int | None = None
    ) -> "asyncio.Future[Written]":
        """Taken; what it gives is done when the row is acknowledged. Raises SqlError, ClientError."""
        if writer.may_block:
            made = await self.clients.done(partial(writer.encoded, key, value), [writer.target])
        else:
            made = writer.encoded(key, value)
        return await self._producer.post(writer.target.topic, made.value, key=made.key, timestamp=timestamp)

    async def select(
        self, text: str, properties: Mapping[str, Any], variables: Mapping[str, str], asker: Asker = ANYBODY
    ) -> Result | Printed:
        """A push or pull query, or PRINT. Raises SqlError, ClientError."""
        session = self._session(properties, variables)
        if (over := await _over_history(session, text)) is not None:
            return await self._over_history(over, asker)
        found: list[tuple[t.Statement, str]] = []
        async for statement, own in _parsed(session, text, self.clients.limits.statements):
            try:
                if not self._set(statement, session):
                    found.append((statement, own))
            except SqlError as error:
                raise placed(error, statement).of(own) from None
        others = [each for each, _ in found if not isinstance(each, t.SelectQuery | t.PrintTopic)]
        others += [each for each, _ in found[1:]]
        if not found or others:
            refuse("one SELECT is expected here; other statements belong to /ksql", others[0] if others else None)
        statement, own = found[0]
        try:
            return await self._rows(statement, own, session, asker)
        except SqlError as error:
            raise placed(error, statement).of(own) from None

    async def _rows(self, statement: t.Statement, own: str, session: Session, asker: Asker) -> Result | Printed:
        effective = Effective.of(self.replaying.defaults(), session.properties)
        if isinstance(statement, t.PrintTopic):
            asker.check(READ_TOPIC, statement.topic)
            with self.clients.room():
                found_lines = await printed(self._cluster, self._registry, statement, effective.from_beginning)
            return Printed(self.clients.counted(found_lines.lines))
        assert isinstance(statement, t.SelectQuery)
        return await self.clients.select(statement.query, own, effective, asker)

    async def _over_history(self, text: str, asker: Asker) -> Result:
        try:
            found = await self._history.select(text, list(self.replaying.statements), asker)
        except SqlError as error:
            raise error.of(text) from None
        query_id = self.clients.next_id("history")
        return Result(query_id, found.columns, (), found.rows, is_push=False, text=text, owner=asker.principal)


async def _beside(work: Callable[[], T], text: str) -> T:
    """What is long is done beside the loop."""
    return await asyncio.to_thread(work) if len(text) > LONG_TEXT else work()


async def _over_history(session: Session, text: str) -> str | None:
    """The statement, if it is one SELECT over history. What is long is looked at beside the loop. Raises SqlError."""
    found = partial(_history_in, session, text)
    return await asyncio.to_thread(found) if session.longest(text) > LONG_TEXT else found()


def _history_in(session: Session, text: str) -> str | None:
    first, second = (*islice(pieces(text), 2), None, None)[:2]
    if first is None or second is not None:
        return None
    own = session.replaced(first.text)
    return own if is_history(own, AGGREGATES) else None


async def _parsed(session: Session, text: str, most: int) -> AsyncIterator[tuple[t.Statement, str]]:
    """Each when those before it are done; none of more than `most`. What is long is parsed beside the loop. Raises
    SqlError."""
    await asyncio.to_thread(_check_number, text, most) if len(text) > LONG_TEXT else _check_number(text, most)
    coming = session.statements(text)
    while True:
        found = await asyncio.to_thread(next, coming, None) if session.longest(text) > LONG_TEXT else next(coming, None)
        if found is None:
            return
        yield found


def _check_number(text: str, most: int) -> None:
    if sum(1 for _ in islice(pieces(text), most + 1)) > most:
        raise SqlError(
            BAD_REQUEST,
            f"more than {most:,} statements in one request (sql.request.max.statements): send some at a time",
        )
