"""From values of a schema's type to what fastavro writes: dates as numbers, decimals as bytes, branches by name."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final, TypeAlias

from ottla.registry.schemas.avro.tree import (
    Array,
    Enum,
    Fixed,
    Map,
    Node,
    Primitive,
    Record,
    Union,
)
from ottla.serdes import dates, decimals
from ottla.serdes.avro.binary import plain_name, plain_symbols
from ottla.serdes.avro.reading import Form, default_value
from ottla.serdes.avro.types import logical_kind, members_of, not_null, widest
from ottla.serdes.base import shown_value
from ottla.serdes.types import Type
from ottla.serdes.values import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN

Write: TypeAlias = Callable[[Any], Any]

_ACCEPTED: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "null": ((type(None),), "None"),
    "boolean": ((bool,), "a bool"),
    "float": ((float, int), "a float"),
    "double": ((float, int), "a float"),
    "string": ((str,), "a str"),
    "bytes": ((bytes, bytearray, memoryview), "bytes"),
    "array": ((list, tuple), "a list"),
    "map": ((dict,), "a dict"),
    "record": ((dict,), "a dict"),
}


def writing(root: Node, *, members: bool) -> Write:
    """Of values as `reading.Form` with the same `members` gives them. The function raises TypeError or ValueError, with
    the path, for what is not of the schema."""
    return _Putting(members).together(root)


@dataclass(slots=True)
class _Putting:
    members: bool
    made: dict[int, Write] = field(default_factory=dict)

    def together(self, node: Node) -> Write:
        match node:
            case Union():
                return self._union(node)
            case Array():
                return _array(self.together(node.items))
            case Map():
                return _map(self.together(node.values))
            case Record():
                return self._record(node)
            case Enum():
                return _enum(node)
        kind = logical_kind(node)
        if kind is not None:
            return _decimal(kind, node) if kind.name == "decimal" else _moment(kind, node)
        if isinstance(node, Fixed):
            return _fixed(node)
        if node.kind in ("int", "long"):
            return _integer(node.kind)
        return _checked(*_ACCEPTED[node.kind])

    def _record(self, node: Record) -> Write:
        known = self.made.get(id(node))
        if known is not None:
            return known
        writers: dict[str, Write] = {}
        absent: dict[str, Any] = {}

        def write(value: Any) -> Any:
            if not isinstance(value, dict):
                raise TypeError(f"a dict expected, not {type(value).__name__} {shown_value(value)}")
            result = {}
            for name, write_field in writers.items():
                try:
                    if name in value:
                        result[name] = write_field(value[name])
                    elif name in absent:
                        result[name] = absent[name]
                    else:
                        raise ValueError("there is no value, and the schema has no default")
                except (TypeError, ValueError) as error:
                    raise type(error)(_with_path(name, error)) from None
            if len(value) > len(result) or not value.keys() <= writers.keys():
                unknown = ", ".join(sorted(map(str, value.keys() - writers.keys())))
                if unknown:
                    raise ValueError(f"the schema has no field {unknown}")
            return result

        self.made[id(node)] = write
        form = Form(for_columns=False, members=self.members)
        for each in node.fields:
            writers[each.name] = self.together(each.type)
        for each in node.fields:
            if each.has_default:
                with suppress(TypeError, ValueError):  # one that older servers took: then there is none
                    absent[each.name] = writers[each.name](default_value(each.type, each.default, form))
            elif isinstance(each.type, Union) and any(branch.kind == "null" for branch in each.type.branches):
                absent[each.name] = ("null", None)
        return write

    def _union(self, node: Union) -> Write:
        nullable = any(branch.kind == "null" for branch in node.branches)
        members = members_of(node)
        wide = widest(node)
        if wide is not None:
            inner = _named(plain_name(wide), self.together(wide))
        elif members and self.members:
            inner = _one_of({name: (plain_name(branch), self.together(branch)) for name, branch in members})
        else:
            inner = _first_of([(plain_name(branch), self.together(branch)) for branch in not_null(node)])

        def write(value: Any) -> Any:
            if value is None:
                if not nullable:
                    raise TypeError("no null is allowed here")
                return "null", None
            return inner(value)

        return write


def _with_path(name: str, error: Exception) -> str:
    return f"{name}: {error}"


def _named(name: str, write: Write) -> Write:
    return lambda value: (name, write(value))


def _one_of(members: Mapping[str, tuple[str, Write]]) -> Write:
    def write(value: Any) -> Any:
        given = [name for name, each in value.items() if each is not None] if isinstance(value, dict) else []
        if len(given) != 1 or given[0] not in members:
            raise ValueError(f"one of {', '.join(members)} expected, and the others null: {shown_value(value)}")
        branch, write_member = members[given[0]]
        return branch, write_member(value[given[0]])

    return write


def _first_of(branches: list[tuple[str, Write]]) -> Write:
    """The first branch that takes the value."""

    def write(value: Any) -> Any:
        for name, write_branch in branches:
            try:
                return name, write_branch(value)
            except (TypeError, ValueError):
                continue
        raise TypeError(f"one of {', '.join(name for name, _ in branches)} expected, not {shown_value(value)}")

    return write


def _checked(accepted: tuple[type, ...], expected: str) -> Write:
    takes_bool = bool in accepted

    def write(value: Any) -> Any:
        if not isinstance(value, accepted) or (isinstance(value, bool) and not takes_bool):
            raise TypeError(f"{expected} expected, not {type(value).__name__} {shown_value(value)}")
        return value

    return write


def _integer(kind: str) -> Write:
    low, high = (INT_MIN, INT_MAX) if kind == "int" else (LONG_MIN, LONG_MAX)

    def write(value: Any) -> Any:
        if type(value) is not int:
            raise TypeError(f"an int expected, not {type(value).__name__} {shown_value(value)}")
        if not low <= value <= high:
            raise ValueError(f"{value} does not fit {kind}")
        return value

    return write


def _array(write_item: Write) -> Write:
    check = _checked(*_ACCEPTED["array"])

    def write(value: Any) -> Any:
        result: list[Any] = []
        for each in check(value):
            try:
                result.append(write_item(each))
            except (TypeError, ValueError) as error:
                raise type(error)(_with_path(f"[{len(result)}]", error)) from None
        return result

    return write


def _map(write_value: Write) -> Write:
    check = _checked(*_ACCEPTED["map"])

    def write(value: Any) -> Any:
        result = {}
        for key, each in check(value).items():
            if not isinstance(key, str):
                raise TypeError(f"a str expected as key of a map, not {type(key).__name__} {shown_value(key)}")
            try:
                result[key] = write_value(each)
            except (TypeError, ValueError) as error:
                raise type(error)(_with_path(key, error)) from None
        return result

    return write


def _enum(node: Enum) -> Write:
    plain = dict(zip(node.symbols, plain_symbols(node), strict=True))

    def write(value: Any) -> Any:
        if not isinstance(value, str) or value not in plain:
            raise ValueError(f"one of {', '.join(node.symbols)} expected, not {shown_value(value)}")
        return plain[value]

    return write


def _fixed(node: Fixed) -> Write:
    check = _checked(*_ACCEPTED["bytes"])

    def write(value: Any) -> Any:
        if len(check(value)) != node.size:
            raise ValueError(f"{node.size} bytes expected, not {len(value)}")
        return bytes(value)

    return write


def _moment(kind: Type, node: Primitive | Fixed) -> Write:
    number = _NUMBERS[kind.name]
    check = _checked(*_MOMENTS[kind.name])
    factor = 1000 if str(node.props["logicalType"]).endswith("-micros") else 1

    def write(value: Any) -> Any:
        if kind.name == "date" and isinstance(value, datetime):
            raise TypeError(f"a date expected, not datetime {value}")
        return number(check(value)) * factor

    return write


_NUMBERS: Final[dict[str, Callable[[Any], int]]] = {
    "date": dates.days_of,
    "time": dates.ms_of_day,
    "timestamp": dates.ms_of,
}
_MOMENTS: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "date": ((date,), "a date"),
    "time": ((time,), "a time"),
    "timestamp": ((datetime,), "a datetime"),
}


def _decimal(kind: Type, node: Primitive | Fixed) -> Write:
    check = _checked((Decimal, int), "a Decimal")

    def write(value: Any) -> Any:
        number = Decimal(check(value))
        fitting = decimals.fit_exactly(number, kind) if number.is_finite() else None
        if fitting is None:
            raise ValueError(f"{value} does not fit {kind} without rounding")
        unscaled = int(fitting.scaleb(kind.scale, decimals.EXACT))
        # As few bytes as Java's BigInteger takes: -128 is one.
        size = node.size if isinstance(node, Fixed) else (unscaled + (unscaled < 0)).bit_length() // 8 + 1
        return unscaled.to_bytes(size, "big", signed=True)

    return write
