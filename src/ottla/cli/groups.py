"""`ottla groups`: who reads what, how far behind they are, and moving them to another place.

Nothing that changes a group happens by default: `reset-offsets` shows what it would do until it is given --execute.
"""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from typing import TYPE_CHECKING, Final

from ottla.cli.output import Json, Table, note, show, show_json
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import REACH, SHOW, cluster, output

if TYPE_CHECKING:
    from ottla.client.blocking.cluster import Cluster
    from ottla.client.groups import Group, Offset
    from ottla.model.ids import TopicPartition

OK: Final = 0
FAILED: Final = 1

_TARGETS: Final = (
    "to_earliest",
    "to_latest",
    "to_current",
    "to_offset",
    "to_datetime",
    "by_duration",
    "shift_by",
)


def list_groups(arguments: Arguments) -> int:
    from ottla.client.groups import list_groups as listed

    table = Table("GROUP", "TYPE", "PROTOCOL", "STATE", "COORDINATOR")
    with cluster(arguments) as server:
        for group in listed(server, arguments.texts("state"), arguments.texts("type")):
            table.add(group.name, group.kind or None, group.protocol or None, group.state or None, group.coordinator)
    show(table, output(arguments))
    return OK


def describe(arguments: Arguments) -> int:
    from ottla.client import groups

    with cluster(arguments) as server:
        names = arguments.texts("group")
        if arguments.flag("all_groups"):
            names = [group.name for group in groups.list_groups(server)]
        elif not names:
            raise UsageError("name a group, or use --all-groups")
        found = [groups.describe(server, name) for name in names]
        if arguments.flag("members"):
            return _show_members(found, output(arguments))
        return _show_lag(server, found, output(arguments))


def _show_members(found: "list[Group]", form: str) -> int:
    table = Table("GROUP", "MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS", "ASSIGNMENT")
    for group in found:
        for member in group.members:
            table.add(
                group.name,
                member.member_id,
                member.instance_id,
                member.client_id,
                member.host,
                len(member.partitions),
                _brief(member.partitions),
            )
    show(table, form)
    return OK


def _brief(partitions: "tuple[TopicPartition, ...]") -> str:
    topics: dict[str, list[str]] = {}
    for place in partitions:
        topics.setdefault(place.topic, []).append(str(place.partition))
    return " ".join(f"{topic}({','.join(indexes)})" for topic, indexes in topics.items())


def _members(group: "Group") -> str:
    return f"{len(group.members)} member{'s' if len(group.members) != 1 else ''}"


def _show_lag(server: "Cluster", found: "list[Group]", form: str) -> int:
    table = Table("GROUP", "TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER", "CLIENT", "HOST")
    documents: list[Json] = []
    for group in found:
        rows = _lag(server, group)
        for row in rows:
            table.add(group.name, *row)
        documents.append(
            {
                "group": group.name,
                "type": group.kind.lower(),
                "state": group.state,
                "protocol": group.protocol,
                "epoch": group.epoch,
                "coordinator": group.coordinator,
                "members": len(group.members),
                "lag": sum(row[4] or 0 for row in rows),
                "partitions": [dict(zip(_LAG_KEYS, row, strict=True)) for row in rows],
            }
        )
    if form == "json":
        show_json(documents)
        return OK
    for group in found:
        epoch = "" if group.epoch is None else f", epoch {group.epoch}"
        note(
            f"{group.name}: {group.kind.lower()} group, {group.state}, {_members(group)}{epoch}, "
            f"at broker {group.coordinator}"
        )
    show(table, form)
    return OK


_LAG_KEYS: Final = ("topic", "partition", "committed", "end", "lag", "member", "client", "host")

LagRow = tuple[str, int, int | None, int | None, int | None, str | None, str | None, str | None]


