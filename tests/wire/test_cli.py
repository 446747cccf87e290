"""The command line against a running node: what a person types, and what they see."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.cli.app import run
from tests.support.patience import PATIENCE_SECONDS

NewTopicName = Callable[[], str]


class Shell:
    """Runs commands in this process, against the node under test."""

    def __init__(self, capture: pytest.CaptureFixture[bytes], directory: Path) -> None:
        self._capture = capture
        self._directory = directory

    def __call__(self, *words: str, fails: int = 0) -> str:
        """Standard output; when the command is to fail, standard error."""
        self._capture.readouterr()
        code = run(words)
        captured = self._capture.readouterr()
        assert code == fails, (captured.out, captured.err)
        return (captured.err if fails else captured.out).decode()

    def eventually(self, *words: str, shows: str) -> None:
        """Kafka's brokers hear of changed settings a moment after the controller has agreed to them."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while shows not in (shown := self(*words)):
            assert time.monotonic() < deadline, f"{words} never shows {shows!r}: {shown}"

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--output", "json"))

    def json_failing(self, *words: str) -> Any:
        """Of a command that answers no, by its exit code."""
        self._capture.readouterr()
        assert run((*words, "--output", "json")) == 1
        return json.loads(self._capture.readouterr().out)

    def produce(self, topic: str, *words: str, lines: str | bytes, fails: int = 0) -> str:
        path = self._directory / "input"
        path.write_bytes(lines.encode() if isinstance(lines, str) else lines)
        return self("produce", topic, "--file", str(path), *words, fails=fails)


