"""Interactive queries: changelogs on a broker, followed into views, asked over HTTP. No Spark is needed for it."""

import json
import re
import secrets
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as KafkaPartition

from ottla.client import admin, groups
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster
from ottla.client.partitioner import partition_of_key
from ottla.model.ids import TopicPartition
from ottla.serdes.base import ContextSerde
from ottla.streams.app import StreamsApp
from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Consumed, Materialized
from ottla.streams.record import Record
from ottla.streams.run.running import Metric
from ottla.streams.run.state_directory import StateDirectory
from ottla.streams.serdes import Serdes
from ottla.streams.topology.processor import Processor
from ottla.streams.topology.stores import ValueAndTimestamp, VersionedRecord
from ottla.streams.topology.topology import Stores, Topology
from ottla.streams.views.lookups import QueryableStores
from ottla.streams.views.queries import (
    FailureReason,
    KeyQuery,
    KeyQueryMetadata,
    MultiVersionedKeyQuery,
    Position,
    PositionBound,
    PrefixQuery,
    Query,
    RangeQuery,
    ResultOrder,
    StateQueryRequest,
    TimestampedKeyQuery,
    TimestampedRangeQuery,
    VersionedKeyQuery,
    WindowKeyQuery,
    WindowRangeQuery,
)
from ottla.streams.views.server import ViewServer
from ottla.streams.windows import Window, Windowed
from tests.support.patience import eventually
from tests.support.requests import wait_until_stable
from tests.support.wire import Wire

NewTopicName = Callable[[], str]
PATIENCE_S = 60
STORES = ("counts", "numbers", "windows", "sessions", "versions")
KEPT = {"retention.ms": "-1"}
"""The records are of 1970: retention would take them in the midst of a long run."""


class Nothing(Processor):
    def process(self, record: Record) -> None: ...


class Application:
    """One that exists only by what it has written into its changelogs."""

    def __init__(self, name: str, bootstrap: str, directory: Path) -> None:
        topology = Topology()
        topology.add_source("in", f"{name}-input")
        stores = (
            Stores.key_value("counts", Serdes.string, Serdes.long),
            Stores.key_value("numbers", Serdes.int, Serdes.json),
            Stores.window("windows", Serdes.string, Serdes.long, window_size_ms=10, retention_ms=1000),
            Stores.session("sessions", Serdes.string, Serdes.long, retention_ms=1000),
            Stores.key_value("scratch", Serdes.string, Serdes.long, logging=False),
            Stores.versioned_key_value("versions", Serdes.string, Serdes.string, history_retention_ms=100),
        )
        topology.add_processor("p", Nothing, "in", stores=stores)
        self.app = StreamsApp(name, topology, bootstrap_servers=bootstrap, state_dir=str(directory))
        self.stores: QueryableStores
        self._bootstrap = bootstrap
        self._producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{name}-0", "linger.ms": 0})
        self._producer.init_transactions()

    def make_topics(self, *stores: str) -> None:
        with Cluster(parse_bootstrap(self._bootstrap)) as cluster:
            names = [self.changelog(store) for store in stores or STORES]
            if not stores:
                names.append(f"{self.app.application_id}-input")
            made = admin.create_topics(cluster, [admin.NewTopic(name, 2, configs=KEPT) for name in names])
            assert all(isinstance(each, admin.CreatedTopic) for each in made.values()), made

    def kept(self) -> QueryableStores:
        """With the views in the application's folder."""
        return QueryableStores(self.app, StateDirectory.of(self.app).views)

    def changelog(self, store: str) -> str:
        return f"{self.app.application_id}-{store}-changelog"

    def write(
        self,
        store: str,
        *pairs: tuple[bytes, bytes | None],
        partition: int = 0,
        commit: bool = True,
        timestamp: int = 1000,
        processed: int | None = None,
    ) -> None:
        """`processed`: the next offset of the input's partition, committed with what came of it."""
        self._producer.begin_transaction()
        for key, value in pairs:
            self._producer.produce(self.changelog(store), value, key, partition, timestamp=timestamp)
        self._producer.flush()
        if processed is not None:
            where = KafkaPartition(f"{self.app.application_id}-input", partition, processed)
            consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": self.app.application_id})
            self._producer.send_offsets_to_transaction([where], consumer.consumer_group_metadata())
            consumer.close()
        if commit:
            self._producer.commit_transaction()
        else:
            self._producer.abort_transaction()
        with Wire(self._bootstrap) as wire:
            wait_until_stable(wire, self.changelog(store), partition)


