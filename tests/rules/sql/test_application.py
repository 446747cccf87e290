"""A file of statements as one application: what it says of its settings."""

import pytest

from ottla.sql.application import application
from ottla.sql.errors import BAD_STATEMENT, SqlError
from ottla.sql.testing import run

QUERY = """
CREATE STREAM s (id INT KEY, v STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE STREAM o AS SELECT id, UCASE(v) AS v FROM s;
"""


def test_what_a_file_sets_is_the_applications() -> None:
    said = {
        "application.id": "orders",
        "ksql.streams.commit.interval.ms": "250",
        "cache.max.bytes.buffering": "0",
        "spark.sql.shuffle.partitions": "2",
        "topic.retention.ms": "1000",
        "ksql.fail.on.deserialization.error": "true",
        "ksql.persistence.default.format.value": "JSON",
        "acks": "all",
    }
    text = "".join(f"SET '{name}' = '{value}';" for name, value in said.items())
    app = application(text + QUERY, "file").app
    assert app.application_id == "orders"
    assert dict(app.config.given) == {
        "commit.interval.ms": 250,
        "statestore.cache.max.bytes": 0,
        "spark.sql.shuffle.partitions": "2",
        "topic.retention.ms": "1000",
        "deserialization.exception.handler": app.config["deserialization.exception.handler"],
    }
    assert "fail" in str(app.config["deserialization.exception.handler"]).lower()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("auto.ofset.reset", "earliest", "do you mean auto.offset.reset?"),
        ("commit.interval.ms", "soon", "commit.interval.ms"),
        ("ksql.streams.comit.interval.ms", "1", "do you mean commit.interval.ms?"),
        ("ksql.functions.collect_lists.limit", "1", "do you mean ksql.functions.collect_list.limit?"),
        ("sql.view.max.rows", "1", "sql.view.max.rows"),
    ],
)
def test_a_setting_that_is_none_is_refused_where_it_stands(name: str, value: str, message: str) -> None:
    with pytest.raises(SqlError) as refused:
        application(f"{QUERY}SET '{name}' = '{value}';", "file")
    error = refused.value
    assert message in error.message
    assert (error.code, error.line, error.column) == (BAD_STATEMENT, 4, 1)


def test_a_property_of_a_test_that_cannot_be_is_refused() -> None:
    with pytest.raises(SqlError, match=r"ksql\.functions\.collect_list\.limit"):
        run(QUERY, [], {"ksql.functions.collect_list.limit": "many"})


def test_a_tables_query_keeps_the_same_with_a_condition_and_without() -> None:
    """So that OR REPLACE may add one."""
    table = "CREATE TABLE t (id INT PRIMARY KEY, v STRING) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');"
    stores = [
        application(f"{table}CREATE TABLE o AS SELECT id, v FROM t{where};", "file").app.topology.graph.stores
        for where in ("", " WHERE v > 'b'")
    ]
    assert stores[0] == stores[1]
    assert list(stores[0]) == ["Table-T"]
