"""How much work it is to check a value: how often its parts are looked at, counted before anybody looks.

Schemas that apply side by side (allOf, anyOf, oneOf, not, if) multiply where they lead to one other, by `$ref` at the
same value or in the members beneath it: twenty levels of two are a million looks at one number, and where a schema
contains itself the payload says how many levels there are. The library that checks goes all of these ways, without a
limit. What is counted here is each schema once for every value, with the number of ways that lead to it: work that is
proportional to schema and payload, however many ways there are.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ottla.registry.schemas.base import Budget, InvalidSchema, TooComplex
from ottla.registry.schemas.json_schema.documents import Documents, Place
from ottla.registry.schemas.json_schema.drafts import subschemas, unescaped
from ottla.registry.schemas.json_schema.json_text import Json

Value: TypeAlias = "dict[str, Value] | list[Value] | str | int | float | bool | None"

_TYPES: Final = {
    dict: frozenset(("object",)),
    list: frozenset(("array",)),
    str: frozenset(("string",)),
    bool: frozenset(("boolean",)),
    int: frozenset(("integer", "number")),
    float: frozenset(("integer", "number")),
    type(None): frozenset(("null",)),
}
_FRACTION: Final = frozenset(("number",))

CHARACTERS: Final = 16
"""Of a string that are searched for a pattern in the time of a look."""
_LEVELS: Final = 32
"""Down which `most` follows a schema."""
_STEPS: Final = 200_000
"""After which it gives up: less than half a second."""
_OTHER: Final = ""
"""All members that `properties` does not name."""
_ELEMENT: Final = "[]"


@dataclass(slots=True, eq=False)
class Node:
    """A schema, and those that its own keywords apply, by what they apply them to."""

    weight: int = 1
    searches: bool = False
    types: frozenset[str] = frozenset()
    required: tuple[str, ...] = ()
    beside: list["Node"] = field(default_factory=list)
    alternatives: list["Node"] = field(default_factory=list)
    """Beside it too, but a refusal tells of every one of them."""
    dependent: list[tuple[str, "Node"]] = field(default_factory=list)
    members: dict[str, "Node"] = field(default_factory=dict)
    patterns: list["Node"] = field(default_factory=list)
    """Each is tried for every member."""
    others: list["Node"] = field(default_factory=list)
    names: list["Node"] = field(default_factory=list)
    first: dict[int, "Node"] = field(default_factory=dict)
    rest: list["Node"] = field(default_factory=list)
    every: list["Node"] = field(default_factory=list)
    rank: int = 0
    """Higher than that of all that stand beside it."""

    def in_place(self) -> Iterator["Node"]:
        yield from self.beside
        yield from self.alternatives
        for _, node in self.dependent:
            yield node

    def ends_early(self, value: Value) -> bool:
        """Whether the library sees that a value is wrong before it looks any further."""
        if self.types and not self.types & _types_of(value):
            return True
        return isinstance(value, dict) and any(name not in value for name in self.required)

    def cost(self, value: Value) -> int:
        return self.weight + (len(value) // CHARACTERS if self.searches and isinstance(value, str) else 0)


_Ways: TypeAlias = dict[Node, tuple[int, int]]
"""How many lead to a schema: those without alternatives, and those through some."""


@dataclass(frozen=True, slots=True)
class Looks:
    in_all: int
    among_alternatives: int


class Graph:
    """The schemas of some documents. Raises InvalidSchema if one says something about a value by way of itself."""

    def __init__(self, documents: Documents) -> None:
        self._nodes: dict[int, Node] = {}
        self._ranked: list[Node] = []
        self.root = self._grown(documents)
        for node in self._nodes.values():
            self._rank(node)
        self.has_alternatives = any(node.alternatives for node in self._nodes.values())

    def most(self, limit: int) -> int | None:
        """At any one value, whatever is sent; None if there is no such number below the limit, or none was found."""
        most, budget = {node: 1 for node in self._ranked}, Budget(_STEPS)
        try:
            for _ in range(_LEVELS):
                grown = self._a_level_deeper(most, budget)
                highest = max(grown.values())
                if highest > limit:
                    return None
                if grown == most:
                    return highest
                most = grown
        except TooComplex:
            pass
        return None

    def looks(self, value: Value, *, limit: int, among_alternatives: int) -> Looks | None:
        """At a value and all that is in it; None if they are more."""
        in_all = inside = 0
        todo: list[tuple[Value, _Ways]] = [(value, {self.root: (1, 0)})]
        while todo:
            value, ways = todo.pop()
            further: _Ways = {}
            for node, plain, told in _closure(ways, value):
                cost = node.cost(value)
                in_all += (plain + told) * cost
                inside += told * cost
                if not node.ends_early(value):
                    further[node] = plain, told
            if in_all > limit or inside > among_alternatives:
                return None
            if isinstance(value, dict):
                todo.extend(_members(value, further))
            elif isinstance(value, list):
                todo.extend(_elements(value, further))
        return Looks(in_all, inside)

    def _grown(self, documents: Documents) -> Node:
        root = self._node(documents.root)
        todo = list(documents.homes)
        seen: set[int] = set()
        for place in todo:
            if isinstance(place.schema, dict) and id(place.schema) not in seen:
                seen.add(id(place.schema))
                todo.extend(self._connected(place, place.schema))
        return root

    def _node(self, place: Place) -> Node:
        return self._nodes.setdefault(id(place.schema), Node())

    def _connected(self, place: Place, schema: dict[str, Json]) -> list[Place]:
        node = self._node(place)
        targets = _targets(place)
        node.beside.extend(self._node(each) for each in targets)
        found = list(targets)
        hidden = bool(targets) and "$ref" in schema and place.draft.ref_hides_siblings
        for way, inner in subschemas(schema):
            if isinstance(inner, dict):
                standing = place.documents.standing(inner, place)
                found.append(standing)
                if not hidden:
                    _join(node, way, self._node(standing))
        if not hidden:
            _describe(node, schema)
        return found

    def _rank(self, start: Node) -> None:
        """A stack and not a recursion: how long a chain of references is, is its author's matter."""
        if start.rank:
            return
        stack, under_way = [(start, start.in_place())], {start}
        while stack:
            node, left = stack[-1]
            for each in left:
                if each in under_way:
                    raise InvalidSchema("instances cannot be checked: it says what a value is by way of itself")
                if not each.rank:
                    stack.append((each, each.in_place()))
                    under_way.add(each)
                    break
            else:
                stack.pop()
                under_way.discard(node)
                self._ranked.append(node)
                node.rank = len(self._ranked)

    def _a_level_deeper(self, most: dict[Node, int], budget: Budget) -> dict[Node, int]:
        """Of each schema the most looks at a value that is it or lies in it, if `most` are those of its members."""
        in_place: dict[Node, int] = {}
        by_name: dict[Node, dict[str, int]] = {}
        grown: dict[Node, int] = {}
        for node in self._ranked:
            beside = list(node.in_place())
            in_place[node] = node.weight + sum(in_place[each] for each in beside)
            ways = _ways(node, most)
            for each in beside:
                _add(ways, by_name[each], budget)
            by_name[node] = ways
            grown[node] = max(in_place[node], *ways.values())
        return grown


