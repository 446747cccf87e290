"""TimestampConverter: times as texts, numbers, or Connect's Date, Time and Timestamp."""

from typing import Any, Final

from ottla.connect.data.date_format import DateFormat
from ottla.connect.data.dates import MILLIS_PER_DAY
from ottla.connect.data.errors import ConnectException, DataException, NullPointerException
from ottla.connect.data.java_text import java_class_name
from ottla.connect.data.logical import (
    DATE,
    DATE_NAME,
    OPTIONAL_DATE,
    OPTIONAL_TIME,
    OPTIONAL_TIMESTAMP,
    TIME,
    TIME_NAME,
    TIMESTAMP,
    TIMESTAMP_NAME,
)
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import INT64, OPTIONAL_INT64, OPTIONAL_STRING, Schema, struct_schema
from ottla.connect.data.schema import STRING as STRING_SCHEMA
from ottla.connect.data.struct import Struct, with_default
from ottla.connect.data.types import Instant, Type
from ottla.connect.definitions import (
    HIGH,
    LOW,
    MEDIUM,
    REQUIRED,
    STRING,
    ConfigDef,
    ConfigError,
    ConfigKey,
    OneOf,
    Texts,
)
from ottla.connect.transforms.base import REPLACE_NULL, PartTransform, Remembered, basics, field_values, row_of
from ottla.connect.transforms.fields import require_map, require_struct

_PURPOSE: Final = "converting timestamp formats"
_SCHEMAS: Final = {
    "string": (STRING_SCHEMA, OPTIONAL_STRING),
    "unix": (INT64, OPTIONAL_INT64),
    "Date": (DATE, OPTIONAL_DATE),
    "Time": (TIME, OPTIONAL_TIME),
    "Timestamp": (TIMESTAMP, OPTIONAL_TIMESTAMP),
}
_NAMES: Final = {TIMESTAMP_NAME: "Timestamp", DATE_NAME: "Date", TIME_NAME: "Time"}
_PER_MILLI: Final = {"microseconds": 1000, "nanoseconds": 1_000_000}
_LONGEST: Final = (1 << 63) - 1


class TimestampConverter(PartTransform):
    """What a time was is told by its schema, or else by its class."""

    CONFIG = ConfigDef(
        ConfigKey("field", STRING, "", HIGH, "The field that is a time; empty if all of the key or value is one."),
        ConfigKey(
            "target.type",
            STRING,
            REQUIRED,
            HIGH,
            "What it becomes: string, unix, Date, Time or Timestamp.",
            OneOf(tuple(_SCHEMAS)),
        ),
        ConfigKey(
            "format",
            STRING,
            "",
            MEDIUM,
            "The pattern of times that are texts, as Java's SimpleDateFormat has it: for writing where the target is "
            "string, for reading where the source is.",
        ),
        ConfigKey(
            "unix.precision",
            STRING,
            "milliseconds",
            LOW,
            "What numbers count since 1970: seconds, milliseconds, microseconds or nanoseconds. Parts of a millisecond "
            "are lost.",
            OneOf(("nanoseconds", "microseconds", "milliseconds", "seconds")),
        ),
        REPLACE_NULL,
    )

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        self._field = self.config.get_str("field")
        self._target = self.config.get_str("target.type")
        self._precision = self.config.get_str("unix.precision")
        self._replace_null = self.config.get_bool(REPLACE_NULL.name)
        self._format = _format(self.config.get_str("format"), self._target)
        self._schema = Remembered(self._changed_schema)

    def changed(self, record: ConnectRecord, schema: Schema | None, value: Any) -> tuple[Schema | None, Any]:
        if schema is None:
            if value is None or not self._field:
                return None, self._converted(value, None)
            updated = dict(require_map(value, _PURPOSE))
            updated[self._field] = self._converted(updated.get(self._field), None)
            return None, updated
        if not self._field:
            return _SCHEMAS[self._target][schema.optional], self._converted(value, _kind_of(schema))
        row = None if value is None else require_struct(value, _PURPOSE)
        made = self._schema(schema)
        return made, None if row is None else self._row(row, made)

    def _row(self, row: Struct, made: Schema) -> Struct:
        values = field_values(row, self._replace_null)
        field = row.schema.field(self._field)
        if field is not None:
            values[field.index] = self._converted(values[field.index], _kind_of(field.schema))
        return row_of(made, values)

    def _changed_schema(self, schema: Schema) -> Schema:
        fields = [
            (field.name, _SCHEMAS[self._target][field.schema.optional] if field.name == self._field else field.schema)
            for field in schema.struct_fields()
        ]
        made = struct_schema(fields, optional=schema.optional, **basics(schema))
        return made if schema.default is None else with_default(made, self._row(schema.default, made))

    def _converted(self, value: Any, kind: str | None) -> Any:
        if value is None:
            return None
        return self._written(self._read(value, _inferred(value) if kind is None else kind))

    def _read(self, value: Any, kind: str) -> int:
        if kind == "string":
            return self._parsed(value)
        if kind == "unix":
            if type(value) is not int:
                raise DataException(f"Expected Unix timestamp to be a Long, but found class {java_class_name(value)}")
            if self._precision == "seconds":
                return max(min(value * 1000, _LONGEST), -_LONGEST - 1)
            return _towards_zero(value, _PER_MILLI.get(self._precision, 1))
        if type(value) is not Instant:
            found = java_class_name(value)
            raise DataException(f"Expected {kind} to be a java.util.Date, but found class {found}")
        return value

    def _parsed(self, value: Any) -> int:
        if type(value) is not str:
            raise DataException(f"Expected string timestamp to be a String, but found class {java_class_name(value)}")
        if self._format is None:
            raise NullPointerException("A text is read by `format`, and none is configured")
        millis = self._format.parse(value)
        if millis is None:
            pattern = self._format.pattern
            raise DataException(f"Could not parse timestamp: value ({value}) does not match pattern ({pattern})")
        return millis

    def _written(self, millis: int) -> Any:
        match self._target:
            case "string":
                assert self._format is not None
                return self._format.format(millis)
            case "unix":
                if self._precision == "seconds":
                    return _towards_zero(int(millis), 1000)
                return max(min(int(millis) * _PER_MILLI.get(self._precision, 1), _LONGEST), -_LONGEST - 1)
            case "Date":
                return Instant(millis - millis % MILLIS_PER_DAY)
            case "Time":
                return Instant(millis % MILLIS_PER_DAY)
        return Instant(millis)


def _format(pattern: str, target: str) -> DateFormat | None:
    if not pattern.strip():
        if target == "string":
            raise ConfigError("TimestampConverter requires format option to be specified when using string timestamps")
        return None
    try:
        return DateFormat(pattern)
    except ValueError as error:
        raise ConfigError(
            f"TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps: {pattern}"
        ) from error


def _towards_zero(value: int, by: int) -> int:
    return value // by if value >= 0 else -(-value // by)


def _kind_of(schema: Schema) -> str:
    if schema.name in _NAMES:
        return _NAMES[schema.name]
    if schema.type is Type.STRING:
        return "string"
    if schema.type is Type.INT64:
        return "unix"
    raise ConnectException(f"Schema {schema} does not correspond to a known timestamp type format")


def _inferred(value: Any) -> str:
    kinds = {Instant: "Timestamp", int: "unix", str: "string"}
    if type(value) not in kinds:
        of = java_class_name(value)
        raise DataException(f"TimestampConverter does not support class {of} objects as timestamps")
    return kinds[type(value)]


class TimestampConverterKey(TimestampConverter):
    part = "key"


class TimestampConverterValue(TimestampConverter):
    part = "value"
