"""What a node knew before it was stopped, or killed, it knows after it has started again."""

import re
import signal
from itertools import pairwise
from pathlib import Path

import pytest

from ottla.protocol import messages as m
from tests.support.group_conversations import commit, ready
from tests.support.nodes import START_S, Node, Ottla
from tests.support.patience import eventually
from tests.support.requests import (
    batch,
    create_topic,
    delete_records,
    delete_topic,
    describe_topic,
    fetch,
    list_offset,
    produce,
    produced,
    producer_id,
    records_in,
    wait_for_topic,
)
from tests.support.wire import Wire, latest

COORDINATOR_LOAD_IN_PROGRESS = 14


@pytest.fixture(params=["stopped", "killed"])
def ending(request: pytest.FixtureRequest) -> str:
    how: str = request.param
    return how


def end(node: Node, how: str) -> None:
    if how == "stopped":
        assert node.stop() == 0
    else:
        node.kill()


def sequenced(id_: int, epoch: int, sequence: int) -> bytes:
    return batch(1, producer_id=id_, producer_epoch=epoch, base_sequence=sequence)


def test_topics_records_and_producers_survive(tmp_path: Path, ending: str) -> None:
    node = Ottla(tmp_path)
    with node, Wire(node.bootstrap) as wire:
        cluster = wire.ask(m.DescribeClusterRequest()).cluster_id
        topic_id = create_topic(wire, "kept", 3, {"retention.ms": "-1"})
        create_topic(wire, "gone")
        for partition in range(3):
            produced(wire, "kept", batch(5 + partition), partition=partition)
        id_, epoch = producer_id(wire)
        for sequence in range(7):
            produced(wire, "kept", sequenced(id_, epoch, sequence))
        delete_topic(wire, "gone")
        end(node, ending)

    with node, Wire(node.bootstrap) as wire:
        assert wire.ask(m.DescribeClusterRequest()).cluster_id == cluster
        assert wait_for_topic(wire, "kept", 3) == topic_id
        assert describe_topic(wire, "gone").error_code == 3
        for partition in range(3):
            kept = records_in(fetch(wire, "kept", partition=partition).records)
            assert len(kept) == 5 + partition + (7 if partition == 0 else 0)
        assert produced(wire, "kept", sequenced(id_, epoch, 6)) == 11, "the last batch comes again"
        assert produce(wire, "kept", sequenced(id_, epoch, 8)).error_code == 45
        assert produced(wire, "kept", sequenced(id_, epoch, 7)) == 12
        assert producer_id(wire)[0] != id_
    assert "Traceback" not in node.printed()


def test_the_start_of_a_log_survives_a_stop(tmp_path: Path) -> None:
    node = Ottla(tmp_path)
    with node, Wire(node.bootstrap) as wire:
        create_topic(wire, "trimmed")
        produced(wire, "trimmed", batch(10))
        assert delete_records(wire, "trimmed", 6).low_watermark == 6

    with node, Wire(node.bootstrap) as wire:
        wait_for_topic(wire, "trimmed")
        assert (list_offset(wire, "trimmed", -2).offset, list_offset(wire, "trimmed", -1).offset) == (6, 10)


def test_a_torn_tail_is_cut_off_and_nothing_else(tmp_path: Path) -> None:
    node = Ottla(tmp_path)
    with node, Wire(node.bootstrap) as wire:
        create_topic(wire, "torn")
        produced(wire, "torn", batch(3))
        produced(wire, "torn", batch(3))
        node.kill()
    (segment,) = (node.data / "torn-0").glob("*.log")
    with segment.open("ab") as file:
        file.write(batch(3, base_offset=6)[:-5])

    with node, Wire(node.bootstrap) as wire:
        wait_for_topic(wire, "torn")
        assert [record.offset for record in records_in(fetch(wire, "torn").records)] == list(range(6))
        assert produced(wire, "torn", batch(1)) == 6
    assert "Traceback" not in node.printed()


