"""`ottla streams`: runs applications on Spark, shows what they are and how they do, takes them back to the start."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ottla.cli.failures import Failure
from ottla.cli.output import Table, counted, note, show, show_json
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import BOOTSTRAP, DEFAULT_BOOTSTRAP, JSON, OUTPUT, REACH, TIMEOUT, cluster, output, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import ExitStack
    from types import ModuleType

    from ottla.model.ids import TopicPartition
    from ottla.streams.app import StreamsApp
    from ottla.streams.run.instances import Listed
    from ottla.streams.run.reset import Plan, Target
    from ottla.streams.run.running import Running
    from ottla.streams.run.state_directory import StateDirectory

OK: Final = 0
FAILED: Final = 1
LOOK_S: Final = 0.2
PATIENCE_S: Final = 1.0
"""How long an application that has written nothing yet is given to end by itself."""

_TARGETS: Final = ("to_earliest", "to_latest", "to_offset", "to_datetime", "by_duration", "shift_by", "from_file")


# ---- run


def run(arguments: Arguments) -> int:
    from ottla.streams.run.installed import CannotRun, check_spark

    if arguments.flag("watch"):
        from ottla.cli.streams_watch import watch

        return watch(sys.argv[1:], arguments.text("file"))
    app, module = _app(arguments)
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
        _tell_of_restoring(app)
        note(f"{app.application_id}: brokers at {app.config['bootstrap.servers']}, state in {directory.path}")
        if directory.is_local and not arguments.flag("verbose"):
            stack.enter_context(_aside(f"{directory.path}/spark.log"))
        _begin_jvm(app, arguments)  # it starts while we import Spark's Python
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
    from ottla.cli import streams_views

    app, _ = _app(arguments)
    if not app.config["application.server"]:
        app = app.changed(config={"application.server": streams_views.STANDBY_SERVER})
    streams_views.serve(app, arguments.optional("views_dir"))
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

    with Instance(app.config["bootstrap.servers"], app.application_id):
        while True:
            try:
                tell = stack.enter_context(directory.held(about))
            except AlreadyRunning:
                sleep(0.25)
            else:
                note(f"{app.application_id}: the other instance is gone; this one takes over")
                return tell


def _runner(app: "StreamsApp", arguments: Arguments) -> "Running":
    from ottla.streams.topology.graph import TopologyError
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
    from ottla.streams.views.server import serving

    try:
        return stack.enter_context(serving(app, runner))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        where = app.config["application.server"]
        raise Failure(f"queries cannot be served at {where}: {reason}\n  --queries-port takes another") from error


def _until_done(app: "StreamsApp", runner: "Running", arguments: Arguments) -> int:
    """A Spark host with one job, which has a thread of its own: in the main thread Spark would take SIGINT for itself
    and cut the batch."""
    import signal

    from ottla.cli.streams_prepare import prepare_behind
    from ottla.cli.streams_progress import Report
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
    from ottla.pipelines.job import CannotStart
    from ottla.streams.run.application import StreamsFailed
    from ottla.streams.run.installed import CannotRun
    from ottla.streams.topology.graph import TopologyError
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


# ---- describe, explain


def describe(arguments: Arguments) -> int:
    app, _ = _app(arguments)
    sys.stdout.write(app.topology.describe())
    return OK


def explain(arguments: Arguments) -> int:
    from ottla.streams.run.installed import CannotRun

    app, _ = _app(arguments)
    try:
        print(app.explain().rstrip("\n"))
    except CannotRun as error:
        raise Failure(str(error)) from error
    return OK


# ---- status


def status(arguments: Arguments) -> int:
    from ottla.streams.run.state_directory import StateDirectory, applications

    app = _app(arguments)[0] if arguments.has("file") else None
    root = _state_dir(arguments, app)
    chosen = app.application_id if app is not None else arguments.optional("application_id")
    if chosen is None:
        return _all_of_them(arguments, root, applications(root))
    return _one_of_them(arguments, StateDirectory(root, chosen))


def _all_of_them(arguments: Arguments, root: str, local: list[str]) -> int:
    from ottla.streams.run.config import MARKER_SUFFIX
    from ottla.streams.run.instances import instances_of
    from ottla.streams.run.state_directory import StateDirectory

    table = Table("APPLICATION", "PROCESS", "INPUTS", "LAG", "QUERIES", "INSTANCES")
    with cluster(arguments) as server:
        names = [topic.name or "" for topic in server.metadata().topics]
        marked = [name.removesuffix(MARKER_SUFFIX) for name in names if name.endswith(MARKER_SUFFIX)]
        for application_id in sorted({*local, *marked}):
            owner = StateDirectory(root, application_id).owner()
            rows = _lag(server, application_id)
            process = "-" if owner is None else str(owner.get("pid", "?"))
            url = None if owner is None else owner.get("queries")
            lag = sum(row[4] or 0 for row in rows)
            there = _instances(instances_of(server, application_id))
            table.add(application_id, process, len({row[0] for row in rows}), lag, url, there)
    show(table, output(arguments))
    if not table.rows:
        note(f"no application has a state directory in {root} or a topic at these brokers")
    return OK


def _instances(found: "Sequence[Listed]") -> str | None:
    return "; ".join(f"{each.about}{'' if each.active else ', standby'}" for each in found) or None


def _one_of_them(arguments: Arguments, directory: "StateDirectory") -> int:
    from ottla.streams.run.instances import instances_of

    table = Table("TOPIC", "PARTITION", "COMMITTED", "END", "LAG")
    with cluster(arguments) as server:
        rows = _lag(server, directory.application_id)
        there = instances_of(server, directory.application_id)
    for row in rows:
        table.add(*row)
    owner = directory.owner() if directory.is_local else None
    answer = _asked(owner) if owner is not None else None
    if output(arguments) == "json":
        document = {
            "application_id": directory.application_id,
            "process": None if owner is None else owner.get("pid"),
            "state_directory": directory.path,
            "instances": [{**each.about._asdict(), "active": each.active} for each in there],
            "partitions": table.records(),
            "status": answer,
        }
        show_json(document)
        return OK
    if owner is None:
        note(f"{directory.application_id}: does not run with state in {directory.path}")
    else:
        state = "" if answer is None else f", {answer.get('state', '')}"
        note(f"{directory.application_id}: runs as process {owner.get('pid', '?')}{state}, state in {directory.path}")
    for each in there:
        note(f"  {'active' if each.active else 'stands by'}: {each.about}")
    show(table, "table")
    return OK


def _asked(owner: "Mapping[str, Any]") -> Any:
    """What the running application tells, when it serves queries."""
    import json
    from urllib.error import URLError
    from urllib.request import urlopen

    url = owner.get("queries")
    if not url:
        return None
    try:
        with urlopen(f"{url}/status", timeout=5) as answer:
            return json.loads(answer.read())
    except (URLError, OSError, ValueError):
        return None


def _lag(server: Any, application_id: str) -> "list[tuple[str, int, int | None, int | None, int | None]]":
    from ottla.client import groups
    from ottla.client.errors import KafkaError
    from ottla.client.offsets import LATEST, list_offsets

    committed = groups.committed(server, application_id)
    places = sorted(committed)
    ends = list_offsets(server, dict.fromkeys(places, LATEST)) if places else {}
    rows: list[tuple[str, int, int | None, int | None, int | None]] = []
    for place in places:
        outcome = ends[place]
        end = None if isinstance(outcome, KafkaError) else outcome.offset
        offset = committed[place].offset
        rows.append((*place, offset, end, None if end is None else max(end - offset, 0)))
    return rows


# ---- prepare


def prepare(arguments: Arguments) -> int:
    from ottla.cli.streams_prepare import prepare as do

    return do(arguments)


# ---- top


def top(arguments: Arguments) -> int:
    """Until Ctrl-C, or so many times as --times says."""
    from ottla.cli.streams_progress import Rates

    root = _state_dir(arguments, None)
    rates: dict[str, Rates] = {}
    left = arguments.optional_number("times")
    watched = sys.stdout.isatty()
    while left is None or left > 0:
        table = doing(root, rates)
        if watched:
            sys.stdout.write("\x1b[H\x1b[2J")
        show(table, output(arguments))
        sys.stdout.flush()
        left = None if left is None else left - 1
        if left != 0:
            time.sleep(arguments.optional_number("interval") or 2)
    return OK


def doing(root: str, rates: "dict[str, Any]") -> Table:
    """What the applications with a folder in `root` tell of themselves, those that run first."""
    from ottla.cli.output import size_text
    from ottla.cli.streams_progress import Rates, total
    from ottla.streams.run.state_directory import StateDirectory, applications

    table = Table("APPLICATION", "PROCESS", "STATE", "BATCHES", "READ/S", "WRITTEN/S", "LAG", "STATE SIZE", "WAITS FOR")
    for name in applications(root):
        directory = StateDirectory(root, name)
        owner, told = directory.owner(), directory.status()
        if owner is None or told is None:
            table.add(name, None if owner is None else owner.get("pid"), *[None] * 7)
            continue
        read, written = rates.setdefault(name, Rates()).of(told, time.monotonic())
        size = size_text(total(told, "state-bytes"))
        numbers = (total(told, "batches"), round(read), round(written), total(told, "lag"))
        table.add(name, owner.get("pid"), told.get("state"), *numbers, size, told.get("waits-for"))
    table.rows.sort(key=lambda row: row[1] is None)
    return table


# ---- reset


def reset(arguments: Arguments) -> int:
    from ottla.streams.run import reset as resetting
    from ottla.streams.run.state_directory import StateDirectory

    if arguments.flag("execute") and arguments.flag("dry_run"):
        raise UsageError("--execute and --dry-run exclude each other")
    app = _app(arguments)[0] if arguments.has("file") else None
    application_id = app.application_id if app is not None else arguments.optional("application_id")
    if application_id is None:
        raise UsageError("name the application: its file, or --application-id ID")
    target, targets = _target(arguments)
    inputs = [topic for text in arguments.texts("input_topics") for topic in text.split(",") if topic]
    directory = StateDirectory(_state_dir(arguments, app), application_id)
    with cluster(arguments) as server:
        if not arguments.flag("force"):
            try:
                resetting.check_stopped(server, directory)
            except resetting.StillRunning as error:
                raise Failure(
                    f"{error}\n  stop it first; --force resets it all the same, at the price of wrong results"
                ) from error
        plan = resetting.plan(server, directory, app=app, inputs=inputs, target=target, targets=targets)
        _show_plan(plan, output(arguments), directory)
        if not arguments.flag("execute"):
            note("Nothing was changed. Add --execute to do it.")
            return OK
        failed = resetting.carry_out(server, directory, plan)
    for problem in failed:
        note(problem)
    if not failed:
        note(f"{application_id} starts anew the next time it runs. Its output topics are as they were.")
    return FAILED if failed or plan.missing else OK


def _show_plan(plan: "Plan", form: str, directory: "StateDirectory") -> None:
    table = Table("TOPIC", "PARTITION", "OLD OFFSET", "NEW OFFSET")
    for move in plan.moves:
        table.add(*move.place, move.old, move.new)
    if form == "json":
        show_json(
            {
                "application_id": plan.application_id,
                "offsets": table.records(),
                "delete_topics": list(plan.topics),
                "delete_files": list(plan.files),
                "missing_topics": list(plan.missing),
            }
        )
    else:
        show(table, form)
        for topic in plan.topics:
            print(f"delete topic {topic}")
        for path in plan.files:
            print(f"delete {path}")
    for topic in plan.missing:
        note(f"the input topic {topic} does not exist and is left out")
    if not directory.is_local:
        note(f"{directory.path} is not on this machine: delete it too, or the application goes on from its checkpoints")


def _target(arguments: Arguments) -> "tuple[Target, dict[TopicPartition, int]]":
    from ottla.streams.run.reset import Target

    chosen = [target for target in _TARGETS if arguments.has(target) or arguments.flag(target)]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join('--' + target.replace('_', '-') for target in chosen)} exclude each other")
    match chosen:
        case ["to_latest"]:
            return Target("latest"), {}
        case ["to_offset"]:
            return Target("offset", arguments.number("to_offset")), {}
        case ["shift_by"]:
            return Target("shift", arguments.number("shift_by")), {}
        case ["to_datetime"]:
            return Target("time", _moment(f"@{arguments.text('to_datetime')}")), {}
        case ["by_duration"]:
            return Target("time", _moment(f"@-{arguments.text('by_duration')}")), {}
        case ["from_file"]:
            return Target("earliest"), _offsets_in(arguments.text("from_file"))
    return Target("earliest"), {}


def _moment(text: str) -> int:
    from ottla.cli.offsets import TIME
    from ottla.cli.spans import range_of

    point = range_of(text).first
    if point.kind != TIME:
        raise UsageError(f"{text[1:]!r} is not a time")
    return point.number


def _offsets_in(path: str) -> "dict[TopicPartition, int]":
    """TOPIC,PARTITION,OFFSET in each line, as Kafka's tools write them."""
    from ottla.model.ids import TopicPartition

    found: dict[TopicPartition, int] = {}
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            words = line.strip().split(",")
            if words == [""]:
                continue
            if len(words) != 3 or not words[1].isdigit() or not words[2].isdigit():
                raise Failure(f"{path}, line {number}: TOPIC,PARTITION,OFFSET is expected")
            found[TopicPartition(words[0], int(words[1]))] = int(words[2])
    return found


