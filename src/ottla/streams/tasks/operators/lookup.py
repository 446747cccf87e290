"""Looking up a row of a table: in its store, through whatever makes the table out of what lies there."""

from collections.abc import Callable
from typing import Any

from ottla.serdes.types import ANY, windowed
from ottla.streams.expressions import Expression
from ottla.streams.record import NO_TIMESTAMP, Record
from ottla.streams.tasks.operators.base import OperatorContext, evaluator
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.tasks.stores.session import Sessions
from ottla.streams.tasks.stores.waiting import HeldBack
from ottla.streams.tasks.stores.window import Windows
from ottla.streams.topology.node_types import Types
from ottla.streams.topology.operations import Function, Operation, Suppress, TableFilter, TableMapValues

Lookup = Callable[[Any], Any]
"""From a key to the value, None if there is none."""


def lookup(context: OperatorContext, store_name: str, view: tuple[Operation, ...]) -> Lookup:
    store = context.state_store(store_name)
    types = context.types.store(store_name)
    if isinstance(store, KeyValues):
        found = _in_key_values(store)
    elif isinstance(store, Windows):
        found, types = _in_windows(store), Types(windowed(types.key), types.value)
    else:
        found, types = _in_sessions(store), Types(windowed(types.key), types.value)
    for operation in view:
        found, types = _through(context, operation, found, types)
    return found


def _in_key_values(store: KeyValues) -> Lookup:
    def get(key: Any) -> Any:
        found = store.read(store.key_bytes(key))
        return None if found is None else found[0]

    return get


def _in_windows(store: Windows) -> Lookup:
    def get(key: Any) -> Any:
        found = store.read(store.key_bytes(key.key), key.window.start)
        return None if found is None else found[0]

    return get


def _in_sessions(store: Sessions) -> Lookup:
    return lambda key: store.fetch_session(key.key, key.window.start, key.window.end)


def _through(context: OperatorContext, operation: Operation, inner: Lookup, types: Types) -> tuple[Lookup, Types]:
    match operation:
        case TableFilter():
            return _filtered(context, operation, inner, types), types
        case TableMapValues():
            function = operation.function
            made = function.bind(types.named()).type if isinstance(function, Expression) else ANY
            return _mapped(context, operation, inner, types), Types(types.key, made)
        case Suppress():
            return _suppressed(context.state_store(operation.store), inner), types
    raise TypeError(f"{type(operation).__name__} is no part of a table's view")


def _filtered(context: OperatorContext, operation: TableFilter, inner: Lookup, types: Types) -> Lookup:
    call = _call(context, operation.predicate, True, types)
    by_expression = isinstance(operation.predicate, Expression)
    wanted = not operation.negated

    def get(key: Any) -> Any:
        value = inner(key)
        if value is None:
            return None
        answer = call(Record(key, value, NO_TIMESTAMP))
        return value if (answer if by_expression else bool(answer)) is wanted else None

    return get


def _mapped(context: OperatorContext, operation: TableMapValues, inner: Lookup, types: Types) -> Lookup:
    call = _call(context, operation.function, operation.with_key, types)

    def get(key: Any) -> Any:
        value = inner(key)
        return None if value is None else call(Record(key, value, NO_TIMESTAMP))

    return get


def _suppressed(buffer: HeldBack, inner: Lookup) -> Lookup:
    """A row whose new value is held back still has the value it had before."""

    def get(key: Any) -> Any:
        held, prior = buffer.prior(key.window.end, buffer.key_bytes(key))
        return prior if held else inner(key)

    return get


def _call(context: OperatorContext, function: Function, with_key: bool, types: Types) -> Callable[[Record], Any]:
    if isinstance(function, Expression):
        return evaluator(context, function, types.named())
    call = function
    return (lambda record: call(record[0], record[1])) if with_key else (lambda record: call(record[1]))
