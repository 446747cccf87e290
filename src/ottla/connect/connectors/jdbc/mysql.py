"""MariaDB and MySQL: PyMySQL holds the conversation, connectorx reads what is long, LOAD DATA writes.

Measured on MariaDB 10.11, rows of 11 columns, CPU of our side: reading 34 µs a row by PyMySQL, 1.5 by connectorx;
writing 15 µs by INSERTs of many rows, 0.6 by LOAD DATA.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pymysql
from pymysql.connections import Connection, MysqlPacket
from pymysql.constants import CLIENT, FIELD_TYPE, FLAG

from ottla.connect import spi
from ottla.connect.connectors.jdbc.database import STAGE, STREAMED_ROWS, Database, Missing, Rejected, said
from ottla.connect.connectors.jdbc.dialects import dialect_of
from ottla.connect.connectors.jdbc.urls import Address

_AWAY_NUMBERS: Final = frozenset((1040, 1053, 1205, 1213, 2002, 2003, 2006, 2013, 2055))
_MISSING_NUMBERS: Final = frozenset((1054, 1146))
"""A column, a table."""
_REFUSES_WHO: Final = frozenset((1044, 1045, 1049))
_LOADS_NOTHING: Final = frozenset((1148, 3948, 4166))
"""The server has local_infile=OFF, as MySQL has by itself."""
_CONNECT_TIMEOUT_S: Final = 10
_DEFINE_TIMEOUT_S: Final = 30
"""For those who use the table; by itself the server would wait for a day."""
_UTC: Final = "SET time_zone = '+00:00'"
_BINARY: Final = 63
"""The character set of what is no text."""


class _Connection(Connection):  # type: ignore[misc]
    """A server may ask for any file when it is told LOAD DATA LOCAL, and one that is up to no good does so at any time:
    it is given the one that is offered, and nothing else."""

    offered = b""

    def _read_packet(self, packet_type: Any = MysqlPacket) -> Any:
        packet = super()._read_packet(packet_type)
        if self.offered and packet.is_load_local_packet() and packet.get_all_data()[1:] != self.offered:
            self._force_close()
            raise pymysql.OperationalError(2006, "the server asked for a file that it was not offered")
        return packet

    @contextmanager
    def offering(self, path: str) -> Iterator[None]:
        self.offered, self._local_infile = path.encode(), True
        try:
            yield
        finally:
            self.offered, self._local_infile = b"", False


class _Column(NamedTuple):
    """What the server says of a column of an answer."""

    name: str
    kind: int
    scale: int
    flags: int
    charset: int
    length: int

    @property
    def arrow(self) -> pa.DataType:
        if self.kind == FIELD_TYPE.TINY and self.length == 1:
            return pa.int8()
        if self.kind in _INTS:
            bits = _INTS[self.kind]
            return _UNSIGNED[bits] if self.flags & FLAG.UNSIGNED else _SIGNED[bits]
        if self.kind in _BLOBS and self.charset == _BINARY:
            return pa.binary()
        return _PLAIN.get(self.kind, pa.string())

    @property
    def is_plain(self) -> bool:
        """Whether connectorx gives it as it is; the rest is asked for as text."""
        return self.kind in _PLAIN or self.kind in _INTS or self.kind in _BLOBS


_INTS: Final = {FIELD_TYPE.TINY: 8, FIELD_TYPE.SHORT: 16, FIELD_TYPE.INT24: 32, FIELD_TYPE.LONG: 32} | {
    FIELD_TYPE.LONGLONG: 64
}
_SIGNED: Final = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_UNSIGNED: Final = {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.uint64()}
_BLOBS: Final = frozenset(
    (
        FIELD_TYPE.BLOB,
        FIELD_TYPE.TINY_BLOB,
        FIELD_TYPE.MEDIUM_BLOB,
        FIELD_TYPE.LONG_BLOB,
        FIELD_TYPE.VAR_STRING,
        FIELD_TYPE.VARCHAR,
        FIELD_TYPE.STRING,
    )
)
_PLAIN: Final = {
    FIELD_TYPE.FLOAT: pa.float32(),
    FIELD_TYPE.DOUBLE: pa.float64(),
    FIELD_TYPE.DATE: pa.date32(),
    FIELD_TYPE.DATETIME: pa.timestamp("us"),
    FIELD_TYPE.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}
DECIMALS: Final = frozenset((FIELD_TYPE.NEWDECIMAL, FIELD_TYPE.DECIMAL))
KIND: Final = b"ottla:mysql:type"
"""Beside a column of texts: `decimal` or `time` if it is one."""


class MySQLDatabase(Database):
    def __init__(self, address: Address) -> None:
        self.dialect = dialect_of("mysql")
        self._address = address
        self._connection = self._opened(autocommit=False)
        self._loads = True

    def _opened(self, *, autocommit: bool) -> Any:
        at = self._address
        try:
            return _Connection(
                host=at.host,
                port=at.port,
                user=at.user or None,
                password=at.password,
                database=at.database or None,
                charset="utf8mb4",
                autocommit=autocommit,
                connect_timeout=_CONNECT_TIMEOUT_S,
                init_command=_UTC,
                client_flag=CLIENT.LOCAL_FILES,
            )
        except pymysql.MySQLError as error:
            number = error.args[0] if error.args else 0
            raise (spi.ConnectorFailed if number in _REFUSES_WHO else spi.TryAgain)(said(error)) from error

    def execute(self, sql: str, values: Sequence[Any] = ()) -> None:
        self._guarded(lambda cursor: cursor.execute(sql, tuple(values)) if values else cursor.execute(sql))

    def query(self, sql: str, values: Sequence[Any] = ()) -> pa.Table:
        def run(cursor: Any) -> Any:
            cursor.execute(sql, tuple(values)) if values else cursor.execute(sql)
            columns = _described(cursor)
            found = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(columns)
            arrays = [_array(column, values) for column, values in zip(columns, found, strict=True)]
            return pa.table(arrays, schema=_schema(columns))

        return self._guarded(run)

    # ---- reading

    def stream(self, sql: str) -> Iterator[pa.RecordBatch]:
        import connectorx  # noqa: PLC0415  a native library of 50 MB

        columns = self._guarded(lambda cursor: _asked(cursor, f"SELECT * FROM ({sql}) AS described LIMIT 0"))
        self.rollback()
        names = [self.dialect.quoted(column.name) for column in columns]
        chosen = ", ".join(
            name if column.is_plain else f"CAST({name} AS CHAR) AS {name}"
            for name, column in zip(names, columns, strict=True)
        )
        told = _schema(columns)
        with self._streaming():
            answer = connectorx.read_sql(
                self._uri(),
                f"SELECT {chosen} FROM ({sql}) AS told",
                return_type="arrow_stream",
                batch_size=STREAMED_ROWS,
                pre_execution_query=_UTC,
            )
        while True:
            with self._streaming():
                try:
                    batch = answer.read_next_batch()
                except StopIteration:
                    return
                cast = [column.cast(field.type) for column, field in zip(batch.columns, told, strict=True)]
            yield pa.RecordBatch.from_arrays(cast, schema=told)

    def _uri(self) -> str:
        at = self._address
        secret = f":{quote(at.password, safe='')}" if at.password else ""
        who = f"{quote(at.user, safe='')}{secret}@" if at.user else ""
        return f"mysql://{who}{at.host}:{at.port}/{quote(at.database)}"

    @contextmanager
    def _streaming(self) -> Iterator[None]:
        """The statement was understood a moment ago: what fails now is the way to the server, or a value."""
        try:
            yield
        except pa.ArrowException as error:
            raise Rejected(said(error)) from error
        except (RuntimeError, OSError) as error:
            raise spi.TryAgain(self._masked(error)) from error
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # Rust's, which is no Exception
                raise
            raise Rejected(self._masked(error)) from error

    def _masked(self, error: BaseException) -> str:
        password = self._address.password
        text = said(error)
        return text.replace(password, "[hidden]") if password else text

    # ---- writing

    def stage(self, rows: pa.Table, target: str) -> None:
        """In columns of the target's own types, collations and all, so that indices serve to join the two."""
        columns = ", ".join(map(self.dialect.quoted, rows.column_names))
        self.execute(f"DROP TEMPORARY TABLE IF EXISTS {STAGE}")
        self.execute(f"CREATE TEMPORARY TABLE {STAGE} AS SELECT {columns} FROM {target} LIMIT 0")
        if self._loads:
            try:
                self._load(rows)
                return
            except _NoLoading:
                self._loads = False
        marks = ", ".join(["%s"] * len(rows.column_names))
        plain = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
        self._guarded(lambda cursor: cursor.executemany(f"INSERT INTO {STAGE} VALUES ({marks})", plain))

    def _load(self, rows: pa.Table) -> None:
        """Loading from here turns errors into warnings, and puts something else there: a warning is an error again."""
        file = os.memfd_create("ottla-rows")
        try:
            with os.fdopen(file, "wb", closefd=False) as out:
                out.write(_lines(rows))
            path = f"/proc/self/fd/{file}"
            columns = self._loaded(rows.schema)

            def run(cursor: Any) -> None:
                with self._connection.offering(path):
                    cursor.execute(
                        f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE {STAGE} CHARACTER SET utf8mb4 FIELDS TERMINATED "
                        f"BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '' LINES TERMINATED BY '\\n' {columns}"
                    )
                cursor.execute("SHOW WARNINGS")
                wrong = [row for row in cursor.fetchall() if row[0] != "Note"]
                if wrong:
                    raise Rejected(f"({wrong[0][1]}) {wrong[0][2]}")

            self._guarded(run)
        finally:
            os.close(file)

    def _loaded(self, schema: pa.Schema) -> str:
        """The columns of the file: bytes are in hexadecimal, since all of it is text."""
        quoted = self.dialect.quoted
        bytes_at = [index for index, kind in enumerate(schema.types) if pa.types.is_binary(kind)]
        listed = ", ".join(f"@b{at}" if at in bytes_at else quoted(name) for at, name in enumerate(schema.names))
        made = ", ".join(f"{quoted(schema.names[at])} = UNHEX(@b{at})" for at in bytes_at)
        return f"({listed}){' SET ' + made if made else ''}"

    def define(self, sql: str) -> None:
        connection = self._opened(autocommit=True)
        try:
            with connection.cursor() as cursor:
                self._trying(lambda: cursor.execute(f"SET lock_wait_timeout = {_DEFINE_TIMEOUT_S}"))
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

    def _guarded(self, run: Callable[[Any], Any]) -> Any:
        def with_cursor() -> Any:
            with self._connection.cursor() as cursor:
                return run(cursor)

        return self._trying(with_cursor)

    def _trying(self, run: Callable[[], Any]) -> Any:
        try:
            return run()
        except pymysql.MySQLError as error:
            number = error.args[0] if error.args else 0
            if number in _LOADS_NOTHING:
                raise _NoLoading from error
            if number in _AWAY_NUMBERS or isinstance(error, pymysql.InterfaceError):
                raise spi.TryAgain(said(error)) from error
            kind = Missing if number in _MISSING_NUMBERS else Rejected
            raise kind(said(error)) from error


