"""SQL on Spark gives what it gives in the test driver: some of the query tests, one of each kind of topology.

`ottla sql test --engine spark` runs all of them. Joins by foreign key are not among these: their two sides tell each
other over internal topics, between which there is no order but in the test driver (docs/STREAMS.md), so that rows that
were replaced meanwhile do not come out.
"""

from pathlib import Path

import pytest

from ottla.sql.test_files import QueryTest, load

FOLDER = Path(__file__).parents[1] / "rules" / "sql" / "queries"
CHOSEN = {
    "projection": ("a star is all columns, and a tombstone stays one",),
    "grouping": ("HAVING deletes what no longer passes and never shows what did not",),
    "windows": ("a session that grows deletes what it was",),
    "tables": ("rows made of a list, grouped",),
    "joins": ("three sources, left to right",),
    "headers": ("all headers",),
}
TESTS = [
    pytest.param(each, id=f"{name}: {each.name}")
    for name, titles in CHOSEN.items()
    for each in load((FOLDER / f"{name}.yaml").read_text(), name)
    if each.name in titles
]


@pytest.mark.parametrize("query_test", TESTS)
def test_a_query_gives_the_same_on_spark(query_test: QueryTest, bootstrap: str, spark: object) -> None:
    given = dict(query_test.given)
    given["properties"] = {**given.get("properties", {}), "bootstrap.servers": bootstrap}
    assert QueryTest(query_test.name, given).failures("spark") == []
