"""A batch takes partitions that belong together up to about the same time."""

from itertools import pairwise
from typing import Any

from ottla.model.ids import TopicPartition
from ottla.pipelines.source.offsets import share
from ottla.pipelines.source.positions import in_time, together

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class Logs:
    """Stands for the brokers: the timestamps of each partition."""

    def __init__(self, times: dict[TopicPartition, list[int]]) -> None:
        self._times = times

    def time_at(self, place: TopicPartition, offset: int, end: int) -> int | None:
        return self._times[place][offset] if offset < end else None

    def first_from(self, times: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {
            place: next((offset for offset, each in enumerate(self._times[place]) if each >= time), -1)
            for place, time in times.items()
        }

    def cut(self, begin: dict[Any, int], end: dict[Any, int]) -> dict[TopicPartition, int]:
        latest = {place: len(times) for place, times in self._times.items()}
        return in_time(begin, end, latest, self)  # type: ignore[arg-type]

    def batches(self, most: int) -> list[dict[TopicPartition, int]]:
        """Where they end, until all is read."""
        latest = {place: len(times) for place, times in self._times.items()}
        begin, found = dict.fromkeys(latest, 0), []
        while begin != latest:
            begin = together(begin, share(begin, latest, most), latest, self)  # type: ignore[arg-type]
            found.append(begin)
        return found


def test_none_is_read_beyond_the_time_of_the_one_that_is_cut_first() -> None:
    logs = Logs({A: list(range(0, 100, 10)), B: list(range(100))})
    assert logs.cut({A: 0, B: 0}, {A: 8, B: 20}) == {A: 2, B: 20}


def test_one_that_is_ahead_as_a_whole_gives_the_record_that_tells_so() -> None:
    logs = Logs({A: list(range(100)), B: list(range(500, 600))})
    assert logs.cut({A: 0, B: 0}, {A: 50, B: 50}) == {A: 50, B: 1}
    assert logs.cut({A: 50, B: 1}, {A: 80, B: 30}) == {A: 80, B: 2}


def test_a_record_of_long_ago_that_was_late_in_time_limits_nothing() -> None:
    logs = Logs({A: list(range(100)), B: [900, *range(99)]})
    assert logs.cut({A: 0, B: 1}, {A: 50, B: 50}) == {A: 49, B: 50}


def test_without_a_backlog_all_is_read() -> None:
    logs = Logs({A: list(range(10)), B: list(range(500, 510))})
    assert logs.cut({A: 0, B: 0}, {A: 10, B: 10}) == {A: 10, B: 10}


def test_partitions_of_other_numbers_have_other_times() -> None:
    other = TopicPartition("b", 1)
    logs = Logs({A: list(range(100)), other: list(range(500, 600))})
    assert logs.cut({A: 0, other: 0}, {A: 50, other: 50}) == {A: 50, other: 50}


def test_a_small_table_that_is_older_than_a_backlog_fills_the_batch_with_it() -> None:
    logs = Logs({A: [5] * 10, B: list(range(100, 1100))})
    assert [ends[A] for ends in logs.batches(200)] == [10] * 6


def test_a_batch_never_holds_more_than_its_records() -> None:
    logs = Logs({A: list(range(0, 300)), B: list(range(150, 1000))})
    ends = [{A: 0, B: 0}, *logs.batches(100)]
    sizes = [sum(after.values()) - sum(before.values()) for before, after in pairwise(ends)]
    assert max(sizes) <= 101  # the one record that tells that a partition is ahead
    assert len(sizes) < 20
