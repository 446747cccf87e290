"""The examples on Spark, by the command that their docstrings name: the same results as in the test driver."""

import io
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from ottla.cli.app import run
from ottla.client import admin
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster
from ottla.model import ids
from ottla.streams import Serde, Serdes, TopologyTestDriver
from ottla.streams.app import StreamsApp
from ottla.streams.app_file import load
from tests.spark.decided import stable_ends
from tests.support.patience import PATIENCE_SECONDS, eventually

pytestmark = [pytest.mark.jvm, pytest.mark.usefixtures("spark")]

EXAMPLES = Path(__file__).parents[2] / "examples" / "streams"


class Input(NamedTuple):
    """Not at time 0, which confluent-kafka takes for now."""

    topic: str
    key: str | None
    value: Any
    timestamp: int

    @property
    def data(self) -> tuple[bytes | None, bytes]:
        value = self.value.encode() if isinstance(self.value, str) else json.dumps(self.value).encode()
        return None if self.key is None else self.key.encode(), value


class Output(NamedTuple):
    key: Any
    value: Any
    timestamp: int


INTERNAL = ("-changelog", "-repartition", "-ottla-batches")


class Bench:
    """Runs an example on Spark and in the test driver, with the same input."""

    def __init__(self, bootstrap: str, state: Path) -> None:
        self._bootstrap = bootstrap
        self.state = state
        self._producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})

    def make(self, *topics: str) -> None:
        with Cluster(parse_bootstrap(self._bootstrap)) as cluster:
            names = [topic.name or "" for topic in cluster.metadata().topics]
            # An application without state takes what an earlier test has left in its changelogs.
            admin.delete_topics(cluster, [*topics, *(name for name in names if name.endswith(INTERNAL))])
            # The records are of 1970, and would be deleted as too old at the next occasion.
            kept = {"retention.ms": "-1"}
            made = admin.create_topics(cluster, [admin.NewTopic(topic, 1, configs=kept) for topic in topics])
        assert all(isinstance(each, admin.CreatedTopic) for each in made.values()), made

    def write(self, inputs: Sequence[Input]) -> None:
        for each in inputs:
            key, value = each.data
            self._producer.produce(each.topic, value, key, timestamp=each.timestamp)
        self._producer.flush()

    def run(self, example: str, *words: str) -> None:
        code = run(["streams", "run", str(EXAMPLES / f"{example}.py"), "--state-dir", str(self.state),
                    "--bootstrap", self._bootstrap, "--verbose", *words])  # fmt: skip
        assert code == 0

    def reset(self, example: str) -> None:
        file = str(EXAMPLES / f"{example}.py")
        where = ("--state-dir", str(self.state), "--bootstrap", self._bootstrap)
        assert run(["streams", "reset", file, *where, "--execute"]) == 0

    def written(self, topic: str, key: Serde[Any], value: Serde[Any]) -> list[Output]:
        """All that is committed, in the order of the one partition."""
        with Cluster(parse_bootstrap(self._bootstrap)) as cluster:
            stable_ends(cluster, [ids.TopicPartition(topic, 0)])
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "none", "enable.partition.eof": True})
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = []
        while True:
            (message,) = consumer.consume(1, PATIENCE_SECONDS)
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    break
                continue  # of a connection, which librdkafka makes anew
            place = message.timestamp()[1]
            found.append(Output(key.deserialize(message.key()), value.deserialize(message.value()), place))
        consumer.close()
        return found


