"""What is told where a disk is full."""

import errno
from pathlib import Path

import pytest

from ottla.pipelines.failures import Restarts
from ottla.pipelines.full_disks import full_disk, told_where_full
from tests.support.disks import mounted


@pytest.mark.parametrize(
    "text",
    [
        "java.io.IOException: No space left on device",
        "IO error: No space left on device: While appending to file: {folder}/000012.log: No space left on device",
        "OSError: [Errno 28] No space left on device: '{folder}/checkpoints/0.initial-offsets'",
        "java.io.FileNotFoundException: {folder}/offsets/.7.tmp (Disk quota exceeded)",
    ],
)
def test_a_full_disk_is_told_with_its_folder_and_what_can_be_done(tmp_path: Path, text: str) -> None:
    said = text.format(folder=tmp_path)
    assert full_disk(said, {"state.dir": str(tmp_path)}) == (
        f"no space is left on the disk of {tmp_path} (state.dir). Nothing is lost: the batch has not ended, and runs "
        "again at the next start. Make room, or let state.dir be on a larger disk, and start again"
    )
    assert not Restarts(60.0).may(Exception(said), 0.0)


def test_of_two_folders_the_one_is_told_that_the_error_names(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    folders = {"state.dir": str(inner), "spark.local.dir": str(tmp_path)}
    for path, setting in ((tmp_path / "blockmgr", "spark.local.dir"), (inner / "offsets", "state.dir")):
        told_of = full_disk(f"{path}: No space left on device", folders)
        assert told_of is not None
        assert f"({setting})" in told_of


def test_other_errors_are_not_about_disks(tmp_path: Path) -> None:
    assert full_disk("Connection reset by peer", {"state.dir": str(tmp_path)}) is None
    assert full_disk("No space left on device", {"state.dir": "/gone"}) is not None


def test_a_line_that_is_cut_while_a_disk_is_full_is_about_the_disk(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "64k") as disk:
        folders = [str(tmp_path / "nothing"), str(disk)]
        with pytest.raises(OSError, match=str(disk)) as told, told_where_full(folders):
            raise EOFError
    assert told.value.errno == errno.ENOSPC


def test_a_line_that_is_cut_with_room_on_all_disks_is_just_that(tmp_path: Path) -> None:
    with pytest.raises(EOFError), told_where_full([str(tmp_path)]):
        raise EOFError
