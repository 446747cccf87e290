"""Connect's Struct: a row of a struct schema."""

from collections.abc import Mapping
from typing import Any

from ottla.connect.data.errors import DataException
from ottla.connect.data.schema import Field, Schema
from ottla.connect.data.types import Type


class Struct:
    """Values by the places of their fields. `put` checks each (`validation`); `of` takes a row that is known to fit."""

    __slots__ = ("schema", "values")

    def __init__(self, schema: Schema, values: Mapping[str, Any] | None = None) -> None:
        if schema.type is not Type.STRUCT:
            raise DataException(f"Not a struct schema: {schema}")
        self.schema = schema
        self.values: list[Any] = [None] * len(schema.fields)
        if values is not None:
            for name, value in values.items():
                self.put(name, value)

    @classmethod
    def of(cls, schema: Schema, values: list[Any]) -> "Struct":
        made = cls.__new__(cls)
        made.schema = schema
        made.values = values
        return made

    def get(self, name: str) -> Any:
        """Null is the field's default, if it has one."""
        field = self.found(name)
        value = self.values[field.index]
        return field.schema.default if value is None else value

    __getitem__ = get

    def get_without_default(self, name: str) -> Any:
        return self.values[self.found(name).index]

    def put(self, name: str, value: Any) -> "Struct":
        from ottla.connect.data.validation import validate_value  # noqa: PLC0415 (validation knows structs)

        field = self.found(name)
        validate_value(field.schema, value, field.name)
        self.values[field.index] = value
        return self

    def found(self, name: str) -> Field:
        field = self.schema.field(name)
        if field is None:
            raise DataException(f"{name} is not a valid field name")
        return field

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Struct) and self.schema == other.schema and self.values == other.values

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        from ottla.connect.data.java_text import java_text  # noqa: PLC0415 (it knows structs)

        return java_text(self)
