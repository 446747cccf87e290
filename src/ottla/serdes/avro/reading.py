"""From what the writer's schema wrote to values of the reader's: evolution and logical types in one step.

A conversion is put together once for a pair of schemas, by Java's rules of resolution: fields by name or alias,
defaults for what data lacks, promotions, the branch of a union that fits. Where nothing changes it is None, and then
nothing is done. What cannot be read fails when it is met in data, not before: a branch that nobody wrote harms nobody.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, TypeAlias

from ottla.registry.schemas.avro import compatibility, defaults
from ottla.registry.schemas.avro.tree import (
    Array,
    Enum,
    Field,
    Fixed,
    Json,
    Map,
    Named,
    Node,
    Primitive,
    Record,
    Union,
)
from ottla.registry.schemas.base import DEFAULT_STEPS, Budget
from ottla.serdes import dates, decimals
from ottla.serdes.avro.binary import plain_name, plain_symbols
from ottla.serdes.avro.types import logical_kind, members_of, widest
from ottla.serdes.base import shown_value
from ottla.serdes.types import Type

Convert: TypeAlias = Callable[[Any], Any]
Conversion: TypeAlias = Convert | None

_PYTHON: Final = {
    "null": type(None),
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": str,
    "enum": str,
    "bytes": bytes,
    "fixed": bytes,
    "array": list,
    "map": dict,
    "record": dict,
}
_MICROS: Final = ("time-micros", "timestamp-micros")


class NotOfReader(ValueError):
    """What was written has no place in the reader's schema; `path` grows on the way out."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.path = ""

    def __str__(self) -> str:
        where = f" at {self.path.removeprefix('.')}" if self.path else ""
        return f"{self.args[0]}{where}"


@dataclass(frozen=True, slots=True)
class Form:
    """What values are made of: for Python, or for Arrow, which takes numbers for dates and times."""

    for_columns: bool
    members: bool
    """Whether unions of several types are structs; else they are the plain value."""


def conversion(writer: Node, reader: Node, form: Form, *, named: bool) -> Conversion:
    """`named`: see `Binary`."""
    return _Putting(form, named).together(writer, reader)


def default_value(node: Node, given: Json, form: Form) -> Any:
    """A default, as a value of its type."""
    return _Putting(form, named=False).default(node, given)


