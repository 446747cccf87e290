"""Living with an application: its states, who is asked about failures, counts of its own, new versions, Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ottla.streams import StreamsBuilder, StreamThreadExceptionResponse
from ottla.streams.record import Record
from ottla.streams.topology.processor import Processor, ProcessorContext
from tests.spark.applications import CONSUMED, COUNTED, COUNTS, GROUPED, PRODUCED, START, Input, World
from tests.support.patience import PATIENCE_SECONDS, eventually


class Counting(Processor):
    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._seen = context.metrics.add_rate_total_sensor("shop", "orders", "seen")

    def process(self, record: Record) -> None:
        self._seen.record(2)
        self._context.forward(record)


@pytest.mark.usefixtures("spark")
def test_a_listener_hears_kafkas_states_and_a_sensor_counts(world: World) -> None:
    lines, out = world.topic("lines"), world.topic("out")
    builder = StreamsBuilder()
    builder.stream(lines, CONSUMED).process(Counting).to(out, PRODUCED)
    world.send([Input(lines, b"k", b"v", START)] * 3)
    app = world.app(builder)
    told: list[str] = []
    app.set_state_listener(lambda new, _: told.append(new))
    app.run(once=True)
    assert told == ["REBALANCING", "RUNNING", "PENDING_SHUTDOWN", "NOT_RUNNING"]
    found = {metric.name: metric for metric in app.metrics() if metric.group == "stream-shop-metrics"}
    assert found["seen-total"].value == 6
    assert found["seen-total"].tags["shop-id"] == "orders"
    whole = {metric.name: metric.value for metric in app.metrics() if metric.group == "stream-metrics"}
    assert whole == {"alive-stream-threads": 0, "failed-stream-threads": 0}


@pytest.mark.usefixtures("spark")
def test_a_query_that_failed_is_replaced_if_the_handler_says_so(world: World, tmp_path: Path) -> None:
    lines, out = world.topic("lines"), world.topic("out")
    mended = tmp_path / "mended"

    def shout(text: str) -> str:
        if not mended.exists():
            raise OSError("the shop is closed")
        return text.upper()

    builder = StreamsBuilder()
    builder.stream(lines, CONSUMED).map_values(shout).to(out, PRODUCED)
    world.send([Input(lines, b"k", b"v", START)])
    app = world.app(builder)
    failures: list[str] = []

    def answer(error: Exception) -> StreamThreadExceptionResponse:
        failures.append(str(error))
        mended.touch()
        return StreamThreadExceptionResponse.REPLACE_THREAD

    app.set_uncaught_exception_handler(answer)
    app.run(once=True)
    assert len(failures) == 1 and "the shop is closed" in failures[0]
    assert [metric.value for metric in app.metrics() if metric.name == "failed-stream-threads"] == [1]
    assert [record.value for record in world.read(out)] == [b"V"]


@pytest.mark.usefixtures("spark")
def test_a_paused_application_processes_nothing_until_it_is_resumed(world: World) -> None:
    lines, out = world.topic("lines"), world.topic("out")
    builder = StreamsBuilder()
    builder.stream(lines, CONSUMED).to(out, PRODUCED)
    app = world.app(builder)
    app.pause()
    running = threading.Thread(target=app.run)
    running.start()
    try:
        eventually(lambda: app.state == "RUNNING", "the start")
        world.send([Input(lines, b"k", b"v", START)])
        assert world.read(out) == []
        app.resume()
        eventually(lambda: len(world.read(out)) == 1, "the record")
    finally:
        app.stop()
        running.join(60)
    assert app.state == "NOT_RUNNING"


@pytest.mark.usefixtures("spark")
def test_a_version_that_does_not_fit_the_state_is_refused_before_it_starts(world: World) -> None:
    from ottla.streams.run.kept_shape import StateDoesNotFit  # noqa: PLC0415  imports pyspark

    lines, out = world.topic("lines"), world.topic("out")
    first = StreamsBuilder()
    first.stream(lines, CONSUMED).group_by_key(GROUPED).count(COUNTS).to_stream().to(out, COUNTED)
    world.send([Input(lines, b"k", b"v", START)])
    world.app(first).run(once=True)
    second = StreamsBuilder()
    second.stream(lines, CONSUMED).to(out, PRODUCED)
    second.stream(world.topic("more"), CONSUMED).group_by_key(GROUPED).count(COUNTS).to_stream().to(out, COUNTED)
    with pytest.raises(StateDoesNotFit, match="the store counts was kept by query 0 and is now kept by query 1"):
        world.app(second).run(once=True)
    world.app(first).run(once=True)


APP = """
from ottla.streams import Consumed, Produced, Serdes, StreamsApp, StreamsBuilder
builder = StreamsBuilder()
builder.stream("{lines}", Consumed(Serdes.string, Serdes.string)).to("{out}", Produced(Serdes.string, Serdes.string))
app = StreamsApp("{name}", builder.build(), bootstrap_servers="{bootstrap}", state_dir="{directory}/state")
"""


def started(world: World, text: str, *words: str) -> subprocess.Popen[str]:
    """`ottla streams run`, in the application's folder, on a file that says `text`."""
    file = world.directory / "app.py"
    names = {"lines": f"{world.name}.lines", "out": f"{world.name}.out", "directory": world.directory}
    file.write_text(text.format(name=world.name, bootstrap=world.bootstrap, **names))
    command = [sys.executable, "-m", "ottla", "streams", "run", str(file), *words]
    environment = {**os.environ, "OTTLA_PREPARE": "never"}
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=world.directory)


