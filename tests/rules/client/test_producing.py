"""After a write of which nobody knows how it ended, its sequence numbers must not stand for other records."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from ottla.client.addresses import Address
from ottla.client.aio.producer import Producer
from ottla.client.aio.transactions import TransactionalProducer
from ottla.client.errors import ClientError, ConnectionLost
from ottla.client.routing import Routing
from ottla.client.steps import Ask, Exchange, Heard, Steps
from ottla.model.errors import Errors
from ottla.protocol import batch as b
from ottla.protocol import messages as m
from ottla.protocol.codec import Message

T = TypeVar("T")


class Broker:
    """One broker with one partition, behind a connection that may break before an answer is through."""

    def __init__(self) -> None:
        self.routing = Routing([Address("here", 9092)], 1.0)
        self.written: list[tuple[int, int, int]] = []
        """Producer id, epoch and first sequence number of each batch."""
        self.epoch = -1
        self.trouble: ClientError | None = None
        self._now_s = 0.0

    def new_lane(self, whose: str) -> str:
        return whose

    async def run(self, steps: Steps[T]) -> T:
        try:
            action = next(steps)
            while True:
                await asyncio.sleep(0)
                self._now_s = max(self._now_s, action.until_s) if not isinstance(action, Exchange) else self._now_s
                answers = tuple(map(self._answer, action.asks)) if isinstance(action, Exchange) else ()
                action = steps.send(Heard(self._now_s, answers))
        except StopIteration as end:
            result: T = end.value
            return result

    def _answer(self, ask: Ask) -> Message | ClientError:
        request: Any = ask.make(11)
        if isinstance(request, m.ProduceRequest):
            ((data,),) = [topic.partition_data for topic in request.topic_data]
            header = b.read_header(memoryview(data.records or b""))
            batch = header.producer_id, header.producer_epoch, header.base_sequence
            if self.trouble is not None:
                self.written.append(batch)
                return self.trouble
            answer = m.ProduceResponse.PartitionProduceResponse(index=0, base_offset=len(self.written))
            if batch in self.written:
                answer.error_code = Errors.DUPLICATE_SEQUENCE_NUMBER
            else:
                self.written.append(batch)
            topic = m.ProduceResponse.TopicProduceResponse(name="orders", partition_responses=[answer])
            return m.ProduceResponse(responses=[topic])
        if isinstance(request, m.InitProducerIdRequest):
            self.epoch += 1
            return m.InitProducerIdResponse(producer_id=7, producer_epoch=self.epoch)
        if isinstance(request, m.MetadataRequest):
            partition = m.MetadataResponse.MetadataResponsePartition(partition_index=0, leader_id=1)
            return m.MetadataResponse(
                brokers=[m.MetadataResponse.MetadataResponseBroker(1, "here", 9092)],
                topics=[m.MetadataResponse.MetadataResponseTopic(name="orders", partitions=[partition])],
            )
        if isinstance(request, m.FindCoordinatorRequest):
            kind = m.FindCoordinatorResponse
            return kind(coordinators=[kind.Coordinator(key="t", node_id=1, host="here", port=9092)])
        if isinstance(request, m.AddPartitionsToTxnRequest):
            return m.AddPartitionsToTxnResponse()
        return ask.response()


async def plain(broker: Any, send: Callable[[Producer, bytes], Awaitable[None]]) -> None:
    async with Producer(broker) as producer:
        with pytest.raises(ClientError):
            await send(producer, b"first")
        with pytest.raises(ClientError):
            await producer.flush()
        await send(producer, b"second")


async def transactional(broker: Any, send: Callable[[Producer, bytes], Awaitable[None]]) -> None:
    async with TransactionalProducer(broker, "t") as producer:
        for value in (b"first", b"second"):
            try:
                async with producer.transaction():
                    await producer.post("orders", value)
                    broker.trouble = broker.trouble if value == b"first" else None
            except ClientError:
                assert value == b"first"


@pytest.mark.parametrize("work", [plain, transactional])
@pytest.mark.parametrize(
    "trouble", [ConnectionLost("here:9092", "it broke"), ClientError("an answer that cannot be read")], ids=str
)
def test_what_comes_after_it_has_another_identity(
    trouble: ClientError, work: Callable[[Any, Any], Awaitable[None]]
) -> None:
    broker = Broker()
    broker.trouble = trouble

    async def send(producer: Producer, value: bytes) -> None:
        broker.trouble = broker.trouble if value == b"first" else None
        await producer.send("orders", value)

    asyncio.run(work(broker, send))  # type: ignore[arg-type]
    assert (broker.written[0], broker.written[-1]) == ((7, 0, 0), (7, 1, 0)), "else it is taken for written already"
