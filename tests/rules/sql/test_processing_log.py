"""The processing log: what is found wrong with a record, in which words, and without what the record holds."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from ottla.model.ids import TopicPartition
from ottla.sql.processing_log.entries import Problem, entry, stream_statement
from ottla.sql.processing_log.failing import FALLIBLE
from ottla.sql.processing_log.review import Review
from ottla.sql.processing_log.second_look import Limits, Look, Looks
from ottla.sql.session import Session
from ottla.streams.expressions.bound import FUNCTIONS
from ottla.streams.record import Raw

SECRET = "geheim4711"
STREAM = (
    "CREATE STREAM s (id INT KEY, v STRING, a INT, b INT, d DECIMAL(4, 2), t STRING) "
    "WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');"
)
KEY = b"\0\0\0\1"
SQL = Callable[..., tuple[list[dict[str, Any]], list[dict[str, Any]]]]


def review_of(*statements: str) -> Review:
    session = Session()
    for statement, text in session.statements("".join(statements)):
        session.change(statement, text, {})
    (query,) = session.catalog.queries.values()
    return Review(query.query, None)


def problems(review: Review, value: str | None, key: bytes | None = KEY) -> list[Problem]:
    return review.problems(Raw("t", 2, 7, key, None if value is None else value.encode(), 0), 0)


def told(problem: Problem, *, rows: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(entry("Q_1", problem, 5, rows=rows))
    return found


def test_a_value_that_cannot_be_read_is_told_with_its_place_and_column() -> None:
    (found,) = problems(review_of(STREAM, "CREATE STREAM o AS SELECT id, a FROM s;"), f'{{"A": "{SECRET}"}}')
    document = told(found)
    assert document["logger"] == "processing.Q_1.KsqlTopic.Source"
    assert (document["level"], document["time"], document["message"]["type"]) == ("ERROR", 5, 0)
    error = document["message"]["deserializationError"]
    assert error["errorMessage"] == "the value of t-2 offset 7 cannot be read as JSON"
    assert error["cause"][0].endswith("A: INTEGER expected")
    assert (error["target"], error["topic"], error["recordB64"]) == ("value", "t", None)


def test_a_key_that_cannot_be_read_is_told_as_such() -> None:
    (found,) = problems(review_of(STREAM, "CREATE STREAM o AS SELECT id, a FROM s;"), "{}", b"abc")
    assert told(found)["message"]["deserializationError"]["target"] == "key"


FORMATS = [
    ("JSON", "a INT", f'{{"A": "{SECRET}"}}'),
    ("JSON", "a INT", SECRET),
    ("JSON", "a ARRAY<INT>", f'{{"A": {{"x": "{SECRET}"}}}}'),
    ("JSON", "a BOOLEAN", f'{{"A": "{SECRET}"}}'),
    ("JSON", "a DECIMAL(4, 2)", '{"A": 47114711.4711}'),
    ("JSON", "a TIMESTAMP", f'{{"A": "{SECRET}"}}'),
    ("JSON", "a BYTES", f'{{"A": "{SECRET}!"}}'),
    ("DELIMITED", "a INT", SECRET),
    ("DELIMITED", "a INT, b INT", f"1,{SECRET}"),
    ("DELIMITED", "a INT", f"1,{SECRET}"),
    ("KAFKA", "a BIGINT", SECRET),
    ("PROTOBUF_NOSR", "a INT", SECRET),
]


@pytest.mark.parametrize(("format", "columns", "value"), FORMATS)
def test_what_a_record_holds_is_told_only_if_that_was_asked_for(format: str, columns: str, value: str) -> None:
    made = f"CREATE STREAM s ({columns}) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='{format}');"
    (found,) = problems(review_of(made, "CREATE STREAM o AS SELECT a FROM s;"), value, None)
    without = json.dumps(told(found))
    assert "4711" not in without
    assert told(found, rows=True)["message"]["deserializationError"]["recordB64"]


@pytest.mark.parametrize(
    ("expression", "value", "words"),
    [
        ("CAST(v AS INT)", f'{{"V": "{SECRET}"}}', "CAST of string to int has no result: the column N is null"),
        ("a / b", '{"A": 1, "B": 0}', "int / int has no result: the column N is null"),
        ("a % b", '{"A": 1, "B": 0}', "int % int has no result: the column N is null"),
        ("PARSE_TIMESTAMP(v, 'yyyy')", '{"V": "x"}', "PARSE_TIMESTAMP"),
        ("UCASE(CAST(CAST(v AS INT) AS STRING))", '{"V": "x"}', "CAST of string to int"),
        ("INT_FROM_BYTES(TO_BYTES(v, 'utf8'))", '{"V": "x"}', "INT_FROM_BYTES"),
        ("EXTRACTJSONFIELD(v, '$.a')", '{"V": "no json"}', "EXTRACT_JSON_FIELD"),
    ],
)
def test_an_expression_without_result_is_told_with_its_column(expression: str, value: str, words: str) -> None:
    review = review_of(STREAM, f"CREATE STREAM o AS SELECT id, {expression} AS n FROM s;")
    (found,) = problems(review, value)
    document = told(found)
    assert document["logger"].endswith(".Project") and document["message"]["type"] == 1
    message = document["message"]["recordProcessingError"]
    assert words in message["errorMessage"] and message["record"] is None
    assert json.loads(told(found, rows=True)["message"]["recordProcessingError"]["record"])["key"] == 1


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("CAST(v AS INT)", '{"V": "12"}'),
        ("CAST(v AS INT)", "{}"),
        ("a / b", '{"A": 1}'),
        ("a / 2", '{"A": 1, "B": 0}'),
        ("CAST(a AS DOUBLE) / b", '{"A": 1, "B": 0}'),
        ("CASE WHEN b = 0 THEN 0 ELSE a / b END", '{"A": 1, "B": 0}'),
        ("REGEXP_EXTRACT('x', v)", '{"V": "abc"}'),
        ("ARRAY[1, 2][a]", '{"A": 9}'),
        ("a + 2147483647", '{"A": 1}'),
    ],
)
def test_a_null_that_is_an_answer_is_no_error(expression: str, value: str) -> None:
    assert problems(review_of(STREAM, f"CREATE STREAM o AS SELECT id, {expression} AS n FROM s;"), value) == []


def test_a_condition_without_result_leaves_the_row_out_and_is_told_once() -> None:
    review = review_of(STREAM, "CREATE STREAM o AS SELECT id, a / b AS n FROM s WHERE CAST(v AS INT) > 1;")
    (found,) = problems(review, '{"V": "x", "A": 1, "B": 0}')
    assert (found.step, "the row is left out" in found.message) == ("WhereFilter", True)
    assert problems(review, '{"V": "1", "A": 1, "B": 0}') == []


def test_keys_and_arguments_of_aggregates_are_looked_at() -> None:
    review = review_of(
        STREAM, "CREATE TABLE o AS SELECT CAST(v AS INT) AS k, SUM(a / b) AS n FROM s GROUP BY CAST(v AS INT);"
    )
    assert [each.message.partition(": ")[2] for each in problems(review, '{"V": "x", "A": 1, "B": 0}')] == [
        "CAST of string to int has no result: the row is left out",
        "int / int has no result: what is aggregated is null",
    ]


def test_a_time_that_is_none_is_told() -> None:
    stream = STREAM.replace("VALUE_FORMAT", "TIMESTAMP='t', TIMESTAMP_FORMAT='yyyy-MM-dd', VALUE_FORMAT")
    review = review_of(stream, "CREATE STREAM o AS SELECT id, a FROM s;")
    (found,) = problems(review, '{"T": "yesterday"}')
    assert found.message == "T of t-2 offset 7 is no time: the row is left out"
    assert problems(review, '{"T": "2026-11-18"}') == []


def test_code_of_users_has_failed_if_it_raised() -> None:
    function = (
        "CREATE FUNCTION f (x INT) RETURNS INT LANGUAGE PYTHON AS $$\ndef f(x):\n"
        "    return 1 // x if x < 5 else None\n$$;"
    )
    review = review_of(STREAM, function, "CREATE STREAM o AS SELECT id, f(a) AS n FROM s;")
    assert [each.message for each in problems(review, '{"A": 0}')] == [
        "t-2 offset 7: F has no result: the column N is null"
    ]
    assert problems(review, '{"A": 9}') == []


def test_of_a_join_records_that_cannot_be_read_are_told() -> None:
    table = "CREATE TABLE u (id INT PRIMARY KEY, n STRING) WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON');"
    review = review_of(STREAM, table, "CREATE STREAM o AS SELECT s.id, a / b AS q, n FROM s JOIN u ON s.id = u.id;")
    assert not review.fallible
    assert [each.target for each in problems(review, "nonsense")] == ["value"]
    assert [each.topic for each in review.problems(Raw("u", 0, 0, KEY, b"nonsense", 0), 0)] == ["u"]


def test_every_function_that_may_fail_is_one() -> None:
    assert FUNCTIONS.keys() >= FALLIBLE


def test_the_log_is_a_stream_whose_fields_are_read_in_any_case(sql: SQL) -> None:
    outputs, _ = sql(
        [
            STREAM,
            stream_statement("KSQL_PROCESSING_LOG", "default_ksql_processing_log"),
            "CREATE STREAM o AS SELECT id, CAST(v AS INT) AS n FROM s;",
            "CREATE STREAM alarms AS SELECT logger, message->type AS kind, "
            "COALESCE(message->deserializationError->errorMessage, message->recordProcessingError->errorMessage) "
            "AS why "
            "FROM KSQL_PROCESSING_LOG;",
        ],
        [
            {"topic": "t", "key": 1, "value": {"V": "12"}},
            {"topic": "t", "key": 2, "value": {"V": "x"}},
            {"topic": "t", "key": 3, "value": "nonsense"},
        ],
    )
    assert [each["value"] for each in outputs if each["topic"] == "ALARMS"] == [
        {
            "LOGGER": "processing.CSAS_O_2.Project",
            "KIND": 1,
            "WHY": "t-0: CAST of string to int has no result: the column N is null",
        },
        {
            "LOGGER": "processing.CSAS_O_2.KsqlTopic.Source",
            "KIND": 0,
            "WHY": "the value of t-0 cannot be read as JSON",
        },
    ]


# ---- when there is a second look


def status(end: int, **left_out: int) -> dict[str, Any]:
    return {"queries": [{"offsets": [json.dumps({"t": {"0": end}})], "dropped-by-reason": left_out}]}


PLACE = TopicPartition("t", 0)


def test_nothing_is_read_again_while_nothing_is_left_out() -> None:
    looks = Looks({PLACE: 0}, fallible=False)
    assert looks.decide(status(100)) is None
    assert looks.decide({"queries": []}) is None
    found = looks.decide(status(200, **{"deserialization-error": 3}))
    assert found == Look({PLACE: (100, 200)}, Limits().records, 3)
    assert looks.decide(status(300, **{"deserialization-error": 3})) is None


def test_a_query_that_may_fail_is_sampled() -> None:
    looks = Looks({PLACE: 5}, fallible=True)
    assert looks.decide(status(100)) == Look({PLACE: (5, 100)}, Limits().sample, 0)
    assert looks.decide(status(100)) is None


def test_topics_of_the_query_s_own_are_not_looked_at() -> None:
    looks = Looks({PLACE: 0}, fallible=True)
    assert looks.decide({"queries": [{"offsets": ['{"app-repartition": {"0": 9}}'], "dropped-by-reason": {}}]}) is None
