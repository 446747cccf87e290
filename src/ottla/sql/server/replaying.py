"""The log of statements, replayed: the catalog, how each statement went, and the queries that begin and end with it."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from ottla.sql import tree as t
from ottla.sql.catalog import (
    Catalog,
    Change,
    PersistentQuery,
    QueryEnded,
    QueryPaused,
    QuerySet,
    Settings,
    SourceDropped,
)
from ottla.sql.errors import SERVER_ERROR, SqlError
from ottla.sql.parser import parse
from ottla.sql.properties import over
from ottla.sql.server.log import Logged

logger = logging.getLogger(__name__)

_OUTCOMES: Final = 1_000
"""Results of statements that are remembered for who asks how they went."""


class QueryFailure(NamedTuple):
    at_ms: int
    why: str


class Persistent(Protocol):
    """Who runs queries that write topics."""

    def missing(self) -> str | None:
        """What queries need and is not installed here, and how it is had."""

    def start(
        self, query: PersistentQuery, statements: list[tuple[int, Logged]], properties: Mapping[str, str]
    ) -> None:
        """`properties`: of the statement that made it."""

    def stop(self, query_id: str) -> None: ...

    def end(self, query_id: str, others: Sequence[str]) -> None:
        """For good: what it kept is not needed any more. What is kept by `others`, running or not, is."""

    def states(self) -> Mapping[str, str]: ...

    def failure(self, query_id: str) -> QueryFailure | None:
        """Why it failed last."""

    def progress(self, query_id: str) -> Mapping[str, Any]:
        """What its application tells; nothing if it does not run. May block."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a statement of the log went."""

    command: str
    message: str
    query_id: str | None = None
    error: SqlError | None = None


class Decided(NamedTuple):
    statement: t.Statement
    changes: list[Change]


