"""kafka-python: the pure Python client, with its own encoding of everything."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
from kafka.errors import KafkaError, OffsetOutOfRangeError

from tests.support.clients.base import CODECS, DEADLINE_S, Given, Refused, Seen

T = TypeVar("T")
_DEADLINE_MS = int(DEADLINE_S * 1000)


def _refusal(error: KafkaError) -> Refused:
    code = getattr(error, "errno", None)
    return Refused(code if isinstance(code, int) else -1, repr(error))


def _asked(call: Callable[[], T]) -> T:
    try:
        return call()
    except KafkaError as error:
        raise _refusal(error) from error


class KafkaPython:
    name: ClassVar[str] = "kafka-python"
    codecs: ClassVar[tuple[str, ...]] = CODECS
    lacks: ClassVar[frozenset[str]] = frozenset({"null header values", "errors of describe_topic_configs"})

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def create_topic(
        self, topic: str, partitions: int = 1, replication_factor: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        new = {"num_partitions": partitions, "replication_factor": replication_factor, "configs": dict(configs or {})}
        _asked(lambda: self._admin.create_topics({topic: new}))

    def delete_topic(self, topic: str) -> None:
        _asked(lambda: self._admin.delete_topics([topic]))

    def list_topics(self) -> set[str]:
        return set(self._admin.list_topics())

    def create_partitions(self, topic: str, total: int) -> None:
        _asked(lambda: self._admin.create_partitions({topic: total}))

    def partition_count(self, topic: str) -> int:
        return len(self._admin.describe_topics([topic])[0]["partitions"])

    def describe_topic_configs(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        answer = _asked(lambda: self._admin.describe_configs([resource], config_filter="all"))
        entries = answer["topic"][topic]
        return {name: entry["value"] for name, entry in entries.items()}

    def alter_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict(configs))
        answer = _asked(lambda: self._admin.alter_configs([resource], raise_on_unknown=False))
        outcome = answer["topic"][topic]
        if outcome != "OK":  # the error as text, its number in front
            found = re.match(r"\[Error (\d+)\]", outcome)
            raise Refused(int(found[1]) if found else -1, outcome)

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
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap,
            acks="all",
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            linger_ms=5,
            max_request_size=max_request_bytes,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=partition,
                    timestamp_ms=record.timestamp,
                )
                for record in records
            ]
            producer.flush(timeout=DEADLINE_S)
            return [_asked(lambda f=future: int(f.get(timeout=DEADLINE_S).offset)) for future in futures]  # type: ignore[misc]
        finally:
            producer.close(timeout=DEADLINE_S)

    def consume(self, topic: str, count: int, *, partition: int = 0, offset: int = 0) -> list[Seen]:
        place = TopicPartition(topic, partition)
        seen: list[Seen] = []
        end = time.monotonic() + DEADLINE_S
        consumer = self._consumer()
        try:
            consumer.assign([place])
            consumer.seek(place, offset)
            while len(seen) < count:
                assert time.monotonic() < end, f"{len(seen)} of {count} records came in time"
                polled = consumer.poll(timeout_ms=1000, max_records=count - len(seen))
                seen += [_seen(record) for record in polled.get(place, ())]
        except OffsetOutOfRangeError as error:
            raise _refusal(error) from error
        finally:
            consumer.close()
        return seen

    def _consumer(self) -> Any:
        return KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            auto_offset_reset="none",
            enable_auto_commit=False,
            group_id=None,
            max_partition_fetch_bytes=20_000_000,
            check_crcs=True,
        )

    def earliest_offset(self, topic: str, partition: int = 0) -> int:
        return self._list_offset(topic, partition, OffsetSpec.EARLIEST)

    def latest_offset(self, topic: str, partition: int = 0) -> int:
        return self._list_offset(topic, partition, OffsetSpec.LATEST)

    def _list_offset(self, topic: str, partition: int, spec: Any) -> int:
        place = TopicPartition(topic, partition)
        return int(_asked(lambda: self._admin.list_partition_offsets({place: spec}))[place].offset)

    def offset_for_time(self, topic: str, timestamp: int, partition: int = 0) -> int | None:
        place = TopicPartition(topic, partition)
        consumer = self._consumer()
        try:
            found = consumer.offsets_for_times({place: timestamp}, timeout_ms=_DEADLINE_MS)[place]
        finally:
            consumer.close()
        return None if found is None else int(found.offset)

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        place = TopicPartition(topic, partition)
        answer = _asked(lambda: self._admin.delete_records({place: before}))
        return int(answer[place]["low_watermark"])

    def close(self) -> None:
        self._admin.close()


def _seen(record: Any) -> Seen:
    return Seen(record.offset, record.timestamp, record.key, record.value, tuple(record.headers))
