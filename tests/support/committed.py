"""What a reader of committed records finds in a topic."""

from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.support.wire import Deadline


class Found(NamedTuple):
    partition: int
    offset: int
    key: str
    value: str


def committed(bootstrap: str, topic: str, partitions: int = 1) -> list[Found]:
    """Everything up to the last stable offset, each partition in order. Keys and values are text."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    deadline = Deadline(f"the end of {topic}", 60)
    found: list[Found] = []
    ended: set[int | None] = set()
    while len(ended) < partitions:
        deadline.check(f"{len(found)} records, the ends of {ended}")
        message = consumer.poll(0.2)
        if message is None:
            continue
        error = message.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            continue
        partition, offset, key, value = message.partition(), message.offset(), message.key(), message.value()
        assert partition is not None and offset is not None
        found.append(Found(partition, offset, _text(key), _text(value)))
    consumer.close()
    return found


def _text(data: str | bytes | None) -> str:
    return data.decode() if isinstance(data, bytes) else data or ""