@pytest.fixture
def ottla(
    bootstrap: str, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Shell:
    monkeypatch.setenv("OTTLA_BOOTSTRAP", bootstrap)
    return Shell(capsysbinary, tmp_path)


def spawn(bootstrap: str, *words: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "ottla", *words, "--bootstrap", bootstrap],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


# Topics.


def test_a_topic_lives_from_create_to_delete(ottla: Shell, topic: str) -> None:
    created = ottla("topics", "create", topic, "--partitions", "3", "-c", "retention.ms=86400000")
    assert created == f"created {topic} (3 partitions, 1 replica)\n"
    assert topic in ottla("topics", "list", "--names").splitlines()
    (described,) = ottla.json("topics", "describe", topic)
    assert described["configs"] == {"retention.ms": "86400000"}
    assert [(p["partition"], p["start"], p["end"]) for p in described["partitions"]] == [
        (0, 0, 0),
        (1, 0, 0),
        (2, 0, 0),
    ]
    shown = ottla("topics", "describe", topic)
    assert f"topic       {topic}\n" in shown
    assert "config      retention.ms=86400000\n" in shown
    assert ottla("topics", "add-partitions", topic, "-n", "2") == f"{topic} has 5 partitions\n"
    assert ottla("topics", "delete", topic) == f"deleted {topic}\n"
    assert topic not in ottla("topics", "list", "--names").splitlines()


def test_the_flags_of_kafka_topics_work_as_well(ottla: Shell, topic: str) -> None:
    ottla("topics", "--create", "--topic", topic, "--partitions", "2", "--replication-factor", "1")
    ottla("topics", "--alter", "--topic", topic, "--partitions", "4")
    rows = ottla.json("topics", "--list")
    assert {"name": topic, "partitions": 4, "replicas": 1} in rows
    ottla("topics", "--delete", "--topic", topic)


def test_a_dry_run_creates_nothing(ottla: Shell, topic: str) -> None:
    assert ottla("topics", "create", topic, "--dry-run").startswith(f"would create {topic}")
    assert topic not in ottla("topics", "list", "--names").splitlines()


def test_refusals_name_the_topic_the_error_and_what_to_do(ottla: Shell, topic: str) -> None:
    ottla("topics", "create", topic)
    assert "(TOPIC_ALREADY_EXISTS)\n  `ottla topics describe`" in ottla("topics", "create", topic, fails=1)
    assert ottla("topics", "create", topic, "--if-not-exists") == f"{topic} exists already\n"
    assert "(INVALID_TOPIC_EXCEPTION)" in ottla("topics", "create", "no/slash", fails=1)
    assert "(INVALID_REPLICATION_FACTOR)\n" in ottla("topics", "create", f"{topic}-b", "-r", "9", fails=1)
    assert "(INVALID_PARTITIONS)" in ottla("topics", "create", f"{topic}-c", "-p", "0", fails=1)
    assert "(UNKNOWN_TOPIC_OR_PARTITION)\n  `ottla topics list`" in ottla("topics", "describe", f"{topic}-d", fails=1)
    assert "(UNKNOWN_TOPIC_OR_PARTITION)" in ottla("topics", "delete", f"{topic}-d", fails=1)
    assert ottla("topics", "delete", f"{topic}-d", "--if-exists") == f"{topic}-d does not exist\n"


def test_trim_drops_what_lies_below_an_offset(ottla: Shell, topic: str) -> None:
    ottla("topics", "create", topic, "-p", "1")
    ottla.produce(topic, lines="a\nb\nc\nd\n")
    assert ottla.json("topics", "trim", topic, "-o", "-1") == [{"topic": topic, "partition": 0, "start": 3}]
    assert ottla("consume", topic, "-e") == "d\n"
    assert ottla("consume", topic, "-o", "0:end") == "d\n"
    ottla("topics", "trim", topic)
    assert ottla("consume", topic, "-e") == ""


# Configs.


def test_settings_are_set_shown_and_taken_back(ottla: Shell, topic: str) -> None:
    ottla("topics", "create", topic)
    assert "has no settings of its own" in ottla("configs", "describe", "topic", topic)
    ottla("configs", "set", "topic", topic, "retention.ms=1000", "cleanup.policy=delete")
    ottla("configs", "append", "topic", topic, "cleanup.policy=compact")
    ottla.eventually("configs", "describe", "topic", topic, shows="delete,compact")
    entries = ottla.json("configs", "describe", "topic", topic)
    assert {entry["name"]: (entry["value"], entry["source"]) for entry in entries} == {
        "cleanup.policy": ("delete,compact", "topic"),
        "retention.ms": ("1000", "topic"),
    }
    ottla("configs", "subtract", "topic", topic, "cleanup.policy=delete")
    ottla("configs", "delete", "topic", topic, "retention.ms")
    ottla.eventually("configs", "describe", "topic", topic, "retention.ms", shows="default")
    shown = ottla("configs", "describe", "topic", topic)
    assert shown.splitlines()[1].split() == ["cleanup.policy", "compact", "topic", "list"]
    one = ottla.json("configs", "describe", "topic", topic, "retention.ms")
    assert (one[0]["value"], one[0]["source"]) == ("604800000", "default")


def test_the_flags_of_kafka_configs_work_as_well(ottla: Shell, topic: str) -> None:
    ottla("topics", "create", topic)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    ottla("configs", "--alter", *entity, "--add-config", "cleanup.policy=[compact,delete],retention.ms=5")
    ottla("configs", "--alter", *entity, "--delete-config", "retention.ms")
    ottla.eventually("configs", "--describe", "--topic", topic, shows="compact,delete")


def test_a_brokers_settings_come_with_type_source_and_words(ottla: Shell) -> None:
    (first, *_) = ottla.json("cluster", "info")["brokers"]
    entries = ottla.json("configs", "describe", "broker", str(first["id"]), "--all", "--docs", "--synonyms")
    found = {entry["name"]: entry for entry in entries}
    assert found["log.segment.bytes"]["type"] == "int"
    assert found["num.partitions"]["documentation"]
    assert found["process.roles"]["read_only"]


def test_wrong_settings_are_refused_by_name(ottla: Shell, topic: str) -> None:
    ottla("topics", "create", topic)
    assert "retention.msx" in ottla("configs", "set", "topic", topic, "retention.msx=1", fails=1)
    assert "(INVALID_CONFIG)" in ottla("configs", "set", "topic", topic, "retention.ms=soon", fails=1)
    assert "did you mean retention.ms?" in ottla("configs", "describe", "topic", topic, "retention.msx", fails=2)
    assert "the cluster has no such broker" in ottla("configs", "describe", "broker", "4711", fails=1)


# Produce and consume.


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", ["all", "1"])
def test_lines_go_in_and_come_out(ottla: Shell, topic: str, codec: str, acks: str) -> None:
    ottla("topics", "create", topic, "-p", "1")
    lines = "".join(f"line {number}\n" for number in range(2000))
    written = ottla.produce(topic, "-z", codec, "-a", acks, lines=lines)
    assert written == f"wrote 2000 records to {topic}: partition 0 offsets 0-1999\n"
    assert ottla("consume", topic, "-e") == lines


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_record_of_equal_bytes_comes_back_however_small_it_was_packed(ottla: Shell, topic: str, codec: str) -> None:
    ottla("topics", "create", topic, "-p", "1", "-c", "cleanup.policy=compact")
    value = "a" * 1_100_000
    ottla.produce(topic, "-z", codec, "-k", "key", lines=f"{value}\n")
    assert ottla("consume", topic, "-e") == f"{value}\n"


def test_acks_0_is_written_without_an_offset_to_tell(ottla: Shell, topic: str) -> None:
    ottla("topics", "create", topic, "-p", "1")
    assert ottla.produce(topic, "-a", "0", lines="a\nb\n") == f"wrote 2 records to {topic}: partition 0 (2)\n"
    assert ottla("consume", topic, "-n", "2") == "a\nb\n"


def test_keys_headers_partitions_and_formats(ottla: Shell, topic: str) -> None:
    ottla("topics", "create", topic, "-p", "2")
    ottla.produce(topic, "-K", ":", "-H", "source=shell", "-p", "1", "--timestamp", "1700000000000", lines="k:v:w\n")
    shown = ottla("consume", topic, "-e", "-f", r"%t/%p/%o %k=%v %h %T{iso} %H\n")
    assert shown == f"{topic}/1/0 k=v:w source=shell 2023-11-14T22:13:20.000Z 1\n"


def test_a_key_lands_where_java_clients_would_put_it(ottla: Shell, topic: str) -> None:
    ottla("topics", "create", topic, "-p", "7")
    ottla.produce(topic, "-K", "=", lines="21=a\nfoobar=b\nabc=c\n")
    placed = dict(line.split() for line in ottla("consume", topic, "-e", "-f", r"%k %p\n").splitlines())
    hashes = {"21": -973932308, "foobar": -790332482, "abc": 479470107}
    assert placed == {key: str((code & 0x7FFFFFFF) % 7) for key, code in hashes.items()}


def test_null_keys_and_values(ottla: Shell, topic: str) -> None:
    ottla("topics", "create", topic, "-p", "1")
    ottla.produce(topic, "-K", ":", "--null", "NULL", lines="a:NULL\nNULL:b\n")
    assert ottla("consume", topic, "-e", "-f", r"%k{repr} %v{repr}\n") == "b'a' None\nNone b'b'\n"


def test_json_out_is_json_in(ottla: Shell, new_topic_name: NewTopicName) -> None:
    one, two = new_topic_name(), new_topic_name()
    for name in (one, two):
        ottla("topics", "create", name, "-p", "2")
    given = (
        '{"key":"a","value":"1","partition":0,"timestamp":5,"headers":[{"key":"h","value":"x"},{"key":"n","value":null}]}\n'
        '{"key":null,"value_base64":"/w==","partition":1,"timestamp":6}\n'
        '{"key":"c","value":null,"partition":1,"timestamp":7}\n'
    )
    ottla.produce(one, "--json", lines=given)
    first = ottla("consume", one, "-e", "--json")
    ottla.produce(two, "--json", lines=first)
    second = ottla("consume", two, "-e", "--json")
    assert sorted(first.splitlines()) == sorted(second.replace(two, one).splitlines())
    records = [json.loads(line) for line in first.splitlines()]
    assert sorted((r["partition"], r["offset"], r["timestamp"]) for r in records) == [(0, 0, 5), (1, 0, 6), (1, 1, 7)]


def test_a_bad_line_is_told_with_its_number_and_what_came_before_is_kept(ottla: Shell, topic: str) -> None:
    ottla("topics", "create", topic, "-p", "1")
    shown = ottla.produce(topic, "--json", lines='{"value": "good"}\nbad\n', fails=1)
    assert f"wrote 1 record to {topic}: partition 0 offset 0 before this:" in shown
    assert "input, line 2: it is not JSON" in shown
    assert ottla("consume", topic, "-e") == "good\n"


def test_a_dash_is_standard_input_and_may_stand_among_files(ottla: Shell, bootstrap: str, topic: str) -> None:
    ottla("topics", "create", topic, "-p", "1")
    with spawn(bootstrap, "produce", topic, "--file", "-") as producer:
        told, _ = producer.communicate(b"a\nb\n")
    assert told.decode() == f"wrote 2 records to {topic}: partition 0 offsets 0-1\n"


def test_compacted_topics_names_and_partitions_are_told_with_a_way_out(ottla: Shell, topic: str) -> None:
    ottla("topics", "create", topic, "-p", "1", "-c", "cleanup.policy=compact")
    assert "a record without a key on a compacted topic" in (told := ottla.produce(topic, lines="x\n", fails=1))
    assert "-k KEY" in told
    assert f"topic {topic} has no partition 3" in ottla.produce(topic, "-p", "3", lines="x\n", fails=1)
    told = ottla.produce("not a name", lines="x\n", fails=1)
    assert "1 to 249 ASCII letters" in told
    assert "does not exist yet" not in told


def test_a_whole_file_is_one_record(ottla: Shell, topic: str) -> None:
    ottla("topics", "create", topic, "-p", "1")
    content = b"two\nlines\n\0\xff" * 1000
    ottla.produce(topic, "--whole", lines=content)
    assert ottla("consume", topic, "-e", "-f", "%V %v{hex}") == f"{len(content)} {content.hex()}"


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ("start:end", "0123456789"),
        (":3", "012"),
        ("-3:end", "789"),
        ("+2:+4", "23"),
        ("4:6", "45"),
        ("8:99", "89"),
        ("@1700000000004:end", "456789"),
        ("@1700000000004:1700000000006", "45"),
        ("@1700000000004:3ms", "456"),
        ("@2023-11-14T22:13:20.008Z:end", "89"),
        ("@-1h:end", ""),
        ("99:120", ""),
    ],
)
def test_ranges_of_offsets_and_times(ottla: Shell, topic: str, offsets: str, expected: str) -> None:
    ottla("topics", "create", topic, "-p", "1", "-c", "retention.ms=-1")
    lines = "".join(f'{{"value":"{n}","timestamp":{1_700_000_000_000 + n}}}\n' for n in range(10))
    ottla.produce(topic, "--json", lines=lines)
    assert ottla("consume", topic, "-o", offsets, "-f", "%v") == expected


