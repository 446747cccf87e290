"""Dead letters from a shell: shown, back to their topic, and straight into the target of the sink that refused them."""

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from ottla.cli.app import run
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client
from ottla.connect.redrive import AT_ONCE, DeadLetter, Letters, to_topics
from ottla.testing import Cluster

SAID = {"topic": "orders", "partition": "0", "connector.name": "sink", "stage": "VALUE_CONVERTER"}


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(offsets_topic_num_partitions=1, transaction_state_log_num_partitions=1) as cluster:
        yield cluster


def letters(kafka: Cluster, topic: str, values: list[bytes], of: str = "orders") -> None:
    kafka.create_topic(topic, 1)
    for number, value in enumerate(values):
        said = {**SAID, "topic": of, "offset": str(10 + number), "exception.message": f"no good: {number}"}
        headers = {f"__connect.errors.{name}": text for name, text in said.items()}
        kafka.produce(topic, value, headers={"own": "1", **headers})


def redriven(kafka: Cluster, *words: str, ends: int = 0) -> str:
    said = io.TextIOWrapper(io.BytesIO(), write_through=True)
    with redirect_stdout(said), redirect_stderr(said):
        status = run(["connect", "redrive", *words, "-b", kafka.bootstrap_servers])
    text = said.buffer.getvalue().decode()
    assert status == ends, text
    return str(text)


def test_letters_go_into_the_file_of_a_sink_each_once_and_what_is_refused_again_stays(
    kafka: Cluster, tmp_path: Path
) -> None:
    letters(kafka, "dlq", [b'{"a":1}', b"{poison", b'{"a":2}', b'{"a":3}'])
    out, sink = tmp_path / "out.txt", tmp_path / "sink.json"
    config = {"connector.class": "FileStreamSink", "file": str(out), "topics": "orders", "name": "sink"}
    sink.write_text(json.dumps(config))
    assert "orders-0:12" in redriven(kafka, "dlq", "--dry-run")
    said = redriven(kafka, "dlq", "--connector", str(sink), "--filter", "value~2")
    assert "1 letter written by sink" in said
    said = redriven(kafka, "dlq", "--connector", str(sink), ends=1)
    assert "2 letters written by sink" in said
    assert "refused once more, and kept: the record at offset 11 of orders-0" in said
    said = redriven(kafka, "dlq", "--connector", str(sink), "--json", ends=1)
    assert json.loads(said)["written"] == 0
    assert out.read_text() == "{a=2}\n{a=1}\n{a=3}\n"
    sink.write_text(json.dumps({**config, "value.converter": "org.apache.kafka.connect.storage.StringConverter"}))
    assert "1 letter written by sink" in redriven(kafka, "dlq", "--connector", str(sink))
    assert "0 letters" in redriven(kafka, "dlq", "--connector", str(sink))
    assert out.read_text().endswith("{poison\n")


def test_letters_go_back_to_their_topic_by_condition(kafka: Cluster) -> None:
    kafka.create_topic("orders", 1)
    letters(kafka, "dlq2", [b"one", b"two"])
    assert redriven(kafka, "dlq2", "--filter", "message~: 1") == "1 letter sent to orders\n"
    assert redriven(kafka, "dlq2") == "1 letter sent to orders\n"
    assert "no letter of dlq2 is left" in redriven(kafka, "dlq2")
    assert [record.value for record in kafka.consume("orders", 2)] == [b"two", b"one"]
    assert {record.headers for record in kafka.consume("orders")} == {(("own", b"1"),)}


def test_letters_that_do_not_tell_what_they_were_go_to_no_sink(kafka: Cluster, tmp_path: Path) -> None:
    kafka.create_topic("dlq3", 1)
    kafka.produce("dlq3", b"x")
    sink = tmp_path / "sink.json"
    sink.write_text(json.dumps({"connector.class": "FileStreamSink", "file": str(tmp_path / "o"), "topics": "orders"}))
    said = redriven(kafka, "dlq3", "--connector", str(sink), ends=1)
    assert "letter 0:0 does not tell which record of a sink it was" in said


def test_letters_are_sent_while_others_are_still_to_be_read(kafka: Cluster) -> None:
    kafka.create_topic("back", 1)
    letters(kafka, "dlq4", [b"x"] * (2 * AT_ONCE + 1))
    sent: list[int] = []
    with Client(parse_bootstrap(kafka.bootstrap_servers)) as client:
        queue = Letters(client, "dlq4")

        def watched() -> Iterator[DeadLetter]:
            for number, letter in enumerate(queue.read([])):
                if number % AT_ONCE == 1:
                    sent.append(len(kafka.consume("back")))
                yield letter

        assert to_topics(client, queue, watched(), "back") == {"back": 2 * AT_ONCE + 1}
        assert sent == [0, AT_ONCE]
        assert list(Letters(client, "dlq4").read([])) == []


def test_no_letter_is_sent_if_one_does_not_tell_its_topic(kafka: Cluster) -> None:
    kafka.create_topic("others", 1)
    letters(kafka, "dlq5", [b"told"], of="others")
    kafka.produce("dlq5", b"not told")
    assert "does not tell its topic: name one by --to" in redriven(kafka, "dlq5", ends=1)
    assert kafka.consume("others") == []
