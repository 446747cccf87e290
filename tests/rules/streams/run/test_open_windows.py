"""Open windows, carried from batch to batch in files named after offsets."""

from pathlib import Path

import pyarrow as pa
import pytest

from ottla.pipelines.carry import KEPT, CarryLost
from ottla.streams.run.open_windows import LONGEST_CHAIN, Carried, OpenWindows
from ottla.streams.windows import TimeWindows

WINDOWS = TimeWindows.of(10, grace_ms=2)
SCHEMA = pa.schema([("kb", pa.binary()), ("start", pa.int64()), ("ts", pa.int64()), ("least", pa.int64())])
Row = tuple[bytes, int, int, int]


def table(*rows: Row) -> pa.Table:
    """(key, start, latest time, something that is known of it)"""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def rows(carried: Carried) -> set[Row]:
    return {(row["kb"], row["start"], row["ts"], row["least"]) for row in carried.windows.to_pylist()}


def test_the_next_batch_finds_the_windows_that_are_still_open(tmp_path: Path) -> None:
    kept = OpenWindows(tmp_path, WINDOWS, SCHEMA)
    nothing = kept.read(0, first=True)
    assert (nothing.stream_time, nothing.windows.num_rows) == (-1, 0)
    kept.write(nothing, 40, 21, table((b"a", 0, 9, 3), (b"a", 10, 19, 2), (b"b", 20, 21, 1)))
    carried = kept.read(40, first=False)
    assert carried.stream_time == 21
    assert rows(carried) == {(b"a", 10, 19, 2), (b"b", 20, 21, 1)}  # the window that ended at 10 closed at 12


def test_a_batch_that_runs_again_finds_what_it_found_the_first_time(tmp_path: Path) -> None:
    kept = OpenWindows(tmp_path, WINDOWS, SCHEMA)
    kept.write(kept.read(0, first=True), 5, 3, table((b"a", 0, 3, 2)))
    before = kept.read(5, first=False)
    for _ in range(2):
        kept.write(before, 9, 8, table((b"a", 0, 8, 6)))
        assert rows(kept.read(5, first=False)) == {(b"a", 0, 3, 2)}
    assert rows(kept.read(9, first=False)) == {(b"a", 0, 8, 6)}


def test_a_batch_that_begins_where_none_has_ended_is_refused(tmp_path: Path) -> None:
    kept = OpenWindows(tmp_path, WINDOWS, SCHEMA)
    kept.write(kept.read(0, first=True), 5, 3, table((b"a", 0, 3, 2)))
    with pytest.raises(CarryLost, match=r"/4 is missing: .* needs a reset"):
        kept.read(4, first=False)
    (tmp_path / "7").write_bytes(b"")
    with pytest.raises(CarryLost, match="/7 is damaged"):
        kept.read(7, first=False)


def test_where_few_of_many_windows_change_only_those_are_written(tmp_path: Path) -> None:
    kept = OpenWindows(tmp_path, WINDOWS, SCHEMA)
    many = [(b"%d" % number, 0, 1, 1) for number in range(2000)]
    kept.write(kept.read(0, first=True), 1, 1, table(*many))
    whole = (tmp_path / "1").stat().st_size
    batches = 3 * LONGEST_CHAIN
    sizes = []
    for end in range(2, batches + 2):
        before = kept.read(end - 1, first=False)
        kept.write(before, end, 1, table((b"7", 0, 1, -end)))
        sizes.append((tmp_path / str(end)).stat().st_size)
    assert sum(size > whole / 2 for size in sizes) == 2  # no chain is longer than LONGEST_CHAIN
    assert rows(kept.read(batches + 1, first=False)) == {*(set(many) - {(b"7", 0, 1, 1)}), (b"7", 0, 1, -25)}
    assert len(list(tmp_path.iterdir())) == KEPT + LONGEST_CHAIN
    # A window that closes is gone, whichever file it is in.
    kept.write(kept.read(batches + 1, first=False), 50, 12, table((b"7", 10, 12, 1)))
    assert rows(kept.read(50, first=False)) == {(b"7", 10, 12, 1)}


def test_every_file_that_is_kept_as_such_can_be_read(tmp_path: Path) -> None:
    kept = OpenWindows(tmp_path, WINDOWS, SCHEMA)
    kept.write(kept.read(0, first=True), 1, 1, table(*((b"%d" % number, 0, 1, 1) for number in range(100))))
    for end in range(2, 60):
        kept.write(kept.read(end - 1, first=False), end, 1, table((b"7", 0, 1, end)))
    for end in range(60 - KEPT, 60):
        assert kept.read(end, first=False).windows.num_rows == 100
