"""What a statement says, as frozen dataclasses with their places. Nothing here knows whether it makes sense.

Names are as they are looked up: upper-cased unless they were quoted. `text.py` writes all of it back.
"""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Any, Final, TypeAlias

from ottla.sql.lexer import NOWHERE, Place


@dataclass(frozen=True, slots=True)
class Node:
    at: Place = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


class Word(str):
    """A name that knows its place, of what has no node of its own: a property, a column of INSERT."""

    at: Place

    def __new__(cls, text: str, at: Place) -> "Word":
        made = super().__new__(cls, text)
        made.at = at
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """To other processes it goes as a text."""
        return str, (str(self),)


# ---- expressions


@dataclass(frozen=True, slots=True)
class Expr(Node):
    def parts(self) -> "Iterator[Expr]":
        """The expressions directly in it."""
        for name in _own_fields(type(self)):
            yield from _expressions(getattr(self, name))

    def walk(self) -> "Iterator[Expr]":
        stack: list[Expr] = [self]
        while stack:
            found = stack.pop()
            yield found
            stack += reversed(list(found.parts()))


_FIELDS: Final[dict[type, tuple[str, ...]]] = {}


def _own_fields(kind: type[Expr]) -> tuple[str, ...]:
    """All but its place. Remembered: every statement asks many times."""
    found = _FIELDS.get(kind)
    if found is None:
        found = _FIELDS[kind] = tuple(each.name for each in fields(kind) if each.name != "at")
    return found


def _expressions(found: Any) -> Iterator[Expr]:
    if isinstance(found, Expr):
        yield found
    elif isinstance(found, tuple):
        for each in found:
            yield from _expressions(each)


Constant: TypeAlias = bool | int | float | Decimal | str | None


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    value: Constant


