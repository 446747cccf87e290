"""`ottla mirror`: copies topics from cluster to cluster as mm2.properties says, and tells how that stands."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.cli.failures import Failure
from ottla.cli.output import Table, counted, note, show, show_json
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import JSON, OUTPUT, output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.cli.output import Json
    from ottla.connect.jobs.spec import JobSpec
    from ottla.mirror.flows import Flow, Mirroring
    from ottla.mirror.standing import GroupStanding, Standing, TopicStanding

LOOK_S: Final = 1.0


def run(arguments: Arguments) -> int:
    import signal
    from dataclasses import asdict

    from ottla.connect.jobs.runner import ENTRY, job_name
    from ottla.pipelines.failures import told
    from ottla.pipelines.host import Host
    from ottla.pipelines.job import CannotStart, Job
    from ottla.runtime.stop_signals import stop_signals

    mirroring = _mirroring(arguments)
    flows = mirroring.flows(arguments.texts("clusters"))
    if not flows:
        raise Failure("no flow goes towards these clusters: see clusters= and A->B.enabled in the file")
    host = Host("ottla mirror", arguments.text("master"))
    specs = {job_name(f"{flow}/{spec.name}"): spec for flow in flows for spec in _specs(mirroring, flow, arguments)}
    note(f"{', '.join(str(flow) for flow in flows)}: {counted(len(specs), 'connector')}; Spark starts. Ctrl-C stops it")
    for number in stop_signals():
        signal.signal(number, signal.default_int_handler)
    try:
        for name, spec in specs.items():
            host.start(Job(name, ENTRY, asdict(spec)), again=True)
        while not all(host.wait(name, LOOK_S) for name in specs):
            pass
    except KeyboardInterrupt:
        host.close()
        return 0
    except CannotStart as error:
        raise Failure(str(error)) from error
    for name, spec in specs.items():
        failure = host.failure(name)
        if failure is not None:
            raise Failure(f"{spec.name} failed: {told(failure)}") from failure
    return 0


def status(arguments: Arguments) -> int:
    import time

    mirroring = _mirroring(arguments)
    in_json = output(arguments) == "json"
    found: list[Json] = []
    for flow in mirroring.flows():
        if not _copies(mirroring, flow):
            continue
        with _Standings(mirroring, flow) as standing:
            topics = standing.of_topics("MirrorSourceConnector")
            groups = standing.of_groups(flow.target)
            age_ms = standing.heartbeat_age_ms(int(time.time() * 1000))
        lag = sum(topic.lag for topic in topics)
        copies, moving = _topics_table(flow, topics), _groups_table(flow, groups)
        if in_json:
            told: dict[str, Json] = {"flow": str(flow), "lag": lag, "heartbeat_age_ms": age_ms}
            found.append({**told, "topics": [*copies.records()], "groups": [*moving.records()]})
            continue
        beat = "no heartbeat yet" if age_ms is None else f"last heartbeat {age_ms / 1000:.1f} s ago"
        note(f"{flow}: {counted(lag, 'record')} behind, {beat}")
        show(copies, "table")
        if groups:
            show(moving, "table")
    if in_json:
        show_json(found)
    return 0


def _topics_table(flow: Flow, topics: Sequence[TopicStanding]) -> Table:
    table = Table("FLOW", "TOPIC", "PARTITION", "REMOTE", "COPIED", "END", "LAG")
    for topic in topics:
        table.add(str(flow), topic.topic, topic.partition, topic.remote, topic.copied, topic.end, topic.lag)
    return table


def _groups_table(flow: Flow, groups: Sequence[GroupStanding]) -> Table:
    table = Table("FLOW", "GROUP", "TOPIC", "PARTITION", "THERE", "HERE", "IN STEP")
    for group in groups:
        at, step = group.checkpoint, "yes" if group.in_step else "no"
        table.add(str(flow), at.group, at.topic, at.partition, at.upstream_offset, at.downstream_offset, step)
    return table


def failover(arguments: Arguments) -> int:
    from ottla.client.groups import commit
    from ottla.mirror.standing import GroupAtWork
    from ottla.model.ids import TopicPartition

    mirroring = _mirroring(arguments)
    flow = _one_flow(mirroring, arguments.optional("flow"))
    group = arguments.optional("group")
    if group is None:
        raise UsageError("--group is missing: which group moves")
    with _Standings(mirroring, flow) as standing:
        try:
            wanted = standing.failover(group, flow.target)
        except GroupAtWork as error:
            raise Failure(f"{error}. Stop them first") from error
        table = Table("TOPIC", "PARTITION", "OFFSET")
        for (topic, partition), at in sorted(wanted.items()):
            table.add(topic, partition, at.offset)
        if not wanted:
            note(f"group {group} has nothing to move: no checkpoint of it is further than what {flow.target} has")
            return 0
        show(table, output(arguments))
        if arguments.flag("dry_run"):
            note(f"nothing was written; without --dry-run group {group} begins there on {flow.target}")
            return 0
        offsets = {TopicPartition(*place): at.offset for place, at in wanted.items()}
        refused = [error for error in commit(standing.target, group, offsets).values() if error is not None]
    if refused:
        raise Failure(f"{len(refused)} of {len(offsets)} offsets were refused: {refused[0]}")
    note(f"group {group} begins there on {flow.target}: start its consumers against the new cluster")
    return 0


class _Standings:
    """A flow's standing, with both clusters open for as long as it is looked at."""

    def __init__(self, mirroring: Mirroring, flow: Flow) -> None:
        self._mirroring = mirroring
        self._flow = flow

    def __enter__(self) -> Standing:
        from ottla.mirror.flows import SOURCE
        from ottla.mirror.policy import policy_of
        from ottla.mirror.selection import Selection, topics_of
        from ottla.mirror.sides import connected
        from ottla.mirror.standing import FlowTopics, Standing

        flow = self._flow
        config = self._mirroring.connector(flow, SOURCE)
        policy = policy_of(config)
        topics = FlowTopics(
            self._mirroring.worker(flow)["offset.storage.topic"],
            policy.checkpoints_topic(flow.source),
            policy.remote_topic(flow.source, policy.heartbeats_topic()),
        )
        selection = Selection(policy, topics_of(config), flow.target, heartbeats=False)
        self._source, self._target = connected(config, "source"), connected(config, "target")
        return Standing(policy, selection, flow.source, self._source, self._target, topics)

    def __exit__(self, *_: object) -> None:
        self._source.close()
        self._target.close()


