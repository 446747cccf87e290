"""Parts of the SQL server that need no cluster: properties, order of history, guessed formats, keys asked for."""

import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from ottla.model.ids import TopicPartition
from ottla.model.properties import SettingsError
from ottla.protocol.records import Record
from ottla.registry.in_memory import MemoryRegistry
from ottla.serdes.base import Where, placed
from ottla.serdes.types import BINARY, DATE, INT, TIME, TIMESTAMP, array_of, decimal_of, map_of, struct_of
from ottla.sql import tree as t
from ottla.sql.api.bodies import variables
from ottla.sql.errors import SqlError
from ottla.sql.formats import serde as format_serde
from ottla.sql.formats.format import Format
from ottla.sql.lexer import substituted
from ottla.sql.model import DataSource
from ottla.sql.parser import parse
from ottla.sql.plain import TEXTS, json_text, shown
from ottla.sql.properties import Effective, check_all, is_known, of_application
from ottla.sql.server import asked
from ottla.sql.server.merging import Merging, Placed
from ottla.sql.server.prepared import Prepared, PreparedQueries
from ottla.sql.server.printing import Printing
from ottla.sql.server.results import Driven, understood
from ottla.sql.session import Session
from ottla.sql.settings import SqlSettings

S, T = TopicPartition("stream", 0), TopicPartition("table", 0)


def at(time: int, offset: int = 0) -> Record:
    return Record(offset, time, None, None)


# ---- rows


def test_dates_and_times_are_texts_in_rows_of_clients_also_inside() -> None:
    kind = struct_of({"day": DATE, "at": array_of(TIMESTAMP), "clocks": map_of(TIME), "raw": BINARY, "n": INT})
    value = {
        "day": date(2026, 11, 18),
        "at": [datetime(2026, 11, 18, 5, 10, tzinfo=UTC), None],
        "clocks": {"a": time(5, 10), "b": time(5, 10, 3), "c": time(5, 10, 3, 120_000)},
        "raw": b"hi",
        "n": 7,
    }
    assert shown(value, kind, TEXTS) == {
        "day": "2026-11-18",
        "at": ["2026-11-18T05:10:00.000", None],
        "clocks": {"a": "05:10", "b": "05:10:03", "c": "05:10:03.120"},
        "raw": "aGk=",
        "n": 7,
    }


def test_each_change_of_an_aggregate_is_a_row_with_the_true_place_of_its_record() -> None:
    session = Session()
    create = "CREATE STREAM s (v STRING, n INT) WITH (kafka_topic='stream', value_format='JSON');"
    for statement, text in session.statements(create):
        session.change(statement, text, {})
    (asked_for,) = parse(
        "SELECT v, COUNT(*) AS c, MAX(ROWPARTITION) AS p, MAX(ROWOFFSET) AS o FROM s GROUP BY v EMIT CHANGES;"
    )
    assert isinstance(asked_for, t.SelectQuery)
    driven = Driven(understood(asked_for.query, session.catalog.vocabulary()), None, most_rows=10)
    place = TopicPartition("stream", 3)
    poison = Record(41, 1, None, b"{")
    records = [Placed(place, Record(40 + each, each, None, b'{"V":"a","N":1}')) for each in (0, 2)]
    assert driven.rows([records[0], Placed(place, poison), records[1]], now=5) == [["a", 1, 3, 40], ["a", 2, 3, 42]]
    assert driven.unread == 1


def test_state_and_rows_that_grow_with_each_record_have_a_limit_in_bytes() -> None:
    session = Session()
    create = "CREATE STREAM s (v STRING, n INT) WITH (kafka_topic='stream', value_format='JSON');"
    for statement, text in session.statements(create):
        session.change(statement, text, {})
    (asked_for,) = parse("SELECT n, COLLECT_LIST(v) AS c FROM s GROUP BY n EMIT CHANGES;")
    assert isinstance(asked_for, t.SelectQuery)

    def driven(most_bytes: int) -> Driven:
        return Driven(understood(asked_for.query, session.catalog.vocabulary()), None, 1_000, most_bytes)

    def record(each: int, group: int) -> Placed:
        return Placed(S, Record(each, each, None, b'{"V":"%s","N":%d}' % (b"x" * 10_000, group)))

    records = [record(each, 1) for each in range(100)]
    with pytest.raises(SqlError, match="the rows of this query have more than 2,000,000 bytes"):
        driven(2_000_000).rows(records, now=5)
    fine = driven(2_000_000)
    with pytest.raises(SqlError, match=r"the state of this query has more than 2,000,000 bytes.*sql.push.state.max"):
        for each in range(300):
            fine.rows([record(each, each)], now=5)
    assert 190 < each < 230