# ---- package


def package(arguments: Arguments) -> int:
    from pathlib import Path

    from ottla.streams import archive
    from ottla.streams.app_file import AppFileError, load

    try:
        app, module = load(arguments.text("file"))
    except AppFileError as error:
        raise Failure(str(error)) from error
    target = Path(arguments.optional("output_file") or f"{app.application_id}.zip")
    try:
        archive.write(
            target,
            module,
            more_files=[Path(path) for path in arguments.texts("add")],
            more_packages=arguments.texts("with_package"),
            bare=arguments.flag("bare"),
        )
    except archive.CannotArchive as error:
        raise Failure(str(error)) from error
    note(f"{target}: {target.stat().st_size / 1e6:.1f} MB")
    note(f"  ottla streams run {target} --master spark://HOST:7077 --state-dir URL")
    note(
        f"  or: unzip {target} {archive.MAIN} && spark-submit --archives {target}#{archive.UNPACKED_AS} {archive.MAIN}"
    )
    return OK


# ---- what they share


def _app(arguments: Arguments) -> "tuple[StreamsApp, ModuleType]":
    """The application of the file, with what the command line changes in it."""
    from ottla.streams.app_file import AppFileError, load
    from ottla.streams.run.config import ConfigError

    try:
        app, module = load(arguments.text("file"))
        return app.changed(application_id=arguments.optional("application_id"), config=_changes(arguments, app)), module
    except (AppFileError, ConfigError) as error:
        raise Failure(str(error)) from error


