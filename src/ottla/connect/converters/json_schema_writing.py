"""Connect's schemas as JSON Schemas, and Connect's values as JSON of them.

The layout is that of Confluent's JsonSchemaData: what JSON Schema has no word for is in members that begin with
`connect.`; what may be null is one of null and itself; maps whose keys are no texts are lists of entries.
"""

from typing import Any, Final

from ottla.connect.converters.json_schema_reading import (
    ENUM,
    GENERAL_ENUM,
    GENERAL_UNION,
    INDEX,
    PACKAGE,
    PARAMETERS,
    TYPE,
    VERSION,
    is_union,
)
from ottla.connect.converters.json_texts import quoted
from ottla.connect.converters.json_writing import Write, Writers
from ottla.connect.data.errors import DataException
from ottla.connect.data.java_text import java_class_name
from ottla.connect.data.logical import DECIMAL_NAME
from ottla.connect.data.schema import Schema
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import BITS, Type

Tree = dict[str, Any]

_NULL: Final = {"type": "null"}
_OWN: Final = (PACKAGE, GENERAL_ENUM, GENERAL_UNION)


class Rendering:
    """By the settings of a converter. `writers` write the defaults."""

    __slots__ = ("_additional", "_required", "_writers")

    def __init__(self, writers: "SchemaWriters", *, additional: bool, required: bool) -> None:
        self._writers = writers
        self._additional = additional
        self._required = required

    def of(self, schema: Schema, index: int | None = None) -> Tree:
        """`index`: which field it is. Raises DataException."""
        made = self._union(schema) if is_union(schema) else self._plain(schema)
        if schema.optional and not is_union(schema):
            made = {"oneOf": [_NULL, made]}
        return made if index is None else {**made, INDEX: index}

    def _union(self, schema: Schema) -> Tree:
        branches = [self.of(field.schema.but(optional=False), field.index) for field in schema.fields]
        title = (schema.parameters or {}).get(GENERAL_UNION)
        made: Tree = {} if title is None else {"title": title}
        return {**made, "oneOf": [_NULL, *branches] if schema.optional else branches}

    def _plain(self, schema: Schema) -> Tree:
        made = self._typed(schema)
        if schema.name is not None:
            made["title"] = schema.name
        if schema.doc is not None:
            made["description"] = schema.doc
        if schema.default is not None:
            made["default"] = _Json(self._writers.of(schema)(schema.default))
        if schema.version is not None:
            made[VERSION] = schema.version
        kept = {key: value for key, value in (schema.parameters or {}).items() if not key.startswith(_OWN)}
        if kept:
            made[PARAMETERS] = kept
        return made

    def _typed(self, schema: Schema) -> Tree:
        if schema.type is Type.STRUCT:
            return self._object(schema)
        if schema.type is Type.ARRAY:
            return {"type": "array", "items": self.of(_known(schema.value_schema))}
        if schema.type is Type.MAP:
            return self._map(_known(schema.key_schema), _known(schema.value_schema))
        if schema.type is Type.STRING:
            symbols = _symbols(schema)
            return {"type": "string"} if symbols is None else {"enum": symbols}
        if schema.type is Type.BOOLEAN:
            return {"type": "boolean"}
        if schema.type is Type.BYTES:
            return {"type": "number" if schema.name == DECIMAL_NAME else "string", TYPE: "bytes"}
        return {"type": "integer" if schema.type in BITS else "number", TYPE: schema.type.value}

    def _object(self, schema: Schema) -> Tree:
        made: Tree = {
            "type": "object",
            "properties": {field.name: self.of(field.schema, field.index) for field in schema.fields},
        }
        required = [field.name for field in schema.fields if not field.schema.optional]
        if self._required and required:
            made["required"] = required
        if not self._additional:
            made["additionalProperties"] = False
        return made

    def _map(self, key: Schema, value: Schema) -> Tree:
        if key.type is Type.STRING and not key.optional:
            return {"type": "object", "additionalProperties": self.of(value), TYPE: "map"}
        entry = {"type": "object", "properties": {"key": self.of(key, 0), "value": self.of(value, 1)}}
        return {"type": "array", "items": entry, TYPE: "map"}


class _Json(str):
    """JSON that is written already."""

    __slots__ = ()


def text_of(tree: Any) -> str:
    """Without blanks."""
    if isinstance(tree, _Json):
        return str(tree)
    if isinstance(tree, dict):
        return "{" + ",".join(f"{quoted(key)}:{text_of(value)}" for key, value in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ",".join(map(text_of, tree)) + "]"
    if isinstance(tree, str):
        return quoted(tree)
    return str(tree).lower() if isinstance(tree, bool) else str(tree)


def _symbols(schema: Schema) -> list[str] | None:
    parameters = schema.parameters or {}
    for parameter in (ENUM, GENERAL_ENUM):
        if parameter in parameters:
            return [key.removeprefix(f"{parameter}.") for key in parameters if key.startswith(f"{parameter}.")]
    return None


def _known(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataException("A list or map of which nothing is known has no JSON Schema")
    return schema


class SchemaWriters(Writers):
    """Values as JSON, where they differ from JsonConverter's: unions, and maps whose keys are no texts."""

    __slots__ = ()

    def _struct(self, schema: Schema) -> Write:
        if not is_union(schema):
            return super()._struct(schema)
        branches = [self.of(field.schema.but(optional=False)) for field in schema.fields]

        def written(value: Any) -> str:
            if type(value) is not Struct:
                raise DataException(f"Invalid type for STRUCT: class {java_class_name(value)}")
            for write, each in zip(branches, value.values, strict=True):
                if each is not None:
                    return write(each)
            raise DataException("A union of which no branch is there")

        return written

    def _map(self, schema: Schema) -> Write:
        key = _known(schema.key_schema)
        if key.type is Type.STRING and not key.optional:
            return super()._map(schema)
        keys, values = self.of(key), self.of(_known(schema.value_schema))

        def written(value: Any) -> str:
            if type(value) is not dict:
                raise DataException(f"Invalid type for MAP: class {java_class_name(value)}")
            return "[" + ",".join(f'{{"key":{keys(k)},"value":{values(v)}}}' for k, v in value.items()) + "]"

        return written
