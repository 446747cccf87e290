"""Joins of tables by foreign key (KIP-213, KIP-775): subscriptions, the store of them, answers.

A row with a foreign key subscribes to it, in the partition where the other table has that key. It is answered at once,
and whenever that key changes; answers come back to the partition of the row, where its present value is.
"""

from collections.abc import Callable
from typing import Any, Final

from ottla.serdes.base import Serde
from ottla.streams.record import NO_TIMESTAMP, Record, RecordMetadata
from ottla.streams.tasks.murmur3 import hash128
from ottla.streams.tasks.operators.base import (
    NULL_KEY,
    Downstream,
    Joiner,
    Operator,
    OperatorContext,
    joiner_of,
    of_value,
)
from ottla.streams.tasks.operators.lookup import Lookup, lookup
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.tasks.subscriptions import (
    Instruction,
    Response,
    Subscription,
    SubscriptionSerde,
    prefix_of,
    subscriber_of,
)
from ottla.streams.topology.operations import (
    ForeignTableJoin,
    ResponseJoin,
    SubscriptionJoin,
    SubscriptionReceive,
    SubscriptionSend,
)

NULL_FOREIGN_KEY: Final = "null-foreign-key"
STALE_RESPONSE: Final = "stale-foreign-key-response"


def _known(serde: Serde[Any] | None) -> Serde[Any]:
    assert serde is not None, "serde_defaults fills them in, or the topology is refused"
    return serde


class Sending(Operator):
    """Which subscriptions a change of a row brings about, and ends."""

    _forward: Downstream
    _dropped: Callable[[str], None]
    _metadata: Callable[[], RecordMetadata | None]
    _foreign_key: Callable[[Record], Any]

    def __init__(self, operation: SubscriptionSend) -> None:
        self._operation = operation
        self._value = _known(operation.serdes.value).encode
        self._key_bytes = _known(operation.serdes.foreign_key).encode
        self._task_partition = 0

    def begin(self, context: OperatorContext) -> None:
        self._forward = context.downstream
        self._dropped = context.dropped
        self._metadata = context.record_metadata
        self._foreign_key = of_value(context, self._operation.foreign_key, self._operation.with_key)
        self._task_partition = int(context.task_id.rpartition("_")[2])

    def process(self, record: Record) -> None:
        new, old, is_latest = record.value
        if self._operation.versioned and not is_latest:
            return
        old_key = None if old is None else self._foreign_key(record.with_value(old))
        new_key = None if new is None else self._foreign_key(record.with_value(new))
        if self._operation.left:
            instructions = self._left_join(new, old, new_key, old_key)
        else:
            instructions = self._inner_join(new, new_key, old_key)
        if not instructions:
            return
        value_hash = None if new is None else hash128(self._value(new))
        metadata = self._metadata()
        partition = self._task_partition if metadata is None else metadata.partition
        for foreign_key, instruction in instructions:
            subscription = Subscription(value_hash, instruction, record.key, partition)
            self._forward(Record(foreign_key, subscription, record.timestamp, record.headers))

    def _left_join(self, new: Any, old: Any, new_key: Any, old_key: Any) -> list[tuple[Any, Instruction]]:
        """An answer is needed in any case; without a foreign key it comes from whoever gets the question."""
        if new is None and old is None:
            return []
        always = (new_key, Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE)
        if old_key is not None and self._changed(new_key, old_key):
            return [(old_key, Instruction.DELETE_KEY_NO_PROPAGATE), always]
        return [always]

    def _inner_join(self, new: Any, new_key: Any, old_key: Any) -> list[tuple[Any, Instruction]]:
        if new is not None and new_key is None:
            self._dropped(NULL_FOREIGN_KEY)
        if new_key is None:
            return [] if old_key is None else [(old_key, Instruction.DELETE_KEY_AND_PROPAGATE)]
        if old_key is not None and self._changed(new_key, old_key):
            return [
                (old_key, Instruction.DELETE_KEY_NO_PROPAGATE),
                (new_key, Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE),
            ]
        return [(new_key, Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE)]

    def _changed(self, new_key: Any, old_key: Any) -> bool:
        return new_key is None or self._key_bytes(new_key) != self._key_bytes(old_key)


