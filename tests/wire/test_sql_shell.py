"""The shell beside a server: as a program on a terminal, and what it says of functions, variables and scripts."""

import json
import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from ottla.cli.sql.shell import Shell, _completer
from tests.support.patience import PATIENCE_SECONDS
from tests.support.sql_servers import SqlServer, unique
from tests.support.wire import Deadline

GRADE = (
    "CREATE FUNCTION {} (points INT, most INT) RETURNS MAP<STRING, INT> LANGUAGE PYTHON AS "
    "$$\ndef {}(p, m):\n    return {{}}\n$$;"
)


@pytest.fixture(scope="module")
def server(bootstrap: str) -> Iterator[SqlServer]:
    with SqlServer(bootstrap, {"ksql.service.id": unique("sql")}) as running:
        yield running


@pytest.fixture
def orders(server: SqlServer) -> str:
    name = unique("ORDERS").upper() + "_TAKEN"  # so that none begins as another one does
    server.ksql(
        f"CREATE STREAM {name} (ID INT KEY, ITEM STRING) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )
    return name


# ---- on a terminal

_OWN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)
"""Else Ctrl-C would reach nobody."""


class Terminal:
    """`with Terminal(words) as terminal`: a program that believes it has somebody in front of it."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._master, slave = pty.openpty()
        # No colours, and no escapes of readline's that a plain terminal would not be sent.
        env = {**os.environ, "HOME": str(folder), "TERM": "dumb", "COLUMNS": "80", "INPUTRC": "/dev/null"}
        command = [sys.executable, "-c", _OWN_TERMINAL, "-m", "ottla", *words]
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
        )
        os.close(slave)
        self.seen = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def until(self, text: str) -> str:
        """What is shown up to this text, which is taken away."""
        deadline = Deadline(f"{text!r} on the terminal")
        while text not in self.seen:
            deadline.check(f"seen so far: {self.seen!r}")
            if select.select([self._master], [], [], 0.1)[0]:
                self.seen += os.read(self._master, 65_536).decode()
        shown, _, self.seen = self.seen.partition(text)
        return shown


def test_the_shell_prompts_completes_and_ends_a_query_at_ctrl_c(server: SqlServer, orders: str, tmp_path: Path) -> None:
    with Terminal(tmp_path, "sql", "-s", server.url) as terminal:
        terminal.until("`help` says more.")
        terminal.until("sql> ")
        terminal.type("SELECT ITEM\n")
        terminal.until("   > ")
        terminal.type(f"FROM {orders[:-1]}\t EMIT CHANGES;\n")
        terminal.until("|ITEM")
        terminal.type("\x03")
        terminal.until("Query ended.")
        terminal.until("sql> ")
        terminal.type("not finished\n")
        terminal.until("   > ")
        terminal.type("\x03")
        terminal.until("sql> ")
        terminal.type("SHOW TOPI\t;\n")
        shown = terminal.until("sql> ")
        assert "SHOW TOPICS" in shown and orders in shown
        terminal.type("exit\n")
        assert terminal.process.wait(PATIENCE_SECONDS) == 0
    assert "SHOW TOPICS" in (tmp_path / ".ottla_sql_history").read_text()


# ---- what it says


def test_functions_of_statements_are_listed_described_and_completed(
    server: SqlServer, capsys: pytest.CaptureFixture[str]
) -> None:
    name = unique("GRADE").upper()
    server.ksql(GRADE.format(name, name.lower()))
    (listed,) = server.ksql("SHOW FUNCTIONS;")
    assert {"name": name, "category": "OTHER", "type": "SCALAR"} in listed["functions"]
    shell = Shell(server.url)
    shell.run(f"DESCRIBE FUNCTION {name.lower()};")
    assert f"{name}(INTEGER, INTEGER) -> MAP<STRING, INTEGER>" in capsys.readouterr().out
    complete = _completer(shell)
    assert complete(name[:-1].lower(), 0) == name
    status, refused = server.ask("POST", "/ksql", {"ksql": f"DESCRIBE FUNCTION {name[:-1]};"})
    assert (status, refused["error_code"]) == (400, 40001)
    assert f"do you mean {name}?" in refused["message"]


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("CONCAT", ["CONCAT(STRING...) -> STRING", "CONCAT(BYTES...) -> BYTES"]),
        ("MAP_KEYS", ["MAP_KEYS(MAP<STRING, T>) -> ARRAY<STRING>"]),
        ("SUBSTRING", ["SUBSTRING(STRING, INT, INT) -> STRING", "SUBSTRING(BYTES, INT, INT) -> BYTES"]),
        ("RANDOM", ["RANDOM() -> DOUBLE"]),
    ],
)
def test_a_function_is_described_argument_by_argument(
    server: SqlServer, capsys: pytest.CaptureFixture[str], name: str, calls: list[str]
) -> None:
    Shell(server.url).run(f"DESCRIBE FUNCTION {name};")
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith(f"{name}(")] == calls


def test_variables_are_shown_and_a_script_that_is_not_there_is_said(
    server: SqlServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(server.url)
    shell.run("DEFINE topic = 'orders'; SHOW VARIABLES;")
    assert re.search(r"TOPIC +orders", capsys.readouterr().out, re.IGNORECASE)
    script = tmp_path / "script.sql"
    shell.run(f"RUN SCRIPT '{script}';")
    assert shell.failed
    assert capsys.readouterr().err == f"{script} cannot be read: No such file or directory\n"
    script.write_text("SHOW VARIABLES;")
    shell.run(f"RUN SCRIPT '{script}';")
    assert "orders" in capsys.readouterr().out


# ---- what had no test of the server's


def test_key_columns_are_marked_in_the_header_of_plain_queries(server: SqlServer, orders: str) -> None:
    server.ksql(f"INSERT INTO {orders} VALUES (1, 'tea');")

    def schema(sql: str) -> str:
        status, answer = server.ask(
            "POST", "/query", {"ksql": sql, "streamsProperties": {"auto.offset.reset": "earliest"}}
        )
        assert status == 200, answer
        return str(answer[0]["header"]["schema"])

    assert schema(f"SELECT * FROM {orders};") == "`ID` INTEGER KEY, `ITEM` STRING"
    assert schema(f"SELECT ITEM, ID FROM {orders} EMIT CHANGES LIMIT 1;") == "`ITEM` STRING, `ID` INTEGER KEY"
    assert schema(f"SELECT ID AS NUMBER, ID + 1 AS NEXT FROM {orders};") == "`NUMBER` INTEGER KEY, `NEXT` INTEGER"
    grouped = f"SELECT ITEM, COUNT(*) AS N FROM {orders} GROUP BY ITEM EMIT CHANGES LIMIT 1;"
    assert schema(grouped) == "`ITEM` STRING KEY, `N` BIGINT"


def test_the_lists_of_a_client_have_the_limit_that_it_sets(server: SqlServer, orders: str) -> None:
    for item in ("tea", "milk", "cake"):
        server.ksql(f"INSERT INTO {orders} VALUES (1, '{item}');")
    sql = f"SELECT ID, COLLECT_LIST(ITEM) AS L FROM {orders} GROUP BY ID EMIT CHANGES LIMIT 3;"
    limited = {"auto.offset.reset": "earliest", "ksql.functions.collect_list.limit": "2"}
    status, lines = server.text("/query-stream", {"sql": sql, "properties": limited})
    assert status == 200, lines
    assert [json.loads(line) for line in lines[1:]] == [[1, ["tea"]], [1, ["tea", "milk"]], [1, ["tea", "milk"]]]


def test_a_source_table_is_pulled_and_not_written(server: SqlServer) -> None:
    name = unique("USERS").upper()
    columns = "(ID BIGINT PRIMARY KEY, NAME STRING)"
    server.ksql(f"CREATE TABLE {name} {columns} WITH (KAFKA_TOPIC='{name}', PARTITIONS=2, VALUE_FORMAT='JSON');")
    server.ksql(f"CREATE SOURCE TABLE {name}_KEPT {columns} WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON');")
    for row in ("1, 'Ann'", "2, 'Bob'", "1, 'Anne'"):
        server.ksql(f"INSERT INTO {name} VALUES ({row});")
    assert server.select(f"SELECT NAME FROM {name}_KEPT WHERE ID = 1;")[1:] == [["Anne"]]
    assert sorted(server.select(f"SELECT * FROM {name}_KEPT;")[1:]) == [[1, "Anne"], [2, "Bob"]]
    status, refused = server.ask("POST", "/ksql", {"ksql": f"INSERT INTO {name}_KEPT VALUES (3, 'Eve');"})
    assert (status, refused["error_code"]) == (400, 40001)
    assert "read-only" in refused["message"]


def test_the_metadata_names_the_cluster_and_the_service(server: SqlServer) -> None:
    _, info = server.ask("GET", "/info")
    status, told = server.ask("GET", "/v1/metadata")
    assert status == 200
    assert told["scope"]["clusters"] == {
        "kafka-cluster": info["KsqlServerInfo"]["kafkaClusterId"],
        "ksql-cluster": info["KsqlServerInfo"]["ksqlServiceId"],
    }
    assert server.ask("GET", "/v1/metadata/id") == (status, told)


def test_terminate_drops_everything_and_the_topics_that_are_named(bootstrap: str) -> None:
    kept, gone = unique("KEPT").upper(), unique("GONE").upper()
    with SqlServer(bootstrap, {"ksql.service.id": unique("sql")}) as server:
        for name in (kept, gone):
            server.ksql(
                f"CREATE STREAM {name} (ID INT KEY, V STRING) "
                f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
            )
        status, wrong = server.ask("POST", "/ksql/terminate", {"deleteTopicList": ["("]})
        assert (status, wrong["error_code"]) == (400, 40000)
        status, _ = server.ask("POST", "/ksql/terminate", {"deleteTopicList": ["GONE.*"]})
        assert status == 200
        (streams,) = server.ksql("SHOW STREAMS;")
        assert {kept, gone}.isdisjoint(each["name"] for each in streams["streams"])
        (topics,) = server.ksql("SHOW TOPICS;")
        names = {each["name"] for each in topics["topics"]}
        assert kept in names and gone not in names
