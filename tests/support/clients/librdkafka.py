"""librdkafka through confluent-kafka: the client underneath most languages that are not Java."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, ClassVar

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.support.clients.base import CODECS, DEADLINE_S, Given, Refused, Seen

# librdkafka reports what it decided by itself as negative codes; these two stand for an answer of the broker.
_LOCAL_CODES = {
    KafkaError._UNKNOWN_TOPIC: 3,
    KafkaError._AUTO_OFFSET_RESET: 1,
    KafkaError._UNKNOWN_PARTITION: 3,
}


def _refusal(error: KafkaError) -> Refused:
    return Refused(_LOCAL_CODES.get(error.code(), error.code()), str(error))


def _result(future: "Future[Any]") -> Any:
    try:
        return future.result(DEADLINE_S)
    except KafkaException as exception:
        raise _refusal(exception.args[0]) from exception


class Librdkafka:
    name: ClassVar[str] = "librdkafka"
    codecs: ClassVar[tuple[str, ...]] = CODECS
    lacks: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, bootstrap: str) -> None:
        self._common: dict[str, Any] = {"bootstrap.servers": bootstrap}
        self._admin = AdminClient(dict(self._common))

    def create_topic(
        self, topic: str, partitions: int = 1, replication_factor: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        new = NewTopic(topic, partitions, replication_factor, config=dict(configs or {}))
        _result(self._admin.create_topics([new])[topic])

    def delete_topic(self, topic: str) -> None:
        _result(self._admin.delete_topics([topic])[topic])

    def list_topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=DEADLINE_S).topics)

    def create_partitions(self, topic: str, total: int) -> None:
        _result(self._admin.create_partitions([NewPartitions(topic, total)])[topic])

    def partition_count(self, topic: str) -> int:
        return len(self._admin.list_topics(timeout=DEADLINE_S).topics[topic].partitions)

    def describe_topic_configs(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = _result(self._admin.describe_configs([resource])[resource])
        return {name: entry.value for name, entry in entries.items()}

    def alter_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in configs.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        _result(self._admin.incremental_alter_configs([resource])[resource])

    def produce(
        self,
        topic: str,
        records: Sequence[Given],
        *,
        partition: int = 0,
        codec: str = "none",
        idempotent: bool = False,
        max_request_bytes: int = 1_000_000,
    ) -> list[int]:
        producer = Producer(
            self._common
            | {
                "acks": "all",
                "compression.type": codec,
                "enable.idempotence": idempotent,
                "linger.ms": 5,
                "message.max.bytes": max_request_bytes,
                "message.timeout.ms": int(DEADLINE_S * 1000),
            }
        )
        offsets: list[int] = []
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failures.append(error)
                return
            offset = message.offset()
            assert offset is not None
            offsets.append(offset)

        for record in records:
            producer.produce(
                topic,
                record.value,
                record.key,
                partition,
                on_delivery=delivered,
                timestamp=record.timestamp or 0,
                headers=list(record.headers),
            )
        assert producer.flush(DEADLINE_S) == 0
        if failures:
            raise _refusal(failures[0])
        return offsets

    def consume(self, topic: str, count: int, *, partition: int = 0, offset: int = 0) -> list[Seen]:
        consumer = Consumer(
            self._common
            | {
                "group.id": "never-joined",
                "auto.offset.reset": "error",
                "enable.auto.commit": False,
                "check.crcs": True,
                "fetch.message.max.bytes": 20_000_000,
                "fetch.max.bytes": 50_000_000,
            }
        )
        seen: list[Seen] = []
        end = time.monotonic() + DEADLINE_S
        try:
            consumer.assign([TopicPartition(topic, partition, offset)])
            while len(seen) < count:
                assert time.monotonic() < end, f"{len(seen)} of {count} records came in time"
                message = consumer.poll(1.0)
                if message is None:
                    continue
                error = message.error()
                if error is not None:
                    raise _refusal(error)
                seen.append(_seen(message))
        finally:
            consumer.close()
        return seen

    def earliest_offset(self, topic: str, partition: int = 0) -> int:
        return self._list_offset(topic, partition, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def latest_offset(self, topic: str, partition: int = 0) -> int:
        return self._list_offset(topic, partition, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def offset_for_time(self, topic: str, timestamp: int, partition: int = 0) -> int | None:
        offset = self._list_offset(topic, partition, OffsetSpec.for_timestamp(timestamp))
        return None if offset < 0 else offset

    def _list_offset(self, topic: str, partition: int, spec: OffsetSpec) -> int:
        place = TopicPartition(topic, partition)
        offset: int = _result(self._admin.list_offsets({place: spec})[place]).offset
        return offset

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        place = TopicPartition(topic, partition, before)
        low: int = _result(self._admin.delete_records([place])[place]).low_watermark
        return low

    def close(self) -> None:
        pass


def _seen(message: Message) -> Seen:
    offset = message.offset()
    assert offset is not None
    return Seen(
        offset,
        message.timestamp()[1],
        message.key(),
        message.value(),
        tuple(message.headers() or ()),  # type: ignore[arg-type]
    )
