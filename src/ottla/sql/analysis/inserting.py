"""INSERT INTO: what may be written into a stream by a query, and into a source by VALUES."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from ottla.serdes import decimals
from ottla.serdes.types import Type
from ottla.sql import tree as t
from ottla.sql.analysis import properties
from ottla.sql.analysis.expressions import Typing
from ottla.sql.analysis.refusals import at, meant, refuse
from ottla.sql.analysis.scope import Scope
from ottla.sql.analysis.typed import TypedQuery
from ottla.sql.functions.coercions import coerced
from ottla.sql.functions.declare import Argument, literal
from ottla.sql.model import BOUNDS, PSEUDO, ROWTIME, Columns, DataSource
from ottla.sql.types import quoted, sql_text
from ottla.streams.expressions import Inputs


def fitted(query: TypedQuery, target: DataSource) -> TypedQuery:
    """Numbers that are written out become the DECIMALs that the target has, if they need no rounding."""
    wanted = dict(target.values)
    values = tuple((name, _as_decimal(argument, wanted.get(name))) for name, argument in query.values)
    return replace(query, values=values)


def _as_decimal(argument: Argument, wanted: Type | None) -> Argument:
    if wanted is None or wanted.name != "decimal" or not (argument.is_literal and argument.type.is_number):
        return argument
    number = decimals.fit_exactly(Decimal(str(argument.constant)), wanted)
    return argument if number is None else literal(number, wanted)


def check_query(statement: t.InsertInto, target: DataSource, query: TypedQuery) -> str | None:
    """The id that was asked for, if one was."""
    if target.is_source:
        refuse(f"{target.name} is a SOURCE {target.kind}, which is read-only", statement)
    if target.is_table:
        refuse(f"{target.name} is a table, and INSERT INTO ... SELECT writes streams only", statement)
    if query.is_table:
        refuse("the query gives a table, whose rows replace each other: INSERT INTO takes a stream", statement)
    if target.headers:
        refuse(f"{target.name} has header columns, which cannot be written", statement)
    if query.keys != target.keys or query.columns != target.values:
        refuse(
            f"the query gives ({_shown(query.keys, query.columns)}), but {target.name} has "
            f"({_shown(target.keys, target.values)}): names, types and order have to be the same",
            statement,
        )
    if query.window != target.window:
        refuse(f"keys of the query and of {target.name} are not windowed alike", statement)
    said = properties.read(statement.properties, properties.INSERT, statement)
    query_id = said.upper("QUERY_ID")
    return query_id


def _shown(keys: Columns, values: Columns) -> str:
    shown = [f"{quoted(name)} {sql_text(kind)} KEY" for name, kind in keys]
    return ", ".join([*shown, *(f"{quoted(name)} {sql_text(kind)}" for name, kind in values)])


@dataclass(frozen=True, slots=True)
class Row:
    """A record to write."""

    key: Any
    """As streams have it: bare, or a dict of several; None if no key column was given."""
    value: dict[str, Any]
    timestamp: int | None


def values_row(statement: t.InsertValues, target: DataSource, custom: Mapping[str, Type], now: int) -> Row:
    """`now`: what time it is, in milliseconds."""
    if target.is_source:
        refuse(f"{target.name} is a SOURCE {target.kind}, which is read-only", statement)
    if target.window is not None:
        refuse(f"{target.name} has windowed keys, which INSERT VALUES cannot write", statement)
    given = _given(statement, target)
    types = dict((*target.keys, *target.values))
    row: dict[str, Any] = dict.fromkeys(types)
    timestamp = None
    for name, written in given.items():
        if name == ROWTIME:
            timestamp = _value(written, PSEUDO[ROWTIME], custom, name, now)
        else:
            row[name] = _value(written, types[name], custom, name, now)
    keys = {name: row.pop(name) for name, _ in target.keys}
    missing = [name for name, each in keys.items() if each is None]
    if target.is_table and missing:
        refuse(f"the PRIMARY KEY {missing[0]} of {target.name} needs a value that is not NULL", statement)
    if not keys or len(missing) == len(keys):
        key: Any = None
    else:
        key = next(iter(keys.values())) if len(keys) == 1 else keys
    return Row(key, row, timestamp)


def _given(statement: t.InsertValues, target: DataSource) -> dict[str, t.Expr]:
    known = [name for name, _ in (*target.keys, *target.values)]
    columns = statement.columns or tuple(known)
    headers = [each.name for each in target.headers]
    for place, name in enumerate(columns):
        where = name if isinstance(name, t.Word) else statement
        if name in ("ROWPARTITION", "ROWOFFSET", *BOUNDS, *headers):
            refuse(f"{name} cannot be written", where)
        if name != ROWTIME and name not in known:
            refuse(f"{target.name} has no column {name}{meant(name, known)}", where)
        if name in columns[:place]:
            refuse(f"the column {name} is there twice", where)
    if len(columns) != len(statement.values):
        refuse(f"{len(columns)} columns ({', '.join(columns)}), but {len(statement.values)} values", statement)
    return dict(zip(columns, statement.values, strict=True))


def _value(written: t.Expr, wanted: Type, custom: Mapping[str, Type], name: str, now: int) -> Any:
    typing = Typing(Scope((), (), {}), custom)
    argument = typing.typed(written)
    with at(written):
        made = _fitting(argument, wanted)
    if made is None:
        refuse(f"{name} is {sql_text(wanted)}, but the value is {sql_text(argument.type)}: CAST it", written)
    return made.expression.compile({})(Inputs(now=now))


def _fitting(argument: Argument, wanted: Type) -> Argument | None:
    from ottla.sql.functions.coercions import conversion  # noqa: PLC0415

    made = coerced(argument, wanted)
    if made is None:
        return None
    bound = made.expression.bind({}).type
    if bound in (wanted,) or made.is_null:
        return made
    return Argument(conversion(made.expression, bound, wanted), wanted) if bound.name != "null" else made
