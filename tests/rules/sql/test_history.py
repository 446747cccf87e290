"""SELECT over history: what it reads, how far, and what it may not be."""

import gc
import time

import pytest

from ottla.sql.errors import SqlError
from ottla.sql.functions import AGGREGATES
from ottla.sql.history.text import Bounds, is_history, read


def names(text: str) -> list[str]:
    return [each.name for each in read(text).reads]


def test_names_behind_from_join_and_commas_are_read() -> None:
    assert names('SELECT a, b FROM orders o, `Items` JOIN "who" USING (id) WHERE x IN (SELECT y FROM rest)') == [
        "ORDERS",
        "Items",
        "who",
        "REST",
    ]


def test_functions_parts_and_subqueries_are_no_names() -> None:
    assert names("SELECT EXTRACT(DAY FROM t), TRIM('x' FROM y) FROM range(3), (SELECT 1), a.b") == []


def test_a_quoted_name_is_one_that_spark_takes() -> None:
    query = read('SELECT * FROM "my topic"')
    assert query.text(()) == "SELECT * FROM `my topic`"
    assert query.text(["my topic@0"]) == "SELECT * FROM `my topic@0` AS `my topic`"


def test_names_that_differ_in_case_alone_are_different_views() -> None:
    query = read("WITH Best AS (SELECT 1) SELECT * FROM `Orders`, `orders` o JOIN Best")
    views = [each.view for each in query.reads]
    assert query.text(views[:2]).endswith("FROM `orders@0` AS `Orders`, `orders@1` o JOIN `Best`")


def test_bounds_are_taken_out_and_the_source_keeps_its_name() -> None:
    query = read(
        "SELECT orders.id FROM orders BETWEEN '2026-11-01' AND '2026-11-02T00:00:00Z' WHERE id BETWEEN 1 AND 2"
    )
    text = query.text(["orders@0"])
    assert " ".join(text.split()) == ("SELECT orders.id FROM `orders@0` AS `ORDERS` WHERE id BETWEEN 1 AND 2")
    assert query.reads[0].bounds == Bounds(1793491200000, 1793577600000, of_time=True)


def test_offsets_bound_as_well_and_an_alias_stays() -> None:
    query = read("SELECT * FROM orders BETWEEN 5 AND 9 o JOIN orders p ON o.id = p.id")
    text = query.text(["orders@0", "orders@1"])
    assert " ".join(text.split()) == "SELECT * FROM `orders@0` o JOIN `orders@1` p ON o.id = p.id"
    assert query.reads[0].bounds == Bounds(5, 9, of_time=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DROP TABLE x", "one SELECT"),
        ("WITH a AS (SELECT 1) INSERT INTO b SELECT * FROM a", "INSERT INTO is a statement of its own"),
        ("SELECT reflect('java.lang.System', 'exit', 1)", "calls of Java"),
        ("SELECT 1; SELECT 2", "one SELECT at a time"),
        ("SELECT * FROM t BETWEEN 1 AND 'x'", "two times in quotes or two offsets"),
        ("SELECT * FROM t BETWEEN 'soon' AND 'later'", "'soon' is no time"),
        ("", "one SELECT"),
        ("SELECT TRANSFORM(a) USING 'rm' AS (b) FROM t", "programs"),
        ('SELECT * FROM (MAP a USING "rm" FROM t)', "programs"),
        ("SELECT r'\\', reflect('java.lang.System', 'exit', 1) --'", "raw strings"),
        ("SELECT 1 -- a comment\r, reflect('java.lang.System', 'exit', 1)", "calls of Java"),
    ],
)
def test_what_does_not_only_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM orders ORDER BY id",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "SELECT RANK() OVER (ORDER BY id) FROM orders",
        "SELECT COUNT(*) FROM orders;",
        "SELECT who, n FROM orders GROUP BY who",
        "SELECT * FROM orders o JOIN items i ON o.id = i.id WHERE o.id > 1",
        "SELECT * FROM orders BETWEEN 1 AND 2",
        "SELECT DISTINCT who FROM orders",
        "SELECT id FROM orders UNION ALL SELECT id FROM items",
        "SELECT * FROM (SELECT id FROM orders)",
        "SELECT id FROM orders WHERE id IN (SELECT id FROM items)",
        "(SELECT 1)",
        "VALUES (1)",
    ],
)
def test_what_needs_an_end_of_the_input_is_about_history(text: str) -> None:
    assert is_history(text, AGGREGATES)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM orders WHERE id = 1",
        "SELECT id, UCASE(item) FROM orders WHERE price BETWEEN 1 AND 2 LIMIT 3",
        "SELECT id FROM orders WHERE id IN (1, 2)",
        "SELECT who, COUNT(*) FROM orders GROUP BY who EMIT CHANGES",
        "SELECT * FROM orders o JOIN items i WITHIN 1 DAY ON o.id = i.id EMIT CHANGES",
        "SELECT who, COUNT(*) FROM orders WINDOW TUMBLING (SIZE 1 DAY) GROUP BY who",
        "SELECT * FROM orders ORDER BY id EMIT CHANGES",
        "SELECT 'ORDER BY' FROM orders",
        "SELECT `COUNT` FROM orders -- ORDER BY id",
        "PRINT orders",
        "SELEC 1",
        "",
    ],
)
def test_other_statements_for_rows_are_not(text: str) -> None:
    assert not is_history(text, AGGREGATES)


@pytest.mark.parametrize("repeated", ["\\'", "/* ", "(a) FROM ", ") FROM ", "FROM (a), ", "x(", '"', "BETWEEN 1 "])
def test_looking_takes_ten_times_as_long_for_ten_times_the_text(repeated: str) -> None:
    def taken(times: int) -> float:
        text = "SELECT " + repeated * times
        gc.disable()  # whoever else has many objects in this process is not measured
        try:
            return min(once(text) for _ in range(3))
        finally:
            gc.enable()

    def once(text: str) -> float:
        begun = time.thread_time()
        is_history(text, AGGREGATES)
        return time.thread_time() - begun

    assert taken(20_000) < 50 * taken(2_000) + 0.01  # a hundred, if each looked at all that follows


def test_what_is_longer_than_a_statement_may_be_is_not_looked_at() -> None:
    assert not is_history("SELECT a FROM b ORDER BY a" + " " * 1_000_000 + ";", AGGREGATES)


@pytest.mark.parametrize("text", ["SELECT 'a", "SELECT 'a''", "SELECT /* a", 'SELECT "a', "SELECT `a"])
def test_what_begins_and_does_not_end_is_refused(text: str) -> None:
    with pytest.raises(SqlError, match=r"line 1:\d+: what begins here with \S+ does not end"):
        read(text)


def test_a_bound_is_a_whole_number_of_an_offset() -> None:
    for bound in ("1.5", "9" * 5_000):
        with pytest.raises(SqlError, match="BETWEEN two times in quotes or two offsets"):
            read(f"SELECT * FROM t BETWEEN 0 AND {bound}")
