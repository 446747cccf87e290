"""Compaction as clients see it: a node cleans in the background, and goes on cleaning after a restart."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla.protocol import messages as m
from ottla.protocol.records import NewRecord, build_batch
from ottla.storage.checkpoints import decode_offsets
from ottla.testing import Cluster
from tests.support.nodes import Ottla, cleaners_of
from tests.support.patience import eventually
from tests.support.requests import create_topic, delete_topic, fetch, list_offset, produced, records_in
from tests.support.wire import Wire

SETTINGS = {"log_cleaner_backoff_ms": 100, "log_segment_delete_delay_ms": 0}
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.bytes": "1048576"}
NOW = time.time_ns() // 1_000_000
KEYS = 40


def write(wire: Wire, topic: str, first: int, batches: int) -> None:
    """Batches of 25 KB, a record for each key in each of them."""
    for number in range(first, first + batches):
        records = [NewRecord(b"%d" % key, b"%d." % number + bytes(600), NOW) for key in range(KEYS)]
        produced(wire, topic, bytes(build_batch(records)))


def cleaned_to(data: Path, topic: str) -> int:
    path = data / "cleaner-offset-checkpoint"
    return (
        next((o for tp, o in decode_offsets(path.read_bytes()).items() if tp.topic == topic), 0) if path.exists() else 0
    )


def active(data: Path, topic: str) -> int:
    return max(int(path.stem) for path in (data / f"{topic}-0").glob("*.log"))


def table(wire: Wire, topic: str) -> tuple[dict[bytes | None, bytes], int]:
    """What a consumer builds from the beginning, and how many records it had to read."""
    found: dict[bytes | None, bytes] = {}
    offset, count = 0, 0
    end = list_offset(wire, topic, -1).offset
    while offset < end:
        for record in records_in(fetch(wire, topic, offset).records):
            if record.offset >= offset:
                found[record.key] = (record.value or b"").partition(b".")[0]
                offset, count = record.offset + 1, count + 1
    return found, count


def test_a_node_compacts_in_the_background_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    with Cluster(data_dir=tmp_path, **SETTINGS) as cluster, Wire(cluster.bootstrap_servers) as wire:
        create_topic(wire, "table", 1, COMPACTED)
        write(wire, "table", 0, 100)
        eventually(lambda: cleaned_to(tmp_path, "table") >= active(tmp_path, "table") > 0, "the first round")
        found, count = table(wire, "table")
        assert found == {b"%d" % key: b"99" for key in range(KEYS)}
        assert count < 100 * KEYS / 2
        eventually(lambda: not list(tmp_path.glob("table-0/*.deleted")), "the removal of old files")
    with Cluster(data_dir=tmp_path, **SETTINGS) as cluster, Wire(cluster.bootstrap_servers) as wire:
        before = cleaned_to(tmp_path, "table")
        write(wire, "table", 100, 50)
        eventually(lambda: cleaned_to(tmp_path, "table") >= active(tmp_path, "table") > before, "the next round")
        assert table(wire, "table")[0] == {b"%d" % key: b"149" for key in range(KEYS)}
    assert not list(tmp_path.glob("table-0/*.cleaned")) + list(tmp_path.glob("table-0/*.swap"))


def test_a_damaged_log_is_left_alone_and_the_others_are_cleaned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Cluster(data_dir=tmp_path, log_cleaner_enable=False) as cluster, Wire(cluster.bootstrap_servers) as wire:
        for topic in ("damaged", "sound"):
            create_topic(wire, topic, 1, COMPACTED)
            write(wire, topic, 0, 60)
    first = min((tmp_path / "damaged-0").glob("*.log"))
    content = bytearray(first.read_bytes())
    content[5000] ^= 1
    first.write_bytes(content)
    with Cluster(data_dir=tmp_path, **SETTINGS) as cluster, Wire(cluster.bootstrap_servers) as wire:
        eventually(lambda: cleaned_to(tmp_path, "sound") >= active(tmp_path, "sound") > 0, "the sound one's round")
        eventually(lambda: "cannot be compacted" in caplog.text, "the complaint")
        write(wire, "damaged", 60, 1)
    assert first.read_bytes() == content
    assert cleaned_to(tmp_path, "damaged") == 0


def test_a_node_stops_at_once_in_the_middle_of_a_round(tmp_path: Path) -> None:
    with Cluster(data_dir=tmp_path, log_cleaner_io_max_bytes_per_second=100_000, **SETTINGS) as cluster:
        with Wire(cluster.bootstrap_servers) as wire:
            create_topic(wire, "table", 1, COMPACTED)
            write(wire, "table", 0, 60)
        # At this pace the round takes a minute, so this is its middle.
        eventually(lambda: any((tmp_path / "table-0").glob("*.cleaned")), "the beginning of the round")
    assert cleaned_to(tmp_path, "table") == 0  # the node has not waited for its end
    with Cluster(data_dir=tmp_path, **SETTINGS) as cluster, Wire(cluster.bootstrap_servers) as wire:
        eventually(lambda: cleaned_to(tmp_path, "table") >= active(tmp_path, "table") > 0, "the round")
        assert table(wire, "table")[0] == {b"%d" % key: b"59" for key in range(KEYS)}


# -- the process that cleans -------------------------------------------------------------------------------------


@contextmanager
def in_the_middle_of_a_round(directory: Path) -> Iterator[tuple[Ottla, Wire, int]]:
    """A node, a client of it, and the process that cleans its topic, at a pace that takes it many seconds."""
    slowly = {"log.cleaner.backoff.ms": "100", PACE: "200000", "log.segment.delete.delay.ms": "0"}
    with Ottla(directory, extra=slowly) as node, Wire(node.bootstrap) as wire:
        create_topic(wire, "table", 1, COMPACTED)
        write(wire, "table", 0, 60)
        eventually(lambda: any((node.data / "table-0").glob("*.cleaned")), "the beginning of the round")
        assert node.process is not None
        (cleaner,) = cleaners_of(node.process.pid)
        yield node, wire, cleaner


PACE = "log.cleaner.io.max.bytes.per.second"


def hurry(wire: Wire) -> None:
    """From the next round on."""
    config = m.IncrementalAlterConfigsRequest.AlterableConfig(name=PACE, config_operation=0, value="1e12")
    resource = m.IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=4, resource_name="", configs=[config]
    )
    (response,) = wire.ask(m.IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert not response.error_code, response


def is_alive(pid: int) -> bool:
    """A process that nobody has waited for yet is dead as well."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_as_many_cleaners_as_are_set_work_side_by_side_and_end_with_the_node(tmp_path: Path) -> None:
    with Cluster(data_dir=tmp_path, log_cleaner_enable=False) as cluster, Wire(cluster.bootstrap_servers) as wire:
        for topic in ("one", "other"):
            create_topic(wire, topic, 1, COMPACTED)
            write(wire, topic, 0, 60)
    slowly = {"log_cleaner_threads": 2, "log_cleaner_io_max_bytes_per_second": 200_000}
    with Cluster(data_dir=tmp_path, **slowly, **SETTINGS):
        eventually(lambda: len(cleaners_of(os.getpid())) == 2, "two processes")
    assert not cleaners_of(os.getpid())


