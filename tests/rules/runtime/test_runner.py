"""Decide, append, replay, commit, reply; and group commit underneath."""

import asyncio
import errno
from collections.abc import Sequence

import pytest

from ottla.model.ids import TopicPartition
from ottla.protocol import messages
from ottla.protocol.codec import MetadataRecord
from ottla.protocol.records import NewRecord, build_batch
from ottla.runtime.disk import Done, GroupCommit, InlineDisk, Job, SyncThread
from ottla.runtime.runner import Placed, Runner
from ottla.storage.config import LogConfig
from ottla.storage.fs import StorageError
from ottla.storage.leading import append_as_leader
from ottla.storage.log import Log
from ottla.storage.opening import create_log
from ottla.storage.segment import OpenFiles
from ottla.testing.disk import SimDisk

NOOP = messages.NoOpRecord()


class Listing:
    """A core that remembers what it replayed, and a journal that gives it offsets."""

    def __init__(self) -> None:
        self.replayed: list[int] = []
        self.end = 0
        self.broken = False
        self.commits = 0

    def replay(self, records: Sequence[MetadataRecord], *, base_offset: int, epoch: int, timestamp: int) -> int:
        self.replayed.append(base_offset)
        return base_offset

    def append(self, records: Sequence[MetadataRecord]) -> Placed:
        if self.broken:
            raise StorageError("/data", "is full")
        base, self.end = self.end, self.end + len(records)
        return Placed(base, self.end - 1, 1, 0)

    def commit(self) -> None:
        self.commits += 1


def a_runner(listing: Listing, published: list[int]) -> Runner[int]:
    return Runner(listing, listing, lambda change, placed: published.append(change))


def test_a_failed_append_leaves_the_core_untouched() -> None:
    listing = Listing()
    runner = a_runner(listing, [])
    listing.broken = True
    with pytest.raises(StorageError):
        runner.carry_out([NOOP])
    assert (listing.replayed, listing.end, listing.commits) == ([], 0, 0)
    listing.broken = False
    assert runner.carry_out([NOOP]) == 0


def test_what_is_no_record_of_the_metadata_log_is_never_appended() -> None:
    listing = Listing()
    with pytest.raises(AssertionError, match="CreateTopicsRequest"):
        a_runner(listing, []).carry_out([NOOP, messages.CreateTopicsRequest()])  # type: ignore[list-item]
    assert (listing.replayed, listing.end) == ([], 0)


def test_changes_are_published_in_order_and_before_their_answers() -> None:
    async def main() -> None:
        seen: list[int] = []
        runner = a_runner(Listing(), seen)
        first, second = runner.carry_out([NOOP, NOOP]), runner.carry_out([NOOP])
        answers = [asyncio.ensure_future(runner.committed(offset)) for offset in (first, second)]
        await asyncio.sleep(0)
        runner.advance(1)
        assert (seen, [a.done() for a in answers]) == ([], [False, False])
        runner.advance(2)
        assert seen == [0]
        await answers[0]
        assert not answers[1].done()
        runner.advance(3)
        await answers[1]
        assert seen == [0, 2]

    asyncio.run(main())


def test_an_answer_without_records_waits_for_what_it_may_have_seen() -> None:
    async def main() -> None:
        runner = a_runner(Listing(), [])
        assert runner.carry_out([]) is None
        await runner.committed(None)
        runner.carry_out([NOOP])
        reader = asyncio.ensure_future(runner.committed(runner.carry_out([])))
        await asyncio.sleep(0)
        assert not reader.done()
        runner.advance(1)
        await reader

    asyncio.run(main())


def test_a_cancelled_caller_loses_its_answer_and_nothing_else() -> None:
    async def main() -> None:
        seen: list[int] = []
        runner = a_runner(Listing(), seen)
        waiting = asyncio.ensure_future(runner.committed(runner.carry_out([NOOP])))
        await asyncio.sleep(0)
        waiting.cancel()
        runner.advance(1)
        assert seen == [0]

    asyncio.run(main())


# Group commit


class ManualDisk:
    """Jobs wait until the test lets them run."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Job, Done]] = []

    def run(self, job: Job, done: Done) -> None:
        self.jobs.append((job, done))

    def let_one_run(self) -> None:
        InlineDisk().run(*self.jobs.pop(0))

    def close(self) -> None:
        assert not self.jobs


def a_log(disk: SimDisk) -> Log:
    partition = TopicPartition("t", 0)
    return create_log(OpenFiles(disk), "/data/t-0", partition, bytes(range(16)), LogConfig(), now=0)


def append(log: Log) -> int:
    append_as_leader(log, build_batch([NewRecord(b"k", b"v", 0)]), 0, 0)
    return log.log_end_offset


def test_appends_that_wait_share_the_next_fsync() -> None:
    async def main() -> None:
        disk, log = ManualDisk(), a_log(SimDisk())
        commit = GroupCommit(log, disk)
        waiters = []
        for _ in range(10):
            waiters.append(asyncio.ensure_future(commit.durable(append(log))))
            await asyncio.sleep(0)
        assert len(disk.jobs) == 1  # begun when only the first append was there
        disk.let_one_run()
        await waiters[0]
        assert [w.done() for w in waiters[1:]] == [False] * 9
        assert len(disk.jobs) == 1
        disk.let_one_run()
        await asyncio.gather(*waiters)
        assert (disk.jobs, commit.flushed, log.recovery_point) == ([], 10, 10)

    asyncio.run(main())


def test_the_first_fsync_error_is_the_last_word() -> None:
    async def main() -> None:
        sim = SimDisk()
        log = a_log(sim)
        commit = GroupCommit(log, InlineDisk())
        await commit.durable(append(log))
        end = append(log)
        sim.failing_sync = lambda path: path.endswith(".log")
        with pytest.raises(StorageError) as failure:
            await commit.durable(end)
        assert failure.value.errno == errno.EIO
        sim.failing_sync = lambda path: False  # as on Linux: the next fsync would report success
        with pytest.raises(StorageError):
            await commit.durable(end)
        assert (commit.flushed, log.recovery_point) == (1, 1)

    asyncio.run(main())


def test_the_thread_runs_jobs_in_order_and_reports_on_the_loop() -> None:
    async def main() -> None:
        thread = SyncThread()
        order: list[str] = []
        finished = asyncio.get_running_loop().create_future()
        thread.run(lambda: order.append("one"), lambda error: order.append(f"one {error}"))

        def breaks() -> None:
            raise OSError(errno.EIO, "no")

        thread.run(breaks, finished.set_result)
        assert isinstance(await finished, OSError)
        assert order == ["one", "one None"]
        thread.close()

    asyncio.run(main())
