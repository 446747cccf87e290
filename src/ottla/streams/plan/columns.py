"""What can be columns of Spark: which nodes, of which types, and what stands in the way of the others."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ottla.serdes import primitives
from ottla.serdes.base import ColumnSerde, Serde
from ottla.serdes.json import JsonSerde
from ottla.serdes.lenient_json import LenientJsonSerde
from ottla.serdes.types import ANY, Type, common, struct_of
from ottla.streams.expressions import Expression, ExpressionError
from ottla.streams.plan.plan import NativeAggregate
from ottla.streams.serdes import Serdes, SessionWindowedSerde, TimeWindowedSerde
from ottla.streams.topology import operations as op
from ottla.streams.topology.graph import Form, Node, ProcessorNode, SinkNode, SourceNode, SubTopology

Types = Mapping[str, tuple[Type, Type]]
"""Of key and value behind each node."""


def obstacles_of(sub: SubTopology, python: str | None) -> dict[str, str]:
    """Nodes that cannot be columns, each with the reason. Without obstacles the whole is native."""
    found: dict[str, str] = {}
    if python is not None:
        found = {node.name: python for node in sub.nodes if isinstance(node, SourceNode)}
    try:
        types_behind(sub.nodes)
    except NotNative as error:
        found.setdefault(error.node, error.reason)
    for node in sub.nodes:
        reason = obstacle(node)
        if reason is not None:
            found.setdefault(node.name, reason)
    shape = shape_obstacle(sub.nodes)
    if shape is not None:
        found.setdefault(*shape)
    return {node.name: found[node.name] for node in sub.nodes if node.name in found}


class NotNative(Exception):
    """Why a node cannot be a column."""

    def __init__(self, node: str, reason: str) -> None:
        super().__init__(f"{node}: {reason}")
        self.node = node
        self.reason = reason


def obstacle(node: Node) -> str | None:
    match node:
        case SourceNode(form=Form.CHANGE) | SinkNode(form=Form.CHANGE):
            return "old and new values travel together"
        case SourceNode(form=form) | SinkNode(form=form) if form is not Form.PLAIN:
            return "its values are wrapped"
        case SourceNode(extractor=extractor) if extractor.function is not None:
            return "its timestamps come from a function"
        case SourceNode(extractor=extractor) if extractor.wall_clock:
            return "its timestamps are those of the wall clock"
        case SinkNode(partitioner=partitioner) if partitioner is not None:
            return "its partitions are chosen by a Python function"
        case ProcessorNode(operation=op.Peek() | op.FlatMap()):
            return "it calls a Python function"
        case ProcessorNode(operation=op.StreamGlobalJoin()):
            return "the table's replica lies in the Python worker"
    if any(not isinstance(function, Expression) for function in functions_of(node)):
        return "it calls a Python function"
    if isinstance(node, ProcessorNode) and not isinstance(node.operation, _NATIVE_OPERATIONS):
        return "there is no column expression for it"
    return None


_NATIVE_OPERATIONS: Final = (
    op.PassThrough,
    op.Filter,
    op.MapValues,
    op.MapPairs,
    op.FlatMapValues,
    op.SelectKey,
    op.Branch,
    op.DropNullKeys,
    op.TableToStream,
    op.TableMapValues,
)


def functions_of(node: Node) -> list[object]:
    match node:
        case SinkNode(chooser=chooser):
            return [] if chooser is None else [chooser]
        case SourceNode():
            return []
    match node.operation:
        case op.Filter(predicate=function) | op.TableFilter(predicate=function):
            return [function]
        case op.MapValues(function=function) | op.FlatMapValues(function=function) | op.SelectKey(function=function):
            return [function]
        case op.TableMapValues(function=function):
            return [function]
        case op.MapPairs(function=function, key=key, value=value):
            return [each for each in (function, key, value) if each is not None]
        case op.Branch(predicates=predicates):
            return list(predicates)
        case op.TableToStream(select_key=function):
            return [] if function is None else [function]
        case op.SubscriptionSend(foreign_key=function):
            return [function]
        case op.StreamAggregate(fold=fold) | op.WindowAggregate(fold=fold) if fold.native is not None:
            return [fold.native]
    return []


def uses_headers(nodes: Sequence[Node]) -> bool:
    """Whether an expression of theirs reads the headers of records, or a serde that may find a schema's id there."""
    sources = [node for node in nodes if isinstance(node, SourceNode)]
    if any(isinstance(serde, ColumnSerde) for node in sources for serde in (node.key_serde, node.value_serde)):
        return True
    functions = [function for node in nodes for function in functions_of(node)]
    return any("headers" in function.leaves() for function in functions if isinstance(function, Expression))


