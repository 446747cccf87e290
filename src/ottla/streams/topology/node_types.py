"""Which types the records between nodes have: what expressions are bound with. `any` where nobody can tell."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.serdes.types import ANY, LONG, Type, windowed
from ottla.streams.expressions import Expression, ExpressionError
from ottla.streams.topology.graph import Graph, Node, ProcessorNode, SinkNode, SourceNode
from ottla.streams.topology.operations import (
    FlatMap,
    FlatMapValues,
    ForeignTableJoin,
    Function,
    MapPairs,
    MapValues,
    Operation,
    ResponseJoin,
    SelectKey,
    SessionAggregate,
    SlidingAggregate,
    StreamAggregate,
    StreamGlobalJoin,
    StreamSelfJoin,
    StreamStreamJoin,
    StreamTableJoin,
    SubscriptionJoin,
    SubscriptionSend,
    TableAggregate,
    TableMapValues,
    TableRepartitionMap,
    TableSource,
    TableTableJoin,
    TableToStream,
    TableTransformValues,
    UnlimitedAggregate,
    UserProcessor,
    WindowAggregate,
)
from ottla.streams.topology.stores import StoreKind

if TYPE_CHECKING:
    from ottla.serdes.base import Serde


class Types(NamedTuple):
    key: Type
    value: Type

    def named(self) -> dict[str, Type]:
        return {"key": self.key, "value": self.value}


UNKNOWN = Types(ANY, ANY)

Join = StreamStreamJoin | StreamSelfJoin | StreamTableJoin | StreamGlobalJoin | TableTableJoin | ResponseJoin


def type_of(serde: "Serde[Any] | None") -> Type:
    found = getattr(serde, "type", None)
    return found if isinstance(found, Type) else ANY


class NodeTypes:
    """`given[name]` are the types of the records that reach a node, `result[name]` of those that leave it."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.given: dict[str, Types] = {}
        self.result: dict[str, Types] = {}
        for node in graph.nodes.values():
            try:
                self._add(node)
            except ExpressionError as error:
                raise ExpressionError(f"{node.name}: {error}") from None

    def store(self, name: str) -> Types:
        spec = self._graph.stores.get(name)
        if spec is None:
            spec = self._graph.global_tables[name].store
        return Types(type_of(spec.key_serde), type_of(spec.value_serde))

    def table(self, store: str, view: tuple[Operation, ...]) -> Types:
        """Of a table that is looked up: what lies in its store, and what is made of that."""
        types = self.store(store)
        spec = self._graph.stores.get(store)
        if spec is not None and spec.kind in (StoreKind.WINDOW, StoreKind.SESSION):
            types = Types(windowed(types.key), types.value)
        for operation in view:
            types = self.through(operation, types)
        return types

    def through(self, operation: Operation, types: Types) -> Types:
        """What a step of a view makes of a table with these types."""
        match operation:
            case TableMapValues(function=function):
                return Types(types.key, _of(function, types.named()))
            case TableTransformValues():
                return Types(types.key, ANY)
            case TableTableJoin(joiner=joiner):
                return Types(types.key, _of(joiner, self.of_tables(operation, types)))
        return types

    def made(self, function: Function, types: Types) -> Type:
        """What a function makes of a record with these types; `any` for a Python function."""
        return _of(function, types.named())

    def of_tables(self, operation: TableTableJoin, own: Types) -> dict[str, Type]:
        other = self.table(operation.other_store, operation.other_view).value
        left, right = (own.value, other) if operation.is_left_side else (other, own.value)
        return {"key": own.key, "value": own.value, "left": left, "right": right}

    def joined(self, name: str, operation: "Join") -> dict[str, Type]:
        """What a joiner sees. The key is the stream's."""
        own = self.given[name]
        match operation:
            case TableTableJoin():
                return self.of_tables(operation, own)
            case StreamStreamJoin():
                other = self.store(operation.other_store).value
                left, right = (own.value, other) if operation.is_left_side else (other, own.value)
            case StreamSelfJoin():
                left = right = own.value
            case StreamTableJoin():
                left, right = own.value, self.table(operation.table_store, operation.view).value
            case StreamGlobalJoin():
                left, right = own.value, self.store(operation.table_store).value
            case ResponseJoin():
                left, right = self.table(operation.table_store, operation.view).value, own.value
        return {"key": own.key, "value": own.value, "left": left, "right": right}

    def _add(self, node: Node) -> None:
        if isinstance(node, SourceNode):
            own = Types(type_of(node.key_serde), type_of(node.value_serde))
            self.given[node.name] = self.result[node.name] = own
            return
        parents = [self.result[parent] for parent in node.parents]
        keys = {parent.key for parent in parents}
        values = {parent.value for parent in parents}
        given = Types(keys.pop() if len(keys) == 1 else ANY, values.pop() if len(values) == 1 else ANY)
        self.given[node.name] = given
        if isinstance(node, ProcessorNode):
            rule = _RULES.get(type(node.operation))
            self.result[node.name] = given if rule is None else rule(self, node.name, node.operation, given)
        elif isinstance(node, SinkNode):
            self.result[node.name] = given


