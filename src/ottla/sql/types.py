"""SQL's types are those of serdes under SQL's names; here are the names."""

from collections.abc import Mapping
from typing import Final

from ottla.serdes.types import BINARY, BOOLEAN, DATE, DOUBLE, INT, LONG, STRING, TIME, TIMESTAMP, Type

NAMES: Final[Mapping[str, Type]] = {
    "BOOLEAN": BOOLEAN,
    "INT": INT,
    "INTEGER": INT,
    "BIGINT": LONG,
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "VARCHAR": STRING,
    "BYTES": BINARY,
    "DATE": DATE,
    "TIME": TIME,
    "TIMESTAMP": TIMESTAMP,
}
"""The types that are one word. DECIMAL(p, s), ARRAY<t>, MAP<STRING, t> and STRUCT<f t, ...> are made of parts."""

_WORDS: Final = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "double": "DOUBLE",
    "string": "STRING",
    "binary": "BYTES",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "null": "NULL",
    "any": "ANY",
}


def sql_text(kind: Type) -> str:
    """A type as SQL writes it."""
    match kind.name:
        case "decimal":
            return f"DECIMAL({kind.precision}, {kind.scale})"
        case "array":
            assert kind.element is not None
            return f"ARRAY<{sql_text(kind.element)}>"
        case "map":
            assert kind.element is not None
            return f"MAP<STRING, {sql_text(kind.element)}>"
        case "struct":
            return "STRUCT<" + ", ".join(f"{quoted(name)} {sql_text(part)}" for name, part in kind.fields) + ">"
    return _WORDS[kind.name]


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
