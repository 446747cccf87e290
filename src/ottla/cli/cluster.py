"""`ottla cluster`: what the cluster is made of."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ottla.cli.output import Json, Table, show, show_json, size_text
from ottla.cli.parser import Arguments, Command, Option, UsageError
from ottla.cli.reach import SHOW, cluster, output, settings

if TYPE_CHECKING:
    from ottla.client.blocking.cluster import Cluster
    from ottla.client.partitions import Placed
    from ottla.model.ids import TopicPartition
    from ottla.protocol import messages

_SHOWN: Final = 5
_QUORUM_SECONDS: Final = 3.0


def info(arguments: Arguments) -> int:
    from ottla.client import admin

    with cluster(arguments) as server:
        found = admin.describe_cluster(server)
    table = Table("ID", "HOST", "PORT", "RACK", "STATE")
    for broker in sorted(found.brokers, key=lambda broker: broker.broker_id):
        table.add(broker.broker_id, broker.host, broker.port, broker.rack, "fenced" if broker.is_fenced else "up")
    if output(arguments) == "json":
        brokers: list[Json] = list(table.records())
        show_json({"cluster_id": found.cluster_id, "controller": found.controller_id, "brokers": brokers})
        return 0
    print(f"cluster     {found.cluster_id}\nbrokers     {len(found.brokers)}\n")
    show(table, "table")
    return 0


def status(arguments: Arguments) -> int:
    """Exit code 1 when something needs a look, so that scripts can ask."""
    from ottla.client import admin, partitions

    with cluster(arguments) as server:
        about = admin.describe_cluster(server, fenced_too=True)
        placed = partitions.placements(server)
        quorum = _quorum(server)
    brokers = _brokers(about.brokers, placed)
    offline = [str(place) for place, p in placed.items() if p.leader < 0]
    behind = [str(place) for place, p in placed.items() if p.leader >= 0 and len(p.in_sync) < len(p.replicas)]
    fenced = any(each.is_fenced for each in about.brokers)
    if output(arguments) == "json":
        rows: list[Json] = list(brokers.records())
        lost: list[Json] = list(offline)
        late: list[Json] = list(behind)
        voters: list[Json] = [voter.replica_id for voter in quorum.current_voters] if quorum else []
        show_json(
            {
                "cluster_id": about.cluster_id,
                "controller": quorum.leader_id if quorum else None,
                "voters": voters,
                "brokers": rows,
                "partitions": len(placed),
                "offline": lost,
                "under_replicated": late,
            }
        )
    else:
        print(f"cluster           {about.cluster_id}")
        print(f"controller        {_controller_text(quorum)}")
        print(f"partitions        {len(placed)}")
        print(f"offline           {_some(offline)}")
        print(f"under-replicated  {_some(behind)}\n")
        show(brokers, "table")
    return 1 if offline or behind or fenced or quorum is None else 0


def _quorum(server: Cluster) -> messages.DescribeQuorumResponse.PartitionData | None:
    """None when nobody leads it: that is when the rest of the picture is wanted most."""
    from ottla.client import admin
    from ottla.client.errors import ClientError

    try:
        return admin.describe_quorum(server, timeout_s=min(server.timeout_s, _QUORUM_SECONDS)).topics[0].partitions[0]
    except ClientError:
        return None


def _controller_text(quorum: messages.DescribeQuorumResponse.PartitionData | None) -> str:
    if quorum is None:
        return "none: a majority of the voters is not up, or they do not reach each other"
    voters = ", ".join(str(voter.replica_id) for voter in quorum.current_voters)
    return f"{quorum.leader_id} of {voters} (epoch {quorum.leader_epoch})"


def _brokers(
    brokers: Sequence[messages.DescribeClusterResponse.DescribeClusterBroker], placed: Mapping[TopicPartition, Placed]
) -> Table:
    table = Table("BROKER", "ADDRESS", "RACK", "STATE", "LEADS", "REPLICAS", "IN SYNC")
    for each in sorted(brokers, key=lambda broker: broker.broker_id):
        here = [p for p in placed.values() if each.broker_id in p.replicas]
        table.add(
            each.broker_id,
            f"{each.host}:{each.port}",
            each.rack,
            "fenced" if each.is_fenced else "up",
            sum(p.leader == each.broker_id for p in here),
            len(here),
            sum(each.broker_id in p.in_sync for p in here),
        )
    return table


def _some(names: list[str]) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{len(names)}: {' '.join(names[:_SHOWN])}{more}"


def features(arguments: Arguments) -> int:
    from ottla.client import admin

    changes = {
        **{name: (level, 1) for name, level in settings(arguments.texts("upgrade")).items()},
        **{name: (level, 2) for name, level in settings(arguments.texts("downgrade")).items()},
    }
    with cluster(arguments) as server:
        for name, (level, direction) in changes.items():
            if not level.isdigit():
                raise UsageError(f"{name}={level}: the level is a number (`ottla cluster features` shows them)")
            dry_run = arguments.flag("dry_run")
            admin.update_feature(server, name, int(level), upgrade_type=direction, validate_only=dry_run)
            print(f"{name} {'could be' if dry_run else 'is'} at level {level}")
        if changes:
            return 0
        epoch, found = admin.features(server)
    table = Table("FEATURE", "FINALIZED", "LOWEST", "HIGHEST")
    for feature in found:
        table.add(feature.name, feature.finalized, feature.lowest, feature.highest)
    if output(arguments) == "json":
        levels: list[Json] = list(table.records())
        show_json({"epoch": epoch, "features": levels})
    else:
        show(table, "table")
    return 0


def log_dirs(arguments: Arguments) -> int:
    from ottla.client import admin

    with cluster(arguments) as server:
        server.metadata([])
        found = admin.describe_log_dirs(server, sorted(server.brokers))
    as_json = output(arguments) == "json"
    if arguments.flag("replicas"):
        table = Table("BROKER", "DIRECTORY", "TOPIC", "PARTITION", "SIZE", "MOVES TO")
        goals = {(one.broker, place): one.path for one in found for place in one.coming}
        for one in found:
            for place, size in sorted(one.replicas.items()):
                shown_size = size if as_json else size_text(size)
                goal = goals.get((one.broker, place))
                table.add(one.broker, one.path, place.topic, place.partition, shown_size, goal)
    else:
        table = Table("BROKER", "DIRECTORY", "STATE", "REPLICAS", "SIZE", "FREE", "TOTAL")
        for one in found:
            state = "online" if one.error is None else one.error.error.name
            sizes = (sum(one.replicas.values()), one.usable_bytes, one.total_bytes)
            shown = sizes if as_json else tuple(size_text(size) if size >= 0 else None for size in sizes)
            table.add(one.broker, one.path, state, len(one.replicas), *shown)
    show(table, output(arguments))
    return 0


COMMANDS = (
    Command(
        "status",
        status,
        summary="Brokers, controller, leaders, and what is offline or under-replicated.",
        details="""
