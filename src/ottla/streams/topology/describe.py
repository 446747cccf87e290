"""The text of a topology, byte for byte as Java's `TopologyDescription.toString()` writes it.

Java keeps the nodes of a sub-topology in hash maps, and their neighbours in sorted sets whose order it changes while
they fill. Both show in the text, so both are rebuilt here: the order of a HashMap and the red-black tree of a TreeSet.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ottla.streams.topology.graph import GlobalTable, Graph, Node, ProcessorNode, SinkNode, SourceNode
from ottla.streams.topology.operations import Function

_LOAD: Final = 0.75
_SMALLEST_TABLE: Final = 16


def describe(graph: Graph, groups: Sequence[tuple[Node, ...] | GlobalTable]) -> str:
    """`groups` in the order of their numbers."""
    parts = [
        _global_text(number, group) if isinstance(group, GlobalTable) else _group_text(number, group)
        for number, group in enumerate(groups)
    ]
    return "Topologies:\n " + "".join(f"  {part}" for part in parts)


# ---- Java's collections


def hash_order(names: Iterable[str], *, copied: bool = False) -> list[str]:
    """The order in which a java.util.HashSet gives strings that were put into it in this order.

    `copied`: it was made of another collection at once, which gives it a bigger table at some sizes.
    """
    unique = list(dict.fromkeys(names))
    size = _SMALLEST_TABLE
    while len(unique) > size * _LOAD:
        size *= 2
    if copied:
        wanted = max(int(len(unique) / _LOAD) + 1, _SMALLEST_TABLE)
        size = 1 << (wanted - 1).bit_length()
    return sorted(unique, key=lambda name: _spread_hash(name) & (size - 1))  # stable, as a bucket's chain is


def _spread_hash(name: str) -> int:
    value = 0
    units = name.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFF_FFFF
    return value ^ (value >> 16)


class _Described:
    """A node while the text is made. `size` counts the ways down from it, itself included, as far as they are known."""

    __slots__ = ("name", "node", "predecessors", "size", "successors")

    def __init__(self, node: Node) -> None:
        self.name = node.name
        self.node = node
        self.size = 1
        self.predecessors = _TreeSet()
        self.successors = _TreeSet()

    def before(self, other: "_Described") -> bool:
        """The bigger first, then by name. Not a lasting order: sizes grow while the sets fill."""
        return self.size > other.size if self.size != other.size else self.name < other.name

    def grow(self, by: int) -> None:
        """Those above have as many ways more as there are ways to here."""
        pending = [self]
        while pending:
            node = pending.pop()
            node.size += by
            pending.extend(node.predecessors)


class _Entry:
    __slots__ = ("black", "key", "left", "parent", "right")

    def __init__(self, key: _Described, parent: "_Entry | None") -> None:
        self.key = key
        self.parent = parent
        self.left: _Entry | None = None
        self.right: _Entry | None = None
        self.black = True


class _TreeSet:
    """java.util.TreeSet, with its very rotations: a set filled under a changing order comes out as its tree grew."""

    __slots__ = ("_root",)

    def __init__(self) -> None:
        self._root: _Entry | None = None

    def __iter__(self) -> Iterator[_Described]:
        pending: list[_Entry] = []
        entry = self._root
        while pending or entry is not None:
            while entry is not None:
                pending.append(entry)
                entry = entry.left
            entry = pending.pop()
            yield entry.key
            entry = entry.right

    def add(self, key: _Described) -> None:
        entry = self._root
        if entry is None:
            self._root = _Entry(key, None)
            return
        while True:
            if key is entry.key:
                return
            smaller = key.before(entry.key)
            child = entry.left if smaller else entry.right
            if child is None:
                break
            entry = child
        added = _Entry(key, entry)
        if smaller:
            entry.left = added
        else:
            entry.right = added
        self._balance(added)

    def _balance(self, entry: _Entry) -> None:
        entry.black = False
        x: _Entry = entry
        while x.parent is not None and not x.parent.black:
            parent = x.parent
            grand = parent.parent
            assert grand is not None  # a red entry is never the root
            is_left = parent is grand.left
            uncle = grand.right if is_left else grand.left
            if uncle is not None and not uncle.black:
                parent.black = uncle.black = True
                grand.black = False
                x = grand
                continue
            if x is (parent.right if is_left else parent.left):
                x = parent
                self._rotate(x, left=is_left)
            assert x.parent is not None and x.parent.parent is not None
            x.parent.black = True
            x.parent.parent.black = False
            self._rotate(x.parent.parent, left=not is_left)
        assert self._root is not None
        self._root.black = True

    def _rotate(self, entry: _Entry, *, left: bool) -> None:
        child = entry.right if left else entry.left
        assert child is not None
        inner = child.left if left else child.right
        if left:
            entry.right, child.left = inner, entry
        else:
            entry.left, child.right = inner, entry
        if inner is not None:
            inner.parent = entry
        above = entry.parent
        child.parent = above
        if above is None:
            self._root = child
        elif above.left is entry:
            above.left = child
        else:
            above.right = child
        entry.parent = child


# ---- the text


def _group_text(number: int, nodes: Iterable[Node]) -> str:
    described = {node.name: _Described(node) for node in nodes}
    for name in hash_order(described):
        node = described[name]
        for parent in node.node.parents:
            predecessor = described[parent]
            node.predecessors.add(predecessor)
            predecessor.successors.add(node)
            predecessor.grow(node.size)
    lines = [
        f"    {_node_text(node)}\n" for node in sorted(described.values(), key=lambda node: (-node.size, node.name))
    ]
    return f"Sub-topology: {number}\n{''.join(lines)}\n"


def _global_text(number: int, table: GlobalTable) -> str:
    source = f"Source: {table.source} (topics: [{table.topic}])\n      --> {table.processor}"
    processor = f"Processor: {table.processor} (stores: [{table.store.name}])"
    return (
        f"Sub-topology: {number} for global store (will not generate tasks)\n"
        f"    {source}\n    {processor}\n      --> none\n      <-- {table.source}\n"
    )


def _node_text(described: _Described) -> str:
    match described.node:
        case SourceNode(name=name, topics=topics, pattern=pattern):
            read = pattern if pattern is not None else _set_text(topics)
            return f"Source: {name} (topics: {read})\n      --> {_names(described.successors)}"
        case ProcessorNode(name=name, stores=stores):
            edges = f"\n      --> {_names(described.successors)}\n      <-- {_names(described.predecessors)}"
            return f"Processor: {name} (stores: {_set_text(hash_order(stores))}){edges}"
        case SinkNode(name=name, topic=topic, chooser=chooser):
            written = f"topic: {topic}" if topic is not None else f"extractor class: {_function_text(chooser)}"
            return f"Sink: {name} ({written})\n      <-- {_names(described.predecessors)}"


def _set_text(names: Iterable[str]) -> str:
    return f"[{', '.join(hash_order(names, copied=True))}]"


def _names(nodes: Iterable[_Described]) -> str:
    return ", ".join(node.name for node in nodes) or "none"


def _function_text(function: Function | None) -> str:
    """Java writes the object's class here, which no other language can."""
    return str(getattr(function, "__qualname__", function))
