"""What a table looks like, and how it is made and widened."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ottla.connect import spi
from ottla.connect.connectors.jdbc.database import Database, Rejected
from ottla.connect.data.schema import Schema

_COLUMNS: Final = {
    "postgresql": (
        "SELECT a.attname::text, format_type(a.atttypid, a.atttypmod)::text FROM pg_attribute a "
        "WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
    ),
    "sqlite": "SELECT name, type FROM pragma_table_info(?)",
    "mysql": (
        "SELECT column_name, column_type FROM information_schema.columns WHERE table_schema = "
        "COALESCE(%s, database()) AND table_name = %s ORDER BY ordinal_position"
    ),
}


class Tables:
    """Of one connection. What was seen is remembered until something was changed or refused."""

    __slots__ = ("_adds", "_database", "_known", "_makes", "touched")

    def __init__(self, database: Database, *, makes: bool, adds: bool) -> None:
        self._database = database
        self._makes = makes
        self._adds = adds
        self._known: dict[str, dict[str, str]] = {}
        self.touched: set[str] = set()
        """Tables that the transaction has written to."""

    def forget(self, table: str) -> None:
        """It is not as it was."""
        self._known.pop(table, None)
        if not self._looked(table):
            self.touched.discard(table)  # what is not there is not locked either

    def quoted(self, table: str) -> str:
        """`schema.table` is two names."""
        return ".".join(map(self._database.dialect.quoted, table.split(".")))

    def columns(self, table: str, wanted: Mapping[str, Schema], keys: Sequence[str]) -> dict[str, str]:
        """The types of those that are wanted, by name. Raises ConnectorFailed, and BadRecord for names that no column
        of this database can have."""
        folded = self._folded(wanted)
        known = self._known.get(table) or self._looked(table)
        if not known:
            if not self._makes:
                raise spi.ConnectorFailed(
                    f"There is no table {table}, and auto.create=false: make the table, or set auto.create=true"
                )
            self._create(table, wanted, keys)
            known = self._looked(table)
        if any(name not in known for name in folded):
            known = self._looked(table)  # somebody else may have added it
        missing = [name for same, name in folded.items() if same not in known]
        if missing:
            self._add(table, {name: wanted[name] for name in missing})
            known = self._looked(table)
        self._known[table] = known
        return {name: known[same] for same, name in folded.items()}

    def _folded(self, names: Iterable[str]) -> dict[str, str]:
        """By what the database knows them by. Raises BadRecord."""
        dialect = self._database.dialect
        found: dict[str, str] = {}
        for name in names:
            if not dialect.takes_name(name):
                raise spi.BadRecord(f"the field {name[:100]!r} cannot be a column: {dialect.names}")
            same = dialect.folded(name)
            if same in found:
                raise spi.BadRecord(f"the fields {found[same]} and {name} are one column there: {dialect.names}")
            found[same] = name
        return found

    def _looked(self, table: str) -> dict[str, str]:
        dialect = self._database.dialect
        schema, _, bare = table.rpartition(".")
        named: Sequence[str | None] = [bare]
        if dialect.name != "sqlite":
            named = [self.quoted(table)] if dialect.name == "postgresql" else [schema or None, bare]
        return {dialect.folded(name): kind for name, kind in self._database.rows(_COLUMNS[dialect.name], named)}

    def _create(self, table: str, wanted: Mapping[str, Schema], keys: Sequence[str]) -> None:
        dialect = self._database.dialect
        parts = [self._column(name, schema, name in keys) for name, schema in wanted.items()]
        if keys:
            parts.append(f"PRIMARY KEY ({', '.join(map(dialect.quoted, keys))})")
        # MariaDB's own choice may be one that takes only some of the letters.
        letters = " CHARACTER SET utf8mb4" if dialect.name == "mysql" else ""
        self._define(f"CREATE TABLE IF NOT EXISTS {self.quoted(table)} ({', '.join(parts)}){letters}", table)

    def _column(self, name: str, schema: Schema, is_key: bool) -> str:
        dialect = self._database.dialect
        required = is_key or not schema.optional
        return f"{dialect.quoted(name)} {dialect.column_type(schema, is_key=is_key)}{' NOT NULL' if required else ''}"

    def _add(self, table: str, missing: Mapping[str, Schema]) -> None:
        if not self._adds:
            names = ", ".join(missing)
            raise spi.ConnectorFailed(
                f"Table {table} lacks {names}, and auto.evolve=false: add the columns, or set auto.evolve=true"
            )
        for name, schema in missing.items():
            if not schema.optional and schema.default is None:
                raise spi.ConnectorFailed(
                    f"The field {name} must not be null, and the rows that table {table} has already would have nothing"
                    " for it: make the field optional, give it a default, or add the column by hand"
                )
            column = self._column(name, schema.but(optional=True), False)
            unless = "IF NOT EXISTS " if self._database.dialect.name == "postgresql" else ""
            self._define(f"ALTER TABLE {self.quoted(table)} ADD COLUMN {unless}{column}", table)

    def _define(self, sql: str, table: str) -> None:
        waits = self._database.dialect.name == "mysql" and table in self.touched
        if waits:  # for our own transaction, for ever
            self._database.rollback()
        try:
            self._database.define(sql)
        except Rejected as error:
            raise spi.ConnectorFailed(f"Table {table} cannot be made or changed: {error}; tried: {sql}") from error
        if waits:
            raise spi.ConnectorFailed(
                f"Table {table} had to be changed in the middle of a transaction, which MariaDB does not do: it is "
                "changed now, and the batch is written when the connector is started again"
            )
