"""The runner of a coordinator shard: append, replay, commit, reply, in this order; parked replies; time; the end."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

import pytest

from ottla.coordinator.group.commits import Commits
from ottla.coordinator.records import CoordinatorRecord, Decoder, Packed
from ottla.coordinator.shard import Decision, Now, Parked, Respond, Run
from ottla.coordinator.undo import Undo
from ottla.metadata.image import EMPTY, MetadataImage
from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol import messages
from ottla.protocol.batch import CONTROL, TRANSACTIONAL, seal
from ottla.protocol.records import NewRecord, build_batch
from ottla.runtime import coordinator
from ottla.runtime.coordinator import CoordinatorError, CoordinatorRunner, Transaction, UnreadableJournal


class Diary:
    """A shard that writes down what happens to it."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.images: list[int] = []
        self.undo = Undo()
        self.due: Millis | None = None
        self.follows: tuple[object, ...] = ()
        """From what was loaded."""

    def replay(
        self, record: CoordinatorRecord | Packed, offset: int, producer_id: int = -1, producer_epoch: int = -1
    ) -> None:
        if not isinstance(record, CoordinatorRecord):
            self.events.append(("packed", record.count, offset))
            return
        assert isinstance(record.key, messages.GroupMetadataKey)
        self.events.append((record.key.group, offset, producer_id))

    def complete_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        self.events.append(("ended", producer_id, committed))

    def loaded(self, image: MetadataImage, now: Now) -> Decision[None]:
        self.events.append("loaded")
        return Decision(None, effects=self.follows)

    def on_metadata(self, image: MetadataImage, now: Now) -> Decision[None]:
        self.images.append(image.offset)
        return Decision(None, (note("image"),))

    def tick(self, now: Now) -> Decision[None]:
        self.due = None
        self.events.append("tick")
        return Decision(None, (note("ticked"),), (Respond(1, "in time"),))

    def next_tick(self) -> Millis | None:
        return self.due

    def resigned(self) -> tuple[Respond, ...]:
        return (Respond(1, "resigned"),)


def note(name: str) -> CoordinatorRecord:
    return CoordinatorRecord(messages.GroupMetadataKey(group=name), None)


class Paper:
    """A journal in memory that commits when it is told to."""

    def __init__(self, batches: Sequence[bytes] = ()) -> None:
        self.stored = list(batches)
        self.appended: list[tuple[int, Transaction | None]] = []
        self.end = 0
        self.committed = 1 << 60
        self.waiting: list[tuple[int, Callable[[Errors], None]]] = []
        self.refuse: Errors | None = None

    def append(self, records: Sequence[NewRecord], transaction: Transaction | None) -> int:
        if self.refuse is not None:
            raise CoordinatorError(self.refuse)
        first = self.end
        self.end += len(records)
        self.appended.append((len(records), transaction))
        return first

    def append_packed(self, packed: Packed) -> int:
        return self.append([NewRecord(None, None, packed.timestamp)] * packed.count, None)

    def is_committed(self, offset: int) -> bool:
        return offset < self.committed

    def when_committed(self, offset: int, then: Callable[[Errors], None]) -> None:
        self.waiting.append((offset, then))

    def batches(self, offset: int) -> Iterable[memoryview]:
        return [memoryview(batch) for index, batch in enumerate(self.stored) if index >= offset]


class Clock:
    def __init__(self) -> None:
        self.now = 0

    def wall(self) -> Millis:
        return Millis(1000 + self.now)

    def monotonic(self) -> Millis:
        return Millis(self.now)


Runner = CoordinatorRunner[Diary]
Scene = Callable[[Runner, Diary, Paper, Clock], Coroutine[Any, Any, None]]


def play(scene: Scene, batches: Sequence[bytes] = ()) -> None:
    async def run() -> None:
        diary, paper, clock = Diary(), Paper(batches), Clock()
        runner = CoordinatorRunner(diary, paper, Decoder(messages.GROUP_RECORDS), clock, asyncio.get_running_loop())
        await scene(runner, diary, paper, clock)

    asyncio.run(run())


