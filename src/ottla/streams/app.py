"""An application: a topology with a name and settings. Light: pyspark is imported when it runs, not before.

    app = StreamsApp("word-count", builder.build(), bootstrap_servers="127.0.0.1:9092", commit_interval_ms=100)

`ottla streams run FILE` runs the module-level `app` of a file; `app.run()` does the same from Python.
"""
# ruff: noqa: PLC0415  what only a running application needs is imported when it runs

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.installed import check_spark
from ottla.streams.errors import StreamsError
from ottla.streams.run.config import MARKER_SUFFIX, Config, ConfigError
from ottla.streams.run.life import CREATED, ERROR, NOT_RUNNING, Hooks

if TYPE_CHECKING:
    from ottla.streams.run.life import StateListener, StateRestoreListener, UncaughtExceptionHandler
    from ottla.streams.run.running import Metric, Running
    from ottla.streams.topology.graph import Graph
    from ottla.streams.topology.topology import Topology

_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
_LONGEST_ID: Final = 200
"""Internal topics begin with it, and a topic's name may have 249 characters."""


class StreamsApp:
    """`config` takes Kafka's names: `commit_interval_ms=100` or `**{"commit.interval.ms": 100}`."""

    __slots__ = ("_runner", "application_id", "config", "hooks", "topology")

    def __init__(self, application_id: str, topology: "Topology", **config: Any) -> None:
        self.application_id = _checked_id(application_id)
        if hasattr(topology, "build") and not hasattr(topology, "describe"):
            raise TypeError("a topology is expected: pass builder.build(), not the builder")
        self.config = Config(config)
        optimization = self.config["topology.optimization"]
        self.topology = topology if optimization == "none" else topology.optimized(optimization)
        if self.config["ensure.explicit.internal.resource.naming"]:
            self.topology.require_own_names()
        topology.check_expressions(self.config["default.key.serde"], self.config["default.value.serde"])
        self.hooks = Hooks()
        self._runner: Running | None = None

    def __repr__(self) -> str:
        return f"StreamsApp({self.application_id!r}, {dict(self.config.given)!r})"

    def changed(self, *, application_id: str | None = None, config: Mapping[str, Any] | None = None) -> "StreamsApp":
        """The same topology under another name or with other settings on top."""
        settings = self.config.with_changes(config or {}).given
        changed = StreamsApp(application_id or self.application_id, self.topology, **settings)
        changed.hooks = self.hooks
        return changed

    @property
    def master(self) -> str:
        """Where Spark runs unless told otherwise."""
        return f"local[{self.config['num.stream.threads'] or '*'}]"

    @property
    def marker_topic(self) -> str:
        """Compacted; says which micro-batches have been written (query id -> number)."""
        return f"{self.application_id}{MARKER_SUFFIX}"

    @property
    def graph(self) -> "Graph":
        return self.topology.graph

    def runner(
        self, *, once: bool = False, master: str | None = None, clock: Callable[[], int] | None = None
    ) -> "Running":
        """Raises CannotRun without pyspark or Java. `master` defaults to local[num.stream.threads], or local[*].

        `clock` gives the time in ms to processors and their punctuators, for tests; it travels to Spark's workers.
        """
        check_spark()
        from ottla.streams.run.application import Runner

        self._runner = Runner(self, once=once, master=master or self.master, clock=clock)
        return self._runner

    def run(self, *, once: bool = False, master: str | None = None) -> None:
        """Until `stop` is called from another thread, or with `once` until what is there now has been processed.

        Raises AlreadyRunning when another process runs this application with the same state.dir. Stores are served at
        `application.server`, if that is set.
        """
        from ottla.streams.run.state_directory import StateDirectory

        directory = StateDirectory.of(self)
        with ExitStack() as stack:
            tell = stack.enter_context(directory.held({})) if directory.is_local else None
            runner = self.runner(once=once, master=master)
            if self.config["application.server"]:
                from ottla.streams.views.server import serving

                url = stack.enter_context(serving(self, runner))
                if tell is not None:
                    tell({"queries": url})
            runner.run()

    @property
    def state(self) -> str:
        """As KafkaStreams.State: CREATED, REBALANCING, RUNNING, PENDING_SHUTDOWN, NOT_RUNNING, PENDING_ERROR, ERROR."""
        return CREATED if self._runner is None else self._runner.state

    def set_state_listener(self, listener: "StateListener") -> None:
        """A function that is called with the new state and the old one. Before the application runs."""
        self._require_created("a state listener")
        self.hooks.on_state = listener

    def set_uncaught_exception_handler(self, handler: "UncaughtExceptionHandler") -> None:
        """A function that is given the error of a query and gives a StreamThreadExceptionResponse. Without one the
        application ends. Before the application runs."""
        self._require_created("an uncaught exception handler")
        self.hooks.on_failure = handler

    def set_global_state_restore_listener(self, listener: "StateRestoreListener") -> None:
        """Before the application runs."""
        self._require_created("a restore listener")
        self.hooks.on_restore = listener

    def _require_created(self, what: str) -> None:
        if self.state not in (CREATED, NOT_RUNNING, ERROR):
            raise StreamsError(f"{self.application_id} is {self.state}: {what} has to be set before it runs")

    def pause(self) -> None:
        """From any thread: the batch under way ends, and none is processed until `resume`."""
        self.hooks.pause()

    def resume(self) -> None:
        self.hooks.resume()

    @property
    def is_paused(self) -> bool:
        return self.hooks.paused

    def metrics(self) -> "Sequence[Metric]":
        """Under Kafka Streams' names; none before it runs."""
        return () if self._runner is None else self._runner.metrics()

    def clean_up(self) -> None:
        """Deletes the application's folder in state.dir: the next start restores its state from the changelogs. Not
        while it runs, and nothing of what lies at the brokers (`ottla streams reset`). Raises AlreadyRunning."""
        from ottla.streams.run.state_directory import StateDirectory

        directory = StateDirectory.of(self)
        if self.state not in (CREATED, NOT_RUNNING, ERROR):
            raise StreamsError(f"{self.application_id} is {self.state}: its folder cannot be deleted while it runs")
        if not directory.is_local:
            raise StreamsError(f"{directory.path} is no folder of this machine: delete it where it lies")
        with directory.held({"doing": "clean_up"}):
            directory.delete()

    def explain(self) -> str:
        """Which Spark operator each node becomes and why, as text. Raises CannotRun without pyspark."""
        check_spark()
        from ottla.streams.run.planning import explain

        return explain(self)

    def stop(self) -> None:
        if self._runner is not None:
            self._runner.stop()


def _checked_id(application_id: str) -> str:
    if not isinstance(application_id, str) or not application_id:
        raise ConfigError("application.id is missing: a name is expected as the first argument of StreamsApp")
    if not _TOPIC_NAME.fullmatch(application_id) or application_id in (".", ".."):
        raise ConfigError(
            f"application.id={application_id!r}: letters, digits, '.', '_' and '-' are allowed, since it begins the "
            "names of internal topics"
        )
    if len(application_id) > _LONGEST_ID:
        raise ConfigError(f"application.id has {len(application_id)} characters: at most {_LONGEST_ID} are allowed")
    return application_id