def test_several_topics_and_chosen_partitions(ottla: Shell, new_topic_name: NewTopicName) -> None:
    one, two = new_topic_name(), new_topic_name()
    for name in (one, two):
        ottla("topics", "create", name, "-p", "3")
        for partition in range(3):
            ottla.produce(name, "-p", str(partition), lines=f"{partition}\n")
    shown = ottla("consume", one, two, "-p", "0,2", "-e", "-f", r"%t %v\n")
    assert sorted(shown.splitlines()) == sorted(f"{name} {p}" for name in (one, two) for p in (0, 2))
    assert f"{one} has no partition 3: it has 0 to 2" in ottla("consume", one, "-p", "3", fails=2)


def test_n_stops_in_the_middle_of_a_batch(ottla: Shell, topic: str) -> None:
    ottla("topics", "create", topic, "-p", "1")
    ottla.produce(topic, lines="a\nb\nc\nd\n")
    assert ottla("consume", topic, "-o", "1", "-n", "2") == "b\nc\n"


def test_a_batch_above_the_topics_limit_is_split_and_a_record_above_it_refused(ottla: Shell, topic: str) -> None:
    ottla("topics", "create", topic, "-p", "1", "-c", "max.message.bytes=2000")
    lines = "".join(f"{number:0100}\n" for number in range(500))
    ottla.produce(topic, lines=lines)
    assert ottla("consume", topic, "-e") == lines
    shown = ottla.produce(topic, lines="x" * 5000, fails=1)
    assert "(MESSAGE_TOO_LARGE)\n" in shown
    assert "max.message.bytes=N`" in shown