def _ways(node: Node, most: dict[Node, int]) -> dict[str, int]:
    """From one schema to what is in a value, by the names of members."""
    always = sum(most[each] for each in (*node.patterns, *node.names))
    ways = {_OTHER: always + sum(most[each] for each in node.others)}
    first = max((most[each] for each in node.first.values()), default=0)
    ways[_ELEMENT] = max(first, sum(most[each] for each in node.rest)) + sum(most[each] for each in node.every)
    for name, each in node.members.items():
        ways[f"/{name}"] = always + most[each]
    return ways


def _add(ways: dict[str, int], more: dict[str, int], budget: Budget) -> None:
    names = ways.keys() | more.keys() if more[_OTHER] else more.keys()
    budget.spend(len(names))
    for name in names:
        if name.startswith("/"):
            ways[name] = ways.get(name, ways[_OTHER]) + more.get(name, more[_OTHER])
    ways[_OTHER] += more[_OTHER]
    ways[_ELEMENT] += more[_ELEMENT]


def _closure(ways: _Ways, value: Value) -> Iterator[tuple[Node, int, int]]:
    """All schemas that are about one value, with the ways to them. Highest rank first: then all ways to a schema are
    known when it is reached."""
    ahead = [(-node.rank, node) for node in ways]
    heapq.heapify(ahead)
    while ahead:
        node = heapq.heappop(ahead)[1]
        plain, told = ways[node]
        yield node, plain, told
        for each, more in () if node.ends_early(value) else _beside(node, plain, told, value):
            if each not in ways:
                heapq.heappush(ahead, (-each.rank, each))
            _lead(ways, each, more)


