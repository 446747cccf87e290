"""The coordinators of this node: one shard for each partition of an internal topic that this node leads.

Follows the metadata image: a partition that comes is loaded, one that goes resigns. Which shard keeps a key is Kafka's
rule, so every broker and every client-side tool agrees on it.
"""

import logging
from asyncio import AbstractEventLoop, Future, Task
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, Generic, NamedTuple, TypeVar

from ottla.broker.partition import Partition
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.settings.internal_topics import InternalTopic
from ottla.broker.waiting.purgatory import ProduceWait
from ottla.broker.waiting.requests import WaitingRequests
from ottla.coordinator.records import Decoder, Packed, encode
from ottla.coordinator.shard import Shard
from ottla.metadata.image import MetadataImage
from ottla.model.errors import Errors
from ottla.model.ports import Clock
from ottla.protocol.batch import TRANSACTIONAL, plain_batch
from ottla.protocol.compression import compress
from ottla.protocol.messages import CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.records import NewRecord, build_batch, write_record
from ottla.runtime.control_plane import ControlPlane
from ottla.runtime.coordinator import CoordinatorError, CoordinatorRunner, Transaction, UnreadableJournal
from ottla.storage.answers import Rejected
from ottla.storage.fs import CorruptLog
from ottla.storage.reading import batches_of

logger = logging.getLogger(__name__)

ShardT = TypeVar("ShardT", bound=Shard)
R = TypeVar("R")
T = TypeVar("T")

_RELOAD_AFTER_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0
_RECORD_OVERHEAD: Final = 40
"""More than the varints of one record take."""
_BATCH_OVERHEAD: Final = 61

_AS_CLIENTS_SEE_IT: Final = {
    Errors.KAFKA_STORAGE_ERROR: Errors.NOT_COORDINATOR,
    Errors.NOT_LEADER_OR_FOLLOWER: Errors.NOT_COORDINATOR,
    Errors.MESSAGE_TOO_LARGE: Errors.UNKNOWN_SERVER_ERROR,
    Errors.RECORD_LIST_TOO_LARGE: Errors.UNKNOWN_SERVER_ERROR,
    Errors.REQUEST_TIMED_OUT: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_ENOUGH_REPLICAS: Errors.COORDINATOR_NOT_AVAILABLE,
}


class Host(NamedTuple):
    """What coordinators need of the node."""

    loop: AbstractEventLoop
    clock: Clock
    replicas: Replicas
    waiting: WaitingRequests
    control_plane: ControlPlane


class PartitionJournal:
    """The log of one partition, as a coordinator writes it."""

    __slots__ = ("_codec", "_host", "_partition", "_refusal", "_timeout_ms")

    def __init__(self, host: Host, partition: Partition, *, codec: int, timeout_ms: int) -> None:
        self._host = host
        self._partition = partition
        self._codec = codec
        self._timeout_ms = timeout_ms
        self._refusal = Errors.NONE
        """The last one that was told: each of many waiting clients meets the same."""

    def append(self, records: Sequence[NewRecord], transaction: Transaction | None) -> int:
        partition = self._partition
        if partition.log is None or partition.leader is None:
            raise CoordinatorError(Errors.NOT_COORDINATOR)
        runs = list(_runs(records, partition.log.config.max_message_bytes))
        if transaction is None and len(runs) == 1:
            body = bytearray()
            for delta, record in enumerate(records):
                write_record(body, record, delta, 0)
            return self._append_plain(partition, body, len(records), records[0].timestamp)
        batches = bytearray()
        for run in runs:
            batches += self._batch(run, transaction)
        outcome = self._host.replicas.append_internal(partition, batches, self._host.clock.wall())
        if isinstance(outcome, Rejected):
            raise self._refused(outcome)
        self._refusal = Errors.NONE
        return outcome.base_offset

    def append_packed(self, packed: Packed) -> int:
        partition = self._partition
        if partition.log is None or partition.leader is None:
            raise CoordinatorError(Errors.NOT_COORDINATOR)
        body = packed.body()
        if len(body) + _BATCH_OVERHEAD > partition.log.config.max_message_bytes:
            wall = packed.timestamp
            return self.append([encode(record, wall) for record in packed.records()], None)
        return self._append_plain(partition, body, packed.count, packed.timestamp)

    def _append_plain(self, partition: Partition, body: bytearray, count: int, timestamp: int) -> int:
        """Records of one time, in one batch without a producer: what nearly every decision comes to."""
        batch = plain_batch(compress(self._codec, body) if self._codec else body, count, timestamp, self._codec)
        outcome = self._host.replicas.append_own(partition, batch, count, timestamp)
        if isinstance(outcome, Rejected):
            raise self._refused(outcome)
        self._refusal = Errors.NONE
        return outcome

    def _refused(self, outcome: Rejected) -> CoordinatorError:
        partition = self._partition
        if outcome.error != self._refusal:
            logger.warning("%s-%d refuses records: %s", partition.topic, partition.index, outcome.message)
            self._refusal = Errors(outcome.error)
        return CoordinatorError(_AS_CLIENTS_SEE_IT.get(outcome.error, outcome.error))

    def _batch(self, records: Sequence[NewRecord], transaction: Transaction | None) -> bytearray:
        if transaction is None:
            return build_batch(records, codec=self._codec)
        return build_batch(
            records,
            codec=self._codec,
            attributes=TRANSACTIONAL,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
        )

    def is_committed(self, offset: int) -> bool:
        leader = self._partition.leader
        return leader is not None and offset < leader.high_watermark

    def when_committed(self, offset: int, then: Callable[[Errors], None]) -> None:
        future: Future[None] = self._host.loop.create_future()
        wait = ProduceWait(self._host.waiting.deadline(self._timeout_ms), {self._partition: offset + 1}, None)

        def resume(*_: Any) -> None:
            if self._partition.leader is None:
                then(Errors.NOT_COORDINATOR)
            else:  # asked of the log: of what was committed before it was parked a wait never hears
                then(Errors.NONE if self.is_committed(offset) else Errors.COORDINATOR_NOT_AVAILABLE)

        wait.resume = resume
        self._host.waiting.park_produce(wait, future)

    def batches(self, offset: int) -> Iterable[memoryview]:
        found = self._partition.log
        return () if found is None else batches_of(found, max(offset, found.log_start_offset))

    def is_blank(self) -> bool:
        found = self._partition.log
        return found is None or found.log_start_offset == found.log_end_offset


