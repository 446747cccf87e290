"""The replication slot and the publication: made, looked at, peeked into, advanced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.connect import spi
from ottla.connect.connectors.postgresql.catalog import Catalog
from ottla.connect.connectors.postgresql.config import PostgresConfig
from ottla.connect.connectors.postgresql.lsn import lsn_text
from ottla.connect.connectors.postgresql.server import Refused, Server, quoted
from ottla.connect.connectors.postgresql.tables import Capture

CREATE_S: Final = 60
"""How long the making of a slot may take."""
PORTION: Final = 10_000
"""Messages that are fetched at a time."""
_STATUS: Final = """
SELECT s.slot_name, s.plugin, s.database, s.wal_status, s.active_pid,
  (s.confirmed_flush_lsn - '0/0')::bigint, (s.restart_lsn - '0/0')::bigint,
  (pg_current_wal_flush_lsn() - '0/0')::bigint
FROM (SELECT 1) one LEFT JOIN pg_replication_slots s ON s.slot_name = %s
"""
_PEEK: Final = """
DECLARE ottla_peek NO SCROLL CURSOR FOR
SELECT lsn, data FROM pg_logical_slot_peek_binary_changes({slot}, '{upto}', {changes},
  'proto_version', '1', 'publication_names', {publication})
"""


class Status(NamedTuple):
    """Of the slot and the server, at one moment."""

    exists: bool
    plugin: str
    database: str
    is_lost: bool
    """What it stood for is no longer there."""
    confirmed: int
    restart: int
    flushed: int
    """How far the server's WAL is on its disk."""

    @property
    def lag(self) -> int:
        return max(self.flushed - self.confirmed, 0)

    @property
    def retained(self) -> int:
        """WAL that the server keeps for it."""
        return max(self.flushed - self.restart, 0)


