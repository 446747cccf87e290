"""Whether timestamps of a source depend on those of records before them: then they outlive a micro-batch, in a task."""

import dis
import inspect
from collections.abc import Callable
from typing import Any

from ottla.streams.expressions import Expression
from ottla.streams.topology.graph import InvalidTimestamp, TimestampExtractor


def needs_partition_time(extractor: TimestampExtractor) -> bool:
    if extractor.on_invalid is InvalidTimestamp.PARTITION_TIME:
        return True
    function = extractor.function
    return function is not None and not isinstance(function, Expression) and _may_use_last(function)


def _may_use_last(function: Callable[..., Any]) -> bool:
    """Whether a function may look at its last parameter, the partition's time. Most extractors take it and never do,
    and are faster without a task. What cannot be looked into may."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARARGS or not code.co_argcount:
        return True
    last = code.co_varnames[code.co_argcount - 1]
    # Newer versions of Python load two variables by one instruction, whose argument is then a pair.
    loaded = [each.argval for each in dis.get_instructions(code)]
    return any(last == each or (isinstance(each, tuple) and last in each) for each in loaded)
