"""The SQL server as its clients see it: statements, rows, pushes, and what comes back after a restart."""

import asyncio
import base64
import gc
import json
import re
import shutil
import socket
import subprocess
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlencode, urlsplit

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded

from ottla.sql.catalog import PersistentQuery
from ottla.sql.errors import SqlError
from ottla.sql.server.log import Logged
from ottla.sql.server.replaying import QueryFailure
from ottla.sql.server.selecting import TOO_MANY_PUSH_QUERIES
from tests.support.clients.foreign import python_program
from tests.support.patience import eventually
from tests.support.sql_servers import SqlServer, unique


class Recorded:
    """Who would run queries that write topics, and tells what was asked of it."""

    def __init__(self) -> None:
        self.started: dict[str, Mapping[str, str]] = {}
        self.lacks: str | None = None

    def missing(self) -> str | None:
        return self.lacks

    def start(self, query: PersistentQuery, _: list[tuple[int, Logged]], properties: Mapping[str, str]) -> None:
        self.started[query.id] = dict(properties)

    def stop(self, query_id: str) -> None:
        self.started.pop(query_id, None)

    def end(self, query_id: str, others: Sequence[str]) -> None:
        assert query_id not in others
        self.stop(query_id)

    def states(self) -> Mapping[str, str]:
        return dict.fromkeys(self.started, "RUNNING")

    def failure(self, query_id: str) -> QueryFailure | None:
        return QueryFailure(1, "no room") if query_id in self.started else None

    def progress(self, query_id: str) -> Mapping[str, Any]:
        left_out = {"deserialization-error": 2, "late": 0}
        return {"queries": [{"query": "0", "read": 5, "written": 3, "dropped": 2, "dropped-by-reason": left_out}]}


@pytest.fixture(scope="module")
def server(bootstrap: str) -> Iterator[SqlServer]:
    with SqlServer(bootstrap, {"ksql.service.id": unique("sql")}) as running:
        yield running


@pytest.fixture
def orders(server: SqlServer) -> str:
    """A stream of its own for a test."""
    name = unique("ORDERS").upper().replace("-", "_")
    server.ksql(
        f"CREATE STREAM {name} (ID INT KEY, ITEM STRING, PRICE DECIMAL(6, 2)) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=2, VALUE_FORMAT='JSON');"
    )
    return name


def fill(server: SqlServer, name: str, *rows: str) -> None:
    for row in rows:
        assert server.ksql(f"INSERT INTO {name} VALUES ({row});") == []


def test_info_and_health_have_ksqldbs_shape(server: SqlServer) -> None:
    status, info = server.ask("GET", "/info")
    assert status == 200
    assert set(info["KsqlServerInfo"]) == {"version", "kafkaClusterId", "ksqlServiceId", "serverStatus"}
    status, health = server.ask("GET", "/healthcheck")
    assert (status, health["isHealthy"], health["details"]["commandRunner"]) == (200, True, {"isHealthy": True})
    assert server.ask("GET", "/chc/ready")[0] == 200


def test_a_statement_tells_how_it_went(server: SqlServer, orders: str) -> None:
    (listed,) = server.ksql("SHOW STREAMS;")
    assert listed["@type"] == "streams"
    (mine,) = [each for each in listed["streams"] if each["name"] == orders]
    assert mine == {
        "type": "STREAM",
        "name": orders,
        "topic": orders,
        "keyFormat": "KAFKA",
        "valueFormat": "JSON",
        "isWindowed": False,
    }
    status, told = server.ask("GET", f"/status/stream/{orders}/create")
    assert (status, told["status"]) == (200, "SUCCESS")
    (again,) = server.ksql(f"CREATE STREAM IF NOT EXISTS {orders} (A INT) WITH (KAFKA_TOPIC='x', VALUE_FORMAT='JSON');")
    assert again["commandStatus"]["message"] == "Stream already there"


def test_a_request_has_so_many_statements_and_none_of_more_is_done(bootstrap: str) -> None:
    settings = {"ksql.service.id": unique("sql"), "sql.request.max.statements": "2"}
    with SqlServer(bootstrap, settings) as server:
        status, told = server.ask("POST", "/ksql", {"ksql": "CREATE TYPE a AS INT; SHOW TYPES; SHOW TYPES;"})
        assert (status, told["error_code"]) == (400, 40000)
        assert told["message"].startswith("more than 2 statements in one request (sql.request.max.statements)")
        assert server.ksql("SHOW TYPES; ;;")[0]["types"] == {}
        status, told = server.ask("POST", "/query-stream", {"sql": "SELECT 1 FROM a; SELECT 1 FROM a; SHOW TYPES;"})
        assert (status, told["error_code"]) == (400, 40000)


def test_functions_in_python_are_switched_off_by_the_server_alone(bootstrap: str) -> None:
    code = "CREATE FUNCTION f (s STRING) RETURNS STRING LANGUAGE PYTHON AS 'def f(s): return s';"
    service = {"ksql.service.id": unique("sql")}
    with SqlServer(bootstrap, service) as server:
        server.ksql(code)
    name = "ksql.functions.python.enabled"
    with SqlServer(bootstrap, {**service, name: "false"}) as server:
        status, told = server.ask("POST", "/ksql", {"ksql": code.replace("f (", "g (").replace("def f", "def g")})
        assert (status, told["error_code"]) == (400, 40001)
        assert told["message"] == f"line 1:1: functions in Python are switched off here ({name}=false)"
        for statement in (f"SET '{name}'='true';", f"ALTER SYSTEM '{name}'='true';"):
            status, told = server.ask("POST", "/ksql", {"ksql": statement + code})
            assert (status, told["message"]) == (400, f"line 1:1: {name} is the server's to say, not a statement's")
        status, told = server.ask("POST", "/ksql", {"ksql": code, "streamsProperties": {name: True}})
        assert (status, told["message"]) == (400, f"{name} is the server's to say, not a statement's")
        (found,) = server.ksql("DROP FUNCTION f;")
        assert found["commandStatus"]["message"] == "Function F dropped"