@pytest.fixture
def application(bootstrap: str, new_topic_name: NewTopicName, tmp_path: Path) -> Application:
    return Application(new_topic_name(), bootstrap, tmp_path)


class Browser:
    """Asks a server, over one connection."""

    def __init__(self, url: str) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)

    def text(self, path: str, status: int = 200, method: str = "GET", **headers: str) -> str:
        self._connection.request(method, path, headers=headers)
        answer = self._connection.getresponse()
        body = answer.read().decode()
        assert answer.status == status, (answer.status, body)
        return body

    def __call__(self, path: str, status: int = 200) -> Any:
        return json.loads(self.text(path, status))

    def close(self) -> None:
        self._connection.close()


class FakeRunner:
    state = "RUNNING"
    wrote = True

    def run(self, spark: object = None) -> None: ...
    def stop(self) -> None: ...

    def metrics(self) -> list[Metric]:
        return [Metric("stream-thread-metrics", "process-rate", 12.5, {"thread-id": 'a"b'}, "Records per second.")]

    def status(self) -> dict[str, Any]:
        return {"state": self.state}


@pytest.fixture(scope="module")
def served(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Application, Browser]]:
    """An application whose stores have something in them, and its server."""
    application = Application(f"served-{secrets.token_hex(3)}", bootstrap, tmp_path_factory.mktemp("served"))
    application.make_topics()
    application.write("counts", *((b"%02d" % n, struct.pack(">q", n)) for n in range(25)))
    application.write("counts", (b"a/b \xc3\xa4", struct.pack(">q", 7)), partition=1)
    application.write("numbers", (struct.pack(">i", 42), b'{"x":[1,2]}'))
    application.write(
        "windows", *((b"k" + struct.pack(">qi", start, 0), struct.pack(">q", start)) for start in (0, 10, 20))
    )
    application.write("sessions", (b"k" + struct.pack(">qq", 30, 10), struct.pack(">q", 2)))
    for value, timestamp in ((b"a", 1000), (b"c", 1040), (b"late", 1020), (None, 1060), (b"too old", 900)):
        application.write("versions", (b"k", value), timestamp=timestamp)
    with serving(application) as browser:
        yield application, browser


@contextmanager
def serving(application: Application) -> Iterator[Browser]:
    with QueryableStores(application.app) as stores:
        server = ViewServer(application.app, stores, runner=FakeRunner())
        browser = Browser(server.start())
        assert stores.wait_until_caught_up(PATIENCE_S), stores.follower.trouble
        application.stores = stores
        yield browser
        browser.close()
        server.stop()


@pytest.fixture
def browser(served: tuple[Application, Browser]) -> Browser:
    return served[1]


@pytest.fixture
def application_served(served: tuple[Application, Browser]) -> Application:
    return served[0]


def keys(answer: Any) -> list[Any]:
    return [entry["key"] for entry in answer["entries"]]


def test_the_stores_are_told_with_position_and_lag(browser: Browser, application_served: Application) -> None:
    shown = browser("/stores")
    assert shown["caught_up"] is True
    assert [(store["name"], store["kind"]) for store in shown["stores"]] == [
        ("counts", "key-value"),
        ("numbers", "key-value"),
        ("windows", "window"),
        ("sessions", "session"),
        ("versions", "versioned"),
    ]
    counts = shown["stores"][0]
    assert counts["changelog"] == application_served.changelog("counts")
    # 25 records and the marker of their transaction; one and its marker.
    assert [(p["partition"], p["position"], p["lag"]) for p in counts["partitions"]] == [(0, 26, 0), (1, 2, 0)]


def test_one_key_is_looked_up_by_its_text(browser: Browser, application_served: Application) -> None:
    changelog = application_served.changelog("counts")
    assert browser("/stores/counts/keys/07") == {
        "store": "counts",
        "key": "07",
        "value": 7,
        "timestamp": 1000,
        "position": {changelog: {"0": 25, "1": 1}},
    }
    assert browser(f"/stores/counts/keys/{quote('a/b ä', safe='')}")["value"] == 7
    assert browser("/stores/numbers/keys/42")["value"] == {"x": [1, 2]}
    assert browser("/stores/numbers/keys/0000002a?format=hex")["key"] == 42


