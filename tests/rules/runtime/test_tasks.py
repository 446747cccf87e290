"""Tasks belong to somebody."""

import asyncio

import pytest

from ottla.runtime.tasks import Tasks


def test_tasks_end_with_their_owner() -> None:
    async def main() -> None:
        tasks = Tasks(asyncio.get_running_loop())
        ended: list[str] = []

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("work")

        tasks.start(work(), "work")
        await asyncio.sleep(0)
        await tasks.stop()
        assert (ended, len(tasks)) == (["work"], 0)

    asyncio.run(main())


def test_what_a_task_raises_is_told_and_ends_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        tasks = Tasks(asyncio.get_running_loop())

        async def fails() -> None:
            raise RuntimeError("broken")

        other = tasks.start(asyncio.sleep(3600), "other")
        await asyncio.wait([tasks.start(fails(), "an errand")])
        assert [(r.levelname, r.message) for r in caplog.records] == [("ERROR", "an errand failed")]
        assert not other.done()
        await tasks.stop()

    asyncio.run(main())