def _changes(arguments: Arguments, app: "StreamsApp") -> dict[str, Any]:
    changes: dict[str, Any] = {**_archived(arguments), **settings(arguments.texts("property"))}
    bootstrap = arguments.optional("bootstrap")
    if bootstrap is None and "bootstrap.servers" not in {**app.config.given, **changes}:
        bootstrap = os.environ.get("OTTLA_BOOTSTRAP", DEFAULT_BOOTSTRAP)
    if bootstrap is not None:
        changes["bootstrap.servers"] = bootstrap
        arguments.add("bootstrap", bootstrap)  # the commands that ask the brokers ask the same ones
    else:
        arguments.add("bootstrap", changes.get("bootstrap.servers", app.config["bootstrap.servers"]))
    if arguments.has("state_dir"):
        changes["state.dir"] = arguments.text("state_dir")
    if arguments.has("queries_port"):
        changes["application.server"] = f"127.0.0.1:{arguments.number('queries_port')}"
    return changes


def _archived(arguments: Arguments) -> dict[str, str]:
    """Spark's settings when the application comes in an archive and runs on other machines."""
    from ottla.streams import archive

    master = arguments.optional("master")
    if master is None or master.startswith("local[") or not archive.is_archive(arguments.text("file")):
        return {}
    archive.lend_packages(arguments.text("file"))
    return archive.settings(arguments.text("file"))


