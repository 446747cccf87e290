"""Levels of loggers reach the process in which connectors run, and once more when that is another one."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ottla.connect.jobs.runner import HostRunner
from ottla.connect.orders import Order, Resolved, WorkerFacts
from ottla.pipelines.door import Door, HostClient
from ottla.pipelines.host_process import HostProcess
from tests.support.patience import eventually


class Hosts:
    """A door, behind which another host may stand at any time."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._door = Door(directory, self._answer, (ValueError,))
        self.pid = 1
        self.told: list[tuple[int, Mapping[str, int]]] = []

    def _answer(self, request: Mapping[str, Any]) -> object:
        if request["do"] == "levels":
            self.told.append((self.pid, request["levels"]))
        return {"pid": self.pid, "jobs": []}

    def client(self, patience_s: float = 0.0) -> HostClient:
        return HostClient(self._directory)

    def close(self) -> None:
        self._door.close()


def test_each_host_is_told_the_levels_in_the_order_in_which_they_were_set(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path)
    runner = HostRunner(WorkerFacts("", "g", "o"), hosts, tmp_path)

    async def lived() -> None:
        runner.set_level("ottla.connect.jobs", logging.DEBUG)
        runner.set_level("ottla", logging.ERROR)
        await runner.start(Order("a", {}, "sink", 1, 1, 1), Resolved({}))
        await asyncio.to_thread(eventually, lambda: len(hosts.told) == 1, "the levels")
        runner.set_level("ottla.connect.jobs", logging.INFO)
        await asyncio.to_thread(eventually, lambda: len(hosts.told) == 2, "another level")
        runner.set_level("ottla", logging.ERROR)  # which counts for what is below it, once more
        await asyncio.to_thread(eventually, lambda: len(hosts.told) == 3, "the same level again")
        hosts.pid = 2
        await asyncio.to_thread(eventually, lambda: len(hosts.told) == 4, "another host")
        await runner.close()

    asyncio.run(lived())
    later = [("ottla", logging.ERROR), ("ottla.connect.jobs", logging.INFO)]
    assert [(pid, list(levels.items())) for pid, levels in hosts.told] == [
        (1, [("ottla.connect.jobs", logging.DEBUG), ("ottla", logging.ERROR)]),
        (1, later),
        (1, later[::-1]),
        (2, later[::-1]),
    ]


@pytest.fixture
def loggers() -> Iterator[list[logging.Logger]]:
    found = [logging.getLogger(name) for name in ("test.levels", "test.levels.below", "test.levelsbeside")]
    yield found
    for each in found:
        each.setLevel(logging.NOTSET)


def test_a_host_sets_the_levels_of_a_name_space(tmp_path: Path, loggers: list[logging.Logger]) -> None:
    host = HostProcess(tmp_path, "local[1]", {})
    try:
        host.answer({"do": "levels", "levels": {"test.levels": logging.ERROR, "test.levels.below": logging.DEBUG}})
    finally:
        host.close()
    assert [each.level for each in loggers] == [logging.ERROR, logging.DEBUG, logging.NOTSET]
