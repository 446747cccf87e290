"""`ottla streams run` and `views`: an application on Spark until it is stopped; its stores without it."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ottla.cli.failures import Failure
from ottla.cli.output import counted, note
from ottla.cli.parser import Arguments
from ottla.cli.streams.app import app_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import ExitStack
    from types import ModuleType

    from ottla.streams.app import StreamsApp
    from ottla.streams.run.running import Running
    from ottla.streams.run.state_directory import StateDirectory


OK: Final = 0
LOOK_S: Final = 0.2
PATIENCE_S: Final = 1.0
"""How long an application that has written nothing yet is given to end by itself."""


def run(arguments: Arguments) -> int:
    from ottla.pipelines.installed import CannotRun, check_spark

    if arguments.flag("watch"):
        from ottla.cli.streams.watch import watch

        return watch(sys.argv[1:], arguments.text("file"))
    app, module = app_of(arguments)
    try:
        check_spark()
    except CannotRun as error:
        raise Failure(str(error)) from error
    for name in app.config.without_effect:
        note(f"{name} has no meaning here and is ignored")
    return _run_held(app, module, arguments)


def _ship(module: "ModuleType", arguments: Arguments) -> None:
    from ottla.streams.run.shipping import ship_by_value

    master = arguments.optional("master")
    ship_by_value(module, with_neighbours=master is not None and not master.startswith("local["))


def _run_held(app: "StreamsApp", module: "ModuleType", arguments: Arguments) -> int:
    from contextlib import ExitStack

    from ottla.pipelines.arrow_alone import leave_pandas_out
    from ottla.streams.run.state_directory import AlreadyRunning, StateDirectory

    directory = StateDirectory.of(app)
    about = {"bootstrap.servers": app.config["bootstrap.servers"]}
    with ExitStack() as stack:
        tell = None
        if directory.is_local:
            try:
                tell = stack.enter_context(directory.held(about))
            except AlreadyRunning as error:
                if arguments.flag("once"):
                    raise Failure(f"{error}\n  stop it first, or give this one another --state-dir") from error
                note(f"{error}\n  this instance stands by, and takes over when that one is gone")
                tell = _take_over(stack, app, directory, about)
        note(f"{app.application_id}: brokers at {app.config['bootstrap.servers']}, state in {directory.path}")
        if directory.is_local and not arguments.flag("verbose"):
            stack.enter_context(_aside(f"{directory.path}/spark.log"))
        _begin_jvm(app, arguments)  # it starts while we import Arrow and Spark's Python
        leave_pandas_out()
        _tell_of_restoring(app)
        runner = _runner(app, arguments)
        _ship(module, arguments)
        if app.config["application.server"]:
            url = _serve(stack, app, runner)
            note(f"stores are served at {url}/stores")
            if tell is not None:
                tell({**about, "queries": url})
        if not arguments.flag("once"):
            note("Ctrl-C stops it after the current batch.")
        return _until_done(app, runner, arguments)


def views(arguments: Arguments) -> int:
    from ottla.cli.streams import standby

    app, _ = app_of(arguments)
    if not app.config["application.server"]:
        app = app.changed(config={"application.server": standby.STANDBY_SERVER})
    standby.serve(app, arguments.optional("views_dir"))
    return OK


def _tell_of_restoring(app: "StreamsApp") -> None:
    from ottla.streams.run.restore_listener import RestoreLines

    if app.hooks.on_restore is None:
        app.set_global_state_restore_listener(RestoreLines(note))


def _take_over(
    stack: "ExitStack", app: "StreamsApp", directory: "StateDirectory", about: "Mapping[str, Any]"
) -> "Callable[[Mapping[str, Any]], None]":
    """Returns when the lock of the state directory is free, which is as soon as its owner is gone."""
    from time import sleep

    from ottla.streams.run.instances import Instance
    from ottla.streams.run.state_directory import AlreadyRunning

    with Instance(app.config.reach("main.consumer"), app.application_id):
        while True:
            try:
                tell = stack.enter_context(directory.held(about))
            except AlreadyRunning:
                sleep(0.25)
            else:
                note(f"{app.application_id}: the other instance is gone; this one takes over")
                return tell


def _runner(app: "StreamsApp", arguments: Arguments) -> "Running":
    from ottla.streams.topology.errors import TopologyError
    from ottla.streams.topology.partition_counts import PartitionsError

    try:
        return app.runner(once=arguments.flag("once"), master=arguments.optional("master"))
    except (TopologyError, PartitionsError) as error:
        raise Failure(f"{app.application_id} cannot run: {error}") from error


def _begin_jvm(app: "StreamsApp", arguments: Arguments) -> None:
    from ottla.pipelines import jvm
    from ottla.pipelines.settings import session_settings
    from ottla.streams.run.config import SPARK_PREFIX

    master = arguments.optional("master") or app.master
    jvm.begin(master, session_settings(master, app.config.below(SPARK_PREFIX)))


@contextmanager
def _aside(path: str) -> "Iterator[None]":
    """The JVM and Spark's workers write much to the standard error they were given: a file's. Ours stays ours. What is
    logged goes into the file as well, whole traces of what has failed with it."""
    import logging

    sys.stderr.flush()
    ours, before = os.dup(2), sys.stderr
    note(f"Spark's log, and what your functions print: {path}")
    with open(path, "ab") as log, open(ours, "w", encoding="utf-8", errors="backslashreplace", buffering=1) as stderr:
        os.dup2(log.fileno(), 2)
        sys.stderr = stderr
        handler = logging.FileHandler(path)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logging.getLogger("ottla").addHandler(handler)
        try:
            yield
        finally:
            logging.getLogger("ottla").removeHandler(handler)
            handler.close()
            sys.stderr = before
            os.dup2(ours, 2)


def _serve(stack: "ExitStack", app: "StreamsApp", runner: "Running") -> str:
    """Until the stack is closed. Gives the URL."""
    from ottla.streams.run.config import ConfigError
    from ottla.streams.views.server import serving

    try:
        return stack.enter_context(serving(app, runner))
    except ConfigError as error:
        raise Failure(str(error)) from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        where = app.config["application.server"]
        raise Failure(f"queries cannot be served at {where}: {reason}\n  --queries-port takes another") from error


def _until_done(app: "StreamsApp", runner: "Running", arguments: Arguments) -> int:
    """A Spark host with one job, which has a thread of its own: in the main thread Spark would take SIGINT for itself
    and cut the batch."""
    import signal

    from ottla.cli.streams.prepare import prepare_behind
    from ottla.cli.streams.progress import Report
    from ottla.pipelines.host import Host
    from ottla.pipelines.job import Job
    from ottla.streams.job import RunInSession
    from ottla.streams.run.config import SPARK_PREFIX

    name = app.application_id
    host = Host(name, arguments.optional("master") or app.master, app.config.below(SPARK_PREFIX))
    job = Job(name, "ottla.streams.job:start", {"file": arguments.text("file")})

    report, asked, prepared = Report(), _Asked(), False

    def stop(number: int, _: object) -> None:
        for each in stopping:
            signal.signal(each, signal.SIG_DFL)  # asked twice: at once
        asked.now()  # told below: what is being written at this moment cannot be written to
        runner.stop()

    stopping = (signal.SIGINT, signal.SIGTERM)
    before = {each: signal.signal(each, stop) for each in stopping}
    try:
        host.start(job, lambda spark, _: RunInSession(runner, spark), again=False)
        # With a time limit, since a wait without one is not left for a signal on every platform.
        while not host.wait(name, LOOK_S) and not (asked.long_ago and not runner.wrote):
            if asked:
                report.stopping()
            elif report.due:
                report.tick(runner.status())
            if runner.wrote and not prepared:
                prepared = True
                prepare_behind()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    report.end()
    if runner.wrote and not prepared:
        prepare_behind()
    failure = host.failure(name)
    if failure is not None:
        _log(failure)
        raise _explained(app, failure) from failure
    if asked.long_ago and not runner.wrote:
        note(f"{app.application_id}: stopped before its first batch was out; nothing was lost")
        return OK
    note(f"{app.application_id}: {summary(runner.status())}")
    return OK


class _Asked:
    """Whether and when somebody wanted an end. Who asks before anything is out does not wait for Spark to be there."""

    __slots__ = ("_at",)

    def __init__(self) -> None:
        self._at: float | None = None

    def __bool__(self) -> bool:
        return self._at is not None

    def now(self) -> None:
        self._at = time.monotonic()

    @property
    def long_ago(self) -> bool:
        return self._at is not None and time.monotonic() - self._at >= PATIENCE_S


def summary(status: "Mapping[str, Any]") -> str:
    """What a run did, for who waited for it: what was left out, too."""
    queries = status["queries"]
    read, written = (sum(query[name] for query in queries) for name in ("read", "written"))
    left_out: dict[str, int] = {}
    for query in queries:
        for reason, number in query["dropped-by-reason"].items():
            left_out[reason] = left_out.get(reason, 0) + number
    told = f"{counted(read, 'record')} read, {written} written, changelogs included"
    reasons = ", ".join(f"{number} {reason}" for reason, number in sorted(left_out.items()))
    return f"{told}; left out: {reasons}" if reasons else told


def _explained(app: "StreamsApp", error: BaseException) -> BaseException:
    from ottla.client.errors import ClientError
    from ottla.pipelines.installed import CannotRun
    from ottla.pipelines.job import CannotStart
    from ottla.streams.run.failures import StreamsFailed
    from ottla.streams.topology.errors import TopologyError
    from ottla.streams.topology.partition_counts import PartitionsError

    if os.environ.get("OTTLA_TRACEBACK") or isinstance(error, ClientError | Failure | OSError):
        return error
    if isinstance(error, StreamsFailed):
        return Failure(f"{_first_lines(str(error))}\n  the whole trace is in Spark's log")
    if isinstance(error, TopologyError | PartitionsError | CannotRun | CannotStart):
        return Failure(f"{app.application_id} cannot run: {error}")
    return Failure(f"{app.application_id} failed: {type(error).__name__}: {_first_lines(str(error))}")


def _log(failure: BaseException) -> None:
    import logging

    logging.getLogger("ottla").error("it failed", exc_info=failure)


def _first_lines(text: str, most: int = 12) -> str:
    """Spark's exceptions bring the JVM's stack along."""
    lines = [line for line in text.splitlines() if line.strip()]
    kept = [line for line in lines if not line.lstrip().startswith(("at ", "... "))][:most]
    left_out = "\n  with OTTLA_TRACEBACK=1 in the environment it shows the rest" if len(kept) < len(lines) else ""
    return "\n".join(kept) + left_out
