"""What a transform is: made of a connector's texts, then given one record after the other."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from ottla.connect.data.errors import DataException
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import Schema
from ottla.connect.data.struct import Struct
from ottla.connect.definitions import BOOLEAN, MEDIUM, ConfigDef, ConfigKey, ParsedConfig, Texts
from ottla.connect.plugins import PluginType

Part: TypeAlias = Literal["key", "value"]
T = TypeVar("T")

MOST_SCHEMAS = 1000
"""That a transform remembers."""

REPLACE_NULL = ConfigKey(
    "replace.null.with.default",
    BOOLEAN,
    True,
    MEDIUM,
    "Whether a field that is null counts as its default, where it has one; else it stays null.",
)


class Transform(ABC):
    """One instance per stage of a chain."""

    PLUGIN_TYPE: ClassVar = PluginType.TRANSFORMATION
    CONFIG: ClassVar[ConfigDef] = ConfigDef()

    def __init__(self, given: Texts) -> None:
        """`given`: the keys behind `transforms.<alias>.`. Raises ConfigError."""
        self.config: ParsedConfig = self.CONFIG.parse(given)

    @abstractmethod
    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """None drops the record. Raises ConnectException."""


class PartTransform(Transform):
    """Of keys or of values; each has a subclass that says which."""

    part: ClassVar[Part] = "value"

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        if self.part == "value":
            changed = self.changed(record, record.value_schema, record.value)
            return record if changed is None else record.with_value(*changed)
        changed = self.changed(record, record.key_schema, record.key)
        return record if changed is None else record.with_key(*changed)

    @abstractmethod
    def changed(self, record: ConnectRecord, schema: Schema | None, value: Any) -> tuple[Schema | None, Any] | None:
        """The part's new schema and value; None: the record stays as it is."""


class Remembered(Generic[T]):
    """What was made of schemas that were met."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[Schema], T]) -> None:
        self._make = make
        self._made: dict[Schema, T] = {}

    def __call__(self, schema: Schema) -> T:
        made = self._made.get(schema)
        if made is None:
            made = self._make(schema)
            if len(self._made) >= MOST_SCHEMAS:
                self._made.pop(next(iter(self._made)))
            self._made[schema] = made
        return made


def row_of(schema: Schema, values: list[Any]) -> Struct:
    """Of values that are of their fields' schemas but for null, which a field must allow."""
    if None in values:
        for field, value in zip(schema.fields, values, strict=True):
            if value is None and not field.schema.optional:
                raise DataException(
                    f'Invalid value: null used for required field: "{field.name}", schema type: {field.schema.type}'
                )
    return Struct.of(schema, values)


def field_values(row: Struct, replace_null: bool) -> list[Any]:
    """Of all fields, in a list of its own."""
    values = row.values.copy()
    if replace_null and None in values:
        for index, field in enumerate(row.schema.fields):
            if values[index] is None:
                values[index] = field.schema.default
    return values


def basics(schema: Schema) -> dict[str, Any]:
    """What a changed schema keeps: name, version, doc and parameters."""
    return {"name": schema.name, "version": schema.version, "doc": schema.doc, "parameters": schema.parameters}