def _lag(server: "Cluster", group: "Group") -> list[LagRow]:
    """Every partition that is committed or assigned, with how much there is to read."""
    from ottla.client import groups
    from ottla.client.errors import KafkaError
    from ottla.client.offsets import LATEST, list_offsets

    committed = groups.committed(server, group.name)
    owners = {place: member for member in group.members for place in member.partitions}
    places = sorted({*committed, *owners})
    ends = list_offsets(server, dict.fromkeys(places, LATEST)) if places else {}
    rows: list[LagRow] = []
    for place in places:
        outcome = ends[place]
        end = None if isinstance(outcome, KafkaError) else outcome.offset  # a topic may be gone while its offset is not
        offset = committed[place].offset if place in committed else None
        lag = None if end is None or offset is None else max(end - offset, 0)
        member = owners.get(place)
        rows.append(
            (
                place.topic,
                place.partition,
                offset,
                end,
                lag,
                member.member_id if member else None,
                member.client_id if member else None,
                member.host if member else None,
            )
        )
    return rows


# ---- moving


def reset_offsets(arguments: Arguments) -> int:
    from ottla.cli.failures import Failure
    from ottla.client import groups
    from ottla.client.errors import KafkaError
    from ottla.model.errors import Errors

    chosen = [target for target in _TARGETS if arguments.has(target) or arguments.flag(target)]
    if len(chosen) != 1:
        options = ", ".join("--" + target.replace("_", "-") for target in _TARGETS)
        raise UsageError(f"say where to: exactly one of {options}")
    name = arguments.text("group")
    with cluster(arguments) as server:
        try:
            group = groups.describe(server, name)
            if group.state not in ("Empty", "Dead"):
                raise Failure(
                    f"group {name} is {group.state} with {_members(group)}: its offsets can be set when all of its "
                    "consumers have stopped"
                )
        except KafkaError as error:
            if error.error != Errors.GROUP_ID_NOT_FOUND:
                raise
            note(f"group {name} does not exist yet: its first offsets make it")
        before = groups.committed(server, name)
        places = _places(server, arguments, before)
        if not places:
            raise Failure(f"group {name} has no offsets here: name topics with --topic")
        after = _new_offsets(server, arguments, chosen[0], places, before)
        table = Table("GROUP", "TOPIC", "PARTITION", "OLD OFFSET", "NEW OFFSET")
        for place in places:
            table.add(name, *place, before[place].offset if place in before else None, after[place])
        failed = {}
        if arguments.flag("execute"):
            failed = {place: error for place, error in groups.commit(server, name, after).items() if error}
    show(table, output(arguments))
    for problem in failed.values():
        note(f"not set: {problem}")
    if not arguments.flag("execute"):
        note("Nothing was changed. Add --execute to do it.")
    return FAILED if failed else OK


def _places(server: "Cluster", arguments: Arguments, before: "dict[TopicPartition, Offset]") -> "list[TopicPartition]":
    """`--topic orders` means all of its partitions, `--topic orders:0,2` those; none means what is committed."""
    from ottla.cli.spans import choose_partitions

    words = arguments.texts("topic")
    if words and arguments.flag("all_topics"):
        raise UsageError("--topic and --all-topics exclude each other")
    if not words:
        return sorted(before)
    places: list[TopicPartition] = []
    for word in words:
        topic, _, partitions = word.partition(":")
        places += choose_partitions(server, [topic], [partitions] if partitions else [])
    return sorted(set(places))


def _new_offsets(
    server: "Cluster",
    arguments: Arguments,
    target: str,
    places: "list[TopicPartition]",
    before: "dict[TopicPartition, Offset]",
) -> "dict[TopicPartition, int]":
    from ottla.cli.spans import resolve

    if target in ("shift_by", "to_current"):
        return _shifted(server, places, before, arguments.optional_number("shift_by") or 0)
    words = {
        "to_earliest": "start",
        "to_latest": "end",
        "to_offset": arguments.optional("to_offset") or "",
        "to_datetime": f"@{arguments.optional('to_datetime')}",
        "by_duration": f"@-{arguments.optional('by_duration')}",
    }
    if target == "to_offset" and not words["to_offset"].isdigit():
        raise UsageError(f"--to-offset {words['to_offset']}: an offset is a number from 0 on")
    bounds = resolve(server, places, "start:end")
    spans = resolve(server, places, words[target])
    return {place: min(spans[place].first, bounds[place].last or 0) for place in places}