def _mirroring(arguments: Arguments) -> Mirroring:
    from pathlib import Path

    from ottla.connect.providers import Providers
    from ottla.mirror.flows import FlowsError, Mirroring
    from ottla.model.properties import parse_properties

    path = Path(arguments.text("file"))
    try:
        given = parse_properties(path.read_text(encoding="utf-8"))
        resolved = Providers(given).resolve(dict(given))
        return Mirroring.of({name: value for name, value in resolved.items() if value is not None})
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    except (FlowsError, ValueError) as error:
        raise Failure(f"{path}: {error}") from error


def _specs(mirroring: Mirroring, flow: Flow, arguments: Arguments) -> list[JobSpec]:
    from pathlib import Path
    from tempfile import gettempdir

    from ottla.client.reach import secured
    from ottla.connect.jobs.spec import JobSpec
    from ottla.mirror.flows import CHECKPOINT, CONNECTORS, SOURCE

    worker = mirroring.worker(flow)
    directory = Path(arguments.optional("state_dir") or Path(gettempdir(), "ottla-mirror"))
    specs = []
    for connector in CONNECTORS:
        config = mirroring.connector(flow, connector)
        if connector in (SOURCE, CHECKPOINT) and not _copies(mirroring, flow):
            continue
        name = config["name"]
        specs.append(
            JobSpec(
                name=name,
                config=dict(config),
                bootstrap=worker["bootstrap.servers"],
                group_id=worker["group.id"],
                offsets_topic=worker["offset.storage.topic"],
                directory=str(directory / f"{flow.source}-{flow.target}" / name),
                defaults={key: value for key, value in worker.items() if key.endswith(".converter")},
                client=secured(worker),
                tasks=int(config.get("tasks.max", "1")),
            )
        )
    return specs


def _copies(mirroring: Mirroring, flow: Flow) -> bool:
    return mirroring.properties.get(f"{flow}.enabled", "false").lower() == "true"


def _one_flow(mirroring: Mirroring, named: str | None) -> Flow:
    flows = [flow for flow in mirroring.flows() if _copies(mirroring, flow)]
    chosen = [flow for flow in flows if named in (None, str(flow))]
    if len(chosen) != 1:
        raise Failure(f"--flow has to name one of {', '.join(str(flow) for flow in flows)}")
    return chosen[0]


FILE: Final = Argument("FILE", help="MirrorMaker's mm2.properties.")

COMMANDS: Final = (
    Command(
        "run",
        run,
        of_file=True,
        summary="Copy topics from cluster to cluster, exactly once. Ctrl-C stops it; it goes on where it stopped.",
        details="""
It takes MirrorMaker's mm2.properties as it is (clusters, A->B.enabled, A->B.topics and all the rest) and goes on where
MirrorMaker stopped, or the other way round: names, records and positions are the same. `run` may be left out.""",
        arguments=(FILE,),
        options=(
            Option("--clusters", value="NAME", many=True, help="Only flows towards these clusters."),
            Option("--master", value="URL", default="local[*]", help="Spark's."),
            Option(
                "--state-dir", value="DIR", help="Where Spark keeps what it needs; nothing of it is missed if lost."
            ),
        ),
        examples=(("", "ottla mirror mm2.properties"), ("one direction", "ottla mirror mm2.properties --clusters eu")),
    ),
    Command(
        "status",
        status,
        summary="What is copied, what is not yet, and which groups could move over now.",
        details="It asks both clusters and needs no mirror that runs.",
        arguments=(FILE,),
        options=(OUTPUT, JSON),
        examples=(("", "ottla mirror status mm2.properties"),),
    ),
    Command(
        "failover",
        failover,
        summary="Let a group go on on the target, where the source's offsets lead.",
        arguments=(FILE,),
        options=(
            Option("--group", value="NAME", help="The group that moves."),
            Option("--flow", value="A->B", help="Where there are several."),
            Option("--dry-run", help="Show the offsets and write nothing."),
            OUTPUT,
            JSON,
        ),
        examples=(("", "ottla mirror failover mm2.properties --group app --dry-run"),),
    ),
)
