"""A written expression as one of streams, with its type. Aggregates and table functions are found, not made, here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final, NoReturn

from ottla.serdes.types import STRING, Type, literal_type
from ottla.sql import operators as o
from ottla.sql import tree as t
from ottla.sql.analysis.own_functions import is_aggregate, is_table_function, scalar
from ottla.sql.analysis.refusals import at, meant, refuse
from ottla.sql.analysis.scope import Scope
from ottla.sql.analysis.types import resolved
from ottla.sql.functions import AGGREGATES, SCALARS
from ottla.sql.functions.coercions import cast
from ottla.sql.functions.declare import Argument, literal
from ottla.sql.model import SYSTEM
from ottla.streams.expressions import Expression
from ottla.streams.expressions.functions.numbers import salted

_COMPARISONS: Final = frozenset(("=", "<>", "<", "<=", ">", ">="))

Replace = Callable[[t.Expr], Argument | None]
"""What stands for a part of an expression that was computed before: a grouping key, an aggregate, a table function."""


@dataclass(frozen=True, slots=True)
class Typing:
    """How an expression is read: over which names, with which custom types."""

    scope: Scope
    custom: Mapping[str, Type]
    replaced: Replace = lambda _: None
    depth: int = 0

    def typed(self, written: t.Expr) -> Argument:
        found = self.replaced(written)
        if found is not None:
            return found
        make = _MADE[type(written)]
        with at(written):
            return make(self, written)

    def all(self, written: Sequence[t.Expr]) -> list[Argument]:
        return [self.typed(each) for each in written]

    def condition(self, written: t.Expr, where: str) -> Expression:
        given = self.typed(written)
        with at(written):
            return o.truth(where, given)


# ---- leaves


def _literal(_: Typing, written: t.Literal) -> Argument:
    kind = literal_type(written.value)
    if kind is None:
        refuse(f"{written.value} has more digits than a number can have", written)
    return literal(written.value, kind)


def _column(typing: Typing, written: t.Column) -> Argument:
    if written.source is None and (variable := typing.scope.variable(written.name)) is not None:
        return variable
    return typing.scope.find(written).argument


def _unit(_: Typing, written: t.Unit) -> Argument:
    if written.name.removesuffix("S") not in t.UNIT_MS:
        refuse(f"{written.name} is no unit here: there are MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS", written)
    return literal(written.name, STRING)


# ---- operators


def _unary(typing: Typing, written: t.Unary) -> Argument:
    given = typing.typed(written.operand)
    match written.operator:
        case "NOT":
            return o.negated(given)
        case "-":
            return o.negative(given)
    return given


def _binary(typing: Typing, written: t.Binary) -> Argument:
    left, right = typing.typed(written.left), typing.typed(written.right)
    if written.operator not in _COMPARISONS and "DISTINCT" not in written.operator:
        return o.arithmetic(written.operator, left, right)
    left, right = _instants(written.left, left, written.right, right)
    if written.operator in _COMPARISONS and (left.is_null or right.is_null):
        refuse("a comparison with NULL is never true: write IS NULL or IS NOT NULL", written)
    if written.operator in _COMPARISONS:
        return o.compared(written.operator, left, right)
    found = o.is_distinct(left, right)
    return o.negated(found) if "NOT" in written.operator else found


def _instants(left: t.Expr, first: Argument, right: t.Expr, second: Argument) -> tuple[Argument, Argument]:
    """A text beside ROWTIME, WINDOWSTART or WINDOWEND is a time."""
    if _is_instant(left):
        return first, o.instant(second)
    return (o.instant(first), second) if _is_instant(right) else (first, second)


def _is_instant(written: t.Expr) -> bool:
    return isinstance(written, t.Column) and written.name in SYSTEM


_CHAINED: Final = {"AND": o.both, "OR": o.either, "||": o.concatenated}


def _chain(typing: Typing, written: t.Chain) -> Argument:
    """Halved, so that a thousand terms are ten deep."""
    return _halved(_CHAINED[written.operator], typing.all(written.terms))


def _halved(make: Callable[[Argument, Argument], Argument], terms: Sequence[Argument]) -> Argument:
    if len(terms) < 4:
        return reduce(make, terms)
    middle = len(terms) // 2
    return make(_halved(make, terms[:middle]), _halved(make, terms[middle:]))


def _is_null(typing: Typing, written: t.IsNull) -> Argument:
    given = typing.typed(written.operand)
    return o.is_not_null(given) if written.negated else o.is_null(given)


def _between(typing: Typing, written: t.Between) -> Argument:
    subject, low, high = typing.all((written.operand, written.low, written.high))
    if _is_instant(written.operand):
        low, high = o.instant(low), o.instant(high)
    return _maybe_not(o.between(subject, low, high), written.negated)


def _in(typing: Typing, written: t.In) -> Argument:
    subject, choices = typing.typed(written.operand), typing.all(written.choices)
    if _is_instant(written.operand):
        choices = [o.instant(each) for each in choices]
    return _maybe_not(o.is_in(subject, choices), written.negated)


def _like(typing: Typing, written: t.Like) -> Argument:
    found = o.like(typing.typed(written.operand), typing.typed(written.pattern), written.escape)
    return _maybe_not(found, written.negated)


def _maybe_not(found: Argument, negated: bool) -> Argument:
    return o.negated(found) if negated else found


def _case(typing: Typing, written: t.Case) -> Argument:
    branches = [(typing.typed(when), typing.typed(then)) for when, then in written.whens]
    otherwise = None if written.otherwise is None else typing.typed(written.otherwise)
    return o.case(branches, otherwise, None if written.operand is None else typing.typed(written.operand))


def _cast(typing: Typing, written: t.Cast) -> Argument:
    return cast(typing.typed(written.operand), resolved(written.type, typing.custom))


def _subscript(typing: Typing, written: t.Subscript) -> Argument:
    return o.subscript(typing.typed(written.base), typing.typed(written.index))


def _dereference(typing: Typing, written: t.Dereference) -> Argument:
    if written.field == "*":
        refuse("->* stands for all fields, and only in a SELECT list of its own", written)
    return o.field(typing.typed(written.base), written.field)


def _array(typing: Typing, written: t.ArrayOf) -> Argument:
    return o.array(typing.all(written.items))


def _map(typing: Typing, written: t.MapOf) -> Argument:
    return o.map_([(typing.typed(key), typing.typed(each)) for key, each in written.entries])


def _struct(typing: Typing, written: t.StructOf) -> Argument:
    return o.struct([(name, typing.typed(each)) for name, each in written.fields])


def _at_time_zone(typing: Typing, written: t.AtTimeZone) -> Argument:
    return o.at_time_zone(typing.typed(written.operand), written.zone)


# ---- functions


def _call(typing: Typing, written: t.Call) -> Argument:
    function = scalar(written)
    if function is None:
        _refuse_call(written)
    plain = [each for each in written.arguments if not isinstance(each, t.Lambda)]
    lambdas = [each for each in written.arguments if isinstance(each, t.Lambda)]
    given = typing.all(plain)
    if lambdas:
        if function.lambda_types is None:
            refuse(f"{written.name} takes no lambda", lambdas[0])
        kinds = function.lambda_types([each.type for each in given])
        if len(kinds) != len(lambdas):
            refuse(f"{written.name} takes {len(kinds)} lambdas here, not {len(lambdas)}", lambdas[0])
        given += [_lambda(typing, each, wanted) for each, wanted in zip(lambdas, kinds, strict=True)]
    made = salted(function.make(given), _salt(written))
    return Argument(made, typing.scope.type_of(made))


def _salt(written: t.Call) -> int:
    """Of dice: two in a statement fall apart."""
    line, column = written.at
    return line * 1000 + column


def _refuse_call(written: t.Call) -> NoReturn:
    if is_aggregate(written):
        refuse(f"the aggregate {written.name} cannot stand here: it belongs into SELECT or HAVING", written)
    if is_table_function(written):
        refuse(f"the table function {written.name} cannot stand here: it belongs into SELECT", written)
    refuse(f"there is no function {written.name}{meant(written.name, [*SCALARS, *AGGREGATES])}", written)


def _lambda(typing: Typing, written: t.Lambda, kinds: Sequence[Type]) -> Argument:
    if len(kinds) != len(written.parameters):
        refuse(f"the lambda needs {len(kinds)} parameters, not {len(written.parameters)}", written)
    names = [f"{name}@{typing.depth}" for name in written.parameters]
    variables = [
        (name, Argument(Expression("variable", options=(place,)), kind))
        for name, place, kind in zip(written.parameters, names, kinds, strict=True)
    ]
    inner = replace(typing, scope=typing.scope.with_variables(variables), depth=typing.depth + 1)
    body = inner.typed(written.body)
    return Argument(Expression("lambda", (body.expression,), names), body.type)


def _stray_lambda(_: Typing, written: t.Lambda) -> Argument:
    refuse("a lambda can only be an argument of a function such as TRANSFORM, FILTER or REDUCE", written)


_MADE: Final[dict[type[t.Expr], Callable[..., Argument]]] = {
    t.Literal: _literal,
    t.Column: _column,
    t.Unit: _unit,
    t.Unary: _unary,
    t.Binary: _binary,
    t.Chain: _chain,
    t.IsNull: _is_null,
    t.Between: _between,
    t.In: _in,
    t.Like: _like,
    t.Case: _case,
    t.Cast: _cast,
    t.Subscript: _subscript,
    t.Dereference: _dereference,
    t.ArrayOf: _array,
    t.MapOf: _map,
    t.StructOf: _struct,
    t.AtTimeZone: _at_time_zone,
    t.Call: _call,
    t.Lambda: _stray_lambda,
}


def has_aggregate(written: t.Expr) -> bool:
    return any(isinstance(part, t.Call) and is_aggregate(part) for part in written.walk())