def _shifted(
    server: "Cluster", places: "list[TopicPartition]", before: "dict[TopicPartition, Offset]", by: int
) -> "dict[TopicPartition, int]":
    """From what is committed; from the end where nothing is. Kept within what the partition holds."""
    from ottla.cli.spans import resolve

    bounds = resolve(server, places, "start:end")
    after: dict[TopicPartition, int] = {}
    for place in places:
        first, last = bounds[place].first, bounds[place].last or 0
        start = before[place].offset if place in before else last
        after[place] = min(max(start + by, first), last)
    return after


def delete(arguments: Arguments) -> int:
    from ottla.cli.failures import explain
    from ottla.client import groups

    with cluster(arguments) as server:
        outcomes = groups.delete(server, arguments.texts("group"))
    for name, error in outcomes.items():
        if error is None:
            print(f"deleted {name}")
        else:
            note(f"not deleted: {explain(error)}")
    return FAILED if any(outcomes.values()) else OK


GROUPS: Final = Argument("GROUP", help="Group names.", many=True, required=False, flags=("--group",))
ONE_GROUP: Final = Argument("GROUP", help="The group's name.", flags=("--group",))

COMMANDS: Final = (
    Command(
        "list",
        list_groups,
        summary="List groups with their type, state and coordinator.",
        options=(
            Option("--state", value="STATE", many=True, help="Only groups in this state, such as Stable or Empty."),
            Option("--type", value="TYPE", many=True, help="Only groups of this type: classic or consumer."),
            *SHOW,
        ),
        examples=(
            ("every group", "ottla groups list"),
            ("those that nobody reads for", "ottla groups list --state empty"),
        ),
    ),
    Command(
        "describe",
        describe,
        summary="Show what a group has committed, how far it is behind, and who reads what.",
        arguments=(GROUPS,),
        options=(
            Option("--members", help="Show the members instead of the partitions."),
            Option("--all-groups", help="Every group there is."),
            Option("--offsets", help="The default; Kafka's tool has it too.", hidden=True),
            *SHOW,
        ),
        examples=(
            ("the lag of a group", "ottla groups describe billing"),
            ("its members", "ottla groups describe billing --members"),
        ),
    ),
    Command(
        "reset-offsets",
        reset_offsets,
        summary="Move an empty group to another place. Shows what it would do unless --execute is given.",
        arguments=(ONE_GROUP,),
        options=(
            Option(
                "--topic",
                "-t",
                value="TOPIC[:PARTITIONS]",
                many=True,
                help="Which topics, such as orders or orders:0,2.",
            ),
            Option("--all-topics", help="All topics that the group has offsets of; the default."),
            Option("--to-earliest", help="To the first record there is."),
            Option("--to-latest", help="To the end: only what comes from now on is read."),
            Option("--to-current", help="To where it is, kept within what the partition still holds."),
            Option("--to-offset", value="OFFSET", help="To this offset."),
            Option("--to-datetime", value="TIME", help="To the first record not older, such as 2026-11-01T12:00:00Z."),
            Option("--by-duration", value="SPAN", help="To the first record of the last 30m, 2h, 7d."),
            Option("--shift-by", value="N", number=True, help="Forward by N records, or back when N is negative."),
            Option("--execute", help="Do it."),
            Option("--dry-run", help="Only show it; the default.", hidden=True),
            *SHOW,
        ),
        examples=(
            ("read everything again: first look, then do", "ottla groups reset-offsets billing --to-earliest"),
            ("", "ottla groups reset-offsets billing --to-earliest --execute"),
            ("go back to noon", "ottla groups reset-offsets billing -t orders --to-datetime 2026-11-01T12:00:00Z"),
            ("skip one record that cannot be read", "ottla groups reset-offsets billing -t orders:3 --shift-by 1"),
        ),
    ),
    Command(
        "delete",
        delete,
        summary="Delete empty groups and what they have committed.",
        arguments=(Argument("GROUP", help="Group names.", many=True, flags=("--group",)),),
        options=REACH,
        examples=(("", "ottla groups delete billing"),),
    ),
)