def unread_fields(nodes: Sequence[Node], aggregate: NativeAggregate) -> list[str]:
    """What of `key` and `value` no node needs on the way to the aggregate, so that the source may leave it out. What
    might turn out to be unreadable has to be looked at, needed or not."""
    functions = [*(each for node in nodes for each in functions_of(node)), *aggregate.aggregate.expressions()]
    expressions = [each for each in functions if isinstance(each, Expression)]
    if any(each.needs_spark for each in expressions):
        return []  # it may name any column
    read = {leaf for each in expressions for leaf in each.leaves()}
    needed = {
        "key": "key" in read or _keeps_key(nodes),
        "value": "value" in read or not aggregate.windowed,  # where null values do not count
    }
    (source,) = [node for node in nodes if isinstance(node, SourceNode)]
    serde_of = {"key": source.key_serde, "value": source.value_serde}
    certain = (primitives.StringSerde, primitives.BytesSerde)
    return [name for name, wanted in needed.items() if not wanted and isinstance(serde_of[name], certain)]


def _keeps_key(nodes: Sequence[Node]) -> bool:
    """Whether the key of the record matters before, or unless, it gets another one."""
    for node in nodes:
        match node:
            case ProcessorNode(operation=op.DropNullKeys()):
                return True
            case ProcessorNode(operation=op.SelectKey()):
                return False
            case ProcessorNode(operation=op.MapPairs(key=key)) if key is not None:
                return False
    return True


def shape_obstacle(nodes: Sequence[Node]) -> tuple[str, str] | None:
    """Columns branch at one place only, and rows multiply before it: a plan that branches earlier reads twice."""
    by_name = {node.name: node for node in nodes}
    children = {name: [node for node in nodes if name in node.parents] for name in by_name}
    for node in nodes:
        if not isinstance(node, ProcessorNode):
            continue
        if isinstance(node.operation, op.FlatMapValues) and _branches_above(node, by_name, children):
            return node.name, "it multiplies records behind a branch"
        if len(node.parents) > 1 and _branches_above(node, by_name, children):
            return node.name, "branches meet again here"
    if sum(isinstance(node, SourceNode) for node in nodes) > 1:
        return next(node.name for node in nodes if isinstance(node, SourceNode)), "several sources are read together"
    return None


def _branches_above(node: Node, by_name: Mapping[str, Node], children: Mapping[str, Sequence[Node]]) -> bool:
    todo = list(node.parents)
    while todo:
        name = todo.pop()
        if len(children[name]) > 1:
            return True
        todo += by_name[name].parents
    return False


def types_behind(nodes: Sequence[Node], seeds: Types | None = None) -> dict[str, tuple[Type, Type]]:
    """Types of key and value that each node hands on. Raises NotNative where a type is not known or does not fit."""
    found: dict[str, tuple[Type, Type]] = dict(seeds or {})
    for node in nodes:
        if node.name in found:
            continue
        if isinstance(node, SourceNode):
            found[node.name] = _serde_types(node)
            continue
        inputs = {found[parent] for parent in node.parents if parent in found}
        if len(inputs) != 1:
            raise NotNative(node.name, "what reaches it has different types")
        (before,) = inputs
        if isinstance(node, SinkNode):
            _check_sink(node, before)
            continue
        try:
            found[node.name] = _types_after(node.operation, *before)
        except ExpressionError as error:
            raise NotNative(node.name, str(error)) from error
    return found


