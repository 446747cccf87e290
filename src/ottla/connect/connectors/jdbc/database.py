"""One connection to a database, and one transaction on it at a time.

PostgreSQL and SQLite are spoken to by ADBC (`adbc`), which takes and gives Arrow's tables without making an object of a
value; MariaDB and MySQL by PyMySQL for the conversation, connectorx for what is long and LOAD DATA for what is written
(`mysql`). What a driver raises becomes `spi.TryAgain` if it may go better later, else `Rejected`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from ottla.connect.connectors.jdbc.dialects import Dialect

if TYPE_CHECKING:
    import pyarrow as pa

STAGE: Final = "ottla_stage"
"""The temporary table in which rows lie before they are put where they belong."""
STREAMED_BYTES: Final = 4_000_000
"""About so much of a long answer is in memory at a time, where the driver can be told."""
STREAMED_ROWS: Final = 10_000
"""The same in rows."""


class Rejected(Exception):
    """The database does not take it, and will not."""


class Missing(Rejected):
    """A table or a column that the statement names is not there: no row is to blame."""


class Database(ABC):
    """Errors are `Rejected` and spi.TryAgain."""

    dialect: Dialect

    @abstractmethod
    def execute(self, sql: str, values: Sequence[Any] = ()) -> None: ...

    @abstractmethod
    def query(self, sql: str, values: Sequence[Any] = ()) -> pa.Table: ...

    @abstractmethod
    def stream(self, sql: str) -> Iterator[pa.RecordBatch]:
        """A long answer, batch by batch. Nothing else can be asked until it is over or closed."""

    @abstractmethod
    def stage(self, rows: pa.Table, target: str) -> None:
        """The rows in a temporary table `STAGE`, made anew. `target`: the table that they are for, quoted."""

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


def said(error: BaseException) -> str:
    """Drivers say more than one line; the beginning tells."""
    return " ".join(str(error).split())[:500]
