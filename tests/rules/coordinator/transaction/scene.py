"""A shard of transactional ids, and commands played on it as the runner would: decide, replay, keep the effects."""

from typing import TypeVar

from ottla.coordinator.records import CoordinatorRecord, Decoder, encode
from ottla.coordinator.shard import Decision, Now
from ottla.coordinator.transaction.machine import Producer, Transaction
from ottla.coordinator.transaction.shard import (
    EndReply,
    InitProducerId,
    InitReply,
    TransactionSettings,
    TransactionShard,
    WantsProducerId,
    WriteMarkers,
)
from ottla.coordinator.transaction.states import TransactionState
from ottla.metadata.image import MetadataImage
from ottla.metadata.replay import image_of
from ottla.model.errors import Errors
from ottla.model.ids import Millis, TopicPartition
from ottla.protocol import messages

R = TypeVar("R")

NAME = "txn-a"
WALL = 1_700_000_000_000
TIMEOUT = 60_000
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def image(level: int) -> MetadataImage:
    feature = messages.FeatureLevelRecord(name="transaction.version", feature_level=level)
    return image_of([feature], "cluster-for-tests-aaaa")


def at(ms: int) -> Now:
    return Now(Millis(WALL + ms), Millis(ms))


class Refused(Exception):
    """The log did not take the records of a decision."""


class Scene:
    def __init__(
        self, settings: TransactionSettings | None = None, coordinator_epoch: int = 7, *, level: int = 2
    ) -> None:
        self.settings = settings or TransactionSettings()
        self.coordinator_epoch = coordinator_epoch
        self.level = level
        self.shard = TransactionShard(coordinator_epoch, self.settings)
        self.journal: list[CoordinatorRecord] = []
        self.effects: list[object] = []
        self.time = 0
        self.next_id = 1000
        self.refuses = False
        self.run(self.shard.loaded(image(level), self.now()))

    # ---- running

    def run(self, decision: Decision[R]) -> R:
        if self.refuses and decision.records:
            self.shard.undo.run()
            raise Refused
        self.shard.undo.clear()
        for record in decision.records:
            assert isinstance(record, CoordinatorRecord)
            self.journal.append(record)
            self.shard.replay(through_bytes(record), len(self.journal) - 1)
        self.effects += decision.effects
        return decision.reply

    def now(self) -> Now:
        return at(self.time)

    def fresh_id(self) -> int:
        self.next_id += 1
        return self.next_id

    def restarted(self) -> "Scene":
        """Another coordinator takes over: it has the log and nothing else."""
        other = Scene(self.settings, self.coordinator_epoch + 1, level=self.level)
        other.time, other.next_id = self.time, self.next_id
        for record in self.journal:
            other.journal.append(record)
            other.shard.replay(through_bytes(record), len(other.journal) - 1)
        other.run(other.shard.loaded(image(other.level), other.now()))
        return other

    # ---- asking

    def init(self, expected: Producer | None = None, timeout_ms: int = TIMEOUT, name: str = NAME) -> InitReply:
        command = InitProducerId(name, timeout_ms, expected)
        reply = self.run(self.shard.init_producer_id(command, self.now()))
        if isinstance(reply, WantsProducerId):
            reply = self.run(self.shard.init_producer_id(command, self.now(), self.fresh_id()))
        assert isinstance(reply, InitReply)
        return reply

    def begun(self, name: str = NAME, timeout_ms: int = TIMEOUT) -> Producer:
        """A producer that has been given its id."""
        reply = self.init(name=name, timeout_ms=timeout_ms)
        assert reply.error == Errors.NONE
        return Producer(reply.producer_id, reply.epoch)

    def add(self, producer: Producer, *partitions: TopicPartition, version: int = 0, name: str = NAME) -> Errors:
        return self.run(self.shard.add_partitions(name, producer, partitions or (P0,), version, self.now()))

    def end(self, producer: Producer, *, committed: bool, version: int, name: str = NAME) -> EndReply:
        reply = self.run(self.shard.end(name, producer, committed, version, self.now()))
        if isinstance(reply, WantsProducerId):
            reply = self.run(self.shard.end(name, producer, committed, version, self.now(), self.fresh_id()))
        assert isinstance(reply, EndReply)
        return reply

    def write_markers(self) -> list[WriteMarkers]:
        """Every marker that is asked for is written and acknowledged."""
        written = [effect for effect in self.effects if isinstance(effect, WriteMarkers)]
        self.effects = [effect for effect in self.effects if not isinstance(effect, WriteMarkers)]
        for markers in written:
            self.run(
                self.shard.markers_acknowledged(
                    markers.transactional_id, markers.producer, markers.partitions, self.now()
                )
            )
        return written

    def ended(self, producer: Producer, *, committed: bool, version: int) -> EndReply:
        reply = self.end(producer, committed=committed, version=version)
        self.write_markers()
        return reply

    def tick(self) -> None:
        self.run(self.shard.tick(self.now()))

    @property
    def transaction(self) -> Transaction:
        return self.shard.transactions[NAME]

    def state(self) -> TransactionState:
        return self.transaction.state


_DECODER = Decoder(messages.TRANSACTION_RECORDS)


def through_bytes(record: CoordinatorRecord) -> CoordinatorRecord:
    """As it comes back from the log."""
    written = encode(record, WALL)
    read = _DECODER.decode(written.key, written.value)
    assert read is not None
    return read
