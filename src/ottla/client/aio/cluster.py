"""The asyncio face: runs a client's steps on the loop, any number at once. A connection per broker and lane."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from ottla.client import routing as routes
from ottla.client.addresses import Address
from ottla.client.aio.connection import Connection
from ottla.client.errors import ClientError, ConnectionLost, Unreachable
from ottla.client.routing import Routing
from ottla.client.security import PLAINTEXT, Security
from ottla.client.sockets import NO_WAY, why_lost, why_unreachable
from ottla.client.steps import ANY, NEWEST, Ask, Exchange, Heard, Pause, Steps
from ottla.protocol import messages
from ottla.protocol.codec import Message

CONNECT_TIMEOUT_S: Final = 5.0

R = TypeVar("R", bound=Message)
T = TypeVar("T")


class Cluster:
    __slots__ = ("_client_id", "_closed", "_lanes", "_opening", "_security", "routing")

    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        client_id: str = "ottla",
        timeout_s: float = 30.0,
        security: Security = PLAINTEXT,
    ) -> None:
        self._client_id = client_id
        self._security = security
        self._opening: dict[tuple[Address, str], asyncio.Task[Connection]] = {}
        """Connections, open or about to be: whoever needs one waits for the same task."""
        self._lanes = 0
        self._closed = False
        self.routing = Routing(bootstrap, timeout_s)

    async def __aenter__(self) -> Cluster:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Whoever still wants something is told so: it would open connections that nobody ends."""
        self._closed = True
        await self._close(list(self._opening))

    def new_lane(self, whose: str) -> str:
        """A name for connections of somebody's own; `close_lane` ends them."""
        self._lanes += 1
        return f"{whose}-{self._lanes}"

    async def close_lane(self, lane: str) -> None:
        await self._close([key for key in self._opening if key[1] == lane])

    async def _close(self, keys: Sequence[tuple[Address, str]]) -> None:
        tasks = [self._opening.pop(key) for key in keys]
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Connection):
                outcome.close()

    # Steps.

    async def run(self, steps: Steps[T]) -> T:
        try:
            action = next(steps)
            while True:
                action = steps.send(await self._perform(action))
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            steps.close()

    async def _perform(self, action: Exchange | Pause) -> Heard:
        loop = asyncio.get_running_loop()
        if isinstance(action, Pause):
            wait_s = action.until_s - loop.time()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            return Heard(loop.time())
        if len(action.asks) == 1:
            answers = [await self.heard(action.asks[0], action.until_s)]
        else:
            answers = await asyncio.gather(*(self.heard(ask, action.until_s) for ask in action.asks))
        return Heard(loop.time(), tuple(answers))

    async def heard(self, ask: Ask, until_s: float) -> Message | ClientError:
        """The answer, or why there is none."""
        try:
            connection = await self._connection(ask.broker, ask.lane, until_s)
            return await connection.ask(ask, until_s)
        except ClientError as error:
            return error

    # Connections.

    async def _connection(self, broker: int, lane: str, until_s: float) -> Connection:
        if broker == ANY:
            for task in self._opening.values():
                if task.done() and _usable(task):
                    return task.result()
        reasons: dict[str, str] = {}
        for address in self.routing.addresses(broker):
            try:
                return await self._shared(address, lane, until_s)
            except NO_WAY as error:
                reasons[str(address)] = why_unreachable(error)
            except ConnectionLost as error:
                reasons[str(address)] = why_lost(error.reason, self._security.protocol)
        raise Unreachable(reasons)

    async def _shared(self, address: Address, lane: str, until_s: float) -> Connection:
        if self._closed:
            raise ClientError("the client was closed")
        task = self._opening.get((address, lane))
        if task is None or (task.done() and not _usable(task)):
            until_s = min(until_s, asyncio.get_running_loop().time() + CONNECT_TIMEOUT_S)
            opened = Connection.open(address, client_id=self._client_id, until_s=until_s, security=self._security)
            task = self._opening[address, lane] = asyncio.create_task(opened)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            waiting = asyncio.current_task()
            assert waiting is not None
            if task.cancelled() and not waiting.cancelling():  # it was closed; nobody cancelled who waits for it
                raise ConnectionLost(str(address), "it was closed") from None
            raise

    # What is asked most.

    async def call(self, request: Message, response: type[R], *, broker: int = ANY, at_most: int = NEWEST) -> R:
        """One request, one answer; sent again when the connection breaks."""
        return await self.run(routes.call(self.routing, request, response, broker=broker, at_most=at_most))

    async def metadata(
        self, topics: Iterable[str] | None = None, *, auto_create: bool = False
    ) -> messages.MetadataResponse:
        return await routes.metadata(self, topics, auto_create=auto_create)

    async def partitions(self, topic: str, *, auto_create: bool = False) -> list[int]:
        """Sorted. Raises KafkaError for a topic that is not there."""
        return await routes.partitions(self, topic, auto_create=auto_create)


def _usable(task: asyncio.Task[Connection]) -> bool:
    return not task.cancelled() and task.exception() is None and task.result().broken is None
