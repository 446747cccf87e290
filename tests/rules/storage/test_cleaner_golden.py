"""The bytes of cleaned batches, each written down once and read by Apache's DumpLogSegments at the time."""

from ottla.protocol import batch as b
from ottla.storage.log import Log
from ottla.storage.reading import batches_of
from tests.rules.storage.cleaning import COMPACT, end, put, rolled_and_cleaned
from tests.rules.storage.scene import created


def first_batch(log: Log) -> str:
    return bytes(next(batches_of(log, 0))).hex(" ", -4)


def test_a_batch_that_lost_its_first_and_last_record() -> None:
    log = created(config=COMPACT)
    put(log, (b"a", b"1"), (b"b", b"2"), (b"c", b"3"), producer=(7, 2, 40))
    put(log, (b"a", b"4"), (b"c", b"5"))
    rolled_and_cleaned(log)
    assert first_batch(log) == PARTIAL


def test_a_batch_with_a_tombstone_and_its_delete_horizon() -> None:
    log = created(config=COMPACT)
    put(log, (b"a", None), (b"b", b"2"))
    rolled_and_cleaned(log)
    assert first_batch(log) == HORIZON


def test_the_emptied_batch_of_an_active_producer() -> None:
    log = created(config=COMPACT)
    put(log, (b"a", b"1"), (b"a", b"2"), producer=(7, 2, 40), attributes=b.TRANSACTIONAL)
    end(log, 7, 2, commit=True)
    put(log, (b"a", b"3"))
    rolled_and_cleaned(log)
    assert first_batch(log) == EMPTIED


def test_a_marker_with_its_delete_horizon() -> None:
    log = created(config=COMPACT)
    end(log, 7, 2, commit=False)
    put(log, (b"a", b"3"))
    rolled_and_cleaned(log)
    assert first_batch(log) == MARKER


PARTIAL = (
    "00000000 00000000 0000003a 00000000 025690e5 b6000000 00000200 00018bcf e5680000 00018bcf e5680100 "
    "00000000 00000700 02000000 28000000 01100002 02026202 3200"
)
HORIZON = (
    "00000000 00000000 00000044 00000000 0294645c 17004000 00000100 00018bcf e56be800 00018bcf e56801ff "
    "ffffffff ffffffff ffffffff ff000000 021000cf 0f000261 01001200 cd0f0202 62023200"
)
EMPTIED = (
    "00000000 00000000 00000031 00000000 02d5eaeb 84001000 000001ff ffffffff ffffff00 00018bcf e5680100 "
    "00000000 00000700 02000000 28000000 00"
)
MARKER = (
    "00000000 00000000 00000043 00000000 02cf3059 04007000 00000000 00018bcf e56be800 00018bcf e5680000 "
    "00000000 00000700 02ffffff ff000000 012200cf 0f000800 0000000c 00000000 000000"
)
