"""What queries give, by the files beside this one: each test is a rule, its name says which."""

from pathlib import Path

import pytest

from ottla.sql.test_files import QueryTest, load

FILES = sorted((Path(__file__).parent / "queries").glob("*.yaml"))
EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "sql").glob("*.test.yaml"))
TESTS = [
    pytest.param(each, id=f"{path.stem}: {each.name}")
    for path in [*FILES, *EXAMPLES]
    for each in load(path.read_text(), str(path))
]


@pytest.mark.parametrize("query_test", TESTS)
def test_query(query_test: QueryTest) -> None:
    assert query_test.failures() == []
