"""Connectors that run at once, halt at the same step and are killed there; what they were given, and what they left."""

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ottla.connect.jobs.spec import JobSpec
from ottla.node.spark_host import SparkHost
from ottla.pipelines.door import HostGone
from tests.spark.applications import World
from tests.spark.connect.connectors import spec_of
from tests.spark.connect.halting import ENTRY, NOWHERE
from tests.support.patience import eventually

MORE = 600
"""In each life. More than what goes along with a plan, so that tasks read for themselves as well."""


class Rig:
    """Each connector brings the numbers from 0 on somewhere, a few more in each life."""

    def __init__(self, world: World, host: SparkHost) -> None:
        self.world = world
        self._host = host
        self._given = 0
        self._lives = 0
        self._folder = world.directory / "left"
        self._folder.mkdir()
        self.name = world.name.replace("-", "_")
        self.topic = world.topic("in")
        self.specs: Mapping[str, JobSpec] = {}

    # What a rig says of its connectors.

    def begin(self) -> None:
        self.specs = {short: spec_of(self.world, short, config) for short, config in self.configs().items()}

    def configs(self) -> Mapping[str, dict[str, str]]:
        raise NotImplementedError

    def bring(self, numbers: Sequence[int]) -> None:
        """More to do for each of them."""
        raise NotImplementedError

    def found(self) -> Mapping[str, list[int]]:
        """What each of them has left; sorted where its target has no order."""
        raise NotImplementedError

    def path(self, short: str) -> str:
        return str(self._folder / short)

    # Lives.

    def give(self) -> None:
        numbers = range(self._given, self._given + MORE)
        self._given += MORE
        self.bring(numbers)

    def halted(self, step: str) -> Path:
        """All of them have come to that step of their first batch."""
        self._lives += 1
        folder = Path(self.path(f"life-{self._lives}"))
        folder.mkdir()
        self._start(self.specs, folder, step, once=False)

        def all_there() -> bool:
            failed = {name: job["reason"] for name, job in self.jobs().items() if job["state"] == "FAILED"}
            assert not failed, failed
            return all((folder / f"{spec.name}.reached").exists() for spec in self.specs.values())

        eventually(all_there, f"all of them {step}")
        return folder

    def finish(self) -> None:
        """Until all is done; those that fail are started again, as a worker does it."""
        folder = Path(self.path("last"))
        folder.mkdir()
        rest = dict(self.specs)
        self._start(rest, folder, NOWHERE, once=True)

        def done() -> bool:
            for short, spec in list(rest.items()):
                state = self.jobs()[spec.name]["state"]
                if state == "STOPPED":
                    del rest[short]
                elif state == "FAILED":
                    self._start({short: spec}, folder, NOWHERE, once=True)
            return not rest

        eventually(done, "the end of all of them")

    def stop(self) -> None:
        with self._host.client() as client:
            for spec in self.specs.values():
                client.stop(spec.name)

    def kill_host(self) -> None:
        with self._host.client() as client:
            os.kill(client.pid(), signal.SIGKILL)

        def another() -> bool:
            try:
                return not self.jobs()
            except HostGone:  # the one that dies
                return False

        eventually(another, "another host")

    def jobs(self) -> Mapping[str, Mapping[str, Any]]:
        with self._host.client() as client:
            return client.status()

    def _start(self, specs: Mapping[str, JobSpec], folder: Path, step: str, *, once: bool) -> None:
        with self._host.client() as client:
            for spec in specs.values():
                given = {**asdict(spec), "once": once}
                client.start(spec.name, ENTRY, {"spec": given, "folder": str(folder), "step": step}, keep=False)

    def check(self) -> None:
        numbers = list(range(self._given))
        found = self.found()
        assert {short: _difference(ids, numbers) for short, ids in found.items()} == dict.fromkeys(found, "")


def _difference(found: list[int], wanted: list[int]) -> str:
    """In words, as there are thousands."""
    if found == wanted:
        return ""
    missing, twice = sorted(set(wanted) - set(found)), len(found) - len(set(found))
    return f"{len(found)} of {len(wanted)}, {twice} twice, missing {missing[:5]}"
