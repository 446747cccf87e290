"""Operators without state."""

from collections.abc import Callable
from typing import Any, Final

from ottla.streams.expressions import Expression
from ottla.streams.record import Record
from ottla.streams.tasks.operators.base import (
    NO_KEY_FOR_REPARTITION,
    Downstream,
    Operator,
    OperatorContext,
    of_key_and_value,
    of_value,
    predicate,
)
from ottla.streams.topology.operations import (
    Branch,
    DropNullKeys,
    Filter,
    FlatMap,
    FlatMapValues,
    MapPairs,
    MapValues,
    Peek,
    SelectKey,
)

_new: Final[Any] = tuple.__new__
"""Makes a named tuple without the detour over its own __new__: these operators do little else."""


class _Stateless(Operator):
    _forward: Downstream

    def begin(self, context: OperatorContext) -> None:
        self._forward = context.downstream


class Passing(_Stateless):
    def process(self, record: Record) -> None:
        self._forward(record)


class Filtering(_Stateless):
    def __init__(self, operation: Filter) -> None:
        self._operation = operation
        self._holds: Callable[[Record], bool]

    def begin(self, context: OperatorContext) -> None:
        super().begin(context)
        self._holds = predicate(context, self._operation.predicate, self._operation.negated)

    def process(self, record: Record) -> None:
        if self._holds(record):
            self._forward(record)


class MappingValues(_Stateless):
    def __init__(self, operation: MapValues) -> None:
        self._operation = operation
        self._value: Callable[[Record], Any]

    def begin(self, context: OperatorContext) -> None:
        super().begin(context)
        self._value = of_value(context, self._operation.function, self._operation.with_key)

    def process(self, record: Record) -> None:
        self._forward(_new(Record, (record[0], self._value(record), record[2], record[3])))


class MappingPlainValues(_Stateless):
    """The most common case: a callable that is given the value."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        self._forward(_new(Record, (key, self._function(value), timestamp, headers)))


class MappingPairs(_Stateless):
    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def process(self, record: Record) -> None:
        pair = self._function(record[0], record[1])
        if pair is None:
            raise TypeError("the function of map gave None: a pair (key, value) is expected")
        key, value = pair
        self._forward(_new(Record, (key, value, record[2], record[3])))


class MappingByExpressions(_Stateless):
    def __init__(self, operation: MapPairs) -> None:
        self._operation = operation
        self._key: Callable[[Record], Any] | None = None
        self._value: Callable[[Record], Any] | None = None

    def begin(self, context: OperatorContext) -> None:
        super().begin(context)
        operation = self._operation
        self._key = None if operation.key is None else of_key_and_value(context, operation.key)
        self._value = None if operation.value is None else of_key_and_value(context, operation.value)

    def process(self, record: Record) -> None:
        key = record[0] if self._key is None else self._key(record)
        value = record[1] if self._value is None else self._value(record)
        self._forward(_new(Record, (key, value, record[2], record[3])))


class FlatMapping(_Stateless):
    def __init__(self, operation: FlatMap) -> None:
        self._function = operation.function

    def process(self, record: Record) -> None:
        pairs = self._function(record[0], record[1])
        if pairs is None:
            raise TypeError("the function of flat_map gave None: pairs (key, value) are expected, or an empty list")
        forward = self._forward
        _, _, timestamp, headers = record
        for key, value in pairs:
            forward(_new(Record, (key, value, timestamp, headers)))


class FlatMappingValues(_Stateless):
    def __init__(self, operation: FlatMapValues) -> None:
        self._operation = operation
        self._values: Callable[[Record], Any]
        self._null_is_empty = isinstance(operation.function, Expression)

    def begin(self, context: OperatorContext) -> None:
        super().begin(context)
        self._values = of_value(context, self._operation.function, self._operation.with_key)

    def process(self, record: Record) -> None:
        values = self._values(record)
        if values is None:
            if self._null_is_empty:
                return  # as explode does with a null array
            raise TypeError("the function of flat_map_values gave None: values are expected, or an empty list")
        forward = self._forward
        key, _, timestamp, headers = record
        for value in values:
            forward(_new(Record, (key, value, timestamp, headers)))


class SelectingKey(_Stateless):
    def __init__(self, operation: SelectKey) -> None:
        self._operation = operation
        self._key: Callable[[Record], Any]

    def begin(self, context: OperatorContext) -> None:
        super().begin(context)
        self._key = of_key_and_value(context, self._operation.function)

    def process(self, record: Record) -> None:
        self._forward(_new(Record, (self._key(record), record[1], record[2], record[3])))


class Peeking(_Stateless):
    def __init__(self, operation: Peek) -> None:
        self._function = operation.function
        self._last = operation.last

    def process(self, record: Record) -> None:
        self._function(record[0], record[1])
        if not self._last:
            self._forward(record)


class Branching(Operator):
    def __init__(self, operation: Branch) -> None:
        self._operation = operation
        self._ways: list[tuple[Callable[[Record], bool], Downstream]] = []
        self._default: Downstream | None = None

    def begin(self, context: OperatorContext) -> None:
        operation = self._operation
        self._ways = [
            (predicate(context, function), context.child(child))
            for function, child in zip(operation.predicates, operation.children, strict=False)
        ]
        self._default = None if operation.default is None else context.child(operation.default)

    def process(self, record: Record) -> None:
        for holds, forward in self._ways:
            if holds(record):
                forward(record)
                return
        if self._default is not None:
            self._default(record)


class DroppingNullKeys(_Stateless):
    def __init__(self, _operation: DropNullKeys) -> None:
        self._dropped: Callable[[str], None]

    def begin(self, context: OperatorContext) -> None:
        super().begin(context)
        self._dropped = context.dropped

    def process(self, record: Record) -> None:
        if record[0] is None:
            self._dropped(NO_KEY_FOR_REPARTITION)
        else:
            self._forward(record)


def mapping_values(operation: MapValues) -> Operator:
    if operation.with_key or isinstance(operation.function, Expression):
        return MappingValues(operation)
    return MappingPlainValues(operation.function)


def mapping_pairs(operation: MapPairs) -> Operator:
    return MappingByExpressions(operation) if operation.function is None else MappingPairs(operation.function)