def test_ranges_prefixes_and_pages(browser: Browser) -> None:
    assert keys(browser("/stores/counts/range?from=03&to=05")) == ["03", "04", "05"]
    assert keys(browser("/stores/counts/prefix/1?limit=3")) == ["10", "11", "12"]
    seen: list[str] = []
    path = "/stores/counts/all?limit=10"
    while True:
        page = browser(path)
        seen += keys(page)
        if page["next"] is None:
            break
        path = f"/stores/counts/all?limit=10&after={quote(page['next'])}"
    assert seen == [*(f"{n:02d}" for n in range(25)), "a/b ä"]


def test_windows_and_sessions_of_a_key(browser: Browser) -> None:
    found = browser("/stores/windows/windows/k?from=10&to=1970-01-01T00:00:00.020Z")["entries"]
    assert [entry["window"] for entry in found] == [{"start": 10, "end": 20}, {"start": 20, "end": 30}]
    (session,) = browser("/stores/sessions/windows/k?from=20&to=25")["entries"]
    assert session == {"key": "k", "value": 2, "timestamp": 1000, "window": {"start": 10, "end": 30}}
    assert browser("/stores/sessions/windows/k?from=31")["entries"] == []


def test_windows_and_sessions_of_all_keys_are_asked_by_time(browser: Browser) -> None:
    starts = [entry["window"]["start"] for entry in browser("/stores/windows/all?from=5&to=1970-01-01")["entries"]]
    assert starts == []
    starts = [entry["window"]["start"] for entry in browser("/stores/windows/all?from=5&to=20")["entries"]]
    assert starts == [10, 20]
    assert [each["window"] for each in browser("/stores/sessions/all?from=30")["entries"]] == [{"start": 10, "end": 30}]
    assert browser("/stores/sessions/all?from=31")["entries"] == []
    assert browser("/stores/counts/all?from=5", 400)["message"] == "counts is a key-value store, not a window store"


def test_the_paths_are_told_as_openapi(browser: Browser) -> None:
    document = browser("/openapi.json")
    assert document["openapi"] == "3.1.0"
    assert {"/stores", "/stores/{store}/keys/{key}", "/status"} <= set(document["paths"])
    assert document["components"]["schemas"]["Problem"]["required"] == ["error", "message"]


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/stores/counts/keys/nobody", 404, "counts has no key nobody"),
        ("/stores/nothing/all", 404, "there is no store nothing; there are counts, numbers, windows, sessions"),
        ("/nothing", 404, "/nothing is nothing here"),
        ("/stores/numbers/keys/abc", 400, "'abc' cannot be a key of numbers: Serdes.int"),
        ("/stores/windows/keys/k", 400, "windows is a window store, not a key-value store"),
        ("/stores/counts/windows/k", 400, "counts is a key-value store, not a window store"),
        ("/stores/counts/all?limit=0", 400, "limit=0: a number from 1 to 10000 is expected"),
        ("/stores/counts/all?limit=%C2%B2", 400, "a number from 1 to 10000 is expected"),
        ("/stores/counts/all?limit=--5", 400, "limit=--5: a number from 1 to 10000 is expected"),
        ("/stores/windows/windows/k?from=--5", 400, "from=--5: milliseconds or a time"),
        ("/stores/counts/all?after=!", 400, "after=!: the `next` of an answer is expected"),
        ("/stores/windows/windows/k?from=noon", 400, "from=noon: milliseconds or a time"),
        ("/stores/counts/everything", 404, "/stores/counts/everything is nothing here; there are /stores, /health"),
        ("/stores/counts/keys/zz?format=hex", 400, "'zz' is not hex"),
    ],
)
def test_what_cannot_be_answered_is_told_in_json(browser: Browser, path: str, status: int, says: str) -> None:
    answer = browser(path, status)
    assert says in answer["message"]
    assert answer["error"] == {404: "not_found", 400: "bad_request"}[status]


def test_only_reading_is_offered_and_only_to_this_machine(browser: Browser) -> None:
    assert "POST is not offered" in browser.text("/stores", 405, method="POST")
    assert "names another machine" in browser.text("/stores", 403, Host="evil.example")
    assert browser.text("/stores", method="HEAD") == ""
    # The connection is still good.
    assert browser("/stores/counts/keys/01")["value"] == 1


