"""The language: what reads, where what does not is wrong, and that nothing can make the parser fail otherwise."""

import gc
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.sql import tree as t
from ottla.sql.errors import BAD_STATEMENT, SqlError
from ottla.sql.lexer import pieces, substituted
from ottla.sql.parser import parse, parse_expression, parse_type
from ottla.sql.session import Session
from ottla.sql.text import text_of

CORPUS = """
CREATE STREAM s (id INT KEY, `Mixed` VARCHAR, 1R BIGINT, a ARRAY<STRUCT<x INT, y DECIMAL(4, 2)>>, key STRING)
  WITH (kafka_topic='t', value_format='json', partitions=3, wrap_single_value=false);
CREATE SOURCE TABLE IF NOT EXISTS t (id STRING PRIMARY KEY, m MAP<STRING, ARRAY<INT>>) WITH (KAFKA_TOPIC='t');
CREATE OR REPLACE STREAM h (h1 BYTES HEADER('k'), h2 ARRAY<STRUCT<key STRING, value BYTES>> HEADERS)
  WITH (format='AVRO');
CREATE STREAM bare WITH (kafka_topic='x', value_format='AVRO', value_schema_id=7);
CREATE TABLE c WITH (key_format='JSON') AS SELECT a AS b, COUNT(*) AS n FROM s
  WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 5 MINUTES, RETENTION 2 DAYS, GRACE PERIOD 10 SECONDS)
  WHERE a > 1 AND NOT (b IS NULL OR c NOT IN (1, 2)) GROUP BY (a, b) HAVING COUNT(*) > 3 EMIT FINAL;
CREATE STREAM j AS SELECT l.*, r.x y, s->f->g, m['k'][1], ROWKEY FROM l AS a LEFT OUTER JOIN r b
  WITHIN (1 HOUR, 30 MINUTES) GRACE PERIOD 5 SECONDS ON a.id = b.id INNER JOIN c ON c.k = a.id
  PARTITION BY a.id EMIT CHANGES;
INSERT INTO o WITH (query_id='q') SELECT * FROM s;
INSERT INTO o (a, b) VALUES (1, CAST('1.5' AS DECIMAL(3, 1)));
SELECT TRANSFORM(m, (k, v) => UCASE(k), (k, v) => v + 1), FILTER(a, x => x > -1), s->* FROM t EMIT CHANGES LIMIT 3;
SELECT CASE WHEN a THEN 1 ELSE 2 END, CASE a WHEN 1 THEN 'x' END, a BETWEEN 1 AND 2, a IS DISTINCT FROM b FROM t;
SELECT TIMESTAMPADD(HOURS, 1, ts), ts AT TIME ZONE 'UTC', ARRAY[], ARRAY[1], MAP('a' := 1), STRUCT(f := 1) FROM t;
DROP STREAM IF EXISTS s DELETE TOPIC; DROP TYPE x; DROP CONNECTOR c;
ALTER STREAM s ADD COLUMN a INT, ADD b STRING; ALTER SYSTEM 'p'='v';
TERMINATE ALL; PAUSE q; RESUME q; EXPLAIN q; EXPLAIN SELECT * FROM s;
DESCRIBE s EXTENDED; DESCRIBE STREAMS; DESCRIBE FUNCTION f; DESCRIBE CONNECTOR c;
SHOW ALL TOPICS; LIST SOURCE CONNECTORS; SHOW CONNECTOR PLUGINS; SHOW QUERIES EXTENDED; SHOW VARIABLES;
PRINT my-topic.v1 FROM BEGINNING INTERVAL 2 LIMIT 3;
SET 'a'='b'; UNSET 'a'; DEFINE v = '1'; UNDEFINE v; RUN SCRIPT 'f.sql';
CREATE OR REPLACE AGGREGATE FUNCTION f (x INT, y STRING) RETURNS INT KEEPS ARRAY<INT> LANGUAGE PYTHON
    WITH (TIMEOUT_MS=5) AS $$class F: pass$$;
CREATE TYPE ty AS STRUCT<a INT>;
CREATE SINK CONNECTOR IF NOT EXISTS c WITH ('connector.class'='x');
ASSERT TOPIC t WITH (partitions=1) TIMEOUT 5 SECONDS; ASSERT NOT EXISTS SCHEMA SUBJECT 's' ID 3;
ASSERT VALUES s (a) VALUES (1); ASSERT NULL VALUES s (a) KEY (1); ASSERT STREAM s (a INT) WITH (kafka_topic='t');
"""