def test_a_cleaner_that_is_killed_costs_its_round_and_nothing_else(tmp_path: Path) -> None:
    with in_the_middle_of_a_round(tmp_path) as (node, wire, cleaner):
        hurry(wire)
        os.kill(cleaner, signal.SIGKILL)
        write(wire, "table", 60, 1)
        eventually(lambda: cleaned_to(node.data, "table") >= active(node.data, "table") > 0, "the next round")
        found, count = table(wire, "table")
        assert found == {b"%d" % key: b"60" for key in range(KEYS)}
        assert count < 61 * KEYS
        assert "it is tried again: the cleaner's process ended with -9" in node.printed()
        assert not list(node.data.glob("table-0/*.cleaned"))
        assert node.process is not None
        pid = node.process.pid
        eventually(lambda: not cleaners_of(pid), "the end of the cleaner, which has nothing to do any more")


def test_a_log_that_kills_every_cleaner_is_left_alone(tmp_path: Path) -> None:
    with in_the_middle_of_a_round(tmp_path) as (node, wire, _):
        assert node.process is not None
        pid, killed = node.process.pid, set[int]()

        def killed_three() -> bool:
            for cleaner in cleaners_of(pid):
                os.kill(cleaner, signal.SIGKILL)
                killed.add(cleaner)
            return "cannot be compacted and is left as it is" in node.printed()

        eventually(killed_three, "the complaint")
        assert len(killed) == 3
        write(wire, "table", 60, 1)
        assert table(wire, "table") == ({b"%d" % key: b"60" for key in range(KEYS)}, 61 * KEYS)


def test_a_node_that_is_killed_takes_its_cleaner_along(tmp_path: Path) -> None:
    with in_the_middle_of_a_round(tmp_path) as (node, _, cleaner):
        node.kill()
        eventually(lambda: not is_alive(cleaner), "the end of the cleaner")
        assert cleaned_to(node.data, "table") == 0
        node.start()
        with Wire(node.bootstrap) as wire:
            assert table(wire, "table") == ({b"%d" % key: b"59" for key in range(KEYS)}, 60 * KEYS)


def test_a_topic_deleted_in_the_middle_of_a_round_ends_it(tmp_path: Path) -> None:
    with in_the_middle_of_a_round(tmp_path) as (node, wire, cleaner):
        hurry(wire)
        delete_topic(wire, "table")
        eventually(lambda: not is_alive(cleaner), "the end of the cleaner")
        create_topic(wire, "table", 1, COMPACTED)
        write(wire, "table", 0, 60)
        eventually(lambda: cleaned_to(node.data, "table") >= active(node.data, "table") > 0, "a round over the new one")
        assert table(wire, "table")[0] == {b"%d" % key: b"59" for key in range(KEYS)}
        assert "cannot be compacted" not in node.printed()
