"""The bytes of cleaned batches, each written down once and read by Apache's DumpLogSegments at the time."""

from ottla.protocol import batch as b
from ottla.storage.log import Log
from tests.rules.storage.cleaning import COMPACT, end, put, rolled_and_cleaned
from tests.rules.storage.scene import created

DAY = 24 * 3600 * 1000


def first_batch(log: Log) -> str:
    return bytes(next(log.batches(0))).hex(" ", -4)


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


PARTIAL = ""
HORIZON = ""
EMPTIED = ""
MARKER = ""
