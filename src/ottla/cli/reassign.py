"""`ottla reassign`: moves partitions to other brokers, shows what moves, takes a move back."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ottla.cli.files import text_of
from ottla.cli.output import Table, counted, note, show, show_json
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import REACH, SHOW, cluster, output

if TYPE_CHECKING:
    from ottla.client.blocking.cluster import Cluster
    from ottla.client.errors import KafkaError
    from ottla.client.partitions import Placed
    from ottla.model.ids import TopicPartition

OK: Final = 0
FAILED: Final = 1
_POLL_SECONDS: Final = 0.2
_ANY: Final = "any"
"""As directory of a replica: it stays where it is, or the broker chooses."""


def move(arguments: Arguments) -> int:
    from ottla.client import partitions

    say = note if output(arguments) == "json" else print
    with cluster(arguments) as server:
        now = partitions.placements(server, arguments.texts("topic") or None)
        brokers = _chosen(partitions.racks(server), arguments.texts("to"))
        targets = spread(now, brokers, arguments.optional_number("replication_factor"))
        changes = {place: target for place, target in targets.items() if target != now[place].replicas}
        _show_plan(now, changes, as_json=output(arguments) == "json")
        if arguments.flag("dry_run") or not changes:
            return OK
        return _carry_out(server, changes, arguments, say)


def _chosen(racks: Mapping[int, str | None], texts: Sequence[str]) -> dict[int, str | None]:
    """The brokers named by --to, or all, with their racks."""
    words = [word for text in texts for word in text.split(",") if word]
    if not all(word.isdigit() for word in words):
        raise UsageError("--to: broker ids separated by commas are expected, such as --to 1,2,3")
    for word in words:
        if int(word) not in racks:
            up = ", ".join(map(str, sorted(racks)))
            raise UsageError(f"--to: broker {word} is not up; these are: {up} (`ottla cluster status` shows all)")
    wanted = [int(word) for word in words] or sorted(racks)
    return {broker: racks[broker] for broker in wanted}


def spread(
    now: Mapping[TopicPartition, Placed], brokers: Mapping[int, str | None], replication_factor: int | None = None
) -> dict[TopicPartition, tuple[int, ...]]:
    """Replicas for each partition on `brokers` (given with their racks), each with its fair share of copies and of
    leaders. What lies well stays, so as little as possible is copied; new copies go to racks that have none yet, then
    to whoever has least."""
    targets: dict[TopicPartition, list[int]] = {}
    for place, placed in now.items():
        copies = len(placed.replicas) if replication_factor is None else replication_factor
        if not 1 <= copies <= len(brokers):
            raise UsageError(
                f"{place} would have {counted(copies, 'copy', 'copies')} on {counted(len(brokers), 'broker')}: name "
                "more brokers with --to, or say how many copies it shall have with -r"
            )
        targets[place] = [replica for replica in placed.replicas if replica in brokers][:copies]
    held = _tally(brokers, (replica for target in targets.values() for replica in target))
    for place, target in targets.items():
        copies = len(now[place].replicas) if replication_factor is None else replication_factor
        _fill(target, copies, brokers, held)
    _even_out(targets.values(), brokers, held)
    _deal_leaders(targets.values(), brokers)
    return {place: tuple(target) for place, target in targets.items()}


def _tally(brokers: Iterable[int], seen: Iterable[int]) -> dict[int, int]:
    counts = dict.fromkeys(brokers, 0)
    for broker in seen:
        counts[broker] += 1
    return counts


def _beside(target: Sequence[int], broker: int, racks: Mapping[int, str | None]) -> int:
    """How many of the others stand in the same rack. Without a rack everybody stands alone."""
    return sum(racks[broker] is not None and other != broker and racks[other] == racks[broker] for other in target)


def _fill(target: list[int], copies: int, racks: Mapping[int, str | None], held: dict[int, int]) -> None:
    while len(target) < copies:
        free = [broker for broker in racks if broker not in target]
        chosen = min(free, key=lambda broker: (_beside(target, broker, racks), held[broker]))
        target.append(chosen)
        held[chosen] += 1


def _even_out(targets: Collection[list[int]], racks: Mapping[int, str | None], held: dict[int, int]) -> None:
    """Only from those that have more than their share, or to those that have less: nothing is moved twice."""
    least, rest = divmod(sum(held.values()), len(held))
    most = least + bool(rest)
    moved = True
    while moved:
        moved = False
        for target in targets:
            for position, replica in enumerate(target):
                others = [broker for broker in target if broker != replica]
                crowd = _beside(others, replica, racks)
                free = [b for b in racks if b not in target and _beside(others, b, racks) <= crowd]
                lightest = min(free, key=lambda broker: held[broker], default=replica)
                wanted = held[replica] > most or held[lightest] < least
                if wanted and held[replica] - held[lightest] > 1:
                    target[position] = lightest
                    held[replica] -= 1
                    held[lightest] += 1
                    moved = True


def _deal_leaders(targets: Collection[list[int]], brokers: Iterable[int]) -> None:
    led = _tally(brokers, (target[0] for target in targets))
    moved = True
    while moved:
        moved = False
        for target in targets:
            first = min(target, key=lambda broker: led[broker])
            if led[target[0]] - led[first] > 1:
                led[target[0]] -= 1
                led[first] += 1
                target.remove(first)
                target.insert(0, first)
                moved = True


def _show_plan(
    now: Mapping[TopicPartition, Placed], changes: Mapping[TopicPartition, tuple[int, ...]], *, as_json: bool
) -> None:
    """As JSON it is what `ottla reassign execute` and kafka-reassign-partitions read."""
    if as_json:
        show_json(
            {
                "version": 1,
                "partitions": [
                    {"topic": place.topic, "partition": place.partition, "replicas": list(target)}
                    for place, target in changes.items()
                ],
            }
        )
        return
    if not changes:
        note("nothing has to move")
        return
    table = Table("TOPIC", "PARTITION", "FROM", "TO")
    for place, target in changes.items():
        table.add(place.topic, place.partition, _ids(now[place].replicas), _ids(target))
    show(table, "table")


def execute(arguments: Arguments) -> int:
    """Kafka's own JSON file of a reassignment."""
    text = text_of(arguments.text("file"))
    targets, paths = read_plan(text), read_log_dirs(text)
    with cluster(arguments) as server:
        failures = _choose_directories(server, paths)
        code = _carry_out(server, targets, arguments, print)
        if arguments.flag("wait"):
            _wait_for_directories(server, paths)
        return FAILED if failures else code