def _state_dir(arguments: Arguments, app: "StreamsApp | None") -> str:
    from ottla.streams.run.config import Config

    root: str = (app.config if app is not None else Config())["state.dir"]
    return arguments.optional("state_dir") or root


FILE: Final = Argument("FILE", help="A Python file that defines `app`, a StreamsApp.")
OPTIONAL_FILE: Final = Argument("FILE", help="A Python file that defines `app`, a StreamsApp.", required=False)
APPLICATION_ID: Final = Option(
    "--application-id", value="ID", help="Another name: its own group, internal topics and state."
)
STATE_DIR: Final = Option(
    "--state-dir", value="DIR", help="Where checkpoints, state and views lie; ./ottla-streams unless the file says it."
)
PROPERTY: Final = Option(
    "--property",
    "-X",
    value="NAME=VALUE",
    many=True,
    help="A setting of Kafka Streams, such as commit.interval.ms=100; spark.* goes to Spark.",
)
APP: Final = (BOOTSTRAP, APPLICATION_ID, STATE_DIR, PROPERTY)

COMMANDS: Final = (
    Command(
        "run",
        run,
        summary="Run an application on Spark, for ever or until what is there now has been processed.",
        details="Needs the extra `streams` (pyspark) and Java 17 or newer. Results are written exactly once.",
        arguments=(FILE,),
        options=(
            *APP,
            Option("--once", help="Process what is there now, then end."),
            Option("--master", value="URL", help="Where Spark runs: local[4], spark://HOST:PORT, yarn; else local[*]."),
            Option("--queries-port", value="PORT", number=True, help="Serve stores over HTTP at 127.0.0.1:PORT."),
            Option("--watch", help="Start again whenever the file, or a module beside it, has changed."),
            Option("--verbose", "-v", help="Show what Spark logs instead of writing it to a file."),
        ),
        examples=(
            ("Kafka's quick start", "ottla streams run examples/streams/word_count.py"),
            ("what is there now, then end", "ottla streams run word_count.py --once"),
            ("with its stores to be queried", "ottla streams run word_count.py --queries-port 8088"),
            ("a second version beside the first", "ottla streams run word_count.py --application-id word-count-2"),
        ),
    ),
    Command(
        "views",
        views,
        summary="Answer for the stores of an application, whether it runs or not.",
        details="Follows its changelogs by itself: without Spark, beside the application, as often as wanted. Answers "
        "hold what is committed.",
        arguments=(FILE,),
        options=(
            *APP,
            Option("--queries-port", value="PORT", number=True, help="Serve at 127.0.0.1:PORT; 8089 unless told."),
            Option("--views-dir", value="DIR", help="Keep the views here for the next time; made anew without it."),
        ),
        examples=(
            ("stays while the application restarts", "ottla streams views word_count.py --queries-port 8089"),
            ("with a folder, so that it is there at once", "ottla streams views word_count.py --views-dir views"),
        ),
    ),
    Command(
        "package",
        package,
        summary="Put an application and all that it needs into one archive, for the machines of a Spark cluster.",
        details="The application's file, what it has imported from its folder, ottla and its packages as they are on "
        "this machine, without Spark. `ottla streams run NAME.zip` runs it, spark-submit does too.",
        arguments=(FILE,),
        options=(
            Option("--output-file", "-o", value="FILE", help="APPLICATION_ID.zip in this folder unless told."),
            Option("--add", value="PATH", many=True, help="A file or folder that goes beside the application's file."),
            Option(
                "--with-package", value="NAME", many=True, help="A package of this environment, with what it needs."
            ),
            Option("--bare", help="Only the application and ottla: the machines have pyarrow and the rest already."),
        ),
        examples=(
            ("", "ottla streams package word_count.py"),
            ("with a model beside it", "ottla streams package score.py --add model.json --with-package scikit-learn"),
        ),
    ),
    Command(
        "describe",
        describe,
        summary="Show the topology as text, equal to that of Java's Topology.describe().",
        arguments=(FILE,),
        options=APP,
        examples=(("", "ottla streams describe word_count.py"),),
    ),
    Command(
        "explain",
        explain,
        summary="Show which Spark operator each node of the topology becomes, and why.",
        arguments=(FILE,),
        options=APP,
        examples=(("what is native and what runs Python", "ottla streams explain word_count.py"),),
    ),
    Command(
        "status",
        status,
        summary="Show whether applications run and how far they are behind.",
        arguments=(OPTIONAL_FILE,),
        options=(*APP, TIMEOUT, OUTPUT, JSON),
        examples=(
            ("every application", "ottla streams status"),
            ("one of them", "ottla streams status --application-id word-count"),
        ),
    ),
    Command(
        "top",
        top,
        summary="Show what the applications that run on this machine do, again and again.",
        options=(
            STATE_DIR,
            Option("--interval", value="SECONDS", number=True, help="How long from look to look; 2 unless said."),
            Option("--times", "-n", value="N", number=True, help="So many looks, then end."),
            OUTPUT,
            JSON,
        ),
        examples=(("until Ctrl-C", "ottla streams top"), ("one look", "ottla streams top -n 1")),
    ),
    Command(
        "prepare",
        prepare,
        summary="Do once for this installation of Spark what makes applications start sooner.",
        details="Runs small applications against a broker of its own and keeps an archive of the classes that the JVM "
        "loaded in ~/.cache/ottla. `ottla streams run` does it by itself after its first batch, in the background.",
        options=(Option("--again", help="Even if it was done before."),),
        examples=(("", "ottla streams prepare"),),
    ),
    Command(
        "reset",
        reset,
        summary="Take a stopped application back to the start. Shows what it would do unless --execute is given.",
        details="Moves its input offsets; deletes its internal topics, batch markers, checkpoints, state and views. "
        "Output topics stay.",
        arguments=(OPTIONAL_FILE,),
        options=(
            *REACH,
            APPLICATION_ID,
            STATE_DIR,
            PROPERTY,
            Option(
                "--input-topics", value="TOPICS", many=True, help="Only these; all that it reads when none is named."
            ),
            Option("--to-earliest", help="To the first record there is; the default."),
            Option("--to-latest", help="To the end: only what comes from now on is processed."),
            Option("--to-offset", value="OFFSET", number=True, help="To this offset."),
            Option("--to-datetime", value="TIME", help="To the first record not older, such as 2026-11-01T12:00:00Z."),
            Option("--by-duration", value="SPAN", help="To the first record of the last 30m, 2h, 7d."),
            Option("--shift-by", value="N", number=True, help="Forward by N records, or back when N is negative."),
            Option("--from-file", value="FILE", help="To the offsets in a file: TOPIC,PARTITION,OFFSET in each line."),
            Option("--execute", help="Do it."),
            Option("--dry-run", help="Only show it; the default."),
            Option("--force", help="Even if it seems to run."),
            OUTPUT,
            JSON,
        ),
        examples=(
            ("process everything again: first look, then do", "ottla streams reset word_count.py"),
            ("", "ottla streams reset word_count.py --execute"),
            ("from noon on", "ottla streams reset word_count.py --to-datetime 2026-11-01T12:00:00Z --execute"),
            ("without its file", "ottla streams reset --application-id word-count --input-topics lines --execute"),
        ),
    ),
)
