"""`ottla streams reset`: an application is taken back to the start, or to where it is told."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from typing import TYPE_CHECKING, Final

from ottla.cli.failures import Failure
from ottla.cli.output import Table, note, show, show_json
from ottla.cli.parser import Arguments, UsageError
from ottla.cli.reach import cluster, output
from ottla.cli.streams.app import app_of, state_dir_of

if TYPE_CHECKING:
    from ottla.model.ids import TopicPartition
    from ottla.streams.app import StreamsApp
    from ottla.streams.run.reset import Plan, Target


OK: Final = 0
FAILED: Final = 1
_TARGETS: Final = ("to_earliest", "to_latest", "to_offset", "to_datetime", "by_duration", "shift_by", "from_file")


def reset(arguments: Arguments) -> int:
    from ottla.streams.run import reset as resetting
    from ottla.streams.run.state_directory import StateDirectory

    if arguments.flag("execute") and arguments.flag("dry_run"):
        raise UsageError("--execute and --dry-run exclude each other")
    app = app_of(arguments)[0] if arguments.has("file") else None
    application_id = app.application_id if app is not None else arguments.optional("application_id")
    if application_id is None:
        raise UsageError("name the application: its file, or --application-id ID")
    target, targets = _target(arguments)
    inputs = [topic for text in arguments.texts("input_topics") for topic in text.split(",") if topic]
    directory = StateDirectory(state_dir_of(arguments, app), application_id)
    with cluster(arguments) as server:
        if not arguments.flag("force"):
            try:
                resetting.check_stopped(server, directory)
            except resetting.StillRunning as error:
                raise Failure(
                    f"{error}\n  stop it first; --force resets it all the same, at the price of wrong results"
                ) from error
        plan = resetting.plan(server, directory, app=app, inputs=inputs, target=target, targets=targets)
        _show_plan(plan, output(arguments))
        if not arguments.flag("execute"):
            note("Nothing was changed. Add --execute to do it.")
            return OK
        if not directory.is_local:
            _start_spark(app)
        failed = resetting.carry_out(server, directory, plan)
    for problem in failed:
        note(problem)
    if not failed:
        note(f"{application_id} starts anew the next time it runs. Its output topics are as they were.")
    return FAILED if failed or plan.missing else OK


def _start_spark(app: "StreamsApp | None") -> None:
    """What is not a folder of this machine only Spark knows how to reach, with the application's settings for it."""
    from ottla.pipelines.installed import CannotRun, check_spark
    from ottla.streams.run.config import SPARK_PREFIX

    try:
        check_spark()
    except CannotRun as error:
        raise Failure(f"state.dir is a URL, and to delete what is there Spark is needed: {error}") from error
    from ottla.pipelines.session import new_session

    new_session("ottla-streams-reset", "local[1]", **({} if app is None else app.config.below(SPARK_PREFIX)))


def _show_plan(plan: "Plan", form: str) -> None:
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
