"""What makes no sense is refused: with its code, its place, the thing it is about, and what would work."""

import pytest

from ottla.sql.errors import BAD_STATEMENT, SqlError
from ottla.sql.testing import run

STREAM = (
    "CREATE STREAM s (id INT KEY, v STRING, n BIGINT, m MAP<STRING, INT>) WITH (kafka_topic='s', value_format='JSON');"
)
OTHER = "CREATE STREAM o (id INT KEY, u STRING) WITH (kafka_topic='o', value_format='JSON');"
TABLE = "CREATE TABLE t (id INT PRIMARY KEY, w STRING) WITH (kafka_topic='t', value_format='JSON');"
X = "CREATE STREAM x (a STRING) WITH (kafka_topic='x', value_format='JSON'"
BARE = "CREATE STREAM k (v INT) WITH (kafka_topic='k', value_format='KAFKA');"
COMMAS = "CREATE STREAM d (v INT) WITH (kafka_topic='d', value_format='DELIMITED');"
THERE = "\n".join((STREAM, OTHER, TABLE + BARE + COMMAS)) + "\n"


@pytest.mark.parametrize(
    ("statement", "column", "message"),
    [
        # names
        ("CREATE STREAM x AS SELECT id, vv FROM s;", 31, "there is no column VV; do you mean V?"),
        ("CREATE STREAM x AS SELECT id, v FROM ss;", 38, "there is no stream or table SS; do you mean S?"),
        ("CREATE STREAM x AS SELECT id, y.v FROM s;", 31, "Y is no source of this query"),
        ("CREATE STREAM x AS SELECT id, UCAS(v) FROM s;", 31, "there is no function UCAS; do you mean UCASE?"),
        ("CREATE STREAM x AS SELECT id, v, n AS v FROM s;", 34, "two results are called V"),
        ("CREATE STREAM x AS SELECT id, v AS rowtime FROM s;", 31, "ROWTIME is there in every record"),
        ("CREATE STREAM s (a INT) WITH (kafka_topic='s', value_format='JSON');", 1, "there is a stream S already"),
        ("DROP TABLE s;", 1, "S is a stream: DROP STREAM S"),
        ("DROP STREAM nope;", 1, "there is no stream or table NOPE"),
        ("TERMINATE nope;", 1, "there is no query NOPE"),
        # keys
        ("CREATE STREAM x AS SELECT v FROM s;", 20, "ID is the key: add it to the SELECT list, or AS_VALUE(ID)"),
        ("CREATE STREAM x AS SELECT id, id AS b, v FROM s;", 31, "selected more than once (ID, B)"),
        ("CREATE STREAM x AS SELECT id FROM s;", 20, "key columns only"),
        ("CREATE STREAM x AS SELECT n, id FROM s PARTITION BY v;", 53, "V is the key by PARTITION BY"),
        ("CREATE TABLE x AS SELECT COUNT(*) AS c FROM s GROUP BY id;", 56, "ID is the key by GROUP BY"),
        ("CREATE TABLE x (id INT KEY) WITH (kafka_topic='x', value_format='JSON');", 17, "PRIMARY KEY"),
        ("CREATE STREAM x (id INT PRIMARY KEY) WITH (kafka_topic='x', value_format='JSON');", 18, "is not unique"),
        ("CREATE TABLE x (a INT) WITH (kafka_topic='x', value_format='JSON');", 1, "needs a PRIMARY KEY"),
        ("CREATE STREAM x AS SELECT m, v FROM s PARTITION BY m;", 1, "a key cannot hold a MAP"),
        ("CREATE STREAM x AS SELECT s.v, u FROM s JOIN o WITHIN 1 DAY ON s.id = o.id;", 20, "add S.ID or O.ID"),
        # types
        ("CREATE STREAM x AS SELECT id, n + v FROM s;", 33, "+ takes numbers, not STRING"),
        ("CREATE STREAM x AS SELECT id, v FROM s WHERE n;", 46, "WHERE takes BOOLEAN, not BIGINT"),
        ("CREATE STREAM x AS SELECT id, v FROM s WHERE v = n;", 48, "cannot be compared"),
        ("CREATE STREAM x AS SELECT id, CAST(v AS FOO) AS c FROM s;", 41, "FOO is no type"),
        ("CREATE STREAM x AS SELECT id, NULL AS c FROM s;", 31, "C is NULL and has no type"),
        ("CREATE STREAM x (a DECIMAL(50, 2)) WITH (kafka_topic='x', value_format='JSON');", 20, "38"),
        ("CREATE STREAM x (a MAP<INT, INT>) WITH (kafka_topic='x', value_format='JSON');", 20, "keys of a MAP"),
        ("CREATE STREAM x AS SELECT id, v FROM s WHERE v = NULL;", 48, "write IS NULL"),
        ("CREATE STREAM x AS SELECT id, n + NULL AS c FROM s;", 33, "+ with NULL is always NULL: CAST(NULL AS ...)"),
        (
            "CREATE STREAM x AS SELECT id, DATEADD(MONTHS, 1, PARSE_DATE(v, 'yyyy')) AS c FROM s;",
            39,
            "MONTHS is no unit here",
        ),
        # properties
        (f"{X}, timestamp='a', timestamp_format='yyyy-MM-ddTHH');", 87, "has the letter T, which is not understood"),
        (
            f"{X}, timestamp='a', timestamp_format='YYYY-MM-dd');",
            87,
            "has Y, which is of weeks as countries have them; y",
        ),
        (f"{X}, timestamp='a', timestamp_format='yyyy[-MM');", 87, "[ and ] that do not belong to each other"),
        (f"{X}, timestamp='a', timestamp_format='yyyy Q');", 87, "a quarter is written, and not read"),
        ("CREATE STREAM x AS SELECT id, PARSE_DATE(v, 'YYYY') AS c FROM s;", 31, "has Y, which is of weeks"),
        ("CREATE STREAM x AS SELECT id, PARSE_DATE(v, 'yyyy HH') AS c FROM s;", 31, "of a date has parts of a time"),
        ("CREATE STREAM x AS SELECT id, TIMESTAMPTOSTRING(n, 'w') AS c FROM s;", 31, "has w, which is of weeks"),
        ("CREATE STREAM x AS SELECT id, FORMAT_TIME(PARSE_TIME(v, 'HH:{'), 'HH') AS c FROM s;", 43, "in quotes only"),
        (f"{X}, partitions=1E400);", 72, "the property PARTITIONS takes a whole number, not inf"),
        (f"{X}, partitions=-1);", 72, "PARTITIONS is 1 at least and 100000 at most, not -1"),
        (f"{X}, partitions=0);", 72, "PARTITIONS is 1 at least"),
        (f"{X}, partitions=1E300);", 72, "PARTITIONS is 1 at least and 100000 at most"),
        (f"{X}, replicas=40000);", 72, "REPLICAS is 1 at least and 32767 at most, not 40000"),
        (f"{X}, retention_ms=9223372036854775808);", 72, "RETENTION_MS is -1 at least"),
        (f"{X}, value_schema_id=2147483648);", 72, "VALUE_SCHEMA_ID is 0 at least"),
        (
            "CREATE TABLE x AS SELECT v, COUNT(*) AS c FROM s "
            "WINDOW TUMBLING (SIZE 999999999999999999 DAYS) GROUP BY v;",
            72,
            "999999999999999999 DAYS are more than the 100,000,000 DAYS there may be",
        ),
        (
            "CREATE STREAM x (a INT KEY, b INT) WITH (kafka_topic='x', value_format='JSON', window_type='tumbling', "
            "window_size='999999999999999 DAYS');",
            104,
            "more than the 100,000,000 DAYS there may be",
        ),
        (f"{X}, retention_ms=0);", 72, "RETENTION_MS is above 0, or -1 for ever, not 0"),
        (f"{X}, cleanup_policy='compat');", 72, "'compat' is no CLEANUP_POLICY; do you mean compact?"),
        (
            "CREATE TABLE x (a INT PRIMARY KEY, b INT) WITH (kafka_topic='x', value_format='JSON', retention_ms=1);",
            87,
            "leave it out, or say CLEANUP_POLICY='compact,delete'",
        ),
        # aggregates and windows
        ("CREATE TABLE x AS SELECT id, v, COUNT(*) FROM s GROUP BY id;", 30, "neither in GROUP BY nor inside"),
        ("CREATE STREAM x AS SELECT id, COUNT(*) FROM s;", 31, "an aggregate needs GROUP BY"),
        ("CREATE STREAM x AS SELECT id, COUNT(*) AS c FROM s GROUP BY id;", 1, "write CREATE TABLE X AS"),
        ("CREATE TABLE x AS SELECT id, v FROM s;", 1, "write CREATE STREAM X AS"),
        ("CREATE TABLE x AS SELECT id, v FROM s GROUP BY id;", 19, "GROUP BY needs an aggregate"),
        ("CREATE STREAM x AS SELECT id, v FROM s HAVING n > 1;", 49, "HAVING filters aggregates"),
        ("CREATE STREAM x AS SELECT id, v FROM s WINDOW TUMBLING (SIZE 1 DAY);", 47, "WINDOW is for aggregates"),
        ("CREATE TABLE x AS SELECT id, MAX(w) AS c FROM t GROUP BY id;", 30, "MAX cannot take back a row"),
        ("CREATE TABLE x AS SELECT id, w FROM t EMIT FINAL;", 19, "EMIT FINAL is for aggregates over windows"),
        ("CREATE STREAM x AS SELECT id, COUNT(SUM(n)) AS c FROM s GROUP BY id;", 37, "the aggregate SUM cannot stand"),
        ("CREATE TABLE x AS SELECT id, COUNT(*) AS c FROM s GROUP BY id, id;", 64, "GROUP BY names the same twice"),
        ("CREATE STREAM x AS SELECT id, v FROM s LIMIT 3;", 20, "LIMIT is for queries whose rows are shown"),
        # joins
        ("CREATE STREAM x AS SELECT s.id, v FROM s JOIN o ON s.id = o.id;", 42, "needs a window of time"),
        ("CREATE STREAM x AS SELECT s.id, v FROM s JOIN t ON s.v = t.w;", 56, "joined by its PRIMARY KEY ID"),
        ("CREATE STREAM x AS SELECT s.id, v FROM s JOIN t ON v = t.id;", 54, "both sides of ON need one type"),
        ("CREATE STREAM x AS SELECT s.id, v FROM s RIGHT JOIN t ON s.id = t.id;", 42, "INNER or LEFT JOIN"),
        ("CREATE STREAM x AS SELECT t.id, v FROM t JOIN s ON s.id = t.id;", 42, "name the stream first"),
        ("CREATE STREAM x AS SELECT id, v FROM s JOIN t ON s.id = t.id;", 27, "write S.ID or T.ID"),
        ("CREATE STREAM x AS SELECT s.id FROM s JOIN t ON s.id > t.id;", 54, "ON takes one equality"),
        ("CREATE STREAM x AS SELECT s.id FROM s JOIN s WITHIN 1 DAY ON s.id = s.id;", 44, "two sources are called S"),
        # properties and formats
        ("CREATE STREAM x (a INT) WITH (kafka_topic='x', value_fromat='JSON');", 48, "do you mean VALUE_FORMAT?"),
        ("CREATE STREAM x (a INT) WITH (kafka_topic='x', value_format='JSO');", 48, "do you mean JSON?"),
        ("CREATE STREAM x (a INT) WITH (value_format='JSON');", 1, "KAFKA_TOPIC is missing"),
        ("CREATE STREAM x (a INT) WITH (kafka_topic='x');", 1, "VALUE_FORMAT is missing"),
        (
            "CREATE STREAM x (a INT) WITH (kafka_topic='x', value_format='JSON', partitions='many');",
            69,
            "a whole number",
        ),
        ("CREATE STREAM x (rowtime INT) WITH (kafka_topic='x', value_format='JSON');", 18, "cannot be declared"),
        ("CREATE STREAM x (a INT) WITH (kafka_topic='x', value_format='JSON', timestamp='b');", 69, "no such column"),
        ("CREATE STREAM x WITH (key_format='JSON') AS SELECT * FROM s PARTITION BY NULL;", 23, "KEY_FORMAT is for key"),
        (f"{X}, value_delimiter='|');", 72, "VALUE_DELIMITER is for DELIMITED, not for JSON"),
        (f"{X}, timestamp_format='yyyy');", 72, "add TIMESTAMP='column'"),
        ("CREATE STREAM x (a INT, b INT) WITH (kafka_topic='x', value_format='KAFKA');", 55, "holds one value column"),
        ("CREATE STREAM x (a INT KEY, b INT) WITH (kafka_topic='x', format='NONE');", 59, "without key columns"),
        (
            "CREATE STREAM x (a INT) WITH (kafka_topic='x', value_format='KAFKA', wrap_single_value=true);",
            70,
            "KAFKA does not wrap its column",
        ),
        # writing
        ("INSERT INTO nope SELECT * FROM s;", 13, "there is no stream or table NOPE"),
        ("INSERT INTO nope (a) VALUES (1);", 13, "there is no stream or table NOPE"),
        ("INSERT INTO s SELECT id, v FROM s;", 1, "names, types and order have to be the same"),
        ("INSERT INTO t SELECT * FROM s;", 1, "writes streams only"),
        ("INSERT INTO s (id, x) VALUES (1, 2);", 20, "S has no column X"),
        ("INSERT INTO s (id, v) VALUES (1);", 1, "2 columns (ID, V), but 1 values"),
        ("INSERT INTO s (id, v) VALUES (1, 2);", 34, "V is STRING, but the value is INTEGER"),
        ("INSERT INTO t (w) VALUES ('x');", 1, "the PRIMARY KEY ID of T needs a value"),
        ("INSERT INTO s (id, rowpartition) VALUES (1, 2);", 20, "ROWPARTITION cannot be written"),
        ("ALTER STREAM s ADD COLUMN v INT;", 27, "S has a column V already"),
        ("ALTER STREAM k ADD w INT, ADD b STRING;", 20, "KAFKA holds one value column"),
        ("ALTER STREAM d ADD b INT, ADD w ARRAY<INT>;", 31, "DELIMITED"),
        ("CREATE OR REPLACE STREAM s (id INT KEY) WITH (kafka_topic='s', value_format='JSON');", 1, "added at the end"),
    ],
)
def test_a_statement_that_makes_no_sense_is_refused(statement: str, column: int, message: str) -> None:
    with pytest.raises(SqlError) as refused:
        run(THERE + statement, [])
    error = refused.value
    assert message in error.message
    assert (error.code, error.line, error.column) == (BAD_STATEMENT, 4, column), error.message
    assert error.statement == statement.removesuffix(";")


