"""What is told of a cluster: a sentence for each kind of thing, however many there are of it."""

import pytest

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import EMPTY, MetadataImage
from ottla.metadata.news import News
from ottla.protocol import messages as m
from ottla.protocol.codec import Message

ORDERS, OTHER = b"o" * 16, b"p" * 16


def changed(base: MetadataImage, *records: Message) -> tuple[MetadataDelta, MetadataImage]:
    delta = MetadataDelta(base)
    delta.replay_all(records)
    return delta, delta.apply(base.offset + len(records), 1, 0)


def broker(broker_id: int, *, fenced: bool = True) -> Message:
    return m.RegisterBrokerRecord(broker_id=broker_id, broker_epoch=1, incarnation_id=b"i" * 16, fenced=fenced)


def partition(topic_id: bytes, index: int, leader: int = 1) -> Message:
    return m.PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=[1, 2, 3],
        isr=[1, 2, 3],
        leader=leader,
        directories=[bytes(16)] * 3,
    )


def topic(name: str, topic_id: bytes, partitions: int) -> list[Message]:
    return [
        m.TopicRecord(name=name, topic_id=topic_id),
        *(partition(topic_id, index) for index in range(partitions)),
    ]


def told(base: MetadataImage, *records: Message, node_id: int = 9) -> list[str]:
    news = News(node_id)
    news.note(changed(base, *records)[0])
    return news.take()


def test_topics_that_are_made_and_deleted() -> None:
    assert told(EMPTY, *topic("orders", ORDERS, 2)) == ["1 topic made, 2 partitions: orders"]
    base = changed(EMPTY, *topic("orders", ORDERS, 2))[1]
    assert told(base, m.RemoveTopicRecord(topic_id=ORDERS)) == ["1 topic deleted: orders"]


def test_many_topics_are_one_line_with_the_first_few() -> None:
    made = [record for number in range(5) for record in topic(f"t{number}", bytes([number]) * 16, 1)]
    assert told(EMPTY, *made) == ["5 topics made, 5 partitions: t0, t1, t2 and 2 more"]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([], [broker(2, fenced=False)], ["broker 2 is in service"]),
        (
            [broker(2)],
            [m.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=1, fenced=-1)],
            ["broker 2 is in service"],
        ),
        (
            [broker(2, fenced=False)],
            [m.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=1, fenced=1)],
            ["broker 2 is out of service"],
        ),
        (
            [broker(2, fenced=False)],
            [m.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=1, in_controlled_shutdown=1)],
            ["broker 2 is leaving"],
        ),
        ([broker(2)], [m.UnregisterBrokerRecord(broker_id=2, broker_epoch=1)], ["broker 2 is unregistered"]),
        ([], [broker(2)], []),
        ([], [broker(9, fenced=False)], []),
    ],
    ids=["new", "back", "gone", "leaving", "unregistered", "not yet here", "this node"],
)
def test_brokers_that_come_and_go(before: list[Message], after: list[Message], expected: list[str]) -> None:
    assert told(changed(EMPTY, *before)[1], *after) == expected


def test_a_broker_that_was_leaving_has_left() -> None:
    leaving = m.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=1, in_controlled_shutdown=1)
    base = changed(EMPTY, broker(2, fenced=False), leaving)[1]
    gone = m.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=1, fenced=1)
    assert told(base, gone) == ["broker 2 has left"]


def change(index: int, leader: int = -2, isr: list[int] | None = None) -> Message:
    return m.PartitionChangeRecord(partition_id=index, topic_id=ORDERS, leader=leader, isr=isr)


def test_elections_and_in_sync_replicas() -> None:
    base = changed(EMPTY, *topic("orders", ORDERS, 2))[1]
    assert told(base, change(0, leader=2, isr=[2, 3]), change(1, isr=[3, 2, 1])) == [
        "1 partition with another leader: orders-0 from 1 to 2",
        "1 partition with other in-sync replicas: orders-0 from [1, 2, 3] to [2, 3]",
    ]
    assert told(base, change(0, leader=-1)) == ["1 partition with another leader: orders-0 from 1 to none"]


def test_ten_thousand_partitions_are_a_line_of_each_kind() -> None:
    base = changed(EMPTY, *topic("orders", ORDERS, 10_000))[1]
    lines = told(base, *(change(index, leader=2, isr=[2, 3]) for index in range(10_000)))
    assert lines == [
        "10,000 partitions with another leader: "
        "orders-0 from 1 to 2, orders-1 from 1 to 2, orders-2 from 1 to 2 and 9,997 more",
        "10,000 partitions with other in-sync replicas: orders-0 from [1, 2, 3] to [2, 3], "
        "orders-1 from [1, 2, 3] to [2, 3], orders-2 from [1, 2, 3] to [2, 3] and 9,997 more",
    ]


def test_what_was_told_is_not_told_again() -> None:
    news = News(9)
    news.note(changed(EMPTY, *topic("orders", ORDERS, 1))[0])
    assert news.take()
    assert news.take() == []