@dataclass(slots=True)
class _Putting:
    form: Form
    named: bool
    made: dict[tuple[int, int], "_Later | None"] = field(default_factory=dict)
    """Of pairs of records, once for each: they may stand in very many places. None: nothing is done."""

    def together(self, writer: Node, reader: Node) -> Conversion:
        match writer, reader:
            case Union(), _:
                return self._from_union(writer, reader)
            case _, Union():
                return self._into_union(writer, reader)
            case Record(), Record():  # whatever they are called, as in Java
                return self._record(writer, reader)
            case Enum(), Enum() if _is_named_alike(writer, reader):
                return _symbol(writer, reader)
            case Fixed(), Fixed() if _is_named_alike(writer, reader) and writer.size == reader.size:
                return self._leaf(reader)
            case Array(), Array():
                return _each(self.together(writer.items, reader.items))
            case Map(), Map():
                return _each_value(self.together(writer.values, reader.values))
            case Primitive(), Primitive() if writer.kind == reader.kind:
                return self._leaf(reader)
            case Primitive(), Primitive() if writer.kind in compatibility.PROMOTIONS.get(reader.kind, ()):
                return _after(_PROMOTED[reader.kind], self._leaf(reader))
        return _refusal(writer, reader)

    def _record(self, writer: Record, reader: Record) -> Conversion:
        key = id(writer), id(reader)
        if key in self.made:
            known = self.made[key]
            if known is not None:
                known.is_used = True
            return known
        later = self.made[key] = _Later()
        later.convert = self._fields(writer, reader)
        if later.convert is None:
            self.made[key] = None
        return later.convert

    def _fields(self, writer: Record, reader: Record) -> Conversion:
        plan: list[tuple[str, str, Conversion]] = []
        filled: dict[str, Any] = {}
        for each in reader.fields:
            source = _source(each, writer)
            if source is not None:
                plan.append((each.name, source, self.together(writer.by_name[source].type, each.type)))
            elif each.has_default:
                try:
                    filled[each.name] = self.default(each.type, each.default)
                except NotOfReader as wrong:  # older servers took any default
                    return _raising(f"field {each.name} of {reader.name.full} is not in the data, and {wrong}")
            else:
                return _raising(f"field {each.name} of {reader.name.full} is not in the data and has no default")
        same_names = [name for name, _, _ in plan] == [each.name for each in writer.fields]
        if same_names and not filled and all(convert is None for _, _, convert in plan):
            return None
        return _struct([each.name for each in reader.fields], plan, filled)

    def _from_union(self, writer: Union, reader: Node) -> Conversion:
        by_name: dict[str, Conversion] = {}
        by_type: dict[type, Conversion] = {}
        for branch in writer.branches:
            convert = self.together(branch, reader)
            if self.named and isinstance(branch, Record | Enum | Fixed):
                by_name[plain_name(branch)] = convert
            elif branch.kind in ("long", "double"):
                by_type[_PYTHON[branch.kind]] = convert  # not told from int and float, whose values it holds too
            else:
                by_type.setdefault(_PYTHON[branch.kind], convert)
        if not by_name:
            if all(convert is None for convert in by_type.values()):
                return None
            if len(by_type) == 2 and type(None) in by_type and by_type[type(None)] is None:
                (only,) = (convert for convert in by_type.values() if convert is not None)
                return lambda found: None if found is None else only(found)

        def read(found: Any) -> Any:
            if type(found) is tuple:
                name, found = found
                convert = by_name[name]
            else:
                convert = by_type[type(found)]
            return found if convert is None else convert(found)

        return read

    def _into_union(self, writer: Node, reader: Union) -> Conversion:
        """Into the branch of its own type, else into the first that takes it."""
        members = members_of(reader) if self.form.members else []
        if not members and (wide := widest(reader)) is not None and writer.kind != "null":
            return self.together(writer, wide)
        branch = _branch_for(writer, reader)
        if branch is None:
            return _refusal(writer, reader)
        convert = self.together(writer, branch)
        return _member(members, branch, convert) if branch.kind != "null" else convert

    def _leaf(self, reader: Primitive | Fixed) -> Conversion:
        kind = logical_kind(reader)
        if kind is None:
            return None
        if kind.name == "decimal":
            return _decimal_reader(kind)
        micros = reader.props["logicalType"] in _MICROS
        return (_CELLS if self.form.for_columns else _VALUES)[kind.name, micros]

    def default(self, node: Node, given: Json) -> Any:
        match node:
            case Union():
                branch = next((each for each in node.branches if _is_default_of(each, given)), None)
                if branch is None:
                    raise _no_default(given)
                value = self.default(branch, given)
                members = members_of(node) if self.form.members and branch.kind != "null" else []
                into = _member(members, branch, None)
                return value if into is None else into(value)
            case Array():
                assert isinstance(given, list)
                return [self.default(node.items, each) for each in given]
            case Map():
                assert isinstance(given, dict)
                return {key: self.default(node.values, each) for key, each in given.items()}
            case Record():
                assert isinstance(given, dict)
                return {each.name: self.default(each.type, given.get(each.name, each.default)) for each in node.fields}
            case Enum():
                return given
        return self._default_leaf(node, given)

    def _default_leaf(self, node: Primitive | Fixed, given: Json) -> Any:
        value: Any = given
        if node.kind in ("bytes", "fixed"):
            assert isinstance(given, str)
            value = given.encode("latin-1", "replace")
        elif node.kind in ("float", "double"):
            assert isinstance(given, int | float)
            value = float(given)
        if isinstance(node, Fixed) and len(value) != node.size:
            raise _no_default(given)
        convert = self._leaf(node)
        return value if convert is None else convert(value)


class _Later:
    """The conversion of a record that is met inside of itself."""

    __slots__ = ("convert", "is_used")

    def __init__(self) -> None:
        self.convert: Conversion = None
        self.is_used = False

    def __call__(self, found: Any) -> Any:
        return found if self.convert is None else self.convert(found)


def _is_named_alike(writer: Named, reader: Named) -> bool:
    return compatibility.is_named_alike(reader, writer)


def _source(reading: Field, writer: Record) -> str | None:
    return next((name for name in (reading.name, *reading.aliases) if name in writer.by_name), None)


def _branch_for(writer: Node, reader: Union) -> Node | None:
    """Of its own name; else a record of other name that can take it, rather one that is called the same but for the
    namespace; else the first of its type, or to which it can be promoted."""
    alike = [branch for branch in reader.branches if branch.kind == writer.kind]
    if isinstance(writer, Record | Enum | Fixed):
        named = [branch for branch in alike if isinstance(branch, Record | Enum | Fixed)]
        own = [branch for branch in named if branch.name == writer.name or writer.name in branch.aliases]
        taking = [branch for branch in named if isinstance(branch, Enum | Fixed) or _takes(branch, writer)]
        short = [branch for branch in taking if branch.name.simple == writer.name.simple]
        records = [branch for branch in taking if isinstance(branch, Record)]
        return next(iter((*own, *short, *records)), None)
    wider = [branch for branch in reader.branches if writer.kind in compatibility.PROMOTIONS.get(branch.kind, ())]
    return next(iter((*alike, *wider)), None)


def _takes(reader: Node, writer: Node) -> bool:
    found = compatibility.differences(reader, writer, Budget(DEFAULT_STEPS))
    return all(each.code == "NAME_MISMATCH" for each in found)