async def begun(runner: Runner) -> None:
    await runner.load(lambda: EMPTY)


def test_nothing_is_served_before_the_log_is_replayed() -> None:
    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        with pytest.raises(CoordinatorError, match="COORDINATOR_LOAD_IN_PROGRESS"):
            runner.submit(lambda shard, now: Decision("answer"))
        await begun(runner)
        assert runner.submit(lambda shard, now: Decision("answer")) == "answer"

    play(scene)


@pytest.mark.parametrize("resealed", [False, True], ids=["by its CRC", "by its records"])
def test_a_damaged_batch_is_told_with_its_offset_and_nothing_of_it_is_replayed(resealed: bool) -> None:
    good = build_batch([NewRecord(b"\0\2\0\1a", None, 0)], base_offset=0)
    damaged = build_batch([NewRecord(b"\0\2\0\1b", None, 0)], base_offset=1)
    damaged[61] ^= 0x10
    if resealed:
        seal(damaged)

    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        with pytest.raises(UnreadableJournal, match="the batch at offset 1 cannot be read: "):
            await begun(runner)
        assert diary.events == [("a", 0, -1)]
        with pytest.raises(CoordinatorError, match="COORDINATOR_LOAD_IN_PROGRESS"):
            runner.submit(lambda shard, now: Decision("answer"))

    play(scene, [bytes(good), bytes(damaged)])


def test_the_log_is_replayed_with_its_transactions_and_their_ends() -> None:
    plain = build_batch([NewRecord(b"\0\2\0\1a", None, 0)], base_offset=0)
    staged = build_batch(
        [NewRecord(b"\0\2\0\1b", None, 0)], base_offset=1, attributes=TRANSACTIONAL, producer_id=7, producer_epoch=0
    )
    marker = build_batch(
        [NewRecord(b"\0\0\0\1", b"\0\0\0\0\0\0", 0)],
        base_offset=2,
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=7,
        producer_epoch=0,
    )
    unknown = build_batch([NewRecord(b"\x03\xe7", None, 0)], base_offset=3)
    torn = build_batch([NewRecord(b"\0\2\0\x09a", None, 0)], base_offset=4)

    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        await begun(runner)
        assert diary.events == [("a", 0, -1), ("b", 1, 7), ("ended", 7, True), "loaded"]

    play(scene, [bytes(batch) for batch in (plain, staged, marker, unknown, torn)])


def test_what_is_decided_is_appended_and_replayed_before_anything_else_can_happen() -> None:
    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        await begun(runner)
        runner.submit(lambda shard, now: Decision("done", (note("x"), note("y"))), Transaction(7, 1))
        assert diary.events == ["loaded", ("x", 0, 7), ("y", 1, 7)]
        assert paper.appended == [(2, Transaction(7, 1))]

    play(scene)


def test_packed_records_are_appended_and_replayed_as_one_and_committed_with_the_last() -> None:
    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        await begun(runner)
        runner.submit(lambda shard, now: Decision("done", (note("x"),)))
        paper.committed = 3
        commits = Commits("g", [("orders", bytes(16), [(0, 5, 0), (1, 6, 0), (2, 7, 0)])], 1000)
        reply = runner.submit(lambda shard, now: Decision("done", (commits,)))
        assert isinstance(reply, asyncio.Future)
        assert diary.events == ["loaded", ("x", 0, -1), ("packed", 3, 1)]
        assert (paper.appended, [offset for offset, _ in paper.waiting]) == ([(1, None), (3, None)], [3])

    play(scene)


def test_a_reply_waits_for_the_commit_also_if_it_changed_nothing_itself() -> None:
    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        await begun(runner)
        paper.committed = 0
        first = runner.submit(lambda shard, now: Decision("written", (note("x"),)))
        second = runner.submit(lambda shard, now: Decision("seen"))
        assert isinstance(first, asyncio.Future) and isinstance(second, asyncio.Future)
        assert not first.done() and not second.done()
        for _, then in paper.waiting:
            then(Errors.NONE)
        assert (await first, await second) == ("written", "seen")

    play(scene)


