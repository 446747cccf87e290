"""`ottla cluster`: what the cluster is made of."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from ottla.cli.output import Json, Table, show, show_json, size_text, time_text
from ottla.cli.parser import Arguments, Command, Option, UsageError
from ottla.cli.reach import SHOW, cluster, output, settings


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


def quorum(arguments: Arguments) -> int:
    from ottla.client import admin
    from ottla.model.ids import uuid_text

    with cluster(arguments) as server:
        response = admin.describe_quorum(server)
    partition = response.topics[0].partitions[0]
    table = Table("ID", "ROLE", "LOG END", "LAG", "LAST FETCH", "CAUGHT UP", "DIRECTORY")
    leader_end = max(
        (v.log_end_offset for v in partition.current_voters if v.replica_id == partition.leader_id), default=0
    )
    for role, replicas in (("voter", partition.current_voters), ("observer", partition.observers)):
        for replica in replicas:
            table.add(
                replica.replica_id,
                "leader" if replica.replica_id == partition.leader_id else role,
                replica.log_end_offset,
                max(leader_end - replica.log_end_offset, 0),
                time_text(replica.last_fetch_timestamp),
                time_text(replica.last_caught_up_timestamp),
                uuid_text(replica.replica_directory_id) if any(replica.replica_directory_id) else None,
            )
    if output(arguments) == "json":
        replicas_json: list[Json] = list(table.records())
        show_json(
            {
                "leader": partition.leader_id,
                "epoch": partition.leader_epoch,
                "high_watermark": partition.high_watermark,
                "replicas": replicas_json,
            }
        )
        return 0
    print(
        f"leader          {partition.leader_id}\nepoch           {partition.leader_epoch}\n"
        f"high watermark  {partition.high_watermark}\n"
    )
    show(table, "table")
    return 0


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
        table = Table("BROKER", "DIRECTORY", "TOPIC", "PARTITION", "SIZE")
        for one in found:
            for place, size in sorted(one.replicas.items()):
                table.add(one.broker, one.path, place.topic, place.partition, size if as_json else size_text(size))
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
        "info",
        info,
        summary="The cluster's id and its brokers.",
        options=SHOW,
        examples=(("", "ottla cluster info"),),
    ),
    Command(
        "quorum",
        quorum,
        summary="The controllers behind the metadata log: leader, voters, observers, lag.",
        options=SHOW,
        examples=(("", "ottla cluster quorum"),),
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
