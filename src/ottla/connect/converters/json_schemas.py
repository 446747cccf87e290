"""The `schema` of a JSON envelope: read into a Schema, and written as Java writes it."""

from typing import Any, Final

from ottla.connect.converters.json_reading import reader_of
from ottla.connect.converters.json_texts import MISSING, quoted
from ottla.connect.converters.json_writing import Writers
from ottla.connect.data.errors import DataException
from ottla.connect.data.schema import Schema, array_schema, map_schema, struct_schema
from ottla.connect.data.struct import with_default
from ottla.connect.data.types import Type, wrapped

_NAMES: Final = {
    Type.BOOLEAN: "boolean",
    Type.INT8: "int8",
    Type.INT16: "int16",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BYTES: "bytes",
    Type.STRING: "string",
}
_TYPES: Final = {name: type for type, name in _NAMES.items()}
MOST_DEPTH: Final = 200
"""Of schemas in each other."""


def schema_text(schema: Schema | None, writers: Writers, field: str | None = None) -> str:
    """`field`: the name that it has as a field of a struct."""
    if schema is None:
        return "null"
    parts = [*_type_parts(schema, writers), ("optional", "true" if schema.optional else "false")]
    if schema.name is not None:
        parts.append(("name", quoted(schema.name)))
    if schema.version is not None:
        parts.append(("version", str(schema.version)))
    if schema.doc is not None:
        parts.append(("doc", quoted(schema.doc)))
    if schema.parameters is not None:
        inner = ",".join(f"{quoted(name)}:{quoted(value)}" for name, value in schema.parameters.items())
        parts.append(("parameters", f"{{{inner}}}"))
    if schema.default is not None:
        parts.append(("default", writers.of(schema)(schema.default)))
    if field is not None:
        parts.append(("field", quoted(field)))
    return "{" + ",".join(f'"{name}":{text}' for name, text in parts) + "}"


def _type_parts(schema: Schema, writers: Writers) -> list[tuple[str, str]]:
    if schema.type is Type.ARRAY:
        return [("type", '"array"'), ("items", schema_text(schema.value_schema, writers))]
    if schema.type is Type.MAP:
        keys, values = schema_text(schema.key_schema, writers), schema_text(schema.value_schema, writers)
        return [("type", '"map"'), ("keys", keys), ("values", values)]
    if schema.type is Type.STRUCT:
        fields = ",".join(schema_text(field.schema, writers, field.name) for field in schema.fields)
        return [("type", '"struct"'), ("fields", f"[{fields}]")]
    return [("type", f'"{_NAMES[schema.type]}"')]


def schema_of(found: Any, *, replace_null: bool = True, depth: int = 0) -> Schema | None:
    """Of JSON that was parsed. Raises DataException."""
    if found is None:
        return None
    if depth > MOST_DEPTH:
        raise DataException(f"Schemas more than {MOST_DEPTH} deep in each other")
    named = found.get("type") if isinstance(found, dict) else None
    if not isinstance(named, str):
        raise DataException("Schema must contain 'type' field")
    schema = _bare(named, found, replace_null, depth).but(
        optional=found.get("optional") is True,
        name=_text(found, "name"),
        version=_version(found),
        doc=_text(found, "doc"),
        parameters=_parameters(found),
    )
    if "default" in found:
        return with_default(schema, reader_of(schema, replace_null)(found["default"]))
    return schema


def _bare(named: str, found: dict[str, Any], replace_null: bool, depth: int) -> Schema:
    def inner(key: str) -> Schema | None:
        return schema_of(found[key], replace_null=replace_null, depth=depth + 1)

    if named in _TYPES:
        return Schema(_TYPES[named])
    if named == "array":
        if found.get("items") is None:
            raise DataException("Array schema did not specify the element type")
        return array_schema(inner("items"))
    if named == "map":
        for key, what in (("keys", "key"), ("values", "value")):
            if found.get(key) is None:
                raise DataException(f"Map schema did not specify the {what} type")
        return map_schema(inner("keys"), inner("values"))
    if named == "struct":
        return _struct(found, replace_null, depth)
    raise DataException(f"Unknown schema type: {named}")


def _struct(found: dict[str, Any], replace_null: bool, depth: int) -> Schema:
    if not isinstance(found.get("fields"), list):
        raise DataException('Struct schema\'s "fields" argument is not an array.')
    fields: list[tuple[str, Schema]] = []
    for each in found["fields"]:
        name = each.get("field") if isinstance(each, dict) else None
        if not isinstance(name, str):
            raise DataException("Struct schema's field name not specified properly")
        schema = schema_of(each, replace_null=replace_null, depth=depth + 1)
        assert schema is not None
        fields.append((name, schema))
    return struct_schema(fields)


def _text(found: dict[str, Any], key: str) -> str | None:
    value = found.get(key)
    return value if isinstance(value, str) else None


def _version(found: dict[str, Any]) -> int | None:
    value = found.get("version")
    return wrapped(value, 32) if isinstance(value, int) and not isinstance(value, bool) else None


def _parameters(found: dict[str, Any]) -> dict[str, str] | None:
    given = found.get("parameters")
    if not isinstance(given, dict):
        return None
    if not all(isinstance(value, str) for value in given.values()):
        raise DataException("Schema parameters must have string values.")
    return given or None


def known_value(found: Any) -> Any:
    """Nothing at all is null."""
    return None if found is MISSING else found
