"""Functions that take lambdas: FILTER(prices, p => p > 10)."""

from collections.abc import Sequence
from typing import Final

from ottla.serdes.types import BOOLEAN, NULL, STRING, Type
from ottla.sql.functions.declare import Argument, LambdaTypes, Refused, Scalar
from ottla.sql.functions.signatures import Signature, chosen
from ottla.sql.types import sql_text
from ottla.streams.expressions import Expression
from ottla.streams.expressions import bound as declared
from ottla.streams.expressions.bound import Bound


def _types(function: str) -> LambdaTypes:
    def types(given: Sequence[Type]) -> Sequence[Sequence[Type]]:
        lambda_types = declared.FUNCTIONS[function].lambda_types
        assert lambda_types is not None
        try:
            return lambda_types([Bound("leaf", kind) for kind in given])
        except declared.Refused:
            raise Refused(f"it takes an ARRAY or a MAP first, not {sql_text(given[0])}") from None

    return types


def _function(name: str, function: str, signatures: tuple[str, ...], gives: Type | None, about: str) -> Scalar:
    known = [Signature.parse(each) for each in signatures]

    def make(args: Sequence[Argument]) -> Expression:
        made = chosen(name, known, args)
        for each in made:
            if each.is_lambda and gives is not None and each.type not in (gives, NULL):
                raise Refused(f"{name} wants a lambda that gives {sql_text(gives)}, not {sql_text(each.type)}")
        if name == "TRANSFORM" and len(made) == 3 and made[1].type not in (STRING, NULL):
            raise Refused(f"the keys of a MAP are STRING, not {sql_text(made[1].type)}; CAST them AS STRING")
        return Expression(function, [each.expression for each in made])

    return Scalar(name, make, signatures, about, _types(function))


_FILTER: Final = ("ARRAY<T>, LAMBDA -> ARRAY<T>", "MAP<STRING, T>, LAMBDA -> MAP<STRING, T>")
_TRANSFORM: Final = ("ARRAY<T>, LAMBDA -> ARRAY<U>", "MAP<STRING, T>, LAMBDA, LAMBDA -> MAP<STRING, U>")
_REDUCE: Final = ("ARRAY<T>, U, LAMBDA -> U", "MAP<STRING, T>, U, LAMBDA -> U")

FUNCTIONS: Final = {
    each.name: each
    for each in (
        _function("FILTER", "filter", _FILTER, BOOLEAN, "The items, or entries, for which the lambda is true."),
        _function(
            "TRANSFORM",
            "transform",
            _TRANSFORM,
            None,
            "What the lambda makes of each item; of a MAP one for keys and one for values, both given (key, value).",
        ),
        _function(
            "REDUCE",
            "reduce",
            _REDUCE,
            None,
            "What is left when the lambda has put each item to what it made of those before, from a beginning on.",
        ),
    )
}
