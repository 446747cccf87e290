"""What a reset touches: which topics, which offsets, which files."""

from pathlib import Path

import pytest

from ottla.streams.app import StreamsApp
from ottla.streams.record import Record
from ottla.streams.run.reset import Bounds, Target, input_topics, internal_topics, is_internal
from ottla.streams.run.state_directory import AlreadyRunning, StateDirectory, applications
from ottla.streams.serdes import Serdes
from ottla.streams.topology.graph import RepartitionTopic
from ottla.streams.topology.processor import Processor
from ottla.streams.topology.topology import Stores, Topology


class Nothing(Processor):
    def process(self, record: Record) -> None: ...


def app(application_id: str = "orders") -> StreamsApp:
    topology = Topology()
    topology.add_source("in", "lines", "words")
    topology.add_source("by-pattern", pattern="log-.*")
    topology.add_processor(
        "count",
        Nothing,
        "in",
        "by-pattern",
        stores=(
            Stores.key_value("counts", Serdes.string, Serdes.long),
            Stores.key_value("scratch", Serdes.string, Serdes.long, logging=False),
        ),
    )
    topology.add_repartition_topic(RepartitionTopic("by-word-repartition"))
    topology.add_sink("re-keyed", "by-word-repartition", "count")
    topology.add_source("again", "by-word-repartition")
    topology.add_sink("out", "results", "again")
    return StreamsApp(application_id, topology)


# ---- offsets


@pytest.mark.parametrize(
    ("target", "old", "new"),
    [
        (Target("earliest"), 15, 10),
        (Target("latest"), 15, 20),
        (Target("offset", 12), 15, 12),
        (Target("offset", 3), 15, 10),
        (Target("offset", 99), 15, 20),
        (Target("shift", -2), 15, 13),
        (Target("shift", -99), 15, 10),
        (Target("shift", 99), 15, 20),
        (Target("shift", 1), None, 11),
        (Target("time", 1000), 15, 17),
    ],
)
def test_a_new_offset_stays_within_what_the_partition_holds(target: Target, old: int | None, new: int) -> None:
    assert target.offset(old, Bounds(10, 20), at_time=17) == new


def test_a_time_after_all_records_means_the_end() -> None:
    assert Target("time", 1000).offset(None, Bounds(10, 20), at_time=-1) == 20


# ---- topics


@pytest.mark.parametrize(
    ("topic", "internal"),
    [
        ("orders-counts-changelog", True),
        ("orders-by-word-repartition", True),
        ("orders-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic", True),
        ("orders-ottla-batches", True),
        ("orders", False),
        ("orders-results", False),
        ("orders-changelog", False),
        ("ordersx-counts-changelog", False),
        ("orders-v2-counts-changelog", False),
        ("orders-v2-ottla-batches", False),
    ],
)
def test_internal_topics_are_known_by_their_name_and_never_taken_from_an_application_with_a_longer_id(
    topic: str, internal: bool
) -> None:
    assert is_internal("orders", topic, ["orders-v2", "order"]) is internal


def test_an_application_knows_the_topics_that_it_makes() -> None:
    assert internal_topics(app()) == [
        "orders-by-word-repartition",
        "orders-counts-changelog",
        "orders-ottla-batches",
    ]


def test_inputs_are_what_is_read_without_the_own_repartition_topics() -> None:
    assert input_topics(app(), ["log-a", "log-b", "blog-c", "results"]) == ["lines", "log-a", "log-b", "words"]


# ---- files


def test_who_runs_an_application_holds_its_folder(tmp_path: Path) -> None:
    directory = StateDirectory(str(tmp_path), "orders")
    assert directory.owner() is None
    with directory.held({"queries": "http://127.0.0.1:8088"}):
        owner = directory.owner()
        assert owner is not None
        assert owner["queries"] == "http://127.0.0.1:8088"
        with pytest.raises(AlreadyRunning, match="orders is running already as process"), directory.held({}):
            pass
        with StateDirectory(str(tmp_path), "other").held({}):
            pass
    assert directory.owner() is None
    assert applications(str(tmp_path)) == ["orders", "other"]


def test_deleting_the_folder_leaves_the_lock(tmp_path: Path) -> None:
    directory = StateDirectory(str(tmp_path), "orders")
    with directory.held({}):
        for path in (directory.checkpoint("0"), directory.stream_time("0"), str(directory.views)):
            Path(path).mkdir(parents=True)
        (directory.views / "counts.sqlite").write_bytes(b"x")
    assert directory.contents() == [f"{directory.path}/{name}" for name in ("checkpoints", "stream-time", "views")]
    directory.delete()
    assert directory.contents() == []
    assert [path.name for path in Path(directory.path).iterdir()] == [".lock"]


def test_a_folder_elsewhere_is_deleted_as_a_whole() -> None:
    directory = StateDirectory("s3a://bucket/streams/", "orders")
    assert not directory.is_local
    assert directory.checkpoint("0") == "s3a://bucket/streams/orders/checkpoints/0"
    assert directory.contents() == ["s3a://bucket/streams/orders"]
