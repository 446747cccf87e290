"""Writes the markers that end transactions: into the logs this node leads, and through other brokers into theirs.

The coordinator's own effects come here. WriteTxnMarkers from other coordinators and from administrators is for the logs
of this node only.
"""

from asyncio import Future
from collections.abc import Callable, Iterable
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.broker.coordination.coordinators import Coordinators, Host
from ottla.broker.coordination.courier import Courier, Neighbours
from ottla.broker.partition import Partition
from ottla.broker.settings.internal_topics import OFFSETS_TOPIC
from ottla.broker.waiting.purgatory import ProduceWait
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.net.peer import Outcome
from ottla.protocol import messages
from ottla.protocol.batch import CONTROL, TRANSACTIONAL
from ottla.protocol.records import NewRecord, build_batch
from ottla.storage.answers import Rejected
from ottla.storage.marker import Marker as EndMarker

if TYPE_CHECKING:  # loaded with the first group, not with the node
    from ottla.coordinator.group.shard import GroupShard

_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")
_VERSION: Final = 0

Results = dict[TopicPartition, Errors]


class Marker(NamedTuple):
    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    transaction_version: int
    """From 2 on the epoch has to be above that of the transaction's records."""


def marker_batch(marker: Marker, now: int) -> bytearray:
    record = NewRecord(_KEY.pack(_VERSION, int(marker.committed)), _VALUE.pack(_VERSION, marker.coordinator_epoch), now)
    return build_batch(
        [record],
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
    )


class LocalMarkers:
    __slots__ = ("_groups", "_host", "_timeout_ms")

    def __init__(self, host: Host, groups: "Coordinators[GroupShard]", timeout_ms: int) -> None:
        self._host = host
        self._groups = groups
        self._timeout_ms = timeout_ms

    def write(self, marker: Marker, partitions: Iterable[TopicPartition], then: Callable[[Results], None]) -> None:
        """Calls `then` when every marker is committed or refused: at once if nobody else has to hold a copy."""
        now = self._host.clock.wall()
        batch = marker_batch(marker, now)
        results: Results = {}
        uncommitted: dict[object, int] = {}
        for name in partitions:
            partition = self._host.replicas.find(*name)
            if partition is None:
                results[name] = Errors.UNKNOWN_TOPIC_OR_PARTITION
            else:
                results[name] = self._write_one(partition, marker, batch, now, uncommitted)
        if uncommitted:
            self._wait(results, uncommitted, then)
        else:
            then(results)

    def _write_one(
        self, partition: Partition, marker: Marker, batch: bytearray, now: int, uncommitted: dict[object, int]
    ) -> Errors:
        if partition.log is None or partition.leader is None:
            return partition.unavailable_error()
        group = None
        if partition.topic == OFFSETS_TOPIC:
            group = self._groups.runner_at(partition.index)
            if group is None or group.error is not None:
                return Errors.NOT_LEADER_OR_FOLLOWER  # it would miss the marker while it loads: come again
        outcome = self._host.replicas.append_end(
            partition, bytearray(batch), (marker.producer_id, marker.producer_epoch),
            EndMarker(marker.committed, marker.coordinator_epoch), now, marker.transaction_version,
        )  # fmt: skip
        if isinstance(outcome, Rejected):
            return outcome.error
        if group is not None:
            group.complete_transaction(marker.producer_id, marker.producer_epoch, marker.committed)
        if partition.leader is not None and partition.leader.high_watermark <= outcome.last_offset:
            uncommitted[partition] = outcome.last_offset + 1
        return Errors.NONE

    def _wait(self, results: Results, uncommitted: dict[object, int], then: Callable[[Results], None]) -> None:
        waiting = self._host.waiting
        future: Future[None] = waiting.loop.create_future()
        wait = ProduceWait(waiting.deadline(self._timeout_ms), uncommitted, None)

        def resume(*_: Any) -> None:
            for partition in wait.required:
                assert isinstance(partition, Partition)
                error = Errors.REQUEST_TIMED_OUT if partition.leader is not None else partition.unavailable_error()
                results[TopicPartition(partition.topic, partition.index)] = error
            then(results)

        wait.resume = resume
        waiting.park_produce(wait, future)


class _Errand(NamedTuple):
    marker: Marker
    partitions: list[TopicPartition]
    then: Callable[[Results], None]


class Markers:
    """For the coordinator: wherever the partitions are led."""

    __slots__ = ("_courier", "_host", "_local")

    def __init__(self, host: Host, local: LocalMarkers, neighbours: Neighbours) -> None:
        self._host = host
        self._local = local
        self._courier: Courier[_Errand] = Courier(neighbours, "markers", _request, _delivered)

    def write(self, marker: Marker, partitions: Iterable[TopicPartition], then: Callable[[Results], None]) -> None:
        """Calls `then` once for each broker that leads some of them: those who answer do not wait for one that is dead.

        The partitions are in the image. One without a leader now is refused with an error that is worth a repetition.
        """
        image, here = self._host.control_plane.image, self._host.replicas.broker_id
        by_leader: dict[int, list[TopicPartition]] = {}
        for name in partitions:
            placed = image.partition(*name)
            by_leader.setdefault(placed.leader if placed is not None else -1, []).append(name)
        for leader, names in by_leader.items():
            if leader == here:
                self._local.write(marker, names, then)
            elif leader < 0:
                then(dict.fromkeys(names, Errors.LEADER_NOT_AVAILABLE))
            else:
                self._courier.post(leader, _Errand(marker, names, then))

    def on_metadata(self) -> None:
        self._courier.on_metadata()


def _request(errands: list[_Errand]) -> "messages.WriteTxnMarkersRequest":
    kind = messages.WriteTxnMarkersRequest
    markers = []
    for marker, partitions, _ in errands:
        topics: dict[str, list[int]] = {}
        for name in partitions:
            topics.setdefault(name.topic, []).append(name.partition)
        markers.append(
            kind.WritableTxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                transaction_result=marker.committed,
                topics=[kind.WritableTxnMarkerTopic(name, indexes) for name, indexes in topics.items()],
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
        )
    return kind(markers=markers)


def _delivered(errands: list[_Errand], outcome: Outcome) -> None:
    found: dict[int, Results] = {}
    if isinstance(outcome, messages.WriteTxnMarkersResponse):
        for written in outcome.markers:  # one producer's may come in several parts, as they were asked for
            answers = found.setdefault(written.producer_id, {})
            for topic in written.topics:
                for each in topic.partitions:
                    answers[TopicPartition(topic.name, each.partition_index)] = Errors(each.error_code)
    for marker, partitions, then in errands:
        answers = found.get(marker.producer_id, {})
        then({name: answers.get(name, Errors.NOT_LEADER_OR_FOLLOWER) for name in partitions})
