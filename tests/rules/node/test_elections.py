"""Unclean elections are counted from what is committed."""

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import EMPTY, MetadataImage
from ottla.model.ids import Uuid
from ottla.node.monitoring.watched import Elections
from ottla.protocol.messages import PartitionChangeRecord, PartitionRecord, TopicRecord

ORDERS = Uuid(b"orders".ljust(16, b"-"))
DIRECTORIES = [bytes(16)] * 3


def placed(isr: list[int], elr: list[int] | None = None) -> MetadataImage:
    """orders-0 on brokers 1 to 3, led by 1."""
    delta = MetadataDelta(EMPTY)
    delta.replay(TopicRecord(name="orders", topic_id=ORDERS))
    delta.replay(
        PartitionRecord(
            topic_id=ORDERS,
            replicas=[1, 2, 3],
            isr=isr,
            eligible_leader_replicas=elr,
            leader=1,
            directories=DIRECTORIES,
        )
    )
    return delta.apply(1, 1, 0)


def elected(image: MetadataImage, leader: int) -> int:
    elections = Elections()
    delta = MetadataDelta(image)
    delta.replay(PartitionChangeRecord(topic_id=ORDERS, leader=leader, isr=[leader]))
    elections.on_metadata(delta, delta.apply(2, 1, 0))
    return elections.unclean


def test_a_leader_out_of_the_isr_is_clean() -> None:
    assert elected(placed(isr=[1, 2]), leader=2) == 0


def test_a_leader_that_was_not_in_sync_is_unclean() -> None:
    assert elected(placed(isr=[1]), leader=2) == 1


def test_an_eligible_leader_replica_has_all_that_was_committed() -> None:
    assert elected(placed(isr=[1], elr=[2]), leader=2) == 0


def test_a_partition_that_loses_its_leader_has_not_elected_one() -> None:
    assert elected(placed(isr=[1]), leader=-1) == 0


def test_the_first_leader_of_a_new_partition_is_no_election() -> None:
    elections = Elections()
    delta = MetadataDelta(EMPTY)
    delta.replay(TopicRecord(name="orders", topic_id=ORDERS))
    delta.replay(PartitionRecord(topic_id=ORDERS, replicas=[1], isr=[1], leader=1, directories=DIRECTORIES[:1]))
    elections.on_metadata(delta, delta.apply(1, 1, 0))
    assert elections.unclean == 0
