"""The topics of an application: those it reads must be there, its own are made with Kafka Streams' settings.

All by wire, before the first query starts. What does not fit is told in whole, not topic by topic.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ottla.client import admin, groups
from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.client.offsets import READ_COMMITTED, READ_UNCOMMITTED, Found, list_offsets
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.streams.topology.graph import (
    Graph,
    Reset,
    ResetByDuration,
    SinkNode,
    SourceNode,
    SubTopology,
    changelog_topic,
    decorated,
)
from ottla.streams.topology.partition_counts import PartitionsError, matching_topics, partition_counts
from ottla.streams.topology.stores import StoreKind, StoreSpec

logger = logging.getLogger(__name__)

EARLIEST: Final = -2
LATEST: Final = -1

_OF_FOREIGN_KEYS: Final = r"-(?i:subscription-(?:registration|response))(?:-\d+)?-topic"

REPARTITION: Final = {
    "cleanup.policy": "delete",
    # Records go when they were used (DeleteRecords), however old they are; small segments make that soon.
    "retention.ms": "-1",
    "segment.bytes": str(50 << 20),
    "message.timestamp.type": "CreateTime",
}
VERSIONED_LAG_MS: Final = 24 * 3_600_000
"""Beyond a versioned store's history its changelog stays uncompacted this much longer."""
_POLICY: Final = "cleanup.policy"
_RETENTION: Final = "retention.ms"
CHANGELOG: Final = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}


class NoOffsets(Exception):
    """An input without committed offsets, and auto.offset.reset is none."""


class Inputs(NamedTuple):
    """How many partitions every topic has that the topology speaks of, under the names it uses."""

    partitions: Mapping[str, int]
    internal: frozenset[str]
    """Repartition topics: on the broker their names begin with the application's id."""

    def of(self, source: SourceNode) -> list[str]:
        return matching_topics(source, self.partitions)

    def number(self, topic: str) -> int:
        """Raises PartitionsError."""
        if topic not in self.partitions:
            raise PartitionsError([f"topic {topic}, which the application writes to, does not exist: create it"])
        return self.partitions[topic]

    def tasks(self, sub: SubTopology) -> int:
        """A task for each partition of the widest input."""
        counts = [
            self.partitions[topic] for node in sub.nodes if isinstance(node, SourceNode) for topic in self.of(node)
        ]
        return max(counts, default=1)


def find_inputs(cluster: Cluster, application_id: str, graph: Graph, subs: Sequence[SubTopology]) -> Inputs:
    """Raises PartitionsError when an input is missing or co-partitioning is broken."""
    found = {
        topic.name: len(topic.partitions)
        for topic in cluster.metadata().topics
        if topic.name is not None and not topic.error_code
    }
    existing = {name: number for name, number in found.items() if not _is_own(application_id, name)}
    for name in graph.repartition_topics:
        own = decorated(application_id, name)
        if own in found:
            existing[name] = found[own]
    counts = partition_counts(graph, subs, existing)
    return Inputs({**existing, **counts}, frozenset(graph.repartition_topics))


def require_outputs(cluster: Cluster, graph: Graph, dead_letters: str | None, inputs: Inputs) -> None:
    """Raises PartitionsError for topics that are written to and missing, where brokers do not make them: the first
    batch would find out too, after a minute."""
    sinks = [node for node in graph.nodes.values() if isinstance(node, SinkNode) and not node.repartition]
    wanted = {node.topic: f"written by {node.name}" for node in sinks if node.topic is not None}
    if dead_letters is not None:
        wanted.setdefault(dead_letters, "for dead letters")
    missing = {topic: purpose for topic, purpose in wanted.items() if topic not in inputs.partitions}
    if missing and not _are_made(cluster):
        raise PartitionsError(
            [
                f"topic {topic} ({purpose}) does not exist, and the brokers make none (auto.create.topics.enable): "
                "create it"
                for topic, purpose in missing.items()
            ]
        )


def _are_made(cluster: Cluster) -> bool:
    """Whether brokers make a topic when it is written to; true where they do not tell."""
    broker = next(iter(cluster.brokers))
    told = admin.describe_configs(cluster, admin.BROKER, [str(broker)], broker=broker)[str(broker)]
    if isinstance(told, KafkaError):
        return True
    return all(each.value != "false" for each in told if each.name == "auto.create.topics.enable")


