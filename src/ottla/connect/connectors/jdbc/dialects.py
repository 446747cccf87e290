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
    names: str
    """Which names a column may have, in words."""

    def quoted(self, name: str) -> str: ...

    def takes_name(self, name: str) -> bool:
        """Whether a column may be called so."""

    def folded(self, name: str) -> str:
        """The same for all spellings that are one column."""

    def column_type(self, schema: Schema, *, is_key: bool) -> str: ...

    def upsert_tail(self, keys: Sequence[str], others: Sequence[str]) -> str:
        """What stands behind `INSERT INTO … SELECT …`."""

    def cast(self, column: str, type_name: str) -> str:
        """A staged column as one of the table."""

    def literal(self, value: int | float | str) -> str: ...

    def page(self, limit: int | None, skipped: int) -> str:
        """The tail of a query: at most `limit` rows behind the first `skipped`."""

    def delete(self, table: str, stage: str, same: str) -> str:
        """Rows that have one like them in the stage."""

    def update(self, table: str, stage: str, changed: Sequence[tuple[str, str]], same: str) -> str:
        """Columns, quoted, and what they become."""


def _is_text(name: str) -> bool:
    """Not empty, and of characters alone: JSON may have halves of some."""
    return bool(name) and "\0" not in name and not any("\ud800" <= each <= "\udfff" for each in name)


def _literal(value: int | float | str) -> str:
    return str(value) if isinstance(value, int | float) else "'" + value.replace("'", "''") + "'"


def _delete(table: str, stage: str, same: str) -> str:
    return f"DELETE FROM {table} WHERE EXISTS (SELECT 1 FROM {stage} WHERE {same})"


def _update(table: str, stage: str, changed: Sequence[tuple[str, str]], same: str) -> str:
    return f"UPDATE {table} SET {', '.join(f'{name} = {value}' for name, value in changed)} FROM {stage} WHERE {same}"


def _page(limit: int | None, skipped: int, without: str) -> str:
    if limit is None and not skipped:
        return ""
    behind = f" OFFSET {skipped}" if skipped else ""
    return f"{without if limit is None else f' LIMIT {limit}'}{behind}"


class PostgreSQL:
    name: DialectName = "postgresql"
    names = "PostgreSQL's have 1 to 63 bytes, and none of them is zero"
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

    def takes_name(self, name: str) -> bool:
        return _is_text(name) and len(name.encode()) <= 63

    def folded(self, name: str) -> str:
        return name

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

    def literal(self, value: int | float | str) -> str:
        return _literal(value)

    def page(self, limit: int | None, skipped: int) -> str:
        return _page(limit, skipped, "")

    def delete(self, table: str, stage: str, same: str) -> str:
        return _delete(table, stage, same)

    def update(self, table: str, stage: str, changed: Sequence[tuple[str, str]], same: str) -> str:
        return _update(table, stage, changed, same)


class SQLite:
    """Times are numbers there, milliseconds or days since 1970, as Confluent's connector has them."""

    name: DialectName = "sqlite"
    names = "SQLite's are not empty, and large letters are small ones"
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

    def takes_name(self, name: str) -> bool:
        return _is_text(name)

    def folded(self, name: str) -> str:
        return "".join(chr(ord(each) | 0x20) if "A" <= each <= "Z" else each for each in name)

    def column_type(self, schema: Schema, *, is_key: bool) -> str:
        logical = schema.name in (DATE_NAME, TIME_NAME, TIMESTAMP_NAME, DECIMAL_NAME)
        return "NUMERIC" if logical else self._TYPES[schema.type]

    def upsert_tail(self, keys: Sequence[str], others: Sequence[str]) -> str:
        # Without a WHERE its parser takes ON for that of a join.
        return " WHERE true" + PostgreSQL().upsert_tail(keys, others)

    def cast(self, column: str, type_name: str) -> str:
        return column

    def literal(self, value: int | float | str) -> str:
        return _literal(value)

    def page(self, limit: int | None, skipped: int) -> str:
        return _page(limit, skipped, " LIMIT -1")

    def delete(self, table: str, stage: str, same: str) -> str:
        return _delete(table, stage, same)

    def update(self, table: str, stage: str, changed: Sequence[tuple[str, str]], same: str) -> str:
        return _update(table, stage, changed, same)


class MySQL:
    """MariaDB too."""

    name: DialectName = "mysql"
    names = "MariaDB's have 1 to 64 characters and no blank at the end, and large letters are small ones"
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

    def takes_name(self, name: str) -> bool:
        # Of what is not in the Basic Multilingual Plane its identifiers have nothing.
        return _is_text(name) and len(name) <= 64 and not name.endswith(" ") and max(name) <= "\uffff"

    def folded(self, name: str) -> str:
        return name.lower()

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

    def literal(self, value: int | float | str) -> str:
        # A backslash may stand for itself or not, by the server's mode: in hexadecimal there is none.
        return str(value) if isinstance(value, int | float) else f"_utf8mb4 x'{value.encode().hex()}'"

    def page(self, limit: int | None, skipped: int) -> str:
        return _page(limit, skipped, f" LIMIT {(1 << 64) - 1}")

    def delete(self, table: str, stage: str, same: str) -> str:
        # An EXISTS would look through the stage for each row of the table.
        return f"DELETE {table} FROM {table} JOIN {stage} ON {same}"

    def update(self, table: str, stage: str, changed: Sequence[tuple[str, str]], same: str) -> str:
        each = ", ".join(f"{table}.{name} = {value}" for name, value in changed)
        return f"UPDATE {table} JOIN {stage} ON {same} SET {each}"


def dialect_of(name: DialectName) -> Dialect:
    known: dict[DialectName, Dialect] = {"postgresql": PostgreSQL(), "sqlite": SQLite(), "mysql": MySQL()}
    return known[name]