def test_a_source_is_described(server: SqlServer, orders: str) -> None:
    (found,) = server.ksql(f"DESCRIBE {orders};")
    fields = found["sourceDescription"]["fields"]
    assert [(each["name"], each["schema"]["type"], each.get("type")) for each in fields] == [
        ("ID", "INTEGER", "KEY"),
        ("ITEM", "STRING", None),
        ("PRICE", "DECIMAL", None),
    ]
    (functions,) = server.ksql("SHOW FUNCTIONS;")
    assert len([each for each in functions["functions"] if not each["name"].startswith("F_")]) == 149
    (about,) = server.ksql("DESCRIBE FUNCTION SUBSTRING;")
    assert about["type"] == "SCALAR"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("SELEC 1;", 40001, "line 1:1"),
        ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='nowhere', VALUE_FORMAT='JSON');", 40001, "PARTITIONS"),
        (
            "SHOW TYPES;\n  CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='nowhere', VALUE_FORMAT='JSON');",
            40001,
            "line 2:3: ",
        ),
        ("SHOW TYPES; SET 'auto.offset.reset'='sometime';", 40001, "line 1:13: "),
        ("SHOW TYPES; RUN SCRIPT 'x';", 40001, "line 1:13: "),
        ("EXPLAIN CSAS_NOTHING_1;", 40001, "line 1:1: "),
        ("ASSERT STREAM X (A INT) WITH (KAFKA_TOPIC='x');", 40001, "line 1:1: "),
        ("SELECT 1 FROM NOTHING EMIT CHANGES;", 40002, "/query-stream"),
        ("DROP STREAM NOTHING;", 40001, "there is no stream or table NOTHING"),
        ("DESCRIBE FUNCTION NOTHING;", 40001, "line 1:19: there is no function NOTHING"),
        ("DESCRIBE FUNCTION SUBSTRNG;", 40001, "do you mean SUBSTRING?"),
        ("ASSERT TOPIC nothing TIMEOUT 1 MILLISECOND;", 41700, "not exist"),
    ],
)
def test_what_is_wrong_is_said_with_its_code(server: SqlServer, text: str, code: int, words: str) -> None:
    status, answer = server.ask("POST", "/ksql", {"ksql": text})
    assert (status, answer["error_code"]) == (code // 100, code)
    assert words in answer["message"]
    assert answer["stackTrace"] == []


def test_what_is_no_select_is_told_where_rows_are_expected(server: SqlServer) -> None:
    for text, place in (("SET 'auto.offset.reset'='latest'; SHOW TYPES;", "line 1:35: "), ("", "one SELECT")):
        status, answer = server.ask("POST", "/query-stream", {"sql": text})
        assert (status, answer["error_code"]) == (400, 40001)
        assert answer["message"].startswith(place)


def test_statements_before_a_wrong_one_are_done(server: SqlServer) -> None:
    status, answer = server.ask("POST", "/ksql", {"ksql": "SHOW TYPES; CREATE NONSENSE;"})
    assert status == 400
    assert [each["@type"] for each in answer["entities"]] == ["type_list"]


def test_rows_that_were_inserted_are_pulled(server: SqlServer, orders: str) -> None:
    fill(server, orders, "1, 'tea', 2.50", "2, 'milk', 1.00", "3, NULL, 9.99")
    head, *rows = server.select(f"SELECT ID, UCASE(ITEM) AS ITEM, PRICE * 2 AS TWICE FROM {orders} WHERE PRICE > 1.00;")
    assert head["columnNames"] == ["ID", "ITEM", "TWICE"]
    assert head["columnTypes"] == ["INTEGER", "STRING", "DECIMAL(17, 2)"]
    assert sorted(rows, key=str) == [[1, "TEA", 5.0], [3, None, 19.98]]


def test_a_push_query_sends_rows_until_its_limit(server: SqlServer, orders: str) -> None:
    fill(server, orders, "1, 'tea', 2.50")
    sql = f"SELECT ID, ROWPARTITION >= 0 AS THERE FROM {orders} EMIT CHANGES LIMIT 2;"
    with server.following(sql, auto_offset_reset="earliest") as lines:
        head = next(lines)
        assert head["queryId"].startswith("transient_")
        assert next(lines) == [1, True]
        fill(server, orders, "2, 'milk', 1.00")
        assert next(lines) == [2, True]
        assert list(lines) == []


def test_a_push_query_is_closed_by_its_id(server: SqlServer, orders: str) -> None:
    with server.following(f"SELECT * FROM {orders} EMIT CHANGES;") as lines:
        query = next(lines)["queryId"]
        assert server.ask("POST", "/close-query", {"queryId": query})[0] == 200
        assert list(lines) == []
    status, answer = server.ask("POST", "/close-query", {"queryId": query})
    assert (status, answer["error_code"]) == (400, 40000)


def test_a_push_query_that_keeps_state_counts(server: SqlServer, orders: str) -> None:
    fill(server, orders, "1, 'tea', 2.50", "1, 'tea', 2.50")
    sql = f"SELECT ITEM, COUNT(*) AS N, SUM(PRICE) AS TOTAL FROM {orders} GROUP BY ITEM EMIT CHANGES LIMIT 2;"
    with server.following(sql, auto_offset_reset="earliest") as lines:
        assert next(lines)["columnNames"] == ["ITEM", "N", "TOTAL"]
        assert list(lines) == [["tea", 1, 2.5], ["tea", 2, 5.0]]


def test_a_push_query_that_fails_says_so_in_its_last_line(server: SqlServer, orders: str) -> None:
    fill(server, orders, "1, 'tea', 9999.99", "1, 'tea', 9999.99")
    sql = f"SELECT ITEM, SUM(PRICE) AS TOTAL FROM {orders} GROUP BY ITEM EMIT CHANGES;"
    with server.following(sql, auto_offset_reset="earliest") as lines:
        next(lines)
        *_, end = lines
    assert (end["@type"], end["error_code"]) == ("generic_error", 50000)
    assert "has more digits than decimal(6, 2) has room for" in end["message"]
    told = {"ksql": sql, "streamsProperties": {"auto.offset.reset": "earliest"}}
    status, answer = server.ask("POST", "/query", told)
    assert (status, answer[-1]["errorMessage"]["error_code"]) == (200, 50000)
    assert sql not in str(server.ksql("SHOW QUERIES;"))


def test_a_pull_query_does_not_wait_longer_for_its_table_than_it_may_take(bootstrap: str) -> None:
    name = unique("SLOW").upper()
    with SqlServer(bootstrap, {"ksql.service.id": unique("sql"), "sql.pull.timeout.ms": "1"}) as server:
        server.ksql(
            f"CREATE TABLE {name} (ID INT PRIMARY KEY, A INT) WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, "
            "VALUE_FORMAT='JSON');"
        )
        _, end = server.select(f"SELECT * FROM {name};")
    assert end["error_code"] == 50000
    assert end["message"].startswith(f"{name} is still being read after 0.001 s (sql.pull.timeout.ms)")


def test_the_old_query_answers_with_one_array(server: SqlServer, orders: str) -> None:
    fill(server, orders, "1, 'tea', 2.50")
    status, answer = server.ask("POST", "/query", {"ksql": f"SELECT ID FROM {orders};"})
    assert status == 200
    head, row, end = answer
    assert head["header"]["schema"] == "`ID` INTEGER KEY"
    assert (row, end) == ({"row": {"columns": [1]}}, {"finalMessage": "Query Completed"})


def test_the_newest_row_of_each_key_of_a_table_is_pulled(server: SqlServer) -> None:
    name = unique("USERS").upper().replace("-", "_")
    server.ksql(
        f"CREATE TABLE {name} (ID BIGINT PRIMARY KEY, NAME STRING) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=3, VALUE_FORMAT='JSON');"
    )
    fill(server, name, "1, 'Ann'", "2, 'Bob'", "1, 'Anne'")
    assert server.select(f"SELECT NAME FROM {name} WHERE ID = 1;")[1:] == [["Anne"]]
    assert sorted(server.select(f"SELECT * FROM {name};")[1:]) == [[1, "Anne"], [2, "Bob"]]
    assert sorted(server.select(f"SELECT ID FROM {name} WHERE ID IN (1, 2, 9);")[1:]) == [[1], [2]]
    assert server.select(f"SELECT ID FROM {name} WHERE NAME LIKE 'B%';")[1:] == [[2]]
    fill(server, name, "2, 'Bo'")
    assert server.select(f"SELECT NAME FROM {name} WHERE ID = 2;")[1:] == [["Bo"]]


def test_rows_of_partitions_that_come_later_are_pulled(server: SqlServer, bootstrap: str) -> None:
    name = unique("GROWING").upper().replace("-", "_")
    server.ksql(
        f"CREATE TABLE {name} (ID STRING PRIMARY KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )
    fill(server, name, "'a', 1")
    assert server.select(f"SELECT * FROM {name};")[1:] == [["a", 1]]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(name, 2)])[name].result(60)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(name, b'{"N":2}', b"b", partition=1)
    assert producer.flush(60) == 0
    eventually(lambda: server.select(f"SELECT N FROM {name} WHERE ID = 'b';")[1:] == [[2]])
    assert sorted(server.select(f"SELECT * FROM {name};")[1:]) == [["a", 1], ["b", 2]]


def test_statements_are_back_after_a_restart(bootstrap: str) -> None:
    service = unique("sql")
    name = unique("KEPT").upper().replace("-", "_")
    create = (
        f"CREATE STREAM {name} (A INT) WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
        f"CREATE STREAM {name}_COPY AS SELECT A FROM {name};"
    )
    with SqlServer(bootstrap, {"ksql.service.id": service}) as first:
        made = first.ksql(create)
        assert made[1]["commandStatus"]["queryId"] == f"CSAS_{name}_COPY_1"
        first.ksql(f"INSERT INTO {name} VALUES (5);")
    with SqlServer(bootstrap, {"ksql.service.id": service}) as second:
        (queries,) = second.ksql("SHOW QUERIES;")
        assert [each["id"] for each in queries["queries"]] == [f"CSAS_{name}_COPY_1"]
        assert second.select(f"SELECT * FROM {name};")[1:] == [[5]]
        status, answer = second.ask("POST", "/ksql", {"ksql": f"DROP STREAM {name};"})
        assert status == 400
        assert f"CSAS_{name}_COPY_1" in answer["message"]
        second.ksql(f"TERMINATE CSAS_{name}_COPY_1; DROP STREAM {name}_COPY DELETE TOPIC; DROP STREAM {name};")
        (listed,) = second.ksql("LIST STREAMS;")
        assert [each["name"] for each in listed["streams"]] == ["KSQL_PROCESSING_LOG"]


def test_two_servers_of_one_service_have_one_catalog(bootstrap: str) -> None:
    settings = {"ksql.service.id": unique("sql")}
    with SqlServer(bootstrap, settings) as first, SqlServer(bootstrap, settings) as second:
        name = unique("SHARED").upper().replace("-", "_")
        (made,) = first.ksql(
            f"CREATE STREAM {name} (A INT) WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
        )
        body = {"ksql": "SHOW STREAMS;", "commandSequenceNumber": made["commandSequenceNumber"]}
        _, (listed,) = second.ask("POST", "/ksql", body)
        assert [each["name"] for each in listed["streams"]] == ["KSQL_PROCESSING_LOG", name]