def test_what_was_loaded_is_acted_on_once_it_is_committed() -> None:
    """The end of a log that a leader left behind may be on one replica. Lost with it, a transaction that some markers
    had committed would be aborted on the other partitions."""
    left_behind = [bytes(build_batch([NewRecord(b"\0\2\0\1a", None, 0)], base_offset=at)) for at in range(2)]

    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        paper.committed = 1
        diary.follows = (Run(lambda: "found", lambda found, now: Decision(None, (), (Respond(1, found),))),)
        await begun(runner)
        seen: Any = runner.submit(lambda shard, now: Decision("seen"))
        parked: Any = runner.submit(lambda shard, now: Decision(Parked(1)))
        assert [offset for offset, _ in paper.waiting] == [1, 1, 1]
        assert not seen.done() and not parked.done()
        paper.committed = 2
        for _, then in paper.waiting:
            then(Errors.NONE)
        assert (await seen, await parked) == ("seen", "found")

    play(scene, left_behind)


def test_a_commit_that_fails_is_told() -> None:
    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        await begun(runner)
        paper.committed = 0
        reply = runner.submit(lambda shard, now: Decision("written", (note("x"),)))
        paper.waiting[0][1](Errors.COORDINATOR_NOT_AVAILABLE)
        assert isinstance(reply, asyncio.Future)
        with pytest.raises(CoordinatorError, match="COORDINATOR_NOT_AVAILABLE"):
            await reply

    play(scene)


def test_a_parked_reply_comes_when_the_shard_says_so() -> None:
    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        await begun(runner)
        parked: Any = runner.submit(lambda shard, now: Decision(Parked(5)))
        assert not parked.done()
        runner.submit(lambda shard, now: Decision("other", (), (Respond(5, "now"),)))
        assert await parked == "now"
        at_once: Any = runner.submit(lambda shard, now: Decision(Parked(6), (), (Respond(6, "at once"),)))
        assert at_once == "at once"

    play(scene)


def test_a_parked_reply_whose_commit_fails_is_told_so() -> None:
    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        await begun(runner)
        paper.committed = 0
        parked: Any = runner.submit(lambda shard, now: Decision(Parked(5), (note("x"),), (Respond(5, "now"),)))
        paper.waiting[0][1](Errors.COORDINATOR_NOT_AVAILABLE)
        with pytest.raises(CoordinatorError, match="COORDINATOR_NOT_AVAILABLE"):
            await parked

    play(scene)


def test_what_follows_a_commit_follows_also_if_it_comes_too_late_for_the_reply() -> None:
    """Or a transaction whose end took long to commit would wait for its markers for ever."""

    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        await begun(runner)
        paper.committed = 0
        work = Run(lambda: "found", lambda found, now: Decision(None, (), (Respond(1, found),)))
        effects = (Respond(5, "now"), work)
        parked: Any = runner.submit(lambda shard, now: Decision(Parked(5), (note("x"),), effects))
        paper.waiting.pop()[1](Errors.COORDINATOR_NOT_AVAILABLE)
        with pytest.raises(CoordinatorError, match="COORDINATOR_NOT_AVAILABLE"):
            await parked
        paper.waiting.pop()[1](Errors.COORDINATOR_NOT_AVAILABLE)
        offset, then = paper.waiting.pop()
        paper.committed = 1 << 60
        found: Any = runner.submit(lambda shard, now: Decision(Parked(1)))
        then(Errors.NONE)
        assert (offset, await found, paper.waiting) == (0, "found", [])

    play(scene)


def test_nothing_follows_what_another_leader_may_have_undone() -> None:
    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        await begun(runner)
        paper.committed = 0
        work = Run(lambda: diary.events.append("worked"), lambda found, now: Decision(None))
        runner.submit(lambda shard, now: Decision("lost", (note("x"),), (work,)))
        runner.submit(lambda shard, now: Decision("resigned", (note("y"),), (work,)))
        (_, first), (_, second) = paper.waiting
        paper.waiting.clear()
        first(Errors.NOT_COORDINATOR)
        runner.resign()
        second(Errors.NONE)
        await asyncio.sleep(0)
        assert ("worked" in diary.events, paper.waiting) == (False, [])

    play(scene)