def _choose_directories(server: Cluster, paths: Mapping[int, Mapping[TopicPartition, str]]) -> int:
    """Before anything is reassigned: a replica that comes to a broker is made in its directory at once. Gives how many
    brokers refuse theirs."""
    from ottla.cli.failures import explain
    from ottla.client import admin
    from ottla.client.errors import KafkaError
    from ottla.model.errors import Errors

    failures = [
        KafkaError(error, f"{place} in {wanted[place]} of broker {broker}")
        for broker, wanted in paths.items()
        for place, error in admin.alter_replica_log_dirs(server, broker, wanted).items()
        if error not in (Errors.NONE, Errors.REPLICA_NOT_AVAILABLE)
    ]
    for failure in failures:
        note(f"ottla: {explain(failure)}")
    return len(failures)


def _wait_for_directories(server: Cluster, paths: Mapping[int, Mapping[TopicPartition, str]]) -> None:
    from time import sleep

    from ottla.client import admin

    while any(
        place in paths[one.broker] for one in admin.describe_log_dirs(server, list(paths)) for place in one.coming
    ):
        sleep(_POLL_SECONDS)


def _carry_out(
    server: Cluster,
    targets: Mapping[TopicPartition, tuple[int, ...]],
    arguments: Arguments,
    say: Callable[[str], None],
) -> int:
    """The throttle is set before anything moves, and taken away once all has arrived."""
    from ottla.client import partitions, throttles

    limit = arguments.optional_number("throttle")
    if limit is not None:
        throttles.limit(server, partitions.placements(server, sorted({p.topic for p in targets})), targets, limit)
    code = _begin(partitions.reassign(server, targets), say)
    if code == OK and arguments.flag("wait"):
        _wait(server, list(targets), say)
        if limit is not None:
            throttles.lift(server, sorted({place.topic for place in targets}))
    elif limit is not None:
        note("the throttle stays until `ottla reassign unthrottle`")
    return code


def unthrottle(arguments: Arguments) -> int:
    from ottla.client import partitions, throttles

    with cluster(arguments) as server:
        topics = arguments.texts("topic") or sorted({place.topic for place in partitions.placements(server)})
        throttles.lift(server, topics)
    print("replication is not throttled any more")
    return OK


def read_plan(text: str) -> dict[TopicPartition, tuple[int, ...]]:
    from ottla.model.ids import TopicPartition

    try:
        plan = json.loads(text)
        return {
            TopicPartition(str(each["topic"]), int(each["partition"])): tuple(int(r) for r in each["replicas"])
            for each in plan["partitions"]
        }
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            'the plan is not what kafka-reassign-partitions writes: {"version":1,"partitions":[{"topic":"t",'
            f'"partition":0,"replicas":[1,2]}}]}} ({error})'
        ) from error


def read_log_dirs(text: str) -> dict[int, dict[TopicPartition, str]]:
    """By broker: the directories that a plan asks for, which has a path or "any" for each replica."""
    from ottla.model.ids import TopicPartition

    found: dict[int, dict[TopicPartition, str]] = {}
    for each in json.loads(text)["partitions"]:
        paths = each.get("log_dirs", ())
        if paths and len(paths) != len(each["replicas"]):
            raise UsageError(f"{each['topic']}-{each['partition']}: log_dirs has to have one entry for each replica")
        for broker, path in zip(each["replicas"], paths, strict=False):
            if path != _ANY:
                found.setdefault(int(broker), {})[TopicPartition(each["topic"], int(each["partition"]))] = str(path)
    return found