def own_topics(application_id: str) -> str:
    """A regular expression of what the application makes itself: no pattern of its sources means these."""
    return rf"{re.escape(application_id)}-.*(?:-changelog|-repartition|-ottla-batches|{_OF_FOREIGN_KEYS})\Z"


def _is_own(application_id: str, topic: str) -> bool:
    return re.match(own_topics(application_id), topic) is not None


def repartition_topics(
    application_id: str, graph: Graph, inputs: Inputs, unneeded: frozenset[str], settings: Mapping[str, str]
) -> list[admin.NewTopic]:
    return [
        admin.NewTopic(
            decorated(application_id, name),
            partitions=inputs.partitions[name],
            configs={**REPARTITION, **settings, **topic.config},
        )
        for name, topic in graph.repartition_topics.items()
        if name not in unneeded
    ]


def changelog_topics(
    application_id: str, sub: SubTopology, inputs: Inputs, additional_retention_ms: int, settings: Mapping[str, str]
) -> list[admin.NewTopic]:
    return [
        admin.NewTopic(
            changelog_topic(application_id, store.name),
            partitions=inputs.tasks(sub),
            configs={**_changelog_configs(store, additional_retention_ms), **settings, **store.changelog_config},
        )
        for store in sub.stores
        if store.logged and store.source_topic is None
    ]


def _changelog_configs(store: StoreSpec, additional_retention_ms: int) -> dict[str, str]:
    if store.kind is StoreKind.KEY_VALUE or store.kind is StoreKind.OWN:
        return dict(CHANGELOG)
    if store.kind is StoreKind.VERSIONED:
        # Compaction keeps the last record per key, so it must not reach into the history.
        lag = min(store.retention_ms + VERSIONED_LAG_MS, 0x7FFF_FFFF_FFFF_FFFF)
        return {**CHANGELOG, "min.compaction.lag.ms": str(lag)}
    # A window that is past its retention has nobody who deletes it key by key.
    retention = min(store.retention_ms + additional_retention_ms, 0x7FFF_FFFF_FFFF_FFFF)
    return {**CHANGELOG, "cleanup.policy": "compact,delete", "retention.ms": str(retention)}


def ensure(cluster: Cluster, topics: Sequence[admin.NewTopic], replication_factor: int) -> list[str]:
    """Creates those that are missing and returns their names. Raises KafkaError, and PartitionsError when one is there
    with another number of partitions: state is kept by partition, so that a change needs a new beginning."""
    wanted = [topic._replace(replication_factor=replication_factor) for topic in topics]
    if not wanted:
        return []
    outcomes = admin.create_topics(cluster, wanted)
    _compare(cluster, [topic for topic in wanted if isinstance(outcomes[topic.name], KafkaError)])
    made = []
    for name, outcome in outcomes.items():
        if not isinstance(outcome, KafkaError):
            made.append(name)
        elif outcome.error != Errors.TOPIC_ALREADY_EXISTS:
            raise outcome
    return made


def keep_whole(cluster: Cluster, changelogs: Sequence[admin.NewTopic]) -> None:
    """Changelogs of stores of the user's own are compacted and nothing else, unless the user says so: earlier versions
    made them like those of windows, of which brokers delete what is older than a day."""
    wanted = {topic.name: topic for topic in changelogs if not _deletes(topic.configs[_POLICY])}
    if not wanted:
        return
    for name, told in admin.describe_configs(cluster, admin.TOPIC, list(wanted)).items():
        if isinstance(told, KafkaError):
            logger.warning("%s may be deleting records: its cleanup.policy cannot be seen: %s", name, told)
        elif any(each.name == _POLICY and _deletes(each.value or "") for each in told):
            _compact_only(cluster, wanted[name])


def _deletes(policy: str) -> bool:
    return "delete" in policy.replace(" ", "").split(",")


def _compact_only(cluster: Cluster, changelog: admin.NewTopic) -> None:
    name, retention = changelog.name, changelog.configs.get(_RETENTION)
    kept = admin.ConfigChange(_RETENTION, admin.DELETE if retention is None else admin.SET, retention)
    policy = admin.ConfigChange(_POLICY, admin.SET, changelog.configs[_POLICY])
    try:
        admin.alter_configs(cluster, admin.TOPIC, name, [policy, kept])
    except KafkaError as error:
        logger.warning("%s loses what is older than its retention; set its cleanup.policy to compact: %s", name, error)
    else:
        logger.warning("%s has lost what was older than its retention; from now on it is compacted only", name)


