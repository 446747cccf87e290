"""Simulated clients: they write and read as Kafka's clients do, and keep a history of what they were told."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from ottla.model.errors import Errors
from ottla.net.peer import Address, Outcome, Peers, Unreachable
from ottla.protocol import messages
from ottla.protocol.codec import Request, ResponseT_co
from ottla.protocol.records import NewRecord, build_batch, read_records
from ottla.testing.checkers import Action, Event, Kind, Poll, Send, Watermarks
from ottla.testing.sim.loop import SimLoop

_TIMEOUT_MS: Final = 1_500
_GIVE_UP_SECONDS: Final = 20.0


class History:
    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.events: list[Event] = []
        self.watermarks: list[Watermarks] = []
        self._value = 0
        self._process = 0

    def fresh_value(self) -> int:
        self._value += 1
        return self._value

    def fresh_process(self) -> int:
        self._process += 1
        return self._process

    def note(self, kind: Kind, process: int, action: Action, number: int, steps: Sequence[Send | Poll] = ()) -> None:
        self.events.append(Event(kind, process, action, number, int(self._loop.time() * 1e6), tuple(steps)))


class Routing:
    """Who leads what, as a client learns it from whichever node answers."""

    def __init__(self, peers: Peers, nodes: Sequence[Address], topic: str, dice: Random) -> None:
        self.peers = peers
        self.topic = topic
        self.topic_id = b""
        self.leaders: dict[int, tuple[Address, int]] = {}
        self._nodes = nodes
        self._dice = dice

    async def refresh(self) -> None:
        request = messages.MetadataRequest(
            topics=[messages.MetadataRequest.MetadataRequestTopic(name=self.topic)], allow_auto_topic_creation=False
        )
        answer = await self.ask(self._dice.choice(self._nodes), request)
        if not isinstance(answer, messages.MetadataResponse) or not answer.topics or answer.topics[0].error_code:
            return
        at = {broker.node_id: Address(broker.host, broker.port) for broker in answer.brokers}
        self.topic_id = answer.topics[0].topic_id
        for partition in answer.topics[0].partitions:
            known = self.leaders.get(partition.partition_index)
            # A node that lags behind must not take a client back to an older leader (KIP-320).
            if partition.leader_id in at and (known is None or known[1] <= partition.leader_epoch):
                self.leaders[partition.partition_index] = at[partition.leader_id], partition.leader_epoch

    async def ask(self, to: Address, request: Request[ResponseT_co]) -> ResponseT_co | None:
        try:
            return await self.peers.ask(to, request, timeout_ms=_TIMEOUT_MS)
        except Unreachable:
            return None

    async def records(self, to: Address, request: messages.FetchRequest) -> messages.FetchResponse.PartitionData | None:
        """Of the one partition that is asked for. None without an answer for it."""
        came: asyncio.Future[messages.FetchResponse.PartitionData | None] = asyncio.get_running_loop().create_future()

        def then(outcome: Outcome) -> None:
            data = None
            if isinstance(outcome, messages.FetchResponse) and not outcome.error_code and outcome.responses:
                data = outcome.responses[0].partitions[0]
                data.records = memoryview(bytes(data.records or b""))  # they are another's when this returns
            if not came.done():
                came.set_result(data)

        self.peers.send(to, request, then, timeout_ms=_TIMEOUT_MS)
        return await came


class Writer:
    """An idempotent producer with acks=all: one batch at a time to each partition, sent again until it is answered."""

    def __init__(self, routing: Routing, history: History, dice: Random, partition: int) -> None:
        self._routing = routing
        self._history = history
        self._dice = dice
        self._index = partition
        self._number = 0
        self._producer: tuple[int, int] | None = None
        self._sequence = 0
        self.stopping = False
        self._process = history.fresh_process()

    async def run(self) -> None:
        while not self.stopping:
            if self._producer is None:
                await self._begin()
            else:
                await self._write()
            await asyncio.sleep(self._dice.uniform(0.001, 0.05))

    async def _begin(self) -> None:
        await self._routing.refresh()
        target = self._routing.leaders.get(self._index)
        if target is None:
            return
        answer = await self._routing.ask(target[0], messages.InitProducerIdRequest(transactional_id=None))
        if isinstance(answer, messages.InitProducerIdResponse) and not answer.error_code:
            self._producer = answer.producer_id, answer.producer_epoch
            self._sequence = 0
            self._process = self._history.fresh_process()

    async def _write(self) -> None:
        self._number += 1
        values = [self._history.fresh_value() for _ in range(self._dice.randint(1, 3))]
        sends = [Send(self._name, value) for value in values]
        self._history.note(Kind.INVOKE, self._process, Action.SEND, self._number, sends)
        offset = await self._until_answered(values)
        if offset is None:
            # Nobody knows. The sequence would have a gap or not, so a new producer takes over.
            self._history.note(Kind.INFO, self._process, Action.SEND, self._number, sends)
            self._producer = None
            return
        placed = [Send(self._name, value, offset + place) for place, value in enumerate(values)]
        self._history.note(Kind.OK, self._process, Action.SEND, self._number, placed)
        self._sequence += len(values)

    @property
    def _name(self) -> str:
        return f"{self._routing.topic}-{self._index}"

    async def _until_answered(self, values: list[int]) -> int | None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _GIVE_UP_SECONDS
        assert self._producer is not None
        batch = bytes(
            build_batch(
                [NewRecord(None, str(value).encode(), 0) for value in values],
                producer_id=self._producer[0],
                producer_epoch=self._producer[1],
                base_sequence=self._sequence,
            )
        )
        while loop.time() < deadline:
            outcome = await self._once(batch)
            if not isinstance(outcome, Errors):  # itself a number
                return outcome
            if not outcome.retriable and outcome != Errors.UNKNOWN_SERVER_ERROR:
                return None
            await self._routing.refresh()
            await asyncio.sleep(self._dice.uniform(0.02, 0.2))
        return None

    async def _once(self, batch: bytes) -> int | Errors:
        """The offset, or why not."""
        target = self._routing.leaders.get(self._index)
        if target is None:
            return Errors.LEADER_NOT_AVAILABLE
        kind = messages.ProduceRequest
        data = kind.PartitionProduceData(index=self._index, records=batch)
        topic = kind.TopicProduceData(topic_id=self._routing.topic_id, partition_data=[data])
        answer = await self._routing.ask(target[0], kind(acks=-1, timeout_ms=1_000, topic_data=[topic]))
        if not isinstance(answer, messages.ProduceResponse):
            return Errors.NETWORK_EXCEPTION
        result = answer.responses[0].partition_responses[0]
        return result.base_offset if not result.error_code else Errors(result.error_code)


class Reader:
    """A consumer that is assigned one partition and reads it from the start."""

    def __init__(self, routing: Routing, history: History, dice: Random, partition: int) -> None:
        self._routing = routing
        self._history = history
        self._dice = dice
        self._index = partition
        self._number = 0
        self._process = history.fresh_process()
        self._epoch = -1
        self.offset = 0
        self.stopping = False

    async def run(self) -> None:
        self._number += 1
        self._history.note(Kind.INVOKE, self._process, Action.ASSIGN, self._number)
        while not self.stopping:
            if not await self.read_once():
                await self._routing.refresh()
                await self.end()
                await asyncio.sleep(self._dice.uniform(0.01, 0.2))

    async def read_once(self) -> bool:
        """False if nothing came, for whatever reason."""
        target = self._routing.leaders.get(self._index)
        if target is None:
            return False
        kind = messages.FetchRequest
        wanted = kind.FetchPartition(
            partition=self._index,
            current_leader_epoch=target[1],
            fetch_offset=self.offset,
            last_fetched_epoch=-1,
            partition_max_bytes=1 << 20,
        )
        request = kind(
            max_wait_ms=200,
            min_bytes=1,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=[kind.FetchTopic(topic_id=self._routing.topic_id, partitions=[wanted])],
        )
        data = await self._routing.records(target[0], request)
        return data is not None and not data.error_code and self._take(data)

    def _take(self, data: Any) -> bool:
        records = [r for batch in _batches(data.records or b"") for r in read_records(batch)]
        found = [(r.offset, int(r.value or b"0")) for r in records if r.offset >= self.offset]
        if not found:
            return False
        self.offset = found[-1][0] + 1
        self._number += 1
        name = f"{self._routing.topic}-{self._index}"
        self._history.note(Kind.INVOKE, self._process, Action.POLL, self._number)
        self._history.note(Kind.OK, self._process, Action.POLL, self._number, [Poll(name, tuple(found))])
        return True

    async def end(self) -> int | None:
        """Where the partition ends now, as its leader says; noted, since it must never go back."""
        target = self._routing.leaders.get(self._index)
        if target is None:
            return None
        kind = messages.ListOffsetsRequest
        wanted = kind.ListOffsetsPartition(partition_index=self._index, current_leader_epoch=-1, timestamp=-1)
        request = kind(replica_id=-1, topics=[kind.ListOffsetsTopic(name=self._routing.topic, partitions=[wanted])])
        answer = await self._routing.ask(target[0], request)
        if not isinstance(answer, messages.ListOffsetsResponse):
            return None
        if self._routing.leaders[self._index][1] != target[1]:
            return None  # another leader is known by now, and may have been asked: this answer tells of the past
        result = answer.topics[0].partitions[0]
        if result.error_code:
            return None
        name = f"{self._routing.topic}-{self._index}"
        self._history.watermarks.append(Watermarks(str(self._process), name, result.offset))
        return result.offset


def _batches(data: bytes | bytearray | memoryview) -> list[memoryview]:
    view, found, position = memoryview(data), [], 0
    while position + 12 <= len(view):
        size = 12 + int.from_bytes(view[position + 8 : position + 12], "big")
        found.append(view[position : position + size])
        position += size
    return found