class Slot:
    __slots__ = ("_config", "_server")

    def __init__(self, config: PostgresConfig, server: Server) -> None:
        self._config = config
        self._server = server

    def status(self) -> Status:
        [row] = self._server.rows(_STATUS, (self._config.slot_name,))
        name, plugin, database, wal_status, _, confirmed, restart, flushed = row
        lost = wal_status == "lost" or (name is not None and confirmed is None)
        return Status(name is not None, plugin or "", database or "", lost, confirmed or 0, restart or 0, flushed)

    def ensure(self, status: Status) -> int:
        """Where it begins. One that lost what it stood for is made anew."""
        if not status.exists or status.is_lost:
            self._needs_logical()
            if status.exists:
                self._server.rows("SELECT pg_drop_replication_slot(%s)", (self._config.slot_name,))
            self._create()
            status = self.status()
        self.check(status)
        return status.confirmed

    def _create(self) -> None:
        self._server.run(f"SET statement_timeout = {CREATE_S * 1000}")
        try:
            self._server.rows("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (self._config.slot_name,))
        except spi.TryAgain as error:
            raise spi.TryAgain(
                f"the slot {self._config.slot_name} could not be made in {CREATE_S} s ({error}): the server makes one "
                "only when all transactions have ended that are open now (SELECT * FROM pg_stat_activity)"
            ) from error
        finally:
            if self._server.is_open:
                self._server.run("SET statement_timeout = 0")

    def check(self, status: Status) -> None:
        """That it is one of ours. Raises ConnectorFailed."""
        config = self._config
        if status.plugin != "pgoutput" or status.database != config.database_dbname:
            raise spi.ConnectorFailed(
                f"the slot {config.slot_name} is of the plugin {status.plugin} in the database {status.database}: "
                f"name another one by slot.name (it is made if it is not there)"
            )

    def _needs_logical(self) -> None:
        [[level]] = self._server.rows("SHOW wal_level")
        if level != "logical":
            raise spi.ConnectorFailed(
                f"wal_level is {level}: set wal_level = logical in postgresql.conf and restart the server"
            )

    def advance(self, lsn: int) -> None:
        """All before it is written for good."""
        self._server.rows("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", (self._config.slot_name, lsn_text(lsn)))


class Tail:
    """What the slot holds up to a place, or until there are about so many messages. The server decodes it in one go and
    keeps it; it is fetched as it is used."""

    __slots__ = ("_fetched", "_most", "_server", "upto")

    def __init__(self, config: PostgresConfig, server: Server, upto: int, most: int) -> None:
        """`server`: a connection of its own."""
        self._server = server
        self._most = most
        self.upto = upto
        self._fetched = 0
        if server.is_open:
            server.run("ROLLBACK")
        server.run("BEGIN")
        server.run(
            _PEEK.format(
                slot=_literal(config.slot_name),
                upto=lsn_text(upto),
                changes=most,
                publication=_literal(quoted(config.publication_name)),
            )
        )

    def messages(self) -> Iterator[tuple[int, bytes]]:
        """With their places in the WAL. It may be left, and gone on with."""
        while True:
            found = self._server.rows(f"FETCH {PORTION} FROM ottla_peek", binary=True)
            self._fetched += len(found)
            for lsn, data in found:
                yield int.from_bytes(lsn, "big"), data
            if len(found) < PORTION:
                return

    @property
    def is_cut(self) -> bool:
        """Whether there may be more behind its last message, before `upto`."""
        return self._fetched >= self._most

    def close(self) -> None:
        if self._server.is_open:
            self._server.run("ROLLBACK")


def _literal(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def ensure_publication(config: PostgresConfig, server: Server, capture: Capture) -> None:
    """As publication.autocreate.mode says. Raises ConnectorFailed."""
    name, mode = config.publication_name, config.publication_autocreate_mode
    exists = bool(server.rows("SELECT 1 FROM pg_publication WHERE pubname = %s", (name,)))
    if exists and mode != "filtered":
        return
    if mode == "disabled":
        raise spi.ConnectorFailed(
            f"there is no publication {name}, and publication.autocreate.mode=disabled: "
            f"CREATE PUBLICATION {quoted(name)} FOR TABLE …, or set another mode"
        )
    tables = _published(config, server, capture) if mode == "filtered" else []
    if mode == "filtered" and not tables:
        raise spi.ConnectorFailed("no table is captured: look at table.include.list and schema.include.list")
    try:
        if exists:
            _republish(server, name, tables)
            return
        what = {"all_tables": "FOR ALL TABLES", "no_tables": "", "filtered": f"FOR TABLE {', '.join(tables)}"}[mode]
        root = " WITH (publish_via_partition_root = true)" if config.publish_via_partition_root else ""
        server.run(f"CREATE PUBLICATION {quoted(name)} {what}{root}")
    except Refused as error:
        if error.state == "42710":  # somebody made it just now
            return
        raise spi.ConnectorFailed(
            f"the publication {name} cannot be made: {error}. Let somebody make it who may (FOR ALL TABLES needs a "
            "superuser), and set publication.autocreate.mode=disabled"
        ) from error


def _republish(server: Server, name: str, tables: list[str]) -> None:
    """Only if it differs: an ALTER takes locks."""
    rows = server.rows(
        "SELECT n.nspname, c.relname FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid "
        "JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE p.pubname = %s",
        (name,),
    )
    if {f"{quoted(schema)}.{quoted(table)}" for schema, table in rows} != set(tables):
        server.run(f"ALTER PUBLICATION {quoted(name)} SET TABLE {', '.join(tables)}")


def _published(config: PostgresConfig, server: Server, capture: Capture) -> list[str]:
    found = Catalog(server).tables()
    chosen = capture.chosen(found)
    signals = [each for each in found if str(each) == config.signal_table and each not in chosen]
    return [f"{quoted(each.schema)}.{quoted(each.name)}" for each in (*chosen, *signals)]
