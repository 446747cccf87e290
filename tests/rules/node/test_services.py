"""A node is a table of services."""

import asyncio

import pytest

from ottla.node.services import OK, Ending, Health, Service, ServiceTable, State

END = Ending()


class Row(Service):
    def __init__(self, name: str, story: list[str], *, fails: str = "", amiss: str = "") -> None:
        self.name = name
        self._story = story
        self._fails = fails
        self._amiss = amiss

    async def start(self) -> None:
        self._act("start")

    async def stop(self, ending: Ending) -> None:
        self._act("stop")

    def abandon(self) -> None:
        self._act("abandon")

    async def health(self) -> Health:
        return Health.of({self._amiss: "is amiss"} if self._amiss else {})

    def banner(self) -> list[str]:
        return [f"{self.name} is here"]

    def _act(self, what: str) -> None:
        self._story.append(f"{what} {self.name}")
        if what == self._fails:
            raise RuntimeError(f"cannot {what} {self.name}")


async def _started(*rows: Row) -> ServiceTable:
    table = ServiceTable()
    for row in rows:
        await table.start(row)
    return table


def test_rows_stop_in_the_opposite_order_of_their_start() -> None:
    async def main() -> None:
        story: list[str] = []
        table = await _started(Row("storage", story), Row("broker", story))
        await table.stop(END)
        assert story == ["start storage", "start broker", "stop broker", "stop storage"]
        await table.stop(END)
        assert len(story) == 4  # once

    asyncio.run(main())


def test_a_row_that_could_not_start_is_stopped_like_those_before_it() -> None:
    async def main() -> None:
        story: list[str] = []
        table = await _started(Row("storage", story))
        with pytest.raises(RuntimeError):
            await table.start(Row("broker", story, fails="start"))
        await table.stop(END)
        assert story[2:] == ["stop broker", "stop storage"]

    asyncio.run(main())


def test_a_row_that_fails_to_stop_keeps_no_other_from_it() -> None:
    async def main() -> None:
        story: list[str] = []
        table = await _started(Row("storage", story), Row("broker", story, fails="stop"))
        with pytest.raises(RuntimeError, match="cannot stop broker"):
            await table.stop(END)
        assert story[2:] == ["stop broker", "stop storage"]

    asyncio.run(main())


def test_the_end_by_force_lets_go_of_everything_and_stops_nothing() -> None:
    async def main() -> None:
        story: list[str] = []
        (await _started(Row("storage", story), Row("broker", story))).abandon()
        assert story[2:] == ["abandon broker", "abandon storage"]

    asyncio.run(main())


def test_health_and_banner_are_those_of_the_rows() -> None:
    async def main() -> None:
        story: list[str] = []
        table = await _started(Row("storage", story), Row("broker", story, amiss="fenced"))
        assert table.banner() == ["storage is here", "broker is here"]
        assert await table.health() == {"storage": OK, "broker": Health(State.DEGRADED, {"fenced": "is amiss"})}

    asyncio.run(main())


def test_a_row_is_starting_until_its_start_has_returned_whatever_else_it_says() -> None:
    class Slow(Row):
        async def start(self) -> None:
            await asyncio.Event().wait()

    async def main() -> None:
        table = ServiceTable()
        start = asyncio.ensure_future(table.start(Slow("broker", [], amiss="fenced")))
        await asyncio.sleep(0)
        assert await table.health() == {"broker": Health(State.STARTING, {"fenced": "is amiss"})}
        start.cancel()
        await asyncio.wait([start])

    asyncio.run(main())
