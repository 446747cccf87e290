"""A part of a statement with its type: what operators, conversions and functions take and give."""

from typing import Any, NamedTuple

from ottla.serdes.types import NULL, Type, literal_type
from ottla.streams.expressions import Expression, lit


class Refused(Exception):
    """A function cannot take these arguments. The message says what it takes."""


class Argument(NamedTuple):
    """An argument with its type. A literal is an expression whose `function` is "lit"; a lambda has the type of what
    it gives, and its `function` is "lambda"."""

    expression: Expression
    type: Type

    @property
    def is_literal(self) -> bool:
        return self.expression.function == "lit"

    @property
    def is_lambda(self) -> bool:
        return self.expression.function == "lambda"

    @property
    def constant(self) -> Any:
        """Of a literal."""
        return self.expression.options[0]

    @property
    def is_null(self) -> bool:
        """Whether it is the literal NULL, which goes with every type."""
        return self.type == NULL


def literal(constant: Any, kind: Type) -> Argument:
    """Of a value that is one of the type already. One that would be read as another type by itself says which it is,
    and is no literal any more."""
    if literal_type(constant) in (kind, NULL):
        return Argument(lit(constant), kind)
    return Argument(Expression("cast", (lit(constant),), (kind,)), kind)