@pytest.mark.parametrize(
    ("statement", "place", "message"),
    [
        (
            "CREATE STREAM x AS\n SELECT id, v FROM s;\nSET 'auto.ofset.reset' = 'earliest';",
            (3, 1),
            "auto.offset.reset",
        ),
        ("SET 'commit.interval.ms' = 'soon';", (1, 1), "commit.interval.ms"),
        ("SET 'topology.optimisation' = 'all';", (1, 1), "do you mean topology.optimization?"),
        ("DESCRIBE FUNCTION\n UCAES;", (2, 2), "do you mean UCASE?"),
        ("CREATE STREAM x\n WITH (value_format='JASON') AS SELECT * FROM s;", (2, 8), "do you mean JSON?"),
        (
            "CREATE STREAM x\n WITH (value_format='JSON',\n  format='JSON') AS SELECT * FROM s;",
            (2, 8),
            "FORMAT is both",
        ),
        ("CREATE STREAM x\n WITH (partitions=3, partitions=4) AS SELECT * FROM s;", (2, 22), "is there twice"),
        ("INSERT INTO s (id,\n v, v) VALUES (1, 'a', 'b');", (2, 5), "the column V is there twice"),
        (f"SELECT {'x' * 5_000_000} FROM s;", (1, 1), "at most"),
    ],
)
def test_every_refusal_has_a_place(statement: str, place: tuple[int, int], message: str) -> None:
    given = statement if len(statement) > 4_000_000 else "\n".join((THERE, statement))
    with pytest.raises(SqlError) as refused:
        run(given, [])
    error = refused.value
    line = error.line if given is statement else error.line - THERE.count("\n") - 1
    assert message in error.message
    assert (line, error.column) == place


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE STREAM x AS SELECT {} FROM s;",
        "CREATE STREAM x AS SELECT id, v FROM {};",
        "CREATE STREAM x AS SELECT id, {}(v) FROM s;",
        "CREATE STREAM x AS SELECT id, CAST(v AS {}) AS c FROM s;",
        "INSERT INTO s (id, {}) VALUES (1, 2);",
        "TERMINATE {};",
    ],
)
def test_a_name_of_a_megabyte_is_not_told_again(statement: str) -> None:
    with pytest.raises(SqlError) as refused:
        run(THERE + statement.format("x" * 1_000_000), [])
    assert len(str(refused.value)) < 3_000


