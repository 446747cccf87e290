"""Types by their names, custom ones among them."""

from collections.abc import Mapping

from ottla.serdes.types import STRING, Type, array_of, decimal_of, map_of
from ottla.sql import tree as t
from ottla.sql.analysis.refusals import meant, refuse
from ottla.sql.types import NAMES


def resolved(written: t.TypeName, custom: Mapping[str, Type]) -> Type:
    if written.quoted:
        return _custom(written, custom)
    match written.name:
        case "ARRAY":
            return array_of(resolved(_part(written, 0), custom))
        case "MAP":
            if len(written.arguments) != 2:
                refuse("a MAP has a type of keys and one of values: MAP<STRING, type>", written)
            if resolved(_part(written, 0), custom) != STRING:
                refuse("the keys of a MAP are STRING", written)
            return map_of(resolved(_part(written, 1), custom))
        case "STRUCT":
            return _struct(written, custom)
        case "DECIMAL":
            return _decimal(written)
    return NAMES.get(written.name) or _custom(written, custom)


def _part(written: t.TypeName, place: int) -> t.TypeName:
    part = written.arguments[place]
    assert isinstance(part, t.TypeName)
    return part


def _struct(written: t.TypeName, custom: Mapping[str, Type]) -> Type:
    fields = tuple((name, resolved(kind, custom)) for name, kind in written.fields)
    names = [name for name, _ in fields]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        refuse(f"the STRUCT has the field {twice} twice", written)
    return Type("struct", fields=fields)


def _decimal(written: t.TypeName) -> Type:
    numbers = [each for each in written.arguments if isinstance(each, int)]
    if not 1 <= len(numbers) <= 2:
        refuse("say how many digits a DECIMAL has, and how many of them behind the point: DECIMAL(10, 2)", written)
    try:
        return decimal_of(*numbers)
    except ValueError as error:
        refuse(str(error), written)


def _custom(written: t.TypeName, custom: Mapping[str, Type]) -> Type:
    found = custom.get(written.name)
    if found is None:
        refuse(f"{written.name} is no type{meant(written.name, [*NAMES, *custom])}", written)
    return found
