"""GROUP BY: what becomes the key, what is aggregated, and what may be said about both afterwards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ottla.serdes.types import LONG, Type, windowed
from ottla.sql import tree as t
from ottla.sql.analysis.expressions import Typing
from ottla.sql.analysis.joins import Row
from ottla.sql.analysis.own_functions import aggregate, is_aggregate
from ottla.sql.analysis.projection import Selected, key_of_expressions
from ottla.sql.analysis.refusals import at, refuse
from ottla.sql.analysis.scope import canonical, key_type
from ottla.sql.analysis.typed import Grouping
from ottla.sql.analysis.windows import windows
from ottla.sql.functions import AGGREGATES
from ottla.sql.functions.declare import Argument
from ottla.sql.model import ROWTIME, WINDOWEND, WINDOWSTART
from ottla.streams import expressions as e
from ottla.streams.expressions import Aggregate


@dataclass(frozen=True, slots=True)
class Grouped:
    grouping: Grouping
    after: Typing
    """How what is selected is read: over the key and the aggregates."""
    keys: list[Selected]


def grouped(query: t.Query, row: Row, typing: Typing, found: list[Selected]) -> Grouped:
    by = tuple(canonical(each, row.scope) for each in query.group_by)
    keys = key_of_expressions(found, by, "GROUP BY")
    having = None if query.having is None else canonical(query.having, row.scope)
    _check_bounds(query, (*by, *([having] if having else [])))
    inputs = _Inputs(typing)
    key_fields = [inputs.add(each) for each in by]
    calls = _aggregates([*(each.expression for each in found), *([having] if having else [])])
    if not calls:
        refuse("GROUP BY needs an aggregate in SELECT or HAVING, such as COUNT(*)", query)
    made = {f"AGG_{place}": _made(call, inputs, row, query) for place, call in enumerate(calls)}
    value = inputs.type()
    results = {
        name: aggregate.bind({"key": row.scope.types["key"], "value": value}).type for name, aggregate in made.items()
    }
    columns = tuple((key.name, argument.type) for key, (_, argument) in zip(keys, key_fields, strict=True))
    after = _after(typing, query, by, columns, calls, results)
    window, retention = (None, None) if query.window is None else windows(query.window, final=query.emit == "FINAL")
    grouping = Grouping(
        tuple(inputs.fields),
        columns,
        tuple(name for name, _ in key_fields),
        row.is_table or row.window is not None or not _is_own_key(by, row),
        tuple(made.items()),
        window,
        retention,
        None if having is None else after.condition(having, "HAVING"),
    )
    return Grouped(grouping, after, keys)


def _check_bounds(query: t.Query, written: Sequence[t.Expr]) -> None:
    """The bounds of a window are known when it has been aggregated."""
    for part in (part for each in written for part in each.walk()):
        if query.window is not None and isinstance(part, t.Column) and part.name in (WINDOWSTART, WINDOWEND):
            refuse(f"{part.name} of this query's own windows can be used in SELECT only", part)


def _is_own_key(by: Sequence[t.Expr], row: Row) -> bool:
    return len(by) == len(row.keys) and all(key.is_by(each) for each, key in zip(by, row.keys, strict=True))


class _Inputs:
    """What has to be known of each record: each expression once."""

    def __init__(self, typing: Typing) -> None:
        self.fields: list[tuple[str, Argument]] = []
        self._known: dict[t.Expr, tuple[str, Argument]] = {}
        self._typing = typing

    def add(self, written: t.Expr) -> tuple[str, Argument]:
        if written not in self._known:
            name = f"IN_{len(self.fields)}"
            argument = self._typing.typed(written)
            if argument.is_null:
                refuse("NULL has no type here: CAST(NULL AS ...)", written)
            self.fields.append((name, argument))
            self._known[written] = name, argument
        return self._known[written]

    def type(self) -> Type:
        return Type("struct", fields=tuple((name, argument.type) for name, argument in self.fields))


def _aggregates(written: Sequence[t.Expr]) -> list[t.Call]:
    found = [part for each in written for part in each.walk() if isinstance(part, t.Call) and is_aggregate(part)]
    return list(dict.fromkeys(found))


def _made(call: t.Call, inputs: _Inputs, row: Row, query: t.Query) -> Aggregate:
    declared = aggregate(call)
    _check_bounds(query, call.arguments)
    if row.is_table and not declared.undo:
        able = ", ".join(sorted(name for name, each in AGGREGATES.items() if each.undo))
        refuse(f"{call.name} cannot take back a row that a table changes; of a table there are {able}", call)
    written: tuple[t.Expr, ...] = call.arguments
    if not written and call.name != "COUNT":
        written = (t.Column(ROWTIME, row.scope.sources[0], at=call.at),)
    arguments = []
    for each in written:
        if isinstance(each, t.Literal):
            arguments.append(inputs._typing.typed(each))
            continue
        name, argument = inputs.add(each)
        arguments.append(Argument(e.value[name], argument.type))
    with at(call):
        return declared.make(arguments)


def _after(
    typing: Typing,
    query: t.Query,
    by: tuple[t.Expr, ...],
    columns: tuple[tuple[str, Type], ...],
    calls: list[t.Call],
    results: Mapping[str, Type],
) -> Typing:
    key = key_type(columns)
    own = e.key["key"] if query.window else e.key
    known: dict[t.Expr, Argument] = {}
    for written, (name, kind) in zip(by, columns, strict=True):
        known[written] = Argument(own if len(columns) == 1 else own[name], kind)
    for call, (name, kind) in zip(calls, results.items(), strict=True):
        known[call] = Argument(e.value[name], kind)
    bounds = {WINDOWSTART: "start", WINDOWEND: "end"} if query.window else {}

    def replaced(written: t.Expr) -> Argument | None:
        if written in known:
            return known[written]
        if isinstance(written, t.Column) and written.source is not None:
            if written.name in bounds:
                return Argument(e.key[bounds[written.name]], LONG)
            refuse(f"{written.name} is neither in GROUP BY nor inside an aggregate: put it into one of them", written)
        return None

    types = {
        "key": windowed(key) if query.window else key,
        "value": Type("struct", fields=tuple(results.items())),
    }
    scope = type(typing.scope)((), typing.scope.sources, types)
    return Typing(scope, typing.custom, replaced)
