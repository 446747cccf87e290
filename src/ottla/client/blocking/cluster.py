"""The blocking face: runs a client's steps with one socket per broker, opened on first use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from ottla.client import routing as routes
from ottla.client.addresses import Address
from ottla.client.blocking.connection import Connection
from ottla.client.blocking.deadline import Deadline, now_s, waited
from ottla.client.errors import ClientError, ConnectionLost, Unreachable
from ottla.client.routing import Routing
from ottla.client.security import PLAINTEXT, Security
from ottla.client.sockets import NO_WAY, why_lost, why_unreachable
from ottla.client.steps import ANY, NEWEST, Ask, Exchange, Heard, Pause, Steps
from ottla.model.ids import TopicPartition
from ottla.protocol import messages
from ottla.protocol.codec import Message

CONNECT_TIMEOUT_S: Final = 5.0

R = TypeVar("R", bound=Message)
T = TypeVar("T")


class Sent:
    """A request under way."""

    __slots__ = ("ask", "connection", "correlation")

    def __init__(self, ask: Ask, connection: Connection, correlation: int) -> None:
        self.ask = ask
        self.connection = connection
        self.correlation = correlation


class Cluster:
    __slots__ = ("_client_id", "_connections", "_security", "routing")

    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        client_id: str = "ottla",
        timeout_s: float = 30.0,
        patient: bool = False,
        security: Security = PLAINTEXT,
    ) -> None:
        """`patient`: see `Routing`."""
        self._client_id = client_id
        self._security = security
        self._connections: dict[int, Connection] = {}
        self.routing = Routing(bootstrap, timeout_s, patient=patient)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def until_s(self) -> float:
        """The end of an operation that begins now."""
        return now_s() + self.timeout_s

    def deadline(self) -> Deadline:
        return Deadline(self.timeout_s)

    # Steps.

    def run(self, steps: Steps[T]) -> T:
        try:
            action = next(steps)
            while True:
                action = steps.send(self._perform(action))
        except StopIteration as end:
            result: T = end.value
            return result

    def _perform(self, action: Exchange | Pause) -> Heard:
        if isinstance(action, Pause):
            return waited(action)
        under_way = [self._try_send(ask, action.until_s) for ask in action.asks]
        answers = tuple(
            sent if isinstance(sent, ClientError) else self._try_receive(sent, action.until_s) for sent in under_way
        )
        return Heard(now_s(), answers)

    def _try_send(self, ask: Ask, until_s: float) -> Sent | ClientError:
        try:
            return self.send(ask, until_s)
        except ClientError as error:
            return error

    def _try_receive(self, sent: Sent, until_s: float) -> Message | ClientError:
        try:
            return self.receive(sent, until_s)
        except ClientError as error:
            return error

    def send(self, ask: Ask, until_s: float) -> Sent:
        """Returns before it is answered."""
        connection = self._connection(ask.broker, until_s)
        try:
            version = connection.version_for(ask.kind, ask.at_most)
            correlation = connection.submit(
                ask.make(version), deadline=until_s, at_most=ask.at_most, expect_answer=ask.answered
            )
        except ConnectionLost:
            self._drop(connection)
            raise
        return Sent(ask, connection, correlation)

    def receive(self, sent: Sent, until_s: float) -> Message:
        if not sent.ask.answered:
            return sent.ask.response()
        try:
            return sent.connection.receive(sent.correlation, sent.ask.response, deadline=until_s)
        except ConnectionLost:
            self._drop(sent.connection)
            raise

    def abandon(self, sent: Sent) -> None:
        """Nobody wants its answer, which would be taken for that of a later request."""
        self._drop(sent.connection)

    # Connections.

    def _connection(self, broker: int, until_s: float) -> Connection:
        """Open already or opened now. For ANY an open one that is idle is preferred: most commands need just one."""
        if broker == ANY:
            for connection in self._connections.values():
                if not connection.busy:
                    return connection
        found = self._connections.get(broker) or self._first_one(broker)
        if found is None or broker == ANY:
            found = self._open(broker, until_s)
            replaced = self._connections.pop(broker, None)
            if replaced is not None:
                replaced.close()
            self._connections[broker] = found
        return found

    def _first_one(self, broker: int) -> Connection | None:
        """When ids are known, the connection that was opened without one can serve as that of its broker."""
        first = self._connections.get(ANY)
        if first is None or first.address != self.routing.brokers.get(broker):
            return None
        self._connections[broker] = self._connections.pop(ANY)
        return first

    def _open(self, broker: int, until_s: float) -> Connection:
        reasons: dict[str, str] = {}
        for address in self.routing.addresses(broker):
            try:
                until_s = min(until_s, now_s() + CONNECT_TIMEOUT_S)
                return Connection.open(address, client_id=self._client_id, deadline=until_s, security=self._security)
            except NO_WAY as error:
                reasons[str(address)] = why_unreachable(error)
            except ConnectionLost as error:
                reasons[str(address)] = why_lost(error.reason, self._security.protocol)
        raise Unreachable(reasons)

    def _drop(self, connection: Connection) -> None:
        connection.close()
        for broker, open_one in list(self._connections.items()):
            if open_one is connection:
                del self._connections[broker]

    # What is asked most.

    def call(self, request: Message, response: type[R], *, broker: int = ANY, at_most: int = NEWEST) -> R:
        """One request, one answer; sent again when the connection breaks."""
        return self.run(routes.call(self.routing, request, response, broker=broker, at_most=at_most))

    def metadata(self, topics: Iterable[str] | None = None, *, auto_create: bool = False) -> messages.MetadataResponse:
        return routes.metadata(self, topics, auto_create=auto_create)

    def partitions(self, topic: str, *, auto_create: bool = False) -> list[int]:
        """Sorted. Raises KafkaError for a topic that is not there."""
        return routes.partitions(self, topic, auto_create=auto_create)

    @property
    def timeout_s(self) -> float:
        return self.routing.timeout_s

    @property
    def brokers(self) -> dict[int, Address]:
        return self.routing.brokers

    @property
    def leaders(self) -> dict[TopicPartition, int]:
        return self.routing.leaders

    @property
    def topic_ids(self) -> dict[str, bytes]:
        return self.routing.topic_ids
