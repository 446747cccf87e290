"""Looking up a row of a table: in its store, through whatever makes the table out of what lies there."""

from collections.abc import Callable
from typing import Any

from ottla.streams.expressions import Expression
from ottla.streams.record import NO_TIMESTAMP, Record
from ottla.streams.tasks.operators.base import OperatorContext, evaluator, joiner_of
from ottla.streams.tasks.operators.transforming import transformer
from ottla.streams.tasks.stores.base import Moment
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.tasks.stores.session import Sessions
from ottla.streams.tasks.stores.versioned import Versions
from ottla.streams.tasks.stores.waiting import HeldBack
from ottla.streams.tasks.stores.window import Windows
from ottla.streams.topology.node_types import Types
from ottla.streams.topology.operations import (
    Function,
    Operation,
    Suppress,
    TableFilter,
    TableMapValues,
    TableTableJoin,
    TableTransformValues,
)

Found = tuple[Any, int]
"""A value, which is not None, and its timestamp."""

Lookup = Callable[[Any], Found | None]
"""From a key to the row, None if there is none."""


def lookup(
    context: OperatorContext, store_name: str, view: tuple[Operation, ...], moment: Moment | None = None
) -> Lookup:
    """In a versioned table as of the `moment`, which the caller keeps; without one its latest version."""
    store = context.state_store(store_name)
    types = context.types.table(store_name, ())
    if isinstance(store, KeyValues):
        found = _in_key_values(store)
    elif isinstance(store, Versions):
        found = _in_key_values(store) if moment is None else _in_versions(store, moment)
    elif isinstance(store, Windows):
        found = _in_windows(store)
    else:
        found = _in_sessions(store)
    for operation in view:
        found = _through(context, operation, found, types)
        types = context.types.through(operation, types)
    return found


def _in_key_values(store: KeyValues | Versions) -> Lookup:
    key_bytes, read = store.key_bytes, store.read
    return lambda key: read(key_bytes(key))


def _in_versions(store: Versions, moment: Moment) -> Lookup:
    key_bytes, read = store.key_bytes, store.read_as_of
    return lambda key: read(key_bytes(key), moment.timestamp)


def _in_windows(store: Windows) -> Lookup:
    return lambda key: store.read(store.key_bytes(key.key), key.window.start)


def _in_sessions(store: Sessions) -> Lookup:
    def get(key: Any) -> Found | None:
        value = store.fetch_session(key.key, key.window.start, key.window.end)
        return None if value is None else (value, key.window.end)

    return get


def _through(context: OperatorContext, operation: Operation, inner: Lookup, types: Types) -> Lookup:
    match operation:
        case TableFilter():
            return _filtered(context, operation, inner, types)
        case TableMapValues():
            return _mapped(context, operation, inner, types)
        case TableTransformValues():
            return _transformed(context, operation, inner)
        case TableTableJoin():
            return _joined(context, operation, inner, types)
        case Suppress():
            return _suppressed(context.state_store(operation.store), inner, operation.until_closed)
    raise TypeError(f"{type(operation).__name__} is no part of a table's view")


def _filtered(context: OperatorContext, operation: TableFilter, inner: Lookup, types: Types) -> Lookup:
    call = _call(context, operation.predicate, True, types)
    by_expression = isinstance(operation.predicate, Expression)
    wanted = not operation.negated

    def get(key: Any) -> Found | None:
        found = inner(key)
        if found is None:
            return None
        answer = call(Record(key, *found))
        return found if (answer if by_expression else bool(answer)) is wanted else None

    return get


def _mapped(context: OperatorContext, operation: TableMapValues, inner: Lookup, types: Types) -> Lookup:
    call = _call(context, operation.function, operation.with_key, types)

    def get(key: Any) -> Found | None:
        found = inner(key)
        return None if found is None else _row(call(Record(key, *found)), found[1])

    return get


def _transformed(context: OperatorContext, operation: TableTransformValues, inner: Lookup) -> Lookup:
    """By a transformer of its own. It is asked about rows that are not there, too."""
    transform = transformer(operation.supplier, context).transform

    def get(key: Any) -> Found | None:
        found = inner(key)
        if found is None:
            return _row(transform(key, None), NO_TIMESTAMP)
        return _row(transform(key, found[0]), found[1])

    return get


def _joined(context: OperatorContext, operation: TableTableJoin, inner: Lookup, types: Types) -> Lookup:
    other = lookup(context, operation.other_store, operation.other_view)
    join = joiner_of(context, operation.joiner, operation.with_key, context.types.of_tables(operation, types))
    is_left, outer, other_outer = operation.is_left_side, operation.outer, operation.other_outer

    def get(key: Any) -> Found | None:
        this = inner(key)
        if this is None and not other_outer:
            return None
        that = other(key)
        if that is None and (this is None or not outer):
            return None
        value, time = this or (None, NO_TIMESTAMP)
        other_value, other_time = that or (None, NO_TIMESTAMP)
        record = Record(key, value, max(time, other_time))
        pair = (value, other_value) if is_left else (other_value, value)
        return _row(join(record, *pair), record.timestamp)

    return get


def _suppressed(buffer: HeldBack, inner: Lookup, until_closed: bool) -> Lookup:
    """A row whose new value is held back still has the value it had before; nobody knows since when."""

    def get(key: Any) -> Found | None:
        held, prior = buffer.prior(buffer.key_bytes(key), key.window.end if until_closed else None)
        return _row(prior, NO_TIMESTAMP) if held else inner(key)

    return get


def _row(value: Any, timestamp: int) -> Found | None:
    return None if value is None else (value, timestamp)


def _call(context: OperatorContext, function: Function, with_key: bool, types: Types) -> Callable[[Record], Any]:
    if isinstance(function, Expression):
        return evaluator(context, function, types.named())
    call = function
    return (lambda record: call(record[0], record[1])) if with_key else (lambda record: call(record[1]))
