"""A log behaves like a list, whatever is done to it and however often it crashes."""

from random import Random

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.model.errors import Errors
from ottla.protocol import batch as b
from ottla.protocol.records import read_records
from ottla.storage.answers import Appended, FileSlice
from ottla.storage.config import LogConfig
from ottla.storage.fs import CorruptLog, StorageError
from ottla.storage.leading import append_as_leader
from ottla.storage.log import Log
from ottla.storage.lookup import segment_index
from ottla.storage.reading import batches_of, read
from ottla.storage.retention import apply_retention, delete_records_before
from ottla.testing.disk import SimDisk
from tests.rules.storage.scene import NOW, a_batch, created, reopened
from tests.support.examples import examples

CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=100, retention_ms=-1)


class LogMachine(RuleBasedStateMachine):
    """`model` holds the value of every offset from 0 on; `start` is the log start."""

    @initialize()
    def begin(self) -> None:
        self.disk = SimDisk()
        self.log: Log = created(self.disk, CONFIG)
        self.model: list[bytes] = []
        self.start = 0
        self.checkpointed = (0, 0)
        self.sequence = 0
        self.epoch = 0
        self.shrunk = False

    # -- what is done to it

    @rule(count=st.integers(1, 4), size=st.integers(0, 80), codec=st.sampled_from([0, 0, 1]))
    def append(self, count: int, size: int, codec: int) -> None:
        values = [b"%d/" % (len(self.model) + n) + b"x" * size for n in range(count)]
        end = len(self.model)
        assert append_as_leader(self.log, a_batch(*values, codec=codec), self.epoch, NOW) == Appended(
            end, end + count - 1, -1, self.start
        )
        self.model += values

    @rule(count=st.integers(1, 3))
    def append_idempotently_and_again(self, count: int) -> None:
        producer = (1, 0, self.sequence)
        values = [b"p%d" % n for n in range(count)]
        first = append_as_leader(self.log, a_batch(*values, producer=producer), self.epoch, NOW)
        if isinstance(first, Appended) and not first.duplicate:
            again = append_as_leader(self.log, a_batch(*values, producer=producer), self.epoch, NOW)
            assert again == first._replace(duplicate=True)
            self.model += values
            self.sequence += count
        else:
            # A power cut took batches back, or retention the knowledge: the producer starts over with a new id.
            self.sequence = 0
            self.log.producers.producers.pop(1, None)

    @rule()
    def next_epoch(self) -> None:
        self.epoch += 1

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW)

    @rule()
    def flush_and_checkpoint(self) -> None:
        self.log.flush()
        self.shrunk = False
        self.checkpointed = (self.log.recovery_point, self.log.log_start_offset)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        target = data.draw(st.integers(self.start, len(self.model)))
        batches = batches_of(self.log, self.start)
        boundaries = {b.read_header(batch).base_offset for batch in batches} | {len(self.model)}
        target = max((at for at in boundaries if at <= target), default=target)
        if target < self.start:
            return
        recovery_point, start = self.checkpointed
        self.checkpointed = (min(recovery_point, target), start)
        self.log.truncate_to(target, NOW)
        self.shrunk = True
        del self.model[target:]

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(0, len(self.model)))
        assert delete_records_before(self.log, offset) is Errors.NONE
        self.start = max(self.start, offset)

    @rule()
    def retain(self) -> None:
        deletion = apply_retention(self.log, NOW)
        for path in deletion.paths if deletion else ():
            self.disk.remove(path)

    @rule(room=st.integers(0, 300))
    def fill_the_disk(self, room: int) -> None:
        self.disk.room = self.disk.used + room
        try:
            outcome = append_as_leader(self.log, a_batch(b"f" * 100), self.epoch, NOW)
            assert isinstance(outcome, Appended)
            self.model.append(b"f" * 100)
        except StorageError:
            assert self.log.is_online
        self.disk.room = None

    # -- what becomes of it

    @rule()
    def restart_cleanly(self) -> None:
        self.log.close()
        self.shrunk = False
        self.disk = self.disk.killed()
        self.log = reopened(self.disk, CONFIG, clean=True, log_start_offset=self.start)
        assert self.log.recovery_point == len(self.model)
        self.checkpointed = (self.log.recovery_point, self.start)

    @rule()
    def kill(self) -> None:
        """What the page cache holds survives, what only memory knew does not."""
        self.disk = self.disk.killed()
        self.shrunk = False
        self._recover()
        assert self.log.log_end_offset == len(self.model)

    @rule(seed=st.integers(0, 1 << 16))
    @precondition(lambda self: not self.shrunk and self._unflushed_segments() <= 1)
    def cut_the_power(self, seed: int) -> None:
        """Not while a truncation is unflushed: what it cut off may come back, as in Kafka."""
        disk = self.disk
        self.disk = disk.crash(Random(seed))
        try:
            self._recover()
        except CorruptLog as error:
            raise AssertionError("a torn tail was taken for damage") from error
        assert self.checkpointed[0] <= self.log.log_end_offset <= len(self.model)
        del self.model[self.log.log_end_offset :]

    def _unflushed_segments(self) -> int:
        return len(self.log.segments) - segment_index(self.log.segments, self.checkpointed[0])

    def _recover(self) -> None:
        recovery_point, start = self.checkpointed
        self.log = reopened(self.disk, CONFIG, recovery_point=recovery_point, log_start_offset=start)
        self.start = self.log.log_start_offset

    # -- what must hold

    @invariant()
    def it_is_the_model(self) -> None:
        log = self.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start, len(self.model))
        found = [
            (record.offset, record.value)
            for batch in batches_of(log, self.start)
            for record in read_records(batch)
            if record.offset >= self.start
        ]
        assert found == list(enumerate(self.model))[self.start :]
        assert log.recovery_point <= log.log_end_offset
        assert log.size == sum(len(batch) for segment in log.segments for _, batch in segment.batches())

    @invariant()
    def every_offset_can_be_fetched(self) -> None:
        for offset in range(self.start, len(self.model), 3):
            piece = read(self.log, offset, 1, upper_bound=len(self.model))
            assert isinstance(piece, FileSlice)
            header = b.read_header(piece.read())
            assert header.base_offset <= offset <= header.last_offset
            assert len(piece) == header.size


LogMachine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=25, deadline=None)
TestLog = LogMachine.TestCase