class Replaying:
    def __init__(self, persistent: Persistent | None, defaults: Mapping[str, str]) -> None:
        """`defaults`: properties of statements, where they say nothing."""
        self.catalog = Catalog()
        self.outcomes: OrderedDict[int, Outcome] = OrderedDict()
        self.statements: list[tuple[int, Logged]] = []
        """That made the catalog what it is, with their places."""
        self._persistent = persistent
        self._defaults = defaults
        self._properties: dict[str, Mapping[str, str]] = {}
        """Of the statement that made a query, by its id."""
        self._live = False
        self.unread: Callable[[str], None] = lambda topic: None
        """Is told of a topic that no stream or table is over any more."""

    def declare(self, text: str) -> None:
        """A source that is there before all statements of the log, and that no statement made. Raises SqlError."""
        (statement,) = parse(text)
        for change in self.catalog.decide(statement, text, -1, Settings.of({})):
            self.catalog.replay(change)
        self.statements.append((-1, Logged(text)))

    def begin(self) -> None:
        """All statements have been read: queries begin."""
        self._live = True
        for query in self.catalog.queries.values():
            if not self.catalog.paused.get(query.id):
                self._begin(query)

    def replayed(self, offset: int, logged: Logged) -> None:
        """One statement of the log, at its place. What is wrong with it now was decided by whoever was first."""
        self.change(offset, logged, self.decided(offset, logged))

    def decided(self, offset: int, logged: Logged) -> "Decided | SqlError":
        """Changes nothing."""
        try:
            (statement,) = parse(logged.text)
            return Decided(
                statement, self.catalog.decide(statement, logged.text, offset, self.settings(logged.properties))
            )
        except SqlError as error:
            return error
        except Exception as error:  # whatever it is about this one, those behind it are read
            logger.exception("the statement at offset %d of the log cannot be replayed, and is left out", offset)
            return SqlError(SERVER_ERROR, f"the statement cannot be replayed: {error}", logged.text)

    def change(self, offset: int, logged: Logged, decided: "Decided | SqlError") -> None:
        if isinstance(decided, SqlError):
            self._remember(offset, Outcome("", str(decided), error=decided))
            return
        statement, changes = decided
        logged = Logged(logged.text, over(self.catalog.defaults, logged.properties))
        self.statements.append((offset, logged))
        for change in changes:
            topic = self.catalog.sources[change.name].topic if isinstance(change, SourceDropped) else None
            self.catalog.replay(change)
            self._act(change, logged)
            if topic is not None and all(each.topic != topic for each in self.catalog.sources.values()):
                self.unread(topic)
        self._remember(offset, outcome_of(statement, changes))

    def _act(self, change: Change, logged: Logged) -> None:
        match change:
            case QuerySet(query):
                self._properties[query.id] = logged.properties
            case QueryEnded(query_id):
                self._properties.pop(query_id, None)
        if not self._live or self._persistent is None:
            return
        match change:
            case QuerySet(query):
                self._persistent.stop(query.id)
                self._begin(query)
            case QueryEnded(query_id):
                self._persistent.end(query_id, list(self.catalog.queries))
            case QueryPaused(query_id, paused):
                if paused:
                    self._persistent.stop(query_id)
                else:
                    self._begin(self.catalog.queries[query_id])

    def _begin(self, query: PersistentQuery) -> None:
        if self._persistent is not None:
            self._persistent.start(query, list(self.statements), self._properties[query.id])

    def _remember(self, offset: int, outcome: Outcome) -> None:
        self.outcomes[offset] = outcome
        while len(self.outcomes) > _OUTCOMES:
            self.outcomes.popitem(last=False)

    def settings(self, properties: Mapping[str, object]) -> Settings:
        return Settings.of({**self.defaults(), **properties})

    def defaults(self) -> dict[str, str]:
        """Of the file, and what ALTER SYSTEM made of them."""
        return over(self._defaults, self.catalog.defaults)

    def properties_of(self, query_id: str) -> Mapping[str, str]:
        return self._properties.get(query_id, {})

    def states(self) -> Mapping[str, str]:
        """Of persistent queries, by id."""
        known = {} if self._persistent is None else self._persistent.states()
        return {
            query: "PAUSED" if self.catalog.paused.get(query) else known.get(query, "RUNNING")
            for query in self.catalog.queries
        }

    def failure(self, query_id: str) -> QueryFailure | None:
        return None if self._persistent is None else self._persistent.failure(query_id)

    def missing(self) -> str | None:
        return None if self._persistent is None else self._persistent.missing()

    def progress(self, query_id: str) -> Mapping[str, Any]:
        return {} if self._persistent is None else self._persistent.progress(query_id)


def outcome_of(statement: t.Statement, changes: list[Change]) -> Outcome:
    """How a statement is called, and what is said of it."""
    query_id = next((change.query.id for change in changes if isinstance(change, QuerySet)), None)
    match statement:
        case t.CreateSource(kind=kind, name=name):
            done = "created" if changes else "already there"
            return Outcome(f"{kind.lower()}/{name}/create", f"{kind.capitalize()} {done}")
        case t.CreateAs(kind=kind, name=name):
            return Outcome(f"{kind.lower()}/{name}/create", f"Runs as query {query_id}", query_id)
        case t.InsertInto(name=name):
            return Outcome(f"stream/{name}/create", f"Runs as query {query_id}", query_id)
        case t.AlterSource(kind=kind, name=name):
            return Outcome(f"{kind.lower()}/{name}/alter", f"{kind.capitalize()} altered")
        case t.Drop(kind=kind, name=name):
            done = "dropped" if changes else "is not there"
            return Outcome(f"{kind.lower()}/{name}/drop", f"{kind.capitalize()} {name} {done}")
        case t.SetProperty(name=name, value=value):
            return Outcome(f"system/{name}/alter", f"{name} is {value} for statements from now on")
        case t.CreateFunction(name=name):
            return Outcome(f"function/{name}/create", f"Function {name} created")
        case t.CreateType(name=name):
            return Outcome(f"type/{name}/create", f"Type {name} {'registered' if changes else 'is there already'}")
        case t.Control(action=action, query_id=given):
            return Outcome(f"{action.lower()}/{given or 'ALL'}/execute", f"Query {action.lower()}d", given)
    raise AssertionError(f"{statement} is not logged")