def test_health_metrics_and_status(browser: Browser, application_served: Application) -> None:
    name = application_served.app.application_id
    assert browser("/health") == {"status": "up", "state": "RUNNING", "stores": "caught up"}
    assert browser("/status")["state"] == "RUNNING"
    text = browser.text("/metrics")
    assert "# TYPE kafka_streams_stream_thread_metrics_process_rate gauge\n" in text
    assert f'process_rate{{client_id="{name}",thread_id="a\\"b"}} 12.5\n' in text
    assert f'kafka_streams_stream_state_metrics_changelog_lag{{client_id="{name}",store_id="counts"}} 0\n' in text


def test_what_is_committed_appears_and_what_is_aborted_does_not(application: Application) -> None:
    application.make_topics()
    with QueryableStores(application.app) as stores:
        application.write("counts", (b"a", struct.pack(">q", 1)), (b"b", struct.pack(">q", 1)))
        application.write("counts", (b"a", struct.pack(">q", 99)), (b"c", struct.pack(">q", 99)), commit=False)
        application.write("counts", (b"b", None), (b"end", struct.pack(">q", 1)))
        eventually(lambda: stores["counts"].get("end") is not None)
        assert [(found.key, found.value) for found in stores["counts"].all().entries] == [("a", 1), ("end", 1)]


def test_a_view_waits_for_its_topic_and_goes_on_after_a_restart(application: Application) -> None:
    application.make_topics("counts", "numbers", "windows")
    with application.kept() as stores:
        application.write("counts", (b"a", struct.pack(">q", 1)))
        eventually(lambda: stores["counts"].get("a") is not None)
        eventually(lambda: stores.follower.trouble == f"waiting for the topic {application.changelog('sessions')}")
        assert not stores.follower.caught_up
        application.make_topics("sessions")
        application.write("sessions", (b"k" + struct.pack(">qq", 30, 10), struct.pack(">q", 2)))
        eventually(lambda: bool(stores["sessions"].fetch("k").entries))
    with application.kept() as stores:
        # Before anything is read again.
        assert stores["counts"].view.positions() == {0: 2, 1: 0}
        found = stores["counts"].get("a")
        assert found is not None and found.value == 1
        application.write("counts", (b"a", struct.pack(">q", 2)))
        eventually(lambda: stores["counts"].get("a") == found._replace(value=2))


def test_a_lookup_is_right_while_the_view_grows_and_quick_when_it_has(application: Application) -> None:
    """The promise is 5 ms. Not timed while it grows: here the broker shares the interpreter with who asks."""
    application.make_topics()
    application.write("counts", (b"hot", struct.pack(">q", 1)))
    with QueryableStores(application.app) as stores:
        server = ViewServer(application.app, stores)
        browser = Browser(server.start())
        eventually(lambda: stores["counts"].get("hot") is not None)
        pairs = [*((b"%d" % n, bytes(8)) for n in range(20_000)), (b"end", bytes(8))]
        writing = threading.Thread(target=application.write, args=("counts", *pairs))
        writing.start()
        while stores["counts"].get("end") is None:
            assert browser("/stores/counts/keys/hot")["value"] == 1
        writing.join()

        def quick() -> bool:
            times = []
            for _ in range(200):
                began = time.process_time()
                browser("/stores/counts/keys/hot")
                times.append(time.process_time() - began)
            return sorted(times)[50] < 0.005

        # Of the processor, as a busy machine makes any of them wait; the rest of this process has its share in some.
        eventually(quick, "a lookup within 5 ms")
        browser.close()
        server.stop()


# ---- queries of version 2


def asked(application: Application, store: str, query: Query, partition: int = 0) -> Any:
    result = application.stores.query(StateQueryRequest(store, query, partitions=frozenset({partition})))
    (found,) = result.partition_results.values()
    assert found.is_success, found
    return found.result


def test_each_partition_answers_for_itself(application_served: Application) -> None:
    request = StateQueryRequest("counts", KeyQuery("a/b ä"))
    results = application_served.stores.query(request).partition_results
    assert {number: result.result for number, result in results.items()} == {0: None, 1: 7}
    only = application_served.stores.query(request).only_partition_result
    assert only is not None and only.result == 7


