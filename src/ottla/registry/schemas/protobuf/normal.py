"""A schema with whatever does not matter in one order: the tree that `normalize=true` prints.

Fields, oneofs, constants, ranges, options, imports are sorted; messages, enums and services are not, as the indexes in
every record count messages in the order in which they stand.
"""

from collections.abc import Iterable
from dataclasses import replace
from math import isfinite
from typing import Final

from ottla.registry.schemas.base import InvalidSchema
from ottla.registry.schemas.protobuf.names import Names, within
from ottla.registry.schemas.protobuf.parser import integer
from ottla.registry.schemas.protobuf.tree import (
    SCALAR_NAMES,
    Aggregate,
    Constant,
    Enum,
    Extend,
    Extensions,
    Field,
    File,
    Group,
    Import,
    MapOf,
    Message,
    NamePart,
    Number,
    OneOf,
    Option,
    Options,
    Range,
    Reserved,
    Rpc,
    Scalar,
    Service,
    TypeName,
    Value,
    Values,
)

_LAST: Final = 1 << 31


def normal(file: File, names: Names) -> File:
    """Raises InvalidSchema if a name means nothing."""
    return _Normal(names).file(file)


class _Normal:
    __slots__ = ("_names",)

    def __init__(self, names: Names) -> None:
        self._names = names

    def file(self, of: File) -> File:
        scope = of.package or ""
        return replace(
            of,
            syntax=None if of.syntax == "proto2" else of.syntax,
            imports=tuple(
                Import(path, kind)
                for kind in ("", "weak", "public")
                for path in sorted({each.path for each in of.imports if each.kind == kind})
            ),
            options=self._options(of.options, scope),
            messages=tuple(self._message(each, scope) for each in of.messages if each.map_entry() is None),
            enums=tuple(self._enum(each, scope) for each in of.enums),
            extends=self._extends(of.extends, scope),
            services=tuple(self._service(each, scope) for each in of.services),
        )

    def _message(self, of: Message, outer: str) -> Message:
        scope = within(outer, of.name)
        oneofs = [self._oneof(each, scope) for each in of.oneofs if each.fields or each.groups]
        return Message(
            of.name,
            reserved=_reserved(of.reserved),
            options=self._options(of.options, scope),
            fields=self._fields(of.fields, scope),
            oneofs=tuple(sorted(oneofs, key=_first_number)),
            groups=self._groups(of.groups, scope),
            extensions=self._extensions(of.extensions, scope),
            extends=self._extends(of.extends, scope),
            messages=tuple(self._message(each, scope) for each in of.messages if each.map_entry() is None),
            enums=tuple(self._enum(each, scope) for each in of.enums),
        )

    def _fields(self, of: Iterable[Field], scope: str) -> tuple[Field, ...]:
        return tuple(self._field(each, scope) for each in sorted(of, key=lambda each: each.number))

    def _groups(self, of: Iterable[Group], scope: str) -> tuple[Group, ...]:
        return tuple(
            Group(each.label, each.number, self._message(each.body, scope), self._options(each.options, scope))
            for each in sorted(of, key=lambda each: each.number)
        )

    def _oneof(self, of: OneOf, scope: str) -> OneOf:
        options = self._options(of.options, scope)
        return OneOf(of.name, options, self._fields(of.fields, scope), self._groups(of.groups, scope))

    def _field(self, of: Field, scope: str) -> Field:
        kind: TypeName = of.type
        label = of.label
        if isinstance(kind, str) and kind not in SCALAR_NAMES:
            found = self._names.find(kind, scope)
            if found is None:
                raise unresolved(kind)
            entry = found.map_entry()
            if entry is not None:
                kind, scope_of_value = entry, found.full_name
            else:
                kind, scope_of_value = f".{found.full_name}", scope
        else:
            scope_of_value = scope
        if isinstance(kind, MapOf):
            kind, label = MapOf(kind.key, self._name(kind.value, scope_of_value)), None
        # Both are printed after the options, where Confluent sorts them among these.
        options = [*self._options(of.options, scope)]
        if of.default is not None:
            options.append(Option((NamePart("default"),), _number(of.default)))
        if of.json_name is not None:
            options.append(Option((NamePart("json_name"),), of.json_name))
        return Field(label, kind, of.name, of.number, tuple(sorted(options, key=lambda each: each.name)))

    def _name(self, name: str, scope: str) -> str:
        if name in SCALAR_NAMES:
            return name
        found = self._names.find(name, scope)
        if found is None:
            raise unresolved(name)
        return f".{found.full_name}"

    def _extends(self, of: Iterable[Extend], scope: str) -> tuple[Extend, ...]:
        together: dict[str, Extend] = {}
        for each in of:
            name = self._name(each.name, scope)
            known = together.get(name, Extend(name))
            together[name] = Extend(name, (*known.fields, *each.fields), (*known.groups, *each.groups))
        return tuple(
            Extend(name, self._fields(each.fields, scope), self._groups(each.groups, scope))
            for name, each in together.items()
        )

    def _extensions(self, of: Iterable[Extensions], scope: str) -> tuple[Extensions, ...]:
        single = [Extensions((_range(each),), self._options(one.options, scope)) for one in of for each in one.ranges]
        return tuple(sorted(single, key=lambda each: each.ranges[0].first))

    def _enum(self, of: Enum, scope: str) -> Enum:
        constants = sorted(of.constants, key=lambda each: (each.number, each.name))
        return Enum(
            of.name,
            _reserved(of.reserved),
            self._options(of.options, scope),
            tuple(Constant(each.name, each.number, self._options(each.options, scope)) for each in constants),
        )

    def _service(self, of: Service, scope: str) -> Service:
        rpcs = (
            replace(
                each,
                request=self._name(each.request, scope),
                response=self._name(each.response, scope),
                options=self._options(each.options, scope),
            )
            for each in of.rpcs
        )
        return Service(of.name, self._options(of.options, scope), tuple[Rpc, ...](rpcs))

    # --- options ---

    def _options(self, of: Options, scope: str) -> Options:
        together: dict[str, list[Option]] = {}
        for each in sorted((self._option(each, scope) for each in of), key=lambda each: each.name):
            together.setdefault(each.name, []).append(each)
        return tuple(option for name, same in together.items() for option in self._merged(name, same))

    def _option(self, of: Option, scope: str) -> Option:
        value = self._value(of.value, scope)
        if not of.custom:
            return Option(of.parts, value)
        found = self._names.find_extension(of.parts[0].name, scope)
        if found is None:
            return Option(of.parts, value)
        for part in reversed(of.parts[1:]):  # (a).b = 1 says the same as (a) = { b: 1 }
            value = Aggregate(((f"[{part.name}]" if part.custom else part.name, value),))
        return Option((NamePart(found.full_name, custom=True),), value)

    def _merged(self, name: str, same: list[Option]) -> list[Option]:
        """An option that may be there once, and is given piece by piece."""
        known = self._names.extensions.get(name)
        if not same[0].custom or known is None or known.repeated or len(same) == 1:
            return same
        value = same[0].value
        for each in same[1:]:
            value = _sorted_keys(_merge(value, each.value))
        return [Option(same[0].parts, value)]

    def _value(self, of: Value, scope: str) -> Value:
        match of:
            case Aggregate(entries):
                kept = ((key, self._value(each, scope)) for key, each in entries if each != Values(()))
                return _sorted_keys(Aggregate(tuple((self._key(key, scope), each) for key, each in kept)))
            case Values((one,)):
                return self._value(one, scope)
            case Values(items):
                return Values(tuple(self._value(each, scope) for each in items))
            case _:
                return _number(of)

    def _key(self, key: str, scope: str) -> str:
        if not key.startswith("["):
            return key
        found = self._names.find_extension(key[1:-1], scope)
        return key if found is None else f"[{found.full_name}]"