def _of(function: Function | None, types: Mapping[str, Type]) -> Type:
    return function.bind(types).type if isinstance(function, Expression) else ANY


def _map_values(_: NodeTypes, _name: str, operation: Any, given: Types) -> Types:
    return Types(given.key, _of(operation.function, given.named()))


def _map_pairs(_: NodeTypes, _name: str, operation: Any, given: Types) -> Types:
    if operation.function is not None:
        return UNKNOWN
    types = given.named()
    key = given.key if operation.key is None else _of(operation.key, types)
    return Types(key, given.value if operation.value is None else _of(operation.value, types))


def _flat_map_values(_: NodeTypes, _name: str, operation: Any, given: Types) -> Types:
    made = _of(operation.function, given.named())
    return Types(given.key, made.element or ANY)


def _select_key(_: NodeTypes, _name: str, operation: Any, given: Types) -> Types:
    return Types(_of(operation.function, given.named()), given.value)


def _to_stream(_: NodeTypes, _name: str, operation: Any, given: Types) -> Types:
    if operation.select_key is None:
        return given
    return Types(_of(operation.select_key, given.named()), given.value)


def _user(_: NodeTypes, _name: str, operation: Any, given: Types) -> Types:
    return Types(given.key if operation.fixed_key else ANY, ANY)


def _unknown(_: NodeTypes, _name: str, _operation: Any, _given: Types) -> Types:
    return UNKNOWN


def _table_source(types: NodeTypes, _name: str, operation: Any, given: Types) -> Types:
    return given if operation.store is None else _known(types.store(operation.store), given)


def _aggregate(types: NodeTypes, _name: str, operation: Any, given: Types) -> Types:
    fold = operation.fold
    made = LONG if fold.kind == "count" else ANY
    if fold.native is not None:
        made = fold.native.bind(given.named()).type
    known = _known(types.store(operation.store), Types(given.key, made))
    key = known.key if isinstance(operation, StreamAggregate) else windowed(known.key)
    return Types(key, known.value)


def _table_aggregate(types: NodeTypes, _name: str, operation: Any, given: Types) -> Types:
    made = LONG if operation.kind == "count" else ANY
    if operation.native is not None:
        made = operation.native.bind(given.named()).type
    return _known(types.store(operation.store), Types(given.key, made))


def _joined(types: NodeTypes, name: str, operation: Any, given: Types) -> Types:
    return Types(given.key, _of(operation.joiner, types.joined(name, operation)))


def _transformed(_: NodeTypes, _name: str, _operation: Any, given: Types) -> Types:
    return Types(given.key, ANY)


def _subscribed(_: NodeTypes, _name: str, operation: Any, given: Types) -> Types:
    """A subscription is under the foreign key and holds the key."""
    return Types(type_of(operation.serdes.foreign_key), given.key)


def _answered(types: NodeTypes, _name: str, operation: Any, given: Types) -> Types:
    """What was received is under the foreign key, and its value a subscription, which holds the key."""
    return Types(given.value, types.table(operation.foreign_store, operation.foreign_view).value)


def _told(_: NodeTypes, _name: str, operation: Any, given: Types) -> Types:
    return Types(type_of(operation.serdes.key), given.value)


def _known(first: Types, second: Types) -> Types:
    return Types(second.key if first.key == ANY else first.key, second.value if first.value == ANY else first.value)


_Rule = Callable[[NodeTypes, str, Any, Types], Types]

_RULES: dict[type[Operation], _Rule] = {
    MapValues: _map_values,
    TableMapValues: _map_values,
    MapPairs: _map_pairs,
    FlatMap: _unknown,
    FlatMapValues: _flat_map_values,
    SelectKey: _select_key,
    TableToStream: _to_stream,
    UserProcessor: _user,
    TableRepartitionMap: _unknown,
    TableSource: _table_source,
    StreamAggregate: _aggregate,
    WindowAggregate: _aggregate,
    UnlimitedAggregate: _aggregate,
    SlidingAggregate: _aggregate,
    SessionAggregate: _aggregate,
    TableAggregate: _table_aggregate,
    StreamStreamJoin: _joined,
    StreamSelfJoin: _joined,
    StreamTableJoin: _joined,
    StreamGlobalJoin: _joined,
    TableTransformValues: _transformed,
    TableTableJoin: _joined,
    SubscriptionSend: _subscribed,
    SubscriptionJoin: _answered,
    ForeignTableJoin: _told,
    ResponseJoin: _joined,
}
