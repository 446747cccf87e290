"""`ottla leader-election`: partitions go back to their preferred leaders, or to any live one when all else is lost."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.cli.output import counted, note
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import REACH, cluster

if TYPE_CHECKING:
    from ottla.client.blocking.cluster import Cluster
    from ottla.model.ids import TopicPartition

OK: Final = 0
FAILED: Final = 1


def elect(arguments: Arguments) -> int:
    from ottla.cli.failures import explain
    from ottla.client import partitions
    from ottla.model.errors import Errors

    topics, number = arguments.texts("topic"), arguments.optional_number("partition")
    unclean = arguments.flag("unclean")
    if bool(topics) == arguments.flag("all"):
        raise UsageError("name topics, or say --all for every topic")
    if number is not None and not topics:
        raise UsageError("--partition: name the topic it belongs to")
    if unclean and not arguments.flag("i_accept_data_loss"):
        raise UsageError("--unclean may lose acknowledged records; say --i-accept-data-loss as well")
    with cluster(arguments) as server:
        places = _places(server, topics, number) if topics else None
        results = partitions.elect(server, places, partitions.UNCLEAN if unclean else partitions.PREFERRED)
    needed = {p: e for p, e in results.items() if e is None or e.error != Errors.ELECTION_NOT_NEEDED}
    failures = [error for error in needed.values() if error is not None]
    for error in failures:
        note(f"ottla: {explain(error)}")
    if needed:
        print(f"{counted(len(needed) - len(failures), 'leader')} elected")
    else:
        print("no election was needed")
    return FAILED if failures else OK


def _places(server: Cluster, topics: list[str], number: int | None) -> list[TopicPartition]:
    from ottla.cli.failures import Failure
    from ottla.client import partitions

    places = list(partitions.placements(server, topics))
    if number is None:
        return places
    for topic in topics:
        count = sum(place.topic == topic for place in places)
        if not 0 <= number < count:
            raise Failure(f"{topic} has no partition {number}: it has {counted(count, 'partition')}, from 0 on")
    return [place for place in places if place.partition == number]


COMMANDS = (
    Command(
        "",
        elect,
        summary="Elect the preferred leaders of topics; --unclean elects any live replica.",
        details="""
The preferred leader of a partition is the first of its replicas. After a node was away others lead in its place, until
an election, or the controller's own balancing every five minutes, gives the leadership back. An unclean election is for
a partition whose in-sync replicas are all lost: it works again, without what the new leader does not have.""",
        arguments=(Argument("TOPIC", help="Topics whose leaders are elected.", required=False, many=True),),
        options=(
            Option("--all", help="Every topic."),
            Option("--partition", value="N", number=True, help="Only this partition of the topics."),
            Option("--unclean", help="Elect a replica that may lack records, where no other is left."),
            Option("--i-accept-data-loss", help="Needed with --unclean."),
            *REACH,
        ),
        examples=(
            ("Balance leaders after a restart", "ottla leader-election --all"),
            (
                "Get one partition going again",
                "ottla leader-election orders --partition 3 --unclean --i-accept-data-loss",
            ),
        ),
    ),
)
