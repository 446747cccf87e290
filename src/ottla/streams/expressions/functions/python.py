"""A call of Python code that is not declared here: functions that users of SQL write. It has no column."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.serdes.json import json_writer
from ottla.serdes.types import Type
from ottla.streams.expressions.bound import Bound, Evaluator
from ottla.streams.expressions.expression import Expression
from ottla.streams.expressions.functions.declare import FAILURES, family

__all__: list[str] = []
declare: Final = family("python")


def _rule(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    return Bound(name, options[1], tuple(args), options)


def _build(node: Bound, args: list[Evaluator]) -> Evaluator:
    """What it gives has to be of the type that it was declared with; what is not is null, as all that fails."""
    call, kind = node.options
    check = json_writer(kind)

    def evaluate(inputs: Any) -> Any:
        given = [each(inputs) for each in args]
        if None in given:
            return None
        try:
            made = call(*given)
            check(made)
        except FAILURES:
            return None
        return made

    return evaluate


declare("python_call", "*arguments", _rule, build=_build, about="A function of the user's own.")


def python_call(call: Callable[..., Any], gives: Type, arguments: Sequence[Expression]) -> Expression:
    return Expression("python_call", tuple(arguments), (call, gives))