@pytest.mark.parametrize(
    ("expression", "quick"),
    [
        ("n + 1", True),
        ("TRANSFORM(ARRAY[n], x => x + 1)", False),
        ("ARRAY_LENGTH(GENERATE_SERIES(1, n))", False),
    ],
)
def test_what_may_take_its_time_for_one_record_is_not_computed_on_the_loop(expression: str, quick: bool) -> None:
    session = Session()
    create = "CREATE STREAM s (v STRING, n INT) WITH (kafka_topic='stream', value_format='JSON');"
    for statement, text in session.statements(create):
        session.change(statement, text, {})
    for query in (f"SELECT {expression} AS x FROM s;", f"SELECT n FROM s WHERE ({expression}) IS NULL;"):
        (asked_for,) = parse(query)
        assert isinstance(asked_for, t.SelectQuery)
        assert understood(asked_for.query, session.catalog.vocabulary()).is_quick is quick


# ---- properties


def test_variables_of_a_request_are_found_in_any_case() -> None:
    assert substituted("SELECT ${topic} ${N}", variables({"Topic": "orders", "n": 1})) == "SELECT orders 1"


def test_what_an_application_is_told_of_properties() -> None:
    given = {
        "ksql.streams.auto.offset.reset": "latest",
        "commit.interval.ms": "100",
        "cache.max.bytes.buffering": "0",
        "ksql.persistence.default.format.value": "JSON",
        "consumer.max.poll.records": "5",
        "topic.retention.ms": "1000",
        "processing.guarantee": "exactly_once_v2",
        "ksql.fail.on.deserialization.error": "true",
    }
    check_all(given)
    assert of_application(given) == {
        "deserialization.exception.handler": "fail",
        "auto.offset.reset": "latest",
        "commit.interval.ms": "100",
        "statestore.cache.max.bytes": "0",
        "topic.retention.ms": "1000",
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"state.dir": "/"}, "the server's to say"),
        ({"spark.driver.memory": "1g"}, "the server's to say"),
        ({"comit.interval.ms": "1"}, "do you mean commit.interval.ms?"),
        ({"commit.interval.ms": "soon"}, "commit.interval.ms"),
        ({"ksql.persistence.wrap.single.values": "perhaps"}, "ksql.persistence.wrap.single.values"),
        ({"auto.offset.reset": "x" * 5_000}, "4096"),
        ({f"topic.a{each}": "1" for each in range(300)}, "300 properties"),
    ],
)
def test_properties_that_no_statement_may_have(given: dict[str, str], words: str) -> None:
    with pytest.raises(SqlError, match=words.replace("?", r"\?")):
        check_all(given)


def test_a_statements_own_properties_go_before_the_servers() -> None:
    defaults = {"ksql.streams.auto.offset.reset": "earliest"}
    assert Effective.of(defaults, {}).from_beginning
    assert not Effective.of(defaults, {"auto.offset.reset": "latest"}).from_beginning
    assert Effective.of({}, {})["ksql.query.pull.table.scan.enabled"] is True
    assert not is_known("topic.")


