"""An application on a Spark cluster, by the one setting: driver and workers are processes of their own, and what the
application's file imports from beside it is not on the workers' path."""

import os
import signal
import socket
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.spark.applications import START, Input, World, driven, lasts, lines_of
from tests.support.patience import PATIENCE_SECONDS, eventually

ON_A_CLUSTER = "OTTLA_ON_A_CLUSTER"
pytestmark = [
    pytest.mark.jvm,
    pytest.mark.skipif(not os.environ.get(ON_A_CLUSTER), reason=f"three more JVMs; {ON_A_CLUSTER}=1 runs it"),
]

ROOT = Path(__file__).parents[2]
HOST = "127.0.0.1"
BARE = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
"""A Python that has no package installed."""
SPARK = Path(str(getattr(find_spec("pyspark"), "origin", ""))).parent
ALONE = {
    **{name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "PYSPARK_PYTHON")},
    "SPARK_HOME": str(SPARK),
    "SPARK_LOCAL_IP": HOST,
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",  # it has a port of its own, always the same
}
"""The environment of Spark's own programs."""
MASTER = "local-cluster[2,1,512]"
"""Two workers with a core each: Spark's own way to try a cluster on one machine."""

BESIDE = """
from ottla.streams import Processor, PunctuationType, Record


def words_of(line):
    return line.split()


class Punctual(Processor):
    def init(self, context):
        self._context, self._store = context, context.state_store("seen")
        context.schedule(500, PunctuationType.STREAM_TIME, self._tell)

    def process(self, record):
        self._store.put(record.key, (self._store.get(record.key) or 0) + 1)

    def _tell(self, now):
        for key, number in self._store.all():
            self._context.forward(Record(key, number, now))
"""
APP = """
from beside import Punctual, words_of
from ottla.streams import (
    Consumed, Grouped, Materialized, Produced, Serdes, Stores, StreamsApp, StreamsBuilder, TimeWindows,
)

TEXT, LONG = Serdes.string, Serdes.long
builder = StreamsBuilder()
lines = builder.stream("{name}.lines", Consumed(TEXT, TEXT))
words = lines.flat_map_values(words_of).group_by(lambda _, word: word, Grouped(TEXT, TEXT))
words.count(Materialized("words", TEXT)).to_stream().to("{name}.words", Produced(TEXT, LONG))
builder.add_state_store(Stores.key_value("seen", TEXT, LONG))
lines.process(Punctual, stores=["seen"]).to("{name}.seen", Produced(TEXT, LONG))
others = builder.stream("{name}.others", Consumed(TEXT, TEXT)).group_by_key(Grouped(TEXT, TEXT))
windows = others.windowed_by(TimeWindows.of(1000, grace_ms=300)).count(Materialized("windows", TEXT))
windows.to_stream().to("{name}.windows", Produced(Serdes.time_windowed(TEXT, 1000), LONG))
app = StreamsApp("{name}", builder.build(), **{{"max.records.per.batch": 60}})
"""


def long(number: int) -> bytes:
    return number.to_bytes(8, "big")


def command_of(world: World, *more: str, file: str = "app.py") -> list[str]:
    return [sys.executable, "-m", "ottla", "streams", "run", str(world.directory / file), "--once",
               "--bootstrap", world.bootstrap, "--state-dir", str(world.directory / "state"), "--master", MASTER,
               "-X", "spark.executor.memory=512m", "-X", "spark.driver.memory=512m", *more]  # fmt: skip


def run(world: World, *more: str, file: str = "app.py") -> subprocess.CompletedProcess[str]:
    command = command_of(world, *more, file=file)
    path = os.pathsep.join(part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part)
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        timeout=10 * PATIENCE_SECONDS, check=False,
    )  # fmt: skip


