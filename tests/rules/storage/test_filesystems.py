"""The real file system and its simulated twin keep the same contract; descriptors stay few."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.storage.answers import FileSlice
from ottla.storage.config import LogConfig
from ottla.storage.fs import Filesystem, RealFilesystem, replace_file
from ottla.storage.log import Log
from ottla.storage.opening import create_log, open_log
from ottla.storage.reading import read
from ottla.storage.segment import OpenFiles
from ottla.testing.disk import SimDisk
from tests.rules.storage.scene import NOW, PARTITION, TOPIC_ID, append, base_offsets, fill, values

Place = tuple[Filesystem, str]


@pytest.fixture(params=["real", "simulated"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "real":
        return RealFilesystem(), str(tmp_path)
    disk = SimDisk()
    disk.mkdir("/somewhere")
    return disk, "/somewhere"


def test_bytes_come_back_from_where_they_were_written(place: Place) -> None:
    fs, root = place
    file = fs.open(f"{root}/f", create=True)
    file.pwrite(b"hello", 3)
    file.pwrite(memoryview(b"HE"), 3)
    assert (file.size(), file.pread(100, 0), file.pread(2, 5), file.pread(9, 8)) == (8, b"\0\0\0HEllo", b"ll", b"")
    file.truncate(4)
    assert fs.read(f"{root}/f") == b"\0\0\0H"
    file.sync()


def test_a_missing_file_is_an_error_to_open_and_none_to_remove(place: Place) -> None:
    fs, root = place
    for action in (fs.open, fs.read, lambda path: fs.rename(path, path + "x"), fs.list):
        with pytest.raises(FileNotFoundError):
            action(f"{root}/nothing")
    fs.remove(f"{root}/nothing")
    assert not fs.exists(f"{root}/nothing")


def test_a_rename_replaces_and_a_listing_tells_sizes(place: Place) -> None:
    fs, root = place
    fs.open(f"{root}/a", create=True).pwrite(b"aa", 0)
    fs.open(f"{root}/b", create=True).pwrite(b"bbb", 0)
    fs.mkdir(f"{root}/sub/deeper")
    fs.rename(f"{root}/a", f"{root}/b")
    listing = {entry.name: (entry.is_dir, entry.size if not entry.is_dir else 0) for entry in fs.list(root)}
    assert listing == {"b": (False, 2), "sub": (True, 0)}
    fs.sync_dir(root)
    fs.rmdir(f"{root}/sub/deeper")
    assert fs.list(f"{root}/sub") == []


def test_an_open_file_outlives_its_name(place: Place) -> None:
    fs, root = place
    file = fs.open(f"{root}/f", create=True)
    file.pwrite(b"still here", 0)
    fs.remove(f"{root}/f")
    assert file.pread(10, 0) == b"still here"


def test_a_replaced_file_is_old_or_new(place: Place) -> None:
    fs, root = place
    replace_file(fs, f"{root}/f", b"first")
    replace_file(fs, f"{root}/f", b"2nd")
    assert fs.read(f"{root}/f") == b"2nd"
    assert [entry.name for entry in fs.list(root)] == ["f"]


def test_a_lock_excludes_others_until_it_is_dropped(place: Place) -> None:
    fs, root = place
    lock = fs.lock(f"{root}/.lock")
    assert lock is not None
    assert fs.lock(f"{root}/.lock") is None
    del lock
    assert fs.lock(f"{root}/.lock") is not None


def test_a_reserve_takes_room(place: Place) -> None:
    fs, root = place
    fs.reserve(f"{root}/r", 4096)
    assert [entry.size for entry in fs.list(root)] == [4096]
    free, total = fs.space(root)
    assert 0 <= free <= total


def test_a_file_longer_than_one_read_comes_whole(place: Place) -> None:
    fs, root = place
    data = bytes(range(256)) * 16_384
    fs.open(f"{root}/f", create=True).pwrite(data, 0)
    assert fs.read(f"{root}/f") == data


# -- logs on a real disk -----------------------------------------------------------------------------------------


@pytest.fixture
def new_log(tmp_path: Path) -> Callable[..., Log]:
    def create(number: int, files: OpenFiles, config: LogConfig | None = None) -> Log:
        path = f"{tmp_path}/orders-{number}"
        return create_log(files, path, PARTITION, TOPIC_ID, config or LogConfig(), now=NOW)

    return create


def open_descriptors(directory: Path) -> int:
    """Of files in `directory`: the process around the tests opens and closes others at any time."""
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            found += os.readlink(descriptor).startswith(f"{directory}/")
        except FileNotFoundError:
            continue
    return found


def test_many_logs_share_a_few_descriptors(tmp_path: Path, new_log: Callable[..., Log]) -> None:
    files = OpenFiles(RealFilesystem(), limit=8)
    logs = [new_log(number, files) for number in range(100)]
    for _ in range(3):
        for log in logs:
            append(log, b"a")
    assert len(files) == 8
    assert open_descriptors(tmp_path) <= 8
    assert [len(values(log)) for log in logs] == [3] * 100


def test_a_slice_keeps_its_descriptor_and_nobody_elses(tmp_path: Path, new_log: Callable[..., Log]) -> None:
    files = OpenFiles(RealFilesystem(), limit=1)
    log, other = new_log(0, files), new_log(1, files)
    fill(log, 3)
    piece = read(log, 0, 1 << 20, upper_bound=3)
    assert isinstance(piece, FileSlice)
    fill(other, 3)
    assert log.active.file is None
    before = open_descriptors(tmp_path)
    assert base_offsets(piece.read()) == [0, 1, 2]
    assert piece.fileno() > 2
    del piece
    assert open_descriptors(tmp_path) == before - 1


def test_the_files_used_last_stay_open(new_log: Callable[..., Log]) -> None:
    files = OpenFiles(RealFilesystem(), limit=3)
    logs = [new_log(number, files) for number in range(3)]
    for segment in files._ring:
        segment.hot = False
    append(logs[0], b"a")
    new_log(9, files)
    assert logs[0].active.file is not None


def test_a_log_lives_on_a_real_disk(new_log: Callable[..., Log], tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=2000, index_interval_bytes=200)
    files = OpenFiles(RealFilesystem())
    log = new_log(0, files, config)
    fill(log, 50)
    log.close()
    for clean in (True, False):
        again = open_log(
            RealFilesystem(),
            f"{tmp_path}/orders-0",
            PARTITION,
            None,
            config,
            now=NOW,
            clean=clean,
            recovery_point=0,
            log_start_offset=0,
        )
        assert (again.topic_id, again.log_end_offset, len(values(again))) == (TOPIC_ID, 50, 50)
        assert [segment.base_offset for segment in again.segments] == [segment.base_offset for segment in log.segments]
        assert len(again.chain.files) <= len(again.segments)