def unresolved(name: str) -> InvalidSchema:
    return InvalidSchema(
        f"Could not resolve type: {name}. It is no scalar and no type of this file or of one that it imports: "
        "an import needs a reference of the same name"
    )


def _first_number(oneof: OneOf) -> int:
    return min(each.number for each in oneof.members())


def _range(of: Range) -> Range:
    return Range(of.first) if of.end == of.first else of


def _reserved(of: Iterable[Reserved]) -> tuple[Reserved, ...]:
    values = [_range(each) if isinstance(each, Range) else each for one in of for each in one.values]
    return tuple(Reserved((each,)) for each in sorted(values, key=_numbers_first))


def _numbers_first(value: Range | str) -> tuple[int, str]:
    return (value.first, "") if isinstance(value, Range) else (_LAST, value)


def _number(of: Scalar) -> Scalar:
    """In decimal, if it is a whole one; any other stays as it was written, for rounding would change what it means."""
    if not isinstance(of, Number):
        return of
    try:
        return Number(str(integer(of.text)))
    except ValueError:
        pass
    try:
        value = float(of.text)
    except ValueError:
        return of
    if not isfinite(value):
        return of
    return Number(str(int(value))) if value.is_integer() and abs(value) < 1e15 else Number(repr(value))


def _sorted_keys(of: Value) -> Value:
    return Aggregate(tuple(sorted(of.entries, key=lambda each: each[0]))) if isinstance(of, Aggregate) else of


def _merge(earlier: Value, later: Value) -> Value:
    if isinstance(earlier, Aggregate) and isinstance(later, Aggregate):
        merged = dict(earlier.entries)
        for key, value in later.entries:
            merged[key] = _merge(merged[key], value) if key in merged else value
        return Aggregate(tuple(merged.items()))
    first = earlier.items if isinstance(earlier, Values) else (earlier,)
    return Values(first + (later.items if isinstance(later, Values) else (later,)))
