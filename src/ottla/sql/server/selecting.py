"""Queries of clients: pull and push. Rows are computed beside the loop, in slices, so that it never waits for them."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar

from ottla.client.aio.cluster import Cluster
from ottla.client.aio.reader import Reader
from ottla.http.streaming import closing
from ottla.registry.lookup import Registry, RegistryUnavailable, UnknownSchema
from ottla.sql import tree as t
from ottla.sql.analysis.limits import limits
from ottla.sql.analysis.queries import Vocabulary
from ottla.sql.analysis.typed import Joining
from ottla.sql.catalog import Catalog
from ottla.sql.errors import BAD_STATEMENT, SERVER_ERROR, SqlError
from ottla.sql.functions.declare import Refused
from ottla.sql.model import Columns, DataSource
from ottla.sql.processing_log.review import Review
from ottla.sql.properties import Effective
from ottla.sql.server import asked, entities
from ottla.sql.server.askers import ANONYMOUS, ANYBODY, Asker
from ottla.sql.server.history import HistoryLimits
from ottla.sql.server.looking import Looking, LookLimits
from ottla.sql.server.merging import Merging, Placed
from ottla.sql.server.prepared import Prepared, PreparedQueries
from ottla.sql.server.processing_log import Noticing, ProcessingLog
from ottla.sql.server.results import Client, Computing, Driven, Plain, Row, as_stream, understood
from ottla.sql.server.views import Spans, TooManyRows, ViewLimits, Views, spans
from ottla.sql.server.writing import asks_registry
from ottla.streams.errors import StreamsError
from ottla.streams.topology.errors import TopologyError

T = TypeVar("T")
Rows = AsyncIterator[list[Row]]
"""Some at a time, as they come."""

TOO_MANY_PUSH_QUERIES: Final = 40003
LONG_TEXT: Final = 32 << 10
"""Characters of a request from which on to parse or understand it would be felt by others."""
_AT_ONCE: Final = 32
"""Records that are turned into rows on the loop: a thread would take longer than they do."""
_SLICE: Final = 500
"""Records that a thread turns into rows before others have their turn."""
_THREADS: Final = 4


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """What clients may take of the server."""

    statements: int = 1_000
    """Of one request."""
    push_queries: int = 100
    """At a time."""
    push_state_rows: int = 1_000_000
    """In the stores of one push query with state: it is in memory, and ends with the query."""
    push_state_bytes: int = 256 << 20
    """Of keys and values in them."""
    views: ViewLimits = field(default_factory=ViewLimits)
    """Of tables that pull queries read."""
    pull_rows: int = 1_000_000
    """Records that one pull query may look at."""
    pull_s: float = 60.0
    looks: LookLimits = field(default_factory=LookLimits)
    """Into topics that nobody declared."""
    history: HistoryLimits = field(default_factory=HistoryLimits)


@dataclass(slots=True)
class Result:
    """A query of a client: what its rows are, and they."""

    query_id: str
    columns: Columns
    keys: tuple[str, ...]
    rows: Rows
    is_push: bool
    limit: int | None = None
    text: str = ""
    owner: str = ANONYMOUS
    closed: asyncio.Event = field(default_factory=asyncio.Event)


class Selecting:
    def __init__(
        self, catalog: Catalog, cluster: Cluster, registry: Registry | None, service_id: str, limits: ClientLimits
    ) -> None:
        self.running: dict[str, Result] = {}
        """Push queries."""
        self.views = Views(cluster, limits.views)
        self.looking = Looking(catalog, cluster, registry, limits.looks)
        self._catalog = catalog
        self._cluster = cluster
        self._registry = registry
        self._service_id = service_id
        self.limits = limits
        self._threads = ThreadPoolExecutor(_THREADS, "sql-rows")
        self._known = PreparedQueries(catalog)
        self._numbers = 0
        self._prints = 0
        self._coming = 0
        """Push queries and PRINTs that are being made."""
        self.processing_log: ProcessingLog | None = None
        """What push queries write of records that something is wrong with."""

    async def close(self) -> None:
        for result in list(self.running.values()):
            result.closed.set()
        await self.views.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def listed(self) -> list[entities.Entity]:
        return [entities.push_row(each.query_id, each.text) for each in self.running.values()]

    def ended(self, result: Result) -> None:
        self.running.pop(result.query_id, None)

    def next_id(self, kind: str) -> str:
        self._numbers += 1
        return f"{kind}_{self._service_id}_{self._numbers}"

    async def select(self, query: t.Query, text: str, properties: Effective, asker: Asker = ANYBODY) -> Result:
        """Raises SqlError, ClientError."""
        if query.emit is None:
            return await self._selected(query, text, properties, asker)
        with self.room():
            result = await self._selected(query, text, properties, asker)
            self.running[result.query_id] = result
        return result

    async def _selected(self, query: t.Query, text: str, properties: Effective, asker: Asker) -> Result:
        is_push = query.emit is not None
        query_id = self.next_id("transient" if is_push else "pull")
        try:
            around = replace(await self.looking.vocabulary(query, asker), limits=limits(properties.given))
            if is_push:
                client = await self.done(partial(understood, query, around), (), text)
                asker.check_reads(client.sources())
                rows = await self._pushed(client, query_id, properties, text)
            else:
                client, rows = await self._pulled(query, text, around, properties, asker)
        except (Refused, TopologyError) as error:
            raise SqlError(BAD_STATEMENT, str(error), text) from None
        except SqlError as error:
            raise error.of(text) from None
        return Result(query_id, client.columns, client.keys, rows, is_push, query.limit, text, asker.principal)

    @contextmanager
    def room(self) -> Iterator[None]:
        """For one more, while it is being made: those that come at the same time count each other. Raises SqlError."""
        run = len(self.running) + self._prints + self._coming
        if run >= self.limits.push_queries:
            raise SqlError(
                TOO_MANY_PUSH_QUERIES,
                f"{run} push queries and PRINTs run, and no more may (ksql.max.push.queries): end one, or make a "
                "stream or table of the query and read that",
            )
        self._coming += 1
        try:
            yield
        finally:
            self._coming -= 1

    async def counted(self, lines: AsyncIterator[str]) -> AsyncIterator[str]:
        """Of a PRINT, which is one of those that run as long as somebody reads it."""
        self._prints += 1
        try:
            async with closing(lines):
                async for line in lines:
                    yield line
        finally:
            self._prints -= 1

    # ---- work

    async def done(self, work: Callable[[], T], sources: Iterable[DataSource], text: str = "") -> T:
        """What the serdes of sources have to do with: in a thread where one may have to ask the registry, or where the
        text of it is long. Raises SqlError."""
        return await self._aside(work) if len(text) > LONG_TEXT or asks_registry(*sources) else work()

    async def _aside(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except RegistryUnavailable as error:
            raise SqlError(SERVER_ERROR, str(error)) from None
        except UnknownSchema as error:
            raise SqlError(BAD_STATEMENT, str(error)) from None

    async def _rows(self, work: Computing, records: Sequence[Placed], quick: bool) -> Rows:
        """What records make. `quick`: few of them need no thread."""
        if quick and len(records) <= _AT_ONCE:
            yield _made(work, records)
            return
        for begin in range(0, len(records), _SLICE):
            yield await self._aside(partial(_made, work, records[begin : begin + _SLICE]))

    # ---- push

    async def _pushed(self, client: Client, query_id: str, properties: Effective, text: str) -> Rows:
        """Where it begins is known when this returns: what comes from then on is sent."""
        sources, from_beginning = client.sources(), properties.from_beginning
        review = await self.done(partial(Review, client.query, self._registry), sources, text)
        if client.is_plain:
            plain = await self.done(partial(Plain, as_stream(client), self._registry), sources, text)
            topic = sources[0].topic
            whole = await spans(self._cluster, [topic], from_beginning=from_beginning, to_end=False)
            return self._followed(query_id, Noticing(plain, review), whole, quick=client.is_quick)
        limits = self.limits
        made = partial(Driven, client, self._registry, limits.push_state_rows, limits.push_state_bytes)
        driven = await self.done(made, sources, text)
        # A table is what it is from its beginning on.
        tables = list(dict.fromkeys(source.topic for source in sources if source.is_table))
        streams = dict.fromkeys(source.topic for source in sources if source.topic not in tables)
        history = await spans(self._cluster, tables, from_beginning=True, to_end=True)
        history |= await spans(self._cluster, streams, from_beginning=from_beginning, to_end=True)
        return self._driven(query_id, Noticing(driven, review), history, tables)

    async def _noted(self, query_id: str, work: Noticing, records: Sequence[Placed], quick: bool) -> Rows:
        """With what was wrong told in the processing log, also if a client has rows enough before the last one."""
        try:
            async for rows in self._rows(work, records, quick):
                yield rows
        finally:
            if self.processing_log is not None:
                self.processing_log.note(query_id, work.taken())

    async def _followed(self, query_id: str, work: Noticing, whole: Spans, quick: bool) -> Rows:
        async with Reader(self._cluster, whole) as reader:
            while reader.active:
                for fetched in await reader.poll():
                    records = [Placed(fetched.place, each) for each in fetched.records]
                    async with closing(self._noted(query_id, work, records, quick)) as found:
                        async for rows in found:
                            yield rows

    async def _driven(self, query_id: str, work: Noticing, history: Spans, tables: Sequence[str]) -> Rows:
        merging = Merging({place: end for place, (_, end) in history.items() if end is not None}, tables)
        for place, (start, _) in history.items():
            merging.reached(place, start)
        try:
            async with Reader(self._cluster, {place: (start, None) for place, (start, _) in history.items()}) as reader:
                while reader.active:
                    for fetched in await reader.poll():
                        merging.add(fetched.place, fetched.records)
                    for place, position in reader.positions().items():
                        merging.reached(place, position)
                    async with closing(self._noted(query_id, work, list(merging.take()), quick=False)) as found:
                        async for rows in found:
                            yield rows
        finally:
            work.close()

    # ---- pull

    async def _pulled(
        self, query: t.Query, text: str, around: Vocabulary, properties: Effective, asker: Asker
    ) -> tuple[Client, Rows]:
        by_key = await self._asked(query, text)
        rest = query if by_key is None else replace(query, where=by_key.rest)
        if len(text) > LONG_TEXT:
            prepared = await self._aside(partial(_pull, rest, around))
        else:
            prepared = self._prepared(rest, around)
        client = prepared.client
        asker.check_reads(client.sources())
        source = client.sources()[0]
        if not source.is_table and not properties["ksql.query.pull.stream.enabled"]:
            raise SqlError(BAD_STATEMENT, "ksql.query.pull.stream.enabled is false: streams are not pulled")
        on_loop = by_key is not None and client.is_quick
        work = prepared.on_loop if on_loop else None
        if work is None:
            work = await self.done(partial(self._plain, client), [source], text)
        if on_loop:
            prepared.on_loop = work
        if not source.is_table:
            return client, self._stream_rows(client, work)
        if by_key is None and not properties["ksql.query.pull.table.scan.enabled"]:
            raise SqlError(
                BAD_STATEMENT,
                f"ksql.query.pull.table.scan.enabled is false: say {' and '.join(dict(source.keys))} = ... in WHERE",
            )
        return client, self._table_rows(client, work, None if by_key is None else by_key.keys)

    async def _asked(self, query: t.Query, text: str) -> asked.Asked | None:
        source = self._catalog.sources.get(query.source.name)
        if source is None or not source.is_table or query.joins:
            return None
        return await self.done(partial(asked.keys, query, source, self._registry), [source], text)

    def _prepared(self, query: t.Query, around: Vocabulary) -> Prepared:
        """Raises SqlError."""
        known = self._known.get(query)
        if known is not None:
            return known
        made = _pull(query, around)
        if query.source.name in self._catalog.sources:  # a topic that nobody declared is looked into each time
            self._known.keep(query, made)
        return made

    def _plain(self, client: Client) -> Plain:
        return Plain(as_stream(client), self._registry)

    async def _stream_rows(self, client: Client, work: Plain) -> Rows:
        budget = _Budget(self.limits)
        whole = await spans(self._cluster, [client.sources()[0].topic], from_beginning=True, to_end=True)
        async with Reader(self._cluster, whole) as reader:
            while reader.active:
                for fetched in await reader.poll():
                    records = [Placed(fetched.place, each) for each in fetched.records]
                    budget.spend(len(records))
                    async for rows in self._rows(work, records, client.is_quick):
                        yield rows

    async def _table_rows(self, client: Client, work: Plain, keys: list[bytes] | None) -> Rows:
        source = client.sources()[0]
        quick = client.is_quick
        budget = _Budget(self.limits)
        try:
            async with asyncio.timeout(self.limits.pull_s):
                view = await self.views.of(source)
        except TooManyRows as error:
            raise SqlError(BAD_STATEMENT, str(error)) from None
        except TimeoutError:
            raise SqlError(
                SERVER_ERROR,
                f"{source.name} is still being read after {self.limits.pull_s:g} s (sql.pull.timeout.ms), and goes on "
                "being read: ask again later",
            ) from None
        found = view.all() if keys is None else view.of_keys(keys)
        if quick and len(found) > _AT_ONCE:
            work = self._plain(client)  # for threads: the other is the loop's
        for begin in range(0, len(found), _SLICE):
            some = found[begin : begin + _SLICE]
            budget.spend(len(some))
            async for rows in self._rows(work, some, quick):
                yield rows


class _Budget:
    """What a pull query may still look at."""

    def __init__(self, limits: ClientLimits) -> None:
        self._limits = limits
        self._left = limits.pull_rows
        self._deadline = time.monotonic() + limits.pull_s

    def spend(self, records: int) -> None:
        """Raises SqlError."""
        self._left -= records
        if self._left < 0:
            raise SqlError(
                BAD_STATEMENT,
                f"the query has looked at {self._limits.pull_rows:,} rows, which is as many as it may "
                "(sql.pull.max.rows): ask by key, or with a LIMIT, or make a table of what you look for",
            )
        if time.monotonic() > self._deadline:
            raise SqlError(
                SERVER_ERROR, f"the query took more than {self._limits.pull_s:g} s (sql.pull.timeout.ms): ask by key"
            )


def _pull(query: t.Query, around: Vocabulary) -> Prepared:
    """Raises SqlError."""
    client = understood(query, around)
    if isinstance(client.query.source, Joining) or not client.is_plain or query.partition_by:
        raise SqlError(
            BAD_STATEMENT,
            "a pull query reads one stream or table as it is now, without JOIN, GROUP BY, WINDOW and PARTITION BY: "
            "add EMIT CHANGES for a query that goes on",
        )
    return Prepared(client)


def _made(work: Computing, records: Sequence[Placed]) -> list[Row]:
    """Raises SqlError."""
    try:
        return work.rows(records, time.time_ns() // 1_000_000)
    except StreamsError as error:
        why = "" if error.__cause__ is None else f": {error.__cause__}"
        raise SqlError(SERVER_ERROR, f"the query has failed {error}{why}") from error