def _beside(node: Node, plain: int, told: int, value: Value) -> Iterator[tuple[Node, tuple[int, int]]]:
    for each in node.beside:
        yield each, (plain, told)
    for each in node.alternatives:
        yield each, (0, plain + told)
    for name, each in node.dependent:
        if isinstance(value, dict) and name in value:
            yield each, (plain, told)


def _members(value: "dict[str, Value]", ways: _Ways) -> Iterator[tuple[Value, _Ways]]:
    for name, member in value.items():
        to_member: _Ways = {}
        to_name: _Ways = {}
        for node, more in ways.items():
            for each in (node.members[name],) if name in node.members else node.others:
                _lead(to_member, each, more)
            for each in node.patterns:
                _lead(to_member, each, more)
            for each in node.names:
                _lead(to_name, each, more)
        yield member, to_member
        if to_name:
            yield name, to_name


def _elements(value: "list[Value]", ways: _Ways) -> Iterator[tuple[Value, _Ways]]:
    for index, element in enumerate(value):
        to_element: _Ways = {}
        for node, more in ways.items():
            for each in (node.first[index],) if index in node.first else node.rest:
                _lead(to_element, each, more)
            for each in node.every:
                _lead(to_element, each, more)
        yield element, to_element


def _lead(ways: _Ways, node: Node, more: tuple[int, int]) -> None:
    plain, told = ways.get(node, (0, 0))
    ways[node] = plain + more[0], told + more[1]


def _join(node: Node, way: str, inner: Node) -> None:
    keyword, _, name = way.partition("/")
    match keyword:
        case "anyOf" | "oneOf":
            node.alternatives.append(inner)
        case "allOf" | "not" | "if" | "then" | "else":
            node.beside.append(inner)
        case "dependencies" | "dependentSchemas":
            node.dependent.append((unescaped(name), inner))
        case "properties":
            node.members[unescaped(name)] = inner
        case "patternProperties":
            node.patterns.append(inner)
        case "additionalProperties" | "unevaluatedProperties":
            node.others.append(inner)
        case "propertyNames":
            node.names.append(inner)
        case "contains":
            node.every.append(inner)
        case "prefixItems" | "items" if name:
            node.first[int(name)] = inner
        case "additionalItems" | "items" | "unevaluatedItems":
            node.rest.append(inner)


def _describe(node: Node, schema: dict[str, Json]) -> None:
    if isinstance(values := schema.get("enum"), list):
        node.weight += len(values)
    node.searches = "pattern" in schema
    types = schema.get("type", [])
    node.types = frozenset(map(str, types if isinstance(types, list) else [types]))
    required = schema.get("required")
    node.required = tuple(each for each in required if isinstance(each, str)) if isinstance(required, list) else ()
    if "unevaluatedProperties" in schema or "unevaluatedItems" in schema:
        # Whether those beside it hold is asked once more, to know what they saw.
        node.beside *= 2
        node.alternatives *= 2


def _types_of(value: Value) -> frozenset[str]:
    return _FRACTION if isinstance(value, float) and not value.is_integer() else _TYPES[type(value)]


def _targets(place: Place) -> list[Place]:
    assert isinstance(place.schema, dict)
    found: list[Place | None] = []
    if isinstance(reference := place.schema.get("$ref"), str):
        found.append(place.documents.follow(place, reference))
    if isinstance(reference := place.schema.get("$dynamicRef"), str):
        found.append(place.documents.dynamic(place, reference))
    if "$recursiveRef" in place.schema:
        found.append(place.documents.recursive(place))
    return [each for each in found if each is not None and isinstance(each.schema, dict)]
