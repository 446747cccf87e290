"""One connection to a database, and one transaction on it at a time.

PostgreSQL and SQLite are spoken to by ADBC, which takes and gives Arrow's tables without making an object of a value;
MariaDB and MySQL by PyMySQL. What a driver raises becomes `Unavailable` if it may go better later, else `Rejected`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ottla.connect import spi
from ottla.connect.connectors.jdbc.dialects import Dialect, dialect_of
from ottla.connect.connectors.jdbc.urls import Address

if TYPE_CHECKING:
    import pyarrow as pa

STAGE: Final = "ottla_stage"
"""The temporary table in which rows lie before they are put where they belong."""
_AWAY_STATES: Final = ("08", "53", "57", "40", "55")
"""SQL states of a server that is away, full, going down, or in the middle of a deadlock."""
_AWAY_NUMBERS: Final = frozenset((1040, 1053, 1205, 1213, 2002, 2003, 2006, 2013, 2055))
_REFUSES_WHO: Final = frozenset((1044, 1045, 1049))


class Rejected(Exception):
    """The database does not take it, and will not."""


class Database(ABC):
    """Errors are `Rejected` and spi.TryAgain."""

    dialect: Dialect

    @abstractmethod
    def execute(self, sql: str, values: Sequence[Any] = ()) -> None: ...

    @abstractmethod
    def query(self, sql: str, values: Sequence[Any] = ()) -> pa.Table: ...

    @abstractmethod
    def stage(self, table: pa.Table) -> None:
        """The rows in a temporary table `STAGE`, made anew."""

    def define(self, sql: str) -> None:
        """DDL; where that ends a transaction, on a connection of its own."""
        self.execute(sql)

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def rollback(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def mark(self, index: int) -> str:
        """The placeholder of a value, counted from 1."""
        return "?"

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        found = self.query(sql, values)
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def connected(address: Address) -> Database:
    """Raises spi.TryAgain if nobody answers."""
    return MySQLDatabase(address) if address.dialect == "mysql" else AdbcDatabase(address)


class AdbcDatabase(Database):
    """Begins and ends transactions itself: the driver would take no statement after one that failed, not even the one
    that goes back to a savepoint."""

    def __init__(self, address: Address) -> None:
        self.dialect = dialect_of(address.dialect)
        self._begun = False
        self._is_postgres = address.dialect == "postgresql"
        try:
            if self._is_postgres:
                from adbc_driver_postgresql import dbapi as driver  # noqa: PLC0415  a native library

                self._connection = driver.connect(address.uri(), autocommit=True)
            else:
                from adbc_driver_sqlite import dbapi as sqlite  # noqa: PLC0415  a native library

                self._connection = sqlite.connect(address.database, autocommit=True)
        except Exception as error:
            raise spi.TryAgain(f"{address.host or address.database} cannot be reached: {_said(error)}") from error

    def execute(self, sql: str, values: Sequence[Any] = ()) -> None:
        self._guarded(lambda cursor: cursor.execute(sql, tuple(values)) if values else cursor.execute(sql))

    def query(self, sql: str, values: Sequence[Any] = ()) -> pa.Table:
        def run(cursor: Any) -> Any:
            cursor.execute(sql, tuple(values)) if values else cursor.execute(sql)
            return cursor.fetch_arrow_table()

        return self._guarded(run)

    def stage(self, table: pa.Table) -> None:
        self.execute(f"DROP TABLE IF EXISTS {STAGE}")
        self._guarded(lambda cursor: cursor.adbc_ingest(STAGE, table, mode="create", temporary=True))

    def mark(self, index: int) -> str:
        return f"${index}" if self._is_postgres else "?"

    def commit(self) -> None:
        self._finish("COMMIT")

    def rollback(self) -> None:
        self._finish("ROLLBACK")

    def _finish(self, sql: str) -> None:
        if self._begun:
            self.execute(sql)
            self._begun = False

    def close(self) -> None:
        self._trying(self._connection.close)

    def _guarded(self, run: Any) -> Any:
        def with_cursor() -> Any:
            with self._connection.cursor() as cursor:
                if not self._begun:
                    cursor.execute("BEGIN")
                    self._begun = True
                return run(cursor)

        return self._trying(with_cursor)

    def _trying(self, run: Any) -> Any:
        from adbc_driver_manager import Error  # noqa: PLC0415  a native library

        try:
            return run()
        except Error as error:
            state = getattr(error, "sqlstate", None) or ""
            code = str(getattr(error, "status_code", ""))
            # libpq gives no state when the server has gone.
            if state.startswith(_AWAY_STATES) or (not state and code.endswith(("IO", "TIMEOUT", "UNKNOWN"))):
                raise spi.TryAgain(_said(error)) from error
            raise Rejected(_said(error)) from error


class MySQLDatabase(Database):
    def __init__(self, address: Address) -> None:
        self.dialect = dialect_of("mysql")
        self._address = address
        self._connection = self._opened(autocommit=False)

    def _opened(self, *, autocommit: bool) -> Any:
        import pymysql  # noqa: PLC0415  few need it

        at = self._address
        try:
            return pymysql.connect(
                host=at.host,
                port=at.port,
                user=at.user or None,
                password=at.password,
                database=at.database or None,
                charset="utf8mb4",
                autocommit=autocommit,
                connect_timeout=10,
                init_command="SET time_zone = '+00:00'",
            )
        except pymysql.MySQLError as error:
            number = error.args[0] if error.args else 0
            raise (spi.ConnectorFailed if number in _REFUSES_WHO else spi.TryAgain)(_said(error)) from error

    def execute(self, sql: str, values: Sequence[Any] = ()) -> None:
        self._guarded(lambda cursor: cursor.execute(sql, tuple(values)) if values else cursor.execute(sql))

    def query(self, sql: str, values: Sequence[Any] = ()) -> pa.Table:
        import pyarrow as pa  # noqa: PLC0415  heavy

        def run(cursor: Any) -> Any:
            cursor.execute(sql, tuple(values)) if values else cursor.execute(sql)
            names = [each[0] for each in cursor.description or ()]
            columns = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(names)
            return pa.table([pa.array(column) for column in columns], names=names)

        return self._guarded(run)

    def stage(self, table: pa.Table) -> None:
        names = table.column_names
        columns = ", ".join(
            f"{self.dialect.quoted(name)} {_staged_type(table.schema.field(name).type)}" for name in names
        )
        self.execute(f"DROP TEMPORARY TABLE IF EXISTS {STAGE}")
        self.execute(f"CREATE TEMPORARY TABLE {STAGE} ({columns})")
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        marks = ", ".join(["%s"] * len(names))
        self._guarded(lambda cursor: cursor.executemany(f"INSERT INTO {STAGE} VALUES ({marks})", rows))

    def define(self, sql: str) -> None:
        connection = self._opened(autocommit=True)
        try:
            with connection.cursor() as cursor:
                self._trying(lambda: cursor.execute(sql))
        finally:
            connection.close()

    def mark(self, index: int) -> str:
        return "%s"

    def commit(self) -> None:
        self._trying(self._connection.commit)

    def rollback(self) -> None:
        self._trying(self._connection.rollback)

    def close(self) -> None:
        self._trying(self._connection.close)

    def _guarded(self, run: Any) -> Any:
        def with_cursor() -> Any:
            with self._connection.cursor() as cursor:
                return run(cursor)

        return self._trying(with_cursor)

    def _trying(self, run: Any) -> Any:
        import pymysql  # noqa: PLC0415  few need it

        try:
            return run()
        except pymysql.MySQLError as error:
            number = error.args[0] if error.args else 0
            if number in _AWAY_NUMBERS or isinstance(error, pymysql.InterfaceError):
                raise spi.TryAgain(_said(error)) from error
            raise Rejected(_said(error)) from error


def _staged_type(kind: Any) -> str:
    import pyarrow as pa  # noqa: PLC0415  heavy

    for is_kind, name in (
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_integer, "bigint"),
        (pa.types.is_floating, "double"),
        (pa.types.is_binary, "longblob"),
        (pa.types.is_date, "date"),
        (pa.types.is_timestamp, "datetime(6)"),
    ):
        if is_kind(kind):
            return name
    return "longtext"


def _said(error: Exception) -> str:
    """Drivers say more than one line; the first tells."""
    text = " ".join(str(error).split())
    return text[:500]
