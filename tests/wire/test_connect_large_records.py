"""Records that are larger than a topic takes, asked of real brokers without Spark: they are judged before they are
sent, and so are their letters."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ottla.connect import spi
from ottla.connect.jobs.reports import SinkReport, SourceReport
from ottla.connect.jobs.sink_planning import columns_in, told_spans
from ottla.connect.jobs.sink_query import SinkDelivery
from ottla.connect.jobs.sink_task import SinkTask
from ottla.connect.jobs.source_query import SourceDelivery
from ottla.connect.jobs.spec import JobSpec
from ottla.testing import Cluster
from ottla.testing.records import Record

TEXT = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
LARGE = "x" * 5_000_000
LETTERS = {
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": "letters",
    "errors.deadletterqueue.context.headers.enable": "true",
}


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster() as cluster:
        cluster.create_topic("lines", partitions=1)
        yield cluster


def spec_of(kafka: Cluster, folder: Path, config: dict[str, str]) -> JobSpec:
    texts = {"key.converter": TEXT, "value.converter": TEXT, **config}
    return JobSpec("large", texts, kafka.bootstrap_servers, "connect", "connect-offsets", str(folder))


def source_of(kafka: Cluster, folder: Path, *lines: str, **config: str) -> JobSpec:
    (folder / "in.txt").write_text("".join(f"{line}\n" for line in lines))
    given = {"connector.class": "FileStreamSource", "file": str(folder / "in.txt"), "topic": "lines"}
    return spec_of(kafka, folder, {**given, **config})


def read(spec: JobSpec) -> list[SourceReport]:
    """All that there is; what failed is not settled."""
    source = SourceDelivery(spec)
    found: list[SourceReport] = []
    try:
        work = source.open()
        while shares := source.look(lambda _: None):
            reports: list[SourceReport] = [work(share) for share in shares]  # type: ignore[misc]
            found += reports
            if any(report.failed for report in reports):
                break
            source.settle(reports)
    finally:
        source.close()
    return found


def said(letter: Record) -> dict[str, str]:
    return {name.removeprefix("__connect.errors."): (value or b"").decode() for name, value in letter.headers}


def values(kafka: Cluster, topic: str) -> list[bytes | None]:
    return [record.value for record in kafka.consume(topic)]


def test_a_source_s_record_that_is_too_large_is_a_letter_and_the_others_go_on(kafka: Cluster, tmp_path: Path) -> None:
    kafka.create_topic("letters", partitions=1, max_message_bytes=8_000_000)
    reports = read(source_of(kafka, tmp_path, "before", LARGE, "behind", **LETTERS))
    assert [report.failed for report in reports] == [None] * len(reports)
    assert values(kafka, "lines") == [b"before", b"behind"]
    (letter,) = kafka.consume("letters")
    assert letter.value == LARGE.encode()
    assert (said(letter)["stage"], said(letter)["exception.class.name"]) == (
        "KAFKA_PRODUCE",
        "org.apache.kafka.common.errors.RecordTooLargeException",
    )
    assert "whose max.message.bytes is 1,048,588" in said(letter)["exception.message"]


def test_a_letter_that_is_too_large_itself_says_what_is_not_in_it(kafka: Cluster, tmp_path: Path) -> None:
    kafka.create_topic("letters", partitions=1)
    read(source_of(kafka, tmp_path, "before", LARGE, **LETTERS))
    (letter,) = kafka.consume("letters")
    assert letter.value is None
    assert said(letter)["cut"].endswith("value of 5000000 bytes")
    assert said(letter)["stage"] == "KAFKA_PRODUCE"


class Made(spi.Prepared):
    """JSON that is there already, as changes of a database are."""

    def __len__(self) -> int:
        return 3

    def as_rows(self) -> list[spi.Row]:
        raise AssertionError("the short way is taken")

    def as_json(self, form: spi.JsonForm) -> Iterator[spi.Texts]:
        yield spi.Texts("lines", [b"a", b"b", b"c"], [b"1", LARGE.encode(), None])


class Ready(spi.Source[spi.Config]):
    def read(self, start: spi.Offset | None, limit: int) -> spi.Read:
        return spi.Read((), None) if start else spi.Read(Made(), end={"read": 3})


def test_so_is_one_that_its_source_has_converted_itself(kafka: Cluster, tmp_path: Path) -> None:
    kafka.create_topic("letters", partitions=1, max_message_bytes=8_000_000)
    plain = {f"{side}.converter": JSON for side in ("key", "value")}
    plain |= {f"{side}.converter.schemas.enable": "false" for side in ("key", "value")}
    spec = spec_of(kafka, tmp_path, {"connector.class": f"{__name__}:Ready", **plain, **LETTERS})
    spec = replace(spec, modules=(__name__,))
    reports = read(spec)
    assert [report.failed for report in reports] == [None] * len(reports)
    assert [(record.key, record.value) for record in kafka.consume("lines")] == [(b"a", b"1"), (b"c", None)]
    (letter,) = kafka.consume("letters")
    assert (letter.key, letter.value, said(letter)["stage"]) == (b"b", LARGE.encode(), "KAFKA_PRODUCE")


def test_where_none_is_tolerated_the_source_fails_with_the_reason(kafka: Cluster, tmp_path: Path) -> None:
    (report,) = read(source_of(kafka, tmp_path, LARGE))
    assert report.failed is not None
    assert "failed in KAFKA_PRODUCE" in report.failed.text
    assert "whose max.message.bytes is 1,048,588" in report.failed.text


def test_a_record_that_fits_once_it_is_compressed_is_sent(kafka: Cluster, tmp_path: Path) -> None:
    reports = read(source_of(kafka, tmp_path, LARGE, **{"producer.override.compression.type": "gzip"}))
    assert [report.failed for report in reports] == [None] * len(reports)
    assert values(kafka, "lines") == [LARGE.encode()]


def test_batches_are_no_larger_than_their_topic_takes(kafka: Cluster, tmp_path: Path) -> None:
    kafka.create_topic("narrow", partitions=1, max_message_bytes=20_000)
    lines = [f"line {number:095}" for number in range(3_000)]
    reports = read(source_of(kafka, tmp_path, *lines, topic="narrow"))
    assert [report.failed for report in reports] == [None] * len(reports)
    assert values(kafka, "narrow") == [line.encode() for line in lines]


def test_the_letters_of_a_sink_fit_their_topic(kafka: Cluster, tmp_path: Path) -> None:
    kafka.create_topic("letters", partitions=1, max_message_bytes=50_000)
    kafka.produce("lines", '{"good":1}', "{" + "x" * 49_500, "{" + "x" * 900_000, "{short", partition=0)
    sink = {"connector.class": "files-sink", "directory": str(tmp_path), "topics": "lines", "value.converter": JSON}
    spec = spec_of(kafka, tmp_path, {**sink, **LETTERS, "value.converter.schemas.enable": "false"})
    delivery = SinkDelivery(spec)
    task = SinkTask(spec)
    try:
        delivery.open()
        reports: list[SinkReport] = []
        for portion in delivery.look(lambda _: None):
            columns = (each for each in columns_in(delivery._options(), portion.spans))
            reports.append(task.run(portion.task, told_spans(portion), columns))
        delivery.settle(reports)
    finally:
        task.close()
        delivery.close()
    near, large, short = kafka.consume("letters")
    assert [len(letter.value or b"") for letter in (near, large, short)] == [0, 0, 6]
    assert [said(letter).get("cut", "").rpartition(", ")[2] for letter in (near, large, short)] == [
        "value of 49501 bytes",
        "value of 900001 bytes",
        "",
    ]
    assert [said(letter)["offset"] for letter in (near, large, short)] == ["1", "2", "3"]
