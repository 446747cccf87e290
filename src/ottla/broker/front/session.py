"""One client's conversation: requests in, replies out in the order they were asked.

A handler's call is stage one: what it changes has changed when it returns. It returns either the response, or a future
that will hold it (produce and fetch in purgatory), or a coroutine (a change that waits for the metadata log). While a
coroutine runs the connection's next request is not begun, so a client that sends two changes in a row sees them in
that order; a waiting produce or fetch does not hold up what comes behind it, only its reply.
"""

import logging
from asyncio import AbstractEventLoop, Future, Task, to_thread
from collections import deque
from collections.abc import Awaitable, Coroutine
from struct import Struct, error
from typing import Any, Final, NamedTuple

from ottla.broker.front.client import ANONYMOUS, Client
from ottla.broker.front.dispatch import API_VERSIONS, PRODUCE, Route, Routes
from ottla.broker.front.share import Share
from ottla.broker.security.authorizer import Underway
from ottla.broker.services import ControllerServices, Services
from ottla.model.errors import Errors
from ottla.net.connection import Line
from ottla.net.foreign import HTTP_ANSWER, is_http, is_tls
from ottla.protocol.codec import DecodeError, EncodeError, Message, skip_tags
from ottla.protocol.frames import encode_response, encode_response_chunks
from ottla.protocol.refusals import is_refusal

logger = logging.getLogger(__name__)

_unpack_header: Final = Struct(">hhih").unpack_from
_TURN_BYTES: Final = 64 * 1024
"""Of replies, after which a connection with more requests at hand lets the others go first."""
_LARGE_BYTES: Final = 64 * 1024
"""A request that is not made of records and has more than so many is read by a thread."""
ALL_TIMED: Final = 16
"""Requests of an API that are all timed. Later, of those that are answered at once, one in so many stands for the rest:
to read the clock and to sort what it says costs a fiftieth of such a request."""


class Reply:
    """The place of one answer in the order of a connection."""

    __slots__ = ("correlation_id", "future", "message", "ready", "route", "since", "version")

    def __init__(self, route: Route, version: int, correlation_id: int, since: float) -> None:
        self.route = route
        self.version = version
        self.correlation_id = correlation_id
        self.since = since
        """When the request came, by the connection's clock."""
        self.ready = False
        self.message: Any = None
        self.future: Future[Any] | None = None


class Written(NamedTuple):
    """An answer as it goes over the wire."""

    data: bytes
    message: Message


class Refusal(NamedTuple):
    """Why the node hangs up on a client."""

    sentence: str
    spoke_tls: bool = False
    """Then the sentence is not at its end: which listener would fit follows."""