def _runs(records: Sequence[NewRecord], limit: int) -> Iterable[Sequence[NewRecord]]:
    """Cuts records into runs that fit into one batch each."""
    start, size = 0, _BATCH_OVERHEAD
    for at, record in enumerate(records):
        takes = _RECORD_OVERHEAD + len(record.key or b"") + len(record.value or b"")
        if at > start and size + takes > limit:
            yield records[start:at]
            start, size = at, _BATCH_OVERHEAD
        size += takes
    yield records[start:]


class Coordinators(Generic[ShardT]):
    """All shards of one internal topic on this node."""

    __slots__ = (
        "_closed",
        "_codec",
        "_creating",
        "_decoder",
        "_epochs",
        "_host",
        "_loads",
        "_make_shard",
        "_pauses",
        "_perform",
        "_runners",
        "_timeout_ms",
        "topic",
    )

    def __init__(
        self,
        topic: InternalTopic,
        host: Host,
        decoder: Decoder,
        make_shard: Callable[[int], ShardT],
        *,
        codec: int = 0,
        timeout_ms: int = 5_000,
        perform: Callable[[int, object], None] | None = None,
    ) -> None:
        """`make_shard` is given the partition's index, and so is `perform`, which takes the shard's own effects."""
        self.topic = topic
        self._host = host
        self._decoder = decoder
        self._make_shard = make_shard
        self._codec = codec
        self._timeout_ms = timeout_ms
        self._perform = perform
        self._runners: dict[int, CoordinatorRunner[ShardT]] = {}
        self._epochs: dict[int, int] = {}
        """Leader epoch each runner was made for."""
        self._loads: dict[int, Task[None]] = {}
        self._pauses: dict[int, float] = {}
        """How long each partition that could not be loaded was left alone before the last attempt."""
        self._creating: Task[Errors] | None = None
        self._closed = False

    # ---- which shard keeps a key

    def partition_for(self, key: str) -> int | None:
        """None while the topic does not exist."""
        known = self._host.control_plane.image.topics.get(self.topic.name)
        return None if known is None else positive_hash(key) % len(known.partitions)

    def leader_for(self, key: str) -> int | None:
        """The broker that keeps `key`; None if there is none now."""
        known = self._host.control_plane.image.topics.get(self.topic.name)
        if known is None:
            return None
        leader = known.partitions[positive_hash(key) % len(known.partitions)].leader
        return leader if leader >= 0 else None

    def runner_for(self, key: str) -> CoordinatorRunner[ShardT]:
        """Raises CoordinatorError if this node does not keep `key` now."""
        index = self.partition_for(key)
        runner = None if index is None else self._runners.get(index)
        if runner is None:
            raise CoordinatorError(Errors.NOT_COORDINATOR)
        return runner

    def runner_at(self, partition: int) -> CoordinatorRunner[ShardT] | None:
        return self._runners.get(partition)

    def runners(self) -> list[CoordinatorRunner[ShardT]]:
        return list(self._runners.values())

    # ---- the topic

    @property
    def topic_exists(self) -> bool:
        return self.topic.name in self._host.control_plane.image.topics

    async def ensure_topic(self) -> Errors:
        """Makes the topic if it is not there; several callers share one attempt."""
        if self.topic_exists:
            return Errors.NONE
        if self._creating is None:
            self._creating = self._host.loop.create_task(self._create(), name=f"create {self.topic.name}")
            self._creating.add_done_callback(self._created)
        return await self._creating

    def _created(self, task: "Task[Errors]") -> None:
        self._creating = None

    async def _create(self) -> Errors:
        topic = self.topic.creatable(is_whole_cluster=self._host.control_plane.is_whole_cluster)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        response = await self._host.control_plane.submit(request)
        assert isinstance(response, CreateTopicsResponse)
        error = Errors(response.topics[0].error_code)
        if error not in (Errors.NONE, Errors.TOPIC_ALREADY_EXISTS):
            logger.error("%s cannot be created: %s", self.topic.name, response.topics[0].error_message or error.name)
            return error
        return Errors.NONE

    # ---- following the metadata

    def on_metadata(self, image: MetadataImage) -> None:
        """Also at start. Called after the replicas have followed the same image."""
        if self._closed:
            return  # a node that says goodbye hears of its own fencing
        known = image.topics.get(self.topic.name)
        partitions = {} if known is None else known.partitions
        broker_id = self._host.replicas.broker_id
        for index in list(self._runners):
            placed = partitions.get(index)
            if placed is None or placed.leader != broker_id:
                self._drop(index)
        for index, placed in partitions.items():
            if placed.leader == broker_id and self._epochs.get(index) != placed.leader_epoch:
                self._drop(index)
                self._take(index, placed.leader_epoch)
        for runner in self._runners.values():
            runner.on_metadata(image)

    def _take(self, index: int, epoch: int) -> None:
        partition = self._host.replicas.find(self.topic.name, index)
        if partition is None or partition.log is None:
            return
        journal = PartitionJournal(self._host, partition, codec=self._codec, timeout_ms=self._timeout_ms)
        perform = self._perform
        runner = CoordinatorRunner(
            self._make_shard(index),
            journal,
            self._decoder,
            self._host.clock,
            self._host.loop,
            perform=None if perform is None else lambda effect: perform(index, effect),
        )
        self._runners[index] = runner
        self._epochs[index] = epoch
        if journal.is_blank():
            runner.begin(lambda: self._host.control_plane.image)
            return
        load = runner.load(lambda: self._host.control_plane.image)
        task = self._loads[index] = self._host.loop.create_task(load, name=f"load {self.topic.name}-{index}")
        task.add_done_callback(lambda done: self._loaded(index, epoch, done))

    def _loaded(self, index: int, epoch: int, task: "Task[None]") -> None:
        if self._loads.get(index) is task:
            del self._loads[index]
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self._pauses.pop(index, None)
            return
        pause = self._pauses[index] = min(2 * self._pauses.get(index, _RELOAD_AFTER_S / 2), _LONGEST_PAUSE_S)
        self._tell(index, error, pause)
        self._load_again(index, epoch, pause)

    def _tell(self, index: int, error: BaseException, pause: float) -> None:
        name = f"{self.topic.name}-{index}"
        if not isinstance(error, UnreadableJournal | CorruptLog | OSError):
            logger.error("%s could not be loaded", name, exc_info=error)
            return
        partition = self._host.replicas.find(self.topic.name, index)
        where = "its log" if partition is None or partition.log is None else partition.log.path
        logger.error(
            "%s cannot be loaded, and those whose coordinator it is have none: %s. Restore %s from a copy. Or move it "
            "away and restart: it is copied from another replica, or, if there is none, begins empty. Tried again in "
            "%g s.",
            name,
            error,
            where,
            pause,
        )

    def _drop(self, index: int) -> None:
        self._epochs.pop(index, None)
        load = self._loads.pop(index, None)
        if load is not None:
            load.cancel()
        runner = self._runners.pop(index, None)
        if runner is not None:
            runner.resign()

    def _load_again(self, index: int, epoch: int, pause: float) -> None:
        def reload() -> None:
            if self._epochs.get(index) == epoch:
                self._drop(index)
                self._take(index, epoch)

        self._host.loop.call_later(pause, reload)

    def close(self) -> None:
        self._closed = True
        for index in list(self._runners):
            self._drop(index)


