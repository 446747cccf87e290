"""Avro schemas made up by dice: most of them valid, with few names, so that they meet each other again."""

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

from ottla.registry.schemas.avro.tree import Array, Enum, Fixed, Map, Node, Record, Union, inner
from ottla.serdes.avro.binary import plain_name
from ottla.serdes.base import SerdeError

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NAMES = ("A", "B", "C", "n.A", "n.B", "m.C")
FIELDS = ("x", "y", "z")
SYMBOLS = ("P", "Q", "S", "T")
DEFAULTS = {
    "null": (None,),
    "boolean": (True, False),
    "int": (0, -5, 2147483647),
    "long": (0, 1 << 40),
    "float": (0, 1.5, "NaN"),
    "double": (1, 1e10, 1e-5, 123456.789, "-Infinity"),
    "bytes": ("", "\u00ff"),
    "string": ("", 'a"\n\u2028'),
}
VALUES: dict[str, Any] = {
    "null": (None,),
    "boolean": (True, False),
    "int": (0, -1, 2_000_000),
    "long": (5, -(1 << 62), 16_777_217),
    "float": (0.5, -3.25),
    "double": (0.1, 1e300),
    "bytes": (b"", b"text"),
    "string": ("", "Grüße"),
}
PROPERTIES = ({"p": 1}, {"q": {"b": [1.0, None], "a": True}}, {"logicalType": "date"})


def schema(dice: Random) -> Any:
    return _Making(dice).type(0)


class _Making:
    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.names: list[str] = []

    def type(self, depth: int, *, in_union: bool = False) -> Any:
        dice = self.dice
        if self.names and dice.random() < 0.15:
            return dice.choice(self.names)
        kinds = ["primitive"] if depth > 4 else ["primitive", "primitive", "record", "record", "enum", "fixed"]
        kinds += ["array", "map"] if depth <= 4 else []
        kinds += ["union"] if depth <= 4 and (not in_union or dice.random() < 0.02) else []
        made = getattr(self, dice.choice(kinds))(depth)
        if isinstance(made, dict) and dice.random() < 0.15:
            made |= dice.choice(PROPERTIES)
        return made

    def primitive(self, depth: int) -> Any:
        kind = self.dice.choice(PRIMITIVES)
        return kind if self.dice.random() < 0.8 else {"type": kind}

    def array(self, depth: int) -> Any:
        return {"type": "array", "items": self.type(depth + 1)}

    def map(self, depth: int) -> Any:
        return {"type": "map", "values": self.type(depth + 1)}

    def union(self, depth: int) -> Any:
        branches: list[Any] = []
        for _ in range(self.dice.randrange(1, 4)):
            branch = self.type(depth + 1, in_union=True)
            if branch not in branches or self.dice.random() < 0.1:
                branches.append(branch)
        return branches

    def named(self, kind: str) -> dict[str, Any]:
        unused = [name for name in NAMES if name not in self.names]
        name = self.dice.choice(unused if unused and self.dice.random() < 0.97 else NAMES)
        self.names.append(name)
        made: dict[str, Any] = {"type": kind, "name": name}
        if self.dice.random() < 0.2:
            made["aliases"] = self.dice.sample(["A", "B", "n.C", "m.A"], self.dice.randrange(1, 3))
        if self.dice.random() < 0.1:
            made["doc"] = "about é"
        if self.dice.random() < 0.1:
            made["namespace"] = self.dice.choice(["n", "m", "", "n.o"])
        return made

    def enum(self, depth: int) -> Any:
        symbols = self.dice.sample(SYMBOLS, self.dice.randrange(1, 4))
        made = self.named("enum") | {"symbols": symbols}
        if self.dice.random() < 0.3:
            made["default"] = self.dice.choice(symbols if self.dice.random() < 0.9 else SYMBOLS)
        return made

    def fixed(self, depth: int) -> Any:
        return self.named("fixed") | {"size": self.dice.choice((0, 1, 16))}

    def record(self, depth: int) -> Any:
        made = self.named("record" if self.dice.random() < 0.9 else "error")
        names = self.dice.sample(FIELDS, self.dice.randrange(0, 4))
        return made | {"fields": [self.field(name, depth) for name in names]}

    def field(self, name: str, depth: int) -> Any:
        kind = self.type(depth + 1)
        made: dict[str, Any] = {"name": name, "type": kind}
        if self.dice.random() < 0.4 and (default := self.default(kind)) is not None:
            made["default"] = default[0]
        if self.dice.random() < 0.15:
            made["aliases"] = self.dice.sample(FIELDS, self.dice.randrange(1, 3))
        if self.dice.random() < 0.1:
            made["order"] = self.dice.choice(("ascending", "descending", "IGNORE"))
        if self.dice.random() < 0.1:
            made |= self.dice.choice(PROPERTIES)
        return made

    def default(self, kind: Any) -> tuple[Any] | None:
        """Now and then one of another type."""
        if isinstance(kind, list):
            return self.default(kind[0]) if kind else None
        if isinstance(kind, dict):
            if kind["type"] in ("array", "map"):
                return ([],) if kind["type"] == "array" else ({},)
            if kind["type"] == "enum":
                return (self.dice.choice(kind["symbols"]),)
            kind = kind["type"]
        if self.dice.random() < 0.03:
            kind = self.dice.choice(PRIMITIVES)
        return (self.dice.choice(DEFAULTS[kind]),) if kind in DEFAULTS else None


