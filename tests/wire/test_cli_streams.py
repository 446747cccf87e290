"""`ottla streams` without Spark: what is shown, what is refused, and what a reset does to a broker."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer

from ottla.cli.app import run
from ottla.cli.output import note
from ottla.cli.streams.run import _aside
from ottla.client import admin, groups
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster
from ottla.model.ids import TopicPartition
from ottla.streams.run.state_directory import StateDirectory
from tests.support.patience import PATIENCE_SECONDS, eventually

NewTopicName = Callable[[], str]
KEPT = {"retention.ms": "-1"}
"""The records are of 1970: retention would take them in the midst of a long run."""

APP = """
from ottla.streams import Consumed, Materialized, Produced, Serdes, StreamsApp, StreamsBuilder
from ottla.streams.expressions import value

builder = StreamsBuilder()
lines = builder.stream("{name}-lines", Consumed(Serdes.string, Serdes.string))
lines.group_by(value).count(Materialized("counts")).to_stream().to("{name}-out", Produced(Serdes.string, Serdes.long))
app = StreamsApp("{name}", builder.build())
"""


class Application:
    """One that has run once: its topics are there, its group has read three of five records of each partition."""

    def __init__(self, name: str, bootstrap: str, directory: Path) -> None:
        self.name = name
        self.lines, self.counts, self.words, self.markers, self.out = topics = (
            f"{name}-lines",
            f"{name}-counts-changelog",
            f"{name}-counts-repartition",
            f"{name}-ottla-batches",
            f"{name}-out",
        )
        self.file = directory / "word_count.py"
        self.file.write_text(APP.format(name=name))
        self.state = directory / "state"
        self.directory = StateDirectory(str(self.state), name)
        with self.directory.held({}):
            Path(self.directory.checkpoint("0")).mkdir(parents=True)
        self.cluster = Cluster(parse_bootstrap(bootstrap))
        made = admin.create_topics(self.cluster, [admin.NewTopic(topic, 2, configs=KEPT) for topic in topics])
        assert all(isinstance(each, admin.CreatedTopic) for each in made.values()), made
        producer = Producer({"bootstrap.servers": bootstrap})
        for topic in (self.lines, self.words):
            for partition in (0, 1):
                for number in range(5):
                    producer.produce(topic, b"v", b"k", partition, timestamp=1_000_000 * (number + 1))
        producer.flush()
        self.commit({TopicPartition(topic, p): 3 for topic in (self.lines, self.words) for p in (0, 1)})

    def commit(self, offsets: dict[TopicPartition, int]) -> None:
        # The coordinator of the first group on a node may still be reading its log.
        eventually(lambda: not any(groups.commit(self.cluster, self.name, offsets).values()), "the commit")

    def committed(self) -> dict[tuple[str, int], int]:
        found = groups.committed(self.cluster, self.name)
        return {(place.topic, place.partition): each.offset for place, each in found.items()}

    def topics(self) -> list[str]:
        names = [topic.name or "" for topic in self.cluster.metadata().topics]
        return sorted(name for name in names if name.startswith(self.name))


@pytest.fixture
def application(bootstrap: str, new_topic_name: NewTopicName, tmp_path: Path) -> Iterator[Application]:
    application = Application(new_topic_name(), bootstrap, tmp_path)
    yield application
    application.cluster.close()


class Shell:
    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *words: object, fails: int = 0) -> str:
        """Standard output; when the command is to fail, standard error."""
        self._capture.readouterr()
        code = run(["streams", *map(str, words)])
        captured = self._capture.readouterr()
        assert code == fails, (captured.out, captured.err)
        return captured.err if fails else captured.out

    def json(self, *words: object) -> Any:
        return json.loads(self(*words, "--json"))


@pytest.fixture
def streams(bootstrap: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("OTTLA_BOOTSTRAP", bootstrap)
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setattr(sys, "path", list(sys.path))
    return Shell(capsys)


# ---- describe and run


def test_a_topology_is_described_with_no_broker_at_all(application: Application, streams: Shell) -> None:
    shown = streams("describe", application.file, "--bootstrap", "127.0.0.1:1")
    assert shown.startswith("Topologies:\n   Sub-topology: 0\n    Source: KSTREAM-SOURCE-0000000000 (topics: [")
    assert "Processor: KSTREAM-AGGREGATE-0000000002 (stores: [counts])\n" in shown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--property", "commit.intervall.ms=5"], "did you mean commit.interval.ms?"),
        (["--property", "commit.interval.ms=soon"], "commit.interval.ms: 'soon' is not a whole number"),
        (["--application-id", "a b"], "application.id='a b': letters, digits"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(
    application: Application, streams: Shell, words: list[str], says: str
) -> None:
    assert says in streams("run", application.file, *words, fails=1)


def test_without_pyspark_one_line_says_what_to_install(
    application: Application, streams: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "pyspark" else object())
    said = streams("run", application.file, fails=1)
    assert said == "ottla: pyspark not installed: make streams, or pip install '.[streams]', in a clone of ottla\n"


def test_without_java_one_line_says_so(
    application: Application, streams: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: object())
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    said = streams("run", application.file, fails=1)
    assert said == "ottla: Java was not found: Spark needs Java 17 or newer (JAVA_HOME or java on the PATH)\n"


def test_what_is_missing_is_told_before_spark_starts(application: Application, streams: Shell, bootstrap: str) -> None:
    """It is looked for first: nobody waits ten seconds to read that a name was misspelt."""
    pytest.importorskip("pyspark")
    words = ("run", application.file, "--state-dir", application.state)
    said = streams(*words, "--bootstrap", "127.0.0.1:1", fails=1)
    assert "nothing listens at 127.0.0.1:1" in said
    admin.delete_topics(application.cluster, [application.lines])
    eventually(lambda: application.lines not in application.topics())
    said = streams(*words, fails=1)
    assert f"{application.name} cannot run: " in said
    assert application.lines in said


def test_what_spark_writes_to_standard_error_goes_to_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "spark.log"
    with _aside(str(log)):
        os.write(2, b"from the JVM\n")
        note("from us")
    note("afterwards")
    os.write(2, b"and this\n")
    assert log.read_text() == "from the JVM\n"
    assert capfd.readouterr().err.endswith("from us\nafterwards\nand this\n")


# ---- watch


def until(told: IO[str], words: str) -> None:
    for line in told:
        if words in line:
            return
    raise AssertionError(f"it ended before it said {words!r}")


@contextmanager
def watching(application: Application, *command: object) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "OTTLA_PREPARE": "never"}
    words = [sys.executable, *map(str, command)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.terminate()


def test_an_application_that_ended_is_started_again_when_its_file_changes(application: Application) -> None:
    pytest.importorskip("pyspark")
    file = application.file
    with watching(application, "-m", "ottla", "streams", "run", file, "--watch", "--bootstrap", "127.0.0.1:1") as run:
        assert run.stderr is not None
        until(run.stderr, "nothing listens at 127.0.0.1:1")
        until(run.stderr, f"waits for a change in {file.parent}")
        file.write_text("print 'this is no Python'\n")
        until(run.stderr, f"{file} or a module beside it has changed: once more")
        until(run.stderr, f"{file}, line 1: SyntaxError")
        until(run.stderr, "waits for a change")
        run.send_signal(signal.SIGINT)
        assert run.wait(PATIENCE_SECONDS) == 1


WATCH = "import sys; from ottla.cli.streams.watch import watch; sys.exit(watch(sys.argv[2:], sys.argv[1]))"


def test_one_that_runs_is_stopped_as_by_ctrl_c_and_started_again_when_a_module_beside_it_changes(
    application: Application, bootstrap: str
) -> None:
    file = application.file
    views = ("streams", "views", file, "--bootstrap", bootstrap, "--queries-port", 0)  # it runs, and needs no Spark
    with watching(application, "-c", WATCH, file, *views) as run:
        assert run.stderr is not None
        until(run.stderr, "stores are served at")
        (file.parent / "own_rates.py").write_text("RATES = {}\n")
        until(run.stderr, "has changed: once more")
        until(run.stderr, "stores are served at")
        run.send_signal(signal.SIGINT)
        assert run.wait(PATIENCE_SECONDS) == 0


# ---- status


def test_top_looks_as_often_as_it_is_told(application: Application, streams: Shell) -> None:
    query = {"read": 100, "written": 40, "batches": 3, "lag": 7, "state-bytes": 2048}
    with application.directory.held({}):
        application.directory.tell({"state": "RUNNING", "waits-for": "records", "queries": [query]})
        shown = streams("top", "-n", 2, "--interval", 1, "--state-dir", application.state)
    rows = [line.split() for line in shown.splitlines() if line.startswith(application.name)]
    assert rows == 2 * [[application.name, str(os.getpid()), "RUNNING", "3", "0", "0", "7", "2.0", "KiB", "records"]]


def test_status_tells_what_runs_and_how_far_it_is_behind(application: Application, streams: Shell) -> None:
    where = ("--state-dir", application.state)
    (mine,) = [row for row in streams.json("status", *where) if row["application"] == application.name]
    mine_alone = {"application": application.name, "process": "-", "inputs": 2, "lag": 8, "queries": None}
    assert mine == {**mine_alone, "instances": None}
    with application.directory.held({"queries": "http://127.0.0.1:1"}):
        one = streams.json("status", "--application-id", application.name, *where)
    assert one["process"] is not None
    assert one["partitions"][0] == {
        "topic": application.words, "partition": 0, "committed": 3, "end": 5, "lag": 2,
    }  # fmt: skip


# ---- reset


def test_a_reset_first_shows_what_it_would_do_and_changes_nothing(application: Application, streams: Shell) -> None:
    plan = streams.json("reset", application.file, "--state-dir", application.state)
    assert plan == {
        "application_id": application.name,
        "offsets": [
            {"topic": application.lines, "partition": p, "old_offset": 3, "new_offset": 0} for p in (0, 1)
        ],
        "delete_topics": sorted([application.counts, application.words, application.markers]),
        "delete_files": [f"{application.directory.path}/checkpoints"],
        "missing_topics": [],
    }  # fmt: skip
    assert len(application.topics()) == 5
    assert application.committed()[(application.lines, 0)] == 3
    assert application.directory.contents()


def test_a_reset_moves_offsets_and_deletes_what_is_internal(application: Application, streams: Shell) -> None:
    streams("reset", application.file, "--state-dir", application.state, "--execute")
    eventually(lambda: application.topics() == sorted([application.lines, application.out]))
    assert application.directory.contents() == []
    # What was committed for the deleted topics is gone with them: a new one begins at 0.
    eventually(lambda: application.committed() == {(application.lines, 0): 0, (application.lines, 1): 0})


@pytest.mark.parametrize(
    ("words", "new"),
    [
        (["--to-latest"], 5),
        (["--to-offset", "2"], 2),
        (["--shift-by", "-1"], 2),
        (["--to-datetime", "1970-01-01T01:00:00Z"], 3),
        (["--by-duration", "1h"], 5),
    ],
)
def test_offsets_go_where_they_are_told(application: Application, streams: Shell, words: list[str], new: int) -> None:
    plan = streams.json(
        "reset", "--application-id", application.name, "--input-topics", application.lines, *words,
        "--state-dir", application.state,
    )  # fmt: skip
    assert [move["new_offset"] for move in plan["offsets"]] == [new, new]


def test_offsets_may_come_from_a_file_and_the_rest_goes_to_the_start(
    application: Application, streams: Shell, tmp_path: Path
) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text(f"{application.lines},1,4\n\n")
    words = ("reset", "--application-id", application.name, "--state-dir", application.state, "--from-file", file)
    assert [move["new_offset"] for move in streams.json(*words)["offsets"]] == [0, 4]
    file.write_text(f"{application.lines},one,4\n")
    assert "line 1: TOPIC,PARTITION,OFFSET is expected" in streams(*words, fails=1)


def test_an_application_that_runs_is_not_reset(application: Application, streams: Shell) -> None:
    words = ("reset", application.file, "--state-dir", application.state, "--execute")
    with application.directory.held({}):
        said = streams(*words, fails=1)
        assert f"{application.name} is running as process" in said
        assert "stop it first" in said
    assert len(application.topics()) == 5


def test_an_application_whose_group_has_members_is_not_reset(
    application: Application, streams: Shell, bootstrap: str
) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": application.name})
    consumer.subscribe([application.lines])
    eventually(lambda: consumer.poll(0.05) is None and bool(consumer.assignment()))
    words = ("reset", application.file, "--state-dir", application.state, "--execute")
    assert "its group has 1 members" in streams(*words, fails=1)
    consumer.close()


def test_an_application_with_an_open_transaction_is_not_reset(
    application: Application, streams: Shell, bootstrap: str
) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{application.name}-0"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(application.out, b"v")
    producer.flush()
    words = ("reset", application.file, "--state-dir", application.state, "--execute")
    assert f"has an open transaction ({application.name}-0)" in streams(*words, fails=1)
    producer.abort_transaction()
    streams(*words)


def test_a_reset_never_takes_the_topics_of_an_application_whose_id_is_longer(
    application: Application, streams: Shell
) -> None:
    first = application.name.rpartition("-")[0]
    others = admin.NewTopic(f"{first}-counts-changelog", 1)
    admin.create_topics(application.cluster, [others])
    plan = streams.json("reset", "--application-id", first, "--state-dir", application.state)
    assert plan["delete_topics"] == [f"{first}-counts-changelog"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "name the application: its file, or --application-id ID"),
        (["--application-id", "x", "--to-latest", "--to-earliest"], "--to-earliest and --to-latest exclude each other"),
        (["--application-id", "x", "--execute", "--dry-run"], "--execute and --dry-run exclude each other"),
        (["--application-id", "x", "--to-datetime", "noon"], "is not a time"),
    ],
)
def test_a_reset_that_is_not_clear_is_refused(streams: Shell, words: list[str], says: str) -> None:
    assert says in streams("reset", *words, fails=2)


def test_an_input_that_does_not_exist_is_told(application: Application, streams: Shell) -> None:
    words = ("reset", "--application-id", application.name, "--state-dir", application.state)
    plan = streams.json(*words, "--input-topics", f"{application.lines},nowhere")
    assert plan["missing_topics"] == ["nowhere"]


# ---- views


def test_views_answer_without_the_application_and_keep_what_they_read(
    application: Application, bootstrap: str, tmp_path: Path
) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(application.counts, (7).to_bytes(8, "big"), b"kafka", 0)
    producer.flush()
    kept = tmp_path / "views"
    for _ in range(2):  # the second time from where the first stopped
        with standby(application, bootstrap, kept) as url, urlopen(f"{url}/stores/counts/keys/kafka") as answer:
            assert json.load(answer)["value"] == 7
    assert (kept / "counts.sqlite").is_file()


@contextmanager
def standby(application: Application, bootstrap: str, kept: Path) -> Iterator[str]:
    words = [
        *("streams", "views", str(application.file), "--bootstrap", bootstrap, "--views-dir", str(kept)),
        *("-X", "application.server=127.0.0.1:0"),
    ]
    command = [sys.executable, "-m", "ottla", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            found = re.search(r"stores are served at (http://\S+)/stores", said)
            assert found is not None, said
            eventually(lambda: _status(f"{found[1]}/health") == 200, "the views")
            yield found[1]
        finally:
            process.terminate()
        assert process.wait(30) == 0


def _status(url: str) -> int:
    try:
        with urlopen(url) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code
