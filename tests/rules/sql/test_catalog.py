"""The catalog is a core: deciding changes nothing, and replaying the log of statements makes the same catalog again."""

import pytest

from ottla.sql.catalog import (
    Catalog,
    DefaultSet,
    QueryEnded,
    QueryPaused,
    QuerySet,
    Settings,
    SourceDropped,
    SourceSet,
    TypeSet,
)
from ottla.sql.errors import SERVER_ERROR, SqlError
from ottla.sql.parser import parse
from ottla.sql.server.log import Logged
from ottla.sql.server.replaying import Replaying
from ottla.sql.session import Session

STREAM = "CREATE STREAM s (id INT KEY, v STRING) WITH (kafka_topic='s', value_format='JSON');"
LOG = (
    STREAM
    + "CREATE TYPE a AS STRUCT<x INT>; CREATE STREAM o AS SELECT id, UCASE(v) AS v FROM s;"
    + "INSERT INTO o SELECT * FROM s; CREATE TABLE c AS SELECT v, COUNT(*) AS n FROM s GROUP BY v; DROP TYPE a;"
)


def replayed(text: str) -> Session:
    session = Session()
    for statement, own in session.statements(text):
        session.change(statement, own, {})
    return session


def decided(catalog: Catalog, text: str) -> list[object]:
    (statement,) = parse(text)
    return list(catalog.decide(statement, text, 7, Settings()))


def test_queries_are_named_after_their_place_in_the_log() -> None:
    assert list(replayed(LOG).catalog.queries) == ["CSAS_O_2", "INSERTQUERY_3", "CTAS_C_4"]


def test_the_same_log_makes_the_same_catalog() -> None:
    first, second = replayed(LOG).catalog, replayed(LOG).catalog
    assert first.sources == second.sources
    assert first.types == second.types == {}
    assert [each.sink for each in first.queries.values()] == [each.sink for each in second.queries.values()]


def test_deciding_changes_nothing() -> None:
    catalog = replayed(LOG).catalog
    before = (dict(catalog.sources), dict(catalog.types), dict(catalog.queries))
    assert [type(each) for each in decided(catalog, "CREATE STREAM p AS SELECT * FROM s")] == [SourceSet, QuerySet]
    assert [type(each) for each in decided(catalog, "CREATE TYPE t AS INT")] == [TypeSet]
    assert before == (catalog.sources, catalog.types, catalog.queries)


def test_dropping_what_a_query_made_ends_the_query() -> None:
    catalog = replayed(LOG).catalog
    assert decided(catalog, "DROP TABLE c DELETE TOPIC") == [QueryEnded("CTAS_C_4"), SourceDropped("C", "C")]


def test_what_others_read_or_write_is_not_dropped() -> None:
    catalog = replayed(LOG).catalog
    with pytest.raises(SqlError, match="read by CSAS_O_2, INSERTQUERY_3, CTAS_C_4"):
        decided(catalog, "DROP STREAM s")
    with pytest.raises(SqlError, match="written by INSERTQUERY_3"):
        decided(catalog, "DROP STREAM o")


def test_queries_are_paused_resumed_and_ended_by_id_or_all() -> None:
    catalog = replayed(LOG).catalog
    assert decided(catalog, "PAUSE CSAS_O_2") == [QueryPaused("CSAS_O_2", True)]
    assert decided(catalog, "RESUME ALL")[-1] == QueryPaused("CTAS_C_4", False)
    assert decided(catalog, "TERMINATE ALL") == [QueryEnded(each) for each in catalog.queries]


def test_if_not_exists_of_what_is_there_changes_nothing() -> None:
    catalog = replayed(LOG).catalog
    assert decided(catalog, "CREATE STREAM IF NOT EXISTS o AS SELECT * FROM s") == []
    assert decided(catalog, "DROP STREAM IF EXISTS nope") == []


def test_a_type_is_resolved_when_it_is_used() -> None:
    text = "CREATE TYPE a AS INT; CREATE STREAM s (x a) WITH (kafka_topic='s', value_format='JSON'); DROP TYPE a;"
    assert replayed(text).catalog.sources["S"].schema_text() == "`X` INTEGER"


