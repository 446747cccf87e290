"""What docs/SQL.md shows without a server: its query tests in Python and in YAML, and its functions."""

import re
from pathlib import Path
from typing import Any

import pytest

from ottla.sql.history.text import read
from ottla.sql.parser import parse
from ottla.sql.test_files import load
from ottla.sql.testing import run

PAGE = (Path(__file__).parents[3] / "docs" / "SQL.md").read_text()


def blocks(language: str, heading: str) -> list[str]:
    part = re.split(r"^## ", PAGE.partition(f"## {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", part, re.DOTALL | re.MULTILINE)


def test_the_tests_in_python_pass() -> None:
    (text,) = blocks("python", "Query tests")
    names: dict[str, Any] = {}
    exec(compile(text, "SQL.md", "exec"), names)
    tests = [each for name, each in names.items() if name.startswith("test_")]
    assert len(tests) == 2
    for each in tests:
        each(run)


def test_the_tests_in_yaml_pass_and_fail_as_the_page_says() -> None:
    (text,) = blocks("yaml", "Query tests")
    assert [each.failures() for each in load(text, "spent.yaml")] == [[], []]
    wrong, right = load(text.replace("TOTAL: 6.70", "TOTAL: 6.80"), "wrong.yaml")
    (told,) = wrong.failures()
    assert told in PAGE and right.failures() == []


def test_the_functions_in_python_give_what_they_are_for() -> None:
    (functions,) = (each for each in blocks("sql", "Beyond ksqlDB") if "CREATE FUNCTION" in each)
    queries = """
        CREATE STREAM s (id INT KEY, points INT, said STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
        CREATE STREAM graded AS SELECT id, GRADE(points, 10) AS grade FROM s;
        CREATE STREAM spoken AS SELECT id, WORDS(said) AS word FROM s;
        CREATE TABLE spreads AS SELECT id, SPREAD(CAST(points AS DOUBLE)) AS spread FROM s GROUP BY id;
    """
    records = [
        {"topic": "s", "key": 1, "value": {"POINTS": 4, "SAID": "good day"}},
        {"topic": "s", "key": 1, "value": {"POINTS": 9, "SAID": ""}},
    ]
    outputs, _ = run(functions + queries, records)
    assert [(each["topic"], each["value"]) for each in outputs] == [
        ("GRADED", {"GRADE": "poor"}),
        ("GRADED", {"GRADE": "good"}),
        ("SPOKEN", {"WORD": "good"}),
        ("SPOKEN", {"WORD": "day"}),
        ("SPREADS", {"SPREAD": 0.0}),
        ("SPREADS", {"SPREAD": 5.0}),
    ]


@pytest.mark.parametrize("text", [each for each in blocks("sql", "Beyond ksqlDB") if "BETWEEN '2026" in each])
def test_selects_over_history_are_read(text: str) -> None:
    statements = [each for each in text.split(";") if each.strip()]
    assert len(statements) == 3
    assert [bool(read(each).reads) for each in statements] == [True, True, True]


@pytest.mark.parametrize("text", [*blocks("sql", "What goes wrong with records"), *blocks("sql", "Beyond ksqlDB")[:1]])
def test_statements_for_a_server_are_read(text: str) -> None:
    assert parse(text)
