"""Functions that users give: whether they can be called as they will be, told where they are given."""

import inspect
from collections.abc import Callable
from typing import Any

from ottla.streams.expressions import Expression
from ottla.streams.topology.errors import TopologyError
from ottla.streams.topology.operations import (
    Function,
)


def of_value(with_key: bool) -> str:
    """What a function of values is called with."""
    return "key, value" if with_key else "value"


def checked(function: Function | None, what: str, given: str) -> Function:
    """What is neither a callable nor an expression is most likely a result, or an argument in the wrong place.

    `given` names what the callable is called with: `key, value`.
    """
    if isinstance(function, Expression):
        return function
    if function is None or not callable(function):
        raise TopologyError(f"{what} is {function!r}: a function or a column expression is expected")
    _check_parameters(function, what, given)
    return function


def checked_callable(function: Any, what: str, given: str) -> Callable[..., Any]:
    """For what Spark has no column for."""
    if isinstance(function, Expression):
        raise TopologyError(f"{what} is an expression, but here a function is expected")
    if not callable(function):
        raise TopologyError(f"{what} is {function!r}: a function is expected")
    _check_parameters(function, what, given)
    return function  # type: ignore[no-any-return]


def _check_parameters(function: Callable[..., Any], what: str, given: str) -> None:
    """A function with other parameters would fail at the first record, long after it was written."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # some that are written in C do not tell
    try:
        signature.bind(*given.split(", ") if given else ())
    except TypeError:
        code = getattr(function, "__code__", None)
        where = "" if code is None else f" ({code.co_filename.rpartition('/')[2]}, line {code.co_firstlineno})"
        raise TopologyError(f"{what} is called with ({given}), but takes {signature}{where}") from None
