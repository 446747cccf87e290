"""What each database calls a type, and how it spells what differs."""

from collections.abc import Sequence
from typing import Final, Protocol

from ottla.connect.connectors.jdbc.urls import DialectName
from ottla.connect.data.logical import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, decimal_scale
from ottla.connect.data.schema import Schema
from ottla.connect.data.types import Type


class Dialect(Protocol):
    """SQL, without a connection."""

    name: DialectName

    def quoted(self, name: str) -> str: ...

    def column_type(self, schema: Schema, *, is_key: bool) -> str: ...

    def upsert_tail(self, keys: Sequence[str], others: Sequence[str]) -> str:
        """What stands behind `INSERT INTO … SELECT …`."""

    def cast(self, column: str, type_name: str) -> str:
        """A staged column as one of the table."""


class PostgreSQL:
    name: DialectName = "postgresql"
    _TYPES: Final = {
        Type.INT8: "smallint",
        Type.INT16: "smallint",
        Type.INT32: "integer",
        Type.INT64: "bigint",
        Type.FLOAT32: "real",
        Type.FLOAT64: "double precision",
        Type.BOOLEAN: "boolean",
        Type.STRING: "text",
        Type.BYTES: "bytea",
        Type.ARRAY: "jsonb",
        Type.MAP: "jsonb",
        Type.STRUCT: "jsonb",
    }
    _LOGICAL: Final = {DATE_NAME: "date", TIME_NAME: "time", TIMESTAMP_NAME: "timestamp", DECIMAL_NAME: "numeric"}

    def quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def column_type(self, schema: Schema, *, is_key: bool) -> str:
        return self._LOGICAL.get(schema.name or "") or self._TYPES[schema.type]

    def upsert_tail(self, keys: Sequence[str], others: Sequence[str]) -> str:
        target = ", ".join(map(self.quoted, keys))
        if not others:
            return f" ON CONFLICT ({target}) DO NOTHING"
        changed = ", ".join(f"{self.quoted(name)} = EXCLUDED.{self.quoted(name)}" for name in others)
        return f" ON CONFLICT ({target}) DO UPDATE SET {changed}"

    def cast(self, column: str, type_name: str) -> str:
        return f"CAST({column} AS {type_name})"


class SQLite:
    """Times are numbers there, milliseconds or days since 1970, as Confluent's connector has them."""

    name: DialectName = "sqlite"
    _TYPES: Final = {
        Type.INT8: "INTEGER",
        Type.INT16: "INTEGER",
        Type.INT32: "INTEGER",
        Type.INT64: "INTEGER",
        Type.FLOAT32: "REAL",
        Type.FLOAT64: "REAL",
        Type.BOOLEAN: "INTEGER",
        Type.STRING: "TEXT",
        Type.BYTES: "BLOB",
        Type.ARRAY: "TEXT",
        Type.MAP: "TEXT",
        Type.STRUCT: "TEXT",
    }

    def quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def column_type(self, schema: Schema, *, is_key: bool) -> str:
        logical = schema.name in (DATE_NAME, TIME_NAME, TIMESTAMP_NAME, DECIMAL_NAME)
        return "NUMERIC" if logical else self._TYPES[schema.type]

    def upsert_tail(self, keys: Sequence[str], others: Sequence[str]) -> str:
        # Without a WHERE its parser takes ON for that of a join.
        return " WHERE true" + PostgreSQL().upsert_tail(keys, others)

    def cast(self, column: str, type_name: str) -> str:
        return column


class MySQL:
    """MariaDB too."""

    name: DialectName = "mysql"
    _TYPES: Final = {
        Type.INT8: "tinyint",
        Type.INT16: "smallint",
        Type.INT32: "int",
        Type.INT64: "bigint",
        Type.FLOAT32: "float",
        Type.FLOAT64: "double",
        Type.BOOLEAN: "boolean",
        Type.STRING: "longtext",
        Type.BYTES: "longblob",
        Type.ARRAY: "json",
        Type.MAP: "json",
        Type.STRUCT: "json",
    }
    _LOGICAL: Final = {DATE_NAME: "date", TIME_NAME: "time(3)", TIMESTAMP_NAME: "datetime(3)"}
    _KEYS: Final = {Type.STRING: "varchar(255)", Type.BYTES: "varbinary(255)"}

    def quoted(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def column_type(self, schema: Schema, *, is_key: bool) -> str:
        if schema.name == DECIMAL_NAME:
            return f"decimal(65,{max(decimal_scale(schema), 0)})"
        found = self._LOGICAL.get(schema.name or "")
        return found or (self._KEYS.get(schema.type) if is_key else None) or self._TYPES[schema.type]

    def upsert_tail(self, keys: Sequence[str], others: Sequence[str]) -> str:
        changed = others or keys[:1]
        return " ON DUPLICATE KEY UPDATE " + ", ".join(
            f"{self.quoted(name)} = VALUES({self.quoted(name)})" for name in changed
        )

    def cast(self, column: str, type_name: str) -> str:
        return column


def dialect_of(name: DialectName) -> Dialect:
    known: dict[DialectName, Dialect] = {"postgresql": PostgreSQL(), "sqlite": SQLite(), "mysql": MySQL()}
    return known[name]