@pytest.mark.parametrize(
    ("statement", "settings"),
    [
        ("CREATE STREAM x (a INT) WITH (kafka_topic='x', value_format='JSON')", {}),
        (
            "CREATE STREAM x (a INT) WITH (kafka_topic='x', value_format='JSON', retention_ms=5000)",
            {"retention.ms": "5000"},
        ),
        (
            "CREATE TABLE x (a INT PRIMARY KEY, b INT) WITH (kafka_topic='x', value_format='JSON')",
            {"cleanup.policy": "compact"},
        ),
        (
            "CREATE TABLE x (a INT PRIMARY KEY, b INT) WITH (kafka_topic='x', value_format='JSON',"
            " cleanup_policy='compact, delete', retention_ms=-1)",
            {"cleanup.policy": "compact,delete", "retention.ms": "-1"},
        ),
        (
            "CREATE TABLE x WITH (retention_ms=60000) AS SELECT v, COUNT(*) AS n FROM s"
            " WINDOW TUMBLING (SIZE 1 MINUTE, RETENTION 1 HOUR) GROUP BY v",
            {"cleanup.policy": "compact,delete", "retention.ms": "3600000"},
        ),
        ("CREATE TABLE x AS SELECT v, COUNT(*) AS n FROM s GROUP BY v", {"cleanup.policy": "compact"}),
        ("CREATE STREAM x WITH (retention_ms=7) AS SELECT id, v FROM s", {"retention.ms": "7"}),
    ],
)
def test_a_new_topic_keeps_its_records_as_its_source_needs_or_says(statement: str, settings: dict[str, str]) -> None:
    change = decided(replayed(STREAM).catalog, statement)[0]
    assert isinstance(change, SourceSet)
    assert dict(change.source.topic_settings) == settings


def test_variables_are_replaced_unless_that_is_switched_off() -> None:
    session = Session(variables={"V": "id"})
    assert session.replaced("SELECT ${v}") == "SELECT id"
    session.properties["ksql.variable.substitution.enable"] = "false"
    assert session.replaced("SELECT '${v}'") == "SELECT '${v}'"


def test_alter_system_says_what_holds_where_statements_say_nothing() -> None:
    catalog = Catalog()
    changes = decided(catalog, "ALTER SYSTEM 'auto.offset.reset'='latest'")
    assert changes == [DefaultSet("auto.offset.reset", "latest")]
    assert catalog.defaults == {}


def test_what_the_system_says_holds_for_statements_behind_it() -> None:
    replaying = Replaying(None, {"ksql.streams.auto.offset.reset": "earliest"})
    for offset, text in enumerate(
        (
            STREAM,
            "ALTER SYSTEM 'auto.offset.reset'='earliest';",
            "ALTER SYSTEM 'ksql.streams.auto.offset.reset'='earliest';",
            "ALTER SYSTEM 'auto.offset.reset'='latest';",
            STREAM.replace(" s ", " t "),
        )
    ):
        replaying.replayed(offset, Logged(text, {"commit.interval.ms": "5"} if offset == 4 else {}))
    assert replaying.defaults() == {"auto.offset.reset": "latest"}
    first, *_, last = [dict(each.properties) for _, each in replaying.statements]
    assert (first, last) == ({}, {"auto.offset.reset": "latest", "commit.interval.ms": "5"})


@pytest.mark.parametrize("text", ["SHOW TOPICS; SHOW TOPICS;", "", "-- nothing"])
def test_what_stands_in_the_log_and_is_no_statement_is_left_out_and_those_behind_it_count(text: str) -> None:
    """Anybody who may write to the topic may have put it there: a server has to start all the same."""
    replaying = Replaying(None, {})
    replaying.replayed(0, Logged(text))
    replaying.replayed(1, Logged("CREATE TYPE a AS INT;"))
    error = replaying.outcomes[0].error
    assert error is not None
    assert error.code == SERVER_ERROR
    assert list(replaying.catalog.types) == ["A"]
    assert [offset for offset, _ in replaying.statements] == [1]