def test_a_clean_stop_says_so_and_takes_no_time(tmp_path: Path) -> None:
    node = Ottla(tmp_path)
    with node, Wire(node.bootstrap) as wire:
        create_topic(wire, "any")
        # A consumer that waits does not hold up the stop.
        request = m.FetchRequest(
            max_wait_ms=60_000,
            min_bytes=1,
            topics=[
                m.FetchRequest.FetchTopic(topic="any", partitions=[m.FetchRequest.FetchPartition(partition=0)]),
            ],
        )
        wire.send(request, 12)
        assert node.stop() == 0

    assert (node.data / ".kafka_cleanshutdown").exists()
    with node:
        assert not (node.data / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_and_a_closed_terminal_are_clean_stops_too(tmp_path: Path, number: signal.Signals) -> None:
    node = Ottla(tmp_path).start()
    assert node.process is not None
    node.process.send_signal(number)
    assert node.process.wait(START_S) == 0
    assert (node.data / ".kafka_cleanshutdown").exists()


def test_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup hands it down
    try:
        node = Ottla(tmp_path).start()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert node.process is not None
    node.process.send_signal(signal.SIGHUP)
    with Wire(node.bootstrap) as wire:
        create_topic(wire, "still-there")
    assert node.stop() == 0


def offset_fetch_error(wire: Wire, group: str) -> int:
    kind = m.OffsetFetchRequest
    (told,) = wire.ask(kind(groups=[kind.OffsetFetchRequestGroup(group, topics=None)])).groups
    error: int = told.error_code
    return error


def test_a_coordinator_whose_log_is_damaged_says_so_in_one_line_and_the_rest_of_the_node_works(tmp_path: Path) -> None:
    node = Ottla(tmp_path / "node")
    with node, Wire(node.bootstrap) as wire:
        topic_id = create_topic(wire, "read")
        ready(wire, "readers")
        version = latest(m.OffsetCommitRequest.API_KEY)
        told = wire.ask(commit("readers", "read", topic_id, version, offset=7))
        assert told.topics[0].partitions[0].error_code == 0
    log = node.data / "__consumer_offsets-0"
    segment = log / "00000000000000000000.log"
    damaged = bytearray(segment.read_bytes())
    damaged[80] ^= 0x10
    segment.write_bytes(damaged)

    with node, Wire(node.bootstrap) as wire:
        complaint = (
            "__consumer_offsets-0 cannot be loaded, and those whose coordinator it is have none: "
            f"the batch at offset 0 cannot be read: it fails its CRC. Restore {log} from a copy. Or move it away"
        )
        eventually(lambda: f"{complaint} and restart" in node.printed() and "Tried again in 2 s" in node.printed())
        pauses = [float(number) for number in re.findall(r"Tried again in ([\d.]+) s", node.printed())]
        assert all(after == 2 * before for before, after in pairwise(pauses)), "the pauses do not grow"
        assert offset_fetch_error(wire, "readers") == COORDINATOR_LOAD_IN_PROGRESS
        produced(wire, "read", batch(1))
    assert "Traceback" not in node.printed()

    log.rename(tmp_path / "moved away")
    with node, Wire(node.bootstrap) as wire:
        eventually(lambda: offset_fetch_error(wire, "readers") == 0)


@pytest.mark.parametrize("damaged", ["its name", "its value"])
def test_a_damaged_directory_id_is_told_and_the_logs_are_used_all_the_same(tmp_path: Path, damaged: str) -> None:
    node = Ottla(tmp_path)
    with node, Wire(node.bootstrap) as wire:
        create_topic(wire, "kept")
        produced(wire, "kept", batch(3))
    file = node.data / "meta.properties"
    (known,) = [line.partition("=")[2] for line in file.read_text().splitlines() if line.startswith("directory.id=")]
    another = "directory.id=" + ("B" if known[0] == "A" else "A") + known[1:]
    replaced = "directory.yd=" + known if damaged == "its name" else another
    file.write_text(file.read_text().replace("directory.id=" + known, replaced))

    with node, Wire(node.bootstrap) as wire:
        assert f"replicas of this node are said to be in {known}, and no directory" in node.printed()
        eventually(lambda: produce(wire, "kept", batch(1)).error_code == 0)
        assert list_offset(wire, "kept", -1).offset == 4
