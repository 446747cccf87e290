"""Back to the beginning: what it takes to let an application process its input again, first as a plan, then done.

Input offsets of its group are moved; internal topics, the marker topic and the folder with checkpoints, Spark's state
and views are deleted. Output topics stay as they are, as with Kafka's StreamsResetter. Unlike there, internal topics
are those of the topology when that is known, and never those of another application whose id only begins alike
(`orders` and `orders-v2`).
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.client import admin, groups, transactions
from ottla.client.errors import KafkaError
from ottla.client.offsets import EARLIEST, LATEST, list_offsets
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.streams.run.config import MARKER_SUFFIX
from ottla.streams.run.state_directory import StateDirectory
from ottla.streams.topology.graph import SourceNode, changelog_topic, decorated

if TYPE_CHECKING:
    from ottla.client.blocking.cluster import Cluster
    from ottla.streams.app import StreamsApp

_INTERNAL: Final = re.compile(
    r".+-(changelog|repartition|subscription-registration-topic|subscription-response-topic)"
    r"|.*KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic"
)
"""What follows the application id."""


class StillRunning(Exception):
    """Resetting an application while it runs would leave wrong results behind."""


class Bounds(NamedTuple):
    first: int
    end: int


class Move(NamedTuple):
    place: TopicPartition
    old: int | None
    new: int


class Plan(NamedTuple):
    """What would be done."""

    application_id: str
    moves: Sequence[Move]
    topics: Sequence[str]
    """To be deleted."""
    files: Sequence[str]
    """To be deleted."""
    missing: Sequence[str]
    """Input topics that do not exist."""


# ---- where to


class Target(NamedTuple):
    """Where an input begins afterwards: `kind` is earliest, latest, offset, time or shift."""

    kind: str = "earliest"
    number: int = 0

    def offset(self, old: int | None, bounds: Bounds, at_time: int) -> int:
        """Kept within what the partition holds. `at_time`: the first offset of the time asked for, -1 when all records
        are older. What has never been committed is shifted from the beginning, where the application would begin."""
        wanted = {
            "earliest": bounds.first,
            "latest": bounds.end,
            "offset": self.number,
            "time": bounds.end if at_time < 0 else at_time,
            "shift": (bounds.first if old is None else old) + self.number,
        }[self.kind]
        return min(max(wanted, bounds.first), bounds.end)


FROM_THE_START: Final = Target()


# ---- which topics


def is_internal(application_id: str, topic: str, others: Iterable[str] = ()) -> bool:
    """By its name alone. `others` are the ids of other applications: the longest that fits has the topic."""
    rest = topic.removeprefix(f"{application_id}-")
    if rest == topic or not (_INTERNAL.fullmatch(rest) or topic == application_id + MARKER_SUFFIX):
        return False
    return not any(len(other) > len(application_id) and topic.startswith(f"{other}-") for other in others)


def internal_topics(app: "StreamsApp") -> list[str]:
    """Those that a topology makes, and the one with the batch markers."""
    graph = app.graph
    changelogs = [
        changelog_topic(app.application_id, spec.name)
        for spec in graph.stores.values()
        if spec.logged and spec.source_topic is None
    ]
    repartitions = [decorated(app.application_id, name) for name in graph.repartition_topics]
    return sorted({*changelogs, *repartitions, app.marker_topic})


def input_topics(app: "StreamsApp", existing: Iterable[str] = ()) -> list[str]:
    """What the topology reads, its own repartition topics left out. Patterns are matched with the topics there are."""
    found: set[str] = set()
    for node in app.graph.nodes.values():
        if isinstance(node, SourceNode):
            found.update(topic for topic in node.topics if topic not in app.graph.repartition_topics)
            pattern = node.pattern
            if pattern is not None:
                found.update(topic for topic in existing if re.fullmatch(pattern, topic))
    return sorted(found)


# ---- the plan


def plan(
    cluster: "Cluster",
    directory: StateDirectory,
    *,
    app: "StreamsApp | None" = None,
    inputs: Sequence[str] = (),
    target: Target = FROM_THE_START,
    targets: Mapping[TopicPartition, int] | None = None,
) -> Plan:
    """Changes nothing. `inputs`: only these topics are moved; all that the topology reads, or that the group has
    offsets of, when there are none. `targets`: offsets of their own for some partitions."""
    application_id = directory.application_id
    existing = _topics(cluster)
    named = {group.name for group in groups.list_groups(cluster)}
    marked = {topic.removesuffix(MARKER_SUFFIX) for topic in existing if topic.endswith(MARKER_SUFFIX)}
    others = sorted((named | marked) - {application_id})
    before = {place: each.offset for place, each in groups.committed(cluster, application_id).items()}
    internal = {topic for topic in existing if is_internal(application_id, topic, others)}
    if app is not None:
        # What an older version of the topology has left goes too, as far as names tell.
        internal |= {topic for topic in internal_topics(app) if topic in existing}
        wanted = list(inputs) or input_topics(app, existing)
    else:
        wanted = list(inputs) or sorted({place.topic for place in before})
    wanted = [topic for topic in wanted if topic not in internal]
    places = [TopicPartition(topic, index) for topic in wanted if topic in existing for index in existing[topic]]
    return Plan(
        application_id,
        _moves(cluster, places, before, target, targets or {}),
        sorted(internal),
        directory.contents(),
        [topic for topic in wanted if topic not in existing],
    )


def _topics(cluster: "Cluster") -> dict[str, list[int]]:
    return {
        topic.name: sorted(partition.partition_index for partition in topic.partitions)
        for topic in cluster.metadata().topics
        if topic.name is not None and not topic.error_code
    }


def _moves(
    cluster: "Cluster",
    places: Sequence[TopicPartition],
    before: Mapping[TopicPartition, int],
    target: Target,
    targets: Mapping[TopicPartition, int],
) -> list[Move]:
    starts, ends = _offsets(cluster, places, EARLIEST), _offsets(cluster, places, LATEST)
    at_time = _offsets(cluster, places, target.number) if target.kind == "time" else {}
    moves: list[Move] = []
    for place in places:
        goal = Target("offset", targets[place]) if place in targets else target
        bounds = Bounds(starts[place], ends[place])
        old = before.get(place)
        moves.append(Move(place, old, goal.offset(old, bounds, at_time.get(place, -1))))
    return moves


def _offsets(cluster: "Cluster", places: Sequence[TopicPartition], moment: int) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for place, outcome in list_offsets(cluster, dict.fromkeys(places, moment)).items():
        if isinstance(outcome, KafkaError):
            raise outcome
        found[place] = outcome.offset
    return found


# ---- whether it runs


def check_stopped(cluster: "Cluster", directory: StateDirectory) -> None:
    """Raises StillRunning: by the lock in its folder, by members of its group, by an open transaction of its own."""
    application_id = directory.application_id
    owner = directory.owner() if directory.is_local else None
    if owner is not None:
        raise StillRunning(
            f"{application_id} is running as process {owner.get('pid', '?')} with state in {directory.path}"
        )
    members = _members(cluster, application_id)
    if members:
        raise StillRunning(f"{application_id} is running: its group has {members} members")
    for transaction in transactions.list_transactions(cluster, states=("Ongoing",)):
        name = transaction.transactional_id
        if name == application_id or name.startswith(f"{application_id}-"):
            raise StillRunning(
                f"{application_id} has an open transaction ({name}): it is running on another machine, or died "
                "a moment ago and the broker will end it soon"
            )


def _members(cluster: "Cluster", group: str) -> int:
    try:
        return len(groups.describe(cluster, group).members)
    except KafkaError as error:
        if error.error == Errors.GROUP_ID_NOT_FOUND:
            return 0
        raise


# ---- doing it


def carry_out(
    cluster: "Cluster", directory: StateDirectory, what: Plan, done: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Gives what failed. Offsets go last: with them at the beginning and old state still there, counts would double."""
    failed: list[str] = []
    if what.topics:
        for topic, refused in admin.delete_topics(cluster, what.topics).items():
            if refused is not None and refused.error != Errors.UNKNOWN_TOPIC_OR_PARTITION:
                failed.append(f"the topic {topic} was not deleted: {refused}")
            else:
                done(f"deleted the topic {topic}")
    if what.files:
        try:
            with directory.held({"doing": "reset"}) if directory.is_local else nullcontext():
                directory.delete()
        except OSError as trouble:
            failed.append(f"{directory.path} was not deleted: {trouble}")
        else:
            for path in what.files:
                done(f"deleted {path}")
    if failed:
        return [*failed, "the offsets were not moved, since the old state is still there"]
    offsets = {move.place: move.new for move in what.moves}
    if offsets:
        for place, error in groups.commit(cluster, what.application_id, offsets).items():
            if error is not None:
                failed.append(f"the offset of {place} was not set: {error}")
    return failed
