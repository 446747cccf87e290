"""`ottla streams`: runs applications on Spark, shows what they are and how they do, takes them back to the start."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ottla.cli.failures import Failure
from ottla.cli.output import Table, counted, note, show, show_json
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import BOOTSTRAP, DEFAULT_BOOTSTRAP, JSON, OUTPUT, REACH, TIMEOUT, cluster, output, settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import ExitStack
    from types import ModuleType

    from ottla.model.ids import TopicPartition
    from ottla.streams.app import StreamsApp
    from ottla.streams.run.reset import Plan, Target
    from ottla.streams.run.running import Running
    from ottla.streams.run.state_directory import StateDirectory

OK: Final = 0
FAILED: Final = 1

_TARGETS: Final = ("to_earliest", "to_latest", "to_offset", "to_datetime", "by_duration", "shift_by", "from_file")


# ---- run


def run(arguments: Arguments) -> int:
    from ottla.streams.run.installed import CannotRun, check_spark

    app, module = _app(arguments)
    try:
        check_spark()
    except CannotRun as error:
        raise Failure(str(error)) from error
    from ottla.streams.run.shipping import ship_by_value

    master = arguments.optional("master")
    ship_by_value(module, with_neighbours=master is not None and not master.startswith("local["))
    for name in app.config.without_effect:
        note(f"{name} has no meaning here and is ignored")
    return _run_held(app, arguments)


def _run_held(app: "StreamsApp", arguments: Arguments) -> int:
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
                raise Failure(f"{error}\n  stop it first, or give this one another --state-dir") from error
        runner = _runner(app, arguments)
        note(f"{app.application_id}: brokers at {app.config['bootstrap.servers']}, state in {directory.path}")
        if directory.is_local and not arguments.flag("verbose"):
            stack.enter_context(_aside(f"{directory.path}/spark.log"))
        if app.config["application.server"]:
            url = _serve(stack, app, runner)
            note(f"stores are served at {url}/stores")
            if tell is not None:
                tell({**about, "queries": url})
        if not arguments.flag("once"):
            note("Ctrl-C stops it after the current batch.")
        return _until_done(app, runner, arguments)


def _runner(app: "StreamsApp", arguments: Arguments) -> "Running":
    from ottla.streams.topology.graph import TopologyError
    from ottla.streams.topology.partition_counts import PartitionsError

    try:
        return app.runner(once=arguments.flag("once"), master=arguments.optional("master"))
    except (TopologyError, PartitionsError) as error:
        raise Failure(f"{app.application_id} cannot run: {error}") from error


@contextmanager
def _aside(path: str) -> "Iterator[None]":
    """The JVM and Spark's workers write much to the standard error they were given: a file's. Ours stays ours."""
    sys.stderr.flush()
    ours, before = os.dup(2), sys.stderr
    note(f"Spark's log, and what your functions print: {path}")
    with open(path, "ab") as log, open(ours, "w", encoding="utf-8", errors="backslashreplace", buffering=1) as stderr:
        os.dup2(log.fileno(), 2)
        sys.stderr = stderr
        try:
            yield
        finally:
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

    from ottla.pipelines.host import Host
    from ottla.pipelines.job import Job
    from ottla.streams.job import RunInSession
    from ottla.streams.run.config import SPARK_PREFIX

    name = app.application_id
    host = Host(name, arguments.optional("master") or app.master, app.config.below(SPARK_PREFIX))
    job = Job(name, "ottla.streams.job:start", {"file": arguments.text("file")})

    def stop(number: int, _: object) -> None:
        for each in stopping:
            signal.signal(each, signal.SIG_DFL)  # asked twice: at once
        note("stopping after the current batch")
        runner.stop()

    stopping = (signal.SIGINT, signal.SIGTERM)
    before = {each: signal.signal(each, stop) for each in stopping}
    try:
        host.start(job, lambda spark, _: RunInSession(runner, spark), again=False)
        # With a time limit, since a wait without one is not left for a signal on every platform.
        while not host.wait(name, 1.0):
            pass
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    failure = host.failure(name)
    if failure is not None:
        raise _explained(app, failure) from failure
    note(f"{app.application_id}: {summary(runner.status())}")
    return OK


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
    from ottla.streams.run.application import StreamsFailed
    from ottla.streams.run.installed import CannotRun
    from ottla.streams.topology.graph import TopologyError
    from ottla.streams.topology.partition_counts import PartitionsError

    if os.environ.get("OTTLA_TRACEBACK") or isinstance(error, ClientError | Failure | OSError):
        return error
    if isinstance(error, StreamsFailed):
        return Failure(_first_lines(str(error)))
    if isinstance(error, TopologyError | PartitionsError | CannotRun):
        return Failure(f"{app.application_id} cannot run: {error}")
    return Failure(f"{app.application_id} failed: {type(error).__name__}: {_first_lines(str(error))}")


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
    from ottla.streams.run.state_directory import StateDirectory

    table = Table("APPLICATION", "PROCESS", "INPUTS", "LAG", "QUERIES")
    with cluster(arguments) as server:
        names = [topic.name or "" for topic in server.metadata().topics]
        marked = [name.removesuffix(MARKER_SUFFIX) for name in names if name.endswith(MARKER_SUFFIX)]
        for application_id in sorted({*local, *marked}):
            owner = StateDirectory(root, application_id).owner()
            rows = _lag(server, application_id)
            process = "-" if owner is None else str(owner.get("pid", "?"))
            url = None if owner is None else owner.get("queries")
            table.add(application_id, process, len({row[0] for row in rows}), sum(row[4] or 0 for row in rows), url)
    show(table, output(arguments))
    if not table.rows:
        note(f"no application has a state directory in {root} or a topic at these brokers")
    return OK


def _one_of_them(arguments: Arguments, directory: "StateDirectory") -> int:
    table = Table("TOPIC", "PARTITION", "COMMITTED", "END", "LAG")
    with cluster(arguments) as server:
        rows = _lag(server, directory.application_id)
    for row in rows:
        table.add(*row)
    owner = directory.owner() if directory.is_local else None
    answer = _asked(owner) if owner is not None else None
    if output(arguments) == "json":
        document = {
            "application_id": directory.application_id,
            "process": None if owner is None else owner.get("pid"),
            "state_directory": directory.path,
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
    changes: dict[str, Any] = dict(settings(arguments.texts("property")))
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
