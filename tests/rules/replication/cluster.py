"""A small cluster around one partition for the rules of replication: cores only, under a seed.

Brokers crash (and may lose their tail), the network loses, delays and reorders, metadata arrives late. After every
event `check` compares what every broker believes to be committed.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from ottla.metadata.image import BrokerRegistration, PartitionImage
from ottla.model.errors import Errors
from ottla.model.ids import BrokerId, Uuid
from ottla.replication.follower import Ask, Do, PartitionFollower
from ottla.replication.leader import (
    ISR_CHANGE_WANTED,
    Brokers,
    Diverging,
    IsrChange,
    PartitionLeader,
    check_position,
)

NO_DIR = Uuid(bytes(16))
MAX_LAG_MS = 1_000
CROWDED = 30


class Unsafe(AssertionError):
    """A promise of replication is broken."""


class MemoryLog:
    """Records as (epoch, value), one batch each."""

    def __init__(self) -> None:
        self.records: list[tuple[int, int]] = []
        self.log_start_offset = 0

    @property
    def log_end_offset(self) -> int:
        return self.log_start_offset + len(self.records)

    @log_end_offset.setter
    def log_end_offset(self, _: int) -> None:
        raise AssertionError("cores do not write to the log")

    @property
    def latest_epoch(self) -> int:
        return self.records[-1][0] if self.records else -1

    def at(self, offset: int) -> tuple[int, int]:
        return self.records[offset - self.log_start_offset]

    def offset_for_leader_epoch(self, epoch: int) -> tuple[int, int]:
        if not self.records or epoch < 0 or epoch > self.latest_epoch:
            return -1, -1
        if epoch < self.records[0][0]:
            return epoch, self.log_start_offset
        floor = max(one for one, _ in self.records if one <= epoch)
        last = max(at for at, (one, _) in enumerate(self.records) if one == floor)
        return floor, self.log_start_offset + last + 1

    def truncate(self, offset: int) -> None:
        del self.records[max(0, offset - self.log_start_offset) :]

    def restart(self, offset: int) -> None:
        self.records = []
        self.log_start_offset = offset

    def raise_start(self, offset: int) -> None:
        if offset > self.log_start_offset:
            del self.records[: offset - self.log_start_offset]
            self.log_start_offset = offset


@dataclass
class Broker:
    id: int
    log: MemoryLog = field(default_factory=MemoryLog)
    up: bool = True
    epoch: int = 0
    brokers: Brokers = field(default_factory=Brokers)
    leader: PartitionLeader | None = None
    follower: PartitionFollower | None = None
    checkpoint: int = 0
    pending_acks: list[tuple[int, int]] = field(default_factory=list)
    image_offset: int = -1
    told: int = 0
    """The highest high watermark it has shown in this run."""

    @property
    def high_watermark(self) -> int:
        if self.leader is not None:
            return self.leader.high_watermark
        return self.follower.high_watermark if self.follower is not None else 0


@dataclass
class Image:
    partition: PartitionImage
    brokers: dict[int, BrokerRegistration]


class Controller:
    """Just enough of one: epochs, fencing, elections from the ISR, AlterPartition with its checks."""

    def __init__(self, ids: list[int], unclean: bool = False) -> None:
        self.unclean = unclean
        self.next_epoch = 10
        self.brokers = {id_: registration(id_, 1) for id_ in ids}
        self.partition = PartitionImage(
            tuple(ids), (NO_DIR,) * len(ids), tuple(ids), (), (), (), (), ids[0], 0, leader_epoch=1, partition_epoch=1
        )
        self.history = [Image(self.partition, dict(self.brokers))]

    def publish(self) -> None:
        self.history.append(Image(self.partition, dict(self.brokers)))

    def change(self, **fields: Any) -> None:
        self.partition = self.partition._replace(**fields, partition_epoch=self.partition.partition_epoch + 1)

    def fence(self, broker: int) -> None:
        self.brokers[broker] = self.brokers[broker]._replace(fenced=True)
        self.leave_isr(broker)
        self.publish()

    def leave_isr(self, broker: int) -> None:
        isr = tuple(one for one in self.partition.isr if one != broker) or self.partition.isr
        if isr != self.partition.isr:
            self.change(isr=isr)
        self.elect()

    def move_leader(self, broker: int) -> None:
        """As an administrator may ask: back to the preferred replica."""
        if broker in self.partition.isr and broker != self.partition.leader and not self.brokers[broker].fenced:
            self.change(leader=broker, leader_epoch=self.partition.leader_epoch + 1)
            self.publish()

    def elect(self) -> None:
        partition = self.partition
        if partition.leader >= 0 and not self.brokers[partition.leader].fenced and partition.leader in partition.isr:
            return
        alive = [one for one in partition.replicas if not self.brokers[one].fenced]
        able = [one for one in alive if one in partition.isr]
        if able:
            self.change(leader=able[0], leader_epoch=partition.leader_epoch + 1)
        elif self.unclean and alive:
            self.change(leader=alive[0], isr=(alive[0],), leader_epoch=partition.leader_epoch + 1)
        elif partition.leader >= 0:
            self.change(leader=-1, leader_epoch=partition.leader_epoch + 1)

    def register(self, broker: int) -> int:
        """A new run of a broker: it leaves the ISR if others are left there, and comes back unfenced."""
        self.next_epoch += 1
        self.brokers[broker] = registration(broker, self.next_epoch)._replace(fenced=True)
        self.leave_isr(broker)
        self.brokers[broker] = self.brokers[broker]._replace(fenced=False)
        self.elect()
        self.publish()
        return self.next_epoch

    def alter(self, sender: int, change: IsrChange) -> "tuple[Errors, PartitionImage]":
        partition = self.partition
        if partition.leader != sender or change.leader_epoch != partition.leader_epoch:
            return Errors.FENCED_LEADER_EPOCH, partition
        if change.partition_epoch != partition.partition_epoch:
            return Errors.INVALID_UPDATE_VERSION, partition
        for replica, epoch in zip(change.isr, change.broker_epochs, strict=True):
            broker = self.brokers[replica]
            if broker.fenced or epoch not in (-1, broker.epoch):
                return Errors.INELIGIBLE_REPLICA, partition
        self.change(isr=change.isr)
        self.publish()
        return Errors.NONE, self.partition


def registration(id_: int, epoch: int) -> BrokerRegistration:
    return BrokerRegistration(id_, epoch, NO_DIR, (), {}, None, False, False, (), ())


@dataclass
class Message:
    to: int
    sender: int
    body: tuple[object, ...]


class Cluster:
    def __init__(self, seed: int, size: int = 3, min_isr: int = 2, unclean: bool = False) -> None:
        self.dice = Random(seed)
        self.now = 0
        self.min_isr = min_isr
        self.unclean = unclean
        ids = list(range(size))
        self.controller = Controller(ids, unclean)
        self.brokers = [Broker(id_, epoch=1) for id_ in ids]
        self.net: list[Message] = []
        self.loss = self.dice.choice((0.0, 0.05, 0.3))
        self.repetition = self.dice.choice((0.0, 0.2))
        self.trouble = self.dice.choice((0.002, 0.005, 0.015))
        self.next_value = 0
        self.events = 0
        self.committed: list[tuple[int, int]] = []
        self.counts: dict[str, int] = {}
        for broker in self.brokers:
            self.deliver(broker, 0)

    # ---- metadata

    def deliver(self, broker: Broker, offset: int) -> None:
        if offset <= broker.image_offset:
            return
        broker.image_offset = offset
        image = self.controller.history[offset]
        broker.brokers.registered = image.brokers
        placed = image.partition
        if placed.leader == broker.id:
            self.lead(broker, placed)
        else:
            self.follow(broker, placed)

    def lead(self, broker: Broker, placed: PartitionImage) -> None:
        if broker.leader is not None:
            broker.leader.updated(placed, broker.log.log_end_offset, self.now)
            self.see_acks(broker)
            return
        broker.leader = PartitionLeader(
            BrokerId(broker.id),
            placed,
            broker.brokers,
            min_isr=self.min_isr,
            max_lag_ms=MAX_LAG_MS,
            high_watermark=broker.high_watermark,
            log_end_offset=broker.log.log_end_offset,
            now=self.now,
        )
        broker.follower = None

    def follow(self, broker: Broker, placed: PartitionImage) -> None:
        if broker.follower is not None:
            broker.follower.updated(placed.leader, placed.leader_epoch, placed.partition_epoch)
            return
        high_watermark = broker.high_watermark
        broker.leader = None
        broker.pending_acks = []
        broker.follower = PartitionFollower(
            placed.leader, placed.leader_epoch, placed.partition_epoch, min(high_watermark, broker.log.log_end_offset)
        )

    # ---- events

    def step(self) -> None:
        self.events += 1
        self.now += self.dice.randint(1, 40)
        roll = self.dice.random()
        broker = self.dice.choice(self.brokers)
        if roll < 0.30:
            self.fetch(broker)
        elif roll < 0.64:
            self.receive()
        elif roll < 0.84:
            leaders = [one for one in self.brokers if one.up and one.leader is not None]
            self.produce(self.dice.choice(leaders) if leaders else broker)
        elif roll < 0.92:
            if broker.up:
                latest = len(self.controller.history) - 1
                self.deliver(broker, self.dice.randint(min(broker.image_offset + 1, latest), latest))
        elif roll < 0.95:
            self.look_for_laggards(broker)
        elif roll < 0.95 + self.trouble:
            self.crash(broker)
        elif roll < 0.975:
            self.restart(broker)
        elif roll < 0.975 + self.trouble / 2:
            if not self.controller.brokers[broker.id].fenced:
                self.controller.fence(broker.id)  # it lives on, unheard by the controller
                broker.epoch = -2
        elif roll < 0.985:
            self.delete_records(broker)
        elif roll < 0.985 + self.trouble / 2:
            self.controller.move_leader(broker.id)
        else:
            broker.checkpoint = broker.high_watermark
        self.check()

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def send(self, to: int, sender: int, *body: object) -> None:
        if self.dice.random() >= self.loss:
            self.net.append(Message(to, sender, body))
            if self.dice.random() < self.repetition:
                self.net.insert(self.dice.randrange(len(self.net)), Message(to, sender, body))
        if len(self.net) > CROWDED:
            self.net.pop(self.dice.randrange(len(self.net)))

    def receive(self) -> None:
        if not self.net:
            return
        message = self.net.pop(self.dice.randrange(len(self.net)) if self.dice.random() < 0.5 else 0)
        if message.to == -1:
            change = message.body[0]
            assert isinstance(change, IsrChange)
            self.send(message.sender, -1, "altered", change, *self.controller.alter(message.sender, change))
            return
        broker = self.brokers[message.to]
        if broker.up:
            kind, *rest = message.body
            getattr(self, f"on_{kind}")(broker, message.sender, *rest)

    def produce(self, broker: Broker) -> None:
        leader = broker.leader
        if not broker.up or leader is None or leader.under_min_isr:
            return
        self.next_value += 1
        offset = broker.log.log_end_offset
        broker.log.records.append((leader.leader_epoch, self.next_value))
        broker.pending_acks.append((offset, self.next_value))
        leader.appended(offset, self.now)
        leader.log_end_moved(broker.log.log_end_offset, self.now)
        self.see_acks(broker)

    def see_acks(self, broker: Broker) -> None:
        assert broker.leader is not None
        left = []
        for offset, value in broker.pending_acks:
            if offset < broker.leader.high_watermark:
                if offset >= broker.log.log_start_offset and broker.log.at(offset)[1] != value:
                    raise Unsafe(f"{value} is acknowledged at {offset}, where {broker.log.at(offset)} lies")
                self.count("acks")
            else:
                left.append((offset, value))
        broker.pending_acks = left

    def fetch(self, broker: Broker) -> None:
        follower = broker.follower
        if not broker.up or follower is None or follower.leader_id < 0 or self.now < follower.ready_at:
            return
        if not follower.is_stopped:
            self.send(follower.leader_id, broker.id, "fetch", follower.ask(broker.log), broker.epoch)

    def on_fetch(self, broker: Broker, sender: int, asked: Ask, broker_epoch: int) -> None:
        leader, log = broker.leader, broker.log
        error = Errors.NONE
        diverging: Diverging | None = None
        if leader is None:
            error = Errors.NOT_LEADER_OR_FOLLOWER
        elif standing := leader.check_epoch(asked.leader_epoch):
            error = Errors.FENCED_LEADER_EPOCH if standing < 0 else Errors.UNKNOWN_LEADER_EPOCH
        else:
            error = leader.refuses(sender, broker_epoch, asked.leader_epoch)
        if error or leader is None:
            self.send(sender, broker.id, "answer", asked, error, None, -1, -1, [])
            return
        if asked.last_fetched_epoch >= 0:
            position = check_position(log, leader.leader_epoch, asked.fetch_offset, asked.last_fetched_epoch)
            if isinstance(position, Errors):
                error = position
            else:
                diverging = position
        if not log.log_start_offset <= asked.fetch_offset <= log.log_end_offset and diverging is None:
            error = Errors.OFFSET_OUT_OF_RANGE
        if error or diverging:
            if diverging:
                self.count("divergences")
            self.send(
                sender, broker.id, "answer", asked, error, diverging, leader.high_watermark, log.log_start_offset, []
            )
            return
        records = log.records[asked.fetch_offset - log.log_start_offset :][: self.dice.randint(1, 6)]
        moved = leader.fetched(
            sender, asked.fetch_offset, asked.log_start_offset, broker_epoch, log.log_end_offset, self.now
        )
        self.see_acks(broker)
        if moved & ISR_CHANGE_WANTED:
            self.send(-1, broker.id, leader.pending)
        self.send(
            sender, broker.id, "answer", asked, Errors.NONE, None, leader.high_watermark, log.log_start_offset, records
        )

    def on_answer(
        self,
        broker: Broker,
        sender: int,
        asked: Ask,
        error: Errors,
        diverging: Diverging | None,
        high_watermark: int,
        log_start: int,
        records: list[tuple[int, int]],
    ) -> None:
        follower, log = broker.follower, broker.log
        if follower is None:
            return
        epoch, end = diverging or (-1, -1)
        step = follower.answered(asked, log, self.now, 100, error=error, diverging_epoch=epoch, diverging_end=end)
        if step.do == Do.APPEND:
            for record in records:
                if record[0] > asked.leader_epoch:
                    break
                log.records.append(record)
            follower.caught(high_watermark, log)
            log.raise_start(min(log_start, follower.high_watermark))
        elif step.do == Do.TRUNCATE:
            self.cut(broker, step.offset)
        elif step.do == Do.ASK_RANGE:
            self.send(sender, broker.id, "range", asked)

    def cut(self, broker: Broker, offset: int) -> None:
        assert broker.follower is not None
        if offset < broker.log.log_start_offset:
            broker.log.restart(offset)
        broker.log.truncate(offset)
        self.count("truncations")
        if broker.follower.truncated(broker.log) and not self.unclean:
            raise Unsafe(f"broker {broker.id} cut committed records off at {offset}")

    def on_range(self, broker: Broker, sender: int, asked: Ask) -> None:
        if broker.leader is not None and broker.leader.leader_epoch == asked.leader_epoch:
            log = broker.log
            self.send(sender, broker.id, "range_known", asked, log.log_start_offset, log.log_end_offset)

    def on_range_known(self, broker: Broker, _: int, asked: Ask, start: int, end: int) -> None:
        if broker.follower is None:
            return
        step = broker.follower.range_known(asked, start, end, broker.log)
        if step.do == Do.TRUNCATE:
            self.cut(broker, step.offset)
        elif step.do == Do.RESTART:
            self.count("restarts at the leader's start")
            broker.log.restart(step.offset)
            broker.follower.restarted(broker.log)

    def on_altered(self, broker: Broker, _: int, change: IsrChange, error: Errors, partition: PartitionImage) -> None:
        if broker.leader is None:
            return
        if error:
            if broker.leader.refused(change, error):
                raise AssertionError(f"nothing here asks for a repetition: {error!r}")
            return
        broker.leader.agreed(change, partition.leader_epoch, partition.partition_epoch, partition.isr, self.now)
        self.count("isr changes")
        self.see_acks(broker)

    def look_for_laggards(self, broker: Broker) -> None:
        """Also repeats a proposal whose answer may be lost."""
        leader = broker.leader
        if not broker.up or leader is None:
            return
        leader.shrink(broker.log.log_end_offset, self.now)
        if leader.pending is not None:
            self.send(-1, broker.id, leader.pending)

    def crash(self, broker: Broker) -> None:
        if not broker.up:
            return
        self.count("crashes")
        broker.up = False
        others = [one for one in self.controller.partition.isr if one != broker.id]
        if others and self.dice.random() < 0.3:
            # A power cut. A new run of the broker is out of the ISR, so it may come back with less.
            lost = self.dice.randint(0, len(broker.log.records))
            self.controller.fence(broker.id)
            if broker.id not in self.controller.partition.isr:
                broker.log.truncate(broker.log.log_end_offset - lost)
        elif self.dice.random() < 0.7:
            self.controller.fence(broker.id)

    def restart(self, broker: Broker) -> None:
        if broker.up and broker.epoch != -2:
            return
        broker.up = True
        broker.told = 0
        broker.leader = broker.follower = None
        broker.pending_acks = []
        broker.epoch = self.controller.register(broker.id)
        known = max(min(broker.checkpoint, broker.log.log_end_offset), broker.log.log_start_offset)
        # It takes no part before it has seen its own registration: in an epoch it led before a power cut it would write
        # other records at offsets that it has used already.
        broker.image_offset = len(self.controller.history) - 2
        broker.follower = PartitionFollower(-1, -1, -1, known)

    def delete_records(self, broker: Broker) -> None:
        leader = broker.leader
        if broker.up and leader is not None and self.dice.random() < 0.3:
            upto = self.dice.randint(0, leader.high_watermark)
            if upto > broker.log.log_start_offset:
                broker.log.raise_start(upto)
                self.count("deletions")

    # ---- promises

    def check(self) -> None:
        for broker in self.brokers:
            if broker.up and broker.high_watermark > broker.log.log_end_offset:
                raise Unsafe(f"broker {broker.id}: the high watermark is {broker.high_watermark}, beyond the log")
        if self.unclean:
            return
        for broker in self.brokers:
            if broker.up:
                self.check_committed(broker)
        for replica in self.controller.partition.isr:
            self.check_in_sync(replica, self.brokers[replica].log)

    def check_committed(self, broker: Broker) -> None:
        high, log = broker.high_watermark, broker.log
        if high < broker.told:
            raise Unsafe(f"broker {broker.id}: the high watermark went back from {broker.told} to {high}")
        broker.told = high
        for offset in self.looked_at(log, min(high, len(self.committed))):
            if log.at(offset) != self.committed[offset]:
                raise Unsafe(f"broker {broker.id} shows {log.at(offset)} at {offset}, not {self.committed[offset]}")
        if high > len(self.committed):
            if log.log_start_offset > len(self.committed):
                raise Unsafe("records were deleted before they were committed")
            self.committed += [log.at(offset) for offset in range(len(self.committed), high)]

    def looked_at(self, log: MemoryLog, end: int) -> range:
        """All of it now and then; else the end, where things happen."""
        return range(log.log_start_offset if self.events % 100 == 0 else max(log.log_start_offset, end - 20), end)

    def check_in_sync(self, replica: int, log: MemoryLog) -> None:
        if log.log_end_offset < len(self.committed):
            raise Unsafe(
                f"broker {replica} is in sync and ends at {log.log_end_offset}; {len(self.committed)} are committed"
            )
        for offset in self.looked_at(log, len(self.committed)):
            if log.at(offset) != self.committed[offset]:
                raise Unsafe(f"broker {replica} is in sync and differs at {offset}")

    # ---- healing

    def heal(self) -> None:
        """Every broker lives, nothing is lost any more: all of them must be in sync and equal soon."""
        self.loss = self.repetition = 0.0
        self.net = []
        self.events = 0
        for broker in self.brokers:
            if not broker.up or broker.epoch == -2:
                broker.up, broker.epoch = False, 0
                self.restart(broker)
        for _ in range(120):
            self.now += 200
            for broker in self.brokers:
                self.deliver(broker, len(self.controller.history) - 1)
                self.look_for_laggards(broker)
                self.fetch(broker)
            while self.net:
                self.receive()
            self.check()
        ends = {broker.id: broker.log.log_end_offset for broker in self.brokers}
        if len(self.controller.partition.isr) != len(self.brokers) or len(set(ends.values())) != 1:
            raise Unsafe(f"no convergence: ISR {self.controller.partition.isr}, ends {ends}")
        start = max(broker.log.log_start_offset for broker in self.brokers)
        end = ends[0]
        copies = [[broker.log.at(offset) for offset in range(start, end)] for broker in self.brokers]
        if any(copy != copies[0] for copy in copies):
            raise Unsafe("healed, and the replicas differ")
        if any(broker.high_watermark != end for broker in self.brokers):
            raise Unsafe(f"healed, and not all is committed: {[b.high_watermark for b in self.brokers]} of {end}")
