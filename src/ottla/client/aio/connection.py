"""A connection to one broker on the loop: a transport around `wire`. Never retries; the steps decide about that."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar, cast

from ottla.client.addresses import Address
from ottla.client.errors import ClientError, ConnectionLost
from ottla.client.security import Security
from ottla.client.steps import NEWEST, Ask
from ottla.client.wire import Answer, Wire
from ottla.protocol.codec import Message

if TYPE_CHECKING:
    from ottla.security.sasl.speaker import Credentials

_LOGIN: Final = (17, 36)
"""The requests of which a login is made."""

R = TypeVar("R", bound=Message)


class Connection(asyncio.Protocol):
    """Open, negotiated, ready for requests. Any ClientError leaves it closed."""

    __slots__ = ("_answers", "_greeting", "_renewing", "_transport", "_wire", "address", "broken")

    def __init__(self, address: Address, client_id: str) -> None:
        self.address = address
        self.broken: ClientError | None = None
        self._wire = Wire(str(address), client_id)
        self._transport: asyncio.Transport | None = None
        self._greeting: asyncio.Future[Answer] | None = None
        self._answers: dict[int, asyncio.Future[Answer]] = {}
        self._renewing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, address: Address, *, client_id: str, until_s: float, security: Security) -> Connection:
        """`until_s` by the loop's clock. Raises OSError when nothing can be reached there."""
        loop = asyncio.get_running_loop()
        connection = cls(address, client_id)
        async with asyncio.timeout_at(until_s):
            await loop.create_connection(lambda: connection, address.host, address.port, ssl=security.tls)
            try:
                await connection._negotiate()
                if security.credentials is not None:
                    await connection._log_in(security.credentials)
            except BaseException:
                connection.close()
                raise
        return connection

    async def _negotiate(self) -> None:
        hello: bytes | None = self._wire.hello()
        while hello is not None:
            self._greeting = asyncio.get_running_loop().create_future()
            self._write(hello)
            hello = self._wire.greeted(await self._greeting)
            if self.broken is not None:  # right behind its answer
                raise self.broken
        self._greeting = None

    async def _log_in(self, credentials: Credentials) -> None:
        from ottla.client.aio.login import log_in  # noqa: PLC0415  for who logs in

        lifetime_s = await log_in(self, credentials)
        if lifetime_s:
            asyncio.get_running_loop().call_later(lifetime_s, self._renew, credentials)

    def _renew(self, credentials: Credentials) -> None:
        """A session ends soon: whoever asks something meanwhile waits for the new login (KIP-368)."""
        if self.broken is None:
            self._renewing = asyncio.get_running_loop().create_task(self._renewed(credentials))

    async def _renewed(self, credentials: Credentials) -> None:
        try:
            await self._log_in(credentials)
        except ClientError as error:
            self._break(error)
        finally:
            self._renewing = None

    # The conversation.

    async def ask(self, ask: Ask, until_s: float) -> Message:
        """Raises ClientError. Who is cancelled while it waits leaves the connection as it is."""
        if self._renewing is not None and ask.kind.API_KEY not in _LOGIN:
            await asyncio.shield(self._renewing)
        if self.broken is not None:
            raise self.broken
        version = self._wire.version_for(ask.kind, ask.at_most)
        correlation, frame = self._wire.request(ask.make(version), at_most=ask.at_most, expect_answer=ask.answered)
        self._write(frame)
        if not ask.answered:
            return ask.response()
        waiting = self._answers[correlation] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout_at(until_s):
                answer = await waiting
        except TimeoutError:
            self._break(ConnectionLost(str(self.address), "it gave no answer in time"))
            assert self.broken is not None
            raise self.broken from None
        decoded: Message = answer.decode(ask.response)
        return decoded

    async def call(self, request: Message, response: type[R], *, timeout_s: float, at_most: int = NEWEST) -> R:
        until_s = asyncio.get_running_loop().time() + timeout_s
        answer = await self.ask(Ask(-1, type(request), lambda _: request, response, at_most), until_s)
        assert isinstance(answer, response)
        return answer

    def close(self) -> None:
        self._break(ConnectionLost(str(self.address), "it was closed"))

    def _write(self, frame: bytes) -> None:
        assert self._transport is not None
        self._transport.write(frame)

    def _break(self, error: ClientError) -> None:
        if self.broken is not None:
            return
        self.broken = error
        if self._transport is not None:
            self._transport.abort()
        waiting, self._answers = self._answers, {}
        for future in (*waiting.values(), *([self._greeting] if self._greeting is not None else [])):
            if not future.done():
                future.set_exception(error)

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none of asyncio's classes

    def data_received(self, data: bytes) -> None:
        if self.broken is not None:
            return
        try:
            answers = self._wire.received(data)
        except ClientError as error:
            self._break(error)
            return
        for answer in answers:
            waiting = self._greeting if self._greeting is not None else self._answers.pop(answer.correlation, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)

    def connection_lost(self, error: Exception | None) -> None:
        reason = "the broker closed it" if error is None else str(error)
        self._break(ConnectionLost(str(self.address), reason))