@pytest.mark.parametrize("accept", ["application/json", "application/vnd.ksql.v1+json"])
def test_query_stream_speaks_json_if_asked(server: SqlServer, orders: str, accept: str) -> None:
    fill(server, orders, "1, 'tea', 2.50")
    status, answer = server.ask("POST", "/query-stream", {"sql": f"SELECT ID FROM {orders};"}, {"accept": accept})
    assert status == 200
    first: Any = answer[0]
    assert ("header" in first) == (accept != "application/json")
    assert json.dumps(answer[1]) == ("[1]" if accept == "application/json" else '{"row": {"columns": [1]}}')


# ---- HTTP/2


def test_one_port_speaks_http_1_and_http_2(server: SqlServer) -> None:
    for version in ("--http1.1", "--http2", "--http2-prior-knowledge"):
        done = subprocess.run(
            ["curl", "-s", version, "-w", " %{http_version}", f"{server.url}/info"], capture_output=True, check=True
        )
        body, _, spoken = done.stdout.decode().rpartition(" ")
        assert "KsqlServerInfo" in json.loads(body)
        assert spoken == ("1.1" if version == "--http1.1" else "2")


HEAD = b"POST /ksql HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
SHOW = b'{"ksql":"SHOW TYPES;"}'
SIZED = b"Content-Length: %d\r\n\r\n%b" % (len(SHOW), SHOW)


def connected(server: SqlServer) -> socket.socket:
    return socket.create_connection((urlsplit(server.url).hostname, urlsplit(server.url).port), timeout=60)


def test_a_request_that_asks_for_http_2_is_answered_by_it(server: SqlServer) -> None:
    """RFC 7540, 3.2: its body comes in pieces before the first frame, and the answer is stream 1."""
    client = H2Connection()
    settings = client.initiate_upgrade_connection()
    assert settings is not None
    answer, status = b"", b""
    with connected(server) as wire:
        wire.sendall(HEAD + b"HTTP2-Settings: %b\r\nContent-Length: %d\r\n\r\n" % (settings, len(SHOW)) + SHOW[:5])
        switched, _, data = wire.recv(65536).partition(b"\r\n\r\n")
        assert switched.startswith(b"HTTP/1.1 101 ")
        wire.sendall(SHOW[5:] + client.data_to_send())
        while True:
            events = client.receive_data(data)
            for event in events:
                if isinstance(event, ResponseReceived):
                    status = dict(event.headers)[b":status"]
                if isinstance(event, DataReceived):
                    answer += event.data
            wire.sendall(client.data_to_send())
            if any(isinstance(event, StreamEnded) for event in events):
                break
            data = wire.recv(65536)
    assert (status, json.loads(answer)[0]["@type"]) == (b"200", "type_list")


@pytest.mark.parametrize(
    "words",
    [
        b"HTTP2-Settings: AAEAAEAA\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(SHOW), SHOW),
        SIZED,
        b"HTTP2-Settings: AAEAAEAA\r\nHTTP2-Settings: AAEAAEAA\r\n" + SIZED,
        b"HTTP2-Settings: !\r\n" + SIZED,
        b"HTTP2-Settings: AAEA\r\n" + SIZED,
        b"HTTP2-Settings: AAIAAAAH\r\n" + SIZED,
    ],
    ids=["of unknown length", "without settings", "with two", "no base64", "half a setting", "a wrong one"],
)
def test_a_wish_for_http_2_that_is_not_whole_is_answered_by_http_1(server: SqlServer, words: bytes) -> None:
    with connected(server) as wire:
        wire.sendall(HEAD + words)
        heard = b""
        while b'"type_list"' not in heard:
            more = wire.recv(65536)
            assert more, heard
            heard += more
    assert heard.startswith(b"HTTP/1.1 200 ")


def test_a_first_line_of_rows_that_is_too_deep_is_refused(server: SqlServer) -> None:
    stream = Http2(server, "/inserts-stream")
    stream.begin(b"[" * 15_000 + b"\n")
    assert stream.line()["error_code"] == 40000
    assert stream.status == 400
    stream.close()


class Http2:
    """One stream of a connection, by the library that clients are made of: writes and reads in turn."""

    def __init__(self, server: SqlServer, path: str) -> None:
        self._socket = socket.create_connection((urlsplit(server.url).hostname, urlsplit(server.url).port), timeout=60)
        self._h2 = H2Connection()
        self._h2.initiate_connection()
        self._h2.send_headers(
            1, [(":method", "POST"), (":path", path), (":scheme", "http"), (":authority", urlsplit(server.url).netloc)]
        )
        self._flush()
        self.status = 0
        self._data = b""
        self.ended = False

    def _flush(self) -> None:
        self._socket.sendall(self._h2.data_to_send())

    def begin(self, data: bytes) -> None:
        self._h2.send_data(1, data)
        self._flush()

    def write(self, *lines: Any, end: bool = False) -> None:
        body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        self._h2.send_data(1, body, end_stream=end)
        self._flush()

    def line(self) -> Any:
        """The next line; None at the end."""
        while b"\n" not in self._data and not self.ended:
            for event in self._h2.receive_data(self._socket.recv(65536)):
                match event:
                    case ResponseReceived():
                        self.status = int(dict(event.headers)[b":status"])
                    case DataReceived():
                        self._data += event.data
                        self._h2.acknowledge_received_data(event.flow_controlled_length, 1)
                    case StreamEnded():
                        self.ended = True
            self._flush()
        line, _, self._data = self._data.partition(b"\n")
        return json.loads(line) if line else None

    def close(self) -> None:
        self._socket.close()


def test_rows_are_acknowledged_while_the_stream_of_inserts_is_open(server: SqlServer, orders: str) -> None:
    stream = Http2(server, "/inserts-stream")
    stream.write({"target": orders})
    stream.write({"ID": 1, "ITEM": "tea", "PRICE": 2.5})
    assert stream.line() == {"status": "ok", "seq": 0}
    stream.write({"id": 2, "item": "milk"}, {"ID": 3})
    assert sorted(stream.line()["seq"] for _ in range(2)) == [1, 2]
    stream.write({"ID": "x"}, end=True)
    error = stream.line()
    assert (error["status"], error["seq"], error["error_code"]) == ("error", 3, 40000)
    assert stream.line() is None
    stream.close()
    rows = server.select(f"SELECT ID, ITEM, PRICE FROM {orders};")[1:]
    assert sorted(rows, key=str) == [[1, "tea", 2.5], [2, "milk", None], [3, None, None]]


def test_inserts_need_http_2_and_a_target(server: SqlServer) -> None:
    status, answer = server.ask("POST", "/inserts-stream", {"target": "X"})
    assert (status, answer["error_code"]) == (400, 40004)
    stream = Http2(server, "/inserts-stream")
    stream.write({"target": "NOTHING"}, end=True)
    assert stream.line()["error_code"] == 40001
    assert stream.status == 400
    stream.close()


def test_a_push_query_over_http_2_ends_with_its_client(server: SqlServer, orders: str) -> None:
    stream = Http2(server, "/query-stream")
    stream.write({"sql": f"SELECT ID FROM {orders} EMIT CHANGES;"}, end=True)
    query = stream.line()["queryId"]
    engine = server.service.engine
    assert engine is not None and query in engine.clients.running
    stream.close()
    eventually(lambda: query not in engine.clients.running)


# ---- clients of others


