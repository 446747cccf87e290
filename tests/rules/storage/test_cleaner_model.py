"""A compacted log against a model: whatever is written, cleaned and lost, readers build the same table."""

from contextlib import suppress
from random import Random

import pytest

from ottla.protocol import batch as b
from ottla.storage.cleaner.facts import Limits
from ottla.storage.config import LogConfig
from ottla.storage.log import Log
from ottla.storage.opening import open_log
from ottla.storage.segment import OpenFiles
from ottla.testing.disk import Crashed, SimDisk
from tests.rules.storage.cleaning import Pair, clean, committed, end, latest, put
from tests.rules.storage.scene import NOW, PARTITION, PATH, TOPIC_ID, created, everything

CONFIG = LogConfig(
    cleanup_policy=("compact",),
    segment_bytes=1500,
    index_interval_bytes=100,
    delete_retention_ms=50,
    min_cleanable_dirty_ratio=0.0,
)
KEYS = [b"k%d" % number for number in range(12)]
PRODUCERS = (101, 102, 103)


class Written:
    """All that was ever appended, in offset order, and how each transaction ended."""

    def __init__(self) -> None:
        self.records: list[tuple[int, int | None, bytes, bytes | None]] = []
        self.open: dict[int, int] = {}
        """Producer to its transaction's number."""
        self.aborted: set[int] = set()
        self.transactions = 0

    def table(self, stable: int) -> dict[bytes, bytes]:
        table: dict[bytes, bytes] = {}
        for offset, transaction, key, value in self.records:
            if offset >= stable or transaction in self.aborted:
                continue
            if value is None:
                table.pop(key, None)
            else:
                table[key] = value
        return table


class Story:
    """A log that random things happen to. The same seed tells the same story."""

    def __init__(self, seed: int, disk: SimDisk) -> None:
        self.dice = Random(seed)
        self.log: Log = created(disk, CONFIG)
        self.written = Written()
        self.sequences = dict.fromkeys(PRODUCERS, 0)
        self.now = NOW
        self.cleaned_to: int | None = None

    def write(self) -> None:
        dice = self.dice
        count = dice.randint(1, 6)
        pairs: list[Pair] = []
        for _ in range(count):
            value = None if dice.random() < 0.2 else b"%d" % dice.getrandbits(30) * dice.randint(1, 4)
            pairs.append((dice.choice(KEYS), value))
        producer = dice.choice((None, None, *PRODUCERS))
        codec = dice.choice((0, 0, 0, 1, 3))
        transaction = None
        if producer is None:
            base = put(self.log, *pairs, at=self.now, codec=codec)
        else:
            given = (producer, 0, self.sequences[producer])
            transactional = producer in self.written.open or dice.random() < 0.5
            if transactional:
                if producer not in self.written.open:
                    self.written.transactions += 1
                    self.written.open[producer] = self.written.transactions
                transaction = self.written.open[producer]
            attributes = b.TRANSACTIONAL if transactional else 0
            base = put(self.log, *pairs, at=self.now, codec=codec, attributes=attributes, producer=given)
            self.sequences[producer] += count
        for index, (key, value) in enumerate(pairs):
            assert key is not None
            self.written.records.append((base + index, transaction, key, value))

    def end_one(self) -> None:
        if not self.written.open:
            return
        producer = self.dice.choice(sorted(self.written.open))
        transaction = self.written.open.pop(producer)
        commit = self.dice.random() < 0.5
        if not commit:
            self.written.aborted.add(transaction)
        end(self.log, producer, 0, commit=commit, at=self.now)

    def live(self, steps: int) -> None:
        for _ in range(steps):
            self.now += self.dice.randint(0, 20)
            chance = self.dice.random()
            if chance < 0.6:
                self.write()
            elif chance < 0.85:
                self.end_one()
            else:
                self.log.roll(self.now)

    def clean(self) -> None:
        memory = self.dice.choice((320, 700, 1 << 16))
        self.cleaned_to = clean(self.log, self.cleaned_to, now=self.now, limits=Limits(memory=memory)).end_offset

    def check(self) -> None:
        stable = self.log.last_stable_offset(self.log.log_end_offset)
        assert latest(committed(self.log)) == self.written.table(stable)


def reopen(disk: SimDisk) -> Log:
    return open_log(
        OpenFiles(disk), PATH, PARTITION, TOPIC_ID, CONFIG, now=NOW, clean=False, recovery_point=0, log_start_offset=0
    )


@pytest.mark.parametrize("seed", range(25))
def test_the_table_stays_what_was_written(seed: int) -> None:
    story = Story(seed, SimDisk())
    for _ in range(8):
        story.live(25)
        story.clean()
        story.check()
    while story.written.open:
        story.end_one()
    story.log.roll(story.now)
    cleaned_to = story.cleaned_to
    while cleaned_to != story.log.log_end_offset:
        cleaned_to = clean(story.log, cleaned_to, now=story.now).end_offset
    story.check()
    keys = [record.key for record in committed(story.log)]
    assert len(keys) == len(set(keys)) > 0


@pytest.mark.parametrize("seed", range(10))
def test_producers_and_epochs_are_the_same_after_a_restart_as_before(seed: int) -> None:
    disk = SimDisk()
    story = Story(seed, disk)
    for _ in range(4):
        story.live(25)
        story.clean()
    again = reopen(disk.killed())
    end = story.log.log_end_offset
    assert (again.log_end_offset, again.last_records(below=end)) == (end, story.log.last_records(below=end))
    assert again.producers.ongoing == story.log.producers.ongoing
    story.log = again
    for _ in range(3):
        story.live(25)
        story.clean()
        story.check()


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.matrix)])
@pytest.mark.parametrize("power_cut", [False, True])
def test_a_crash_between_any_two_steps_of_a_round_loses_nothing(seed: int, power_cut: bool) -> None:
    def told(crash_at: int | None) -> tuple[Story, SimDisk, int]:
        disk = SimDisk()
        story = Story(seed, disk)
        story.live(40)
        story.clean()
        story.live(40)
        story.log.roll(story.now)
        story.log.flush()
        begun = len(disk.steps)
        disk.crash_at = None if crash_at is None else begun + crash_at
        with suppress(Crashed):
            story.clean()
        return story, disk, len(disk.steps) - begun

    _, _, steps = told(None)
    for crash_at in range(steps):
        story, disk, _ = told(crash_at)
        after = disk.crash(Random(seed * 1000 + crash_at)) if power_cut else disk.killed()
        ends = story.log.log_end_offset
        story.log = reopen(after)
        assert story.log.log_end_offset == ends
        assert not [path for path in everything(after) if path.endswith((".cleaned", ".swap", ".deleted"))]
        story.check()
        story.live(10)
        story.log.roll(story.now)
        story.clean()
        story.check()
