"""A sink that goes on though another has taken its place writes nothing more: asked of real brokers without Spark."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client
from ottla.client.groups import decided, delete_offsets
from ottla.connect.jobs import fence, sink_query
from ottla.connect.jobs.reports import SinkReport
from ottla.connect.jobs.sink_planning import Portion, columns_in, told_spans
from ottla.connect.jobs.sink_query import SinkDelivery
from ottla.connect.jobs.sink_task import SinkTask
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.spi import Columns
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink.transaction import Fenced
from ottla.testing import Cluster
from ottla.testing.security import as_java

TEXT = "org.apache.kafka.connect.storage.StringConverter"


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


def spec_of(kafka: Cluster, folder: Path, topic: str, **more: str) -> JobSpec:
    config = {
        "connector.class": "files-sink",
        "directory": str(folder / "out"),
        "topics": topic,
        "key.converter": TEXT,
        "value.converter": TEXT,
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return JobSpec(f"sink-{topic}", config, kafka.bootstrap_servers, "connect", "connect-offsets", str(folder))


class Life:
    """Of a sink: what the query does, step by step."""

    def __init__(self, spec: JobSpec) -> None:
        self._spec = spec
        self._delivery = SinkDelivery(spec)
        self._delivery.open()
        self._tasks: dict[int, SinkTask] = {}

    def __enter__(self) -> "Life":
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._tasks.values():
            task.close()
        self._delivery.close()

    @property
    def alerts(self) -> Sequence[str]:
        return self._delivery.alerts()

    def look(self) -> list[Portion]:
        return list(self._delivery.look(lambda _: None))

    def run(self, portion: Portion) -> SinkReport:
        task = self._tasks.setdefault(portion.task, SinkTask(self._spec))
        task.belongs_to(portion.sender)
        return task.run(portion.task, told_spans(portion), self.columns(portion))

    def columns(self, portion: Portion) -> Iterator[Columns]:
        yield from columns_in(self._delivery._options(), portion.spans)

    def settle(self, *reports: SinkReport) -> None:
        self._delivery.settle(reports)

    def batch(self) -> None:
        self.settle(*[self.run(portion) for portion in self.look()])


def files(folder: Path) -> Mapping[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.rglob("*.json")) if path.is_file()}


def offset_of(kafka: Cluster, spec: JobSpec, topic: str) -> int:
    place = TopicPartition(topic, 0)
    with Client(parse_bootstrap(kafka.bootstrap_servers)) as client:
        return decided(client, spec.group, [place])[place].offset


def lines(*numbers: int) -> str:
    return "".join(f'"{number}"\n' for number in numbers)


def test_one_that_stood_still_does_not_write_a_shorter_file_over_that_of_its_successor(
    kafka: Cluster, tmp_path: Path
) -> None:
    kafka.create_topic("still", partitions=1)
    kafka.produce("still", "0", "1", partition=0)
    spec = spec_of(kafka, tmp_path, "still")
    with Life(spec) as before:
        (portion,) = before.look()
        kafka.produce("still", "2", "3", partition=0)
        with Life(spec) as after:
            after.batch()
            written = files(tmp_path)
            assert written == {"still+0+0000000000.json": lines(0, 1, 2, 3)}
            report = before.run(portion)
            assert report.failed is not None
            assert "another instance writes as 'connect-sink-still-0' now" in report.failed.text
            with pytest.raises(Fenced):
                before.settle(report)
            assert files(tmp_path) == written
            assert offset_of(kafka, spec, "still") == 4
            kafka.produce("still", "4", partition=0)
            after.batch()
            assert offset_of(kafka, spec, "still") == 5


def test_one_that_stood_still_between_reading_and_its_end_writes_nothing(
    kafka: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.create_topic("midst", partitions=1)
    kafka.produce("midst", "0", "1", partition=0)
    spec = spec_of(kafka, tmp_path, "midst")

    class Halting(Life):
        def columns(self, portion: Portion) -> Iterator[Columns]:
            yield from super().columns(portion)
            kafka.produce("midst", "2", partition=0)
            with Life(spec) as after:
                after.batch()

    monkeypatch.setattr(fence, "FRESH_S", 0.0)
    with Halting(spec) as before:
        (portion,) = before.look()
        report = before.run(portion)
    assert report.failed is not None
    assert "another instance" in report.failed.text
    assert files(tmp_path) == {"midst+0+0000000000.json": lines(0, 1, 2)}


def test_what_one_has_written_that_was_fenced_since_is_not_committed(kafka: Cluster, tmp_path: Path) -> None:
    kafka.create_topic("late", partitions=1)
    kafka.produce("late", "0", partition=0)
    spec = spec_of(kafka, tmp_path, "late")
    with Life(spec) as before:
        report = before.run(before.look()[0])
        assert report.failed is None
        with Life(spec) as after, pytest.raises(Fenced):
            before.settle(report)
        with Life(spec) as after:
            (portion,) = after.look()
            assert [(span.start, span.end) for span in portion.spans] == [(0, 1)]


def test_one_that_has_nothing_to_do_keeps_its_place_from_being_forgotten(
    kafka: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.create_topic("idle", partitions=1)
    kafka.produce("idle", "0", partition=0)
    spec = spec_of(kafka, tmp_path, "idle")
    with Life(spec) as life, Client(parse_bootstrap(kafka.bootstrap_servers)) as client:
        life.batch()
        delete_offsets(client, spec.group, [TopicPartition("idle", 0)])
        assert life.look() == []
        assert decided(client, spec.group, [TopicPartition("idle", 0)]) == {}
        monkeypatch.setattr(sink_query, "AGAIN_S", 0.0)
        assert life.look() == []
        assert offset_of(kafka, spec, "idle") == 1


def test_whose_user_may_not_write_as_the_transactional_id_goes_on_and_says_so(tmp_path: Path) -> None:
    with Cluster(security="SASL_PLAINTEXT", offsets_topic_num_partitions=1) as guarded:
        guarded.create_topic("plain", partitions=1)
        guarded.produce("plain", "0", partition=0)
        reader = guarded.user("reader", "r-secret", may=["read topic:plain", "read group:connect-sink-plain"])
        logs_in = {name: text for name, text in as_java(reader).items() if name.startswith(("sasl.", "security."))}
        spec = replace(spec_of(guarded, tmp_path, "plain"), client=logs_in)
        with Life(spec) as life:
            life.batch()
            assert ["WRITE" in alert for alert in life.alerts] == [True]
        assert files(tmp_path) == {"plain+0+0000000000.json": lines(0)}
        with Life(spec) as again:
            assert again.look() == []
