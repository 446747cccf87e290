"""Which sources, types and queries there are. A core: `decide` says what a statement changes, `replay` changes it.

The log of statements is the durable truth; a catalog is rebuilt by deciding and replaying it from the start. A query is
named after its place in the log (CSAS_ORDERS_7), so that every server gives it the same name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from ottla.serdes.types import Type
from ottla.sql import tree as t
from ottla.sql.analysis import altering, inserting, replacing, sinks, sources
from ottla.sql.analysis.creating_functions import own_function
from ottla.sql.analysis.formats import Defaults
from ottla.sql.analysis.limits import limits
from ottla.sql.analysis.queries import Vocabulary, analysed
from ottla.sql.analysis.refusals import meant, refuse
from ottla.sql.analysis.typed import TypedQuery
from ottla.sql.analysis.types import resolved
from ottla.sql.errors import SqlError
from ottla.sql.functions.python import PythonFunction
from ottla.sql.model import DataSource


@dataclass(frozen=True, slots=True)
class Settings:
    """What a statement is read with, besides what it says."""

    formats: Defaults = field(default_factory=Defaults)
    topic_prefix: str = ""
    python_functions: bool = True
    """Whether statements may bring code along."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Of aggregates: how many values they keep of a group."""
    times_have_to_be: bool = False
    """Whether queries fail at records without a time."""

    @staticmethod
    def of(properties: Mapping[str, object]) -> "Settings":
        key = properties.get("ksql.persistence.default.format.key")
        value = properties.get("ksql.persistence.default.format.value")
        prefix = properties.get("ksql.output.topic.name.prefix")
        wrap = str(properties.get("ksql.persistence.wrap.single.values", "true")).lower() != "false"
        formats = Defaults(str(key).upper() if key else "KAFKA", str(value).upper() if value else None, wrap)
        python = str(properties.get("ksql.functions.python.enabled", "true")).lower() != "false"
        times = str(properties.get("ksql.timestamp.throw.on.invalid", "false")).lower() == "true"
        return Settings(formats, str(prefix) if prefix else "", python, limits(properties), times)


@dataclass(frozen=True, slots=True)
class PersistentQuery:
    id: str
    sink: DataSource
    query: TypedQuery
    statement: str
    is_insert: bool = False

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(source.name for source in self.query.reads()))


# ---- what a statement changes


@dataclass(frozen=True, slots=True)
class SourceSet:
    """Made, or replaced."""

    source: DataSource


@dataclass(frozen=True, slots=True)
class SourceDropped:
    name: str
    deleted_topic: str | None


@dataclass(frozen=True, slots=True)
class TypeSet:
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class TypeDropped:
    name: str


@dataclass(frozen=True, slots=True)
class QuerySet:
    query: PersistentQuery


@dataclass(frozen=True, slots=True)
class QueryEnded:
    id: str


@dataclass(frozen=True, slots=True)
class QueryPaused:
    id: str
    paused: bool


@dataclass(frozen=True, slots=True)
class FunctionSet:
    function: PythonFunction


@dataclass(frozen=True, slots=True)
class FunctionDropped:
    name: str


@dataclass(frozen=True, slots=True)
class DefaultSet:
    """What a property is from now on, where a statement says nothing."""

    name: str
    value: str


Change = (
    DefaultSet
    | FunctionSet
    | FunctionDropped
    | SourceSet
    | SourceDropped
    | TypeSet
    | TypeDropped
    | QuerySet
    | QueryEnded
    | QueryPaused
)


