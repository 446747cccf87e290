"""The SQL server as its clients see it: statements, rows, pushes, and what comes back after a restart."""

import asyncio
import gc
import json
import socket
import subprocess
import warnings
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded

from tests.support.patience import eventually
from tests.support.sql_servers import SqlServer, unique


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


def test_a_source_is_described(server: SqlServer, orders: str) -> None:
    (found,) = server.ksql(f"DESCRIBE {orders};")
    fields = found["sourceDescription"]["fields"]
    assert [(each["name"], each["schema"]["type"], each.get("type")) for each in fields] == [
        ("ID", "INTEGER", "KEY"),
        ("ITEM", "STRING", None),
        ("PRICE", "DECIMAL", None),
    ]
    (functions,) = server.ksql("SHOW FUNCTIONS;")
    assert len(functions["functions"]) == 149
    (about,) = server.ksql("DESCRIBE FUNCTION SUBSTRING;")
    assert about["type"] == "SCALAR"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("SELEC 1;", 40001, "line 1:1"),
        ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='nowhere', VALUE_FORMAT='JSON');", 40001, "PARTITIONS"),
        ("SELECT 1 FROM NOTHING EMIT CHANGES;", 40002, "/query-stream"),
        ("DROP STREAM NOTHING;", 40001, "there is no stream or table NOTHING"),
        ("DESCRIBE FUNCTION NOTHING;", 40001, "there is no function NOTHING"),
        ("ASSERT TOPIC nothing TIMEOUT 1 MILLISECOND;", 41700, "not exist"),
    ],
)
def test_what_is_wrong_is_said_with_its_code(server: SqlServer, text: str, code: int, words: str) -> None:
    status, answer = server.ask("POST", "/ksql", {"ksql": text})
    assert (status, answer["error_code"]) == (code // 100, code)
    assert words in answer["message"]
    assert answer["stackTrace"] == []


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


def test_the_old_query_answers_with_one_array(server: SqlServer, orders: str) -> None:
    fill(server, orders, "1, 'tea', 2.50")
    status, answer = server.ask("POST", "/query", {"ksql": f"SELECT ID FROM {orders};"})
    assert status == 200
    head, row, end = answer
    assert head["header"]["schema"] == "`ID` INTEGER"
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
        assert listed["streams"] == []


def test_two_servers_of_one_service_have_one_catalog(bootstrap: str) -> None:
    settings = {"ksql.service.id": unique("sql")}
    with SqlServer(bootstrap, settings) as first, SqlServer(bootstrap, settings) as second:
        name = unique("SHARED").upper().replace("-", "_")
        (made,) = first.ksql(
            f"CREATE STREAM {name} (A INT) WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
        )
        body = {"ksql": "SHOW STREAMS;", "commandSequenceNumber": made["commandSequenceNumber"]}
        _, (listed,) = second.ask("POST", "/ksql", body)
        assert [each["name"] for each in listed["streams"]] == [name]


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
    for version in ("--http1.1", "--http2-prior-knowledge"):
        done = subprocess.run(
            ["curl", "-s", version, "-w", " %{http_version}", f"{server.url}/info"], capture_output=True, check=True
        )
        body, _, spoken = done.stdout.decode().rpartition(" ")
        assert "KsqlServerInfo" in json.loads(body)
        assert spoken == ("1.1" if version == "--http1.1" else "2")


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
    assert engine is not None and query in engine.running
    stream.close()
    eventually(lambda: query not in engine.running)


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