def test_types_of_types_do_not_grow_with_each_statement() -> None:
    doubled = "CREATE TYPE t0 AS STRUCT<a INT>;" + "".join(
        f"CREATE TYPE t{each} AS STRUCT<a t{each - 1}, b `T{each - 1}`>;" for each in range(1, 40)
    )
    with pytest.raises(SqlError, match=r"the type has 12,287 parts .* at most 10,000 are taken"):
        run(doubled, [])
    nested = "CREATE TYPE n0 AS INT;" + "".join(
        f"CREATE TYPE n{each} AS {'ARRAY<' * 40}n{each - 1}{'>' * 40};" for each in range(1, 4)
    )
    with pytest.raises(SqlError, match="more than 100 levels of types inside each other"):
        run(nested, [])


def test_a_source_that_others_read_cannot_be_dropped() -> None:
    with pytest.raises(SqlError, match=r"S cannot be dropped while it is read by CSAS_X_1: TERMINATE them first"):
        run(STREAM + "CREATE STREAM x AS SELECT id, v FROM s; DROP STREAM s;", [])


def test_a_statement_that_is_refused_changes_nothing_that_came_before() -> None:
    with pytest.raises(SqlError):
        run(STREAM + "CREATE STREAM x AS SELECT nope FROM s;", [])
    assert [each["name"] for each in run(STREAM, [])[1]] == ["S"]


