"""Aggregates in parts: what the records of a batch add up to before anybody has seen all of them.

A part is a column that can be merged with itself in any order, by a sum, the least or the largest; what users see is
made of merged parts. So tasks aggregate what they read, and what they hand on is a row for each key instead of one for
each record (`run.partials` makes parts by Arrow, `run.aggregate_columns` merges them and makes results by Spark).
"""

from dataclasses import replace
from enum import Enum
from typing import Final, NamedTuple

from ottla.serdes.types import DOUBLE, INT, LONG, Type
from ottla.streams.expressions.aggregates import BoundAggregate
from ottla.streams.expressions.bound import Bound


class Of(Enum):
    """What of a record goes into a part."""

    RECORD = "records"
    """1, whatever is in it."""
    PRESENT = "present"
    """1 where there is a value."""
    VALUE = "value"
    HIGH = "high"
    LOW = "low"
    """Of a long: 32 bits, so that sums of halves do not overflow. The low one is never negative."""
    NUMBER = "number"
    """A double, unless it is NaN, which is above all numbers and which Arrow passes over."""
    NAN = "nan"
    """1 where a double is NaN, 0 where it is another number."""


class Merge(Enum):
    SUM = "sum"
    MIN = "min"
    MAX = "max"


class Part(NamedTuple):
    of: Of
    merge: Merge
    argument: str = ""
    """The name of the column that it is made of."""
    type: Type = LONG
    """Its own."""

    @property
    def name(self) -> str:
        return "_".join(word for word in (self.merge.value, self.of.value, self.argument) if word)


RECORDS: Final = Part(Of.RECORD, Merge.SUM)


def with_leaves(aggregate: BoundAggregate, arguments: dict[str, Bound]) -> BoundAggregate:
    """The same over columns a0, a1, ... that are computed before, so that only those have to travel; each is added to
    `arguments`."""
    if aggregate.parts is not None:
        return replace(aggregate, parts={name: with_leaves(part, arguments) for name, part in aggregate.parts.items()})
    leaves = []
    for argument in aggregate.arguments:
        name = next((name for name, known in arguments.items() if known == argument), f"a{len(arguments)}")
        arguments[name] = argument
        leaves.append(Bound("leaf", argument.type, options=(name,)))
    return replace(aggregate, arguments=tuple(leaves))


def parts_of(aggregate: BoundAggregate) -> tuple[Part, ...] | None:
    """What it is made of, each part once; None: it cannot be merged so. Its arguments have to be leaves."""
    if aggregate.parts is None:
        return _own_parts(aggregate)
    each = [parts_of(part) for part in aggregate.parts.values()]
    if any(parts is None for parts in each):
        return None
    return tuple(dict.fromkeys(part for parts in each for part in parts or ()))


def _own_parts(aggregate: BoundAggregate) -> tuple[Part, ...] | None:
    if not aggregate.arguments:
        return (RECORDS,) if aggregate.kind == "count" else None
    argument = aggregate.arguments[0]
    (name,) = argument.options if argument.function == "leaf" else ("",)
    match aggregate.kind:
        case "count":
            return (present(name),)
        case "sum" | "ksql_sum":
            return total(name, argument.type)
        case "avg" | "ksql_avg":
            summed = total(name, argument.type)
            return None if summed is None else (*summed, present(name))
        case "min":
            return extreme(name, argument.type, Merge.MIN)
        case "max":
            return extreme(name, argument.type, Merge.MAX)
    return None


def present(name: str) -> Part:
    return Part(Of.PRESENT, Merge.SUM, name)


def total(name: str, kind: Type) -> tuple[Part, ...] | None:
    if kind == LONG:
        return Part(Of.HIGH, Merge.SUM, name), Part(Of.LOW, Merge.SUM, name)
    if kind in (INT, DOUBLE):
        return (Part(Of.VALUE, Merge.SUM, name, LONG if kind == INT else DOUBLE),)
    return None  # a decimal that does not fit any more is null, or an error


def extreme(name: str, kind: Type, merge: Merge) -> tuple[Part, ...] | None:
    if kind == DOUBLE:
        return Part(Of.NUMBER, merge, name, DOUBLE), Part(Of.NAN, Merge.MAX, name)
    if kind.name in ("int", "long", "string", "boolean"):
        return (Part(Of.VALUE, merge, name, kind),)
    return None
