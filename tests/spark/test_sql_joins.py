"""Joins of random records, out of order and with timestamps that both sides have, give on Spark what they give in the
test driver, record for record: each statement three times over other records, some of them deletions."""

import random
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import pytest

from ottla.sql.testing import run

pytestmark = pytest.mark.matrix

_WITH: Final = "WITH (kafka_topic='{0}', value_format='JSON');"
STREAMS = tuple(f"CREATE STREAM {name} (k INT KEY, {name}v STRING) {_WITH.format(name)}" for name in "lr")
TABLES = tuple(f"CREATE TABLE {name} (k INT PRIMARY KEY, {name}v STRING) {_WITH.format(name)}" for name in "lr")
REFERRING = f"CREATE TABLE l (k INT PRIMARY KEY, lv STRING, other INT) {_WITH.format('l')}"
JOINS = {
    "stream, table": [STREAMS[0], TABLES[1], "CREATE STREAM o AS SELECT l.k, lv, rv FROM l LEFT JOIN r ON l.k = r.k;"],
    "table, table": [*TABLES, "CREATE TABLE o AS SELECT rowkey, lv, rv FROM l FULL OUTER JOIN r ON l.k = r.k;"],
    "stream, stream, eager": [
        *STREAMS,
        "CREATE STREAM o AS SELECT rowkey, lv, rv FROM l FULL OUTER JOIN r WITHIN 5 MILLISECONDS ON l.k = r.k;",
    ],
    "stream, stream, with grace": [
        *STREAMS,
        "CREATE STREAM o AS SELECT l.k, lv, rv FROM l "
        "LEFT JOIN r WITHIN 5 MILLISECONDS GRACE PERIOD 3 MILLISECONDS ON l.k = r.k;",
    ],
    "foreign key": [
        REFERRING,
        TABLES[1],
        "CREATE TABLE o AS SELECT l.k, lv, rv FROM l LEFT JOIN r ON l.other = r.k;",
    ],
}
SEEDS = range(3)
AT_ONCE: Final = 4


def records(dice: random.Random) -> list[dict[str, Any]]:
    """In turns of several of one topic; the last of a turn and the first of the next may have the same time."""
    found: list[dict[str, Any]] = []
    time = 100
    for topic in "lrlr":
        for _ in range(dice.randint(1, 3)):
            time += dice.choice([0, 1, 3, 7])
            known = {f"{topic}v": f"{topic}{len(found)}"} | ({"other": dice.choice([1, 2])} if topic == "l" else {})
            found.append(
                {
                    "topic": topic,
                    "key": dice.choice([1, 2]),
                    "value": None if dice.random() < 0.2 else known,
                    "timestamp": time - dice.choice([0, 0, 0, 2]),
                }
            )
    return found


Differing = Future[list[str]]


@pytest.fixture(scope="module")
def runs(bootstrap: str, spark: object) -> Iterator[dict[tuple[str, int], Differing]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {(join, seed): pool.submit(both, join, seed, bootstrap) for join in JOINS for seed in SEEDS}
        pool.shutdown(cancel_futures=True)


def both(join: str, seed: int, bootstrap: str) -> list[str]:
    """What is not the same."""
    given = records(random.Random(f"{join} {seed}"))
    expected, _ = run(JOINS[join], given)
    found, _ = run(JOINS[join], given, {"bootstrap.servers": bootstrap}, engine="spark")
    assert expected, "it would prove nothing"
    return [] if found == expected else [f"{given}", f"driver: {expected}", f"Spark: {found}"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("join", JOINS)
def test_a_join_gives_the_same_on_spark(join: str, seed: int, runs: dict[tuple[str, int], Differing]) -> None:
    assert runs[join, seed].result() == []
