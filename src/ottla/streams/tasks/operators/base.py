"""What every operator builds on: how it is told where it stands, and how functions become calls on records."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from ottla.serdes.types import Type
from ottla.streams.expressions import Expression, Inputs
from ottla.streams.record import Record, RecordMetadata
from ottla.streams.topology.node_types import NodeTypes
from ottla.streams.topology.operations import Function
from ottla.streams.topology.processor import Processor, ProcessorContext

Downstream = Callable[[Record], None]

Joiner = Callable[[Record, Any, Any], Any]
"""(record of this side, left value, right value)"""

NULL_KEY: Final = "null-key"
NULL_KEY_OR_VALUE: Final = "null-key-or-value"
LATE: Final = "late-record"
NO_KEY_FOR_REPARTITION: Final = "null-key-before-repartition"

IN_A_RECORD: Final = frozenset({"key", "value", "timestamp", "headers"})


class OperatorContext(ProcessorContext, Protocol):
    """A processor's context with what only our own operators need."""

    @property
    def node_name(self) -> str: ...
    @property
    def downstream(self) -> Downstream:
        """Hands a record to all children. Bound once: with one child it is that child itself."""

    @property
    def types(self) -> NodeTypes: ...

    def child(self, name: str) -> Downstream: ...

    def shared(self, name: str, make: Callable[[], Any]) -> Any:
        """An object that several operators of the task share; the first to ask makes it."""

    def at_batch_end(self, action: Callable[[], bool]) -> None:
        """What waits for the end of a batch, before caches are emptied. Says whether there was something: then others
        behind it may have something now."""

    def at_commit(self, action: Callable[[], None]) -> None:
        """Something to be done whenever the task commits, before the stores are written."""

    def set_record_metadata(self, metadata: RecordMetadata | None) -> None:
        """For operators that hand on a record that came earlier."""


class Operator(Processor):
    """A processor of our own. `saved` is what has to survive from one micro-batch to the next besides the stores."""

    __slots__ = ()

    def init(self, context: ProcessorContext) -> None:
        # A task gives its own operators the wider context.
        self.begin(context)  # type: ignore[arg-type]

    @abstractmethod
    def begin(self, context: OperatorContext) -> None: ...

    def saved(self) -> list[int]:
        return []

    def restore(self, saved: list[int]) -> None:
        pass

    def resume(self, latest: Mapping[str, int]) -> None:
        """Its stores came from changelogs; the latest timestamp in each is given by the name of the store."""


def evaluator(context: OperatorContext, expression: Expression, types: Mapping[str, Type]) -> Callable[[Any], Any]:
    """From a record to the value of an expression."""
    run = expression.compile(types)
    if expression.leaves() <= IN_A_RECORD:
        return run

    def with_origin(record: Any) -> Any:
        return run(inputs(record, context.record_metadata(), context.current_system_time_ms()))

    return with_origin


def inputs(record: Record, origin: RecordMetadata | None, now: int, left: Any = None, right: Any = None) -> Inputs:
    topic, partition, offset = (None, None, None) if origin is None else origin
    return Inputs(*record, topic, partition, offset, left, right, now)


def of_key_and_value(context: OperatorContext, function: Function) -> Callable[[Record], Any]:
    """A function (key, value), as a call on the record."""
    if isinstance(function, Expression):
        return evaluator(context, function, context.types.given[context.node_name].named())
    call = function
    return lambda record: call(record[0], record[1])


def of_value(context: OperatorContext, function: Function, with_key: bool) -> Callable[[Record], Any]:
    """A function (value), or (key, value), as a call on the record."""
    if with_key or isinstance(function, Expression):
        return of_key_and_value(context, function)
    call = function
    return lambda record: call(record[1])


def predicate(context: OperatorContext, function: Function, negated: bool = False) -> Callable[[Record], bool]:
    """An expression holds when it is true, and its opposite when it is false: null is neither."""
    if isinstance(function, Expression):
        run = of_key_and_value(context, function)
        wanted = not negated
        return lambda record: run(record) is wanted
    call = function
    if negated:
        return lambda record: not call(record[0], record[1])
    return lambda record: bool(call(record[0], record[1]))


def joiner_of(context: OperatorContext, function: Function, with_key: bool, types: Mapping[str, Type]) -> Joiner:
    """A function (left value, right value), or with the key in front. `types` are those that an expression sees."""
    if isinstance(function, Expression):
        run = function.compile(types)
        metadata, now = context.record_metadata, context.current_system_time_ms
        return lambda record, left, right: run(inputs(record, metadata(), now(), left, right))
    call = function
    if with_key:
        return lambda record, left, right: call(record[0], left, right)
    return lambda _, left, right: call(left, right)
