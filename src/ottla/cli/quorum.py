"""`ottla quorum`: the controllers behind the metadata log, and who of them votes."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.cli.output import Json, Table, show, show_json, time_text
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import REACH, SHOW, cluster, output

if TYPE_CHECKING:
    from ottla.client.blocking.cluster import Cluster


def status(arguments: Arguments) -> int:
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


def add(arguments: Arguments) -> int:
    from ottla.client import quorum

    node_id = _number(arguments.text("id"))
    address = arguments.optional("endpoint")
    if address is None:
        raise UsageError(f"--endpoint is missing: the controller listener of node {node_id}, as CONTROLLER://host:9093")
    try:
        endpoint = quorum.parse_endpoint(address)
    except ValueError as error:
        raise UsageError(f"--endpoint: {error}") from error
    given = arguments.optional("directory")
    with cluster(arguments) as server:
        directory = _directory(given) if given else _known_directory(server, node_id, votes=False)
        _refusals_told(lambda: quorum.add_voter(server, node_id, directory, endpoint))
    print(f"controller {node_id} votes now")
    return 0


def remove(arguments: Arguments) -> int:
    from ottla.client import quorum

    node_id = _number(arguments.text("id"))
    given = arguments.optional("directory")
    with cluster(arguments) as server:
        directory = _directory(given) if given else _known_directory(server, node_id, votes=True)
        _refusals_told(lambda: quorum.remove_voter(server, node_id, directory))
    print(f"controller {node_id} votes no more")
    return 0


def _refusals_told(change: Callable[[], None]) -> None:
    from ottla.cli.failures import Failure
    from ottla.client.errors import KafkaError
    from ottla.model.errors import Errors

    try:
        change()
    except KafkaError as error:
        if error.error != Errors.UNSUPPORTED_VERSION:
            raise
        raise Failure(f"{error}\n  they change with controller.quorum.voters, on every node") from error


def _known_directory(server: Cluster, node_id: int, *, votes: bool) -> bytes:
    """What the leader of the quorum knows: a voter by the log, an observer by its fetches."""
    from ottla.cli.failures import Failure
    from ottla.client import admin

    partition = admin.describe_quorum(server).topics[0].partitions[0]
    here = partition.current_voters if votes else partition.observers
    there = partition.observers if votes else partition.current_voters
    if not votes and any(replica.replica_id == node_id for replica in there):
        raise Failure(f"controller {node_id} votes already (`ottla quorum status`)")
    found = [replica.replica_directory_id for replica in here if replica.replica_id == node_id]
    if not found:
        what = "does not vote" if votes else "does not follow the metadata log yet: start it and let it catch up first"
        raise Failure(f"controller {node_id} {what} (`ottla quorum status` shows who does)")
    if len(found) > 1:
        raise Failure(f"controller {node_id} is known with several directories: say which one (`ottla quorum status`)")
    return found[0]


def _number(text: str) -> int:
    if not text.isdigit():
        raise UsageError(f"{text!r}: the id of a controller is a number")
    return int(text)


def _directory(text: str) -> bytes:
    from ottla.model.ids import parse_uuid

    try:
        return parse_uuid(text)
    except ValueError as error:
        raise UsageError(
            f"{text!r} is no directory id: `ottla quorum status` shows it, and directory.id in meta.properties"
        ) from error


_WHO: Final = (
    Argument("ID", help="Its node.id."),
    Argument(
        "DIRECTORY", help="The directory.id of its metadata directory; else the one it is known by.", required=False
    ),
)
_DYNAMIC: Final = """
For quorums that keep their voters in the log (controller.quorum.bootstrap.servers). Voters listed in
controller.quorum.voters are fixed: they change with that setting, on all nodes."""

COMMANDS = (
    Command(
        "status",
        status,
        summary="The controllers behind the metadata log: leader, voters, observers, lag.",
        options=SHOW,
        examples=(("", "ottla quorum status"),),
    ),
    Command(
        "add",
        add,
        summary="Let a controller vote that follows the log as an observer (KIP-853).",
        details=_DYNAMIC,
        arguments=_WHO,
        options=(
            Option(
                "--endpoint", value="NAME://HOST:PORT", help="Its controller listener, such as CONTROLLER://c4:9093."
            ),
            *REACH,
        ),
        examples=(
            ("", "ottla quorum add 4 --endpoint CONTROLLER://c4:9093"),
            ("", "ottla quorum add 4 pHT3vbqKRtWWIYTL8gw1Kg --endpoint CONTROLLER://c4:9093"),
        ),
    ),
    Command(
        "remove",
        remove,
        summary="Take the vote from a controller, before it is switched off for good.",
        details=_DYNAMIC,
        arguments=_WHO,
        options=REACH,
        examples=(("", "ottla quorum remove 4"),),
    ),
)