def test_every_kind_of_statement_reads() -> None:
    parsed = parse(CORPUS)
    kinds = {each for each in vars(t).values() if isinstance(each, type) and issubclass(each, t.Statement)}
    assert kinds - {type(each) for each in parsed} == {t.Statement}


def test_precedence_is_or_and_not_comparison_joining_sum_product_sign() -> None:
    assert parse_expression("NOT a = b + c * -d || e AND f OR g") == parse_expression(
        "((NOT (a = ((b + (c * (-d))) || e))) AND f) OR g"
    )


def test_names_are_upper_case_unless_quoted() -> None:
    assert parse_expression("a.`b`") == t.Column("b", "A")
    assert parse_expression('"It""s"') == t.Column('It"s')


def test_a_number_with_a_point_is_a_decimal_and_one_with_an_exponent_a_double() -> None:
    shown = [repr(parse_expression(text).value) for text in ("1", "1.0", "1E0", "9223372036854775808")]  # type: ignore[attr-defined]
    assert shown == ["1", "Decimal('1.0')", "1.0", "Decimal('9223372036854775808')"]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("SELECT * FRM x", 1, 10, "FROM is expected"),
        ("SELEC * FROM x", 1, 1, "do you mean SELECT?"),
        ("SELECT 1 FROM x;\n\n  SELECT a b c FROM x;", 3, 14, "FROM is expected"),
        ("SELECT 'abc FROM x", 1, 8, "does not end"),
        ("SELECT a FROM x /* and", 1, 17, "does not end"),
        ("CREATE STREAM SELECT (a INT) WITH (x=1)", 1, 15, "write `SELECT` in quotes"),
        ("CREATE STREAM s (a INT", 1, 23, "the statement ends"),
        ("SELECT a ? b FROM x", 1, 10, "means nothing"),
        ("SELECT * FROM (SELECT * FROM s)", 1, 15, "a query inside a query"),
        ("SELECT ${v} FROM s", 1, 8, "is not defined"),
        ("SELECT a FROM s WINDOW TUMBLING (SIZE 5 PARSECS)", 1, 41, "MILLISECONDS, SECONDS"),
        ("SELECT a FROM s ORDER BY a", 1, 17, "ORDER BY is not available"),
        ("SELECT a FROM s ORDER BY a", 1, 17, "ottla sql history"),
        ("WITH x AS (SELECT 1 FROM s) SELECT * FROM x", 1, 1, "ottla sql history"),
        ("SELECT a, RANK() OVER (ORDER BY b) AS place FROM s", 1, 18, "ottla sql history"),
        ("SELECT a FROM s CROSS JOIN r", 1, 17, "ottla sql history"),
        ("SELECT a FROM s BETWEEN 1 AND 2", 1, 17, "ottla sql history"),
        ("CREATE STREAM s (a INT) WITH (x = y)", 1, 36, "takes a text in quotes"),
    ],
)
def test_what_does_not_read_is_refused_at_its_place(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(SqlError) as refused:
        parse(text)
    assert (refused.value.code, refused.value.line, refused.value.column) == (BAD_STATEMENT, line, column)
    assert message in refused.value.message


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 10_000,
        "SELECT " + "(" * 10_000 + "1" + ")" * 10_000 + " FROM s",
        "SELECT " + "NOT " * 10_000 + "a FROM s",
        "SELECT " + "- " * 10_000 + "a FROM s",
        "SELECT a" + "[1]" * 10_000 + " FROM s",
        "SELECT " + "1+" * 10_000 + "1 FROM s",
        "SELECT CAST(a AS " + "ARRAY<" * 10_000,
        "x" * 1_000_000,
        "SELECT " + "a," * 500_000,
        "'" * 999_999,
        "-" * 5_000_000,
    ],
    ids=range(11),
)
def test_depth_and_length_are_bounded(text: str) -> None:
    with pytest.raises(SqlError):
        parse(text)