def test_keys_and_ranges_are_asked_with_and_without_times_from_either_end(application_served: Application) -> None:
    def ask(query: Query) -> Any:
        return asked(application_served, "counts", query)

    assert ask(TimestampedKeyQuery("07")) == ValueAndTimestamp(7, 1000)
    assert ask(KeyQuery("nobody")) is None
    assert list(ask(RangeQuery("03", "05"))) == [("03", 3), ("04", 4), ("05", 5)]
    assert list(ask(RangeQuery("23", "24", ResultOrder.DESCENDING))) == [("24", 24), ("23", 23)]
    assert list(ask(TimestampedRangeQuery(upper="00"))) == [("00", ValueAndTimestamp(0, 1000))]
    assert next(ask(PrefixQuery(b"2", ResultOrder.DESCENDING))) == ("24", 24)
    assert [value for _, value in ask(RangeQuery(upper="24"))] == list(range(25))


def test_windows_and_sessions_are_asked_by_key_and_by_time(application_served: Application) -> None:
    def windowed(start: int, end: int) -> Windowed:
        return Windowed("k", Window(start, end))

    found = asked(application_served, "windows", WindowKeyQuery("k", 5, 15))
    assert list(found) == [(10, 10)]
    found = asked(application_served, "windows", WindowRangeQuery(time_from_ms=10))
    assert list(found) == [(windowed(10, 20), 10), (windowed(20, 30), 20)]
    found = asked(application_served, "sessions", WindowRangeQuery("k"))
    assert list(found) == [(windowed(10, 30), 2)]


def test_versions_are_asked_as_of_a_time_and_between_times(application_served: Application, browser: Browser) -> None:
    versions = [VersionedRecord("a", 1000, 1020), VersionedRecord("late", 1020, 1040), VersionedRecord("c", 1040, 1060)]

    def ask(query: Query) -> Any:
        return asked(application_served, "versions", query)

    assert ask(VersionedKeyQuery("k")) is None
    assert ask(VersionedKeyQuery("k", 1039)) == versions[1]
    assert list(ask(MultiVersionedKeyQuery("k"))) == versions[::-1]
    assert list(ask(MultiVersionedKeyQuery("k", 1020, 1059, ResultOrder.ASCENDING))) == versions[1:]
    assert browser("/stores/versions/keys/k?as_of=1040")["value"] == "c"
    assert browser("/stores/versions/keys/k", 404)["error"] == "not_found"
    shown = browser("/stores/versions/versions/k?to=1010")["versions"]
    assert shown == [{"value": "a", "timestamp": 1000, "valid_to": 1020}]


def test_a_query_that_does_not_fit_the_store_is_told_as_such(application_served: Application) -> None:
    result = application_served.stores.query(StateQueryRequest("counts", WindowKeyQuery("k")))
    assert {each.failure_reason for each in result.partition_results.values()} == {FailureReason.UNKNOWN_QUERY_TYPE}
    result = application_served.stores.query(StateQueryRequest("counts", KeyQuery("k"), partitions=frozenset({7})))
    assert result.partition_results[7].failure_reason is FailureReason.DOES_NOT_EXIST


def test_a_bound_is_reached_once_the_input_it_names_has_been_processed(application: Application) -> None:
    """Read your own write: the position is that of the input, whatever came of it."""
    topic = f"{application.app.application_id}-input"
    bound = PositionBound.at(Position().with_component(topic, 0, 41))
    request = StateQueryRequest("counts", KeyQuery("own"), bound, frozenset({0}))
    application.make_topics()
    with serving(application) as browser:
        before = application.stores.query(request).partition_results[0]
        assert before.failure_reason is FailureReason.NOT_UP_TO_BOUND
        assert browser(f"/stores/counts/keys/own?bound={topic}:0:41", 409)["error"] == "conflict"
        application.write("counts", (b"own", struct.pack(">q", 1)), processed=42)
        after = application.stores.query(request, timeout_s=PATIENCE_S).partition_results[0]
        assert (after.result, after.position.components[topic]) == (1, {0: 41})
        assert browser(f"/stores/counts/keys/own?bound={topic}:0:41&wait_ms=1000")["position"][topic] == {"0": 41}