@pytest.fixture
def bench(bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield Bench(bootstrap, tmp_path)


def in_driver(app: StreamsApp, inputs: Sequence[Input], topic: str, key: Serde[Any], value: Serde[Any]) -> list[Output]:
    with TopologyTestDriver(app.topology) as driver:
        for each in sorted(inputs, key=lambda each: each.timestamp):
            driver.pipe_raw(each.topic, *each.data, each.timestamp, ())
        return [Output(r.key, r.value, r.timestamp) for r in driver.create_output_topic(topic, key, value)]


def last(outputs: Sequence[Output]) -> dict[Any, Output]:
    return {output.key: output for output in outputs}


def same(found: object, wanted: object) -> None:
    assert found == wanted, f"\n{found}\ninstead of\n{wanted}"


def example(name: str) -> StreamsApp:
    return load(str(EXAMPLES / f"{name}.py"))[0]


def test_word_count_goes_on_where_it_was_and_begins_anew_after_a_reset(bench: Bench) -> None:
    topic, out = "streams-plaintext-input", "streams-wordcount-output"
    bench.make(topic, out)
    inputs = [
        Input(topic, None, "all streams lead to kafka", 1_000),
        Input(topic, None, "hello kafka streams", 2_000),
        Input(topic, None, "join kafka summit", 3_000),
    ]
    bench.write(inputs[:2])
    bench.run("word_count", "--once")
    app = example("word_count")
    serdes = Serdes.string, Serdes.long
    same(last(bench.written(out, *serdes)), last(in_driver(app, inputs[:2], out, *serdes)))
    bench.write(inputs[2:])
    bench.run("word_count", "--once")
    found = bench.written(out, *serdes)
    same(last(found), last(in_driver(app, inputs, out, *serdes)))
    hello = Output("hello", 1, 2_000)
    assert [output for output in found if output.key == "hello"] == [hello]
    bench.reset("word_count")
    bench.run("word_count", "--once")
    again = bench.written(out, *serdes)
    same(last(again[len(found) :]), last(found))
    assert [output for output in again if output.key == "hello"] == [hello, hello]


def test_stock_statistics_have_the_windows_of_the_driver(bench: Bench) -> None:
    topic, out = "stock-trades", "stock-statistics"
    bench.make(topic, out)
    # In several batches, with late trades among them.
    times = [10_500, 11_000, 14_600, 13_900, 9_000, 8_500, 20_000, 15_100, 20_100]
    inputs = [
        Input(topic, ("ACME", "EMCA")[n % 2], {"price": 10.0 + n, "size": n}, time) for n, time in enumerate(times)
    ]
    app = example("stock_statistics")
    serdes = Serdes.time_windowed(Serdes.string, 5_000), Serdes.json
    with TopologyTestDriver(app.topology) as driver:
        for each in inputs:
            driver.pipe_raw(topic, *each.data, each.timestamp, ())
        wanted = {r.key: (r.value, r.timestamp) for r in driver.create_output_topic(out, *serdes)}
    bench.write(inputs)
    bench.run("stock_statistics", "--once", "--property", "max.records.per.batch=4")
    same({each.key: (each.value, each.timestamp) for each in bench.written(out, *serdes)}, wanted)


def test_click_enrichment_finds_the_same_partners(bench: Bench) -> None:
    bench.make("user-profiles", "page-views", "searches", "user-activity")
    inputs = [
        Input("user-profiles", "anna", {"name": "Anna", "interest": "bikes"}, 500),
        Input("page-views", "anna", {"page": "/bikes"}, 1_000),
        Input("searches", "anna", {"terms": "wheels"}, 1_900),
        Input("searches", "anna", {"terms": "tyres"}, 2_100),
        Input("page-views", "bert", {"page": "/cars"}, 5_000),
        Input("user-profiles", "bert", {"name": "Bert", "interest": "cars"}, 6_000),
        Input("page-views", "bert", {"page": "/boats"}, 7_000),
        Input("page-views", "anna", {"page": "/home"}, 19_000),
    ]
    bench.write(inputs)
    bench.run("click_enrichment", "--once")
    serdes = Serdes.string, Serdes.json
    wanted = in_driver(example("click_enrichment"), inputs, "user-activity", *serdes)
    assert len(wanted) == 3
    same(bench.written("user-activity", *serdes), wanted)


def test_a_second_version_runs_beside_the_first(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.make("visits", "page-counts-v1", "page-counts-v2")
    agents = ["firefox", "a robot", "chrome", "ROBOT"]
    bench.write([Input("visits", "/home", {"agent": agent}, 1_000 + n) for n, agent in enumerate(agents)])
    for version, counted in ((1, 4), (2, 2)):
        monkeypatch.setenv("VERSION", str(version))
        bench.run("reprocessing", "--once")
        found = last(bench.written(f"page-counts-v{version}", Serdes.string, Serdes.long))
        assert {output.key: output.value for output in found.values()} == {"/home": counted}


def test_fraud_alerts_come_at_the_same_times(bench: Bench) -> None:
    topic, out = "payments", "fraud-alerts"
    bench.make(topic, out)
    start = 600_000
    # The first payment of all makes the punctuator run once; from there on it is a minute each time.
    cards = ["first", "often", "often", "much", "often", "often", "little", "next", "much", "next"]
    inputs = [
        Input(topic, card, {"amount": 1_001 if card == "much" else 1}, start + n * 8_000)
        for n, card in enumerate(cards)
    ]
    inputs.append(Input(topic, "last", {"amount": 1}, start + 200_000))
    bench.write(inputs)
    bench.run("fraud_alerts", "--once")
    serdes = Serdes.string, Serdes.json
    wanted = in_driver(example("fraud_alerts"), inputs, out, *serdes)
    assert {output.key for output in wanted} == {"much", "often"}
    same(bench.written(out, *serdes), wanted)


def test_a_running_application_answers_queries_and_stops_when_asked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = "streams-plaintext-input"
    bench.make(topic, "streams-wordcount-output")
    bench.write([Input(topic, None, "hello kafka hello", 1_000)])
    # Spark's first batch takes long, and the patience below has an end.
    bench.run("word_count", "--once")
    told = io.StringIO()  # capsys would lose what is written while another thread asks it
    monkeypatch.setattr(sys, "stderr", told)
    answers: dict[str, Any] = {}
    over = threading.Event()

    def asks() -> None:
        try:
            url = served_at(told)
            eventually(lambda: counted(url, "hello") == 2, "hello is counted twice")
            bench.write([Input(topic, None, "hello again", 2_000)])
            eventually(lambda: counted(url, "hello") == 3, "hello is counted a third time")
            for path in ("status", "health", "stores"):
                answers[path] = json.loads(fetched(f"{url}/{path}"))
            answers["metrics"] = fetched(f"{url}/metrics")
        finally:
            if not over.is_set():  # nobody would catch it
                os.kill(os.getpid(), signal.SIGTERM)

    asking = threading.Thread(target=asks)
    asking.start()
    try:
        bench.run("word_count", "--queries-port", "0", "--property", "commit.interval.ms=50")
    finally:
        over.set()
    asking.join()
    assert answers["status"]["state"] == "RUNNING"
    assert len(answers["status"]["queries"]) == 1
    assert answers["health"]["status"] == "up"
    assert answers["stores"]["stores"][0]["name"] == "counts"
    assert "kafka_streams_" in answers["metrics"]


def served_at(told: io.StringIO) -> str:
    eventually(lambda: "/stores" in told.getvalue(), "the URL is told")
    match = re.search(r"served at (\S+)/stores", told.getvalue())
    assert match
    return match.group(1)


def fetched(url: str) -> str:
    with urlopen(url, timeout=PATIENCE_SECONDS) as answer:
        body: str = answer.read().decode()
        return body


def counted(url: str, word: str) -> int | None:
    try:
        found: int = json.loads(fetched(f"{url}/stores/counts/keys/{word}"))["value"]
    except HTTPError as error:
        error.close()
        return None
    return found
