"""SQL for the oracle: the query tests of tests/rules/sql/queries with more input than they have, and random queries."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ottla.registry.in_memory import MemoryRegistry
from ottla.sql.catalog import PersistentQuery
from ottla.sql.errors import SqlError
from ottla.sql.session import Session
from ottla.sql.test_files import QueryTest, load
from ottla.sql.testing import _facts, _register, _Run
from ottla.streams import Topology
from ottla.streams.errors import StreamsError
from ottla.streams.record import Raw
from tests.oracle.cases import Case, Input, Weather
from tests.oracle.sql_recorder import NotTold, recorded

QUERIES = Path(__file__).parents[1] / "rules" / "sql" / "queries"


@dataclass(frozen=True, slots=True)
class SqlCase:
    """What Kafka Streams is asked, and our own topology for the same queries."""

    case: Case
    topology: Topology
    queries: Sequence[PersistentQuery]


@dataclass(slots=True)
class _Kept(_Run):
    """A query test whose queries are kept, with all records there are for them."""

    queries: list[PersistentQuery] = field(default_factory=list)
    records: list[Raw] = field(default_factory=list)

    def _ran(self, query: PersistentQuery, made: Any, records: list[Raw]) -> list[Raw]:
        if not self.queries:
            self.records = list(records)
        self.queries.append(query)
        return []


def sql_case(name: str, given: Mapping[str, Any]) -> SqlCase | None:
    """None for statements that are refused, or make no query, or one that the DSL of Kafka Streams cannot be told."""
    registry = MemoryRegistry()
    topics, inputs = given.get("topics") or [], list(given.get("inputs") or [])
    for each in topics:
        _register(each, registry)
    properties = dict(given.get("properties") or {})
    run = _Kept(properties, registry, Session(registry=registry), "driver", _facts(topics, inputs))
    statements = given["statements"]
    text = statements if isinstance(statements, str) else "\n".join(each.rstrip(";") + ";" for each in statements)
    try:
        run.all(text, inputs)
    except SqlError:
        if not run.queries:
            return None
    if not run.queries:
        return None
    try:
        case, topology = recorded(name, run.queries, registry)
    except (NotTold, StreamsError):
        return None
    case.inputs = [input_of(raw) for raw in run.records if raw.topic in read_by(run.queries)]
    return SqlCase(case, topology, run.queries)


def read_by(queries: Sequence[PersistentQuery]) -> set[str]:
    return {source.topic for query in queries for source in query.query.reads()}


def input_of(raw: Raw) -> Input:
    headers = [[name, None if data is None else bytes(data).decode("latin-1")] for name, data in raw.headers]
    return {
        "topic": raw.topic,
        "key": None if raw.key is None else raw.key.decode("latin-1"),
        "value": None if raw.value is None else raw.value.decode("latin-1"),
        "timestamp": raw.timestamp,
        "headers": headers,
    }


def query_tests() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path in sorted(QUERIES.glob("*.yaml")):
        tests: list[QueryTest] = load(path.read_text(), str(path))
        for test in tests:
            if "error" not in test.given:  # of a statement, or of a query that has to fail
                yield f"{path.stem}: {test.name}", test.given


def disturbed(sql: SqlCase, seed: int, count: int = 25) -> None:
    """Many more records, made of those there are: keys and values mixed, times out of order, tombstones, keys that are
    missing, values that cannot be read."""
    dice = random.Random(f"{sql.case.name} {seed}")
    pool: dict[str, list[Input]] = {}
    for step in sql.case.inputs:
        pool.setdefault(step["topic"], []).append(step)
    weather = Weather(dice, 10)
    for _ in range(count if pool else 0):
        topic = dice.choice(sorted(pool))
        key, value = dice.choice(pool[topic])["key"], dice.choice(pool[topic])["value"]
        if dice.random() < 0.15:
            value = None
        elif dice.random() < 0.05:
            value = "\x00{"
        if dice.random() < 0.07:
            key = None
        headers = [list(each) for each in weather.headers()]
        sql.case.inputs.append(
            {"topic": topic, "key": key, "value": value, "timestamp": weather.time(), "headers": headers}
        )


# ---- random queries

STREAMS = """
CREATE STREAM s (id STRING KEY, v STRING, n BIGINT, a ARRAY<INT>) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE STREAM r (id STRING KEY, w STRING, m INT) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='JSON');
CREATE TABLE t (id STRING PRIMARY KEY, v STRING, n BIGINT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
CREATE TABLE u (id STRING PRIMARY KEY, w STRING, m INT) WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON');
"""
KEYS = ["a", "b", "ab", "ü"]
WORDS = ["a", "b", "ab", "", "Über", None]
CONDITIONS = [
    "n > 1",
    "v = 'a'",
    "NOT (n > 1)",
    "v LIKE '%b%'",
    "n IS NOT NULL",
    "v IN ('a', 'ü') OR n = 2",
    "id <> 'b'",
]
VALUES = [
    "v",
    "n",
    "UCASE(v) AS up",
    "n * 2 AS twice",
    "v || '!' AS loud",
    "CASE WHEN n > 1 THEN v ELSE id END AS either",
]
AGGREGATES = [
    "COUNT(*) AS c", "COUNT(n) AS cn", "SUM(n) AS total", "AVG(n) AS mean", "MIN(n) AS low", "MAX(v) AS high",
    "COLLECT_LIST(n) AS every", "COLLECT_SET(v) AS each_one", "LATEST_BY_OFFSET(v) AS newest",
    "EARLIEST_BY_OFFSET(n, 2) AS first_ones", "TOPK(n, 2) AS top", "HISTOGRAM(v) AS often",
    "COUNT_DISTINCT(v) AS kinds", "STDDEV_SAMP(n) AS spread", "ATTR(v) AS only",
]  # fmt: skip
UNDONE = [
    "COUNT(*) AS c", "COUNT(n) AS cn", "SUM(n) AS total", "AVG(n) AS mean", "COLLECT_LIST(n) AS every",
    "HISTOGRAM(v) AS often", "STDDEV_SAMP(n) AS spread", "ATTR(v) AS only",
]  # fmt: skip


def _where(dice: random.Random) -> str:
    return f" WHERE {dice.choice(CONDITIONS)}" if dice.random() < 0.5 else ""


def _some(dice: random.Random, choices: Sequence[str], most: int = 3) -> str:
    return ", ".join(dice.sample(list(choices), dice.randint(1, most)))


def projections(dice: random.Random) -> str:
    source = dice.choice("st")
    kind = "STREAM" if source == "s" else "TABLE"
    if source == "s" and dice.random() < 0.3:
        return f"CREATE STREAM o AS SELECT v AS k, id AS old, n FROM s{_where(dice)} PARTITION BY v;"
    if source == "s" and dice.random() < 0.3:
        return f"CREATE STREAM o AS SELECT id, v, EXPLODE(a) AS item FROM s{_where(dice)};"
    return f"CREATE {kind} o AS SELECT id, {_some(dice, VALUES)} FROM {source}{_where(dice)};"


def _group(dice: random.Random) -> tuple[str, str]:
    """What is selected of it, and what it is."""
    return dice.choice([("id", "id"), ("v", "v"), ("v, id", "v, id"), ("UCASE(v) AS k", "UCASE(v)")])


def _with(group: str) -> str:
    """KAFKA, the format of keys unless said, holds one column."""
    return " WITH (KEY_FORMAT='JSON')" if "," in group else ""


def _having(dice: random.Random) -> str:
    return " HAVING COUNT(*) < 4" if dice.random() < 0.25 else ""


def groups(dice: random.Random) -> str:
    shown, group = _group(dice)
    made = f"SELECT {shown}, {_some(dice, AGGREGATES)} FROM s{_where(dice)} GROUP BY {group}{_having(dice)}"
    return f"CREATE TABLE o{_with(group)} AS {made};"


def table_groups(dice: random.Random) -> str:
    shown, group = _group(dice)
    made = f"SELECT {shown}, {_some(dice, UNDONE)} FROM t{_where(dice)} GROUP BY {group}{_having(dice)}"
    return f"CREATE TABLE o{_with(group)} AS {made};"


def windows(dice: random.Random) -> str:
    shown, group = _group(dice)
    grace = dice.choice(["", ", GRACE PERIOD 0 MILLISECONDS", ", GRACE PERIOD 15 MILLISECONDS"])
    if dice.random() < 0.5:
        window = f"TUMBLING (SIZE {dice.choice([10, 15])} MILLISECONDS{grace})"
    else:
        window = f"HOPPING (SIZE 20 MILLISECONDS, ADVANCE BY {dice.choice([5, 10])} MILLISECONDS{grace})"
    final = " EMIT FINAL" if dice.random() < 0.3 else ""
    made = f"SELECT {shown}, {_some(dice, AGGREGATES)}, WINDOWSTART AS ws FROM s WINDOW {window}{_where(dice)}"
    return f"CREATE TABLE o{_with(group)} AS {made} GROUP BY {group}{_having(dice)}{final};"


def sessions(dice: random.Random) -> str:
    shown, group = _group(dice)
    grace = dice.choice(["", ", GRACE PERIOD 0 MILLISECONDS", ", GRACE PERIOD 15 MILLISECONDS"])
    merged = [each for each in AGGREGATES if "BY_OFFSET" not in each]
    made = f"SELECT {shown}, {_some(dice, merged)} FROM s WINDOW SESSION ({dice.choice([5, 10])} MILLISECONDS{grace})"
    final = " EMIT FINAL" if dice.random() < 0.3 else ""
    return f"CREATE TABLE o{_with(group)} AS {made}{_where(dice)} GROUP BY {group}{_having(dice)}{final};"


def stream_joins(dice: random.Random) -> str:
    kind = dice.choice(["INNER", "LEFT", "RIGHT", "FULL OUTER"])
    grace = dice.choice(["", "", " GRACE PERIOD 5 MILLISECONDS"])
    within = dice.choice(["10 MILLISECONDS", "(5 MILLISECONDS, 20 MILLISECONDS)"]) + grace
    on = dice.choice(["s.id = r.id", "s.v = r.id", "s.v = r.w"])
    left = on.split(" = ")[0]
    key = "ROWKEY" if kind == "FULL OUTER" else f"{left} AS k"
    value = "s.v AS sv, " if kind == "FULL OUTER" or left != "s.v" else ""
    made = f"SELECT {key}, {value}s.n AS sn, r.w AS rw, r.m AS rm FROM s {kind} JOIN r WITHIN {within} ON {on}"
    return f"CREATE STREAM o AS {made};"


def table_joins(dice: random.Random) -> str:
    if dice.random() < 0.4:
        on = dice.choice(["s.id", "s.v"])
        made = f"SELECT {on} AS k, s.n, u.w FROM s {dice.choice(['INNER', 'LEFT'])} JOIN u ON {on} = u.id"
        return f"CREATE STREAM o AS {made};"
    kind = dice.choice(["INNER", "LEFT", "RIGHT", "FULL OUTER"])
    key = "ROWKEY" if kind == "FULL OUTER" else "t.id AS k"
    return f"CREATE TABLE o AS SELECT {key}, t.v, u.w, u.m FROM t {kind} JOIN u ON t.id = u.id;"


def foreign_key_joins(dice: random.Random) -> str:
    kind = dice.choice(["INNER", "LEFT"])
    on = dice.choice(["t.v", "LCASE(t.v)"])
    return f"CREATE TABLE o AS SELECT t.id, t.v, t.n, u.w FROM t {kind} JOIN u ON {on} = u.id;"


def chains(dice: random.Random) -> str:
    """What one query writes another reads."""
    first = f"CREATE TABLE o AS SELECT v, COUNT(*) AS n FROM s{_where(dice)} GROUP BY v;"
    second = "CREATE TABLE p AS SELECT n, COUNT(*) AS c, COLLECT_LIST(v) AS words FROM o GROUP BY n;"
    return first + dice.choice([second, "CREATE TABLE p AS SELECT o.v, o.n, u.w FROM o LEFT JOIN u ON o.v = u.id;"])


FAMILIES = {
    family.__name__.replace("_", "-"): family
    for family in (
        projections, groups, table_groups, windows, sessions, stream_joins, table_joins, foreign_key_joins, chains,
    )
}  # fmt: skip


def random_sql(family: str, seed: int, count: int = 30) -> SqlCase:
    dice = random.Random(f"{family} {seed}")
    text = STREAMS + FAMILIES[family](dice)
    made = sql_case(f"{family}-{seed}: {text[len(STREAMS) :]}", {"statements": text})
    assert made is not None, text
    made.case.inputs += inputs(dice, sorted(read_by(made.queries) & set("srtu")), count)
    return made


def inputs(dice: random.Random, topics: Sequence[str], count: int) -> list[Input]:
    """For the sources above, whatever their topics are called in front of the last letter."""
    weather = Weather(dice, 10, KEYS)
    found: list[Input] = []
    for _ in range(count):
        topic = dice.choice(topics)
        headers = [list(each) for each in weather.headers()]
        record = {"key": _latin(weather.key()), "value": _latin(_value(dice, topic[-1])), "headers": headers}
        found.append({"topic": topic, "timestamp": weather.time(), **record})
    return found


def _value(dice: random.Random, topic: str) -> str | None:
    if dice.random() < 0.15:
        return None
    if dice.random() < 0.04:
        return "no JSON"
    if topic in "st":
        items = [dice.choice([1, 2, None]) for _ in range(dice.randint(0, 3))]
        value: dict[str, Any] = {"V": dice.choice(WORDS), "N": dice.choice([0, 1, 2, 3, None])}
        return json.dumps(value | ({"A": items} if topic == "s" else {}), ensure_ascii=False)
    return json.dumps({"W": dice.choice(WORDS), "M": dice.choice([1, 2, None])}, ensure_ascii=False)


def _latin(text: str | None) -> str | None:
    return None if text is None else text.encode().decode("latin-1")
