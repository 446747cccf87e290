"""The map of latest keys against a dict, and its bound on memory."""

import tracemalloc
from random import Random

import pytest

from ottla.storage.cleaner.key_map import (
    CLEANED_BEFORE,
    DROP,
    ENTRY_BYTES,
    KEEP,
    TOMBSTONE,
    UNMAPPED,
    KeyMap,
    name_of,
)


@pytest.mark.parametrize("memory", [400, 40_000, 4_000_000])
def test_the_flags_that_stay_are_those_of_the_latest_records(memory: int) -> None:
    dice = Random(memory)
    keys = KeyMap(memory)
    flags = bytearray()
    latest: dict[bytes, int] = {}
    while keys.room >= 7 and len(flags) < 60_000:
        given = [
            None if dice.random() < 0.05 else b"%d" % dice.randrange(30_000) * dice.choice((1, 2, 3, 12))
            for _ in range(dice.randint(0, 7))
        ]
        first = len(flags)
        flags += b"\1" * len(given)
        keys.learn([key if key is None else name_of(key) for key in given], flags, first)
        latest.update({key: first + index for index, key in enumerate(given) if key is not None})
        for index, key in enumerate(given):
            if key is None:
                flags[first + index] = 0
    keys.settle(flags)
    assert [place for place, flag in enumerate(flags) if flag] == sorted(latest.values())
    assert keys.count == len(latest)
    asked: list[bytes | None] = [None, *map(name_of, latest), *(b"x%d" % number for number in range(500))]
    kept = bytearray(b"\2" * len(asked))
    keys.forget_known(asked, kept)
    assert kept == b"\2" + bytes(len(latest)) + b"\2" * 500


@pytest.mark.parametrize("memory", [1, 1000, 1 << 20, 1 << 21])
def test_table_and_copy_together_stay_within_the_memory(memory: int) -> None:
    keys = KeyMap(memory)
    sizes = set()
    flags = bytearray()
    while keys.room:
        flags.append(1)
        keys.learn([b"%d" % len(flags)], flags, len(flags) - 1)
        sizes.add(keys.memory)
    assert max(sizes) + max(sizes) // 2 <= max(memory, 60)
    assert sum(flags) == keys.count == keys.limit


@pytest.mark.parametrize("length", [8, 32, 33])
def test_few_keys_take_no_more_than_they_are_counted_for(length: int) -> None:
    keys, flags = KeyMap(1 << 30), bytearray(50_000)
    tracemalloc.start()
    try:
        for number in range(0, 50_000, 1000):
            keys.learn([name_of(b"%0*d" % (length, number + more)) for more in range(1000)], flags, number)
            assert tracemalloc.get_traced_memory()[1] <= max(keys.memory, 1 << 20)
    finally:
        tracemalloc.stop()
    assert keys.memory == 50_000 * ENTRY_BYTES


def test_no_key_has_the_name_of_a_longer_one() -> None:
    long = b"k" * 33
    keys, flags = KeyMap(1 << 20), bytearray(b"\1\1")
    keys.learn([name_of(long), name_of(name_of(long))], flags, 0)
    keys.settle(flags)
    assert (keys.count, bytes(flags)) == (2, b"\1\1")


def test_flags_that_no_key_decides_stay() -> None:
    keys, flags = KeyMap(1 << 20), bytearray((UNMAPPED, CLEANED_BEFORE, KEEP, TOMBSTONE))
    keys.learn([b"a", b"a"], flags, 2)
    keys.settle(flags)
    assert list(flags) == [UNMAPPED, CLEANED_BEFORE, DROP, TOMBSTONE]
