"""PostgreSQL's changes on a server that is there: nothing missing, nothing twice, whatever happens in between."""

import json
import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from ottla.connect import spi
from tests.platform.connect.cdc import Database, Reader, Record, reading
from tests.platform.systems.postgresql import postgresql
from tests.support.patience import eventually


@pytest.fixture(scope="module")
def server() -> Iterator[Database]:
    with postgresql("wal_level=logical", "max_replication_slots=20", "max_wal_senders=0") as url:
        database = Database(url)
        yield database
        database.connection.close()


@pytest.fixture
def database(server: Database) -> Database:
    server.forget()
    return server


def shorts(records: list[Record]) -> list[tuple[str, Any, Any]]:
    return [record.short for record in records]


def test_tables_are_read_first_then_what_is_changed(database: Database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a'), (2, NULL)")
    with reading(database) as reader:
        assert shorts(reader.take()) == [("r", None, {"id": 1, "v": "a"}), ("r", None, {"id": 2, "v": None})]
        database.run("BEGIN; INSERT INTO t VALUES (3, 'c'); UPDATE t SET v = 'b' WHERE id = 2; COMMIT")
        database.run("BEGIN; DELETE FROM t WHERE id = 1; ROLLBACK")
        database.run("DELETE FROM t WHERE id = 1")
        found = reader.take()
        assert shorts(found) == [
            ("c", None, {"id": 3, "v": "c"}),
            ("u", None, {"id": 2, "v": "b"}),
            ("d", {"id": 1, "v": None}, None),
            ("tombstone", {"id": 1}, None),
        ]
        assert [(record.topic, record.key) for record in found] == [("p.public.t", {"id": n}) for n in (3, 2, 1, 1)]
        assert reader.take() == []


def test_a_new_key_is_a_delete_and_an_insert_that_name_each_other(database: Database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    with reading(database, snapshot_mode="no_data") as reader:
        reader.take()
        database.run("INSERT INTO t VALUES (1, 'a'); UPDATE t SET id = 2")
        found = reader.take()
    assert [(record.short[0], record.key, record.headers) for record in found] == [
        ("c", {"id": 1}, ()),
        ("d", {"id": 1}, ("__debezium.newkey",)),
        ("tombstone", {"id": 1}, ()),
        ("c", {"id": 2}, ("__debezium.oldkey",)),
    ]


def test_a_full_replica_identity_gives_the_row_before_and_fills_in_large_values(database: Database) -> None:
    big = "x" * 9000
    for table, identity in (("whole", "FULL"), ("part", "DEFAULT")):
        database.run(f"CREATE TABLE {table} (id int PRIMARY KEY, n int, big text)")
        database.run(f"ALTER TABLE {table} ALTER COLUMN big SET STORAGE EXTERNAL, REPLICA IDENTITY {identity}")
        database.run(f"INSERT INTO {table} VALUES (1, 1, '{big}')")
    with reading(database, snapshot_mode="no_data") as reader:
        reader.take()
        database.run("UPDATE whole SET n = 2; UPDATE part SET n = 2")
        whole, part = (record.value for record in reader.take())
    assert (whole["before"]["n"], whole["before"]["big"], whole["after"]["big"]) == (1, big, big)
    assert (part["before"], part["after"]["big"]) == (None, "__debezium_unavailable_value")


def test_truncate_is_told_if_it_is_asked_for(database: Database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    with (
        reading(database, "quiet", snapshot_mode="no_data") as quiet,
        reading(database, "told", snapshot_mode="no_data", skipped_operations="none") as told,
    ):
        quiet.take(), told.take()
        database.run("TRUNCATE t")
        assert quiet.take() == []
        [record] = told.take()
        assert (record.key, record.short) == (None, ("t", None, None))


def test_tables_that_change_in_mid_stream_are_followed(database: Database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    with reading(database, snapshot_mode="no_data") as reader:
        reader.take()
        database.run(
            "INSERT INTO t VALUES (1, 'a'); ALTER TABLE t ADD COLUMN n int DEFAULT 3; INSERT INTO t VALUES (2)"
        )
        database.run("ALTER TABLE t DROP COLUMN v; INSERT INTO t VALUES (3, 4)")
        database.run("ALTER TABLE t ALTER COLUMN n TYPE text; INSERT INTO t VALUES (4, 'text')")
        database.run("ALTER TABLE t RENAME TO s; INSERT INTO s VALUES (5, 'moved')")
        database.run("CREATE TABLE later (id int PRIMARY KEY); INSERT INTO later VALUES (6)")
        found = reader.take()
    assert [(record.topic, record.value["after"]) for record in found] == [
        ("p.public.t", {"id": 1, "v": "a"}),
        ("p.public.t", {"id": 2, "v": None, "n": 3}),
        ("p.public.t", {"id": 3, "n": 4}),
        ("p.public.t", {"id": 4, "n": "text"}),
        ("p.public.s", {"id": 5, "n": "moved"}),
        ("p.public.later", {"id": 6}),
    ]


def test_changes_of_a_table_that_was_dropped_are_still_told(database: Database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, v text NOT NULL)")
    with reading(database, snapshot_mode="no_data") as reader:
        reader.take()
        database.run("INSERT INTO t VALUES (1, 'a'); DROP TABLE t")
        [record] = reader.take()
    assert (record.key, record.value["after"]) == ({"id": 1}, {"id": 1, "v": "a"})


def test_tables_schemas_and_columns_are_chosen_by_patterns(database: Database) -> None:
    database.run("CREATE SCHEMA side")
    for table in ("public.orders", "public.orders_old", "side.orders"):
        database.run(
            f"CREATE TABLE {table} (id int PRIMARY KEY, secret text, v text); INSERT INTO {table} VALUES (1, 's', 'v')"
        )
    with reading(
        database, table_include_list="public[.]ORDERS, side.*", column_exclude_list=".*[.]secret",
        message_key_columns="side.orders:v",
    ) as reader:  # fmt: skip
        first = reader.take()
        database.run("INSERT INTO public.orders_old VALUES (2); INSERT INTO side.orders VALUES (2, 's', 'w')")
        then = reader.take()
    assert [(record.topic, record.key, record.value["after"]) for record in first + then] == [
        ("p.public.orders", {"id": 1}, {"id": 1, "v": "v"}),
        ("p.side.orders", {"v": "v"}, {"id": 1, "v": "v"}),
        ("p.side.orders", {"v": "w"}, {"id": 2, "v": "w"}),
    ]


def test_a_transaction_larger_than_a_batch_comes_in_portions_and_is_whole_over_crashes(database: Database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY)")
    with reading(database, limit=7, snapshot_mode="no_data") as reader:
        reader.all()
        database.run("INSERT INTO t SELECT generate_series(1, 50); INSERT INTO t VALUES (51)")
        while reader.once():
            reader.crash()
    assert [record.key["id"] for record in reader.records] == list(range(1, 52))


def test_a_table_is_read_once_though_its_reader_dies_again_and_again(database: Database) -> None:
    database.run(
        "CREATE TABLE t (a text, b int, PRIMARY KEY (b, a)); "
        "INSERT INTO t SELECT 'x' || g % 3, g FROM generate_series(1, 50) g"
    )
    with reading(database, limit=7, incremental_snapshot_chunk_size="7") as reader:
        for _ in range(40):
            reader.once()
            reader.crash()
    assert [(record.short[0], record.key["b"]) for record in reader.records] == [("r", n) for n in range(1, 51)]


def test_what_is_changed_while_tables_are_read_never_goes_back_in_time(database: Database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT g, 0 FROM generate_series(1, 30) g")
    with reading(database, limit=10) as reader:
        reader.once()  # the slot is made
        database.run("UPDATE t SET v = 1 WHERE id % 2 = 0; DELETE FROM t WHERE id = 5; INSERT INTO t VALUES (31, 0)")
        reader.once()  # ten rows, as they are now
        database.run("UPDATE t SET v = 2 WHERE id % 3 = 0; DELETE FROM t WHERE id = 7; INSERT INTO t VALUES (32, 0)")
        reader.all()
    assert [record.short[0] for record in reader.records][:30] == ["r"] * 30, "a row for each, as of one moment"
    assert state(reader.records) == rows(database, "t")
    assert all(values == sorted(values) for values in histories(reader.records).values())
    assert len(reader.records) == 30 + 10 + 2 + 1, "what was read is not told again"


def test_incremental_snapshots_are_asked_for_by_signals(database: Database) -> None:
    database.run("CREATE TABLE signals (id text, type text, data text)")
    database.run("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT g, 0 FROM generate_series(1, 25) g")
    with reading(
        database, snapshot_mode="no_data", signal_data_collection="public.signals", table_include_list="public.t",
        incremental_snapshot_chunk_size="10",
    ) as reader:  # fmt: skip
        reader.take()
        asked = json.dumps({"data-collections": ["public.t"], "type": "incremental"})
        database.run(f"INSERT INTO signals VALUES ('1', 'execute-snapshot', '{asked}')")
        reader.once()
        database.run(
            "UPDATE t SET v = 1 WHERE id IN (3, 12, 25); DELETE FROM t WHERE id = 20; "
            "UPDATE t SET id = 40 WHERE id = 21"
        )
        reader.all()
        assert state(reader.records) == rows(database, "t")
        assert {
            record.value["source"]["snapshot"] for record in reader.records if record.value and record.short[0] == "r"
        } == {"incremental"}
        reader.records.clear()
        chosen = {
            "data-collections": ["public.t"],
            "additional-conditions": [{"data-collection": "public.t", "filter": "id < 3"}],
        }
        database.run(f"INSERT INTO signals VALUES ('2', 'execute-snapshot', '{json.dumps(chosen)}')")
        assert [record.key["id"] for record in reader.take()] == [1, 2]
        database.run(
            "INSERT INTO signals VALUES ('3', 'pause-snapshot', ''), "
            "('4', 'execute-snapshot', '{\"data-collections\": [\"public.t\"]}')"
        )
        assert reader.take() == []
        database.run("INSERT INTO signals VALUES ('5', 'stop-snapshot', '{}'), ('6', 'resume-snapshot', '')")
        assert reader.take() == []
        database.run("INSERT INTO signals VALUES ('7', 'execute-snapshot', '{broken'), ('8', 'dance', NULL)")
        assert reader.take() == [], "what is no signal is passed over"


def test_a_long_transaction_comes_when_it_commits(database: Database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY)")
    with reading(database, snapshot_mode="no_data") as reader, database.connected(autocommit=False) as long:
        reader.take()
        long.execute("INSERT INTO t VALUES (1)")
        database.run("INSERT INTO t VALUES (2)")
        assert [record.key["id"] for record in reader.take()] == [2]
        reader.crash()
        long.execute("INSERT INTO t VALUES (3)")
        long.commit()
        assert [record.key["id"] for record in reader.take()] == [1, 3]


def test_the_slot_follows_the_server_while_its_tables_are_idle(database: Database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE busy (id int)")
    with reading(database, table_include_list="public.t", slot_advance_bytes="100000") as reader:
        reader.all()
        before = confirmed(database)
        database.run("INSERT INTO busy SELECT generate_series(1, 10000)")
        assert reader.all() == []
        assert confirmed(database) - before > 500_000
        told = {each.name: each.last for each in reader.source.observed((), 0)}
        assert told["slot-lag-bytes"] < 100_000


def test_heartbeats_are_written_and_their_query_is_run(database: Database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE beats (n int)")
    with reading(
        database, snapshot_mode="no_data", table_include_list="public.t", heartbeat_interval_ms="3600000",
        heartbeat_action_query="INSERT INTO beats VALUES (1)",
    ) as reader:  # fmt: skip
        reader.once()
        [beat] = reader.take()
        assert (beat.topic, beat.key) == ("__debezium-heartbeat.p", {"serverName": "p"})
        assert list(beat.value) == ["ts_ms"]
        assert reader.take() == [], "not before the hour is over"
    assert database.ask("SELECT count(*) FROM beats") == [(1,)]


def test_a_slot_that_keeps_too_much_is_an_alert(database: Database) -> None:
    database.run("CREATE TABLE t (id int)")
    with reading(database, snapshot_mode="no_data", slot_lag_alert_bytes="1000") as reader:
        reader.take()
        database.run("INSERT INTO t SELECT generate_series(1, 1000)")
        reader.once(acknowledge=False)
        assert "makes the server keep more WAL" in (reader.source.alert() or "")


def test_a_slot_that_was_dropped_fails_with_what_to_do_or_tables_are_read_again(database: Database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    with reading(database) as reader:
        reader.take()
        database.run("SELECT pg_drop_replication_slot('ours')")
        with pytest.raises(spi.ConnectorFailed, match=r"is not there.*snapshot.mode=when_needed"):
            reader.once()
        reader.change(snapshot_mode="when_needed")
        assert shorts(reader.take()) == [("r", None, {"id": 1})]


def test_two_connectors_on_one_slot_are_told_apart(database: Database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY)")
    with reading(database) as one, reading(database) as other:
        one.all()
        other.once()
        database.run("INSERT INTO t VALUES (1)")
        assert len(one.all()) == 1
        with pytest.raises(spi.ConnectorFailed, match="somebody else reads from this slot"):
            other.all()


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"database.dbname": "nowhere"}, "does not let it in"),
        ({"publication.autocreate.mode": "disabled"}, "no publication dbz_publication"),
        ({"publication.autocreate.mode": "filtered", "table.include.list": "no.such"}, "no table is captured"),
    ],
)
def test_what_cannot_work_says_what_to_do(database: Database, config: dict[str, str], told: str) -> None:
    reader = Reader(database.config("ours", config))
    with pytest.raises(spi.ConnectorFailed, match=told):
        reader.once()
    reader.close()


def test_a_server_that_is_away_is_tried_again(database: Database) -> None:
    reader = Reader(database.config("ours", {"database.port": "1"}))
    with pytest.raises(spi.TryAgain, match="cannot be reached"):
        reader.once()
    reader.close()


def test_a_server_that_crashes_is_gone_on_with(database: Database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY)")
    with reading(database, snapshot_mode="no_data") as reader:
        reader.all()
        for life in range(3):
            database.run(f"INSERT INTO t SELECT generate_series({life * 10}, {life * 10 + 9})")
            if life:
                reader.once(acknowledge=life == 1)  # the slot may be set back by the crash
            database.crash()

            def read_on() -> bool:
                try:
                    reader.all()
                except spi.TryAgain:
                    return False
                return True

            eventually(read_on)
        found = reader.records
    assert [record.key["id"] for record in found] == list(range(30))


# ---- against a model


def state(records: list[Record]) -> dict[str, Any]:
    """What somebody has who applies them in order."""
    found: dict[str, Any] = {}
    for record in records:
        if record.value is None:
            continue
        op, _, after = record.short
        if op == "t":
            found.clear()
        elif op == "d":
            found.pop(json.dumps(record.key), None)
        else:
            found[json.dumps(record.key)] = after
    return found


def rows(database: Database, table: str) -> dict[str, Any]:
    found = [row[0] for row in database.ask(f"SELECT row_to_json(t) FROM {table} t")]
    return {json.dumps({"id": row["id"]}): row for row in found}


def histories(records: list[Record]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for record in records:
        if record.value is not None and record.value["after"] is not None:
            found.setdefault(json.dumps(record.key), []).append(record.value["after"]["v"])
    return found


def confirmed(database: Database) -> int:
    [(lsn,)] = database.ask("SELECT (confirmed_flush_lsn - '0/0')::bigint FROM pg_replication_slots")
    return int(lsn)


class Writer:
    """Changes at random, some of them in transactions that stay open or are rolled back."""

    def __init__(self, database: Database, seed: int) -> None:
        self.dice = random.Random(seed)
        self._database = database
        self._columns = 0
        self._open: list[Any] = []

    def step(self) -> None:
        dice = self.dice
        match dice.randrange(12):
            case 0 | 1:
                self._database.run(
                    f"INSERT INTO t (id, v) SELECT g, 0 "
                    f"FROM generate_series({dice.randrange(300)}, {dice.randrange(300)}) g ON CONFLICT DO NOTHING"
                )
            case 2 | 3:
                self._database.run(f"UPDATE t SET v = v + 1 WHERE id % {dice.randrange(2, 20)} = 0 AND id < 1000")
            case 4:
                self._database.run(f"DELETE FROM t WHERE id % {dice.randrange(5, 30)} = 0 AND id < 1000")
            case 5:
                self._database.run(
                    f"UPDATE t SET id = 300 + id, v = v + 1 WHERE id = {dice.randrange(300)} "
                    "AND NOT EXISTS (SELECT FROM t s WHERE s.id = t.id + 300)"
                )
            case 6:
                if dice.random() < 0.3:
                    self._database.run("DELETE FROM t WHERE id < 1000")
            case 7:
                self._alter()
            case 8 | 9:
                held = self._database.connected(autocommit=False)
                low = 1000 + 1000 * len(self._open) + dice.randrange(10**5) * 10_000
                held.execute(
                    f"INSERT INTO t (id, v) SELECT g, 0 FROM generate_series({low}, {low + dice.randrange(50)}) g"
                )
                self._open.append(held)
            case _:
                self.end()

    def _alter(self) -> None:
        """Whoever reads the table, or writes to it, holds it up."""
        self._columns += 1
        try:
            self._database.run("SET lock_timeout = '20ms'")
            self._database.run(f"ALTER TABLE t ADD COLUMN c{self._columns} int DEFAULT {self._columns}")
        except psycopg.errors.LockNotAvailable:
            pass
        finally:
            self._database.run("RESET lock_timeout")

    def end(self) -> None:
        if self._open:
            held = self._open.pop(self.dice.randrange(len(self._open)))
            held.commit() if self.dice.random() < 0.6 else held.rollback()
            held.close()

    def finish(self) -> None:
        while self._open:
            self.end()


@pytest.mark.parametrize("seed", range(3))
def test_readers_that_die_anywhere_end_with_the_state_of_the_table(database: Database, seed: int) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT g, 0 FROM generate_series(1, 120) g")
    writer = Writer(database, seed)
    with reading(database, limit=writer.dice.choice((40, 200, 2000)), incremental_snapshot_chunk_size="20") as reader:
        reader.once()  # a slot is made when no transaction is open
        for _ in range(50):
            writer.step()
            match writer.dice.randrange(5):
                case 0:
                    reader.crash()
                case 1:  # read, and lost before it was written
                    reader.source.read(reader.position, reader.limit)
                case _:
                    reader.once(acknowledge=writer.dice.random() < 0.7)
        writer.finish()
        reader.all()
        wanted = rows(database, "t")
        ended = state(reader.records)
    assert ended.keys() == wanted.keys()
    assert {key: row["v"] for key, row in ended.items()} == {key: row["v"] for key, row in wanted.items()}