@lru_cache(maxsize=4096)
def positive_hash(key: str) -> int:
    """Java's String.hashCode over UTF-16, made positive the way Kafka does it."""
    value = 0
    for unit in memoryview(key.encode("utf-16-le", "surrogatepass")).cast("H"):
        value = (value * 31 + unit) & 0xFFFFFFFF
    if value & 0x80000000:
        value = (1 << 32) - value
    return 0 if value == 0x80000000 else value


def guarded(outcome: "R | Future[R]", on_error: Callable[[Errors], R]) -> "R | Future[R]":
    """Turns a coordinator's failure that comes late into the response that tells it."""
    return turned(outcome, lambda reply: reply, on_error) if isinstance(outcome, Future) else outcome


def turned(inner: "Future[R]", then: Callable[[R], T], on_error: Callable[[Errors], T]) -> "Future[T]":
    """The reply as `then` makes it a response, once it is there."""
    outer: Future[T] = inner.get_loop().create_future()

    def done(_: "Future[R]") -> None:
        if inner.cancelled():
            outer.cancel()
            return
        problem = inner.exception()  # asked for even if nobody waits any more: an error unasked for would be logged
        if outer.done():
            return
        if isinstance(problem, CoordinatorError):
            outer.set_result(on_error(problem.error))
        elif problem is not None:
            outer.set_exception(problem)
        else:
            outer.set_result(then(inner.result()))

    inner.add_done_callback(done)
    outer.add_done_callback(lambda ended: inner.cancel() if ended.cancelled() else None)
    return outer