class Session:
    __slots__ = (
        "_client_id_bytes",
        "_limits",
        "_loop",
        "_on_closed",
        "_pending",
        "_running",
        "_turn",
        "broker",
        "client",
        "client_id",
        "connection",
        "refused",
        "routes",
        "services",
        "share",
        "underway",
    )

    def __init__(
        self,
        connection: Line,
        host: str,
        listener: str,
        routes: Routes,
        services: Services | ControllerServices,
        loop: AbstractEventLoop,
        on_closed: Any,
        principal: str = ANONYMOUS,
    ) -> None:
        """`principal` is what the connection itself tells of the client: the name in its certificate."""
        self.connection = connection
        self.underway = Underway()
        self.client = Client.known_as(principal, host, listener, services.authorizer, self.underway)
        self.routes = routes
        self.services = services
        self.client_id = ""
        """What the last request called its sender: one connection may carry requests of many."""
        self.broker: tuple[int, int] | None = None
        """Id and epoch of the broker that sends its heartbeats here: when this connection breaks, it is missed."""
        self.refused: Refusal | None = None
        """Whoever hears of this client's end logs it, since clients try again and again."""
        self._client_id_bytes = b""
        self._loop = loop
        self._on_closed = on_closed
        self._pending: deque[Reply] = deque()
        self._running: Task[Any] | None = None
        self._turn = 0
        """Bytes of replies since other connections were last looked at."""
        self.share = Share(services.quotas, connection, loop, services.clock)
        """What this connection uses of its client's quotas."""
        self._limits = services.limits

    @property
    def is_waiting(self) -> bool:
        """A request of this client is being worked on, or waits in purgatory."""
        return bool(self._pending)

    def unanswered(self) -> "list[Future[Any]]":
        """What the answers to requests so far still wait for."""
        return [each.future for each in self._pending if each.future is not None and not each.future.done()]

    # ---- requests

    def frame_received(self, frame: memoryview) -> None:
        try:
            key, version, correlation_id, id_length = _unpack_header(frame)
            route = self.routes.loaded.get(key) or self.routes.get(key)
            if route is None or not route.min_version <= version <= route.max_version:
                self._unsupported(key, version, correlation_id)
                return
            pos = 10
            if id_length > 0:
                pos = 10 + id_length
                if frame[10:pos] != self._client_id_bytes:
                    self._note_client_id(bytes(frame[10:pos]))
            elif self._client_id_bytes:
                self._note_client_id(b"")
            if version >= route.first_flexible:
                tags = frame[pos]
                pos = skip_tags(frame, pos + 1, tags, len(frame)) if tags else pos + 1
            if len(frame) > _LARGE_BYTES and key != PRODUCE:
                self._begin_large(route, version, correlation_id, frame, pos)
                return
            request, _ = route.decoders[version](frame, pos)
        except (DecodeError, error, IndexError) as problem:
            self._refuse(f"a request cannot be read: {problem}")
            return
        except Exception as problem:  # noqa: BLE001  whatever it is, a client without an answer must see the end
            self._not_begun(problem)
            return
        counts = route.counts
        requests = counts.versions[version - route.min_version] + 1
        counts.versions[version - route.min_version] = requests
        weight = 1 if requests < ALL_TIMED else 0 if requests % ALL_TIMED else ALL_TIMED
        since = self.connection.last_active if weight else 0.0
        self.underway.api = route.name
        metered = self.share.quotas.in_force and self.share.is_of(self.client, self.client_id)
        if metered:
            self.share.begin(0 if key != PRODUCE else len(frame))
        try:
            outcome = route.handle(self.services, self, request, version)
        except Exception:  # the session is the edge: a bug costs this client its connection, no more
            logger.exception("%s v%d of %s failed", route.name, version, self.client.host)
            route.counts.failed(Errors.UNKNOWN_SERVER_ERROR)
            self.connection.close()
            return
        if isinstance(outcome, Message) and not self._pending:
            self._send(route, version, correlation_id, outcome)
            if weight:
                counts.times.observe(self.connection.us_since(since), weight)
        else:
            self._answer_later(route, version, correlation_id, outcome)
        if metered and self.share.timed:
            self.share.end()

    def _answer_later(self, route: Route, version: int, correlation_id: int, outcome: Any) -> None:
        if isinstance(outcome, Message):
            self._queue(self._reply(route, version, correlation_id), outcome)
        elif isinstance(outcome, Future):
            reply = self._reply(route, version, correlation_id)
            reply.future = outcome
            outcome.add_done_callback(lambda future: self._resolved(reply, future))
            self._queue(reply, None)
        elif outcome is not None:
            work = self.share.watched(outcome)
            if route.large_replies:
                work = self._written_large(route, version, correlation_id, work)
            self._run(self._reply(route, version, correlation_id), work)
        else:  # acks=0: nothing is ever sent
            self.share.forgive()

    def _reply(self, route: Route, version: int, correlation_id: int) -> Reply:
        return Reply(route, version, correlation_id, self.connection.last_active)

    def _queue(self, reply: Reply, message: Message | None) -> None:
        """Behind the replies that are still to come."""
        reply.message, reply.ready = message, message is not None
        self._pending.append(reply)
        if len(self._pending) >= self._limits.max_in_flight:
            self.connection.pause_reading()

    def _begin_large(self, route: Route, version: int, correlation_id: int, frame: memoryview, pos: int) -> None:
        # The task that reads it begins when the frame's buffer is in use for others.
        work = self._begun_large(route, version, memoryview(bytes(frame)), pos)
        if route.large_replies:
            work = self._written_large(route, version, correlation_id, work)
        self._run(self._reply(route, version, correlation_id), work)

    async def _begun_large(self, route: Route, version: int, frame: memoryview, pos: int) -> Any:
        """A request of so many parts that all others would wait while it is read: a thread reads it. The frame is a
        copy of its own."""
        try:
            request, _ = await to_thread(route.decoders[version], frame, pos)
        except (DecodeError, error, IndexError) as problem:
            self._refuse(f"a request cannot be read: {problem}")
            return None
        route.counts.versions[version - route.min_version] += 1
        self.underway.api = route.name
        if self.share.quotas.in_force and self.share.is_of(self.client, self.client_id):
            self.share.begin(0)
        outcome = route.handle(self.services, self, request, version)
        if outcome is None or isinstance(outcome, Message):
            return outcome
        return await (outcome if isinstance(outcome, Future) else self.share.watched(outcome))

    async def _written_large(self, route: Route, version: int, correlation_id: int, work: Awaitable[Any]) -> Any:
        message = await work
        if not isinstance(message, Message) or self.share.applies:  # a quota is charged, and told, when it is sent
            return message
        return Written(await to_thread(encode_response, route.key, version, correlation_id, message), message)

    def _note_client_id(self, raw: bytes) -> None:
        self._client_id_bytes = raw
        self.share.version = -1
        self.client_id = raw.decode(errors="replace")

    def _run(self, reply: Reply, work: Coroutine[Any, Any, Any]) -> None:
        self._pending.append(reply)
        self.connection.pause_reading()
        self._running = reply.future = task = self._loop.create_task(work)
        task.add_done_callback(lambda done: self._resolved(reply, done))

    def _resolved(self, reply: Reply, future: "Future[Any]") -> None:
        if future is self._running:
            self._running = None
        if future.cancelled():
            self.connection.close()
            return
        problem = future.exception()
        if problem is not None:
            logger.error("%s v%d of %s failed", reply.route.name, reply.version, self.client.host, exc_info=problem)
            reply.route.counts.failed(Errors.UNKNOWN_SERVER_ERROR)
            self.connection.close()
            return
        reply.message = future.result()
        reply.ready = True
        pending = self._pending
        while pending and pending[0].ready:
            head = pending.popleft()
            if head.message is None:  # acks=0 that had to wait: nothing is ever sent
                continue
            if isinstance(head.message, Written):
                self.connection.send_bytes(head.message.data)
                if head.route.counts.has_error_code:
                    self._count_error(head.route, head.message.message)
            else:
                self._send(head.route, head.version, head.correlation_id, head.message)
            head.route.counts.times.observe(self.connection.us_since(head.since), 1)
        self._resume()

    def _resume(self) -> None:
        if (
            self._running is None
            and len(self._pending) < self._limits.max_in_flight
            and self.connection.out_bytes <= self._limits.max_unsent_bytes
            and self.connection.reading_paused
        ):
            self.connection.resume_reading()

    # ---- replies

    def _send(self, route: Route, version: int, correlation_id: int, message: Message) -> None:
        connection = self.connection
        if self.share.applies:
            refused = route.of_cluster and is_refusal(message, Errors.CLUSTER_AUTHORIZATION_FAILED)
            self.share.answer(message, exempt=route.of_cluster and not refused)
        try:
            if route.streams_files:
                connection.send(encode_response_chunks(route.key, version, correlation_id, message))
            else:
                data = encode_response(route.key, version, correlation_id, message)
                connection.send_bytes(data)
                self._turn += len(data)
        except EncodeError:
            logger.exception("the reply to %s v%d cannot be written", route.name, version)
            connection.close()
            return
        if route.counts.has_error_code:
            self._count_error(route, message)
        if connection.out_bytes > self._limits.max_unsent_bytes:
            connection.pause_reading()
        elif self._turn > _TURN_BYTES:
            # Many small requests may come at once and ask for much: the others have their turn before the next.
            connection.pause_reading()
            self._loop.call_soon(self._take_turn)

    def _count_error(self, route: Route, message: Message) -> None:
        error_code: int = message.error_code  # type: ignore[attr-defined]  # what `has_error_code` says
        if error_code:
            route.counts.failed(error_code)

    def _take_turn(self) -> None:
        self._turn = 0
        self._resume()

    def _unsupported(self, key: int, version: int, correlation_id: int) -> None:
        """Kafka answers only ApiVersions at a version it does not know (KIP-511); all else closes the connection."""
        route = self.routes.get(key)
        if key == API_VERSIONS and route is not None:
            message = self.routes.api_versions_unsupported()
            if self._pending:
                self._queue(self._reply(route, 0, correlation_id), message)
            else:
                self._send(route, 0, correlation_id, message)
            return
        self._refuse(f"request key {key} at version {version} is not served on this listener")

    def _not_begun(self, problem: Exception) -> None:
        if isinstance(problem, OSError):  # no descriptor is left to load the handler with
            self._refuse(f"a request could not be begun: {problem}")
            return
        logger.error("a request of %s could not be begun", self.client.host, exc_info=problem)
        self.connection.close()

    def _refuse(self, why: str) -> None:
        logger.info("closing %s (client id %r): %s", self.client.host, self.client_id, why)
        self.connection.close()

    # ---- what the connection says

    def frame_refused(self, size: int, limit: int) -> None:
        who = f"closing {self.client.host} (client id {self.client_id!r})"
        if is_http(size):
            self.refused = Refusal(
                f"{who}: it speaks HTTP to the listener {self.client.listener}, which is for Kafka clients"
            )
            self.connection.send((HTTP_ANSWER,))
        elif is_tls(size):
            self.refused = Refusal(f"{who}: it speaks TLS to the listener {self.client.listener}, ", spoke_tls=True)
        else:
            self.refused = Refusal(
                f"{who}: it announced a request of {size} bytes; socket.request.max.bytes allows {limit}"
            )

    def output_drained(self) -> None:
        self._resume()

    def connection_lost(self) -> None:
        self.share.close()
        for reply in self._pending:
            if reply.future is not None and reply.future is not self._running:
                reply.future.cancel()  # leaves purgatory; a running change ends by itself, unheard
        self._pending.clear()
        self._on_closed(self)