def test_a_thousand_terms_are_no_deeper_than_two() -> None:
    parse("SELECT a FROM s WHERE " + " OR ".join(["a = 1"] * 1_000))


def test_a_thousand_statements_take_less_than_a_second() -> None:
    statements = CORPUS.count(";")
    begin = time.process_time()
    for _ in range(1_000 // statements):
        parse(CORPUS)
    assert time.process_time() - begin < 1


def test_semicolons_in_quotes_and_comments_end_nothing() -> None:
    found = [each.text for each in pieces("SELECT ';' -- ;\n FROM s; /* ; */ ; SELECT `;`;")]
    assert found == ["SELECT ';' -- ;\n FROM s", "SELECT `;`"]


def test_variables_are_replaced_in_quotes_too_and_know_no_case() -> None:
    assert substituted("SELECT '${a}' FROM ${B} ${c}", {"A": "x", "B": "y"}) == "SELECT 'x' FROM y ${c}"


# ---- text and back


def test_every_statement_written_back_reads_as_itself() -> None:
    for statement in parse(CORPUS):
        assert parse(text_of(statement)) == [statement]


names = st.sampled_from(["A", "b c", "SELECT", "x`y", "KEY", "1R"])
types = st.recursive(
    st.sampled_from(
        [t.TypeName("INT"), t.TypeName("STRING"), t.TypeName("DECIMAL", (4, 2)), t.TypeName("x y", quoted=True)]
    ),
    lambda inner: st.one_of(
        st.builds(lambda each: t.TypeName("ARRAY", (each,)), inner),
        st.builds(lambda name, each: t.TypeName("STRUCT", fields=((name, each),)), names, inner),
    ),
    max_leaves=4,
)
leaves = st.one_of(
    st.builds(t.Literal, st.one_of(st.none(), st.booleans(), st.integers(0, 1 << 40), st.text("a'%\n;-", max_size=4))),
    st.builds(t.Literal, st.decimals(0, 1000, places=2)),
    st.builds(t.Literal, st.floats(0, 1e300)),
    st.builds(t.Column, names, st.one_of(st.none(), names)),
)


def inside(inner: st.SearchStrategy[t.Expr]) -> st.SearchStrategy[t.Expr]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(
            t.Unary, st.sampled_from(["NOT", "-", "+"]), inner.filter(lambda each: not isinstance(each, t.Literal))
        ),
        st.builds(t.Binary, st.sampled_from(["+", "*", "%", "=", "<>", "<=", "IS DISTINCT FROM"]), inner, inner),
        st.builds(t.Chain, st.sampled_from(["AND", "OR", "||"]), several),
        st.builds(t.IsNull, inner, st.booleans()),
        st.builds(t.Between, inner, inner, inner, st.booleans()),
        st.builds(t.In, inner, several, st.booleans()),
        st.builds(t.Like, inner, inner, st.one_of(st.none(), st.just("!")), st.booleans()),
        st.builds(lambda a, b, c: t.Case(a, ((b, c),), None), st.one_of(st.none(), inner), inner, inner),
        st.builds(t.Cast, inner, types),
        st.builds(t.Subscript, inner, inner),
        st.builds(t.Dereference, inner, names),
        st.builds(t.Call, st.sampled_from(["F", "LEN"]), several),
        st.builds(lambda name, body: t.Call("F", (t.Lambda((name,), body),)), names, inner),
        st.builds(t.ArrayOf, several),
        st.builds(lambda a, b: t.MapOf(((a, b),)), inner, inner),
        st.builds(lambda name, a: t.StructOf(((name, a),)), names, inner),
        st.builds(t.AtTimeZone, inner, st.just("UTC")),
    )