def _compare(cluster: Cluster, there: Sequence[admin.NewTopic]) -> None:
    wanted = {topic.name: topic.partitions for topic in there}
    if not wanted:
        return
    found = {topic.name: len(topic.partitions) for topic in cluster.metadata(sorted(wanted)).topics}
    problems = [
        f"internal topic {name} exists with {found[name]} partitions, but {number} are needed: reset the application "
        "(`ottla streams reset`), or give it another id"
        for name, number in wanted.items()
        if found.get(name) not in (None, 0, number)
    ]
    if problems:
        raise PartitionsError(problems)


# ---- where to begin


def starting_offsets(
    cluster: Cluster,
    group: str,
    sources: Sequence[tuple[SourceNode, Mapping[str, int]]],
    default: Reset | ResetByDuration,
    now_ms: int,
) -> dict[TopicPartition, int]:
    """For every partition the group's offset, or EARLIEST or LATEST as the source or `default` says, or the first one
    of a time.

    `sources` are nodes with their topics and the numbers of partitions. Raises NoOffsets.
    """
    nodes = {
        TopicPartition(topic, partition): node
        for node, topics in sources
        for topic, partitions in topics.items()
        for partition in range(partitions)
    }
    found = committed(cluster, group, list(nodes))
    moments = {
        place: _moment(node.reset or default, place, group, now_ms)
        for place, node in nodes.items()
        if place not in found
    }
    times = {place: moment for place, moment in moments.items() if moment >= 0}
    ends = list_offsets(cluster, times, isolation=READ_COMMITTED) if times else {}
    # Where no record is as new as that, the next one will be.
    by_time = {place: LATEST if (offset := _end(end)) < 0 else offset for place, end in ends.items()}
    return {place: found[place].offset if place in found else by_time.get(place, moments[place]) for place in nodes}


def exact_offsets(cluster: Cluster, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Numbers in place of EARLIEST and LATEST. Raises KafkaError."""
    named = {place: offset for place, offset in offsets.items() if offset < 0}
    found = {place: _end(outcome) for place, outcome in list_offsets(cluster, named, isolation=READ_COMMITTED).items()}
    return {**offsets, **found}


def committed(cluster: Cluster, group: str, places: Sequence[TopicPartition]) -> dict[TopicPartition, groups.Offset]:
    """What the group has committed of these, once that is decided; nothing where there is no such group."""
    try:
        return groups.decided(cluster, group, places)
    except KafkaError as error:
        if error.error == Errors.GROUP_ID_NOT_FOUND:
            return {}
        raise


def await_decided(cluster: Cluster, places: Sequence[TopicPartition]) -> None:
    """Returns when no transaction is open in these partitions: the markers of a commit follow after its answer, and a
    reader of committed records comes no further than the first one that is missing. Raises TimedOut."""
    deadline = cluster.deadline()
    while True:
        decided, all_of_them = (_ends(cluster, places, each) for each in (READ_COMMITTED, READ_UNCOMMITTED))
        open_still = next((place for place in places if decided[place] != all_of_them[place]), None)
        if open_still is None:
            return
        undecided = KafkaError(Errors.CONCURRENT_TRANSACTIONS, str(open_still))
        deadline.pause(f"waiting for the end of a transaction in {open_still}", undecided)


def unread(cluster: Cluster, group: str, places: Sequence[TopicPartition]) -> bool:
    """Whether there are committed records behind the group's offsets. Raises KafkaError, TimedOut."""
    await_decided(cluster, places)
    found, ends = committed(cluster, group, places), _ends(cluster, places, READ_COMMITTED)
    return any(ends[place] > (found[place].offset if place in found else 0) for place in places)


def _ends(cluster: Cluster, places: Sequence[TopicPartition], isolation: int) -> dict[TopicPartition, int]:
    found = list_offsets(cluster, dict.fromkeys(places, LATEST), isolation=isolation)
    return {place: _end(found[place]) for place in places}


def _end(found: Found | KafkaError) -> int:
    if isinstance(found, KafkaError):
        raise found
    return found.offset


def _moment(reset: Reset | ResetByDuration, place: TopicPartition, group: str, now_ms: int) -> int:
    """As list_offsets takes it."""
    if isinstance(reset, ResetByDuration):
        return max(0, now_ms - reset.milliseconds)
    if reset is Reset.NONE:
        raise NoOffsets(f"group {group} has no offset for {place}, and auto.offset.reset=none forbids to choose one")
    return EARLIEST if reset is Reset.EARLIEST else LATEST