class _NoLoading(Exception):
    """The server takes no LOAD DATA LOCAL."""


# ---- answers


def _asked(cursor: Any, sql: str) -> list[_Column]:
    cursor.execute(sql)
    return _described(cursor)


def _described(cursor: Any) -> list[_Column]:
    fields = cursor._result.fields if cursor._result is not None else ()  # the description leaves out what matters
    return [
        _Column(field.name, field.type_code, field.scale, field.flags, field.charsetnr, field.length)
        for field in fields or ()
    ]


def _schema(columns: Sequence[_Column]) -> pa.Schema:
    return pa.schema([pa.field(column.name, column.arrow, metadata=_metadata(column)) for column in columns])


def _metadata(column: _Column) -> dict[bytes, bytes] | None:
    if column.kind in DECIMALS:
        return {KIND: b"decimal"}
    return {KIND: b"time"} if column.kind == FIELD_TYPE.TIME else None


def _array(column: _Column, values: Sequence[Any]) -> pa.Array:
    kind = column.arrow
    if not pa.types.is_string(kind):
        return pa.array(values, kind)
    return pa.array([_text(each) for each in values], kind)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "total_seconds"):  # a TIME, which may be of several days
        micros = value // type(value)(microseconds=1)
        sign, size = "-" if micros < 0 else "", abs(micros)
        return f"{sign}{size // 3_600_000_000:02}:{size // 60_000_000 % 60:02}:{size % 60_000_000 / 1e6:09.6f}"
    return str(value)


# ---- lines of LOAD DATA


def _lines(rows: pa.Table) -> memoryview:
    """Texts between quotes, null as a bare word; nothing is escaped but quotes."""
    parts: list[Any] = []
    for column in rows.combine_chunks().columns:
        parts += [_field(column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)), pa.scalar(b",")]
    parts[-1] = pa.scalar(b"\n")
    joined = pc.binary_join_element_wise(*parts, b"")
    return memoryview(joined.buffers()[2])[: pc.sum(pc.binary_length(joined)).as_py()]


def _field(column: pa.Array) -> pa.Array:
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_binary(column.type):
        texts = pa.array([None if each is None else each.hex() for each in column.to_pylist()], pa.binary())
    elif pa.types.is_string(column.type):
        quoted = pc.replace_substring(column.cast(pa.binary()), pattern=b'"', replacement=b'""')
        texts = pc.binary_join_element_wise(pa.scalar(b'"'), quoted, pa.scalar(b'"'), b"")
    else:
        texts = column.cast(pa.string()).cast(pa.binary())
    return pc.fill_null(texts, b"NULL")