def test_settings_have_a_clients_security_under_both_names() -> None:
    found = SqlSettings.of({"security.protocol": "SASL_SSL", "sql.sasl.mechanism": "PLAIN", "ksql.service.id": "a"})
    assert found.client == {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    assert found["ksql.service.id"] == "a"
    with pytest.raises(SettingsError, match=r"sql\.view\.max\.row is no setting; do you mean sql\.view\.max\.rows"):
        SqlSettings.of({"sql.view.max.row": "5"})
    with pytest.raises(SettingsError, match=r"auto\.offset\.reset"):
        SqlSettings.of({"ksql.streams.auto.offset.reset": "sometimes"})


# ---- the order of history


@pytest.mark.parametrize("url", ["worker:8083", "http://a:99999", "http://al@a:8083", "http://a:8083/connect"])
def test_an_address_of_a_worker_that_would_not_do_is_refused_at_the_start(url: str) -> None:
    assert SqlSettings.of({"ksql.connect.url": "https://a:8083/"})["ksql.connect.url"] == "https://a:8083/"
    with pytest.raises(SettingsError, match="http://HOST:PORT or https://HOST:PORT is expected"):
        SqlSettings.of({"ksql.connect.url": url})


def test_history_goes_by_time_and_tables_first() -> None:
    merging = Merging({S: 3, T: 2}, ["table"])
    merging.add(S, [at(10), at(20), at(30)])
    merging.reached(S, 3)
    assert list(merging.take()) == []  # the table may still have something older
    merging.add(T, [at(5), at(20)])
    merging.reached(T, 2)
    assert [(placed.place, placed.record.timestamp) for placed in merging.take()] == [
        (T, 5),
        (S, 10),
        (T, 20),
        (S, 20),
        (S, 30),
    ]
    assert not merging.is_history
    merging.add(S, [at(1)])
    assert list(merging.take()) == [Placed(S, at(1))]


def test_what_waits_for_others_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.sql.server.merging.MOST_HELD", 2)
    merging = Merging({S: 9, T: 9})
    merging.add(S, [at(1), at(2), at(3)])
    assert [placed.record.timestamp for placed in merging.take()] == [1]


# ---- PRINT


def printed(
    *pairs: tuple[bytes | None, bytes | None],
    interval: int = 1,
    limit: int | None = None,
    registry: MemoryRegistry | None = None,
) -> list[str]:
    records = [Record(each, 0, key, value) for each, (key, value) in enumerate(pairs)]
    return Printing(registry, interval, limit).lines(0, records)


def line(key: str, value: str) -> str:
    return f"rowtime: 1970/01/01 00:00:00.000 Z, key: {key}, value: {value}, partition: 0"


def test_formats_are_guessed_from_all_records_so_far() -> None:
    assert printed((b"1234", b'{"A": 10}'), (b"\x00\x00\x00\x07", b"plain")) == [
        "Key format: KAFKA_INT or KAFKA_STRING",
        "Value format: JSON or KAFKA_STRING",
        line("825373492", '{"A": 10}'),
        "Key format: KAFKA_INT",
        "Value format: KAFKA_STRING",
        line("7", "plain"),
    ]


def test_what_json_has_no_word_for_is_shown_as_text() -> None:
    registry = MemoryRegistry()
    columns = (("B", BINARY), ("D", DATE), ("N", decimal_of(4, 2)))
    serde = placed(format_serde(Format("AVRO"), columns, "value", registry), Where("t"))
    value = serde.serialize({"B": b"hi", "D": date(2026, 1, 2), "N": Decimal("1.50")})
    told = printed((None, value), registry=registry)[-1]
    assert told == line("<null>", '{"B": "aGk=", "D": "2026-01-02", "N": "1.50"}')


def test_windows_of_keys_are_told() -> None:
    start = struct.pack(">q", 1_600_000_000_000)
    assert printed((b"ann" + start, None)) == [
        "Key format: HOPPING(KAFKA_STRING) or TUMBLING(KAFKA_STRING)",
        "Value format: ¯\\_(ツ)_/¯ - no data processed",
        line("[ann@1600000000000/-]", "<null>"),
    ]
    session = struct.pack(">qq", 1_600_000_000_500, 1_600_000_000_000)
    assert printed((b"ann" + session, b"x"))[2] == line("[ann@1600000000000/1600000000500]", "x")


def test_bytes_that_are_nothing_are_shown_as_such() -> None:
    assert printed((None, b"\xff\x00\x01")) == [
        "Key format: ¯\\_(ツ)_/¯ - no data processed",
        "Value format: UNRECOGNISED_BYTES",
        line("<null>", "[ff 00 01]"),
    ]


def test_every_so_many_and_not_more_than_the_limit() -> None:
    lines = printed(*((None, b"%d" % each) for each in range(10)), interval=3, limit=2)
    assert [each.split("value: ")[1] for each in lines if each.startswith("rowtime")] == [
        "0, partition: 0",
        "3, partition: 0",
    ]


# ---- which keys are asked for


def table(columns: str, more: str = "") -> Session:
    session = Session()
    create = f"CREATE TABLE T ({columns}, V STRING) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON'{more});"
    for statement, text in session.statements(create):
        session.change(statement, text, {})
    return session


def select(text: str) -> t.Query:
    (statement,) = parse(text)
    assert isinstance(statement, t.SelectQuery)
    return statement.query


def asked_keys(columns: str, where: str, more: str = "") -> asked.Asked | None:
    source: DataSource = table(columns, more).catalog.sources["T"]
    return asked.keys(select(f"SELECT * FROM T WHERE {where};"), source, None)


def keys(columns: str, where: str, more: str = "") -> list[bytes] | None:
    found = asked_keys(columns, where, more)
    return None if found is None else found.keys


@pytest.mark.parametrize(
    ("columns", "where", "found"),
    [
        ("A INT PRIMARY KEY", "A = 1", [b"\0\0\0\1"]),
        ("A INT PRIMARY KEY", "1 = A AND V LIKE 'x%'", [b"\0\0\0\1"]),
        ("A STRING PRIMARY KEY", "A IN ('b', 'a', 'b')", [b"b", b"a"]),
        ("A STRING PRIMARY KEY", "A = 'a' OR V = 'x'", None),
        ("A STRING PRIMARY KEY", "A NOT IN ('a')", None),
        ("A STRING PRIMARY KEY", "A = V", None),
        ("A STRING PRIMARY KEY", "A > 'a'", None),
        ("A BIGINT PRIMARY KEY", "A = 1.0", None),
        ("A INT PRIMARY KEY", "T.A = 1", [b"\0\0\0\1"]),
        ("A INT PRIMARY KEY", "U.A = 1", None),
        ("A INT PRIMARY KEY", "A = 3000000000", None),
    ],
)
def test_keys_that_a_condition_asks_for(columns: str, where: str, found: list[bytes] | None) -> None:
    assert keys(columns, where) == found


def test_all_columns_of_a_key_have_to_be_said() -> None:
    both = "A STRING PRIMARY KEY, B INT PRIMARY KEY"
    assert keys(both, "A = 'x'", ", KEY_FORMAT='JSON'") is None
    assert keys(both, "B IN (1, 2) AND A = 'x'", ", KEY_FORMAT='JSON'") == [b'{"A":"x","B":1}', b'{"A":"x","B":2}']


def test_a_window_stands_behind_the_key_that_is_asked_for() -> None:
    assert keys("A STRING PRIMARY KEY", "A = 'x' AND WINDOWSTART > 5", ", WINDOW_TYPE='SESSION'") == [b"x"]


@pytest.mark.parametrize(
    ("where", "rest"),
    [
        ("A = 'x'", None),
        ("V = 'v' AND A = 'x'", "V = 'v'"),
        ("A = 'x' AND A = 'y' AND V > 'v'", "A = 'y' AND V > 'v'"),
    ],
)
def test_what_is_left_of_a_condition_when_its_keys_are_known(where: str, rest: str | None) -> None:
    found = asked_keys("A STRING PRIMARY KEY", where)
    assert found is not None
    assert found.rest == (None if rest is None else select(f"SELECT * FROM T WHERE {rest};").where)


# ---- queries that were understood before


def prepared(session: Session, query: t.Query) -> Prepared:
    return Prepared(understood(query, session.catalog.vocabulary()))


def test_the_same_query_is_understood_once_wherever_it_stands_in_the_text() -> None:
    session = table("A STRING PRIMARY KEY")
    known, query = PreparedQueries(session.catalog), select("SELECT * FROM T;")
    assert known.get(query) is None
    made = prepared(session, query)
    known.keep(query, made)
    assert known.get(select("  select *\n from t;")) is made


def test_numbers_that_are_equal_make_different_queries() -> None:
    session = table("A STRING PRIMARY KEY")
    known, query = PreparedQueries(session.catalog), select("SELECT A, 1 AS B FROM T;")
    assert known.get(query) is None
    known.keep(query, prepared(session, query))
    assert [known.get(select(f"SELECT A, {each} AS B FROM T;")) for each in ("TRUE", "1.0", "1E0")] == [None] * 3


def test_a_change_of_the_catalog_forgets_all_queries() -> None:
    session = table("A STRING PRIMARY KEY")
    known, query = PreparedQueries(session.catalog), select("SELECT * FROM T;")
    assert known.get(query) is None
    known.keep(query, prepared(session, query))
    for statement, text in session.statements("ALTER TABLE T ADD W INT;"):
        session.change(statement, text, {})
    assert known.get(query) is None


def test_what_json_has_no_number_for_is_a_text() -> None:
    given = [float("nan"), float("inf"), -float("inf"), 1.5, Decimal("2.50"), None]
    assert json_text(given) == '["NaN","Infinity","-Infinity",1.5,2.50,null]'