The exit code is 0 when there is a controller, every broker is up, and every partition has its leader and all its copies
in sync; else 1. A fenced broker is registered but does not answer the controller: it is down, or cut off.""",
        options=SHOW,
        examples=(
            ("", "ottla cluster status"),
            ("Wait until a restarted node has caught up", "until ottla cluster status; do sleep 1; done"),
        ),
    ),
    Command(
        "info",
        info,
        summary="The cluster's id and its brokers.",
        options=SHOW,
        examples=(("", "ottla cluster info"),),
    ),
    Command(
        "features",
        features,
        summary="Feature levels: what is supported, what is in force; raise or lower one.",
        options=(
            Option("--upgrade", value="NAME=LEVEL", many=True, help="Raise a feature to a level."),
            Option("--downgrade", value="NAME=LEVEL", many=True, help="Lower a feature to a level, if that is safe."),
            Option("--dry-run", help="Check only; change nothing."),
            *SHOW,
        ),
        examples=(
            ("All levels", "ottla cluster features"),
            ("Raise one", "ottla cluster features --upgrade group.version=1"),
        ),
    ),
    Command(
        "log-dirs",
        log_dirs,
        summary="Where each broker keeps its data, how much it is and how much room is left.",
        options=(Option("--replicas", "-r", help="With the size of every partition's replica."), *SHOW),
        examples=(("", "ottla cluster log-dirs"), ("Partition by partition", "ottla cluster log-dirs --replicas")),
    ),
)
