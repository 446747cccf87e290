"""The normalised text (`normalize=true`): what does not matter in one order, as Confluent's server puts it.

Properties are sorted, at every depth, but a logical type that holds comes first with its precision and scale; aliases
are sorted; an `error` is a record; an empty doc of a type goes. The order of fields, branches and symbols stays. In two
corners Confluent's normalising changes what a schema means, and ours does not: the default of a union that fits its
second branch is lost there, and a type without namespace inside of one is moved into it.
"""

import math
from typing import Final

from ottla.registry.schemas.avro.json_text import java_float
from ottla.registry.schemas.avro.render import Rendering
from ottla.registry.schemas.avro.tree import Array, Field, Fixed, Json, Map, Named, Node, Primitive, Record, Union

_OF_KIND: Final = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
    "uuid": "string",
    "big-decimal": "bytes",
}
_OF_FIXED_SIZE: Final = {"uuid": 16, "duration": 12}


class Normal(Rendering):
    __slots__ = ()

    def props(self, node: Primitive | Array | Map | Named | Field) -> dict[str, Json]:
        first = logical_type(node) if isinstance(node, Primitive | Fixed) else {}
        return first | {key: _sorted(node.props[key]) for key in sorted(node.props)}

    def doc(self, node: Named) -> str | None:
        return node.doc or None

    def kind(self, record: Record) -> str:
        return "record"

    def type_aliases(self, node: Named) -> list[str]:
        return [alias.within(node.name.space) for alias in sorted(node.aliases, key=lambda alias: alias.full)]

    def field_aliases(self, field: Field) -> list[str]:
        return sorted(field.aliases)

    def default(self, field: Field) -> Json:
        return _sorted(_typed(field.default, field.type))


def logical_type(node: Primitive | Fixed) -> dict[str, Json]:
    """The properties that make a logical type, if it is one that holds for its type."""
    name = node.props.get("logicalType")
    if name == "decimal":
        return _decimal(node)
    if not isinstance(name, str):
        return {}
    holds = _OF_FIXED_SIZE.get(name) == node.size if isinstance(node, Fixed) else _OF_KIND.get(name) == node.kind
    return {"logicalType": name} if holds else {}


def _decimal(node: Primitive | Fixed) -> dict[str, Json]:
    precision, scale = node.props.get("precision"), node.props.get("scale", 0)
    if not (_is_int(precision) and _is_int(scale)):
        return {}
    assert isinstance(precision, int) and isinstance(scale, int)
    if isinstance(node, Fixed):
        most = math.floor(math.log10(2) * (8 * node.size - 1))
    else:
        most = (1 << 31) - 1 if node.kind == "bytes" else 0
    if not (0 < precision <= most and 0 <= scale <= precision):
        return {}
    found: dict[str, Json] = {"logicalType": "decimal", "precision": precision}
    return found | {"scale": scale} if scale else found


def _is_int(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _sorted(value: Json) -> Json:
    match value:
        case dict():
            return {key: _sorted(value[key]) for key in sorted(value)}
        case list():
            return [_sorted(each) for each in value]
        case _:
            return value


def _typed(value: Json, node: Node) -> Json:
    """Numbers as their type has them: 1 of a double is 1.0."""
    match node:
        case Primitive() if node.kind in ("float", "double") and isinstance(value, int | float):
            number = float(value) if abs(value) < 1e308 else value
            return java_float(number) if node.kind == "float" else number
        case Union() if node.branches:
            return _typed(value, node.branches[0])
        case Array() if isinstance(value, list):
            return [_typed(each, node.items) for each in value]
        case Map() if isinstance(value, dict):
            return {key: _typed(each, node.values) for key, each in value.items()}
        case Record() if isinstance(value, dict):
            return {
                key: _typed(each, node.by_name[key].type) if key in node.by_name else each
                for key, each in value.items()
            }
        case _:
            return value
