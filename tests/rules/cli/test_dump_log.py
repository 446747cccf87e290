"""`ottla dump-log` on files that Apache Kafka 4.3.1 wrote, beside what Kafka's own DumpLogSegments says about them.

tests/golden/dump_log holds the files and, as .txt, Kafka's words.
"""

import json
import shutil
from pathlib import Path

import pytest

from ottla.cli.app import run

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "dump_log"
SEGMENT = "00000000000000000000.log"


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy that may be damaged, as the current directory: file names in the output are then the short ones."""
    directory = tmp_path / "orders-0"
    shutil.copytree(GOLDEN / "orders-0", directory)
    monkeypatch.chdir(directory)
    return directory


def kafka_files(directory: Path) -> list[str]:
    return sorted(
        p.name for p in directory.iterdir() if p.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    )


def test_segments_indexes_and_snapshots_read_as_kafka_reads_them(
    orders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["dump-log", *kafka_files(orders), "--deep-iteration", "--print-data-log"]) == 0
    captured = capsys.readouterr()
    assert captured.out == (GOLDEN / "orders-0.txt").read_text()
    assert captured.err == ""


def test_a_directory_stands_for_its_files_checkpoints_included(
    orders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["dump-log", str(orders)]) == 0
    out = capsys.readouterr().out
    assert f"Dumping {orders}/leader-epoch-checkpoint\nepoch: 0 startOffset: 0\n" in out
    assert "version: 0\ntopic_id: " in out
    assert "| offset:" not in out


def contains(ours: object, theirs: object) -> bool:
    """Kafka leaves out what a record's version lacks or what has its default; we show every field."""
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and all(name in ours and contains(ours[name], theirs[name]) for name in theirs)
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(contains, ours, theirs))
    return ours == theirs


def test_the_metadata_log_and_its_snapshot_decode_to_what_kafka_shows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(GOLDEN)
    assert run(["dump-log", f"__cluster_metadata-0/{SEGMENT}", "bootstrap.checkpoint", "--data"]) == 0
    ours = capsys.readouterr().out.splitlines()
    theirs = (GOLDEN / "metadata.txt").read_text().splitlines()
    assert len(ours) == len(theirs)
    payloads = 0
    for mine, other in zip(ours, theirs, strict=True):
        if " payload: " in other:
            payloads += 1
            my_start, my_payload = mine.split(" payload: ")
            start, payload = other.split(" payload: ")
            assert my_start == start
            assert contains(json.loads(my_payload), json.loads(payload)), other
        elif "{" not in other:
            assert mine == other
    assert payloads > 10


def test_json_output_is_one_object_per_line(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["dump-log", SEGMENT, "-d", "--data", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["kind"] for line in lines[:3]] == ["heading", "batch", "record"]
    assert lines[2]["payload"] == "value 0"
    assert lines[1]["deleteHorizonMs"] is None


def damage(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


def test_a_flipped_bit_is_found_and_fails_the_command(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage(orders / SEGMENT, 100)
    assert run(["dump-log", SEGMENT]) == 1
    captured = capsys.readouterr()
    assert "isvalid: false" in captured.out
    assert f"{SEGMENT}: position 0, offset 0: the checksum does not match" in captured.err


@pytest.mark.parametrize("size", [1, 11, 60, 70])
def test_a_torn_end_is_told_with_its_size(orders: Path, capsys: pytest.CaptureFixture[str], size: int) -> None:
    whole = (orders / SEGMENT).read_bytes()
    (orders / SEGMENT).write_bytes(whole + whole[:size])
    assert run(["dump-log", SEGMENT]) == 1
    captured = capsys.readouterr()
    assert f"Found {size} invalid bytes at the end of {SEGMENT}\n" in captured.out
    assert f"position {len(whole)}: " in captured.err


def test_zeros_at_the_end_are_no_batch(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (orders / SEGMENT).open("ab") as file:
        file.write(bytes(4096))
    assert run(["dump-log", SEGMENT]) == 1
    assert "a batch claims 12 bytes" in capsys.readouterr().err


def test_an_offset_index_is_compared_with_its_segment(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = orders / "00000000000000000000.index"
    data = bytearray(index.read_bytes())
    data[3] = 3  # the first entry says 4
    index.write_bytes(data)
    assert run(["dump-log", index.name, "--verify-index-only"]) == 1
    captured = capsys.readouterr()
    assert captured.out == f"Dumping {index.name}\n"
    assert "Index offset: 3, log offset: 4" in captured.err


def test_a_time_index_is_compared_with_its_segment(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = orders / "00000000000000000000.timeindex"
    damage(index, 7)
    assert run(["dump-log", index.name]) == 1
    assert "log timestamp: 1700000000002 at offset 4" in capsys.readouterr().err


def test_what_kafka_allocated_ahead_is_not_an_entry(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("00000000000000000000.index", "00000000000000000000.timeindex"):
        with (orders / name).open("ab") as file:
            file.write(bytes(240))
        assert run(["dump-log", name]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 4 + 1


@pytest.mark.parametrize("name", ["00000000000000000000.index", "00000000000000000012.txnindex"])
def test_an_index_with_a_torn_entry_is_told(orders: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    with (orders / name).open("ab") as file:
        file.write(b"\0\0\0")
    assert run(["dump-log", name]) == 1
    assert "the last entry is torn" in capsys.readouterr().err


def test_a_damaged_producer_snapshot_is_told(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage(orders / "00000000000000000012.snapshot", 20)
    assert run(["dump-log", "00000000000000000012.snapshot"]) == 1
    assert "the checksum does not match, the snapshot is damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\n0\n", "does not begin with version 0"),
        ("0\n2\n0 0\n", "2 entries are announced, 1 are there"),
        ("0\n1\nx 0\n", "line 3: 'x 0' is not epoch startOffset"),
    ],
)
def test_a_damaged_checkpoint_is_told(
    orders: Path, capsys: pytest.CaptureFixture[str], content: str, message: str
) -> None:
    (orders / "leader-epoch-checkpoint").write_text(content)
    assert run(["dump-log", "leader-epoch-checkpoint"]) == 1
    assert message in capsys.readouterr().err


def test_foreign_and_missing_files_are_refused_by_name(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (orders / "notes.txt").write_text("hello")
    assert run(["dump-log", "notes.txt"]) == 2
    assert "notes.txt is no file of Kafka's" in capsys.readouterr().err
    assert run(["dump-log", "00000000000000000099.log"]) == 1
    assert capsys.readouterr().err == "ottla: 00000000000000000099.log: no such file or directory\n"
    assert run(["dump-log", "nowhere"]) == 1
    assert capsys.readouterr().err == "ottla: nowhere: no such file or directory\n"