def test_the_client_ksqldb_runs_statements_inserts_and_reads(server: SqlServer, orders: str) -> None:
    from ksqldb import KSQLdbClient  # type: ignore[import-untyped]  # noqa: PLC0415

    client = KSQLdbClient(server.url)
    assert client.ksql("SHOW STREAMS;")[0]["@type"] == "streams"
    acknowledged = list(client.inserts_stream(orders, [{"ID": 1, "ITEM": "tea"}, {"ID": 2, "ITEM": "milk"}]))
    assert sorted(each["seq"] for each in acknowledged) == [0, 1]
    head, *rows = client.query_sync(f"SELECT ID, ITEM FROM {orders};")
    assert head["columnNames"] == ["ID", "ITEM"]
    assert sorted(rows) == [[1, "tea"], [2, "milk"]]

    async def pushed() -> list[Any]:
        properties = {"auto.offset.reset": "earliest"}
        query = f"SELECT ID FROM {orders} EMIT CHANGES LIMIT 2;"
        return [each async for each in client.query_async(query, stream_properties=properties)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # it leaves its connections to the garbage collector
        assert sorted(asyncio.run(pushed())[1:]) == [[1], [2]]
        gc.collect()


@pytest.mark.filterwarnings("ignore:.*telnetlib.*:DeprecationWarning")
@pytest.mark.parametrize("http2", [False, True])
def test_the_client_ksql_python_ng_reads_by_both_protocols(server: SqlServer, orders: str, http2: bool) -> None:
    from ksql import KSQLAPI  # type: ignore[import-untyped]  # noqa: PLC0415

    client = KSQLAPI(server.url)
    assert [each["status"] for each in client.inserts_stream(orders, [{"ID": 1, "ITEM": "tea"}])] == ["ok"]
    properties = {"auto.offset.reset": "earliest"}
    query = f"select ID, ITEM from {orders} emit changes limit 1"
    found = "".join(client.query(query, stream_properties=properties, use_http2=http2))
    assert '[1,"tea"]' in found


def test_the_client_ksql_does_what_it_does_with_ksqldb(bootstrap: str) -> None:
    """Its HTTP/2 begins as HTTP/1.1 that asks for more, and rows that do not come are blank lines to it."""
    name = unique("KSQL").upper()
    with SqlServer(bootstrap, {"ksql.service.id": unique("sql")}, Recorded()) as server:
        command = [*python_program("ksql", "sql_python"), server.url, name]
        done = subprocess.run(command, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stdout)
    assert "ksql.functions.collect_list.limit" in seen.pop("properties")
    assert seen.pop("version")
    head, *pushed, end = seen.pop("pushed")
    assert json.loads(head[1:].rstrip(",\n"))["header"]["schema"] == "`ID` INTEGER KEY, `ITEM` STRING"
    assert end == '{"finalMessage":"Limit Reached"}]\n'
    assert [json.loads(line.rstrip(",\n"))["row"]["columns"] for line in pushed] == [[1, "tea"], [2, "milk"]]
    assert [refusal["code"] for refusal in (seen.pop("again"), seen["table"], seen.pop("wrong"))] == [40001] * 3
    assert seen.pop("table")["message"].endswith("write KEY, or PRIMARY KEY of a table, behind the type of the column")
    assert seen == {
        "made": "SUCCESS",
        "stream": True,
        "inserted": [{"status": "ok", "seq": 0}, {"status": "ok", "seq": 1}],
        "not inserted": [
            {"status": "error", "seq": 0, "error_code": 40000, "message": "row 0: ID: INTEGER expected, not 'x'"}
        ],
        "nowhere": 40001,
        "objects": [{"ID": 1, "ITEM": "tea"}, {"ID": 2, "ITEM": "milk"}],
        "idle": [],
        "pushed by 2": ['[1,"tea"]', '[2,"milk"]'],
        "pulled by 2": ['[1,"tea"]', '[2,"milk"]'],
        "followed": {"columns": ["ID", "ITEM"], "first": [1, "tea"], "closed": True, "rest": ""},
        "not closed": False,
        "stream as": True,
        "keyed as": True,
        "streams": [name, f"{name}_BY", f"{name}_MORE", f"{name}_TEA"],
        "dropped": "SUCCESS",
    }


# ---- properties


def test_a_query_runs_with_the_properties_of_its_statement(bootstrap: str) -> None:
    """They are kept in the log: another server says the same to the application."""
    given = {"ksql.service.id": unique("sql"), "ksql.streams.commit.interval.ms": "200"}
    name = unique("P").upper()
    runs = Recorded()
    with SqlServer(bootstrap, given, runs) as first:
        first.ksql(
            f"CREATE STREAM {name} (A INT) WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
            f"SET 'auto.offset.reset' = 'latest'; CREATE STREAM {name}_A AS SELECT A FROM {name};",
            **{"commit.interval.ms": "100"},
        )
        (told,) = first.ksql(f"EXPLAIN CSAS_{name}_A_1;")
    assert runs.started == {f"CSAS_{name}_A_1": {"auto.offset.reset": "latest", "commit.interval.ms": "100"}}
    assert told["queryDescription"]["overriddenProperties"] == runs.started[f"CSAS_{name}_A_1"]
    assert told["queryDescription"]["queryErrors"] == [{"timestamp": 1, "errorMessage": "no room", "type": "UNKNOWN"}]
    again = Recorded()
    with SqlServer(bootstrap, given, again):
        assert again.started == runs.started


def test_where_spark_cannot_run_a_query_is_refused_and_nothing_is_made_for_it(bootstrap: str) -> None:
    name = unique("BARE").upper().replace("-", "_")
    runs = Recorded()
    with SqlServer(bootstrap, {"ksql.service.id": unique("sql")}, runs) as server:
        server.ksql(f"CREATE STREAM {name} (A INT) WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');")
        runs.lacks = "Java was not found"
        status, refused = server.ask("POST", "/ksql", {"ksql": f"CREATE STREAM {name}_A AS SELECT A FROM {name};"})
        assert (status, refused["message"]) == (
            500,
            "a query that writes a topic runs on Spark, which cannot run here: Java was not found",
        )
        (streams,) = server.ksql("SHOW STREAMS;")
        assert f"{name}_A" not in [each["name"] for each in streams["streams"]]


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("auto.offset.reset", 200),
        ("ksql.streams.num.stream.threads", 200),
        ("consumer.max.poll.records", 200),
        ("ksql.persistence.default.format.value", 200),
        ("ksql.nothing", 400),
        ("auto.offset.rest", 400),
        ("bootstrap.servers", 400),
        ("processing.nonsense", 400),
    ],
)
def test_a_property_is_known_by_its_whole_name(server: SqlServer, name: str, status: int) -> None:
    assert server.ask("GET", f"/is_valid_property/{name}")[0] == status


def test_a_property_that_is_none_is_refused_where_it_is_said(server: SqlServer) -> None:
    status, answer = server.ask("POST", "/ksql", {"ksql": "SET 'auto.ofset.reset'='earliest'; SHOW TYPES;"})
    assert (status, answer["error_code"]) == (400, 40001)
    assert "do you mean auto.offset.reset?" in answer["message"]
    body = {"sql": "SELECT 1 FROM X;", "properties": {"auto.offset.reset": "sometimes"}}
    status, answer = server.ask("POST", "/query-stream", body)
    assert (status, answer["error_code"]) == (400, 40001)
    assert "earliest" in answer["message"]


# ---- topics, EXPLAIN, ASSERT


def test_a_new_topic_has_the_brokers_replicas_or_those_that_are_said(server: SqlServer) -> None:
    name = unique("R").upper()
    create = f"CREATE STREAM {name} (A INT) WITH (KAFKA_TOPIC='{name}', PARTITIONS=3, VALUE_FORMAT='JSON'"
    status, answer = server.ask("POST", "/ksql", {"ksql": f"{create}, REPLICAS=99);"})
    assert (status, answer["error_code"]) == (400, 40001)
    assert "REPLICATION" in answer["message"].upper()
    server.ksql(f"{create}); CREATE STREAM {name}_A AS SELECT A FROM {name};")
    (asserted,) = server.ksql(f"ASSERT TOPIC {name}_A WITH (PARTITIONS=3, REPLICAS=1);")
    assert (asserted["@type"], asserted["exists"]) == ("assert_topic", True)
    server.ksql(f"TERMINATE CSAS_{name}_A_{asserted_position(server, name)};")


def asserted_position(server: SqlServer, name: str) -> int:
    (queries,) = server.ksql("SHOW QUERIES;")
    (found,) = [each["id"] for each in queries["queries"] if each["id"].startswith(f"CSAS_{name}_A_")]
    return int(found.rpartition("_")[2])


def test_a_select_is_explained(server: SqlServer, orders: str) -> None:
    (told,) = server.ksql(f"EXPLAIN SELECT ITEM, COUNT(*) AS N FROM {orders} GROUP BY ITEM EMIT CHANGES;")
    found = told["queryDescription"]
    assert (found["queryType"], found["sources"], found["sinks"], found["state"]) == (
        "PUSH",
        [orders],
        [],
        "NOT_RUNNING",
    )
    assert [each["name"] for each in found["fields"]] == ["ITEM", "N"]
    assert "Sub-topology" in found["topology"]
    assert found["executionPlan"] == "computed by the server, without Spark"
    counting = f"EXPLAIN CREATE TABLE X AS SELECT ITEM, COUNT(*) AS N FROM {orders} GROUP BY ITEM;"
    plan = server.ksql(counting)[0]["queryDescription"]["executionPlan"]
    assert {line.split()[0] for line in plan.splitlines() if re.match(r"  \w ", line)} == {"N"}, plan
    status, answer = server.ask("POST", "/ksql", {"ksql": "EXPLAIN NO_SUCH_QUERY;"})
    assert (status, answer["message"].startswith("line 1:1: there is no query NO_SUCH_QUERY")) == (400, True)