def test_where_a_key_lies_and_how_far_a_view_is_are_told_as_kafka_does(application_served: Application) -> None:
    stores = application_served.stores
    assert stores.query_metadata_for_key("counts", "k") == KeyQueryMetadata(
        None, frozenset(), partition_of_key(b"k", 2)
    )
    assert stores.query_metadata_for_key("counts", "k", lambda *_: 1) == KeyQueryMetadata(None, frozenset(), 1)
    lags = stores.all_local_store_partition_lags()
    assert lags.keys() == set(STORES)
    assert {each: lag.offset_lag for each, lag in lags["counts"].items()} == {0: 0, 1: 0}
    assert lags["counts"][0].current_offset_position == lags["counts"][0].end_offset_position > 0


class Topical(ContextSerde[str]):
    """Writes the topic in front of the text."""

    def encode_for(self, value: str, topic: str, headers: list[tuple[str, bytes | None]]) -> bytes:
        return f"{topic}|{value}".encode()

    def decode_from(self, data: bytes, topic: str, headers: list[tuple[str, bytes | None]]) -> str:
        mark, _, text = data.decode().partition("|")
        assert mark == topic
        return text + "".join(f"[{name}]" for name, _ in headers)


def test_a_serde_that_looks_at_the_topic_sees_the_changelogs_name_and_headers_of_a_tables_topic(
    bootstrap: str, new_topic_name: NewTopicName, tmp_path: Path
) -> None:
    name = new_topic_name()
    table, changelog = f"{name}-table", f"{name}-kept-changelog"
    builder = StreamsBuilder()
    builder.global_table(table, Consumed(Serdes.string, Topical()), Materialized("everywhere"))
    rows = builder.stream(f"{name}-rows", Consumed(Serdes.string, Serdes.string))
    rows.to_table(Materialized("kept", Topical(), Topical()))
    app = StreamsApp(name, builder.build(), bootstrap_servers=bootstrap, state_dir=str(tmp_path))
    with Cluster(parse_bootstrap(bootstrap)) as cluster:
        admin.create_topics(cluster, [admin.NewTopic(each, 1) for each in (table, changelog)])
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    producer.produce(table, f"{table}|x".encode(), b"k", headers=[("trace", b"7"), ("none", None)])
    producer.produce(changelog, f"{changelog}|y".encode(), f"{changelog}|k".encode())
    producer.flush()
    with QueryableStores(app) as stores:
        assert stores.wait_until_caught_up(PATIENCE_S)
        found = {store: [entry.value for entry in stores[store].all().entries] for store in stores}
        assert found == {"everywhere": ["x[trace][none]"], "kept": ["y"]}
        kept = stores["kept"].get("k")
        assert kept is not None and kept.value == "y"


def test_a_store_fed_by_a_pattern_is_as_far_as_the_topics_that_match(
    bootstrap: str, new_topic_name: NewTopicName, tmp_path: Path
) -> None:
    name = new_topic_name()
    topic, changelog = f"{name}-input", f"{name}-counts-changelog"
    builder = StreamsBuilder()
    every = builder.stream(re.compile(f"{name}-.*"), Consumed(Serdes.string, Serdes.string))
    every.group_by_key().count(Materialized("counts"))
    app = StreamsApp(name, builder.build(), bootstrap_servers=bootstrap, state_dir=str(tmp_path))
    with Cluster(parse_bootstrap(bootstrap)) as cluster:
        admin.create_topics(cluster, [admin.NewTopic(each, 1) for each in (topic, changelog)])
        groups.commit(cluster, name, {TopicPartition(topic, 0): 42, TopicPartition(changelog, 0): 3})
    written = PositionBound.at(Position().with_component(topic, 0, 41))
    with QueryableStores(app) as stores:
        result = stores.query(StateQueryRequest("counts", KeyQuery("k"), written), timeout_s=PATIENCE_S)
        assert result.partition_results[0].result is None
        assert dict(stores.position(stores["counts"]).components) == {topic: {0: 41}}


def test_http_answers_go_backwards_and_for_one_partition(browser: Browser) -> None:
    assert keys(browser("/stores/counts/range?from=03&to=05&reverse=true")) == ["05", "04", "03"]
    assert keys(browser("/stores/counts/all?partition=1")) == ["a/b ä"]
    assert "bound=x: TOPIC:PARTITION:OFFSET is expected" in browser("/stores/counts/all?bound=x", 400)["message"]
