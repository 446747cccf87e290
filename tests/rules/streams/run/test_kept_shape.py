"""Which versions of an application may go on with the state of an earlier one."""

from dataclasses import replace
from pathlib import Path

import pytest

from ottla.streams.run.kept_shape import (
    BY_TASKS,
    NATIVELY,
    NOT_AT_ALL,
    Kept,
    StateDoesNotFit,
    conflicts,
    keep,
    require_fit,
)
from ottla.streams.run.state_directory import StateDirectory

COUNTS = Kept(BY_TASKS, 2, {"counts": "key-value, keys Serdes.string, values Serdes.long"})
SUMS = Kept(NATIVELY, 2, {"sums": "key-value, keys Serdes.string, values Serdes.long"})
NOTHING = Kept(NOT_AT_ALL, 0, {})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"0": COUNTS}, {"0": COUNTS}),
        ({"0": COUNTS, "1": NOTHING}, {"0": COUNTS, "1": NOTHING, "2": SUMS}),
        ({"0": COUNTS}, {"0": replace(COUNTS, stores={**COUNTS.stores, "seen": "key-value"})}),
        ({"0": COUNTS, "1": SUMS}, {"0": COUNTS}),
    ],
    ids=["the same", "a further query", "a further store of tasks", "a query less"],
)
def test_state_is_taken_on_where_every_store_is_where_and_what_it_was(
    old: dict[str, Kept], new: dict[str, Kept]
) -> None:
    assert conflicts(old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ({"0": NOTHING, "1": COUNTS}, {"0": COUNTS}, "the store counts was kept by query 1 and is now kept by query 0"),
        ({"0": COUNTS}, {"0": replace(COUNTS, tasks=3)}, "query 0 had 2 tasks and now has 3"),
        ({"0": COUNTS}, {"0": replace(COUNTS, by=NATIVELY)}, "was kept by tasks and is now kept by Spark's own"),
        ({"0": NOTHING}, {"0": COUNTS}, "was kept by nothing and is now kept by tasks"),
        ({"0": SUMS}, {"0": replace(SUMS, stores={"means": "key-value"})}, "kept the store sums and now keeps means"),
        ({"0": COUNTS}, {"0": replace(COUNTS, stores={"counts": "window"})}, "the store counts was: key-value, keys"),
    ],
    ids=["moved", "repartitioned", "by another", "with state now", "another store", "another kind"],
)
def test_what_does_not_fit_is_told(old: dict[str, Kept], new: dict[str, Kept], why: str) -> None:
    assert any(why in each for each in conflicts(old, new)), conflicts(old, new)


def test_a_version_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    directory = begun(tmp_path)
    keep(directory, {"0": COUNTS})
    require_fit(directory, {"0": COUNTS})
    with pytest.raises(StateDoesNotFit, match=r"query 0 had 2 tasks and now has 1(.|\n)*ottla streams reset"):
        require_fit(directory, {"0": replace(COUNTS, tasks=1)})


def test_what_never_ran_binds_nobody(tmp_path: Path) -> None:
    directory = StateDirectory(str(tmp_path), "app")
    require_fit(directory, {"0": COUNTS})
    keep(directory, {"0": COUNTS})
    require_fit(directory, {"0": SUMS})


def test_what_is_written_down_and_cannot_be_read_is_told(tmp_path: Path) -> None:
    directory = begun(tmp_path)
    Path(directory.shape).write_text('{"0": {"by"')
    with pytest.raises(StateDoesNotFit, match=r"topology.json cannot be read .*delete the file"):
        require_fit(directory, {"0": COUNTS})


def begun(folder: Path) -> StateDirectory:
    directory = StateDirectory(str(folder), "app")
    Path(directory.checkpoint("0")).mkdir(parents=True)
    return directory
