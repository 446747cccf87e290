"""Random lives of a cluster: whatever happens to its brokers, no acknowledged record is without a leader that has it.

Partitions' logs are lists of numbers here. A follower in the ISR has what its leader has when a record is acknowledged;
one that is not may lag. Who leads, and who is in the ISR, is the controller's word alone.
"""

from random import Random

import pytest

from ottla.metadata.image import PartitionImage
from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol import messages
from tests.rules.controller.scene import Scene, Topic

BROKERS = (1, 2, 3, 4)
PARTITIONS = 4
MIN_ISR = 2
STEPS = 250


class Cluster:
    def __init__(self, seed: int, *, power_cuts: bool) -> None:
        self.random = Random(seed)
        self.power_cuts = power_cuts
        self.scene = Scene(node_id="9", min_insync_replicas=str(MIN_ISR)).with_brokers(*BROKERS)
        self.scene.create(Topic(name="t", num_partitions=PARTITIONS, replication_factor=3))
        self.scene.controller.activated(Millis(0))
        self.alive = dict.fromkeys(BROKERS, True)
        self.clean = dict.fromkeys(BROKERS, False)
        self.leaving = dict.fromkeys(BROKERS, False)
        self.lives = dict.fromkeys(BROKERS, 0)
        self.logs: dict[tuple[int, int], list[int]] = {}
        self.acked: dict[int, dict[int, None]] = {index: {} for index in range(PARTITIONS)}
        self.writes = 0

    # Brokers

    def kill(self, broker: int) -> None:
        if self.alive[broker] and not (self.power_cuts and self.is_anybody_behind()):
            self.alive[broker], self.clean[broker], self.leaving[broker] = False, False, False
            self.scene.controller.disconnected(broker, self.scene.epoch_of(broker), self.scene.now)
            if self.power_cuts:
                for key in [key for key in self.logs if key[1] == broker]:
                    self.logs[key] = self.logs[key][: self.random.randrange(len(self.logs[key]) + 1)]

    def is_anybody_behind(self) -> bool:
        """KIP-966 promises to survive fewer crashes at a time than min.insync.replicas."""
        brokers = self.scene.image.brokers
        parts = self.scene.image.topics["t"].partitions.values()
        return not all(self.alive.values()) or any(
            b.fenced or any(b.id in p.replicas and b.id not in p.isr for p in parts) for b in brokers.values()
        )

    def start(self, broker: int) -> None:
        if self.alive[broker]:
            return
        previous = self.scene.epoch_of(broker) if self.clean[broker] else -1
        reply = self.scene.register(broker, self.lives[broker] + 1, previous_broker_epoch=previous).reply
        assert isinstance(reply, messages.BrokerRegistrationResponse)
        assert reply.error_code == Errors.NONE
        self.lives[broker] += 1
        self.alive[broker] = True

    def beat(self, broker: int) -> None:
        if self.leaving[broker]:
            self.stop(broker)
        elif self.alive[broker]:
            self.scene.beat(broker)

    def stop(self, broker: int) -> None:
        if self.alive[broker]:
            self.leaving[broker] = True
            reply = self.scene.beat(broker, want_shut_down=True).reply
            assert isinstance(reply, messages.BrokerHeartbeatResponse)
            if reply.should_shut_down:
                self.alive[broker], self.clean[broker], self.leaving[broker] = False, True, False

    def wait(self, _: int) -> None:
        now = self.scene.now + self.random.choice((50, 300, 1000, 10_000))
        if now - self.scene.now < 9000:
            for broker in BROKERS:
                self.beat(broker)
        self.scene.now = Millis(now)
        while self.scene.tick(now).records:
            pass
        due = self.scene.controller.next_tick(self.scene.now)
        assert due is None or due > now

    def fail_over(self, _: int) -> None:
        self.scene.controller.activated(self.scene.now, self.random.choice((None, (), (1, 2))))

    # Partitions

    def partition(self, index: int) -> PartitionImage:
        return self.scene.partition("t", index)

    def log(self, index: int, broker: int) -> list[int]:
        return self.logs.setdefault((index, broker), [])

    def leads(self, index: int) -> bool:
        leader = self.partition(index).leader
        return leader >= 0 and self.alive[leader] and not self.scene.image.brokers[leader].fenced

    def write(self, index: int) -> None:
        if not self.leads(index):
            return
        partition = self.partition(index)
        log = self.log(index, partition.leader)
        self.writes += 1
        log.append(self.writes)
        if len(partition.isr) >= MIN_ISR and all(self.alive[b] for b in partition.isr):
            for follower in partition.isr:
                self.logs[index, follower] = list(log)
            self.acked[index] |= dict.fromkeys(log)

    def replicate(self, index: int) -> None:
        if self.leads(index):
            partition = self.partition(index)
            for follower in partition.replicas:
                if self.alive[follower]:
                    self.logs[index, follower] = list(self.log(index, partition.leader))

    def alter_isr(self, index: int) -> None:
        if self.leads(index):
            self.ask_for_isr(index, keep=0.8)

    def ask_for_isr(self, index: int, keep: float) -> None:
        partition = self.partition(index)
        log = self.log(index, partition.leader)
        wanted = [
            b
            for b in partition.replicas
            if b == partition.leader
            or (b in partition.isr and self.random.random() < keep)
            or (b not in partition.isr and self.log(index, b) == log and self.scene.image.brokers[b].is_active)
        ]
        kind = messages.AlterPartitionRequest
        data = kind.PartitionData(
            partition_index=index,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            new_isr_with_epochs=[kind.BrokerState(broker_id=b, broker_epoch=self.scene.epoch_of(b)) for b in wanted],
        )
        topic = kind.TopicData(topic_id=self.scene.image.topics["t"].id, partitions=[data])
        reply = self.scene.play(
            kind(broker_id=partition.leader, broker_epoch=self.scene.epoch_of(partition.leader), topics=[topic])
        ).reply
        assert isinstance(reply, messages.AlterPartitionResponse)
        error = reply.topics[0].partitions[0].error_code
        assert error in (Errors.NONE, Errors.NEW_LEADER_ELECTED, Errors.INELIGIBLE_REPLICA)

    def reassign(self, index: int) -> None:
        kind = messages.AlterPartitionReassignmentsRequest
        replicas = None if self.random.random() < 0.3 else self.random.sample(BROKERS, self.random.choice((2, 3, 3)))
        target = kind.ReassignablePartition(partition_index=index, replicas=replicas)
        self.scene.play(kind(topics=[kind.ReassignableTopic(name="t", partitions=[target])]))
        self.drop_logs()

    def elect(self, index: int) -> None:
        kind = messages.ElectLeadersRequest
        wanted = [kind.TopicPartitions(topic="t", partitions=[index])]
        self.scene.play(kind(election_type=0, topic_partitions=wanted))

    def drop_logs(self) -> None:
        for index, broker in list(self.logs):
            if broker not in self.partition(index).replicas:
                del self.logs[index, broker]

    # What must hold

    def step(self) -> None:
        before = dict(self.scene.image.topics["t"].partitions)
        on_brokers = (self.kill, self.start, self.beat, self.stop, self.wait, self.fail_over)
        on_partitions = (self.write, self.replicate, self.alter_isr, self.reassign, self.elect)
        if self.random.random() < 0.4:
            self.random.choices(on_brokers, (2, 6, 12, 1, 2, 1))[0](self.random.choice(BROKERS))
        else:
            self.random.choices(on_partitions, (4, 4, 6, 1, 1))[0](self.random.randrange(PARTITIONS))
        self.drop_logs()
        for index, partition in self.scene.image.topics["t"].partitions.items():
            self.check(index, before[index], partition)

    def check(self, index: int, before: PartitionImage, now: PartitionImage) -> None:
        members = (*now.isr, *now.elr)
        assert len(dict.fromkeys(members)) == len(members)
        assert all(member in now.replicas for member in members)
        assert now.leader == -1 or now.leader in now.isr
        if now.leader >= 0:
            assert self.scene.image.brokers[now.leader].is_active
        assert now.leader_epoch >= before.leader_epoch
        if now.leader != before.leader:
            assert now.leader_epoch > before.leader_epoch
        assert (now.partition_epoch > before.partition_epoch) == (now != before)
        assert all(r in now.replicas for r in now.adding_replicas + now.removing_replicas)
        if self.leads(index):
            missing = [n for n in self.acked[index] if n not in self.log(index, now.leader)]
            assert not missing, f"{now} lost {missing}; log {self.logs}"

    def heal(self) -> None:
        for _ in range(4):
            for broker in BROKERS:
                self.start(broker)
            for broker in BROKERS:
                self.beat(broker)
        for index in range(PARTITIONS):
            before = self.partition(index)
            assert before.leader >= 0
            self.replicate(index)
            self.ask_for_isr(index, keep=1)
            self.write(index)
            assert self.writes in self.acked[index]
            self.check(index, before, self.partition(index))


@pytest.mark.parametrize("power_cuts", [False, True])
@pytest.mark.parametrize("seed", range(24))
def test_no_acknowledged_record_is_lost(seed: int, power_cuts: bool) -> None:
    cluster = Cluster(seed, power_cuts=power_cuts)
    for _ in range(STEPS):
        cluster.step()
    cluster.heal()