@dataclass(frozen=True, slots=True)
class Column(Expr):
    """`name`, or `source.name`."""

    name: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """NOT, + or -."""

    operator: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """Arithmetic and comparison; IS DISTINCT FROM and IS NOT DISTINCT FROM are such operators."""

    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Chain(Expr):
    """AND, OR, ||: of any number, so that a thousand of them are no deeper than two."""

    operator: str
    terms: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class IsNull(Expr):
    operand: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between(Expr):
    operand: Expr
    low: Expr
    high: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class In(Expr):
    operand: Expr
    choices: tuple[Expr, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(Expr):
    operand: Expr
    pattern: Expr
    escape: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Case(Expr):
    operand: Expr | None
    whens: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None = None


@dataclass(frozen=True, slots=True)
class TypeName(Node):
    """A type as it is written: ARRAY, MAP and DECIMAL have arguments, STRUCT has fields, others may be custom."""

    name: str
    arguments: "tuple[TypeName | int, ...]" = ()
    fields: "tuple[tuple[str, TypeName], ...]" = ()
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    operand: Expr
    type: TypeName


@dataclass(frozen=True, slots=True)
class Subscript(Expr):
    base: Expr
    index: Expr


@dataclass(frozen=True, slots=True)
class Dereference(Expr):
    """`base->field`; the field "*" stands for all of them, in a SELECT only."""

    base: Expr
    field: str


@dataclass(frozen=True, slots=True)
class Call(Expr):
    name: str
    arguments: tuple[Expr, ...] = ()
    star: bool = False
    """COUNT(*)"""
    own: Any = None
    """The declaration of a function that a statement made; None: one of SQL's own."""


@dataclass(frozen=True, slots=True)
class Lambda(Expr):
    parameters: tuple[str, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class ArrayOf(Expr):
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class MapOf(Expr):
    entries: tuple[tuple[Expr, Expr], ...]


@dataclass(frozen=True, slots=True)
class StructOf(Expr):
    fields: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Unit(Expr):
    """A unit of time as argument: TIMESTAMPADD(HOURS, 1, t)."""

    name: str


@dataclass(frozen=True, slots=True)
class AtTimeZone(Expr):
    operand: Expr
    zone: str


# ---- queries


@dataclass(frozen=True, slots=True)
class Star(Node):
    """`*` or `source.*`."""

    source: str | None = None


@dataclass(frozen=True, slots=True)
class Item(Node):
    expression: Expr
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Source(Node):
    name: str
    alias: str | None = None

    @property
    def called(self) -> str:
        return self.alias or self.name


@dataclass(frozen=True, slots=True)
class Duration(Node):
    amount: int
    unit: str

    @property
    def ms(self) -> int:
        return self.amount * UNIT_MS[self.unit]


UNIT_MS = {
    "MILLISECOND": 1,
    "SECOND": 1_000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 86_400_000,
}
LONGEST: Final = "100,000,000 DAYS"
LONGEST_MS: Final = 100_000_000 * UNIT_MS["DAY"]
"""Of a duration: some of them added to a time are still a BIGINT."""


@dataclass(frozen=True, slots=True)
class Within(Node):
    before: Duration
    after: Duration
    grace: Duration | None = None


@dataclass(frozen=True, slots=True)
class Join(Node):
    kind: str
    """INNER, LEFT, RIGHT or FULL."""
    source: Source
    on: Expr
    within: Within | None = None


@dataclass(frozen=True, slots=True)
class Window(Node):
    kind: str
    """TUMBLING, HOPPING or SESSION."""
    size: Duration
    """Of a session: the gap."""
    advance: Duration | None = None
    retention: Duration | None = None
    grace: Duration | None = None


@dataclass(frozen=True, slots=True)
class Query(Node):
    items: tuple[Star | Item, ...]
    source: Source
    joins: tuple[Join, ...] = ()
    window: Window | None = None
    where: Expr | None = None
    group_by: tuple[Expr, ...] = ()
    partition_by: tuple[Expr, ...] = ()
    having: Expr | None = None
    emit: str | None = None
    """CHANGES or FINAL."""
    limit: int | None = None


# ---- statements

Properties: TypeAlias = tuple[tuple[str, Constant], ...]


@dataclass(frozen=True, slots=True)
class Statement(Node):
    pass


@dataclass(frozen=True, slots=True)
class ColumnDef(Node):
    name: str
    type: TypeName
    role: str = ""
    """KEY, PRIMARY KEY, HEADERS, or HEADER."""
    header: str | None = None
    """Of HEADER('k'): k."""


@dataclass(frozen=True, slots=True)
class CreateSource(Statement):
    kind: str
    """STREAM or TABLE."""
    name: str
    columns: tuple[ColumnDef, ...] = ()
    properties: Properties = ()
    or_replace: bool = False
    if_not_exists: bool = False
    is_source: bool = False


@dataclass(frozen=True, slots=True)
class CreateAs(Statement):
    kind: str
    name: str
    query: Query
    properties: Properties = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class InsertInto(Statement):
    name: str
    query: Query
    properties: Properties = ()
    name_at: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class InsertValues(Statement):
    name: str
    columns: tuple[str, ...]
    values: tuple[Expr, ...]
    name_at: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SelectQuery(Statement):
    """A query of its own: push with EMIT, pull without."""

    query: Query


@dataclass(frozen=True, slots=True)
class Drop(Statement):
    kind: str
    """STREAM, TABLE, TYPE or CONNECTOR."""
    name: str
    if_exists: bool = False
    delete_topic: bool = False


@dataclass(frozen=True, slots=True)
class AlterSource(Statement):
    kind: str
    name: str
    columns: tuple[ColumnDef, ...]


@dataclass(frozen=True, slots=True)
class Control(Statement):
    """TERMINATE, PAUSE, RESUME; no id is ALL."""

    action: str
    query_id: str | None


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    query_id: str | None
    statement: Statement | None


@dataclass(frozen=True, slots=True)
class Describe(Statement):
    kind: str
    """SOURCE, STREAMS, TABLES, FUNCTION or CONNECTOR."""
    name: str | None = None
    extended: bool = False


@dataclass(frozen=True, slots=True)
class Show(Statement):
    what: str
    """STREAMS, TABLES, TOPICS, QUERIES, FUNCTIONS, TYPES, PROPERTIES, VARIABLES, CONNECTORS, CONNECTOR PLUGINS"""
    extended: bool = False
    all: bool = False
    scope: str | None = None
    """Of connectors: SOURCE or SINK."""


@dataclass(frozen=True, slots=True)
class PrintTopic(Statement):
    topic: str
    from_beginning: bool = False
    interval: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class SetProperty(Statement):
    name: str
    value: str
    system: bool = False


@dataclass(frozen=True, slots=True)
class UnsetProperty(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class Define(Statement):
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Undefine(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class CreateType(Statement):
    name: str
    type: TypeName
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateFunction(Statement):
    """Beyond ksqlDB: CREATE FUNCTION … LANGUAGE PYTHON AS $$ … $$."""

    kind: str
    """SCALAR, AGGREGATE or TABLE."""
    name: str
    parameters: tuple[tuple[str, TypeName], ...]
    returns: TypeName
    source: str
    keeps: TypeName | None = None
    """Of an aggregate: what it keeps of a group."""
    properties: Properties = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateConnector(Statement):
    kind: str
    """SOURCE or SINK."""
    name: str
    properties: Properties
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AssertTopic(Statement):
    topic: str
    properties: Properties = ()
    exists: bool = True
    timeout: Duration | None = None


@dataclass(frozen=True, slots=True)
class AssertSchema(Statement):
    subject: str | None = None
    id: int | None = None
    exists: bool = True
    timeout: Duration | None = None


@dataclass(frozen=True, slots=True)
class AssertValues(Statement):
    """Of test files: what was written next; NULL VALUES: a tombstone."""

    name: str
    columns: tuple[str, ...]
    values: tuple[Expr, ...]
    tombstone: bool = False


@dataclass(frozen=True, slots=True)
class AssertSource(Statement):
    """Of test files: what a source looks like."""

    source: CreateSource


@dataclass(frozen=True, slots=True)
class RunScript(Statement):
    path: str


def rewritten(written: Expr, change: "Callable[[Expr], Expr | None]") -> Expr:
    """What `change` makes of it, which has its say about every part; None leaves a part to be looked into."""
    changed = change(written)
    if changed is not None:
        return changed
    parts: dict[str, Any] = {}
    for name in _own_fields(type(written)):
        found = getattr(written, name)
        made = _rewritten(found, change)
        if made is not found:
            parts[name] = made
    return replace(written, **parts) if parts else written


def _rewritten(found: Any, change: "Callable[[Expr], Expr | None]") -> Any:
    if isinstance(found, Expr):
        return rewritten(found, change)
    if not isinstance(found, tuple):
        return found
    made = tuple(_rewritten(each, change) for each in found)
    return found if all(map(operator.is_, made, found)) else made