def test_a_source_stream_is_read_only() -> None:
    source = STREAM.replace("CREATE STREAM", "CREATE SOURCE STREAM")
    for statement in (
        "INSERT INTO s (id) VALUES (1);",
        "INSERT INTO s SELECT * FROM s;",
        "DROP STREAM s DELETE TOPIC;",
    ):
        with pytest.raises(SqlError, match="read-only"):
            run(source + statement, [])


TABLE = "CREATE STREAM s (id INT KEY, v STRING, n INT) WITH (kafka_topic='s', value_format='JSON');"
COUNTED = "v, COUNT(*) AS c FROM s GROUP BY v"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (COUNTED, "v, COUNT(*) AS c, COUNT(*) * 2 AS d FROM s GROUP BY v", ""),
        (
            "v, COUNT(*) AS c FROM s GROUP BY v",
            "v, COUNT(*) AS c, SUM(n) AS d FROM s GROUP BY v",
            "keeps state for GROUP",
        ),
        (
            "v, COUNT(*) AS c FROM s GROUP BY v",
            "v, COUNT(*) AS c FROM s WHERE n > 1 GROUP BY v",
            "keeps state for GROUP",
        ),
    ],
)
def test_a_query_with_state_is_replaced_by_one_with_the_same_state(before: str, after: str, message: str) -> None:
    statements = f"{TABLE}CREATE TABLE o AS SELECT {before};CREATE OR REPLACE TABLE o AS SELECT {after};"
    if not message:
        run(statements, [])
        return
    with pytest.raises(SqlError, match=message):
        run(statements, [])