def test_a_schema_is_asserted_by_a_registry_alone(server: SqlServer) -> None:
    status, answer = server.ask("POST", "/ksql", {"ksql": "ASSERT SCHEMA SUBJECT x TIMEOUT 1 MILLISECOND;"})
    assert (status, answer["error_code"]) == (428, 42801)


def test_connectors_need_a_worker(server: SqlServer) -> None:
    for text in ("SHOW CONNECTORS;", "SHOW CONNECTOR PLUGINS;", "DROP CONNECTOR x;", "DESCRIBE CONNECTOR x;"):
        status, answer = server.ask("POST", "/ksql", {"ksql": text})
        assert (status, answer["error_code"]) == (400, 40001)
        assert "ksql.connect.url" in answer["message"]


# ---- push with state


def test_a_stream_from_its_beginning_meets_the_table_as_it_was(server: SqlServer, orders: str) -> None:
    name = unique("ITEMS").upper()
    server.ksql(
        f"CREATE TABLE {name} (ITEM STRING PRIMARY KEY, KIND STRING) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
        f"INSERT INTO {name} (ROWTIME, ITEM, KIND) VALUES (1000, 'tea', 'leaf');"
        f"INSERT INTO {name} (ROWTIME, ITEM, KIND) VALUES (3000, 'tea', 'drink');"
        + "".join(
            f"INSERT INTO {orders} (ROWTIME, ID, ITEM, PRICE) VALUES ({moment}, {id_}, 'tea', 1);"
            for id_, moment in ((1, 2000), (2, 2500), (3, 4000))
        )
    )
    sql = f"SELECT O.ID, I.KIND FROM {orders} O JOIN {name} I ON O.ITEM = I.ITEM EMIT CHANGES LIMIT 3;"
    _, *rows = server.select(sql, auto_offset_reset="earliest")
    assert [row[-1] for row in rows] == ["leaf", "leaf", "drink"]
    with server.following(f"SELECT O.ID, I.KIND FROM {orders} O JOIN {name} I ON O.ITEM = I.ITEM EMIT CHANGES;") as new:
        next(new)
        # The table is whole before what is new of the stream is looked at.
        fill(server, orders, "7, 'tea', 1")
        assert next(new)[-1] == "drink"


def test_the_state_of_a_push_query_has_a_limit(bootstrap: str) -> None:
    settings = {"ksql.service.id": unique("sql"), "sql.push.state.max.rows": 10, "ksql.max.push.queries": 1}
    name = unique("BIG").upper()
    with SqlServer(bootstrap, settings) as small:
        small.ksql(f"CREATE STREAM {name} (A INT) WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');")
        stream = Http2(small, "/inserts-stream")
        stream.write({"target": name}, *({"A": each} for each in range(1_100)), end=True)
        while stream.line() is not None:
            pass
        stream.close()
        sql = f"SELECT A, COUNT(*) AS N FROM {name} GROUP BY A EMIT CHANGES;"
        with small.following(sql, auto_offset_reset="earliest") as lines:
            *_, last = lines
            assert last["error_code"] == 40001
            assert "sql.push.state.max.rows" in last["message"]
        with small.following(f"SELECT A FROM {name} EMIT CHANGES;") as one:
            next(one)
            status, answer = small.ask("POST", "/query-stream", {"sql": f"SELECT A FROM {name} EMIT CHANGES;"})
            assert (status, answer["error_code"]) == (400, 40003)


def test_a_push_query_is_listed_and_terminated(server: SqlServer, orders: str) -> None:
    with server.following(f"SELECT ID FROM {orders} EMIT CHANGES;") as lines:
        query = next(lines)["queryId"]
        (listed,) = server.ksql("SHOW QUERIES;")
        assert (query, "PUSH") in [(each["id"], each["queryType"]) for each in listed["queries"]]
        (ended,) = server.ksql(f"TERMINATE `{query}`;")
        assert (ended["@type"], ended["wasTerminated"]) == ("terminate_query", True)
        assert list(lines) == []


# ---- PRINT, WebSocket, Protobuf


def test_a_topic_is_printed_in_the_formats_that_it_seems_to_have(server: SqlServer, orders: str) -> None:
    server.ksql(f"INSERT INTO {orders} (ROWTIME, ID, ITEM, PRICE) VALUES (1600000000123, 7, 'tea', 2.5);")
    status, lines = server.text("/query", {"ksql": f"PRINT {orders} FROM BEGINNING LIMIT 1;"})
    assert status == 200
    assert lines[:2] == ["Key format: KAFKA_INT", "Value format: JSON or KAFKA_STRING"]
    head, _, partition = lines[2].rpartition(", partition: ")
    assert head == 'rowtime: 2020/09/13 12:26:40.123 Z, key: 7, value: {"ITEM":"tea","PRICE":2.50}'
    assert partition in ("0", "1")
    fill(server, orders, *(f"{each}, 'x', 1" for each in range(9)))
    _, lines = server.text("/query-stream", {"sql": f"PRINT {orders} FROM BEGINNING INTERVAL 3 LIMIT 3;"})
    assert len([line for line in lines if line.startswith("rowtime")]) == 3
    status, answer = server.ask("POST", "/query", {"ksql": "PRINT nowhere;"})
    assert (status, answer["error_code"]) == (400, 40001)


def test_rows_come_over_a_websocket(server: SqlServer, orders: str) -> None:
    fill(server, orders, "1, 'tea', 2.50")
    frames, closed = web_socket(server, f"SELECT ID, ITEM FROM {orders};")
    schema, *rows = frames
    assert [(each["name"], each["schema"]["type"]) for each in schema] == [("ID", "INTEGER"), ("ITEM", "STRING")]
    assert rows == [{"row": {"columns": [1, "tea"]}}]
    assert closed == (1000, "done")
    frames, closed = web_socket(server, "SELECT ID FROM NOTHING;")
    assert frames == []
    assert closed[0] == 1003 and "there is no stream or table NOTHING" in closed[1]


def web_socket(server: SqlServer, sql: str) -> tuple[list[Any], tuple[int, str]]:
    from wsproto import ConnectionType, WSConnection  # noqa: PLC0415
    from wsproto.events import AcceptConnection, CloseConnection, Request, TextMessage  # noqa: PLC0415

    address = urlsplit(server.url)
    target = "/ws/query?" + urlencode({"request": json.dumps({"ksql": sql})})
    connection = WSConnection(ConnectionType.CLIENT)
    found: list[Any] = []
    with socket.create_connection((address.hostname, address.port), timeout=60) as line:
        line.sendall(connection.send(Request(host=address.netloc, target=target)))
        while True:
            connection.receive_data(line.recv(65536) or None)
            for event in connection.events():
                match event:
                    case AcceptConnection():
                        pass
                    case TextMessage():
                        found.append(json.loads(event.data))
                    case CloseConnection():
                        line.sendall(connection.send(event.response()))
                        return found, (event.code, event.reason or "")


def test_rows_are_messages_of_protobuf_if_asked(server: SqlServer, orders: str) -> None:
    fill(server, orders, "5, 'tea', 2.50")
    accept = {"accept": "application/vnd.ksql.v1+protobuf"}
    status, (head, row, end) = server.ask("POST", "/query-stream", {"sql": f"SELECT ID, ITEM FROM {orders};"}, accept)
    assert status == 200
    assert head["header"]["protoSchema"] == (
        'syntax = "proto3";\nmessage ConnectDefault1 {\n  int32 ID = 1;\n  string ITEM = 2;\n}\n'
    )
    assert base64.b64decode(row["row"]["protobufBytes"]) == b"\x08\x05\x12\x03tea"
    assert end == {"finalMessage": "Query Completed"}


def test_servers_that_tell_of_themselves_are_in_the_status(server: SqlServer) -> None:
    host = {"host": "other", "port": 8088}
    now_ms = time.time_ns() // 1_000_000
    assert server.ask("POST", "/heartbeat", {"hostInfo": host, "timestamp": now_ms}) == (200, {"isOk": True})
    old = {"hostInfo": {"host": "old", "port": 1}, "timestamp": 5}
    assert server.ask("POST", "/heartbeat", old) == (200, {"isOk": True})
    lags = {"ksqlHost": host, "updateTimeMs": 7, "stateStoreLags": {"s": {"lagByPartition": {}}}}
    assert server.ask("POST", "/lag", lags) == (200, {"isOk": True})
    _, told = server.ask("GET", "/clusterStatus")
    found = told["clusterStatus"]
    assert found["other:8088"]["hostAlive"] is True
    assert found["other:8088"]["hostStoreLags"] == {"stateStoreLags": lags["stateStoreLags"], "updateTimeMs": 7}
    assert found["old:1"]["hostAlive"] is False
    assert found[urlsplit(server.url).netloc]["hostAlive"] is True


