"""Functions in Python after a restart: a query is made again of the log of statements, which has their text."""

import json
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ottla.serdes.types import STRING
from ottla.sql.python_calls import Code
from ottla.sql.server.job import application, query_of
from ottla.sql.testing import run
from ottla.streams.expressions import value
from ottla.streams.expressions.functions.python import python_call
from ottla.streams.test_driver import TopologyTestDriver

STATEMENTS = [
    "CREATE FUNCTION turned (s STRING) RETURNS STRING LANGUAGE PYTHON AS $$\ndef turned(s):\n    return s[::-1]\n$$",
    "CREATE STREAM s (id STRING KEY, v STRING) WITH (kafka_topic='t', value_format='JSON')",
    "CREATE STREAM o AS SELECT id, turned(v) AS w FROM s",
    "DROP FUNCTION turned",
]


def test_a_query_that_is_made_again_has_its_function(tmp_path: Path) -> None:
    file = tmp_path / "statements"
    file.write_text(json.dumps([(offset, text, {}) for offset, text in enumerate(STATEMENTS)]))
    arguments = {
        "query": "CSAS_O_2",
        "file": str(file),
        "application.id": "sql-csas-o-2",
        "config": {"bootstrap.servers": "127.0.0.1:1"},
        "registry": {},
    }
    app = application(arguments, query_of(arguments))
    with TopologyTestDriver(app.topology, app.application_id) as driver:
        driver.pipe_raw("t", b"k", json.dumps({"V": "abc"}).encode(), 0, ())
        assert [each.value for each in driver.output("O")] == [b'{"W":"cba"}']


WORKER = """
import pickle, sys
from ottla.serdes.types import STRING
from ottla.streams.expressions import Inputs
call = pickle.load(sys.stdin.buffer).compile({"value": STRING})
print(call(Inputs(value="abc")))
"""


def test_a_call_is_understood_by_a_process_that_knows_nothing_of_sql() -> None:
    """Spark's workers are given expressions, and import what these name."""
    turned = Code("def turned(s):\n    return s[::-1]", "TURNED", 60_000)
    sent = pickle.dumps(python_call(turned, STRING, [value]))
    worker = subprocess.run([sys.executable, "-c", WORKER], input=sent, capture_output=True, check=False)
    assert worker.stdout == b"cba\n", worker.stderr.decode()


def test_a_call_in_any_thread_is_stopped_after_its_time() -> None:
    endless = Code("def endless():\n    while True: pass", "ENDLESS", 60)
    found: list[str] = []

    def call() -> None:
        with pytest.raises(ValueError, match="ENDLESS took longer than 60 ms and was stopped") as caught:
            endless()
        found.append(str(caught.value))

    threads = [threading.Thread(target=call) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert len(found) == 2


@pytest.mark.parametrize(
    "body",
    [
        "while True:\n  try:\n   sum(range(1000))\n  except:\n   pass",
        "while True:\n  try:\n   sum(range(1000))\n  except BaseException as error:\n   str(error)",
        "from contextlib import suppress\n while True:\n  with suppress(BaseException):\n   sum(range(1000))",
        "from contextlib import suppress\n while True:\n  with suppress(BaseException):\n   while True: pass",
        "while True:\n  try:\n   while True: pass\n  except* BaseException:\n   pass",
        "while True:\n  try:\n   while True: pass\n  finally:\n   continue",
        "try:\n  while True: pass\n finally:\n  return x",
    ],
)
def test_a_call_that_catches_everything_is_stopped_all_the_same(body: str) -> None:
    code = Code(f"def f(x):\n {body}", "F", 50)
    for _ in range(3):
        with pytest.raises(ValueError, match="F took longer than 50 ms and was stopped"):
            code(1)


@pytest.mark.parametrize(
    ("body", "gives"),
    [
        ("try:\n  return 1 / x\n except:\n  return 0", 0),
        ("try:\n  return 1 / x\n finally:\n  return 1", 1),
        ("try:\n  1 / x\n except* ArithmeticError:\n  pass\n return 2", 2),
        ("from contextlib import suppress\n with suppress(ArithmeticError):\n  1 / x\n return 3", 3),
        ("from contextlib import nullcontext\n with nullcontext(4) as found, nullcontext():\n  return found", 4),
    ],
)
def test_what_a_call_catches_itself_stays_caught(body: str, gives: int) -> None:
    assert Code(f"def g(x):\n {body}", "G", 60_000)(0) == gives


@pytest.mark.parametrize(
    "raised", ["SystemExit(1)", "BaseExceptionGroup('g', [SystemExit(1)])", "ExceptionGroup('g', [KeyError(1)])"]
)
def test_a_call_that_ends_programs_ends_itself_alone(raised: str) -> None:
    with pytest.raises(ValueError, match=f"F: {raised.partition('(')[0]}: "):
        Code(f"def f():\n raise {raised}", "F", 60_000)()


AGGREGATE = """
CREATE AGGREGATE FUNCTION total (x INT) RETURNS INT KEEPS BIGINT LANGUAGE PYTHON WITH (TIMEOUT_MS=100) AS $$
class Total:
    def initial(self): return 0
    def add(self, state, x):
        while x == 7: pass
        return 'much' if x == 8 else state + 6 // x
    def merge(self, state, other): return state + other
    def result(self, state): return state if state < 10 else 'much'
$$;
CREATE STREAM s (id INT KEY, x INT) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE o AS SELECT id, total(x) AS n FROM s GROUP BY id;
"""


def test_an_aggregate_passes_over_rows_that_fail_and_a_result_that_fails_is_null() -> None:
    inputs = [{"topic": "t", "key": 1, "value": {"X": each}} for each in (2, 0, 7, 8, 1, 6, 1)]
    outputs, _ = run(AGGREGATE, inputs)
    assert [each["value"]["N"] for each in outputs] == [3, 3, 3, 3, 9, None, None]