@given(st.recursive(leaves, inside, max_leaves=12))
def test_every_expression_written_back_reads_as_itself(written: t.Expr) -> None:
    assert parse_expression(text_of(written)) == written


@given(types)
def test_every_type_written_back_reads_as_itself(written: t.TypeName) -> None:
    assert parse_type(text_of(written)) == written


@given(st.text("SELECT FROM s(),.;'`\"->[]=${}1.eE-+*/\n\té", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse(text)
    except SqlError as error:
        assert error.code == BAD_STATEMENT


@pytest.mark.parametrize("repeated", ["/* ", "${", "${a", "'\\", "$", '"', "`", "--", "-- \n", "'a' /* ", "1.", "(a,"])
def test_reading_takes_ten_times_as_long_for_ten_times_the_text(repeated: str) -> None:
    def taken(times: int) -> float:
        text = "SELECT 1 " + repeated * times
        gc.disable()  # whoever else has many objects in this process is not measured
        try:
            return min(once(text) for _ in range(3))
        finally:
            gc.enable()

    def once(text: str) -> float:
        begun = time.thread_time()
        substituted_or_not(text)
        return time.thread_time() - begun

    assert taken(20_000) < 50 * taken(2_000) + 0.01  # a hundred, if each looked at all that follows


def substituted_or_not(text: str) -> None:
    with suppress(SqlError):
        parse(substituted(text, {}))


def test_a_comment_that_does_not_end_is_told_with_its_place_and_takes_what_follows() -> None:
    assert [each.text for each in pieces("SELECT 1; SELECT /* 2; SELECT 3")] == ["SELECT 1", "SELECT /* 2; SELECT 3"]
    with pytest.raises(SqlError, match="line 1:18: a comment begins here"):
        parse("SHOW TOPICS; SHOW/* TOPICS; SHOW TOPICS")


def test_variables_do_not_make_more_text_than_is_read() -> None:
    ten = {"A": "x" * 100_000}
    with pytest.raises(SqlError, match="with its variables the text has more than the 4,194,304 characters"):
        substituted("${a}" * 50, ten)
    doubling = "DEFINE a = 'xxxxxxxxxx';" + "DEFINE a = '${a}${a}';" * 30
    session = Session()
    with pytest.raises(SqlError, match="with its variables the text has more"):
        for statement, _ in session.statements(doubling):
            session.set(statement)
    assert len(session.variables["A"]) < 4 << 20
    assert session.longest("${a}${b}") >= 2 * len(session.variables["A"])
    told = "DEFINE a = '" + "x" * 100_000 + "';" + "SHOW /* ${a} */ TOPICS;" * 50
    seen = 0
    with pytest.raises(SqlError, match="with its variables the text has more"):
        for statement, own in session.statements(told):
            session.set(statement)
            seen += len(own)
    assert seen < 4 << 20


def test_an_expression_has_a_height_that_everything_can_climb() -> None:
    def tall(times: int) -> str:
        text = "v"
        for _ in range(times):
            text = f"({text}{'+1' * 90})"
        return text

    statement = f"SELECT {tall(2)}, {tall(2)} FROM s;"
    (read,) = parse(statement)
    assert hash(read) == hash(parse(statement)[0])
    assert text_of(read).count("1") == repr(read).count("value=1") == 360
    with pytest.raises(SqlError, match="more than 200 operators on top of each other") as refused:
        parse(f"SELECT {tall(3)} FROM s;")
    assert (refused.value.code, refused.value.line) == (BAD_STATEMENT, 1)
    for repeated in ("ABS(", "-", "NOT ", "a[", "CASE WHEN ", "CAST(", "x => ", "ARRAY[", "(1 + "):
        with pytest.raises(SqlError):
            parse(f"SELECT {repeated * 100_000} FROM s;")
