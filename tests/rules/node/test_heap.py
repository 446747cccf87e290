"""What comes to stay is not walked by the collector again and again."""

import asyncio
import gc
from collections.abc import Iterator

import pytest

from ottla.node import heap


@pytest.fixture
def own_process() -> Iterator[None]:
    """Gives back what was frozen: this process is not a node's own."""
    assert gc.get_freeze_count() == 0
    yield
    gc.unfreeze()


class Long:
    """Something that stays."""


@pytest.mark.usefixtures("own_process")
def test_what_is_alive_when_it_is_settled_is_not_walked_again() -> None:
    before = Long()
    heap.settled()
    after = Long()
    walked = {id(each) for each in gc.get_objects()}
    assert id(before) not in walked
    assert id(after) in walked


@pytest.mark.usefixtures("own_process")
def test_a_ring_of_young_objects_that_nobody_holds_is_collected_and_not_kept() -> None:
    died: list[bool] = []

    class Ring:
        def __init__(self) -> None:
            self.own = self

        def __del__(self) -> None:
            died.append(True)

    Ring()
    heap.settled()
    assert died == [True]


def test_it_is_told_once_for_many_partitions_and_not_before_all_have_heard_of_the_last() -> None:
    async def grow() -> list[str]:
        told: list[str] = []
        growth = heap.Growth(asyncio.get_running_loop(), lambda: told.append("settled"))
        for _ in range(heap.MANY):
            growth.one_more()
        told.append("the last has come")
        await asyncio.sleep(0)
        for _ in range(heap.MANY - 1):
            growth.one_more()
        await asyncio.sleep(0)
        return told

    assert asyncio.run(grow()) == ["the last has come", "settled"]
