"""Real disks that are small, full or broken, mounted for the test: where that is not allowed, it is skipped."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from ottla.model.errors import Errors
from ottla.protocol.records import build_batch
from tests.support.disks import mounted
from tests.support.nodes import Ottla
from tests.support.patience import eventually
from tests.support.requests import batch, create_topic, produce, produced, records
from tests.support.wire import Wire

Disk = Callable[[str], Path]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """Mounts a disk of a given size."""
    with ExitStack() as stack:
        numbers = count()
        yield lambda size: stack.enter_context(mounted(tmp_path / f"disk-{next(numbers)}", size))


@pytest.mark.parametrize("size", ["16m", "48m", "64m"])
def test_a_node_on_a_small_disk_takes_records(tmp_path: Path, disk: Disk, size: str) -> None:
    with Ottla(tmp_path / "node", disk(size) / "data") as node, Wire(node.bootstrap) as wire:
        create_topic(wire, "t")
        for _ in range(20):
            assert produced(wire, "t", bytes(build_batch(records(10, size=1000)))) >= 0


def test_a_full_disk_is_told_once_and_room_on_it_once(tmp_path: Path, disk: Disk) -> None:
    place = disk("48m")
    ballast = place / "ballast"
    with Ottla(tmp_path / "node", place / "data") as node, Wire(node.bootstrap) as wire:
        create_topic(wire, "t")
        assert produced(wire, "t", batch()) == 0
        fill(ballast)
        refused = [produce(wire, "t", bytes(build_batch(records(100, size=1000)))).error_code for _ in range(20)]
        assert refused[-1] == Errors.KAFKA_STORAGE_ERROR
        eventually(lambda: "is full" in node.printed() or "bytes left" in node.printed())
        ballast.unlink()
        eventually(lambda: produce(wire, "t", batch()).error_code == 0)
        told = [line for line in node.printed().splitlines() if str(node.data) in line and "data  " not in line]
    assert len([line for line in told if "room again" in line]) == 1, told
    assert len(told) <= 3, told


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(65536))
        except OSError:
            return


def test_a_node_starts_without_the_one_of_its_new_directories_that_is_broken(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    extra = {"log.dirs": f"{tmp_path}/good,{tmp_path}/file/below"}
    with Ottla(tmp_path / "node", extra=extra) as node, Wire(node.bootstrap) as wire:
        create_topic(wire, "t", 3)
        assert [produced(wire, "t", batch(), partition=each) for each in range(3)] == [0, 0, 0]
        assert "The node starts without it." in node.printed()