def _begin(results: Mapping[TopicPartition, KafkaError | None], say: Callable[[str], None]) -> int:
    failures = _failures(results)
    say(f"{len(results) - len(failures)} of {counted(len(results), 'partition')} moving")
    return FAILED if failures else OK


def _failures(results: Mapping[TopicPartition, KafkaError | None]) -> list[KafkaError]:
    from ottla.cli.failures import explain

    failures = [error for error in results.values() if error is not None]
    for error in failures:
        note(f"ottla: {explain(error)}")
    return failures


def _wait(server: Cluster, places: list[TopicPartition], say: Callable[[str], None]) -> None:
    """As long as it takes, which is up to disks and network: Ctrl-C ends the waiting, not the move."""
    from time import sleep

    from ottla.client import partitions

    shown = -1
    while True:
        moving = partitions.reassignments(server)
        left = [place for place in places if place in moving]
        if not left:
            break
        if len(left) != shown:
            note(f"{counted(len(left), 'partition')} still moving")
            shown = len(left)
        sleep(_POLL_SECONDS)
    say("all have arrived")


def status(arguments: Arguments) -> int:
    from ottla.client import partitions

    with cluster(arguments) as server:
        moving = partitions.reassignments(server)
    table = Table("TOPIC", "PARTITION", "REPLICAS", "ADDING", "REMOVING")
    for place, each in moving.items():
        table.add(place.topic, place.partition, _ids(each.replicas), _ids(each.adding), _ids(each.removing))
    if not moving and output(arguments) == "table":
        note("nothing is moving")
        return OK
    show(table, output(arguments))
    return OK


def cancel(arguments: Arguments) -> int:
    from ottla.client import partitions

    with cluster(arguments) as server:
        wanted = arguments.texts("topic")
        places = [p for p in partitions.reassignments(server) if not wanted or p.topic in wanted]
        if not places:
            note(f"nothing of {', '.join(wanted)} is moving" if wanted else "nothing is moving")
            return OK
        results = partitions.reassign(server, dict.fromkeys(places))
    failures = _failures(results)
    print(f"{counted(len(results) - len(failures), 'move')} taken back")
    return FAILED if failures else OK


def _ids(replicas: Sequence[int]) -> str | None:
    return ",".join(map(str, replicas)) or None


_WAIT: Final = Option("--wait", "-w", help="Return when everything has arrived.")
_THROTTLE: Final = Option(
    "--throttle",
    value="BYTES",
    number=True,
    help="Most bytes per second that a broker sends or copies for the move.",
)

COMMANDS = (
    Command(
        "move",
        move,
        summary="Spread topics over some brokers, or give them another number of copies.",
        details="""
Each named broker gets its share of replicas and leaders. What already lies well stays, and new copies go to racks that
have none yet. Data is copied first; the old replica is removed when the new one has caught up. With --dry-run --json
the plan comes as the file that `ottla reassign execute` and kafka-reassign-partitions take.""",
        arguments=(Argument("TOPIC", help="Topics to move; all when none is named.", required=False, many=True),),
        options=(
            Option("--to", value="IDS", many=True, help="Brokers that shall hold the replicas. Default: all of them."),
            Option("--replication-factor", "-r", value="N", number=True, help="Copies of each partition."),
            Option("--dry-run", help="Show the plan; move nothing."),
            _THROTTLE,
            _WAIT,
            *SHOW,
        ),
        examples=(
            ("Let a new broker take its share", "ottla reassign move --wait"),
            ("Take everything off broker 4", "ottla reassign move --to 1,2,3 --dry-run"),
            ("Three copies of one topic", "ottla reassign move orders -r 3 --wait"),
            ("Write the plan down, look at it, carry it out", "ottla reassign move --dry-run --json > plan.json"),
        ),
    ),
    Command(
        "execute",
        execute,
        summary="Carry out a plan in the JSON of kafka-reassign-partitions.",
        details="""
Where a partition has "log_dirs", a path or "any" for each of its replicas, these lie in that directory of their broker
afterwards (`ottla cluster log-dirs` shows the paths); a plan whose replicas are those that there are only moves between
directories.""",
        arguments=(Argument("FILE", help="The plan; - reads standard input."),),
        options=(_THROTTLE, _WAIT, *REACH),
        examples=(("", "ottla reassign execute plan.json --throttle 50000000 --wait"),),
    ),
    Command(
        "unthrottle",
        unthrottle,
        summary="Take away the throttle of a move that was not waited for.",
        arguments=(Argument("TOPIC", help="Only of these topics.", required=False, many=True),),
        options=REACH,
        examples=(("", "ottla reassign unthrottle"),),
    ),
    Command(
        "status",
        status,
        summary="What is moving now.",
        options=SHOW,
        examples=(("", "ottla reassign status"),),
    ),
    Command(
        "cancel",
        cancel,
        summary="Take moves back that are under way; the replicas are then where they were.",
        arguments=(Argument("TOPIC", help="Only of these topics.", required=False, many=True),),
        options=REACH,
        examples=(("", "ottla reassign cancel orders"),),
    ),
)
