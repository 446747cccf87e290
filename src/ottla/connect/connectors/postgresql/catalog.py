"""What the server knows of tables, now: the log has names and types of columns, not which may be null."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.connect.connectors.postgresql.columns import TypeName
from ottla.connect.connectors.postgresql.server import Server

MOST_DOMAINS: Final = 20
"""That stand for each other."""

_TABLES: Final = """
SELECT n.nspname, c.relname, c.relispartition, c.relkind = 'p'
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p'
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
ORDER BY 1, 2
"""
_COLUMNS: Final = """
SELECT a.attname, a.atttypid::bigint, a.atttypmod, a.attnotnull,
  CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
_KEY: Final = """
SELECT a.attname
FROM pg_index i
JOIN pg_class c ON c.oid = i.indrelid
CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(number, place)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
WHERE i.indrelid = %s AND k.place <= i.indnkeyatts
  AND (i.indisprimary OR (c.relreplident = 'i' AND i.indisreplident
    AND NOT EXISTS (SELECT FROM pg_index p WHERE p.indrelid = i.indrelid AND p.indisprimary)))
ORDER BY k.place
"""
_TYPE: Final = """
SELECT t.typname, t.typtype, t.typbasetype::bigint, t.typtypmod, t.typcategory, t.typelem::bigint,
  ARRAY(SELECT e.enumlabel::text FROM pg_enum e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder)
FROM pg_type t WHERE t.oid = %s
"""
_OID: Final = """
SELECT c.oid::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE (n.nspname, c.relname) = (%s, %s)
"""


class ColumnFacts(NamedTuple):
    name: str
    type: TypeName
    required: bool
    default: str | None
    """The expression, as SQL."""


class TableFacts(NamedTuple):
    schema: str
    name: str
    columns: Mapping[str, ColumnFacts]
    """In order."""
    key: tuple[str, ...]


class TableName(NamedTuple):
    schema: str
    name: str
    is_partition: bool = False
    is_partitioned: bool = False

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


class Catalog:
    """Types are remembered."""

    __slots__ = ("_server", "_types")

    def __init__(self, server: Server) -> None:
        self._server = server
        self._types: dict[tuple[int, int], TypeName] = {}

    def tables(self) -> list[TableName]:
        return [TableName(*row) for row in self._server.rows(_TABLES)]

    def oid(self, schema: str, name: str) -> int | None:
        found = self._server.rows(_OID, (schema, name))
        return int(found[0][0]) if found else None

    def table(self, oid: int, schema: str, name: str) -> TableFacts:
        """Without columns if it is gone."""
        columns = {
            column: ColumnFacts(column, self.type(type_oid, modifier), required, default)
            for column, type_oid, modifier, required, default in self._server.rows(_COLUMNS, (oid,))
        }
        key = tuple(row[0] for row in self._server.rows(_KEY, (oid,)))
        return TableFacts(schema, name, columns, key)

    def type(self, oid: int, modifier: int) -> TypeName:
        found = self._types.get((oid, modifier))
        if found is None:
            found = self._types[oid, modifier] = self._asked(oid, modifier, 0)
        return found

    def _asked(self, oid: int, modifier: int, depth: int) -> TypeName:
        rows = self._server.rows(_TYPE, (oid,))
        if not rows or depth > MOST_DOMAINS:
            return TypeName("unknown")
        name, kind, base, base_modifier, category, element, labels = rows[0]
        if kind == "d":
            return self._asked(base, base_modifier if modifier < 0 else modifier, depth + 1)
        if category == "A" and element:
            return TypeName(name, modifier, (), self._asked(element, modifier, depth + 1))
        return TypeName(name, modifier, tuple(labels))