def test_deadlines_are_kept() -> None:
    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        await begun(runner)
        diary.due = Millis(10)
        parked: Any = runner.submit(lambda shard, now: Decision(Parked(1)))
        clock.now = 10
        assert await parked == "in time"
        assert diary.events == ["loaded", "tick", ("ticked", 0, -1)]

    play(scene)


def test_long_work_that_fails_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        def fails() -> None:
            diary.events.append("worked")
            raise ValueError("a regular expression too many")

        await begun(runner)
        runner.submit(lambda shard, now: Decision("seen", (), (Run(fails, lambda found, now: Decision(None)),)))
        await asyncio.wait(list(runner._tasks._running))

    play(scene)
    assert caplog.messages == ["work of a coordinator failed"]


def test_long_work_runs_beside_the_loop_and_its_outcome_is_one_more_command() -> None:
    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        await begun(runner)
        work = Run(lambda: "found", lambda found, now: Decision(None, (note(found),), (Respond(1, found),)))
        parked: Any = runner.submit(lambda shard, now: Decision(Parked(1), (), (work,)))
        assert await parked == "found"
        assert diary.events[-1] == ("found", 0, -1)

    play(scene)


def test_a_log_that_refuses_a_command_changes_nothing() -> None:
    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        await begun(runner)
        parked: Any = runner.submit(lambda shard, now: Decision(Parked(1)))

        def command(shard: Diary, now: Now) -> Decision[Any]:
            shard.undo.field(shard, "due")
            shard.due = Millis(5)
            return Decision(Parked(2), (note("x"),), (Respond(1, "never"), Respond(2, "never")))

        paper.refuse = Errors.INVALID_PRODUCER_EPOCH
        with pytest.raises(CoordinatorError, match="INVALID_PRODUCER_EPOCH"):
            runner.submit(command, Transaction(1, 0))
        assert (runner.error, diary.events, diary.due, parked.done()) == (None, ["loaded"], None, False)
        paper.refuse = None
        assert runner.submit(command) == "never"
        assert (diary.due, await parked) == (5, "never")

    play(scene)


def test_a_command_that_fails_changes_nothing() -> None:
    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        await begun(runner)

        def command(shard: Diary, now: Now) -> Decision[str]:
            shard.undo.field(shard, "due")
            shard.due = Millis(5)
            raise AssertionError("a bug")

        with pytest.raises(AssertionError, match="a bug"):
            runner.submit(command)
        assert (runner.error, diary.due) == (None, None)

    play(scene)


def test_what_nobody_asked_for_is_tried_again_until_the_log_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "_REFUSED_PAUSE_S", 0.001)

    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        await begun(runner)
        attempts = []

        def then(found: Any, now: Now) -> Decision[Any]:
            attempts.append(found)
            if len(attempts) == 3:
                paper.refuse = None
            return Decision(None, (note("y"),), (Respond(1, found),))

        parked: Any = runner.submit(lambda shard, now: Decision(Parked(1), (), (Run(lambda: "found", then),)))
        paper.refuse = Errors.COORDINATOR_NOT_AVAILABLE
        assert await parked == "found"
        assert (attempts, diary.events) == (["found"] * 3, ["loaded", ("y", 0, -1)])

    play(scene)


def test_of_the_images_that_a_log_has_refused_the_latest_is_tried_again_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a cluster with trouble many images come, and each shard of each broker hears of all of them."""
    monkeypatch.setattr(coordinator, "_REFUSED_PAUSE_S", 0)

    async def scene(runner: Runner, diary: Diary, paper: Paper, clock: Clock) -> None:
        await begun(runner)
        paper.refuse = Errors.COORDINATOR_NOT_AVAILABLE
        for offset in (1, 2, 3):
            runner.on_metadata(EMPTY._replace(offset=offset))
        assert diary.images == [1, 2, 3]
        paper.refuse = None
        for _ in range(10):  # turns of the loop: more than enough for each that would be tried
            await asyncio.sleep(0)
        assert (diary.images, len(paper.appended)) == ([1, 2, 3, 3], 1)

    play(scene)
