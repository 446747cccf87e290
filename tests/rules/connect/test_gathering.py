"""Records are gathered for a time, or until a file is full; a backlog is not held up by it."""

import random

from ottla.connect.jobs.gathering import MOST, Gathering
from ottla.model.ids import TopicPartition
from ottla.pipelines.source.offsets import Offsets

ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)
BATCH = 20_000
"""What a batch of a backlog holds."""


def test_without_a_time_everything_is_taken_at_once() -> None:
    gathering = Gathering(0.0, 1000)
    assert gathering.end({ONE: 5}, {ONE: 9, TWO: 1}, BATCH, 0.0) == {ONE: 9, TWO: 1}
    assert gathering.end({ONE: 0}, {ONE: 90_000}, BATCH, 0.0) == {ONE: BATCH}


def test_what_comes_is_gathered_from_when_it_was_first_seen() -> None:
    gathering = Gathering(60.0, 1000)
    assert gathering.end({ONE: 5}, {ONE: 5}, BATCH, 0.0) == {ONE: 5}
    assert gathering.end({ONE: 5}, {ONE: 6}, BATCH, 100.0) == {ONE: 5}
    assert gathering.end({ONE: 5}, {ONE: 400}, BATCH, 159.9) == {ONE: 5}
    assert gathering.end({ONE: 5}, {ONE: 401}, BATCH, 160.0) == {ONE: 401}
    assert gathering.end({ONE: 401}, {ONE: 402}, BATCH, 160.5) == {ONE: 401}, "from now on"
    assert gathering.end({ONE: 401}, {ONE: 403}, BATCH, 220.5) == {ONE: 403}


def test_a_file_that_is_full_is_written_at_once_and_what_is_behind_it_waits_on() -> None:
    gathering = Gathering(60.0, 1000)
    begin: Offsets = {ONE: 0, TWO: 0}
    assert gathering.end(begin, {ONE: 999, TWO: 10}, BATCH, 0.0) == begin
    assert gathering.end(begin, {ONE: 2_300, TWO: 20}, BATCH, 30.0) == {ONE: 2_000, TWO: 0}
    begin = {ONE: 2_000, TWO: 0}
    assert gathering.end(begin, {ONE: 2_300, TWO: 20}, BATCH, 30.5) == begin
    assert gathering.end(begin, {ONE: 2_300, TWO: 20}, BATCH, 60.0) == {ONE: 2_300, TWO: 20}


def test_a_partition_that_is_new_is_gathered_too() -> None:
    gathering = Gathering(60.0, 1000)
    assert gathering.end({ONE: 5}, {ONE: 5, TWO: 3}, BATCH, 0.0) == {ONE: 5}
    assert gathering.end({ONE: 5}, {ONE: 5, TWO: 1500}, BATCH, 1.0) == {ONE: 5, TWO: 1000}
    assert gathering.end({ONE: 5, TWO: 1000}, {ONE: 5, TWO: 1500}, BATCH, 60.0) == {ONE: 5, TWO: 1500}


def test_a_batch_may_hold_a_whole_file_though_a_backlog_is_read_in_smaller_ones() -> None:
    gathering = Gathering(60.0, 100_000)
    assert gathering.end({ONE: 0}, {ONE: 99_000}, BATCH, 0.0) == {ONE: 0}
    assert gathering.end({ONE: 0}, {ONE: 130_000}, BATCH, 5.0) == {ONE: 100_000}


def test_of_files_that_never_fill_only_so_much_is_held() -> None:
    gathering = Gathering(600.0, 10_000_000)
    begin: Offsets = {ONE: 0, TWO: 0}
    assert gathering.end(begin, {ONE: MOST // 2, TWO: 0}, MOST, 0.0) == begin
    assert gathering.end(begin, {ONE: MOST, TWO: MOST}, MOST, 1.0) == {ONE: MOST // 2, TWO: MOST // 2}
    heavy = 1_000
    assert gathering.end(begin, {ONE: MOST, TWO: MOST}, heavy, 1.0) == {ONE: 2_500, TWO: 2_500}


def test_no_batch_is_larger_than_it_may_be() -> None:
    assert Gathering(0.0, 0, 50).end({ONE: 0}, {ONE: 90}, BATCH, 0.0) == {ONE: 50}
    assert Gathering(60.0, 100, 50).end({ONE: 0}, {ONE: 300}, BATCH, 0.0) == {ONE: 50}


def test_a_backlog_is_worked_off_look_by_look_whatever_the_time() -> None:
    gathering = Gathering(600.0, 1_000)
    at, looks = 0, 0
    while at + 1_000 <= 2_000_500:
        at = gathering.end({ONE: at}, {ONE: 2_000_500}, BATCH, float(looks) / 2)[ONE]
        looks += 1
    assert (at, looks) == (2_000_000, 100)


def test_nothing_waits_longer_than_it_should_whatever_comes() -> None:
    for seed in range(20):
        dice = random.Random(seed)
        gathering = Gathering(10.0, 100)
        begin: Offsets = {ONE: 0, TWO: 0}
        latest: Offsets = {ONE: 0, TWO: 0}
        came: dict[TopicPartition, list[float]] = {ONE: [], TWO: []}
        for tick in range(400):
            now = tick * 0.5
            for place in latest:
                more = dice.choice((0, 0, 1, 7, 150))
                latest[place] += more
                came[place] += [now] * more
            end = gathering.end(begin, dict(latest), 5_000, now)
            begin = dict(end)
            for place, offset in begin.items():
                assert all(now - since < 10.0 for since in came[place][offset:][:1])
