"""What stands in WITH (…): known names, each with its type."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from ottla.sql import tree as t
from ottla.sql.analysis.refusals import meant, refuse

_TEXT, _NUMBER, _TRUTH = "a text in quotes", "a whole number", "TRUE or FALSE"

_BOTH: Final = {
    "KAFKA_TOPIC": _TEXT,
    "FORMAT": _TEXT,
    "KEY_FORMAT": _TEXT,
    "VALUE_FORMAT": _TEXT,
    "KEY_DELIMITER": _TEXT,
    "VALUE_DELIMITER": _TEXT,
    "PARTITIONS": _NUMBER,
    "REPLICAS": _NUMBER,
    "RETENTION_MS": _NUMBER,
    "CLEANUP_POLICY": _TEXT,
    "TIMESTAMP": _TEXT,
    "TIMESTAMP_FORMAT": _TEXT,
    "WRAP_SINGLE_VALUE": _TRUTH,
    "KEY_SCHEMA_ID": _NUMBER,
    "VALUE_SCHEMA_ID": _NUMBER,
    "KEY_SCHEMA_FULL_NAME": _TEXT,
    "VALUE_SCHEMA_FULL_NAME": _TEXT,
    "VALUE_AVRO_SCHEMA_FULL_NAME": _TEXT,
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION": _TEXT,
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION": _TEXT,
}
CREATE: Final = {**_BOTH, "WINDOW_TYPE": _TEXT, "WINDOW_SIZE": _TEXT, "SOURCED_BY_CONNECTOR": _TEXT}
CREATE_AS: Final = _BOTH
FUNCTION: Final = {"TIMEOUT_MS": _NUMBER}
INSERT: Final = {"QUERY_ID": _TEXT}
_KEY_OF_BEFORE: Final = "KEY"
_RANGES: Final = {
    "PARTITIONS": (1, 100_000),
    "REPLICAS": (1, (1 << 15) - 1),
    "RETENTION_MS": (-1, (1 << 63) - 1),
    "KEY_SCHEMA_ID": (0, (1 << 31) - 1),
    "VALUE_SCHEMA_ID": (0, (1 << 31) - 1),
}
"""From where to where a number goes, both included. Kafka's, but for partitions: no cluster has more of one topic."""


@dataclass(frozen=True, slots=True)
class Properties:
    given: Mapping[str, Any]
    names: Mapping[str, t.Word] = field(default_factory=dict)
    """As they are written, with their places."""

    def place(self, name: str, node: t.Node) -> t.Node | t.Word:
        """Where a property stands; else the statement."""
        return self.names.get(name, node)

    def text(self, name: str) -> str | None:
        found = self.given.get(name)
        return None if found is None else str(found)

    def upper(self, name: str) -> str | None:
        found = self.text(name)
        return None if found is None else found.upper()

    def number(self, name: str) -> int | None:
        found = self.given.get(name)
        return None if found is None else int(found)

    def truth(self, name: str) -> bool | None:
        found = self.given.get(name)
        assert found is None or isinstance(found, bool)
        return found


def read(written: t.Properties, known: Mapping[str, str], node: t.Node) -> Properties:
    found: dict[str, Any] = {}
    for name, value in written:
        upper = name.upper()
        where = name if isinstance(name, t.Word) else node
        if upper == _KEY_OF_BEFORE:  # clients of before ksqlDB 0.10 say it
            refuse("KEY is no property: write KEY, or PRIMARY KEY of a table, behind the type of the column", where)
        if upper not in known:
            refuse(f"{name} is no property of this statement{meant(upper, known)}", where)
        if upper in found:
            refuse(f"the property {upper} is there twice", where)
        read_value = _READERS[known[upper]](value)
        if read_value is None:
            refuse(f"the property {upper} takes {known[upper]}, not {value!r}", where)
        least, most = _RANGES.get(upper, (None, None))
        if least is not None and most is not None and not least <= read_value <= most:
            refuse(f"{upper} is {least} at least and {most} at most, not {value}", where)
        found[upper] = read_value
    said = Properties(found, {name.upper(): name for name, _ in written if isinstance(name, t.Word)})
    for part in ("KEY_FORMAT", "VALUE_FORMAT"):
        if "FORMAT" in found and part in found:
            refuse(f"FORMAT is both KEY_FORMAT and VALUE_FORMAT: leave it or {part} out", said.place(part, node))
    if "TIMESTAMP_FORMAT" in found and "TIMESTAMP" not in found:
        refuse(
            "TIMESTAMP_FORMAT says how to read the column that TIMESTAMP names: add TIMESTAMP='column'",
            said.place("TIMESTAMP_FORMAT", node),
        )
    return said


def _text(value: t.Constant) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: t.Constant) -> int | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):  # 1E400
        return None
    return number if not isinstance(value, float | Decimal) or number == value else None


def _truth(value: t.Constant) -> bool | None:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    return value if isinstance(value, bool) else None


_READERS: Final[dict[str, Callable[[t.Constant], Any]]] = {_TEXT: _text, _NUMBER: _number, _TRUTH: _truth}
