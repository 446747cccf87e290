"""A cluster as a client sees it: brokers found from a bootstrap list, leaders found in metadata, attempts repeated.

Blocking. A connection per broker, opened on first use. Retries end at a deadline, and only errors that Kafka's table
calls retriable are retried.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from ottla.client.connection import Address, Connection
from ottla.client.deadline import Deadline
from ottla.client.errors import ConnectionLost, KafkaError, TimedOut, Unreachable, known
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import messages
from ottla.protocol.codec import Message

ANY: Final = -1
"""In place of a broker's id: whichever answers."""
CONNECT_TIMEOUT_S: Final = 5.0
REQUEST_TIMEOUT_S: Final = 15.0

R = TypeVar("R", bound=Message)
T = TypeVar("T")

Outcomes = dict[TopicPartition, T | KafkaError]


class Cluster:
    __slots__ = (
        "_bootstrap",
        "_client_id",
        "_connections",
        "_leaderless",
        "brokers",
        "leaders",
        "timeout_s",
        "topic_ids",
    )

    def __init__(self, bootstrap: Sequence[Address], *, client_id: str = "ottla", timeout_s: float = 30.0) -> None:
        self._bootstrap = tuple(bootstrap)
        self._client_id = client_id
        self._connections: dict[int, Connection] = {}
        self.timeout_s = timeout_s
        self.brokers: dict[int, Address] = {}
        self.leaders: dict[TopicPartition, int] = {}
        self._leaderless: set[TopicPartition] = set()
        self.topic_ids: dict[str, bytes] = {}

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def deadline(self) -> Deadline:
        return Deadline(self.timeout_s)

    # Connections.

    def connection(self, broker: int, deadline: Deadline) -> Connection:
        """Open already or opened now. For ANY an open one that is idle is preferred: most commands need just one."""
        if broker == ANY:
            for connection in self._connections.values():
                if not connection.busy:
                    return connection
        found = self._connections.get(broker)
        if found is None or broker == ANY:
            found = self._open_any(deadline) if broker == ANY else self._open(broker, deadline)
            self.drop(broker)
            self._connections[broker] = found
        return found

    def _open(self, broker: int, deadline: Deadline) -> Connection:
        address = self.brokers.get(broker)
        if address is None:
            raise ConnectionLost(f"broker {broker}", "it is not in the cluster's metadata")
        try:
            return self._connect(address, deadline)
        except OSError as error:
            raise Unreachable({str(address): _reason(error)}) from error

    def _open_any(self, deadline: Deadline) -> Connection:
        reasons: dict[str, str] = {}
        for address in dict.fromkeys((*self._bootstrap, *self.brokers.values())):
            try:
                return self._connect(address, deadline)
            except OSError as error:
                reasons[str(address)] = _reason(error)
            except ConnectionLost as error:
                reasons[str(address)] = error.reason
        raise Unreachable(reasons)

    def _connect(self, address: Address, deadline: Deadline) -> Connection:
        return Connection.open(address, client_id=self._client_id, deadline=deadline.attempt(CONNECT_TIMEOUT_S))

    def drop(self, broker: int) -> None:
        """Forgets a connection that failed."""
        connection = self._connections.pop(broker, None)
        if connection is not None:
            connection.close()

    def _drop(self, connection: Connection) -> None:
        for broker, open_one in list(self._connections.items()):
            if open_one is connection:
                self.drop(broker)

    # Requests.

    def call(self, request: Message, response: type[R], *, broker: int = ANY, at_most: int = 0x7FFF) -> R:
        """One request, one answer; sent again when the connection breaks, as Kafka's own admin client does."""
        deadline = self.deadline()
        while True:
            try:
                return self.call_once(request, response, deadline, broker=broker, at_most=at_most)
            except ConnectionLost as error:
                deadline.pause(type(request).__name__, error)
            except Unreachable as error:
                # A cluster that was there may be restarting. One that never was is not waited for.
                if not self.brokers:
                    raise
                deadline.pause(type(request).__name__, error)

    def call_once(
        self, request: Message, response: type[R], deadline: Deadline, *, broker: int = ANY, at_most: int = 0x7FFF
    ) -> R:
        connection = self.connection(broker, deadline)
        try:
            return connection.call(request, response, deadline=deadline.attempt(REQUEST_TIMEOUT_S), at_most=at_most)
        except ConnectionLost:
            self._drop(connection)
            raise

    # Metadata.

    def metadata(self, topics: Iterable[str] | None = None, *, auto_create: bool = False) -> messages.MetadataResponse:
        """Of the named topics, or of all. What it says about brokers, leaders and ids is remembered."""
        request = messages.MetadataRequest(
            topics=None if topics is None else [messages.MetadataRequest.MetadataRequestTopic(name=t) for t in topics],
            allow_auto_topic_creation=auto_create,
        )
        response = self.call(request, messages.MetadataResponse)
        self._learn(response)
        return response

    def _learn(self, response: messages.MetadataResponse) -> None:
        self.brokers = {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}
        self._name_bootstrap_connection()
        for topic in response.topics:
            if topic.error_code or topic.name is None:
                continue
            self.topic_ids[topic.name] = topic.topic_id
            for partition in topic.partitions:
                place = TopicPartition(topic.name, partition.partition_index)
                if partition.leader_id >= 0:
                    self.leaders[place] = partition.leader_id
                    self._leaderless.discard(place)
                else:
                    self.leaders.pop(place, None)
                    self._leaderless.add(place)

    def _name_bootstrap_connection(self) -> None:
        """Now that ids are known, the first connection can serve as that of its broker."""
        connection = self._connections.get(ANY)
        if connection is None:
            return
        for broker, address in self.brokers.items():
            if address == connection.address and broker not in self._connections:
                self._connections[broker] = self._connections.pop(ANY)
                return

    def partitions(self, topic: str, *, auto_create: bool = False) -> list[int]:
        """Sorted. Raises KafkaError for a topic that is not there."""
        deadline = self.deadline()
        while True:
            (found,) = self.metadata([topic], auto_create=auto_create).topics
            if not found.error_code:
                return sorted(partition.partition_index for partition in found.partitions)
            error = KafkaError(known(found.error_code), topic)
            # While a topic is being created Kafka answers as if it did not exist; without creation that is final.
            if not error.retriable or (not auto_create and error.error == Errors.UNKNOWN_TOPIC_OR_PARTITION):
                raise error
            deadline.pause(f"finding the partitions of {topic}", error)

    # Work that belongs to leaders.

    def at_leaders(
        self,
        partitions: Iterable[TopicPartition],
        exchange: Callable[[int, Sequence[TopicPartition], Deadline], Outcomes[T]],
        what: str,
        *,
        new_topics: bool = False,
    ) -> Outcomes[T]:
        """Asks each partition's leader through `exchange`; what fails with a retriable error is asked again, with fresh
        metadata, until the deadline. The last error stays in the outcome of its partition. With `new_topics` a topic
        that is unknown to its leader may just not have got there yet."""
        deadline = self.deadline()
        outcomes: Outcomes[T] = {}
        left = list(partitions)
        while left:
            outcomes.update(self._ask_leaders(left, exchange, deadline))
            failed = {place: error for place in left if (error := _passing(outcomes[place], new_topics)) is not None}
            if not failed:
                break
            left = list(failed)
            try:
                deadline.pause(what, failed[left[0]])
            except TimedOut:
                break
            self.metadata(sorted({place.topic for place in left}))
        return outcomes

    def _ask_leaders(
        self,
        partitions: Sequence[TopicPartition],
        exchange: Callable[[int, Sequence[TopicPartition], Deadline], Outcomes[T]],
        deadline: Deadline,
    ) -> Outcomes[T]:
        unknown = {place.topic for place in partitions if place not in self.leaders}
        if unknown:
            self.metadata(sorted(unknown))
        groups: dict[int, list[TopicPartition]] = {}
        outcomes: Outcomes[T] = {}
        for place in partitions:
            leader = self.leaders.get(place)
            if leader is None:
                outcomes[place] = KafkaError(self._why_no_leader(place), str(place))
            else:
                groups.setdefault(leader, []).append(place)
        for leader, places in groups.items():
            try:
                outcomes.update(exchange(leader, places, deadline))
            except (ConnectionLost, Unreachable) as error:
                self.drop(leader)
                outcomes.update(
                    {place: KafkaError(Errors.NETWORK_EXCEPTION, str(place), str(error)) for place in places}
                )
        return outcomes

    def _why_no_leader(self, place: TopicPartition) -> Errors:
        return Errors.LEADER_NOT_AVAILABLE if place in self._leaderless else Errors.UNKNOWN_TOPIC_OR_PARTITION


def _passing(outcome: object, new_topics: bool) -> KafkaError | None:
    """The error if it may pass by itself."""
    if not isinstance(outcome, KafkaError) or not outcome.retriable:
        return None
    return outcome if new_topics or outcome.error != Errors.UNKNOWN_TOPIC_OR_PARTITION else None


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, socket.gaierror):
        return "the host name is not known"
    if error.errno == errno.ECONNREFUSED:
        return "nothing listens there"
    return error.strerror or str(error)
