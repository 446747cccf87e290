"""Which function a call means: one that a statement made, else one of SQL's own."""

from collections.abc import Mapping
from dataclasses import replace

from ottla.sql import tree as t
from ottla.sql.functions import AGGREGATES, SCALARS, TABLE_FUNCTIONS
from ottla.sql.functions.declare import AggregateFunction, Scalar, TableFunction
from ottla.sql.functions.python import PythonFunction


def resolved(query: t.Query, functions: Mapping[str, PythonFunction]) -> t.Query:
    """The query, in which each call of a function that a statement made carries it along."""
    if not functions:
        return query

    def told(part: t.Expr) -> t.Expr | None:
        if not isinstance(part, t.Call) or part.own is not None or part.name not in functions:
            return None
        arguments = tuple(t.rewritten(each, told) for each in part.arguments)
        return t.Call(part.name, arguments, part.star, functions[part.name], at=part.at)

    def expression(written: t.Expr | None) -> t.Expr | None:
        return None if written is None else t.rewritten(written, told)

    def several(written: tuple[t.Expr, ...]) -> tuple[t.Expr, ...]:
        return tuple(t.rewritten(each, told) for each in written)

    items = tuple(
        replace(item, expression=t.rewritten(item.expression, told)) if isinstance(item, t.Item) else item
        for item in query.items
    )
    joins = tuple(replace(join, on=t.rewritten(join.on, told)) for join in query.joins)
    return replace(
        query,
        items=items,
        joins=joins,
        where=expression(query.where),
        having=expression(query.having),
        group_by=several(query.group_by),
        partition_by=several(query.partition_by),
    )


def scalar(call: t.Call) -> Scalar | None:
    found = call.own.declared() if call.own is not None else SCALARS.get(call.name)
    return found if isinstance(found, Scalar) else None


def is_aggregate(call: t.Call) -> bool:
    return call.own.kind == "AGGREGATE" if call.own is not None else call.name in AGGREGATES


def aggregate(call: t.Call) -> AggregateFunction:
    found = call.own.declared() if call.own is not None else AGGREGATES[call.name]
    assert isinstance(found, AggregateFunction)
    return found


def is_table_function(call: t.Call) -> bool:
    return call.own.kind == "TABLE" if call.own is not None else call.name in TABLE_FUNCTIONS


def table_function(call: t.Call) -> TableFunction:
    found = call.own.declared() if call.own is not None else TABLE_FUNCTIONS[call.name]
    assert isinstance(found, TableFunction)
    return found
