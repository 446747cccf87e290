"""SHOW, DESCRIBE and EXPLAIN: what there is, as entities."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from ottla.client.aio.cluster import Cluster
from ottla.model.permissions import DESCRIBE_TOPIC
from ottla.registry.lookup import Registry
from ottla.sql import tree as t
from ottla.sql.analysis.refusals import meant
from ottla.sql.catalog import Catalog, PersistentQuery, QuerySet, Settings
from ottla.sql.errors import BAD_STATEMENT, SqlError
from ottla.sql.functions import find
from ottla.sql.model import DataSource
from ottla.sql.server import entities
from ottla.sql.server.askers import Asker
from ottla.sql.server.measuring import Measuring
from ottla.sql.server.replaying import QueryFailure
from ottla.sql.server.results import RESULT, result_sink, understood
from ottla.sql.server.selecting import Selecting
from ottla.sql.session import Session

if TYPE_CHECKING:
    from ottla.streams.topology.topology import Topology


class Known(Protocol):
    """What is asked of the engine."""

    catalog: Catalog

    def states(self) -> Mapping[str, str]: ...
    def properties_of(self, query_id: str) -> Mapping[str, str]: ...
    def failure(self, query_id: str) -> QueryFailure | None: ...
    def settings(self, properties: Mapping[str, object]) -> Settings: ...
    def defaults(self) -> Mapping[str, str]: ...


class Telling:
    def __init__(
        self,
        engine: Known,
        cluster: Cluster,
        registry: Registry | None,
        clients: Selecting,
        measuring: Measuring,
        *,
        dead_letters: bool,
    ) -> None:
        """`dead_letters`: whether records that cannot be read go to a topic."""
        self._engine = engine
        self._cluster = cluster
        self._registry = registry
        self._clients = clients
        self._looking = clients.looking
        self._measuring = measuring
        self._dead_letters = dead_letters

    async def show(self, statement: t.Show, text: str, session: Session, asker: Asker) -> entities.Entity:
        catalog = self._engine.catalog
        match statement.what:
            case "STREAMS" | "TABLES":
                kind = statement.what[:-1]
                if statement.extended:
                    return await self._descriptions(text, kind)
                return entities.source_list(text, kind, catalog)
            case "QUERIES":
                return self._queries(text, statement.extended)
            case "TOPICS":
                return await self._topics(text, statement.all, statement.extended, asker)
            case "FUNCTIONS":
                return entities.function_names(text, catalog.functions)
            case "TYPES":
                return entities.type_list(text, catalog)
            case "PROPERTIES":
                return entities.properties(text, self._engine.defaults(), session.properties)
            case "VARIABLES":
                return entities.variables(text, session.variables)
        raise AssertionError(statement.what)

    def _queries(self, text: str, extended: bool) -> entities.Entity:
        states = self._engine.states()
        queries = self._engine.catalog.queries.values()
        if extended:
            found = [self._description(each, states[each.id]) for each in queries]
            return entities.entity("query_descriptions", text, queryDescriptions=found)
        rows = [entities.query_row(each, states[each.id]) for each in queries]
        return entities.query_list(text, [*rows, *self._clients.listed()])

    async def _topics(self, text: str, internal: bool, extended: bool, asker: Asker) -> entities.Entity:
        response = await self._cluster.metadata(None)
        found = [
            (topic.name or "", [len(each.replica_nodes) for each in topic.partitions])
            for topic in response.topics
            if internal or not (topic.is_internal or (topic.name or "").startswith("_"))
            if asker.allows(DESCRIBE_TOPIC, topic.name or "")
        ]
        return entities.topics(text, sorted(found), extended=extended)

    async def describe(self, statement: t.Describe, text: str, asker: Asker) -> entities.Entity:
        catalog, states = self._engine.catalog, self._engine.states()
        match statement.kind:
            case "STREAMS" | "TABLES":
                if statement.extended:
                    return await self._descriptions(text, statement.kind[:-1])
                return entities.source_descriptions(text, statement.kind[:-1], catalog, states)
            case "FUNCTION":
                return entities.function_description(text, find((statement.name or "").upper(), catalog.functions))
        source = await self._source(t.Source(statement.name or "", at=statement.at), asker)
        more = await self._measuring.source(source, catalog) if statement.extended else {}
        return entities.source_description(text, source, catalog, states, more)

    async def _descriptions(self, text: str, kind: str) -> entities.Entity:
        """EXTENDED. Raises ClientError."""
        catalog, states = self._engine.catalog, self._engine.states()
        sources = [each for each in catalog.sources.values() if each.kind == kind]
        more = {each.name: await self._measuring.source(each, catalog) for each in sources}
        return entities.source_descriptions(text, kind, catalog, states, more)

    async def _source(self, named: t.Source, asker: Asker) -> DataSource:
        """Of a topic that nobody declared: with the statement that would. Raises SqlError, ClientError."""
        catalog = self._engine.catalog
        undeclared = None if named.name in catalog.sources else await self._looking.topic(named, asker)
        if undeclared is None:
            return catalog.find(named)
        return replace(undeclared.source, statement=undeclared.statement)

    async def explain(self, statement: t.Explain, text: str, session: Session, asker: Asker) -> entities.Entity:
        if statement.statement is None:
            query = self._engine.catalog.queries.get(statement.query_id or "")
            if query is None:
                name = statement.query_id or ""
                what = meant(name, self._engine.catalog.queries) or ": SHOW QUERIES lists those there are"
                raise SqlError(BAD_STATEMENT, f"there is no query {name}{what}")
            state = self._engine.states()[query.id]
            return entities.entity("queryDescription", text, queryDescription=self._description(query, state))
        found = self._description(await self._imagined(statement.statement, text, session, asker), "NOT_RUNNING")
        return entities.entity("queryDescription", text, queryDescription=found)

    async def _imagined(self, statement: t.Statement, text: str, session: Session, asker: Asker) -> PersistentQuery:
        """The query of a statement that is not run. Raises SqlError."""
        catalog = self._engine.catalog
        if isinstance(statement, t.SelectQuery):
            client = understood(statement.query, await self._looking.vocabulary(statement.query, asker))
            return PersistentQuery("", result_sink(client), client.query, text)
        if isinstance(statement, t.CreateAs | t.InsertInto):
            changes = catalog.decide(statement, text, session.position, self._engine.settings(session.properties))
            for change in changes:
                if isinstance(change, QuerySet):
                    return change.query
        raise SqlError(BAD_STATEMENT, "EXPLAIN is for SELECT, CREATE ... AS SELECT, INSERT INTO and ids of queries")

    def _description(self, query: PersistentQuery, state: str) -> entities.Entity:
        from ottla.sql.compile import topology  # noqa: PLC0415  few ask, and it takes long to import

        made = topology(query.query, query.sink, self._registry)
        plan = self._planned(made) if query.id or query.sink.name != RESULT else "computed by the server, without Spark"
        found = entities.query_description(
            query, state, plan, str(made.describe()), self._engine.properties_of(query.id)
        )
        if (failure := self._engine.failure(query.id)) is not None:
            error = {"timestamp": failure.at_ms, "errorMessage": failure.why, "type": "UNKNOWN"}
            found["queryErrors"].append(error)
        return found

    def _planned(self, made: "Topology") -> str:
        """N, P or T for every step, and why."""
        from ottla.streams.plan.planner import plan  # noqa: PLC0415  few ask

        return plan(made.sub_topologies(), None, None, dead_letters=self._dead_letters).text()
