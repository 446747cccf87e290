"""Nodes that remember nothing as one function: a loop over records that is written for them and compiled.

Between two operators of a task a record is an object and a call or two, which costs more than what most functions do.
A chain has neither: the functions of all nodes stand inside one loop, over variables. It knows of no errors. Where
anything raises, what it made is thrown away and the task itself goes through the same records again, one by one, and
finds out which node it was and what the handlers say. So a chain has no node that shows to the outside that it ran
(`peek`, processors), and gives what the task gives or nothing. A join with a table is one: it only looks things up.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.serdes.primitives import StringSerde
from ottla.streams.expressions import Expression, Inputs
from ottla.streams.record import Record
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.current import new
from ottla.streams.tasks.inputs import looks_at_place
from ottla.streams.tasks.operators.base import IN_A_RECORD, NO_KEY_FOR_REPARTITION, NULL_KEY_OR_VALUE
from ottla.streams.topology import operations as op
from ottla.streams.topology.graph import Form, Graph, Node, ProcessorNode, SinkNode, SourceNode, SubTopology, decorated
from ottla.streams.topology.node_types import NodeTypes

DEEPEST: Final = 15
"""Blocks inside each other: Python takes no more than 20 loops."""
MOST_NODES: Final = 100
"""Nodes behind a merge are written once for each way that leads to them."""


class SinkColumns(NamedTuple):
    """What came out for one topic. Strings are not encoded yet: whoever has many does that at once."""

    topic: str
    keys: list[Any]
    values: list[Any]
    times: list[int]
    headers: list[Any]
    """Empty if no record had any."""


class Chain:
    """Records in, columns out. `source` says how keys and values are to be read."""

    def __init__(self, source: SourceNode, sinks: Sequence[SinkNode], topics: Sequence[str], loops: "_Loops") -> None:
        self.source = source
        self.sinks = tuple(sinks)
        self.topics = tuple(topics)
        self._loops = loops

    def run(
        self, keys: Iterable[Any], values: Iterable[Any], times: Iterable[int], headers: Sequence[Any] | None
    ) -> tuple[list[SinkColumns], dict[str, int]]:
        """With how many records were dropped for which reason. Raises whatever a function raises."""
        made = [SinkColumns(topic, [], [], [], []) for topic in self.topics]
        if headers is None:
            lost = self._loops.plain(zip(keys, values, times, strict=True), made)
        else:
            lost = self._loops.with_headers(zip(keys, values, times, headers, strict=True), made)
        return made, {reason: number for reason, number in zip(_REASONS, lost, strict=True) if number}


_REASONS: Final = (NO_KEY_FOR_REPARTITION, NULL_KEY_OR_VALUE)
"""What loops give numbers of."""


class _Loops(NamedTuple):
    plain: Callable[..., tuple[int, int]]
    with_headers: Callable[..., tuple[int, int]]


class Table(NamedTuple):
    """Where a join looks."""

    find: Callable[[Any], tuple[Any, int] | None]
    is_text: bool
    """Keys and values are strings: what was found once need not be looked for again while nothing changes."""


class _NoChain(Exception):
    """Something has to run as a node of a task."""


def chain_of(sub: SubTopology, graph: Graph, application_id: str) -> Chain | None:
    """None if the nodes have to run as a task."""
    sources = [node for node in sub.nodes if isinstance(node, SourceNode)]
    sinks = [node for node in sub.nodes if isinstance(node, SinkNode)]
    if len(sources) != 1 or sub.stores or sources[0].form is not Form.PLAIN or not sources[0].extractor.is_plain:
        return None
    return _chain(sub, sources[0], sinks, NodeTypes(graph), application_id, {})


def chain_behind(
    source: SourceNode, sub: SubTopology, types: NodeTypes, application_id: str, tables: Mapping[str, Table]
) -> Chain | None:
    """Of the nodes that a source of a task leads to; None if one of them remembers anything. `tables` are those that
    joins look into, by the name of the join."""
    if source.form is not Form.PLAIN or not source.extractor.is_plain:
        return None
    reached: dict[str, Node] = {source.name: source}
    for node in sub.nodes:
        if any(parent in reached for parent in node.parents):
            reached[node.name] = node
    sinks = [node for node in reached.values() if isinstance(node, SinkNode)]
    return _chain(sub, source, sinks, types, application_id, tables)


def _chain(
    sub: SubTopology,
    source: SourceNode,
    sinks: Sequence[SinkNode],
    types: NodeTypes,
    application_id: str,
    tables: Mapping[str, Table],
) -> Chain | None:
    if looks_at_place(source) or any(map(looks_at_place, sinks)):
        return None  # a serde that wants to see each record
    try:
        topics = [_topic(sink, application_id) for sink in sinks]
        if len(frozenset(topics)) < len(topics):
            return None  # their records come in turns
        loops = [_Loop(sub, types, sinks, tables, headers).compiled(source) for headers in (False, True)]
    except _NoChain:
        return None
    return Chain(source, sinks, topics, _Loops(*loops))


def _topic(sink: SinkNode, application_id: str) -> str:
    if sink.topic is None or sink.chooser is not None or sink.partitioner is not None or sink.form is not Form.PLAIN:
        raise _NoChain
    return decorated(application_id, sink.topic) if sink.repartition else sink.topic


def is_text(serde: Any) -> bool:
    """Whether what it writes can wait: strings do not change, of other values a function may have kept hold."""
    return type(serde) is StringSerde


def text_bytes(column: Iterable[Any]) -> list[bytes | None]:
    """Of strings and None. Raises TypeError and UnicodeEncodeError."""
    return [None if text is None else str.encode(text) for text in column]


class _Loop:
    """Writes one function."""

    def __init__(
        self,
        sub: SubTopology,
        types: NodeTypes,
        sinks: Sequence[SinkNode],
        tables: Mapping[str, Table],
        headers: bool,
    ) -> None:
        self._nodes = sub.nodes
        self._types = types
        self._sinks = [sink.name for sink in sinks]
        self._tables = tables
        self._headers = headers
        self._names: dict[str, Any] = {"new": new, "Record": Record, "Inputs": Inputs, "UNKNOWN": object()}
        self._lines: list[str] = []
        self._count = 0

    def compiled(self, source: SourceNode) -> Callable[..., tuple[int, int]]:
        given = "k, v, t, h" if self._headers else "k, v, t"
        self._line(0, "def run(given, made):")
        for number in range(len(self._sinks)):
            for place, name in enumerate("kvth", start=1):
                self._line(1, f"{name}{number}_add = made[{number}][{place}].append")
        for name in self._tables:
            self._line(1, f"{self._memory(name)} = {{}}")
        self._line(1, "keyless = unjoined = 0")
        self._line(1, f"for {given} in given:")
        self._children(source.name, 2, "k", "v")
        self._line(2, "pass")
        self._line(1, "return keyless, unjoined")
        exec("\n".join(self._lines), self._names)  # nothing but the words in this file
        made: Callable[..., tuple[int, int]] = self._names["run"]
        return made

    def _line(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def _named(self, value: Any) -> str:
        name = f"f{len(self._names)}"
        self._names[name] = value
        return name

    def _fresh(self, letter: str) -> str:
        self._count += 1
        return f"{letter}_{self._count}"

    def _memory(self, join: str) -> str:
        """What the join has found: nothing changes while the loop runs."""
        return f"known_{list(self._tables).index(join)}"

    def _children(self, name: str, depth: int, k: str, v: str) -> None:
        for node in self._nodes:
            if name in node.parents:
                self._node(node, depth, k, v)

    def _node(self, node: Any, depth: int, k: str, v: str) -> None:
        self._count += 1
        if depth > DEEPEST or self._count > MOST_NODES:
            raise _NoChain
        if isinstance(node, SinkNode):
            self._sink(node, depth, k, v)
            return
        assert isinstance(node, ProcessorNode)
        match node.operation:
            case op.Branch() as branch:
                self._branch(node, branch, depth, k, v)
            case operation:
                deeper, key, value = self._step(node.name, operation, depth, k, v)
                self._children(node.name, deeper, key, value)
                self._line(deeper, "pass")

    def _step(self, name: str, operation: op.Operation, depth: int, k: str, v: str) -> tuple[int, str, str]:
        """How deep the children stand, and what their key and value are called."""
        match operation:
            case op.PassThrough():
                return depth, k, v
            case op.Filter(predicate=predicate, negated=negated):
                self._line(depth, f"if {self._holds(name, predicate, k, v, negated)}:")
                return depth + 1, k, v
            case op.DropNullKeys():
                self._line(depth, f"if {k} is None:")
                self._line(depth + 1, "keyless += 1")
                self._line(depth, "else:")
                return depth + 1, k, v
            case op.MapValues(function=function, with_key=with_key):
                made = self._fresh("v")
                self._line(depth, f"{made} = {self._call(name, function, k, v, with_key)}")
                return depth, k, made
            case op.SelectKey(function=function):
                made = self._fresh("k")
                self._line(depth, f"{made} = {self._call(name, function, k, v)}")
                return depth, made, v
            case op.MapPairs():
                return depth, *self._pair(name, operation, depth, k, v)
            case op.FlatMapValues(function=function, with_key=with_key):
                made = self._fresh("v")
                # As explode does with a null array.
                nothing = " or ()" if isinstance(function, Expression) else ""
                self._line(depth, f"for {made} in {self._call(name, function, k, v, with_key)}{nothing}:")
                return depth + 1, k, made
            case op.FlatMap(function=function):
                key, value = self._fresh("k"), self._fresh("v")
                self._line(depth, f"for {key}, {value} in {self._call(name, function, k, v)}:")
                return depth + 1, key, value
            case op.StreamTableJoin() if name in self._tables:
                return self._join(name, operation, depth, k, v)
        raise _NoChain

    def _join(self, name: str, operation: op.StreamTableJoin, depth: int, k: str, v: str) -> tuple[int, str, str]:
        row, made = self._fresh("r"), self._fresh("v")
        missing = f"{v} is None" if operation.left else f"{k} is None or {v} is None"
        self._line(depth, f"if {missing}:")
        self._line(depth + 1, "unjoined += 1")
        self._line(depth, "else:")
        depth += 1
        find = self._named(self._tables[name].find)
        if self._tables[name].is_text:
            known = self._memory(name)
            self._line(depth, f"{row} = {known}.get({k}, UNKNOWN)")
            self._line(depth, f"if {row} is UNKNOWN:")
            asked = f"None if {k} is None else {find}({k})"
            self._line(depth + 1, f"{row} = {known}[{k}] = {asked}")
        else:
            self._line(depth, f"{row} = None if {k} is None else {find}({k})")
        found = f"{row}[0]"
        if operation.left:
            found = f"None if {row} is None else {row}[0]"
        else:
            self._line(depth, f"if {row} is not None:")
            depth += 1
        self._line(depth, f"{made} = {self._joined(name, operation, k, v, found)}")
        return depth, k, made

    def _joined(self, name: str, operation: op.StreamTableJoin, k: str, v: str, found: str) -> str:
        function = operation.joiner
        if not isinstance(function, Expression):
            return f"{self._named(function)}({f'{k}, ' if operation.with_key else ''}{v}, {found})"
        if not function.leaves() <= IN_A_RECORD | {"left", "right"}:
            raise _NoChain
        run = self._named(function.compile(self._types.joined(name, operation)))
        headers = "h" if self._headers else "()"
        return f"{run}(new(Inputs, ({k}, {v}, t, {headers}, None, None, None, {v}, {found}, None)))"

    def _pair(self, name: str, operation: op.MapPairs, depth: int, k: str, v: str) -> tuple[str, str]:
        key, value = self._fresh("k"), self._fresh("v")
        if operation.function is not None:
            self._line(depth, f"{key}, {value} = {self._call(name, operation.function, k, v)}")
            return key, value
        for made, before, function in ((key, k, operation.key), (value, v, operation.value)):
            self._line(depth, f"{made} = {before if function is None else self._call(name, function, k, v)}")
        return key, value

    def _branch(self, node: ProcessorNode, branch: op.Branch, depth: int, k: str, v: str) -> None:
        by_name = {each.name: each for each in self._nodes}
        word = "if"
        for predicate, child in zip(branch.predicates, branch.children, strict=False):
            self._line(depth, f"{word} {self._holds(node.name, predicate, k, v)}:")
            self._node(by_name[child], depth + 1, k, v)
            self._line(depth + 1, "pass")
            word = "elif"
        if branch.default is not None:
            self._line(depth, "else:" if word == "elif" else "if True:")
            self._node(by_name[branch.default], depth + 1, k, v)
            self._line(depth + 1, "pass")

    def _call(self, name: str, function: op.Function, k: str, v: str, with_key: bool = True) -> str:
        if isinstance(function, Expression):
            if not function.leaves() <= IN_A_RECORD:
                raise _NoChain
            run = self._named(function.compile(self._types.given[name].named()))
            return f"{run}(new(Record, ({k}, {v}, t, {'h' if self._headers else '()'})))"
        return f"{self._named(function)}({k}, {v})" if with_key else f"{self._named(function)}({v})"

    def _holds(self, name: str, function: op.Function, k: str, v: str, negated: bool = False) -> str:
        """An expression holds when it is true, and its opposite when it is false: null is neither."""
        call = self._call(name, function, k, v)
        if isinstance(function, Expression):
            return f"{call} is {not negated}"
        return f"not {call}" if negated else call

    def _sink(self, node: SinkNode, depth: int, k: str, v: str) -> None:
        number = self._sinks.index(node.name)
        for letter, given, serde in (("k", k, node.key_serde), ("v", v, node.value_serde)):
            if is_text(serde):
                self._line(depth, f"{letter}{number}_add({given})")
            else:
                encode = self._named((serde or Serdes.bytes).encode)
                self._line(depth, f"{letter}{number}_add(None if {given} is None else {encode}({given}))")
        self._line(depth, f"t{number}_add(t)")
        if self._headers:
            self._line(depth, f"h{number}_add(h)")