def _is_default_of(node: Node, given: Json) -> bool:
    return defaults.is_valid(node, given, Budget(DEFAULT_STEPS))


def _refusal(writer: Node, reader: Node) -> Convert:
    return _raising(f"the reader has {reader.kind} where {writer.kind} was written")


def _no_default(given: Json) -> NotOfReader:
    return NotOfReader(f"its default {shown_value(given)} is not of its type")


def _raising(reason: str) -> Convert:
    def refuse(found: Any) -> Any:
        raise NotOfReader(reason)

    return refuse


def _after(first: Conversion, then: Conversion) -> Conversion:
    if first is None or then is None:
        return first or then
    return lambda found: then(first(found))


def _struct(names: list[str], plan: list[tuple[str, str, Conversion]], filled: dict[str, Any]) -> Convert:
    """In the reader's order. Defaults that could be changed by whoever gets them are made anew."""
    in_order = {name: (source, convert) for name, source, convert in plan}
    steps = [(name, *in_order.get(name, (None, None))) for name in names]
    fixed = {name: value for name, value in filled.items() if not isinstance(value, list | dict)}

    def read(found: Any) -> Any:
        result = {}
        for name, source, convert in steps:
            if source is None:
                result[name] = fixed[name] if name in fixed else copy.deepcopy(filled[name])
            elif convert is None:
                result[name] = found[source]
            else:
                try:
                    result[name] = convert(found[source])
                except NotOfReader as refused:
                    refused.path = f".{name}{refused.path}"
                    raise
        return result

    return read


def _each(convert: Conversion) -> Conversion:
    return None if convert is None else lambda found: [convert(each) for each in found]


def _each_value(convert: Conversion) -> Conversion:
    return None if convert is None else lambda found: {key: convert(each) for key, each in found.items()}


def _member(members: list[tuple[str, Node]], branch: Node, convert: Conversion) -> Conversion:
    if not members:
        return convert
    nothing: dict[str, Any] = dict.fromkeys(name for name, _ in members)
    own = next(name for name, each in members if each is branch)
    return lambda found: {**nothing, own: found if convert is None else convert(found)}


def _symbol(writer: Enum, reader: Enum) -> Conversion:
    known = frozenset(reader.symbols)
    plain = plain_symbols(writer)
    if known.issuperset(writer.symbols) and plain == writer.symbols:
        return None
    default = reader.default
    meant = dict(zip(plain, writer.symbols, strict=True))

    def read(found: Any) -> Any:
        symbol = meant[found]
        if symbol in known:
            return symbol
        if default is None:
            raise NotOfReader(f"enum {reader.name.full} of the reader has no symbol {symbol}")
        return default

    return read


_PROMOTED: Final[dict[str, Conversion]] = {
    "long": None,
    "float": float,
    "double": float,
    "bytes": str.encode,
    "string": lambda found: found.decode(),
}


def _decimal_reader(kind: Type) -> Convert:
    def read(found: bytes) -> Decimal:
        number = Decimal(int.from_bytes(found, "big", signed=True)).scaleb(-kind.scale, decimals.EXACT)
        fitting = decimals.fit_exactly(number, kind)
        if fitting is None:
            raise NotOfReader(f"{len(found)} bytes do not fit {kind}")
        return fitting

    return read


def _known(what: str, made: Any, found: int) -> Any:
    if made is None:
        raise NotOfReader(f"{found} is no {what} between the years 1 and 9999")
    return made


def _day_ms(found: int) -> int:
    if not 0 <= found < dates.DAY_MS:
        raise NotOfReader(f"{found} ms is no time of day")
    return found


def _timestamp_us(found_ms: int) -> int:
    if not dates.FIRST_MS <= found_ms <= dates.LAST_MS:
        raise NotOfReader(f"{found_ms} ms is no timestamp between the years 1 and 9999")
    return found_ms * 1000


def _day(found: int) -> int:
    if not dates.FIRST_DAY <= found <= dates.LAST_DAY:
        raise NotOfReader(f"{found} is no date between the years 1 and 9999")
    return found


_VALUES: Final[dict[tuple[str, bool], Convert]] = {
    ("date", False): lambda found: _known("date", dates.date_of(found), found),
    ("time", False): lambda found: dates.time_of(_day_ms(found)),
    ("time", True): lambda found: dates.time_of(_day_ms(found // 1000)),
    ("timestamp", False): lambda found: _known("timestamp", dates.timestamp_of(found), found),
    ("timestamp", True): lambda found: _known("timestamp", dates.timestamp_of(found // 1000), found),
}
_CELLS: Final[dict[tuple[str, bool], Convert]] = {
    ("date", False): _day,
    ("time", False): _day_ms,
    ("time", True): lambda found: _day_ms(found // 1000),
    ("timestamp", False): _timestamp_us,
    ("timestamp", True): lambda found: _timestamp_us(found // 1000),
}
