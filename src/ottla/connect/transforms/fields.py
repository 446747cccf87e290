"""What transforms ask of a value, in Java's words, and paths to fields inside of others (KIP-821)."""

from typing import Any, Final

from ottla.connect.data.errors import DataException
from ottla.connect.data.java_text import java_class_name
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import Field, Schema
from ottla.connect.data.struct import Struct
from ottla.connect.definitions import HIGH, STRING, ConfigError, ConfigKey, OneOfIgnoringCase, ParsedConfig

_VERSION: Final = "field.syntax.version"
SYNTAX_VERSION: Final = ConfigKey(
    _VERSION,
    STRING,
    "V1",
    HIGH,
    "How fields are named: V1, a field at the top by its whole name; V2, a path with dots into fields of fields, where "
    "a name that has dots itself stands between backticks.",
    OneOfIgnoringCase(("V1", "V2")),
)


def _class_of(value: Any) -> str:
    return "null" if value is None else java_class_name(value)


def require_map(value: Any, purpose: str) -> dict[str, Any]:
    if type(value) is not dict:
        raise DataException(
            f"Only Map objects supported in absence of schema for [{purpose}], found: {_class_of(value)}"
        )
    return value


def require_struct(value: Any, purpose: str) -> Struct:
    if type(value) is not Struct:
        raise DataException(f"Only Struct objects supported for [{purpose}], found: {_class_of(value)}")
    return value


def require_offset(record: ConnectRecord, purpose: str) -> int:
    """Only what a sink reads has one."""
    if record.offset is None:
        found = "org.apache.kafka.connect.source.SourceRecord"
        raise DataException(f"Only SinkRecord supported for [{purpose}], found: {found}")
    return record.offset


class FieldPath:
    """The way to one field. Raises ConfigError for a path with half a pair of backticks."""

    __slots__ = ("_last", "_steps")

    def __init__(self, text: str, config: ParsedConfig) -> None:
        nested = config.get_str(_VERSION).upper() == "V2"
        *self._steps, self._last = _steps(text) if nested else [text]

    def field_from(self, schema: Schema) -> Field | None:
        for step in self._steps:
            field = schema.field(step)
            if field is None:
                return None
            schema = field.schema
        return schema.field(self._last)

    def value_from_struct(self, row: Struct, *, replace_null: bool) -> Any:
        for step in self._steps:
            if row.schema.field(step) is None:
                return None
            inner = row.get(step)
            if inner is None:
                return None
            row = require_struct(inner, "nested field access")
        if row.schema.field(self._last) is None:
            return None
        return row.get(self._last) if replace_null else row.get_without_default(self._last)

    def value_from_map(self, value: dict[str, Any]) -> Any:
        for step in self._steps:
            inner = value.get(step)
            if inner is None:
                return None
            value = require_map(inner, "nested field access")
        return value.get(self._last)


def _steps(path: str) -> list[str]:
    steps: list[str] = []
    place = 0
    while place < len(path):
        if path[place] == "`":
            step, place = _quoted(path, place)
            steps.append(step)
        else:
            end = path.find(".", place)
            if end < 0:
                steps.append(path[place:])
                break
            steps.append(path[place:end])
            place = end + 1
    if path.endswith("."):
        steps.append("")
    return steps or [""]


def _quoted(path: str, opened: int) -> tuple[str, int]:
    """The name between backticks, the second of which is followed by a dot or nothing; and the place behind both."""
    name = ""
    start = place = opened + 1
    while True:
        place = path.find("`", place)
        if place < 0:
            raise _half_a_pair(path, opened)
        escaped = path[place - 1] == "\\"
        if place >= len(path) - 1:
            if escaped:
                raise _half_a_pair(path, opened)
            return name + path[start:place], place + 1
        if path[place + 1] != ".":
            place += 1
        elif escaped:
            name += path[start : place - 1] + "`"
            place += 1
            start = place
        else:
            return name + path[start:place], place + 2


def _half_a_pair(path: str, opened: int) -> ConfigError:
    return ConfigError(
        f"Incomplete backtick pair in path: [{path}], consider adding a backslash before backtick at position {opened}"
        " to escape it"
    )