def test_ctrl_c_while_spark_starts_ends_within_seconds(world: World) -> None:
    for short in ("lines", "out"):
        world.topic(short)
    process = started(world, APP)
    assert process.stderr is not None
    with process.stderr as told:
        for line in told:
            if "waits for" in line:
                break
        process.send_signal(signal.SIGINT)
        process.wait(10)
        assert "stopped before its first batch was out" in told.read()
    assert process.returncode == 0


def test_what_ctrl_c_ends_in_the_midst_of_a_backlog_tells_what_it_has_done(world: World) -> None:
    lines, out = world.topic("lines"), world.topic("out")
    world.send([Input(lines, b"k", b"%d" % number, START) for number in range(5_000)])
    process = started(world, APP, "--property", "max.records.per.batch=20")
    eventually(lambda: bool(world.read(out)) or process.poll() is not None, "the first batch")
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=10 * PATIENCE_SECONDS)
    assert process.returncode == 0, told
    values = [record.value for record in world.read(out)]
    assert values == [b"%d" % number for number in range(len(values))] and len(values) % 20 == 0
    world.has_read(lines, len(values))
    said = f"{world.name}: {len(values)} records read, {len(values)} written, changelogs included"
    assert told.splitlines()[-1] == said


FAILING = """
from ottla.streams import Consumed, Produced, Serdes, StreamsApp, StreamsBuilder
from own_rates import rate
builder = StreamsBuilder()
lines = builder.stream("{lines}", Consumed(Serdes.string, Serdes.string))
lines.map_values(lambda text: rate(text)).to("{out}", Produced(Serdes.string, Serdes.string))
app = StreamsApp("{name}", builder.build(), bootstrap_servers="{bootstrap}", state_dir="{directory}/state")
"""
BESIDE = """RATES = {"euro": "1.1"}

def rate(currency):
    return RATES[currency]
"""


def test_an_error_in_a_function_is_told_by_the_lines_of_the_users_files_and_logged_as_a_whole(world: World) -> None:
    lines, out = world.topic("lines"), world.topic("out")
    world.send([Input(lines, b"k", text, START) for text in (b"euro", b"missing-key")])
    (world.directory / "own_rates.py").write_text(BESIDE)
    process = started(world, FAILING, "--once")
    _, told = process.communicate(timeout=10 * PATIENCE_SECONDS)
    assert process.returncode == 1, told
    error = told[told.index("ottla: ") :].splitlines()
    record = f"{lines}-0 offset 1, node KSTREAM-MAPVALUES-0000000001, task 0_0"
    assert error[0] == f"ottla: {world.name}, query 0: processing failed at {record}: KeyError: 'missing-key'"
    assert [line.strip() for line in error[1:] if set(line) - set(" ~^")] == [
        f'File "{world.directory}/app.py", line 6, in <lambda>',
        f'lines.map_values(lambda text: rate(text)).to("{out}", Produced(Serdes.string, Serdes.string))',
        f'File "{world.directory}/own_rates.py", line 4, in rate',
        "return RATES[currency]",
        "the whole trace is in Spark's log",
    ]
    log = (world.directory / "state" / world.name / "spark.log").read_text()
    assert "Traceback (most recent call last):" in log and "ottla/streams/tasks/" in log, "ours, too, for who mends it"
    assert world.read(out) == []
