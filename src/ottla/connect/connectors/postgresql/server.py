"""One connection to the server, and what its errors mean: those that may pass are tried again, the others are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ottla.connect import spi
from ottla.connect.connectors.postgresql.config import Connection
from ottla.connect.connectors.postgresql.pgoutput import Text

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

CONNECT_S: Final = 10
_AWAY: Final = ("08", "53", "57", "40", "55P03", "55006")
"""SQL states of a server that is away, full or going down; of a lock, and of a slot that somebody reads just now."""
_OPTIONS: Final = {
    "datestyle": "ISO,YMD",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "lc_monetary": "C",
    "client_encoding": "UTF8",
    "statement_timeout": "0",
    "synchronous_commit": "local",
    "idle_in_transaction_session_timeout": "0",
}
"""So that a value has the same text wherever it comes from."""


class Refused(Exception):
    """The server does not do it, and will not. `state`: the SQL state."""

    def __init__(self, state: str, said: str) -> None:
        self.state = state
        super().__init__(said)


class Server:
    """Connected when it is asked something, and again if the connection is lost. Raises Refused, spi.TryAgain."""

    __slots__ = ("_config", "_connection", "_name")

    def __init__(self, config: Connection, name: str) -> None:
        self._config = config
        self._name = name
        self._connection: psycopg.Connection[Any] | None = None

    def rows(self, sql: str, values: Sequence[Any] = (), *, binary: bool = False) -> list[tuple[Any, ...]]:
        return self._guarded(lambda cursor: cursor.execute(sql, values or None, binary=binary).fetchall())

    def run(self, sql: str) -> None:
        self._guarded(lambda cursor: cursor.execute(sql))

    def texts(self, sql: str, values: Sequence[Any] = ()) -> list[list[Text]]:
        """What the server writes, untouched. Values are put into the statement as literals without a type."""

        def run(cursor: Any) -> list[list[Text]]:
            import psycopg  # noqa: PLC0415  a native library

            client = psycopg.ClientCursor(cursor.connection)
            client.execute(sql, values or None)
            found = client.pgresult
            assert found is not None
            value, columns = found.get_value, range(found.nfields)
            return [
                [None if (each := value(row, column)) is None else str(each, "utf-8") for column in columns]
                for row in range(found.ntuples)
            ]

        return self._guarded(run)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @property
    def is_open(self) -> bool:
        return self._connection is not None and not self._connection.closed

    def _guarded(self, run: Callable[[Any], T]) -> T:
        import psycopg  # noqa: PLC0415  a native library

        try:
            if self._connection is None or self._connection.closed:
                self._connection = self._connected()
            with self._connection.cursor() as cursor:
                return run(cursor)
        except psycopg.Error as error:
            state, said = error.sqlstate or "", _said(error)
            lost = self._connection is None or self._connection.closed or self._connection.broken
            if lost:
                self.close()
            if state.startswith(_AWAY) or (lost and not state.startswith(("28", "3D"))):
                raise spi.TryAgain(f"PostgreSQL at {self._where}: {said}") from error
            raise Refused(state, said) from error

    @property
    def _where(self) -> str:
        return f"{self._config.database_hostname}:{self._config.database_port}"

    def _connected(self) -> psycopg.Connection[Any]:
        import psycopg  # noqa: PLC0415  a native library

        config = self._config
        files = {
            "sslcert": config.database_sslcert,
            "sslkey": config.database_sslkey,
            "sslpassword": config.database_sslpassword,
            "sslrootcert": config.database_sslrootcert,
        }
        try:
            return psycopg.connect(
                host=config.database_hostname,
                port=config.database_port,
                user=config.database_user,
                password=config.database_password or None,
                dbname=config.database_dbname,
                sslmode=config.database_sslmode,
                connect_timeout=CONNECT_S,
                application_name=f"ottla connect {self._name}"[:63],
                options=" ".join(f"-c {name}={value}" for name, value in _OPTIONS.items()),
                autocommit=True,
                **{name: value for name, value in files.items() if value},  # type: ignore[arg-type]
            )
        except psycopg.OperationalError as error:
            # libpq gives no state here: a server that refuses somebody says FATAL and why.
            said = _said(error)
            if "authentication failed" in said or "does not exist" in said or "no pg_hba.conf entry" in said:
                raise spi.ConnectorFailed(f"PostgreSQL at {self._where} does not let it in: {said}") from error
            raise spi.TryAgain(f"PostgreSQL at {self._where} cannot be reached: {said}") from error


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:500]


def quoted(name: str) -> str:
    """A name in a statement."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