@dataclass(slots=True)
class Catalog:
    sources: dict[str, DataSource] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)
    queries: dict[str, PersistentQuery] = field(default_factory=dict)
    paused: dict[str, bool] = field(default_factory=dict)
    functions: dict[str, PythonFunction] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    """Properties of statements by ALTER SYSTEM: of those that follow it."""
    version: int = field(default=0, compare=False)
    """Another one after each change: what was made of the catalog before may be wrong."""

    # ---- asking

    def snapshot(self) -> "Catalog":
        """For who decides while this one may change."""
        return replace(
            self,
            sources=dict(self.sources),
            types=dict(self.types),
            queries=dict(self.queries),
            paused=dict(self.paused),
            functions=dict(self.functions),
            defaults=dict(self.defaults),
        )

    def find(self, source: t.Source) -> DataSource:
        found = self.sources.get(source.name)
        if found is None:
            refuse(f"there is no stream or table {source.name}{meant(source.name, self.sources)}", source)
        return found

    def vocabulary(self, settings: Settings | None = None) -> Vocabulary:
        if settings is None:
            return Vocabulary(self.find, self.types, self.functions, {})
        find = self._timed if settings.times_have_to_be else self.find
        return Vocabulary(find, self.types, self.functions, settings.limits)

    def _timed(self, source: t.Source) -> DataSource:
        found = self.find(source)
        at = found.event_time
        return found if at is None else replace(found, event_time=replace(at, fails=True))

    def readers(self, name: str) -> list[str]:
        return [query.id for query in self.queries.values() if name in query.reads]

    def writers(self, name: str) -> list[str]:
        return [query.id for query in self.queries.values() if query.sink.name == name]

    # ---- deciding

    def decide(self, statement: t.Statement, text: str, position: int, settings: Settings) -> list[Change]:
        """Changes nothing. Raises SqlError for a statement that cannot be."""
        try:
            return self._decided(statement, text, position, settings)
        except SqlError as error:
            raise error.of(text) from None
        except RecursionError:
            raise SqlError(40001, "the statement is nested too deeply: take it apart", "", 1, 1).of(text) from None

    def _decided(self, statement: t.Statement, text: str, position: int, settings: Settings) -> list[Change]:
        match statement:
            case t.CreateSource():
                return self._create(statement, text, settings)
            case t.CreateAs():
                return self._create_as(statement, text, position, settings)
            case t.InsertInto():
                return self._insert_into(statement, text, position, settings)
            case t.AlterSource():
                source = self._known(statement.name, statement)
                return [SourceSet(replace(altering.altered(source, statement, self.types), statement=text))]
            case t.CreateFunction():
                return self._create_function(statement, settings)
            case t.Drop(kind="FUNCTION"):
                return self._drop_function(statement)
            case t.Drop(kind="TYPE"):
                return self._drop_type(statement)
            case t.Drop(kind="STREAM" | "TABLE"):
                return self._drop(statement)
            case t.CreateType():
                return self._create_type(statement)
            case t.Control():
                return self._control(statement)
            case t.SetProperty(name=name, value=value, system=True):
                return [DefaultSet(name, value)]
        refuse(f"{type(statement).__name__} changes no catalog", statement)

    def _known(self, name: str, node: t.Node) -> DataSource:
        return self.find(t.Source(name, at=node.at))

    def _is_there(self, statement: t.CreateSource | t.CreateAs) -> bool:
        """Whether there is nothing to do. Refuses a name that is taken."""
        there = self.sources.get(statement.name)
        if there is None or (statement.or_replace and not statement.if_not_exists):
            return False
        if statement.if_not_exists:
            return True
        refuse(
            f"there is a {there.kind.lower()} {statement.name} already: DROP it first, or write CREATE OR REPLACE",
            statement,
        )

    def _create(self, statement: t.CreateSource, text: str, settings: Settings) -> list[Change]:
        if self._is_there(statement):
            return []
        made = replace(sources.created(statement, self.types, settings.formats), statement=text)
        there = self.sources.get(statement.name)
        if there is not None:
            replacing.check_source(there, made, statement)
        return [SourceSet(made)]

    def _create_as(self, statement: t.CreateAs, text: str, position: int, settings: Settings) -> list[Change]:
        if self._is_there(statement):
            return []
        query = analysed(statement.query, self.vocabulary(settings))
        prefix = "CTAS" if statement.kind == "TABLE" else "CSAS"
        there = self.sources.get(statement.name)
        query_id = f"{prefix}_{statement.name}_{position}"
        if there is not None and there.query_id is not None:
            query_id = there.query_id
        sink = sinks.sink_of(statement, query, settings.formats, settings.topic_prefix)
        sink = replace(sink, query_id=query_id, statement=text)
        if there is not None:
            replacing.check_query(there, self.queries.get(there.query_id or ""), sink, query, statement)
        return [SourceSet(sink), QuerySet(PersistentQuery(query_id, sink, query, text))]

    def _insert_into(self, statement: t.InsertInto, text: str, position: int, settings: Settings) -> list[Change]:
        target = self.find(t.Source(statement.name, at=statement.name_at))
        query = inserting.fitted(analysed(statement.query, self.vocabulary(settings)), target)
        said = inserting.check_query(statement, target, query)
        query_id = said or f"INSERTQUERY_{position}"
        if query_id in self.queries:
            refuse(f"there is a query {query_id} already: choose another QUERY_ID", statement)
        return [QuerySet(PersistentQuery(query_id, target, query, text, is_insert=True))]

    def _drop(self, statement: t.Drop) -> list[Change]:
        source = self.sources.get(statement.name)
        if source is None:
            if statement.if_exists:
                return []
            source = self._known(statement.name, statement)
        if source.kind != statement.kind:
            refuse(f"{source.name} is a {source.kind.lower()}: DROP {source.kind} {source.name}", statement)
        readers = self.readers(source.name)
        writers = [each for each in self.writers(source.name) if each != source.query_id]
        if readers or writers:
            told = [f"read by {', '.join(readers)}"] if readers else []
            told += [f"written by {', '.join(writers)}"] if writers else []
            refuse(f"{source.name} cannot be dropped while it is {' and '.join(told)}: TERMINATE them first", statement)
        if statement.delete_topic and source.is_source:
            refuse(f"{source.name} is a SOURCE {source.kind}, which is read-only: leave DELETE TOPIC out", statement)
        ended: list[Change] = [QueryEnded(source.query_id)] if source.query_id in self.queries else []
        return [*ended, SourceDropped(source.name, source.topic if statement.delete_topic else None)]

    def _create_type(self, statement: t.CreateType) -> list[Change]:
        if statement.name in self.types:
            if statement.if_not_exists:
                return []
            refuse(f"there is a type {statement.name} already: DROP TYPE {statement.name} first", statement)
        return [TypeSet(statement.name, resolved(statement.type, self.types))]

    def _create_function(self, statement: t.CreateFunction, settings: Settings) -> list[Change]:
        if statement.name in self.functions and statement.if_not_exists:
            return []
        if not settings.python_functions:
            refuse("functions in Python are switched off here (ksql.functions.python.enabled=false)", statement)
        if statement.name in self.functions and not statement.or_replace:
            refuse(f"there is a function {statement.name} already: write CREATE OR REPLACE, or DROP it", statement)
        return [FunctionSet(own_function(statement, self.types))]

    def _drop_function(self, statement: t.Drop) -> list[Change]:
        """Queries that call it keep it as it was when they were made."""
        if statement.name in self.functions:
            return [FunctionDropped(statement.name)]
        if statement.if_exists:
            return []
        refuse(f"there is no function {statement.name} of your own{meant(statement.name, self.functions)}", statement)

    def _drop_type(self, statement: t.Drop) -> list[Change]:
        if statement.name in self.types:
            return [TypeDropped(statement.name)]
        if statement.if_exists:
            return []
        refuse(f"there is no type {statement.name}{meant(statement.name, self.types)}", statement)

    def _control(self, statement: t.Control) -> list[Change]:
        wanted = list(self.queries) if statement.query_id is None else [statement.query_id]
        for each in wanted:
            if each not in self.queries:
                refuse(f"there is no query {each}{meant(each, self.queries)}", statement)
        if statement.action == "TERMINATE":
            return [QueryEnded(each) for each in wanted]
        return [QueryPaused(each, statement.action == "PAUSE") for each in wanted]

    # ---- changing

    def replay(self, change: Change) -> None:
        self.version += 1
        match change:
            case SourceSet(source):
                self.sources[source.name] = source
            case SourceDropped(name, _):
                del self.sources[name]
            case DefaultSet(name, value):
                self.defaults.pop(name, None)  # the last one holds, whatever it is called
                self.defaults[name] = value
            case FunctionSet(function):
                self.functions[function.name] = function
            case FunctionDropped(name):
                del self.functions[name]
            case TypeSet(name, kind):
                self.types[name] = kind
            case TypeDropped(name):
                del self.types[name]
            case QuerySet(query):
                self.queries[query.id] = query
            case QueryEnded(query_id):
                del self.queries[query_id]
                self.paused.pop(query_id, None)
            case QueryPaused(query_id, paused):
                self.paused[query_id] = paused
            case unreachable:
                assert_never(unreachable)
