"""SQL on Spark gives what it gives in the test driver: the query tests, of which `make test` runs one of each kind of
topology and `make matrix` all. Statements that are refused never come to Spark, and are left out."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from ottla.sql.test_files import QueryTest, load

FOLDER = Path(__file__).parents[1] / "rules" / "sql" / "queries"
OFTEN = {
    "projection: a star is all columns, and a tombstone stays one",
    "grouping: HAVING deletes what no longer passes and never shows what did not",
    "windows: a session that grows deletes what it was",
    "windows: EMIT FINAL gives every window, however far time goes on",
    "formats: windowed keys in AVRO",
    "tables: rows made of a list, grouped",
    "joins: three sources, left to right",
    "headers: all headers",
}
NAMED = {
    f"{path.stem}: {each.name}": each
    for path in sorted(FOLDER.glob("*.yaml"))
    for each in load(path.read_text(), str(path))
    if each.given.get("outputs")
}
AT_ONCE: Final = 4
"""A query mostly waits for its own processes to start."""

Failures = Future[list[str]]


def cell(name: str) -> Any:
    return pytest.param(name, id=name, marks=() if name in OFTEN else pytest.mark.matrix)


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, bootstrap: str, spark: object) -> Iterator[dict[str, Failures]]:
    """Of all tests that were asked for, in one Spark session."""
    here = [item for item in request.session.items if item.path == request.path and isinstance(item, pytest.Function)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        names = [str(item.callspec.params["name"]) for item in here]
        yield {name: pool.submit(failures, NAMED[name], bootstrap) for name in names}
        pool.shutdown(cancel_futures=True)


def failures(query_test: QueryTest, bootstrap: str) -> list[str]:
    given = dict(query_test.given)
    given["properties"] = {**given.get("properties", {}), "bootstrap.servers": bootstrap}
    return QueryTest(query_test.name, given).failures("spark")


@pytest.mark.parametrize("name", [cell(name) for name in sorted({*NAMED, *OFTEN})])
def test_a_query_gives_the_same_on_spark(name: str, runs: dict[str, Failures]) -> None:
    assert runs[name].result() == []
