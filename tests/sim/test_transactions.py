"""Transactions under seeded schedules: coordinator, partition logs and clients of both protocols, with everything that
can be lost, late, twice or restarted in between.

A server's work is cut where a real one waits, so that a marker can come between the proof and the append. After every
step the last stable offset may not have gone back; at the end readers of committed records see each committed
transaction whole and once, of the others nothing, and no transaction is left hanging.
"""

from collections.abc import Callable, Generator, Iterable
from functools import partial
from random import Random
from typing import Any

import pytest

from ottla.coordinator.records import CoordinatorRecord
from ottla.coordinator.shard import Decision, Now
from ottla.coordinator.transaction.machine import Producer
from ottla.coordinator.transaction.shard import (
    InitProducerId,
    TimedOut,
    TransactionSettings,
    TransactionShard,
    WantsProducerId,
    WriteMarkers,
)
from ottla.metadata.replay import image_of
from ottla.model.errors import Errors
from ottla.model.ids import Millis, TopicPartition
from ottla.protocol import batch as b
from ottla.protocol import messages
from ottla.protocol.records import read_records
from ottla.storage.answers import COORDINATOR, Rejected
from ottla.storage.leading import append_as_leader
from ottla.storage.log import Log
from ottla.storage.producer_state import Refusal
from ottla.storage.reading import aborted_transactions, batches_of
from ottla.testing.disk import SimDisk
from tests.rules.storage.scene import NOW, a_batch, a_marker, created, reopened
from tests.support.examples import seeds

SEEDS = 300
PARTITIONS = 3
TIMEOUT_MS = 60_000
TV1, TV2 = 0, 2
IMAGE = image_of([messages.FeatureLevelRecord(name="transaction.version", feature_level=2)], "sim")

Actor = Generator[None, None, Any]
RETRIABLE = (Errors.CONCURRENT_TRANSACTIONS, Errors.NOT_ENOUGH_REPLICAS)


class Lost:
    """In place of a reply: the server died before it could give one."""


LOST = Lost()


