"""aiokafka: the asyncio client; it speaks some of the oldest versions that Kafka 4 still serves."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from tests.support.clients.base import CODECS, DEADLINE_S, Given, Refused, Seen

T = TypeVar("T")


def _refusal(error: KafkaError) -> Refused:
    code = getattr(error, "errno", None)
    return Refused(code if isinstance(code, int) else -1, repr(error))


def _check(code: int, detail: object) -> None:
    if code:
        raise Refused(code, str(detail))


class AioKafka:
    name: ClassVar[str] = "aiokafka"
    codecs: ClassVar[tuple[str, ...]] = CODECS
    lacks: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._runner = asyncio.Runner()
        self._admin = self._run(self._started_admin())

    async def _started_admin(self) -> Any:
        admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
        await admin.start()
        return admin

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(DEADLINE_S):
                return await work

        try:
            return self._runner.run(bounded())
        except KafkaError as error:
            raise _refusal(error) from error

    def create_topic(
        self, topic: str, partitions: int = 1, replication_factor: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        new = NewTopic(topic, partitions, replication_factor, topic_configs=dict(configs or {}))
        for _, code, *detail in self._run(self._admin.create_topics([new])).topic_errors:
            _check(code, detail)

    def delete_topic(self, topic: str) -> None:
        for _, code, *detail in self._run(self._admin.delete_topics([topic])).topic_error_codes:
            _check(code, detail)

    def list_topics(self) -> set[str]:
        return set(self._run(self._admin.list_topics()))

    def create_partitions(self, topic: str, total: int) -> None:
        self._run(self._admin.create_partitions({topic: NewPartitions(total)}))

    def partition_count(self, topic: str) -> int:
        return len(self._run(self._admin.describe_topics([topic]))[0]["partitions"])

    def describe_topic_configs(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (answer,) = self._run(self._admin.describe_configs([resource]))
        ((code, detail, _, _, entries),) = answer.resources
        _check(code, detail)
        return {entry[0]: entry[1] for entry in entries}

    def alter_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict(configs))
        (answer,) = self._run(self._admin.alter_configs([resource]))
        ((code, detail, *_),) = answer.resources
        _check(code, detail)

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
        async def work() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=self._bootstrap,
                acks="all",
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
                linger_ms=5,
                max_request_size=max_request_bytes,
            )
            await producer.start()
            try:
                sent = [
                    await producer.send(
                        topic,
                        value=record.value,
                        key=record.key,
                        partition=partition,
                        timestamp_ms=record.timestamp,
                        headers=list(record.headers),
                    )
                    for record in records
                ]
                return [int((await future).offset) for future in sent]
            finally:
                await producer.stop()

        return self._run(work())

    def consume(self, topic: str, count: int, *, partition: int = 0, offset: int = 0) -> list[Seen]:
        place = TopicPartition(topic, partition)

        async def work(consumer: Any) -> list[Seen]:
            consumer.seek(place, offset)
            seen: list[Seen] = []
            while len(seen) < count:
                record = await consumer.getone(place)
                seen.append(Seen(record.offset, record.timestamp, record.key, record.value, tuple(record.headers)))
            return seen

        return self._run(self._with_consumer(place, work))

    async def _with_consumer(self, place: TopicPartition, work: Any) -> Any:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=None,
            auto_offset_reset="none",
            enable_auto_commit=False,
            max_partition_fetch_bytes=20_000_000,
        )
        await consumer.start()
        try:
            consumer.assign([place])
            return await work(consumer)
        finally:
            await consumer.stop()

    def earliest_offset(self, topic: str, partition: int = 0) -> int:
        place = TopicPartition(topic, partition)
        return int(self._run(self._with_consumer(place, lambda c: c.beginning_offsets([place])))[place])

    def latest_offset(self, topic: str, partition: int = 0) -> int:
        place = TopicPartition(topic, partition)
        return int(self._run(self._with_consumer(place, lambda c: c.end_offsets([place])))[place])

    def offset_for_time(self, topic: str, timestamp: int, partition: int = 0) -> int | None:
        place = TopicPartition(topic, partition)
        found = self._run(self._with_consumer(place, lambda c: c.offsets_for_times({place: timestamp})))[place]
        return None if found is None else int(found.offset)

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        place = TopicPartition(topic, partition)
        return int(self._run(self._admin.delete_records({place: RecordsToDelete(before)}))[place])

    def close(self) -> None:
        self._run(self._admin.close())
        self._runner.close()
