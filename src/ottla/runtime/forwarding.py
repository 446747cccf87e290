"""Requests of this node that only the active controller can decide, when that is another node.

What clients ask travels in an Envelope, as between Kafka's brokers and controllers; what brokers say for themselves
goes as it is. The controller may move at any moment, so a request is offered again until someone answers or its time is
up.
"""

import asyncio
import logging
import struct
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple

from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.model.ports import Clock
from ottla.net.peer import Address, Peers, Unreachable
from ottla.protocol import messages
from ottla.protocol.apis import API
from ottla.protocol.codec import DecodeError, Message, Request, ResponseT_co
from ottla.protocol.frames import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request,
    encode_response,
)
from ottla.protocol.refusals import is_refusal, refused
from ottla.security.hosts import address_bytes, address_text

logger = logging.getLogger(__name__)

LANE: Final = "control"
_RETRY_SECONDS: Final = 0.05
_SIZE_BYTES: Final = 4
_MOVED: Final = (Errors.NOT_CONTROLLER, Errors.NOT_LEADER_OR_FOLLOWER)


class Sender(NamedTuple):
    """The client on whose behalf a broker asks."""

    principal: str
    host: str
    token_authenticated: bool = False
    client_id: str = ""
    version: int | None = None
    """Of the request, as the client sent it, if what the controller does depends on that (KIP-599)."""


class Forwarder:
    __slots__ = ("_clock", "_leader", "_leader_known", "_peers")

    def __init__(self, peers: Peers, leader: Callable[[], Address | None], clock: Clock) -> None:
        self._peers = peers
        self._leader = leader
        self._clock = clock
        self._leader_known = asyncio.Event()

    def leader_changed(self) -> None:
        """Those who wait for a controller look again."""
        self._leader_known.set()
        self._leader_known = asyncio.Event()

    async def forward(self, request: Request[ResponseT_co], timeout_ms: int, sender: Sender | None) -> ResponseT_co:
        """The controller's answer; REQUEST_TIMED_OUT in the request's own shape if none came."""
        deadline = self._clock.monotonic() + timeout_ms
        while (left := deadline - self._clock.monotonic()) > 0:
            leader = self._leader()
            if leader is not None:
                answer = await self._unless_it_moves(self._offer(leader, request, Millis(left), sender))
                if answer is not None:
                    return answer
                if self._leader() not in (leader, None):
                    continue
            await self._leader_or_pause()
        return refused(request, Errors.REQUEST_TIMED_OUT, "No controller answered in time.")

    async def _unless_it_moves(self, offer: Coroutine[Any, Any, ResponseT_co | None]) -> ResponseT_co | None:
        """A controller that is no longer one may be cut off, and its answer a long time coming: when another is known
        nobody waits for it. What it decided may hold; a request that is decided twice is answered as such."""
        moved = asyncio.ensure_future(self._leader_known.wait())
        answer = asyncio.ensure_future(offer)
        try:
            await asyncio.wait((answer, moved), return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else None
        finally:
            answer.cancel()
            moved.cancel()

    async def _offer(
        self, leader: Address, request: Request[ResponseT_co], left: Millis, sender: Sender | None
    ) -> ResponseT_co | None:
        """None: ask again, perhaps someone else."""
        try:
            if sender is not None and _is_forwarded(request):
                answer = await self._in_envelope(leader, request, left, sender)
            else:
                answer = await self._peers.ask(leader, request, timeout_ms=left, lane=LANE)
        except Unreachable:
            return None
        return None if any(is_refusal(answer, error) for error in _MOVED) else answer

    async def _in_envelope(
        self, leader: Address, request: Request[ResponseT_co], left: Millis, sender: Sender
    ) -> ResponseT_co:
        version = _version(request) if sender.version is None else sender.version
        envelope = messages.EnvelopeRequest(
            sealed(request, version, sender.client_id), sealed_principal(sender), address_bytes(sender.host)
        )
        reply = await self._peers.ask(leader, envelope, timeout_ms=left, lane=LANE)
        if reply.error_code == Errors.CLUSTER_AUTHORIZATION_FAILED:
            # It is this broker that may not ask, not the client: add its principal to super.users of the controllers.
            logger.warning("the controller does not take requests of clients from this node: it needs CLUSTER_ACTION")
            return refused(request, Errors.UNKNOWN_SERVER_ERROR)
        if reply.error_code:
            return refused(request, Errors(reply.error_code))
        return opened_reply(request, reply.response_data or b"", version)

    async def _leader_or_pause(self) -> None:
        """A new leader is tried at once, the same one after a pause."""
        try:
            async with asyncio.timeout(_RETRY_SECONDS):
                await self._leader_known.wait()
        except TimeoutError:
            return


def _is_forwarded(request: Message) -> bool:
    served = API[request.API_KEY].served
    return served is not None and served.forwarded


def _version(request: Message) -> int:
    return API[request.API_KEY].stable_max


def sealed(request: Message, version: int | None = None, client_id: str = "") -> bytes:
    version = _version(request) if version is None else version
    return encode_request(RequestHeader(request.API_KEY, version, 0, client_id), request)[_SIZE_BYTES:]


def opened(data: bytes) -> tuple[RequestHeader, Request[Message]]:
    """Raises DecodeError."""
    header, body = decode_request_header(data)
    if header.api_key not in API or header.api_version not in messages.request_class(header.api_key).DECODERS:
        raise DecodeError(f"an envelope with request {header.api_key} v{header.api_version}")
    return header, messages.request_class(header.api_key).decode(memoryview(data), header.api_version, body)


_PRINCIPAL_VERSION: Final = struct.Struct(">h")


def sealed_principal(sender: Sender) -> bytes:
    """As Kafka's own principals are written: a version, then the message."""
    kind, _, name = sender.principal.partition(":")
    message = messages.DefaultPrincipalData(type=kind, name=name, token_authenticated=sender.token_authenticated)
    return _PRINCIPAL_VERSION.pack(0) + message.encode(0)


def opened_sender(principal: bytes, address: bytes) -> Sender:
    """Raises ValueError."""
    try:
        (version,) = _PRINCIPAL_VERSION.unpack_from(principal)
        data = messages.DefaultPrincipalData.decode(memoryview(principal), version, _PRINCIPAL_VERSION.size)
    except (DecodeError, KeyError, IndexError, struct.error) as error:
        raise ValueError(f"the principal cannot be read: {error}") from error
    return Sender(f"{data.type}:{data.name}", address_text(address), data.token_authenticated)


def sealed_reply(header: RequestHeader, response: Message) -> bytes:
    return encode_response(header.api_key, header.api_version, header.correlation_id, response)[_SIZE_BYTES:]


def opened_reply(request: Request[ResponseT_co], data: bytes, version: int | None = None) -> ResponseT_co:
    version = _version(request) if version is None else version
    _, body = decode_response_header(data, request.API_KEY, version)
    answer: Any = messages.response_class(request.API_KEY).decode(memoryview(data), version, body)
    told: ResponseT_co = answer
    return told