class Server:
    """One node: the coordinator of every transactional id and the leader of every partition."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.time = 0
        self.next_producer_id = 1000
        self.life = 1
        self.disks = [SimDisk() for _ in range(PARTITIONS)]
        self.logs = [created(disk) for disk in self.disks]
        self.journal: list[CoordinatorRecord] = []
        self.shard = TransactionShard(self.life, TransactionSettings())
        self.spawn: Callable[[Actor], None] = lambda _: None
        self.shard.loaded(IMAGE, self.now())

    def now(self) -> Now:
        return Now(Millis(NOW + self.time), Millis(self.time))

    def restart(self) -> None:
        """kill -9: what is on the disk stays, what is in memory goes. Markers under way may still arrive."""
        self.life += 1
        self.logs = [reopened(disk) for disk in self.disks]
        self.shard = TransactionShard(self.life, TransactionSettings())
        for offset, record in enumerate(self.journal):
            self.shard.replay(record, offset)
        self._carry_out(self.shard.loaded(IMAGE, self.now()))

    # ---- the coordinator

    def _carry_out(self, decision: Decision[Any]) -> Any:
        self.shard.undo.clear()
        for record in decision.records:
            assert isinstance(record, CoordinatorRecord)
            self.journal.append(record)
            self.shard.replay(record, len(self.journal) - 1)
        for effect in decision.effects:
            if isinstance(effect, WriteMarkers):
                for partition in effect.partitions:
                    self.spawn(self._send_marker(effect, partition))
                if not effect.partitions:
                    self._acknowledge(effect, ())
            else:
                assert isinstance(effect, TimedOut)
                self._time_out(*effect)
        return decision.reply

    def _time_out(self, name: str, producer: Producer) -> None:
        self.decide(lambda shard, now, fresh: shard.time_out(name, producer, now, fresh))

    def decide(self, command: Callable[[TransactionShard, Now, int], Decision[Any]]) -> Any:
        reply = self._carry_out(command(self.shard, self.now(), -1))
        if isinstance(reply, WantsProducerId):
            self.next_producer_id += 1
            reply = self._carry_out(command(self.shard, self.now(), self.next_producer_id))
        return reply

    def _send_marker(self, markers: WriteMarkers, partition: TopicPartition) -> Actor:
        while True:
            yield
            if self.dice.random() < 0.2:
                continue  # lost on the way
            outcome = self.write_marker(markers, partition)
            if markers.transaction_version >= TV2 and self.dice.random() < 0.2:
                self.spawn(self._late_marker(markers, partition))
            if isinstance(outcome, Rejected):
                assert outcome.error in (Errors.TRANSACTION_COORDINATOR_FENCED, Errors.INVALID_PRODUCER_EPOCH), outcome
                return
            yield
            if self.dice.random() < 0.2:
                continue  # the acknowledgement is lost: it is written again
            self._acknowledge(markers, (partition,))
            return

    def _late_marker(self, markers: WriteMarkers, partition: TopicPartition) -> Actor:
        for _ in range(self.dice.randint(1, 30)):
            yield
        self.write_marker(markers, partition)

    def write_marker(self, markers: WriteMarkers, partition: TopicPartition) -> Any:
        marker = a_marker(
            *markers.producer,
            commit=markers.committed,
            coordinator_epoch=markers.coordinator_epoch,
            at=NOW + self.time,
        )
        return append_as_leader(
            self.logs[partition.partition],
            marker,
            0,
            NOW + self.time,
            origin=COORDINATOR,
            transaction_version=markers.transaction_version,
        )

    def _acknowledge(self, markers: WriteMarkers, partitions: Iterable[TopicPartition]) -> None:
        if markers.coordinator_epoch == self.shard.coordinator_epoch:
            name, producer = markers.transactional_id, markers.producer
            self._carry_out(self.shard.markers_acknowledged(name, producer, partitions, self.now()))

    def tick(self) -> None:
        self._carry_out(self.shard.tick(self.now()))

    # ---- requests

    def init(self, name: str) -> Actor:
        yield
        command = InitProducerId(name, TIMEOUT_MS)
        return self.decide(lambda shard, now, fresh: shard.init_producer_id(command, now, fresh))

    def add(self, name: str, producer: Producer, partition: int) -> Actor:
        yield
        place = (TopicPartition("t", partition),)
        return self.decide(lambda shard, now, _: shard.add_partitions(name, producer, place, TV1, now))

    def end(self, name: str, producer: Producer, committed: bool, version: int) -> Actor:
        yield
        return self.decide(lambda shard, now, fresh: shard.end(name, producer, committed, version, now, fresh))

    def produce(self, name: str, producer: Producer, partition: int, sequence: int, value: str, version: int) -> Actor:
        life, log = self.life, self.logs[partition]
        begun = log.producers.begin_verification(*producer, sequence, epoch_bump=version >= TV2, now=NOW + self.time)
        if isinstance(begun, Refusal):
            return begun.error
        if begun is not None:
            yield
            error = self._verified(name, producer, partition, version)
            if error:
                return error
        yield
        if self.life != life:
            return LOST
        data = a_batch(value.encode(), producer=(*producer, sequence), attributes=b.TRANSACTIONAL, at=NOW + self.time)
        outcome = append_as_leader(log, data, 0, NOW + self.time, verification=begun)
        return outcome.error if isinstance(outcome, Rejected) else Errors.NONE

    def _verified(self, name: str, producer: Producer, partition: int, version: int) -> Errors:
        place = TopicPartition("t", partition)
        if version < TV2:
            error = self.shard.verify_partitions(name, producer, (place,))[place]
        else:
            error = self.decide(lambda shard, now, _: shard.add_partitions(name, producer, (place,), TV2, now))
        return Errors.NOT_ENOUGH_REPLICAS if error == Errors.CONCURRENT_TRANSACTIONS else Errors(error)


class Transaction:
    """What a client knows of one of its transactions."""

    def __init__(self) -> None:
        self.acknowledged: list[tuple[int, str]] = []
        self.committed: bool | None = False
        """None once a commit was asked for and not answered."""


class Fenced(Exception):
    pass


class Client:
    def __init__(self, server: Server, name: str, number: int, version: int) -> None:
        self.server = server
        self.dice = server.dice
        self.name = name
        self.number = number
        self.version = version
        self.producer = Producer(-1, -1)
        self.sequences: dict[int, int] = {}
        self.transactions: list[Transaction] = []

    def live(self, transactions: int) -> Actor:
        """A fenced client dies: somebody else goes by its name now."""
        try:
            yield from self._begin()
            for _ in range(transactions):
                yield from self._transaction()
        except Fenced:
            return

    def _begin(self) -> Actor:
        reply = yield from self._ask(lambda: self.server.init(self.name), may_be_late=False)
        assert reply.error == Errors.NONE, reply
        self._go_on_with(Producer(reply.producer_id, reply.epoch))

    def _go_on_with(self, producer: Producer) -> None:
        if producer != self.producer:
            self.sequences.clear()
        self.producer = producer

    def _ask(self, request: Callable[[], Actor], may_be_late: bool) -> Actor:
        """Repeats a request until there is an answer that says something."""
        while True:
            yield
            fate = self.dice.random()
            if fate < 0.1:
                continue  # the request is lost
            if may_be_late and fate > 0.9:
                self.server.spawn(self._late(request))
            reply = yield from request()
            error = getattr(reply, "error", reply)
            if fate < 0.2 or reply is LOST or error in RETRIABLE:
                continue  # the reply is lost, or says: later
            return reply

    def _late(self, request: Callable[[], Actor]) -> Actor:
        """The same request once more, when nobody waits for it any longer."""
        for _ in range(self.dice.randint(1, 40)):
            yield
        yield from request()

    def _transaction(self) -> Actor:
        transaction = Transaction()
        self.transactions.append(transaction)
        error = yield from self._writes(transaction)
        if error is None:
            commit = self.dice.random() < 0.7
            if commit:
                transaction.committed = None
            error = yield from self._end(commit)
            if error is None and commit:
                transaction.committed = True
        elif error == Errors.REQUEST_TIMED_OUT:
            error = (yield from self._end(False)) or error
        if error in (Errors.PRODUCER_FENCED, Errors.INVALID_PRODUCER_EPOCH, Errors.INVALID_PRODUCER_ID_MAPPING):
            raise Fenced
        if error is not None:
            yield from self._begin()  # as clients do: a new epoch leaves everything uncertain behind

    def _writes(self, transaction: Transaction) -> Actor:
        server, name, version, producer = self.server, self.name, self.version, self.producer
        for count in range(self.dice.randint(1, 4)):
            partition = self.dice.randrange(PARTITIONS)
            if version < TV2:
                error = yield from self._ask(partial(server.add, name, producer, partition), may_be_late=False)
                if error:
                    return error
            sequence = self.sequences.get(partition, 0)
            value = f"{self.name}.{self.number}/{len(self.transactions) - 1}/{count}"
            request = partial(server.produce, name, producer, partition, sequence, value, version)
            if self.dice.random() < 0.05:
                self.server.spawn(self._late(request))  # under way for so long that the client gives it up
                return Errors.REQUEST_TIMED_OUT
            error = yield from self._ask(request, may_be_late=version >= TV2)
            if error:
                return error
            self.sequences[partition] = sequence + 1
            transaction.acknowledged.append((partition, value))
        return None

    def _end(self, commit: bool) -> Actor:
        server, producer = self.server, self.producer
        reply = yield from self._ask(
            lambda: server.end(self.name, producer, commit, self.version), may_be_late=self.version >= TV2
        )
        if reply.error:
            return reply.error
        if self.version >= TV2:
            self._go_on_with(Producer(reply.producer_id, reply.epoch))
        return None


# ---- checkers


def committed_view(log: Log) -> list[str]:
    """What a consumer with isolation.level=read_committed makes of a fetch from the start."""
    stable = log.last_stable_offset(log.log_end_offset)
    pending = sorted(aborted_transactions(log, 0, stable), key=lambda each: each[1])
    aborting: dict[int, None] = {}
    seen: list[str] = []
    for batch in batches_of(log, 0, stable):
        header = b.read_header(batch)
        while pending and pending[0][1] <= header.last_offset:
            aborting[pending.pop(0)[0]] = None
        for record in read_records(batch):
            if header.is_control:
                if record.key == b"\0\0\0\0":
                    aborting.pop(header.producer_id, None)
            elif header.producer_id not in aborting:
                assert record.value is not None
                seen.append(record.value.decode())
    return seen


class StableOffsets:
    """The last stable offset of a partition never goes back, and what it has shown stays as it was."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._offsets = [0] * PARTITIONS
        self._views: list[list[str]] = [[] for _ in range(PARTITIONS)]

    def check(self, *, views: bool) -> None:
        for index, log in enumerate(self._server.logs):
            offset = log.last_stable_offset(log.log_end_offset)
            assert offset >= self._offsets[index], f"partition {index}: from {self._offsets[index]} back to {offset}"
            self._offsets[index] = offset
            if views:
                view = committed_view(log)
                assert view[: len(self._views[index])] == self._views[index]
                self._views[index] = view


