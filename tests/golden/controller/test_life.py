"""A small cluster's life as a transcript: what was asked, what was written, what was answered."""

from pathlib import Path

from ottla.model.ids import Millis
from ottla.protocol import messages as m
from ottla.protocol.codec import Message, Request
from tests.golden.transcripts import compare, shown
from tests.rules.controller.scene import Assignment, Scene, Topic, TopicConfig, a_registration


class Transcript:
    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.lines: list[str] = []

    def play(self, what: str, command: Request[Message], fresh_ids: int = 0) -> None:
        decision = self.scene.play(command, fresh_ids)
        self._note(what, decision.records)
        self.lines.append(f"  reply  {shown(decision.reply)}")

    def tick(self, at: int) -> None:
        self.scene.now = Millis(at)
        decision = self.scene.controller.tick(self.scene.now)
        self.scene.replay(decision.records)
        self._note(f"tick now={at}", decision.records)

    def _note(self, what: str, records: tuple[object, ...]) -> None:
        self.lines.append(what)
        self.lines += [f"  append {shown(record)}" for record in records]

    def beat(self, what: str, broker_id: int, **fields: object) -> None:
        request = m.BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self.scene.image.brokers[broker_id].epoch,
            current_metadata_offset=self.scene.image.offset,
        )
        for name, value in fields.items():
            setattr(request, name, value)
        self.play(what, request)


def an_isr(scene: Scene, *isr: int) -> m.AlterPartitionRequest:
    """What the leader of orders-0, broker 1, asks for."""
    kind = m.AlterPartitionRequest
    partition = scene.partition("orders")
    data = kind.PartitionData(
        partition_index=0,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        new_isr_with_epochs=[kind.BrokerState(broker_id=b, broker_epoch=scene.epoch_of(b)) for b in isr],
    )
    topic = kind.TopicData(topic_id=scene.image.topics["orders"].id, partitions=[data])
    return kind(broker_id=1, broker_epoch=scene.epoch_of(1), topics=[topic])


def a_move(*replicas: int) -> m.AlterPartitionReassignmentsRequest:
    kind = m.AlterPartitionReassignmentsRequest
    target = kind.ReassignablePartition(partition_index=0, replicas=list(replicas))
    return kind(topics=[kind.ReassignableTopic(name="orders", partitions=[target])])


def a_life() -> list[str]:
    script = Transcript(Scene(min_insync_replicas="2"))
    for broker in (1, 2, 3):
        request = a_registration(broker)
        request.features = [f for f in request.features if f.name == "metadata.version"]
        script.play(f"broker {broker} registers and supports too little", request)
        script.play(f"broker {broker} registers", a_registration(broker))
        script.beat(f"broker {broker} has caught up", broker)
    create = m.CreateTopicsRequest
    orders = Topic(
        name="orders",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[Assignment(partition_index=0, broker_ids=[2, 3, 1])],
        configs=[TopicConfig(name="retention.ms", value="60000")],
    )
    script.play("create orders on 2, 3, 1", create(topics=[orders]), 1)
    script.play("create orders again", create(topics=[orders]), 1)
    local = Topic(name="local", num_partitions=1, replication_factor=1)
    script.play("create local", create(topics=[local]), 1)
    alter = m.IncrementalAlterConfigsRequest
    change = alter.AlterableConfig(name="min.insync.replicas", config_operation=0, value="3")
    resource = alter.AlterConfigsResource(resource_type=2, resource_name="orders", configs=[change])
    script.play("orders wants three in sync", alter(resources=[resource]))
    epoch = script.scene.image.brokers[1].epoch
    script.play("broker 1 needs producer ids", m.AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch))
    script.tick(9000)
    script.beat("broker 3 is back", 3)
    script.tick(9001)
    script.beat("broker 2 is back", 2)
    script.beat("broker 3 asks to shut down", 3, want_shut_down=True)
    script.beat("broker 3 asks again", 3, want_shut_down=True)
    script.beat("broker 2 has read who leads", 2)
    script.beat("broker 3 asks once more", 3, want_shut_down=True)
    script.play("broker 1 takes 2 back into the ISR", an_isr(script.scene, 1, 2))
    script.play("orders leaves broker 3", a_move(2, 1))
    script.play("who is moving?", m.ListPartitionReassignmentsRequest(topics=None))
    preferred = m.ElectLeadersRequest(election_type=0, topic_partitions=None)
    script.play("the first replicas shall lead", preferred)
    script.scene.controller.disconnected(2, script.scene.epoch_of(2), script.scene.now)
    script.tick(script.scene.now + 300)
    script.play("broker 3 is taken out", m.UnregisterBrokerRequest(broker_id=3))
    script.play("delete orders", m.DeleteTopicsRequest(topic_names=["orders", "gone"]))
    return script.lines


def test_the_life_of_a_small_cluster_is_as_it_was_reviewed() -> None:
    compare(Path(__file__).parent / "life.txt", a_life())