def test_a_server_is_in_the_status_under_the_name_that_it_was_given(bootstrap: str) -> None:
    given = {"ksql.service.id": unique("sql"), "ksql.advertised.listener": "http://sql.example:8088"}
    with SqlServer(bootstrap, given) as named:
        assert list(named.ask("GET", "/clusterStatus")[1]["clusterStatus"]) == ["sql.example:8088"]


# ---- bad input


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CREATE STREAM", "line 1"),
        ("CREATE STREAM X (A INT", "line 1"),
        ("SELECT FROM", "line 1"),
        ("SHOW TYPES; SELECT 'open", "line 1:20: a text begins here"),
        ("CREATE STREAM SELECT (A INT) WITH (KAFKA_TOPIC='x', VALUE_FORMAT='JSON');", "line 1:15"),
        ("EXPLAIN SELECT " + "(" * 10_000 + "1" + ")" * 10_000 + " FROM X;", "more than 100 levels of nesting"),
        ("SHOW TYPES" + " " * (5 << 20) + ";", ""),
        ("EXPLAIN SELECT " + "A + " * 250_000 + "A FROM X;", ""),
    ],
    ids=["half create", "half columns", "half select", "open text", "reserved word", "deep", "long", "1 MB of terms"],
)
def test_bad_statements_are_refused_and_the_server_goes_on(server: SqlServer, text: str, words: str) -> None:
    status, answer = server.ask("POST", "/ksql", {"ksql": text})
    assert (status, answer["error_code"]) == (400, 40001), answer
    assert words in answer["message"]
    assert len(json.dumps(answer)) < 10_000
    assert server.ask("GET", "/info")[0] == 200


@pytest.mark.parametrize(
    ("select", "words"),
    [
        ("SELECT ITM FROM {}", "do you mean ITEM?"),
        ("SELECT ID FROM {}X", "do you mean {}?"),
        ("SELECT UCAS(ITEM) FROM {}", "do you mean UCASE?"),
        ("SELECT UCASE(ID) FROM {}", "UCASE"),
        ("SELECT SUBSTRING(ITEM, 'x') FROM {}", "SUBSTRING"),
        ("SELECT ID FROM {} WHERE ITEM", "BOOLEAN"),
    ],
)
def test_names_and_types_that_are_wrong_are_told_with_what_is_meant(
    server: SqlServer, orders: str, select: str, words: str
) -> None:
    status, answer = server.ask("POST", "/query-stream", {"sql": select.format(orders) + ";"})
    assert (status, answer["error_code"]) == (400, 40001)
    assert words.format(orders) in answer["message"]


def test_fewer_partitions_than_are_there_are_refused(server: SqlServer, orders: str) -> None:
    create = f"CREATE STREAM {orders}_1 (A INT) WITH (KAFKA_TOPIC='{orders}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    status, answer = server.ask("POST", "/ksql", {"ksql": create})
    assert (status, answer["error_code"]) == (400, 40001)
    assert "has 2 partitions, not 1" in answer["message"]


@pytest.mark.parametrize("name", ["JSON", "DELIMITED", "KAFKA", "PROTOBUF_NOSR"])
def test_poison_is_skipped_in_every_format(server: SqlServer, bootstrap: str, name: str) -> None:
    topic = unique("POISON").upper()
    server.ksql(f"CREATE STREAM {topic} (A INT) WITH (KAFKA_TOPIC='{topic}', PARTITIONS=1, VALUE_FORMAT='{name}');")
    server.ksql(f"INSERT INTO {topic} VALUES (1);")
    producer = Producer({"bootstrap.servers": bootstrap})
    for poison in (b"\xff\xfe\x00", b"", b"[" * 5_000, b'{"A": "x"}'):
        producer.produce(topic, poison)
    assert producer.flush(60) == 0
    server.ksql(f"INSERT INTO {topic} VALUES (2);")
    rows = [row for (row,) in server.select(f"SELECT A FROM {topic};")[1:] if row in (1, 2)]
    assert rows == [1, 2]


def test_inserts_that_break_off_leave_whole_rows_and_nothing_else(server: SqlServer, orders: str) -> None:
    stream = Http2(server, "/inserts-stream")
    stream.write({"target": orders}, {"ID": 1, "ITEM": "tea"})
    assert stream.line() == {"status": "ok", "seq": 0}
    stream.begin(b'{"ID": 2, "ITE')
    stream.close()
    assert server.ask("GET", "/info")[0] == 200
    assert server.select(f"SELECT ID FROM {orders};")[1:] == [[1]]


def test_a_push_client_that_never_reads_stops_nobody(server: SqlServer, orders: str) -> None:
    asleep = Http2(server, "/query-stream")
    asleep.write({"sql": f"SELECT ID, ITEM FROM {orders} EMIT CHANGES;"}, end=True)
    assert asleep.line()["columnNames"] == ["ID", "ITEM"]
    stream = Http2(server, "/inserts-stream")
    stream.write({"target": orders})
    for part in range(30):
        stream.write(*({"ID": part * 100 + each, "ITEM": "x" * 100} for each in range(100)))
        assert sorted(stream.line()["seq"] for _ in range(100)) == list(range(part * 100, part * 100 + 100))
    stream.close()
    assert len(server.select(f"SELECT ID FROM {orders} WHERE ID >= 0;")) == 3_001
    asleep.close()


def test_a_scan_that_is_too_long_is_refused(bootstrap: str) -> None:
    name = unique("LONG").upper()
    settings = {"ksql.service.id": unique("sql"), "sql.pull.max.rows": 50, "sql.view.max.rows": 40}
    with SqlServer(bootstrap, settings) as small:
        for kind, key in (("STREAM", "KEY"), ("TABLE", "PRIMARY KEY")):
            small.ksql(
                f"CREATE {kind} {name}_{kind} (A INT {key}, B INT) "
                f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
            )
        stream = Http2(small, "/inserts-stream")
        stream.write({"target": f"{name}_STREAM"}, *({"A": each, "B": 1} for each in range(60)), end=True)
        while stream.line() is not None:
            pass
        stream.close()
        _, *rows, last = small.select(f"SELECT A FROM {name}_STREAM;")
        assert (last["error_code"], rows) == (40001, [])
        assert "sql.pull.max.rows" in last["message"]
        _, last = small.select(f"SELECT A FROM {name}_TABLE;")
        assert last["error_code"] == 40001
        assert "sql.view.max.rows" in last["message"]


def test_tables_together_have_a_limit_and_the_one_asked_for_last_stays(bootstrap: str) -> None:
    names = [unique("VIEWED").upper() for _ in range(2)]
    with SqlServer(bootstrap, {"ksql.service.id": unique("sql"), "sql.views.max.bytes": 12_000}) as small:
        engine = small.service.engine
        assert engine is not None
        for name in names:
            small.ksql(
                f"CREATE TABLE {name} (A INT PRIMARY KEY, B INT) WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, "
                "VALUE_FORMAT='JSON');"
            )
            fill(small, name, *(f"{each}, 1" for each in range(20)))
        for name in (*names, *names):
            _, *rows = small.select(f"SELECT A FROM {name};")
            assert sorted(rows) == [[each] for each in range(20)]
            assert engine.clients.views.topics == [name]
        fill(small, names[1], *(f"{each}, 1" for each in range(20, 40)))
        _, last = small.select(f"SELECT A FROM {names[1]};")
        assert last["error_code"] == 40001
        assert "(0 MiB; sql.views.max.bytes)" in last["message"]
        small.select(f"SELECT A FROM {names[0]};")
        assert engine.clients.views.bytes > 0
        fill(small, names[0], *(f"{each}, 1" for each in range(20, 40)))
        eventually(lambda: engine.clients.views.bytes == 0, "a table that has grown too large to let its rows go")
        small.ksql(f"DROP TABLE {names[0]};")
        assert engine.clients.views.topics == []