def check_outcomes(clients: list[Client], server: Server) -> None:
    views = [committed_view(log) for log in server.logs]
    for client in clients:
        for number, transaction in enumerate(client.transactions):
            mark = f"{client.name}.{client.number}/{number}/"
            seen = [(index, value) for index, view in enumerate(views) for value in view if value.startswith(mark)]
            whole = sorted(transaction.acknowledged)
            if transaction.committed:
                assert sorted(seen) == whole, f"{mark} is committed"
            elif transaction.committed is None:
                assert sorted(seen) in ([], whole), f"{mark} is torn"
            else:
                assert seen == [], f"{mark} was never committed"
        mark = f"{client.name}.{client.number}/"
        for view in views:
            mine = [value for value in view if value.startswith(mark)]
            assert mine == sorted(mine, key=lambda value: [int(part) for part in value.split("/")[1:]])


class World:
    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.server = Server(self.dice)
        self.actors: list[Actor] = []
        self.server.spawn = self.actors.append
        self.checker = StableOffsets(self.server)
        self.clients: list[Client] = []

    def play(self) -> None:
        for number in range(self.dice.randint(2, 4)):
            # Names come twice: two lives of the same application, one of them a zombie.
            name = f"app{self.dice.randrange(3)}"
            client = Client(self.server, name, number, self.dice.choice([TV1, TV2]))
            self.clients.append(client)
            self.actors.append(self._after(self.dice.randint(0, 150), client.live(self.dice.randint(1, 5))))
        restarts = self.dice.choice([0.0, 0.002, 0.01])
        for _ in range(1_500):
            if not self.actors:
                break
            self._step(restarts)
        self._settle()

    def _after(self, steps: int, actor: Actor) -> Actor:
        for _ in range(steps):
            yield
        yield from actor

    def _step(self, restarts: float) -> None:
        chance = self.dice.random()
        if chance < restarts:
            self.server.restart()
        elif chance < 0.02:
            self.server.time += self.dice.choice([1, 1_000, 30_000])
            self.server.tick()
        else:
            self._run(self.dice.randrange(len(self.actors)))
        self.checker.check(views=chance > 0.98)

    def _run(self, index: int) -> None:
        actor = self.actors[index]
        try:
            next(actor)
        except StopIteration:
            self.actors.remove(actor)

    def _settle(self) -> None:
        """Nobody fails any more: clients stop where they are, transactions time out, markers arrive."""
        self.actors[:] = [actor for actor in self.actors if "marker" in getattr(actor, "__name__")]  # noqa: B009
        for _ in range(3):
            self.server.time += 2 * TIMEOUT_MS
            self.server.tick()
            for _ in range(3_000):
                if not self.actors:
                    break
                self._run(0)
            assert not self.actors, "markers are still under way"
        self.checker.check(views=True)
        hanging = [log.producers.first_ongoing for log in self.server.logs]
        assert hanging == [None] * PARTITIONS, "a transaction that nobody will end"
        assert all(not txn.state.is_prepared for txn in self.server.shard.transactions.values())
        check_outcomes(self.clients, self.server)


@pytest.mark.parametrize("first", seeds(SEEDS)[::25])
def test_every_schedule_keeps_the_promises(first: int) -> None:
    for seed in range(first, first + 25):
        try:
            World(seed).play()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_the_same_seed_is_the_same_history() -> None:
    def history(seed: int) -> list[list[str]]:
        world = World(seed)
        world.play()
        return [committed_view(log) for log in world.server.logs]

    assert history(7) == history(7)
