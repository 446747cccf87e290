"""The hash of the topics that a consumer-protocol group reads: the numbers are those of Apache Kafka 4.3.1."""

from collections.abc import Sequence

from ottla.coordinator.group.metadata_hash import metadata_hash, topic_hash
from ottla.metadata.image import BrokerRegistration, MetadataImage, PartitionImage, TopicImage
from ottla.model.ids import Uuid

ORDERS = Uuid(bytes(range(1, 17)))
PARCELS = Uuid((-2).to_bytes(8, "big", signed=True) + (77).to_bytes(8, "big"))


def topic(name: str, topic_id: Uuid, replicas: Sequence[tuple[int, ...]]) -> TopicImage:
    placed = {
        index: PartitionImage(brokers, (Uuid(bytes(16)),) * len(brokers), brokers, (), (), (), (), brokers[0], 0, 0, 0)
        for index, brokers in enumerate(replicas)
    }
    return TopicImage(name, topic_id, placed)


def image_of(*topics: TopicImage, racks: Sequence[str | None] = (None,)) -> MetadataImage:
    return MetadataImage(
        topics={each.name: each for each in topics},
        topics_by_id={each.id: each for each in topics},
        brokers={
            number: BrokerRegistration(number, 0, Uuid(bytes(16)), (), {}, rack, False, False, (), None)
            for number, rack in enumerate(racks, 1)
        },
    )


def test_a_topic_without_racks() -> None:
    orders, parcels = topic("orders", ORDERS, [(1,)] * 3), topic("parcels", PARCELS, [(1,)] * 300)
    image = image_of(orders, parcels)
    assert topic_hash(orders, image) == 3653115502262934565
    assert topic_hash(parcels, image) == -7583020097476406797


def test_racks_are_sorted_and_counted_in_javas_characters() -> None:
    orders = topic("orders", ORDERS, [(1, 2), (3, 4)])
    image = image_of(orders, racks=("west", "east", "\u0161ever \U0001f600", None))
    assert topic_hash(orders, image) == 5537974473175147372


def test_a_group_hashes_its_topics_in_the_order_of_their_names() -> None:
    image = image_of(topic("parcels", PARCELS, [(1,)] * 300), topic("orders", ORDERS, [(1,)] * 3))
    assert metadata_hash(["orders", "never", "orders"], image) == 4469793264692497189
    assert metadata_hash(["parcels", "orders"], image) == 8927455523869812780
    assert metadata_hash(["never"], image) == 0
