"""Aggregates of grouped tables by expressions, which can take back what they were given."""

from ottla.streams.expressions.folds import FoldFunctions
from ottla.streams.record import Change, Record
from ottla.streams.tasks.operators.aggregates import FOLD_SUFFIX
from ottla.streams.tasks.operators.base import Downstream, Operator, OperatorContext
from ottla.streams.tasks.operators.tables import TableAggregating, TableStore
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.topology.operations import TableAggregate
from ottla.streams.topology.stores import IS_LATEST, NOT_PUT


class TableFolding(Operator):
    """As TableAggregating: what a row was is taken back from the state, what it is is added."""

    _forward: Downstream
    _store: TableStore
    _fold: FoldFunctions

    def __init__(self, operation: TableAggregate) -> None:
        self._operation = operation
        self._states: KeyValues | None = None

    def begin(self, context: OperatorContext) -> None:
        operation = self._operation
        assert operation.native is not None
        self._forward = context.downstream
        self._store = context.state_store(operation.store)
        self._fold = operation.native.bind(context.types.given[context.node_name].named()).fold(undo=True)
        if operation.native.keeps_state(undo=True):
            self._states = context.state_store(operation.store + FOLD_SUFFIX)

    def process(self, record: Record) -> None:
        key, change, timestamp, headers = record
        if key is None:
            raise ValueError(f"a record for the aggregate {self._operation.store} of a table has no key")
        fold, states = self._fold, self._states
        name = self._store.key_bytes(key)
        found = self._store.read(name)
        old = None if found is None else found[0]
        kept = states.read(name) if states is not None else None if found is None else (fold.resume(old), found[1])
        state, at = (fold.initial(), timestamp) if kept is None else (kept[0], max(timestamp, kept[1]))
        if change.old is not None and kept is not None:
            state = fold.undo(state, record.with_value(change.old))
        if change.new is not None:
            state = fold.add(state, record.with_value(change.new))
        if states is not None:
            states.write(name, state, at)
        new = fold.result(state)
        written = self._store.write(name, new, at)
        if written != NOT_PUT:
            shown = old if self._operation.send_old else None
            self._forward(Record(key, Change(new, shown, written == IS_LATEST), at, headers))


def table_aggregating(operation: TableAggregate) -> Operator:
    return TableAggregating(operation) if operation.native is None else TableFolding(operation)
