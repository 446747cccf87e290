"""Requests that wait for the end of the transaction before."""

from asyncio import Task, gather
from collections.abc import Iterator
from random import Random

import pytest

from ottla.broker.coordination.endings import Endings
from ottla.testing.sim.loop import SimLoop


class Scene:
    def __init__(self) -> None:
        self.loop = SimLoop(Random(1))
        self.endings = Endings(self.loop)

    async def waited_ms(self, transactional_id: str, within_ms: int) -> int:
        begun = self.loop.time()
        await self.endings.next(transactional_id, within_ms)
        return round((self.loop.time() - begun) * 1000)

    def start(self, transactional_id: str, within_ms: int = 100) -> "Task[int]":
        return self.loop.create_task(self.waited_ms(transactional_id, within_ms))

    def end(self, transactional_id: str, at_ms: int) -> None:
        self.loop.call_later(at_ms / 1000, self.endings.tell, transactional_id)


@pytest.fixture
def scene() -> Iterator[Scene]:
    found = Scene()
    yield found
    found.loop.close()


def test_whoever_waits_for_a_transaction_hears_of_its_end_and_of_no_other(scene: Scene) -> None:
    all_three = gather(scene.start("a"), scene.start("a"), scene.start("b"))
    scene.end("a", at_ms=30)
    assert [*scene.loop.run_until_complete(all_three)] == [30, 30, 100]
    assert not scene.endings.is_awaited("a") and not scene.endings.is_awaited("b")


def test_who_goes_away_first_takes_nothing_from_the_others(scene: Scene) -> None:
    impatient, gone, patient = scene.start("a", within_ms=10), scene.start("a"), scene.start("a")
    scene.loop.call_later(0.02, gone.cancel)
    scene.end("a", at_ms=30)
    assert [*scene.loop.run_until_complete(gather(impatient, patient))] == [10, 30]
    assert gone.cancelled()
    assert not scene.endings.is_awaited("a")
