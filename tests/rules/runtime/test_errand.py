"""Work by one task at a time."""

import asyncio

import pytest

from ottla.runtime.errand import Errand


class Workshop:
    """Works off a list, one piece in each turn of the loop."""

    def __init__(self) -> None:
        self.todo: list[str] = []
        self.done: list[str] = []
        self.at_work = 0
        self.errand = Errand(asyncio.get_running_loop(), "a workshop", self._run, lambda: bool(self.todo))

    def order(self, *pieces: str) -> None:
        self.todo += pieces
        self.errand.work()

    async def _run(self) -> None:
        self.at_work += 1
        assert self.at_work == 1
        try:
            while self.todo:
                piece = self.todo.pop(0)
                await asyncio.sleep(0)
                if piece == "broken":
                    raise ValueError(piece)
                self.done.append(piece)
        finally:
            self.at_work -= 1

    async def until_idle(self) -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        assert not self.todo and not self.at_work


def test_all_is_done_in_order_by_one_task_whenever_it_comes() -> None:
    async def main() -> list[str]:
        shop = Workshop()
        shop.order("a", "b")
        await asyncio.sleep(0)
        shop.order("c")
        await shop.until_idle()
        shop.order("d")
        await shop.until_idle()
        return shop.done

    assert asyncio.run(main()) == ["a", "b", "c", "d"]


def test_a_failure_is_told_and_what_is_left_is_done(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> list[str]:
        shop = Workshop()
        shop.order("a", "broken", "b")
        await shop.until_idle()
        return shop.done

    assert asyncio.run(main()) == ["a", "b"]
    assert "a workshop: failed" in caplog.text


def test_a_stop_ends_it_in_the_middle() -> None:
    async def main() -> list[str]:
        shop = Workshop()
        shop.order("a", "b", "c")
        await asyncio.sleep(0)
        await shop.errand.stop()
        await asyncio.sleep(0)
        return shop.todo

    assert asyncio.run(main()) != []


def test_what_comes_after_the_end_is_not_begun() -> None:
    async def main() -> list[str]:
        shop = Workshop()
        shop.order("a")
        await shop.until_idle()
        await shop.errand.stop()
        shop.order("b")
        for _ in range(10):
            await asyncio.sleep(0)
        return shop.done

    assert asyncio.run(main()) == ["a"]
