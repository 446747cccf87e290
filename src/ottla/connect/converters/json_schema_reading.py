"""JSON Schemas as Connect's, and JSON as Connect's values.

What a schema leaves open has no Connect schema and is refused by name: no type at all, lists without `items`. Objects
without properties whose other members have a schema are maps, where Confluent's converter reads a struct without fields
and loses what is in it.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ottla.connect.converters.json_reading import node_type, reader_of
from ottla.connect.data.errors import DataException
from ottla.connect.data.logical import LOGICAL_NAMES
from ottla.connect.data.schema import Schema, array_schema, map_schema, struct_schema
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import BITS, Type
from ottla.registry.schemas.base import DEFAULT_STEPS, Budget
from ottla.registry.schemas.json_schema import JsonSchema
from ottla.registry.schemas.json_schema.documents import Place

Read: TypeAlias = Callable[[Any], Any]
Tree: TypeAlias = dict[str, Any]

PACKAGE: Final = "io.confluent.connect.json"
ENUM: Final = f"{PACKAGE}.Enum"
ONE_OF: Final = f"{PACKAGE}.OneOf"
GENERAL_ENUM: Final = "org.apache.kafka.connect.data.Enum"
GENERAL_UNION: Final = "org.apache.kafka.connect.data.Union"
TYPE: Final = "connect.type"
VERSION: Final = "connect.version"
PARAMETERS: Final = "connect.parameters"
INDEX: Final = "connect.index"

NUMBERS: Final = {
    each.value: each for each in (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64, Type.BYTES)
}


def is_union(schema: Schema) -> bool:
    return schema.type is Type.STRUCT and (schema.name == ONE_OF or GENERAL_UNION in (schema.parameters or {}))


class Schemas:
    """Of one schema of the registry."""

    __slots__ = ("_budget", "_general", "_inside", "_nonrequired")

    def __init__(self, *, optional_unless_required: bool, general_sums: bool) -> None:
        self._nonrequired = optional_unless_required
        self._general = general_sums
        self._inside: list[int] = []
        self._budget = Budget(DEFAULT_STEPS)

    def of(self, schema: JsonSchema) -> Schema:
        """Raises DataException for what Connect has no schema for."""
        return self._schema(schema.documents.root)

    def _schema(self, place: Place) -> Schema:
        self._budget.spend()
        tree = place.schema
        if not isinstance(tree, dict):
            raise DataException("A schema that is true or false, and so says nothing of a type, has none in Connect")
        if id(tree) in self._inside:
            raise DataException("A schema that contains itself has none in Connect")
        self._inside.append(id(tree))
        found = self._followed(place, tree)
        self._inside.pop()
        return found

    def _followed(self, place: Place, tree: Tree) -> Schema:
        reference = tree.get("$ref")
        if not isinstance(reference, str):
            return self._described(place, tree)
        target = place.documents.follow(place, reference)
        if target is None:
            raise DataException(f"The reference {reference!r} leads nowhere")
        return self._schema(target)

    def _inner(self, place: Place, tree: Any) -> Schema:
        return self._schema(place.documents.standing(tree, place) if isinstance(tree, dict) else _at(place, tree))

    def _described(self, place: Place, tree: Tree) -> Schema:
        for word in ("oneOf", "anyOf"):
            if word in tree:
                return self._union(place, tree[word], tree)
        if "allOf" in tree:
            return self._inner(place, _merged(tree))
        kinds = _kinds(tree)
        known = [kind for kind in kinds if kind != "null"]
        if len(known) != 1:
            if len(known) > 1:
                return self._union(place, [{**tree, "type": kind} for kind in kinds], {})
            raise DataException(f"A schema without a type has none in Connect: {tree!s:.100}")
        schema = _completed(self._plain(place, tree, known[0]), tree)
        return schema.but(optional=True) if len(known) < len(kinds) else schema

    def _plain(self, place: Place, tree: Tree, kind: str) -> Schema:
        if kind == "boolean":
            return Schema(Type.BOOLEAN)
        if kind in ("integer", "number"):
            told = tree.get(TYPE)
            if told is None:
                return Schema(Type.INT64 if kind == "integer" else Type.FLOAT64)
            if told not in NUMBERS:
                raise DataException(f"Unsupported type {told}")
            return Schema(NUMBERS[told])
        if kind == "string":
            return self._text(tree)
        if kind == "array":
            return self._array(place, tree)
        return self._object(place, tree)

    def _text(self, tree: Tree) -> Schema:
        if "enum" not in tree:
            return Schema(Type.BYTES if tree.get(TYPE) == "bytes" else Type.STRING)
        parameter = GENERAL_ENUM if self._general else ENUM
        symbols = [str(each) for each in tree["enum"] if each is not None]
        numbers = {
            f"{parameter}.{symbol}": str(place) if self._general else symbol for place, symbol in enumerate(symbols)
        }
        return Schema(Type.STRING, parameters={parameter: "", **numbers})

    def _array(self, place: Place, tree: Tree) -> Schema:
        items = tree.get("items")
        if not isinstance(items, dict):
            raise DataException("Array schema did not specify the items type")
        properties = items.get("properties")
        if tree.get(TYPE) == "map" and isinstance(properties, dict) and {"key", "value"} <= properties.keys():
            return map_schema(self._inner(place, properties["key"]), self._inner(place, properties["value"]))
        return array_schema(self._inner(place, items))

    def _object(self, place: Place, tree: Tree) -> Schema:
        properties, others = tree.get("properties") or {}, tree.get("additionalProperties")
        if tree.get(TYPE) == "map" or (not properties and isinstance(others, dict) and others):
            if not isinstance(others, dict):
                raise DataException("A map whose values have no schema has none in Connect")
            return map_schema(Schema(Type.STRING), self._inner(place, others))
        required = tree.get("required") or ()
        fields = []
        for name, inner in sorted(properties.items(), key=_by_index(properties)):
            schema = self._inner(place, inner)
            fields.append((name, schema.but(optional=True) if self._nonrequired and name not in required else schema))
        return struct_schema(fields)

    def _union(self, place: Place, branches: list[Any], tree: Tree) -> Schema:
        known = [each for each in branches if not _is_null(each)]
        optional = len(known) < len(branches)
        if len(known) == 1 and optional:
            return self._inner(place, known[0]).but(optional=True)
        name = f"{GENERAL_UNION}.field." if self._general else f"{ONE_OF}.field."
        fields = [(f"{name}{index}", self._inner(place, each).but(optional=True)) for index, each in enumerate(known)]
        title = tree.get("title")
        parameters = {GENERAL_UNION: title if isinstance(title, str) else "connect_union"} if self._general else None
        union_name = title if isinstance(title, str) and self._general else ONE_OF
        return struct_schema(fields, name=union_name, parameters=parameters, optional=optional)


def _at(place: Place, tree: Any) -> Place:
    return Place(tree, place.base, place.draft, place.documents)


def _is_null(tree: Any) -> bool:
    return isinstance(tree, dict) and tree.get("type") == "null"


def _kinds(tree: Tree) -> list[str]:
    told = tree.get("type")
    if isinstance(told, str):
        return [told]
    if isinstance(told, list):
        return [each for each in told if isinstance(each, str)]
    if "enum" in tree:
        return ["string", *(["null"] if None in tree["enum"] else [])]
    return ["object"] if "properties" in tree else []


def _merged(tree: Tree) -> Tree:
    """Of parts that all hold: what each says, which is how formats, constants and enums of a type are often written."""
    made = {key: value for key, value in tree.items() if key != "allOf"}
    for part in tree["allOf"]:
        if not isinstance(part, dict):
            continue
        if "$ref" in part and len(tree["allOf"]) > 1:
            raise DataException("A schema of allOf with references has none in Connect: only parts that stand in it do")
        properties = {**made.get("properties", {}), **part.get("properties", {})}
        made = {**made, **part, **({"properties": properties} if properties else {})}
    return made


def _by_index(properties: Tree) -> Callable[[tuple[str, Any]], int]:
    """In the order they had; those that nobody numbered stay where they are."""
    places = {name: place for place, name in enumerate(properties)}

    def index(item: tuple[str, Any]) -> int:
        told = item[1].get(INDEX) if isinstance(item[1], dict) else None
        return told if isinstance(told, int) else places[item[0]]

    return index


def _completed(schema: Schema, tree: Tree) -> Schema:
    """With name, version, doc, parameters and default."""
    title, version, doc = tree.get("title"), tree.get(VERSION), tree.get("description")
    parameters = tree.get(PARAMETERS)
    if isinstance(parameters, dict):
        merged = {**(schema.parameters or {}), **{key: str(value) for key, value in parameters.items()}}
        schema = schema.but(parameters=merged)
    schema = schema.but(
        name=title if isinstance(title, str) else schema.name,
        version=int(version) if isinstance(version, int) else schema.version,
        doc=doc if isinstance(doc, str) else schema.doc,
    )
    default = tree.get("default")
    return schema if default is None else schema.but(default=reader(schema)(default))


# ---- values


def reader(schema: Schema, *, replace_null: bool = True) -> Read:
    """Of parsed JSON. The function raises DataException."""
    read = _reader(schema, replace_null)
    default = schema.default if replace_null else None

    def nullable(found: Any) -> Any:
        if found is not None:
            return read(found)
        if default is not None or schema.optional:
            return default
        raise DataException(f"Invalid null value for required {schema.type} field")

    return nullable


def _reader(schema: Schema, replace_null: bool) -> Read:
    if schema.name in LOGICAL_NAMES or schema.type.is_primitive:
        return reader_of(schema, replace_null)
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        return _list(reader(schema.value_schema, replace_null=replace_null))
    if schema.type is Type.MAP:
        return _map(schema, replace_null)
    return _one_of(schema, replace_null) if is_union(schema) else _struct(schema, replace_null)


def _list(inner: Read) -> Read:
    def read(found: Any) -> list[Any]:
        if type(found) is not list:
            raise DataException(f"Arrays should be encoded as JSON arrays, but found {node_type(found)}")
        return [inner(each) for each in found]

    return read


def _struct(schema: Schema, replace_null: bool) -> Read:
    fields = [(field.name, reader(field.schema, replace_null=replace_null)) for field in schema.fields]

    def read(found: Any) -> Struct:
        if type(found) is not dict:
            raise DataException(f"Structs should be encoded as JSON objects, but found {node_type(found)}")
        get = found.get
        return Struct.of(schema, [each(get(name)) for name, each in fields])

    return read


def _map(schema: Schema, replace_null: bool) -> Read:
    assert schema.key_schema is not None and schema.value_schema is not None
    keys = reader(schema.key_schema, replace_null=replace_null)
    values = reader(schema.value_schema, replace_null=replace_null)

    def of_object(found: Any) -> dict[Any, Any]:
        if type(found) is not dict:
            raise DataException(
                f"Maps with string fields should be encoded as JSON objects, but found {node_type(found)}"
            )
        return {key: values(each) for key, each in found.items()}

    def of_entries(found: Any) -> dict[Any, Any]:
        if type(found) is not list:
            raise DataException(
                f"Maps with non-string fields should be encoded as JSON array of objects, but found {node_type(found)}"
            )
        for each in found:
            if type(each) is not dict or not each.keys() <= {"key", "value"}:
                raise DataException(f"Found invalid map entry instead of object: {node_type(each)}")
        try:
            return {keys(each.get("key")): values(each.get("value")) for each in found}
        except TypeError as error:
            raise DataException("Keys of maps that are lists, maps or structs are not supported") from error

    plain = schema.key_schema.type is Type.STRING and not schema.key_schema.optional
    return of_object if plain else of_entries


def _one_of(schema: Schema, replace_null: bool) -> Read:
    """The first branch that it may be of, as Confluent's has it."""
    branches = [(field.schema, reader(field.schema, replace_null=replace_null)) for field in schema.fields]

    def read(found: Any) -> Struct:
        for place, (inner, each) in enumerate(branches):
            if _may_be(inner, found):
                values: list[Any] = [None] * len(branches)
                values[place] = each(found)
                return Struct.of(schema, values)
        raise DataException(f"Did not find matching oneof field for data: {found!s:.100}")

    return read


def _may_be(schema: Schema, found: Any) -> bool:
    if schema.type in BITS:
        return isinstance(found, int) and not isinstance(found, bool)
    if schema.type in (Type.FLOAT32, Type.FLOAT64):
        return not isinstance(found, bool | str | dict | list)
    if schema.type is Type.BOOLEAN:
        return isinstance(found, bool)
    if schema.type is Type.STRUCT and not is_union(schema):
        return isinstance(found, dict) and found.keys() <= {field.name for field in schema.fields}
    if schema.type is Type.BYTES:
        return isinstance(found, str) or not isinstance(found, bool | dict | list)
    if schema.type is Type.STRING:
        return isinstance(found, str)
    return isinstance(found, list) or (schema.type is Type.MAP and isinstance(found, dict))