def packed(world: World) -> None:
    """`packed.zip`, and nothing of what it was made of."""
    (world.directory / "app.py").write_text(APP.format(name=world.name))
    (world.directory / "beside.py").write_text(BESIDE)
    made = subprocess.run(
        [sys.executable, "-m", "ottla", "streams", "package", "app.py", "-o", "packed.zip"],
        cwd=world.directory, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True,
        timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    for file in ("app.py", "beside.py"):
        (world.directory / file).unlink()


def three_words(world: World) -> str:
    """Sent to one of the application's topics, all of which are there then. Gives the one that counts go to."""
    lines, out = world.topic("lines"), world.topic("words")
    for short in ("others", "windows", "seen"):
        world.topic(short)
    world.send([Input(lines, b"z", b"one two one", START)])
    return out


COUNTED = {b"one": long(2), b"two": long(1)}


def test_an_archive_brings_all_that_a_python_without_any_package_needs(world: World) -> None:
    out = three_words(world)
    packed(world)
    ended = run(world, "-X", f"spark.pyspark.python={BARE}", file="packed.zip")
    assert ended.returncode == 0, ended.stderr
    assert {record.key: record.value for record in world.read(out)} == COUNTED


@contextmanager
def standalone(directory: Path) -> Iterator[str]:
    """Spark's own cluster, a master and a worker. Its URL."""
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    url = f"spark://{HOST}:{port}"
    deploy = "org.apache.spark.deploy"
    commands = (
        [f"{deploy}.master.Master", "--host", HOST, "--port", str(port), "--webui-port", "0"],
        [f"{deploy}.worker.Worker", url, "--host", HOST, "--cores", "2", "--memory", "1g", "--webui-port", "0",
         "--work-dir", str(directory / "work")],
    )  # fmt: skip
    told = directory / "cluster.log"
    with ExitStack() as stack:
        log = stack.enter_context(told.open("wb"))
        for command in commands:
            process = subprocess.Popen(
                [SPARK / "bin/spark-class", *command], cwd=directory, env=ALONE, stdout=log, stderr=log
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
        eventually(lambda: "Successfully registered with master" in told.read_text(), "the cluster")
        yield url


@contextmanager
def in_one_process(_: Path) -> Iterator[str]:
    yield "local[2]"


@pytest.mark.parametrize("cluster", [in_one_process, standalone])
def test_spark_submit_runs_an_archive_where_nothing_but_spark_is(
    world: World, cluster: Callable[[Path], AbstractContextManager[str]]
) -> None:
    out = three_words(world)
    packed(world)
    with zipfile.ZipFile(world.directory / "packed.zip") as archive:
        archive.extract("run.py", world.directory)
    with cluster(world.directory) as master:
        command = [
            str(SPARK / "bin/spark-submit"), "--master", master, "--executor-memory", "512m", "--driver-memory", "512m",
            "--conf", f"spark.pyspark.python={BARE}", "--archives", "packed.zip#ottla-app", "run.py",
            "--once", "--bootstrap", world.bootstrap, "--state-dir", str(world.directory / "state"),
        ]  # fmt: skip
        ended = subprocess.run(
            command, cwd=world.directory, env=ALONE, capture_output=True, text=True, timeout=10 * PATIENCE_SECONDS,
            check=False,
        )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert {record.key: record.value for record in world.read(out)} == COUNTED


def test_counts_windows_and_processors_give_on_a_cluster_what_the_test_driver_says(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, others = world.topic("lines"), world.topic("others")
    outs = [world.topic(short) for short in ("words", "windows", "seen")]
    records = lines_of(23, [lines, others], 160)
    records.append(Input(lines, b"z", b"last words", START + 60_000))
    world.send(records)
    (world.directory / "app.py").write_text(APP.format(name=world.name))
    (world.directory / "beside.py").write_text(BESIDE)
    ended = run(world)
    assert ended.returncode == 0, ended.stderr
    monkeypatch.syspath_prepend(world.directory)
    made: dict[str, object] = {}
    exec((world.directory / "app.py").read_text(), made)
    for out in outs:
        found = {record.key: (record.value, record.timestamp) for record in world.read(out)}
        assert found == lasts(driven(made["builder"], records, out)), out  # type: ignore[arg-type]
        assert found


def executors_of(pid: int) -> list[int]:
    """JVMs of Spark's that work for the driver `pid`."""
    parents: dict[int, int] = {}
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            parents[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if b"CoarseGrainedExecutorBackend" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:  # it has just ended
            continue

    def is_ours(each: int) -> bool:
        while each not in (0, pid):
            each = parents.get(each, 0)
        return each == pid

    return [each for each in found if is_ours(each)]


def test_an_executor_that_is_killed_costs_an_attempt_and_nothing_else(world: World) -> None:
    lines, words = world.topic("lines"), world.topic("words")
    for short in ("others", "windows", "seen"):
        world.topic(short)
    records = lines_of(29, [lines], 1500)
    world.send(records)
    (world.directory / "app.py").write_text(APP.format(name=world.name))
    (world.directory / "beside.py").write_text(BESIDE)
    output = world.directory / "output"
    with output.open("w") as out:
        running = subprocess.Popen(command_of(world), cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
    eventually(lambda: bool(world.read(words)) or running.poll() is not None, "the first results")
    executors = executors_of(running.pid)
    assert executors, output.read_text()
    os.kill(executors[0], signal.SIGKILL)
    assert running.wait(10 * PATIENCE_SECONDS) == 0, output.read_text()
    expected = Counter(word for record in records for word in (record.value or b"").split())
    found = {record.key: int.from_bytes(record.value or b"", "big") for record in world.read(words)}
    assert found == expected