class Receiving(Operator):
    """Keeps subscriptions, and hands each on."""

    _forward: Downstream
    _store: KeyValues
    _dropped: Callable[[str], None]

    def __init__(self, operation: SubscriptionReceive) -> None:
        self._operation = operation
        key_serde = _known(operation.serdes.key)
        self._key = key_serde.encode
        self._foreign_key = _known(operation.serdes.foreign_key).encode
        self._subscription = SubscriptionSerde(key_serde).encode

    def begin(self, context: OperatorContext) -> None:
        self._forward = context.downstream
        self._dropped = context.dropped
        self._store = context.state_store(self._operation.store)

    def process(self, record: Record) -> None:
        foreign_key, subscription, timestamp, headers = record
        if foreign_key is not None:
            name = prefix_of(self._foreign_key(foreign_key)) + self._key(subscription.key)
            ends = subscription.instruction <= Instruction.DELETE_KEY_AND_PROPAGATE
            self._store.write(name, None if ends else self._subscription(subscription), timestamp, headers)
        elif subscription.instruction is not Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE:
            self._dropped(NULL_FOREIGN_KEY)
            return
        self._forward(record)


class Answering(Operator):
    """A subscription is answered with what there is under the foreign key."""

    _forward: Downstream
    _lookup: Lookup

    def __init__(self, operation: SubscriptionJoin) -> None:
        self._operation = operation

    def begin(self, context: OperatorContext) -> None:
        self._forward = context.downstream
        self._lookup = lookup(context, self._operation.foreign_store, self._operation.foreign_view)

    def process(self, record: Record) -> None:
        foreign_key, (value_hash, instruction, key, partition, _), timestamp, headers = record
        found = None if foreign_key is None else self._lookup(foreign_key)
        value, time = found or (None, NO_TIMESTAMP)
        match instruction:
            case Instruction.DELETE_KEY_NO_PROPAGATE:
                return
            case Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE if found is None:
                return
            case Instruction.DELETE_KEY_AND_PROPAGATE:
                value = None
        self._forward(Record(key, Response(value_hash, value, partition), max(timestamp, time), headers))


class Telling(Operator):
    """A change of the other table is told to all rows that subscribed to it."""

    _forward: Downstream
    _store: KeyValues
    _dropped: Callable[[str], None]

    def __init__(self, operation: ForeignTableJoin) -> None:
        self._operation = operation
        key_serde = _known(operation.serdes.key)
        self._key_of = key_serde.decode
        self._foreign_key = _known(operation.serdes.foreign_key).encode
        self._subscription_of = SubscriptionSerde(key_serde).decode

    def begin(self, context: OperatorContext) -> None:
        self._forward = context.downstream
        self._dropped = context.dropped
        self._store = context.state_store(self._operation.store)

    def process(self, record: Record) -> None:
        foreign_key, change, timestamp, headers = record
        if foreign_key is None:
            self._dropped(NULL_KEY)
            return
        if self._operation.versioned and not change.is_latest:
            return
        for name, (data, _) in self._store.prefix_scan(prefix_of(self._foreign_key(foreign_key))):
            subscription = self._subscription_of(data)
            response = Response(subscription.hash, change.new, subscription.partition)
            self._forward(Record(self._key_of(subscriber_of(name)), response, timestamp, headers))


class Resolving(Operator):
    """Answers become results, unless the row is another one by now: its own answer is on the way then."""

    _forward: Downstream
    _dropped: Callable[[str], None]
    _join: Joiner
    _lookup: Lookup

    def __init__(self, operation: ResponseJoin) -> None:
        self._operation = operation
        self._left = operation.left
        self._value = _known(operation.serdes.value).encode

    def begin(self, context: OperatorContext) -> None:
        operation = self._operation
        self._forward = context.downstream
        self._dropped = context.dropped
        types = context.types.joined(context.node_name, operation)
        self._join = joiner_of(context, operation.joiner, operation.with_key, types)
        self._lookup = lookup(context, operation.table_store, operation.view)

    def process(self, record: Record) -> None:
        key, (value_hash, foreign_value, _), timestamp, headers = record
        found = self._lookup(key)
        value = None if found is None else found[0]
        if value_hash != (None if value is None else hash128(self._value(value))):
            self._dropped(STALE_RESPONSE)
            return
        result = None
        if foreign_value is not None or (self._left and value is not None):
            result = self._join(record.with_value(value), value, foreign_value)
        self._forward(Record(key, result, timestamp, headers))
