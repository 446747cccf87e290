"""Functions that make rows of an array, one for each item."""

from collections.abc import Callable, Sequence
from typing import Final

from ottla.sql.functions.declare import Argument, TableFunction
from ottla.sql.functions.signatures import Signature, chosen
from ottla.streams import expressions as e
from ottla.streams.expressions import Expression


def _function(name: str, build: Callable[[Expression], Expression], signature: str, about: str) -> TableFunction:
    def make(args: Sequence[Argument]) -> Expression:
        (subject,) = chosen(name, [Signature.parse(signature)], args)
        return build(subject.expression)

    return TableFunction(name, make, (signature,), about)


FUNCTIONS: Final = {
    each.name: each
    for each in (
        _function("EXPLODE", lambda given: given, "ARRAY<T> -> T", "A row for each item; none for null."),
        _function(
            "CUBE_EXPLODE",
            e.ksql_cube,
            "ARRAY<T> -> ARRAY<T>",
            "A row for each way to replace items by null.",
        ),
    )
}
