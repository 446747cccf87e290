"""From one type to another: what is said with `.cast(...)`, and what binding writes in by itself."""

from collections.abc import Sequence
from typing import Any, Final

from ottla.serdes.casts import caster
from ottla.serdes.types import NULL
from ottla.streams.expressions.bound import Bound, Evaluator, Refused
from ottla.streams.expressions.functions.declare import family, one

declare: Final = family("structure")


def _cast(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    """A literal is converted on the spot."""
    (node,), (wanted,) = args, options
    if node.type == wanted:
        return node
    if node.type == NULL:
        return Bound("lit", wanted, options=(None,))
    if caster(node.type, wanted) is None:
        raise Refused(f"{node.type} cannot become {wanted}")
    cast = Bound("cast", wanted, (node,))
    if node.function == "lit":
        return Bound("lit", wanted, options=(cast.evaluator()(None),))
    return cast


def _build(node: Bound, args: list[Evaluator]) -> Evaluator:
    convert = caster(node.args[0].type, node.type)
    assert convert is not None, "binding let through a cast that there is not"
    return one(convert, args[0])


declare(
    "cast",
    "subject, type",
    _cast,
    build=_build,
    typed_column=lambda spark, node, args: spark.cast(args[0], node.args[0].type, node.type),
    about="To another type; what cannot be converted becomes null.",
)
