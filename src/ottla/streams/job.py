"""An application as a job of a Spark host: `ottla.streams.job:start`, with its file as the argument.

    {"file": "word_count.py", "application.id": "word-count", "config": {"commit.interval.ms": "100"}}

All but `file` may be left out. The folder of the application is held while the job runs, as by `ottla streams run`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ottla.pipelines.job import CannotStart
from ottla.streams.app_file import AppFileError, load
from ottla.streams.run.application import Runner
from ottla.streams.run.config import ConfigError
from ottla.streams.run.running import Running
from ottla.streams.run.shipping import ship_by_value
from ottla.streams.run.state_directory import StateDirectory
from ottla.streams.topology.errors import TopologyError
from ottla.streams.topology.partition_counts import PartitionsError
from ottla.streams.views.server import serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.streams.app import StreamsApp

_KNOWN = {"file", "application.id", "config"}


class RunInSession:
    """One run of an application, in a session that a host gives."""

    def __init__(self, runner: Running, spark: SparkSession) -> None:
        self._runner = runner
        self._spark = spark

    def run(self) -> None:
        self._runner.run(self._spark)

    def stop(self) -> None:
        self._runner.stop()

    def progress(self) -> Mapping[str, Any]:
        return self._runner.status()


class HeldRun(RunInSession):
    """With the folder of the application held, and its stores served."""

    def __init__(self, app: StreamsApp, spark: SparkSession) -> None:
        """Raises CannotStart."""
        self._app = app
        try:
            super().__init__(Runner(app), spark)
        except (TopologyError, PartitionsError) as error:
            raise CannotStart(f"{app.application_id} cannot run: {error}") from error

    def run(self) -> None:
        directory = StateDirectory.of(self._app)
        with ExitStack() as stack:
            tell = stack.enter_context(directory.held({})) if directory.is_local else None
            if self._app.config["application.server"]:
                url = stack.enter_context(serving(self._app, self._runner))
                if tell is not None:
                    tell({"queries": url})
            super().run()


def start(spark: SparkSession, arguments: Mapping[str, Any]) -> HeldRun:
    """Raises CannotStart."""
    if "file" not in arguments or not arguments.keys() <= _KNOWN:
        raise CannotStart(f"the arguments {sorted(arguments)}: file, application.id and config are expected")
    try:
        app, module = load(str(arguments["file"]))
        changed = app.changed(application_id=arguments.get("application.id"), config=arguments.get("config"))
    except (AppFileError, ConfigError) as error:
        raise CannotStart(str(error)) from error
    ship_by_value(module)
    return HeldRun(changed, spark)
