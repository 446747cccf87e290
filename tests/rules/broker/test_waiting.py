"""Requests that wait, on a loop: each is told in its time, whatever becomes of the others."""

from asyncio import Future, sleep
from collections.abc import Iterator
from random import Random

import pytest

from ottla.broker.partition import Partition
from ottla.broker.waiting.purgatory import FetchWait
from ottla.broker.waiting.requests import WaitingRequests
from ottla.metrics.counts import TopicCounts
from ottla.testing.sim.loop import SimLoop
from ottla.testing.sim.world import SimClock


class Scene:
    def __init__(self) -> None:
        self.loop = SimLoop(Random(1))
        self.waiting = WaitingRequests(self.loop, SimClock(self.loop))
        self.partition = Partition("t", bytes(16), 0, TopicCounts())

    def park(self, timeout_ms: int = 100, *, fails: bool = False) -> "Future[str]":
        answer: Future[str] = self.loop.create_future()

        def resume() -> None:
            if fails:
                raise ValueError("a defect")
            answer.set_result("told")

        wait = FetchWait(self.waiting.deadline(timeout_ms), 1, resume)
        self.waiting.park_fetch(wait, (self.partition,), answer)
        return answer

    def live(self, seconds: float) -> None:
        self.loop.run_until_complete(sleep(seconds))


@pytest.fixture
def scene() -> Iterator[Scene]:
    found = Scene()
    yield found
    found.loop.close()


def test_what_is_past_its_deadline_is_told_so_and_the_rest_waits_on(scene: Scene) -> None:
    soon, late = scene.park(100), scene.park(300)
    scene.live(0.2)
    assert (soon.done(), late.done()) == (True, False)
    scene.live(0.2)
    assert late.result() == "told"


@pytest.mark.parametrize("expired", [True, False], ids=["by the clock", "by a record"])
def test_one_that_fails_keeps_no_other_waiting_and_is_cut_off_itself(scene: Scene, expired: bool) -> None:
    before, failing, behind = scene.park(), scene.park(fails=True), scene.park()
    if not expired:
        scene.waiting.records_visible(scene.partition, 1)
    scene.live(0.2 if expired else 0.01)
    assert (before.result(), behind.result()) == ("told", "told")
    assert failing.cancelled()
    assert [str(context["exception"]) for context in scene.loop.errors] == ["a defect"]