def test_a_log_of_statements_that_cannot_be_read_for_a_defect_keeps_nobody_waiting(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> NoReturn:
        raise RuntimeError("a defect")

    with SqlServer(bootstrap, {"ksql.service.id": unique("sql")}) as small:
        engine = small.service.engine
        assert engine is not None
        monkeypatch.setattr(engine.log, "_replay", broken)
        statement = {"ksql": "CREATE TYPE T AS STRUCT<A INT>;"}
        assert [small.ask("POST", "/ksql", statement)[0] for _ in range(2)] == [500, 500]
        status, health = small.ask("GET", "/healthcheck")
        assert (status, health["isHealthy"]) == (200, False)


def test_a_table_that_cannot_be_read_for_a_defect_is_told_and_read_anew(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = unique("VIEWED").upper()

    async def broken(*_: object) -> NoReturn:
        raise RuntimeError("a defect")

    with SqlServer(bootstrap, {"ksql.service.id": unique("sql")}) as small:
        small.ksql(
            f"CREATE TABLE {name} (A INT PRIMARY KEY, B INT) WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, "
            "VALUE_FORMAT='JSON');"
        )
        fill(small, name, "1, 1")
        with monkeypatch.context() as patched:
            patched.setattr("ottla.sql.server.views.Reader.poll", broken)
            status, (text,) = small.text("/query-stream", {"sql": f"SELECT A FROM {name};"})
            assert (status, "Its log says more" in text) == (500, True)
        assert small.select(f"SELECT A FROM {name};")[1:] == [[1]]


def test_patterns_of_topics_to_delete_are_those_that_take_no_longer_than_the_text(bootstrap: str) -> None:
    name = unique("GONE").upper()
    with SqlServer(bootstrap, {"ksql.service.id": unique("sql")}) as small:
        small.ksql(f"CREATE STREAM {name} (A INT) WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');")
        for pattern in (r"(.)\1", "("):
            status, told = small.ask("POST", "/ksql/terminate", {"deleteTopicList": [pattern]})
            assert (status, told["error_code"]) == (400, 40000)
        status, told = small.ask("POST", "/ksql/terminate", {"deleteTopicList": ["NOT.*", f"({name[:-1]}+.)+"]})
        assert status == 200, told
        eventually(lambda: name not in [each["name"] for each in small.ksql("SHOW TOPICS;")[0]["topics"]])


def test_what_is_long_is_understood_beside_the_loop(server: SqlServer, orders: str) -> None:
    engine = server.service.engine
    assert engine is not None

    async def where(text: str) -> bool:
        return threading.get_ident() == await engine.clients.done(threading.get_ident, (), text)

    assert [server.run(where("x" * length)) for length in (10, 100_000)] == [True, False]
    columns = ", ".join(f"ID + {each} AS C{each}" for each in range(3_000))
    status, lines = server.text("/query-stream", {"sql": f"SELECT {columns} FROM {orders};"})
    assert (status, len(json.loads(lines[0])["columnNames"])) == (200, 3_000)
    inserted = f"INSERT INTO {orders} VALUES ({' + '.join('1' for _ in range(50))}, '{'x' * 50_000}', 1);"
    assert server.ksql(inserted) == []
    (made,) = server.ksql(
        f"CREATE STREAM {orders}_2 (ID INT{''.join(f', C{each} INT' for each in range(5_000))}) "
        f"WITH (KAFKA_TOPIC='{orders}', VALUE_FORMAT='JSON');"
    )
    assert made["commandStatus"]["status"] == "SUCCESS"


def test_a_row_to_insert_is_not_larger_than_an_expression_may_be(server: SqlServer, orders: str) -> None:
    doubled = "REDUCE(GENERATE_SERIES(1, 40), 'x', (s, i) => s || s)"
    fill(server, orders, f"1, {doubled}, 1")
    _, row = server.select(f"SELECT ID, ITEM, {doubled} AS X FROM {orders};")
    assert row == [1, None, None]


def test_a_print_is_one_of_the_queries_that_may_run(bootstrap: str, server: SqlServer, orders: str) -> None:
    with SqlServer(bootstrap, {"ksql.service.id": unique("sql"), "ksql.max.push.queries": 1}) as small:
        fill(server, orders, "1, 'tea', 2.50")
        address = urlsplit(small.url)
        with socket.create_connection((address.hostname, address.port), timeout=60) as line:
            body = json.dumps({"sql": f"PRINT {orders} FROM BEGINNING;"})
            head = ("POST /query-stream HTTP/1.1", f"Host: {address.netloc}", "Content-Type: application/json")
            line.sendall("\r\n".join([*head, f"Content-Length: {len(body)}", "", body]).encode())
            told = b""
            while b"rowtime" not in told:
                told += line.recv(65536)
            status, answer = small.ask("POST", "/query-stream", {"sql": f"PRINT {orders};"})
            assert (status, answer["error_code"]) == (400, 40003)
        eventually(lambda: small.text("/query-stream", {"sql": f"PRINT {orders} FROM BEGINNING LIMIT 1;"})[0] == 200)


@pytest.mark.parametrize("statement", ["SELECT * FROM {} EMIT CHANGES;", "PRINT {};"])
def test_queries_that_come_at_the_same_time_count_each_other(bootstrap: str, orders: str, statement: str) -> None:
    with SqlServer(bootstrap, {"ksql.service.id": unique("sql"), "ksql.max.push.queries": 1}) as small:
        engine = small.service.engine
        assert engine is not None
        text = statement.format(orders)
        small.ksql(f"CREATE STREAM {orders} (ID INT KEY) WITH (KAFKA_TOPIC='{orders}', VALUE_FORMAT='JSON');")

        async def together() -> list[object]:
            return await asyncio.gather(*(engine.select(text, {}, {}) for _ in range(3)), return_exceptions=True)

        errors = [each for each in small.run(together()) if isinstance(each, SqlError)]
        assert [each.code for each in errors] == [TOO_MANY_PUSH_QUERIES] * 2


def test_nodes_http2_does_what_the_java_client_does(server: SqlServer, orders: str) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    driver = Path(__file__).parent / "sql_node" / "driver.js"
    done = subprocess.run([node, str(driver), server.url, orders], capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stdout)
    engine = server.service.engine
    assert engine is not None
    eventually(lambda: seen["left"] not in engine.clients.running)
    del seen["left"]
    assert seen == {
        "first": {"status": "ok", "seq": 0},
        "second": {"status": "ok", "seq": 1},
        "insertsEnd": None,
        "columns": ["ID", "ITEM"],
        "rows": [[1, "tea"], [2, "milk"]],
        "closed": None,
    }


def test_the_shell_shows_numbers_as_they_were_sent() -> None:
    from ottla.cli.sql.tables import Tables, read_row  # noqa: PLC0415

    cells = read_row(b'[1,"tea",5.00,1.0E10,null,{"AT":[0.10,2]}]')
    shown = [cell.strip() for cell in Tables().row(cells, 1).strip("|").split("|")]
    assert shown == ["1", "tea", "5.00", "1.0E10", "null", '{"AT": [0.10, 2]}']


def test_the_shell_prints_a_topic(server: SqlServer, orders: str, capsys: pytest.CaptureFixture[str]) -> None:
    from ottla.cli.sql.shell import Shell  # noqa: PLC0415

    fill(server, orders, "7, 'tea', 2.5")
    shell = Shell(server.url)
    shell.run(f"PRINT {orders} FROM BEGINNING LIMIT 1;")
    told = capsys.readouterr()
    assert told.out.splitlines()[:2] == ["Key format: KAFKA_INT", "Value format: JSON or KAFKA_STRING"]
    assert not shell.failed
    shell.run("PRINT nowhere;")
    assert "there is no topic nowhere" in capsys.readouterr().err


def test_what_a_push_query_leaves_out_is_in_the_processing_log(bootstrap: str) -> None:
    service = unique("sql")
    name = unique("READINGS").upper().replace("-", "_")
    with SqlServer(bootstrap, {"ksql.service.id": service}) as server:
        (listed,) = server.ksql("SHOW STREAMS;")
        (log,) = listed["streams"]
        assert (log["name"], log["topic"]) == ("KSQL_PROCESSING_LOG", f"{service}ksql_processing_log")
        server.ksql(
            f"CREATE STREAM {name} (ID STRING KEY, V STRING, N INT) "
            f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
        )
        producer = Producer({"bootstrap.servers": bootstrap})
        for value in (b'{"V": "geheim", "N": 1}', b"geheim", b'{"V": "12", "N": 2}'):
            producer.produce(name, value, b"k")
        assert producer.flush(60) == 0
        plain = f"SELECT CAST(V AS INT) AS V FROM {name} EMIT CHANGES LIMIT 2;"
        with server.following(plain, auto_offset_reset="earliest") as lines:
            query = next(lines)["queryId"]
            assert list(lines) == [[None], [12]]
        counting = f"SELECT ID, COUNT(*) AS N FROM {name} GROUP BY ID EMIT CHANGES LIMIT 2;"
        with server.following(counting, auto_offset_reset="earliest") as lines:
            other = next(lines)["queryId"]
            assert list(lines) == [["k", 1], ["k", 2]]
        log_rows = "SELECT LOGGER, MESSAGE FROM KSQL_PROCESSING_LOG;"
        eventually(lambda: len(server.select(log_rows)[1:]) == 3)
        found = server.select(log_rows)[1:]
        assert sorted(logger for logger, _ in found) == sorted(
            [
                f"processing.{query}.Project",
                f"processing.{query}.KsqlTopic.Source",
                f"processing.{other}.KsqlTopic.Source",
            ]
        )
        assert "geheim" not in json.dumps(found)
        pushed = server.ksql(
            "CREATE STREAM ALARMS AS SELECT MESSAGE->DESERIALIZATIONERROR->ERRORMESSAGE AS WHY "
            "FROM KSQL_PROCESSING_LOG;"
        )
        assert pushed[0]["commandStatus"]["queryId"] == "CSAS_ALARMS_1"


def test_the_processing_log_shows_rows_or_is_not_there_if_that_was_said(bootstrap: str) -> None:
    off = {"ksql.logging.processing.topic.auto.create": "false"}
    with SqlServer(bootstrap, {"ksql.service.id": unique("sql"), **off}) as server:
        assert server.ksql("SHOW STREAMS;")[0]["streams"] == []
    name = unique("READINGS").upper().replace("-", "_")
    rows = {"ksql.logging.processing.rows.include": "true", "ksql.logging.processing.stream.name": "TROUBLE"}
    with SqlServer(bootstrap, {"ksql.service.id": unique("sql"), **rows}) as server:
        server.ksql(f"CREATE STREAM {name} (N INT) WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');")
        producer = Producer({"bootstrap.servers": bootstrap})
        for value in (b"geheim", b'{"N": 2}'):
            producer.produce(name, value)
        assert producer.flush(60) == 0
        with server.following(f"SELECT N FROM {name} EMIT CHANGES LIMIT 1;", auto_offset_reset="earliest") as lines:
            assert list(lines)[1:] == [[2]]
        shown = (
            "SELECT FROM_BYTES(TO_BYTES(MESSAGE->DESERIALIZATIONERROR->RECORDB64, 'base64'), 'utf8') AS R FROM TROUBLE;"
        )
        eventually(lambda: server.select(shown)[1:] == [["geheim"]])


def test_extended_tells_of_topics_queries_and_what_they_left_out(bootstrap: str) -> None:
    name = unique("SEEN").upper().replace("-", "_")
    with SqlServer(bootstrap, {"ksql.service.id": unique("sql")}, Recorded()) as server:
        server.ksql(
            f"CREATE STREAM {name} (A INT) WITH (KAFKA_TOPIC='{name}', PARTITIONS=2, VALUE_FORMAT='JSON');"
            f"INSERT INTO {name} VALUES (1); CREATE STREAM {name}_COPY AS SELECT A FROM {name};"
        )
        (plain,) = server.ksql(f"DESCRIBE {name}_COPY;")
        assert not plain["sourceDescription"]["extended"]
        (found,) = server.ksql(f"DESCRIBE {name}_COPY EXTENDED;")
        told = found["sourceDescription"]
        assert (told["extended"], told["partitions"], told["replication"]) == (True, 2, 1)
        query = f"CSAS_{name}_COPY_1"
        assert told["statistics"] == f"{query}: read: 5, written: 3, dropped: 2, records-per-second: 0.0, lag: 0"
        assert told["errorStats"] == f"{query}: deserialization-error: 2"
        (summary,) = told["queryOffsetSummaries"]
        assert summary["groupId"].endswith(query)
        (topic,) = summary["topicSummaries"]
        assert topic["kafkaTopic"] == name
        assert sum(each["logEndOffset"] for each in topic["offsets"]) == 1
        (listed,) = server.ksql("SHOW STREAMS EXTENDED;")
        assert {each["name"]: each["partitions"] for each in listed["sourceDescriptions"]}[name] == 2


def test_rowtime_is_a_column_of_clients_and_of_nobody_else(server: SqlServer, orders: str) -> None:
    server.ksql(f"INSERT INTO {orders} (ROWTIME, ID) VALUES (17, 1);")
    head, row = server.select(f"SELECT ID, ROWTIME FROM {orders};")
    assert (head["columnNames"], row) == (["ID", "ROWTIME"], [1, 17])
    pushed = f"SELECT ID, ROWTIME, ROWOFFSET FROM {orders} EMIT CHANGES LIMIT 1;"
    assert server.select(pushed, auto_offset_reset="earliest")[1:] == [[1, 17, 0]]
    status, answer = server.ask("POST", "/ksql", {"ksql": f"CREATE STREAM X AS SELECT ID, ROWTIME FROM {orders};"})
    assert (status, "needs another name" in answer["message"]) == (400, True)


@pytest.mark.parametrize("kind", ["AVRO", "JSON_SR", "PROTOBUF"])
def test_a_format_of_the_registry_needs_one(server: SqlServer, orders: str, kind: str) -> None:
    for text in (
        f"CREATE STREAM A_{kind} (A INT) WITH (KAFKA_TOPIC='{orders}', VALUE_FORMAT='{kind}');",
        f"CREATE STREAM B_{kind} WITH (VALUE_FORMAT='{kind}') AS SELECT ID, ITEM FROM {orders};",
    ):
        status, answer = server.ask("POST", "/ksql", {"ksql": text})
        assert (status, answer["error_code"]) == (428, 42801), answer
        assert "ksql.schema.registry.url" in answer["message"]


def test_code_of_users_that_raises_or_does_not_end_stops_nobody(server: SqlServer, orders: str) -> None:
    name = orders.replace("ORDERS", "F")
    server.ksql(
        f"CREATE FUNCTION {name}_RAISES (x INT) RETURNS INT LANGUAGE PYTHON AS $$\ndef {name}_raises(x):\n"
        f"    raise OSError(x)\n$$;"
        f"CREATE FUNCTION {name}_ENDLESS (x INT) RETURNS INT LANGUAGE PYTHON WITH (TIMEOUT_MS=300) AS $$\n"
        f"def {name}_endless(x):\n    while True: pass\n$$;"
    )
    fill(server, orders, "1, 'tea', 2.50", "2, 'milk', 1.00")
    assert server.select(f"SELECT ID, {name}_RAISES(ID) AS R FROM {orders} WHERE ID = 1;")[1:] == [[1, None]]
    others: list[int] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            others.append(server.ask("GET", "/info")[0])

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        endless = f"SELECT ID, {name}_ENDLESS(ID) AS R FROM {orders} EMIT CHANGES LIMIT 2;"
        rows = server.select(endless, auto_offset_reset="earliest")[1:]
    finally:
        over.set()
        asking.join()
    assert sorted(rows) == [[1, None], [2, None]]
    # While a call went on, others were answered: with one on the loop there would be one answer or two.
    assert len(others) > 5 and set(others) == {200}


def test_properties_are_shown_with_what_they_are_now(server: SqlServer) -> None:
    (found,) = server.ksql("SHOW PROPERTIES;", **{"auto.offset.reset": "earliest"})
    values = {each["name"]: each["value"] for each in found["properties"]}
    assert values["auto.offset.reset"] == "earliest"
    assert values["ksql.query.pull.table.scan.enabled"] == "true"
    assert found["overwrittenProperties"] == ["auto.offset.reset"]


def test_the_shell_has_words_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ottla.cli.sql.shell import Shell  # noqa: PLC0415

    shell = Shell("http://127.0.0.1:1")
    spooled = tmp_path / "spooled"
    assert shell.own(f"spool {spooled}") and shell.own("version") and shell.own("spool off")
    assert spooled.read_text() == capsys.readouterr().out
    assert shell.own("SET CLI COLUMN-WIDTH 6;") and shell.own("set cli wrap off")
    assert shell.table.row(["much too long", "x"], 2) == "|muc...|x     |"
    assert shell.own("set cli wrap on")
    assert shell.table.row(["too long", "x"], 2).splitlines() == ["|too lo|x     |", "|ng    |      |"]
    assert shell.own("output json") and shell.form == "JSON"
    assert shell.own("SELECT 1;") is False
    assert shell.own("exit") is None
    assert shell.own(f"spool {tmp_path}/no/such/folder") and shell.failed
