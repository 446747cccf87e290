"""Topics that nobody declared, as clients name them: found by name, their columns by the registry or by a look at their
newest records. A look is read on the loop and judged beside it, and is bounded in records, bytes and time."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NoReturn

from ottla.client.aio.cluster import Cluster
from ottla.client.aio.reader import Reader
from ottla.model.errors import Errors
from ottla.model.permissions import DESCRIBE_TOPIC, READ_TOPIC
from ottla.registry.lookup import Registry, RegistryUnavailable
from ottla.sql import tree as t
from ottla.sql.analysis.queries import Vocabulary
from ottla.sql.analysis.refusals import refuse
from ottla.sql.catalog import Catalog
from ottla.sql.errors import SERVER_ERROR, SqlError
from ottla.sql.model import DataSource
from ottla.sql.server.askers import Asker
from ottla.sql.server.views import Spans, spans
from ottla.sql.types import quoted
from ottla.sql.undeclared import SAMPLE_RECORDS, Undeclared, inferred

_LOOKS: Final = 4
"""At a time: each is a connection and some memory."""

Pairs = list[tuple[bytes | None, bytes | None]]


@dataclass(frozen=True, slots=True)
class LookLimits:
    """Of one topic."""

    records: int = SAMPLE_RECORDS
    bytes: int = 1 << 20
    seconds: float = 5.0


class Looking:
    def __init__(self, catalog: Catalog, cluster: Cluster, registry: Registry | None, limits: LookLimits) -> None:
        self._catalog = catalog
        self._cluster = cluster
        self._registry = registry
        self._limits = limits
        self._room = asyncio.Semaphore(_LOOKS)

    async def vocabulary(self, query: t.Query, asker: Asker) -> Vocabulary:
        """With the topics that the query names and nobody declared. Raises SqlError, ClientError."""
        found: dict[str, DataSource] = {}
        for source in self._unknown(query):
            undeclared = await self.topic(source, asker)
            if undeclared is not None:
                found[source.name] = undeclared.source
        around = self._catalog.vocabulary()

        def find(source: t.Source) -> DataSource:
            # What was declared meanwhile wins.
            if source.name in found and source.name not in self._catalog.sources:
                return found[source.name]
            return around.find(source)

        return replace(around, find=find)

    def _unknown(self, query: t.Query) -> list[t.Source]:
        named = {each.name: each for each in (query.source, *(join.source for join in query.joins))}
        return [source for name, source in named.items() if name not in self._catalog.sources]

    async def refuse_stored(self, query: t.Query, asker: Asker) -> None:
        """A query that writes a topic runs for good, and a guess may be another one tomorrow. Raises SqlError with the
        statement that makes it a fact, ClientError."""
        for source in self._unknown(query):
            undeclared = await self.topic(source, asker)
            if undeclared is not None:
                refuse(
                    f"{source.name} is a topic that nobody declared, and columns that were guessed "
                    f"({undeclared.because}) are for queries of clients alone. Declare it first: "
                    f"{undeclared.statement}",
                    source,
                )

    async def topic(self, source: t.Source, asker: Asker) -> Undeclared | None:
        """What the topic of that name looks like; None if there is none. Raises SqlError, ClientError."""
        topic = await self.named(source, asker)
        if topic is None:
            return None
        asker.check(READ_TOPIC, topic)
        async with self._room:
            sample = await self._sample(topic, source)
            work = partial(inferred, topic, sample, self._registry, source.name)
            try:
                found = await asyncio.to_thread(work)
            except RegistryUnavailable as error:
                raise SqlError(SERVER_ERROR, str(error), "", *source.at) from None
        if not found.is_told:
            self._refuse_untold(source, topic, found)
        return found

    def _refuse_untold(self, source: t.Source, topic: str, found: Undeclared) -> NoReturn:
        registry = "" if self._registry is not None else " (none is set: ksql.schema.registry.url)"
        refuse(
            f"nothing tells the columns of the topic {topic} ({found.because}), nor does a schema registry{registry}: "
            f"CREATE STREAM {quoted(source.name)} (...) WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='...') declares "
            f"them, PRINT '{topic}' shows the records",
            source,
        )

    # ---- its name

    async def named(self, source: t.Source, asker: Asker) -> str | None:
        """Of the topic: as it is meant, in small letters, or the only one that differs in case alone. What may not be
        known is not there."""
        names = list(dict.fromkeys((source.name, source.name.lower())))
        there = [each.name for each in (await self._cluster.metadata(names)).topics if each.error_code == Errors.NONE]
        for name in names:
            if name in there and asker.allows(DESCRIBE_TOPIC, name):
                return name
        alike = sorted(
            each.name
            for each in (await self._cluster.metadata(None)).topics
            if each.name is not None and each.name.lower() == source.name.lower()
            if asker.allows(DESCRIBE_TOPIC, each.name)
        )
        if len(alike) > 1:
            told = " or ".join(quoted(each) for each in alike)
            refuse(f"several topics are called {source.name}: write {told}", source)
        return alike[0] if alike else None

    # ---- its records

    async def _sample(self, topic: str, source: t.Source) -> Pairs:
        found: Pairs = []
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.seconds):
                whole = await spans(self._cluster, [topic], from_beginning=True, to_end=True)
                await self._read(_newest(whole, self._limits.records), found)
                if not found:
                    # What is newest may be marks of transactions, or compacted away.
                    await self._read(whole, found)
                return found
        if not found:
            raise SqlError(
                SERVER_ERROR,
                f"no record of the topic {topic} came within {self._limits.seconds:g} s (sql.sample.timeout.ms): ask "
                "again, or declare it by CREATE STREAM",
                "",
                *source.at,
            )
        return found

    async def _read(self, wanted: Spans, found: Pairs) -> None:
        size = 0
        async with Reader(self._cluster, wanted) as reader:
            while reader.active:
                for fetched in await reader.poll():
                    for record in fetched.records:
                        found.append((record.key, record.value))
                        size += len(record.key or b"") + len(record.value or b"")
                        if len(found) >= self._limits.records or size >= self._limits.bytes:
                            return


def _newest(whole: Spans, records: int) -> Spans:
    """Of every partition the same number."""
    each_of = max(1, records // max(1, len(whole)))
    return {
        place: (max(start, end - each_of), end)
        for place, (start, end) in whole.items()
        if end is not None and start < end
    }