def test_consuming_what_is_not_there_fails_at_once(ottla: Shell, topic: str) -> None:
    assert f"{topic}: " in ottla("consume", topic, fails=1)


# Processes: standard input, signals, pipes.


def test_standard_input_is_sent_as_it_comes_and_a_follower_sees_it(bootstrap: str, ottla: Shell, topic: str) -> None:
    ottla("topics", "create", topic, "-p", "1")
    producer = spawn(bootstrap, "produce", topic)
    consumer = spawn(bootstrap, "consume", topic)
    assert producer.stdin is not None and consumer.stdout is not None
    for line in (b"first\n", b"second\n"):
        producer.stdin.write(line)
        producer.stdin.flush()
        # Only a producer that does not wait for more input lets this line through.
        assert consumer.stdout.readline() == line
    consumer.send_signal(signal.SIGINT)
    assert consumer.communicate(timeout=PATIENCE_SECONDS) == (b"", b"")
    assert consumer.returncode == 0
    out, err = producer.communicate(timeout=PATIENCE_SECONDS)
    assert (out, err) == (f"wrote 2 records to {topic}: partition 0 offsets 0-1\n".encode(), b"")


def test_a_reader_that_has_had_enough_ends_the_command_quietly(bootstrap: str, ottla: Shell, topic: str) -> None:
    ottla("topics", "create", topic, "-p", "1")
    ottla.produce(topic, lines="".join(f"{number}\n" for number in range(50_000)))
    consumer = spawn(bootstrap, "consume", topic)
    assert consumer.stdout is not None and consumer.stderr is not None
    assert consumer.stdout.readline() == b"0\n"
    consumer.stdout.close()
    assert consumer.wait(timeout=PATIENCE_SECONDS) == 0
    assert consumer.stderr.read() == b""
    consumer.stderr.close()
    assert consumer.stdin is not None
    consumer.stdin.close()