def value_of(node: Node, dice: Random, depth: int = 0) -> Any:
    """Plain, as fastavro writes it. Maps have one entry: Java keeps no order of more."""
    match node:
        case Union():
            least = [each for each in node.branches if each.kind in PRIMITIVES] if depth > 4 else []
            branch = dice.choice(least or node.branches)
            return plain_name(branch), value_of(branch, dice, depth + 1)
        case Array():
            return [value_of(node.items, dice, depth + 1) for _ in range(0 if depth > 4 else dice.randrange(3))]
        case Map():
            return {} if depth > 4 else {"k": value_of(node.values, dice, depth + 1)}
        case Record():
            if depth > 60:
                raise SerdeError("it contains itself without an end")
            return {each.name: value_of(each.type, dice, depth + 1) for each in node.fields}
        case Enum():
            return dice.choice(node.symbols)
        case Fixed():
            return dice.randbytes(node.size)
    return dice.choice(VALUES[node.kind])


def has_twins(root: Node) -> bool:
    """Whether a union has two branches of numbers that fastavro does not tell apart. Ours is the wider one then."""
    seen = set()
    left = [root]
    while left:
        node = left.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        kinds = {each.kind for each in node.branches} if isinstance(node, Union) else set()
        if {"int", "long"} <= kinds or {"float", "double"} <= kinds:
            return True
        left += inner(node)
    return False


def evolved(given: Any, dice: Random) -> Any:
    """The schema after somebody has worked on it."""
    made = copy.deepcopy(given)
    for _ in range(dice.randrange(1, 4)):
        made = _changed(made, dice)
    return made


def _changed(given: Any, dice: Random) -> Any:
    spots = list(_spots(given))
    if not spots or dice.random() < 0.05:
        return given if isinstance(given, list) else [given]
    spot = dice.choice(spots)
    match spot["type"]:
        case "record" | "error":
            _change_record(spot, dice)
        case "enum":
            spot["symbols"] = dice.sample(SYMBOLS, dice.randrange(1, 5))
            spot.pop("default", None)
            if dice.random() < 0.4:
                spot["default"] = spot["symbols"][0]
        case "fixed":
            spot["size"] = dice.choice((1, 16))
        case "array":
            spot["items"] = dice.choice(PRIMITIVES)
        case "map":
            spot["values"] = dice.choice(PRIMITIVES)
        case _ if "name" in spot:
            _change_field(spot, dice)
    return given


def _change_record(spot: dict[str, Any], dice: Random) -> None:
    fields = spot["fields"]
    match dice.randrange(4):
        case 0 if fields:
            fields.pop(dice.randrange(len(fields)))
        case 1:
            for name in [name for name in FIELDS if name not in [field["name"] for field in fields]][:1]:
                added: dict[str, Any] = {"name": name, "type": dice.choice(PRIMITIVES)}
                if dice.random() < 0.6:
                    added["default"] = dice.choice(DEFAULTS[added["type"]])
                fields.insert(dice.randrange(len(fields) + 1), added)
        case 2 if fields:
            field = dice.choice(fields)
            old, field["name"] = field["name"], "renamed"
            if dice.random() < 0.7:
                field["aliases"] = [old]
        case _:
            _rename(spot, dice)


def _change_field(spot: dict[str, Any], dice: Random) -> None:
    match dice.randrange(3):
        case 0:
            spot["type"] = dice.choice(PRIMITIVES)
        case 1:
            spot["type"] = spot["type"][:1] if isinstance(spot["type"], list) else ["null", spot["type"]]
        case _:
            spot.pop("default", None)


def _rename(spot: dict[str, Any], dice: Random) -> None:
    old = spot["name"]
    spot["name"] = "n.Renamed" if dice.random() < 0.5 else f"other.{old.rpartition('.')[2]}"
    if dice.random() < 0.6:
        spot["aliases"] = [old]


def _spots(given: Any) -> Iterator[dict[str, Any]]:
    """Every object of a schema that is a type or a field."""
    if isinstance(given, list):
        for each in given:
            yield from _spots(each)
    elif isinstance(given, dict):
        if "type" in given:
            yield given
        for key in ("fields", "items", "values", "type"):
            yield from _spots(given.get(key))
