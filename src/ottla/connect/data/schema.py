"""Connect's Schema: of what type values are, whether they may be null, and how they are called. Never changes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ottla.connect.data.errors import DataException, SchemaBuilderException
from ottla.connect.data.types import Type


class Field:
    """A field of a struct: its name, its place and its schema."""

    __slots__ = ("index", "name", "schema")

    def __init__(self, name: str, index: int, schema: "Schema") -> None:
        self.name = name
        self.index = index
        self.schema = schema

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Field)
            and self.index == other.index
            and self.name == other.name
            and self.schema == other.schema
        )

    def __hash__(self) -> int:
        return hash((self.name, self.index, self.schema))

    def __repr__(self) -> str:
        return f"Field{{name={self.name}, index={self.index}, schema={self.schema}}}"


class Schema:
    """Made by `schema`, `struct_schema`, `array_schema` and `map_schema`, which check; equal by content."""

    __slots__ = (
        "_by_name",
        "_hash",
        "default",
        "doc",
        "fields",
        "key_schema",
        "name",
        "optional",
        "parameters",
        "type",
        "value_schema",
        "version",
    )

    def __init__(
        self,
        type: Type,
        *,
        optional: bool = False,
        default: Any = None,
        name: str | None = None,
        version: int | None = None,
        doc: str | None = None,
        parameters: Mapping[str, str] | None = None,
        fields: Sequence[Field] = (),
        key_schema: "Schema | None" = None,
        value_schema: "Schema | None" = None,
    ) -> None:
        self.type = type
        self.optional = optional
        self.default = default
        self.name = name
        self.version = version
        self.doc = doc
        self.parameters = dict(parameters) if parameters else None
        self.fields = tuple(fields)
        self.key_schema = key_schema
        self.value_schema = value_schema
        self._by_name = {field.name: field for field in self.fields}
        self._hash: int | None = None

    def field(self, name: str) -> Field | None:
        if self.type is not Type.STRUCT:
            raise DataException("Cannot look up fields on non-struct type")
        return self._by_name.get(name)

    def struct_fields(self) -> tuple[Field, ...]:
        """Raises DataException of any other type."""
        if self.type is not Type.STRUCT:
            raise DataException("Cannot list fields on non-struct type")
        return self.fields

    def parts(self) -> dict[str, Any]:
        """What `Schema` takes besides the type: a schema that differs in some of it is made with this."""
        return {
            "optional": self.optional,
            "default": self.default,
            "name": self.name,
            "version": self.version,
            "doc": self.doc,
            "parameters": self.parameters,
            "fields": self.fields,
            "key_schema": self.key_schema,
            "value_schema": self.value_schema,
        }

    def but(self, **changed: Any) -> "Schema":
        return Schema(self.type, **{**self.parts(), **changed})

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Schema) or hash(self) != hash(other):
            return False
        return self._content() == other._content() and self.default == other.default

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._content())
        return self._hash

    def _content(self) -> tuple[object, ...]:
        """The default is left out: it may be a list, and seldom tells two schemas apart that are equal otherwise."""
        parameters = None if self.parameters is None else frozenset(self.parameters.items())
        return (
            self.type,
            self.optional,
            self.name,
            self.version,
            self.doc,
            parameters,
            self.fields,
            self.key_schema,
            self.value_schema,
        )

    def __reduce__(self) -> "tuple[object, ...]":
        return _rebuilt, (self.type.name, self.parts())

    def __repr__(self) -> str:
        return f"Schema{{{self.type}}}" if self.name is None else f"Schema{{{self.name}:{self.type}}}"


def _rebuilt(type_name: str, parts: dict[str, Any]) -> Schema:
    return Schema(Type[type_name], **parts)


def struct_schema(fields: Sequence[tuple[str, Schema]] | Mapping[str, Schema], **parts: Any) -> Schema:
    """`parts`: optional, default, name, version, doc, parameters. Raises SchemaBuilderException."""
    made: dict[str, Field] = {}
    for name, schema in fields.items() if isinstance(fields, Mapping) else fields:
        if not name:
            raise SchemaBuilderException("fieldName cannot be null.")
        if name in made:
            raise SchemaBuilderException(f"Cannot create field because of field name duplication {name}")
        made[name] = Field(name, len(made), schema)
    return Schema(Type.STRUCT, fields=tuple(made.values()), **parts)


def array_schema(value_schema: Schema | None, **parts: Any) -> Schema:
    """A schema of lists; without one of the elements when every one is null."""
    return Schema(Type.ARRAY, value_schema=value_schema, **parts)


def map_schema(key_schema: Schema | None, value_schema: Schema | None, **parts: Any) -> Schema:
    """A schema of dicts."""
    return Schema(Type.MAP, key_schema=key_schema, value_schema=value_schema, **parts)


INT8: Final = Schema(Type.INT8)
INT16: Final = Schema(Type.INT16)
INT32: Final = Schema(Type.INT32)
INT64: Final = Schema(Type.INT64)
FLOAT32: Final = Schema(Type.FLOAT32)
FLOAT64: Final = Schema(Type.FLOAT64)
BOOLEAN: Final = Schema(Type.BOOLEAN)
STRING: Final = Schema(Type.STRING)
BYTES: Final = Schema(Type.BYTES)
OPTIONAL_INT8: Final = Schema(Type.INT8, optional=True)
OPTIONAL_INT16: Final = Schema(Type.INT16, optional=True)
OPTIONAL_INT32: Final = Schema(Type.INT32, optional=True)
OPTIONAL_INT64: Final = Schema(Type.INT64, optional=True)
OPTIONAL_FLOAT32: Final = Schema(Type.FLOAT32, optional=True)
OPTIONAL_FLOAT64: Final = Schema(Type.FLOAT64, optional=True)
OPTIONAL_BOOLEAN: Final = Schema(Type.BOOLEAN, optional=True)
OPTIONAL_STRING: Final = Schema(Type.STRING, optional=True)
OPTIONAL_BYTES: Final = Schema(Type.BYTES, optional=True)
