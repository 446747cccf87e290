"""What the analysis of a statement knows of a function: by name, how a call becomes an expression of streams.

A call is made of `Argument`s: each an expression over the row and its type. `Scalar.make` gives the expression, or
raises `Refused` with a sentence that says what would work; analysis adds the place. There is no second tree and no
second evaluation: what comes out is an `Expression` or an `Aggregate` of `ottla.streams.expressions`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ottla.serdes.types import Type
from ottla.sql.arguments import Argument, Refused, literal
from ottla.streams.expressions import Aggregate, Expression

__all__ = ["AggregateFunction", "Argument", "LambdaTypes", "Refused", "Scalar", "TableFunction", "literal"]

LambdaTypes: TypeAlias = Callable[[Sequence[Type]], Sequence[Sequence[Type]]]
"""From the types of the plain arguments to those of the parameters of each lambda."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A function of one row."""

    name: str
    make: Callable[[Sequence[Argument]], Expression]
    signatures: tuple[str, ...] = ()
    """As a reader would write them, for DESCRIBE FUNCTION and messages: "(STRING, INT) → STRING"."""
    about: str = ""
    lambda_types: LambdaTypes | None = None
    """Of functions that take lambdas."""
    unit_first: bool = False
    """Whether its first argument is a unit of time: TIMESTAMPADD(HOURS, 1, t). It is given as a string literal, in
    milliseconds' words: "HOURS"."""


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """A function of many rows. What its arguments may be is decided by `make`."""

    name: str
    make: Callable[[Sequence[Argument]], Aggregate]
    signatures: tuple[str, ...] = ()
    about: str = ""
    undo: bool = False
    """Whether it may aggregate a table."""


@dataclass(frozen=True, slots=True)
class TableFunction:
    """A function that makes rows: `make` gives an array, one row for each item."""

    name: str
    make: Callable[[Sequence[Argument]], Expression]
    signatures: tuple[str, ...] = ()
    about: str = ""
