"""The same changes read by Debezium 3.4 in Java's worker and by ours: the same records, but for what is named here."""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ottla.connect import spi
from ottla.connect.converters.json import JsonConverter
from ottla.connect.data.record import SchemaAndValue
from tests.platform.connect.cdc import Database, Reader
from tests.platform.systems.postgresql import postgresql
from tests.support import jvm
from tests.support.committed import committed
from tests.support.nodes import Ottla
from tests.support.programs import Program
from tests.wire.test_java_connect import Connect

pytestmark = [pytest.mark.jvm, pytest.mark.matrix]

POM = Path(__file__).parent / "java" / "pom.xml"
TABLES = Path(__file__).with_name("debezium_tables.sql").read_text()
ROWS = Path(__file__).with_name("debezium_rows.sql").read_text()
CHANGES = [
    ROWS,
    "UPDATE types SET i4 = 5, t = NULL WHERE id = 1; DELETE FROM types WHERE id = 2",
    "BEGIN; INSERT INTO pairs VALUES (3, 'three', 'y'); UPDATE pairs SET v = 'z' WHERE a = 1; "
    "UPDATE pairs SET b = 'deux' WHERE a = 2; DELETE FROM pairs WHERE a = 3; COMMIT",
    "BEGIN; INSERT INTO pairs VALUES (9, 'gone', 'y'); ROLLBACK",
    f"INSERT INTO whole VALUES (1, 'a', '{'b' * 9000}'); UPDATE whole SET v = 'c'; UPDATE whole SET id = 2; "
    f"DELETE FROM whole",
    "INSERT INTO keyless VALUES (2, 'l'); UPDATE keyless SET b = 'm' WHERE a = 2; DELETE FROM keyless",
    f"INSERT INTO toasted VALUES (1, 1, '{'t' * 9000}', '\\x{'00' * 9000}', '{{{'a' * 9000}}}')",
    "UPDATE toasted SET n = 2",
    "INSERT INTO \"odd Name\" VALUES (1, 'x')",
    "ALTER TABLE pairs ADD COLUMN more int DEFAULT 3, ADD COLUMN price numeric(5,1); "
    "INSERT INTO pairs VALUES (4, 'four', 'w')",
    "ALTER TABLE pairs DROP COLUMN v; INSERT INTO pairs (a, b) VALUES (5, 'five')",
    "ALTER TABLE pairs ALTER COLUMN more TYPE text; INSERT INTO pairs (a, b, more) VALUES (6, 'six', 'text now')",
    "TRUNCATE pairs",
    "INSERT INTO pairs (a, b) VALUES (7, 'seven')",
]
TOPICS = {f"p.public.{name}" for name in ("types", "pairs", "whole", "keyless", "toasted", "odd_Name")}
MODES = {
    "usual": {},
    "strings": {
        "decimal.handling.mode": "string", "time.precision.mode": "isostring", "binary.handling.mode": "base64",
        "interval.handling.mode": "string", "tombstones.on.delete": "false", "skipped.operations": "none",
        "provide.transaction.metadata": "true",
    },
    "connect": {
        "decimal.handling.mode": "double", "time.precision.mode": "connect", "binary.handling.mode": "hex",
        "message.key.columns": "public.pairs:v,a;public.keyless:b", "column.exclude.list": "public.types.(j|jb|x)",
        "table.exclude.list": "public.whole",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with postgresql("wal_level=logical", "max_replication_slots=20", "max_wal_senders=20") as url:
        opened = Database(url)
        yield opened
        opened.connection.close()


class Debezium(Connect):
    def start(self, **more: str) -> Program:
        words = ("org.apache.kafka.connect.cli.ConnectDistributed", str(self._properties))
        return Program("worker", jvm.java(jvm.jars_of("debezium-worker", POM), *words), self.directory)


@pytest.mark.parametrize("mode", MODES)
def test_records_are_debeziums(database: Database, tmp_path: Path, mode: str) -> None:
    database.forget()
    database.run(TABLES)
    database.run(ROWS)
    ours = Reader(database.config("ours", MODES[mode]))
    node = Ottla(tmp_path / "node").start()
    try:
        compare(database, node, ours, tmp_path, mode)
    finally:
        node.stop()
        ours.close()


def compare(database: Database, node: Ottla, ours: Reader, tmp_path: Path, mode: str) -> None:
    connect = Debezium(node, tmp_path / "connect")
    converter = "org.apache.kafka.connect.json.JsonConverter"
    config = database.config("javas", MODES[mode])
    with connect.start() as worker:
        given = {
            **config,
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "key.converter": converter,
            "value.converter": converter,
        }
        worker.until("the connector", partial(connect.ask, "PUT", "/connectors/cdc/config", given))
        found = by_topic(ours)
        first = sum(map(len, found.values()))
        topics = {name for name in found if name in TOPICS}
        worker.until("the rows of the tables", lambda: javas_count(node, topics) >= first or None, 240)
        for sql in CHANGES:
            database.run(sql)
            for name, records in by_topic(ours).items():
                found.setdefault(name, []).extend(records)
        topics = set(found) - {"p.transaction"}
        total = sum(len(found[name]) for name in topics)
        worker.until("all changes", lambda: javas_count(node, topics) >= total or None, 240)
        javas = {name: [(r.key, r.value) for r in committed(node.bootstrap, name)] for name in topics}
        transactions = committed(node.bootstrap, "p.transaction") if "p.transaction" in found else []
        worker.stop_or_kill()
    different = []
    for name in sorted(topics):
        if name == "p.public.keyless" and mode == "usual":
            javas[name] = [each for each in javas[name] if each != ("", "")]  # tombstones of nothing
        assert len(javas[name]) == len(found[name]), name
        for number, (java, our) in enumerate(zip(javas[name], found[name], strict=True)):
            pairs = [(alike(one), alike(other)) for one, other in zip(java, our, strict=True)]
            different += [f"{name} {number}: {d}" for one, other in pairs for d in differences(one, other, "")]
    if transactions:
        said = [alike(record.value) for record in transactions]
        mine = [alike(value) for _, value in found["p.transaction"]]
        different += [d for one, other in zip(said, mine, strict=False) for d in differences(one, other, "tx")]
    told = "\n".join(dict.fromkeys(each for each in different if not is_named(each)))
    assert not told, told


NAMED = [
    (r"types.*(default|[.]t): java it ours it's", "Java cuts a default off at the second quote"),
    (r"types [01]: .*[.]m: java", "Java has other digits of money in snapshots than in changes"),
    (r"types 1: .*[.]ts: java", "Java reads years before 1582 by the Julian calendar in snapshots, not in changes"),
    (r"types 2: .*snapshot: java last ours last_in", "the last table is empty, which Java knows beforehand"),
    (r"toasted 1: .*raw: java None ours X19", "Java has null for bytea in base64 that is not there"),
]
"""Differences that are meant, or that come of Java's."""


def is_named(told: str) -> bool:
    return any(re.search(pattern, told) for pattern, _ in NAMED)


def javas_count(node: Ottla, topics: set[str]) -> int:
    return sum(len(committed(node.bootstrap, name)) for name in topics)


def by_topic(reader: Reader) -> dict[str, list[tuple[str, str]]]:
    """All that is new, with schemas, by the quick way."""
    key_json, value_json = (JsonConverter({"schemas.enable": "true"}, role) for role in ("key", "value"))
    found: dict[str, list[tuple[str, str]]] = {}
    while True:
        read = reader.source.read(reader.position, reader.limit)
        if read.end is None:
            return found
        reader.position = read.end
        if not isinstance(read.rows, spi.Prepared):
            continue
        for part in read.rows.as_json(spi.JsonForm(True, True)):
            if isinstance(part, spi.Texts):
                pairs = [
                    ((k or b"").decode(), (v or b"").decode()) for k, v in zip(part.keys, part.values, strict=True)
                ]
                found.setdefault(part.topic, []).extend(pairs)
                continue
            for row in part:
                key = key_json.write(row.topic, SchemaAndValue(row.key_schema, row.key)) or b""
                value = value_json.write(row.topic, SchemaAndValue(row.value_schema, row.value)) or b""
                found.setdefault(row.topic, []).append((key.decode(), value.decode()))


def alike(text: str) -> Any:
    """Without what tells of the one who wrote it, and when."""
    if not text:
        return None
    found = json.loads(text, parse_float=str)
    payload = found["payload"]
    if isinstance(payload, dict):
        for name in ("ts_ms", "ts_us", "ts_ns"):
            if name in payload:
                payload[name] = type(payload[name]).__name__
        source = payload.get("source")
        if source:
            source["version"] = "any"
            if source["snapshot"] != "false":
                for name in ("ts_ms", "ts_us", "ts_ns", "lsn", "sequence", "txId"):
                    source[name] = "any"
            source["sequence"] = "any"
    return found


def differences(java: Any, ours: Any, where: str) -> list[str]:
    if isinstance(java, dict) and isinstance(ours, dict):
        names = list(dict.fromkeys([*java, *ours]))
        out = [] if list(java) == list(ours) else [f"{where}: order {list(java)} != {list(ours)}"]
        return out + [d for n in names for d in differences(java.get(n), ours.get(n), f"{where}.{n}")]
    if isinstance(java, list) and isinstance(ours, list) and len(java) == len(ours):
        return [d for n, (a, b) in enumerate(zip(java, ours, strict=True)) for d in differences(a, b, f"{where}[{n}]")]
    return [] if java == ours else [f"{where}: java {str(java)[:300]} ours {str(ours)[:300]}"]
