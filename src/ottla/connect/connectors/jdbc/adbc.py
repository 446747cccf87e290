"""PostgreSQL and SQLite, by ADBC: Arrow's tables to and fro."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from ottla.connect import spi
from ottla.connect.connectors.jdbc.database import (
    STAGE,
    STREAMED_BYTES,
    STREAMED_ROWS,
    Database,
    Missing,
    Rejected,
    said,
)
from ottla.connect.connectors.jdbc.dialects import dialect_of
from ottla.connect.connectors.jdbc.urls import Address

if TYPE_CHECKING:
    import pyarrow as pa

_AWAY_STATES: Final = ("08", "53", "57", "40", "55")
"""SQL states of a server that is away, full, going down, or in the middle of a deadlock."""
_AWAY_WORDS: Final = ("is locked", "disk I/O error", "disk is full", "unable to open database")
"""Of SQLite, whose driver gives no state, and one status for these and for a value of a wrong type."""


_MISSING_STATES: Final = ("42P01", "42703")
_MISSING_WORDS: Final = ("no such table", "no such column", "has no column named")


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
                # Times mean what they say wherever the server stands, and scans begin at the beginning.
                self._settle("SET TIME ZONE 'UTC'", "SET synchronize_seqscans = off")
            else:
                from adbc_driver_sqlite import dbapi as sqlite  # noqa: PLC0415  a native library

                self._connection = sqlite.connect(address.database, autocommit=True)
        except Exception as error:
            raise spi.TryAgain(f"{address.host or address.database} cannot be reached: {said(error)}") from error

    def _settle(self, *statements: str) -> None:
        with self._connection.cursor() as cursor:
            for each in statements:
                cursor.execute(each)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> None:
        self._guarded(lambda cursor: cursor.execute(sql, tuple(values)) if values else cursor.execute(sql))

    def query(self, sql: str, values: Sequence[Any] = ()) -> pa.Table:
        def run(cursor: Any) -> Any:
            cursor.execute(sql, tuple(values)) if values else cursor.execute(sql)
            return cursor.fetch_arrow_table()

        return self._guarded(run)

    def stream(self, sql: str) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415  heavy

        with self._connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**self._portions())
            self._begin(cursor)
            self._trying(lambda: cursor.execute(sql))
            answer = self._trying(cursor.fetch_record_batch)
            while True:
                try:
                    yield answer.read_next_batch()
                except StopIteration:
                    return
                except (OSError, pa.ArrowException) as error:
                    raise spi.TryAgain(said(error)) from error

    def _portions(self) -> dict[str, str]:
        if self._is_postgres:
            return {"adbc.postgresql.batch_size_hint_bytes": str(STREAMED_BYTES)}
        return {"adbc.sqlite.query.batch_rows": str(STREAMED_ROWS)}

    def stage(self, rows: pa.Table, target: str) -> None:
        self.execute(f"DROP TABLE IF EXISTS {STAGE}")
        self._guarded(lambda cursor: cursor.adbc_ingest(STAGE, rows, mode="create", temporary=True))

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

    def _begin(self, cursor: Any) -> None:
        if not self._begun:
            self._trying(lambda: cursor.execute("BEGIN"))
            self._begun = True

    def _guarded(self, run: Any) -> Any:
        def with_cursor() -> Any:
            with self._connection.cursor() as cursor:
                self._begin(cursor)
                return run(cursor)

        return self._trying(with_cursor)

    def _trying(self, run: Any) -> Any:
        from adbc_driver_manager import Error  # noqa: PLC0415  a native library

        try:
            return run()
        except Error as error:
            if self._may_pass(error):
                raise spi.TryAgain(said(error)) from error
            kind = Missing if self._is_missing(error) else Rejected
            raise kind(said(error)) from error

    def _is_missing(self, error: Exception) -> bool:
        if not self._is_postgres:
            return any(words in str(error) for words in _MISSING_WORDS)
        return getattr(error, "sqlstate", None) in _MISSING_STATES

    def _may_pass(self, error: Exception) -> bool:
        if not self._is_postgres:
            return any(words in str(error) for words in _AWAY_WORDS)
        state = getattr(error, "sqlstate", None) or ""
        code = getattr(getattr(error, "status_code", None), "name", "")
        # libpq gives no state when the server has gone.
        return state.startswith(_AWAY_STATES) or (not state and code in ("IO", "TIMEOUT", "UNKNOWN"))
