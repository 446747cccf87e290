"""Where a sink begins, asked of real brokers without Spark: a topic that is deleted and made again, and offsets that
are not in the log any more."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ottla.client.addresses import parse_bootstrap
from ottla.client.admin import delete_topics
from ottla.client.blocking.cluster import Cluster as Client
from ottla.client.groups import commit
from ottla.connect.jobs.sink_planning import Portion, told_spans
from ottla.connect.jobs.sink_query import SinkDelivery
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.spi import ConfigRefused, Span
from ottla.model.ids import TopicPartition
from ottla.testing import Cluster
from tests.support.patience import eventually


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


def _spec(kafka: Cluster, tmp_path: Path, topic: str, **more: str) -> JobSpec:
    config = {
        "connector.class": "FileStreamSink",
        "file": str(tmp_path / "out"),
        "topics": topic,
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return JobSpec(f"sink-{topic}", config, kafka.bootstrap_servers, "connect", "connect-offsets", str(tmp_path))


def _spans(sink: SinkDelivery) -> list[Span]:
    """What there is to write."""
    found: list[Portion] = list(sink.look(lambda _: None))
    return [span for portion in found for span in told_spans(portion)]


def _looked(sink: SinkDelivery) -> list[tuple[int, int]]:
    """From where to where."""
    return [(span.start, span.end) for span in _spans(sink)]


def test_a_topic_that_is_deleted_and_made_again_is_told_and_then_read_from_its_beginning(
    kafka: Cluster, tmp_path: Path
) -> None:
    kafka.create_topic("again", partitions=1)
    kafka.produce("again", *(f"old {number}" for number in range(5)), partition=0)
    spec = _spec(kafka, tmp_path, "again")
    sink = SinkDelivery(spec)
    try:
        sink.open()
        (old,) = _spans(sink)
        assert (old.start, old.end) == (0, 5)
        with Client(parse_bootstrap(kafka.bootstrap_servers)) as client:
            commit(client, spec.group, {TopicPartition("again", 0): 5})
            delete_topics(client, ["again"])
        kafka.create_topic("again", partitions=1)
        kafka.produce("again", *(f"new {number}" for number in range(7)), partition=0)

        def told() -> bool:
            try:
                _looked(sink)
            except Exception as error:  # noqa: BLE001  the reader's own
                return "made anew" in str(error)
            return False

        eventually(told, "that the topic is another one")
    finally:
        sink.close()
    after = SinkDelivery(spec)
    try:
        after.open()
        (new,) = _spans(after)
        assert (new.start, new.end) == (0, 7)
        assert new.log != old.log, "a sink that keeps offsets with what it wrote takes them for those of one topic"
    finally:
        after.close()


def test_offsets_that_are_not_in_the_log_are_reset_as_the_consumer_says(kafka: Cluster, tmp_path: Path) -> None:
    kafka.create_topic("beyond", partitions=1)
    kafka.produce("beyond", *(str(number) for number in range(5)), partition=0)
    with Client(parse_bootstrap(kafka.bootstrap_servers)) as client:
        commit(client, "connect-sink-beyond", {TopicPartition("beyond", 0): 500})
    sink = SinkDelivery(_spec(kafka, tmp_path, "beyond"))
    try:
        sink.open()
        assert _looked(sink) == [(0, 5)]
    finally:
        sink.close()
    late = SinkDelivery(replace(_spec(kafka, tmp_path, "beyond"), defaults={"consumer.auto.offset.reset": "latest"}))
    try:
        late.open()
        assert _looked(late) == [], "as the worker says of its consumers"
    finally:
        late.close()
    strict = SinkDelivery(_spec(kafka, tmp_path, "beyond", consumer_override_auto_offset_reset="none"))
    try:
        with pytest.raises(ConfigRefused, match="stands at 500 of beyond-0, which has 0 to 5"):
            strict.open()
    finally:
        strict.close()


def test_records_are_gathered_until_files_are_full_or_their_time_is_over(kafka: Cluster, tmp_path: Path) -> None:
    kafka.create_topic("gathered", partitions=1)
    files = {"connector_class": "files-sink", "directory": str(tmp_path), "flush_size": "100"}
    sink = SinkDelivery(_spec(kafka, tmp_path, "gathered", rotate_interval_ms="3600000", **files))
    try:
        sink.open()
        kafka.produce("gathered", *map(str, range(99)), partition=0)
        assert _looked(sink) == []
        kafka.produce("gathered", *map(str, range(150)), partition=0)
        assert _looked(sink) == [(0, 200)]
        assert _looked(sink) == []
        assert sink.gather_ms == 0, "a look every hour would find a backlog once an hour"
    finally:
        sink.close()
    once = SinkDelivery(replace(_spec(kafka, tmp_path, "gathered", rotate_interval_ms="3600000", **files), once=True))
    try:
        once.open()
        assert _looked(once) == [(0, 249)]
    finally:
        once.close()