def _serde_types(node: SourceNode | SinkNode) -> tuple[Type, Type]:
    types = []
    for part, serde in (("keys", node.key_serde), ("values", node.value_serde)):
        if serde is not None and not reads_columns(serde):
            raise NotNative(node.name, f"the serde of its {part} is Python code")
        types.append(Serdes.bytes.type if serde is None else serde.type)
    return types[0], types[1]


_NATIVE_SERDES: Final = (
    primitives.StringSerde,
    primitives.BytesSerde,
    primitives.IntSerde,
    primitives.LongSerde,
    primitives.DoubleSerde,
    primitives.BooleanSerde,
    JsonSerde,
    LenientJsonSerde,
)


WINDOWED_SERDES: Final = (TimeWindowedSerde, SessionWindowedSerde)


def reads_columns(serde: Serde[Any] | None) -> bool:
    """Whether records of topics can be columns: also of serdes that are Python code and work on whole columns."""
    return has_columns(serde) or (isinstance(serde, ColumnSerde) and serde.has_columns)


def has_columns(serde: Serde[Any] | None) -> bool:
    """Whether Spark can read and write it by itself: exactly these classes, a subclass may do it otherwise."""
    if isinstance(serde, WINDOWED_SERDES):
        return has_columns(serde.inner)
    if isinstance(serde, LenientJsonSerde) and serde.content == struct_of({}):
        return False  # a struct of nothing is none in Spark
    return type(serde) in _NATIVE_SERDES


def _check_sink(node: SinkNode, before: tuple[Type, Type]) -> None:
    wanted = _serde_types(node)
    for part, have, want in zip(("key", "value"), before, wanted, strict=True):
        if not _fits(have, want):
            raise NotNative(node.name, f"a {part} of type {have} is to be written as {want}")
    if isinstance(node.chooser, Expression):
        reason = node.chooser.bind({"key": before[0], "value": before[1]}).why_not_column()
        if reason is not None:
            raise NotNative(node.name, reason)


def _fits(have: Type, want: Type) -> bool:
    """Whether the sink's serde can write such a column. JSON takes everything but bytes."""
    if have.name == want.name == "windowed":
        return True
    if want.name in ("any", "struct", "array", "map"):
        return have.name not in ("binary", "windowed")
    if want.name in ("decimal", "date", "time", "timestamp"):
        return have != ANY and common(have, want) == want
    return have == want or have.name == "null" or (have.name == "int" and want.name == "long")


def _types_after(operation: op.Operation, key: Type, value: Type) -> tuple[Type, Type]:
    types = {"key": key, "value": value}

    def typed(function: object) -> Type:
        if not isinstance(function, Expression):
            raise ExpressionError("it calls a Python function")
        bound = function.bind(types)
        reason = bound.why_not_column()
        if reason is not None:
            raise ExpressionError(reason)
        return bound.type

    match operation:
        case op.Filter(predicate=function):
            typed(function)
        case op.Branch(predicates=predicates):
            for each in predicates:
                typed(each)
        case op.MapValues(function=function) | op.TableMapValues(function=function):
            return key, typed(function)
        case op.FlatMapValues(function=function):
            several = typed(function)
            if several.name != "array" or several.element is None:
                raise ExpressionError(f"flat_map_values needs an array, not {several}")
            return key, several.element
        case op.SelectKey(function=function):
            return typed(function), value
        case op.MapPairs(function=None, key=new_key, value=new_value):
            return (
                key if new_key is None else typed(new_key),
                value if new_value is None else typed(new_value),
            )
        case op.TableToStream(select_key=function) if function is not None:
            return typed(function), value
        case op.PassThrough() | op.DropNullKeys() | op.TableToStream():
            pass
        case _:
            raise ExpressionError("there is no column expression for it")
    return key, value