# The cluster.


def test_the_cluster_tells_what_it_is_made_of(ottla: Shell, topic: str) -> None:
    ottla("topics", "create", topic, "-p", "1")
    ottla.produce(topic, lines="hello\n")
    info = ottla.json("cluster", "info")
    assert [broker["state"] for broker in info["brokers"]] == ["up"]
    quorum = ottla.json("quorum", "status")
    assert [replica["role"] for replica in quorum["replicas"]] == ["leader"]
    features = ottla.json("cluster", "features")
    assert "metadata.version" in [feature["feature"] for feature in features["features"]]
    replicas = ottla.json("cluster", "log-dirs", "--replicas")
    sizes = {(row["topic"], row["partition"]): row["size"] for row in replicas}
    assert sizes[topic, 0] > 60
    assert "online" in ottla("cluster", "log-dirs")


def test_dump_log_reads_what_the_node_wrote(ottla: Shell, topic: str) -> None:
    ottla("topics", "create", topic, "-p", "1")
    ottla.produce(topic, "-z", "zstd", lines="hello\nworld\n")
    (directory, *_) = ottla.json("cluster", "log-dirs")
    segment = Path(directory["directory"]) / f"{topic}-0" / f"{0:020}.log"
    shown = ottla("dump-log", str(segment), "-d", "--data")
    assert "compresscodec: zstd" in shown
    assert "payload: hello\n" in shown
    assert "payload: world\n" in shown
