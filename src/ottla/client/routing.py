"""Which broker a request goes to, and what happens when it was the wrong one, or none: leaders, coordinators, retries.

Retries end at a deadline, and only errors that Kafka's table calls retriable are retried. Everything here is steps (see
`steps`): no socket, no loop, no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, TypeVar

from ottla.client.addresses import Address
from ottla.client.errors import ClientError, ConnectionLost, CorruptAnswer, KafkaError, TimedOut, Unreachable, known
from ottla.client.steps import ANY, NEWEST, Ask, Attempts, Steps, begin, operation
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import messages
from ottla.protocol.codec import Message

GROUP: Final = 0
TRANSACTION: Final = 1
"""Kinds of coordinators."""
_BATCHED_FIND: Final = 4
MOVED: Final = (
    Errors.NOT_COORDINATOR,
    Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NETWORK_EXCEPTION,
    Errors.REQUEST_TIMED_OUT,
)

R = TypeVar("R", bound=Message)
T = TypeVar("T")

Outcomes = dict[TopicPartition, T | KafkaError]


class Routing:
    """What is known of the cluster. Only `learn` and the finding of coordinators add to it."""

    __slots__ = ("_epochs", "_leaderless", "bootstrap", "brokers", "controller", "coordinators", "leaders", "patient",
                 "timeout_s", "topic_ids")  # fmt: skip

    def __init__(self, bootstrap: Sequence[Address], timeout_s: float, *, patient: bool = False) -> None:
        self.bootstrap = tuple(bootstrap)
        self.timeout_s = timeout_s
        self.patient = patient
        """A cluster that nobody has seen yet is waited for too: who asks knows from elsewhere that there is one."""
        self.brokers: dict[int, Address] = {}
        self.controller = ANY
        self.leaders: dict[TopicPartition, int] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.coordinators: dict[tuple[int, str], int] = {}
        self._leaderless: set[TopicPartition] = set()
        self._epochs: dict[TopicPartition, int] = {}

    def addresses(self, broker: int) -> tuple[Address, ...]:
        """To be tried in this order. Raises ConnectionLost for a broker that nobody has heard of."""
        if broker == ANY:
            return tuple(dict.fromkeys((*self.bootstrap, *self.brokers.values())))
        if broker not in self.brokers:
            raise ConnectionLost(f"broker {broker}", "it is not in the cluster's metadata")
        return (self.brokers[broker],)

    def learn(self, response: messages.MetadataResponse) -> None:
        self.brokers = {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}
        self.controller = response.controller_id
        for topic in response.topics:
            if topic.error_code or topic.name is None:
                continue
            anew = self.topic_ids.get(topic.name) != topic.topic_id
            self.topic_ids[topic.name] = topic.topic_id
            for partition in topic.partitions:
                self._learn_leader(TopicPartition(topic.name, partition.partition_index), partition, anew=anew)

    def _learn_leader(
        self,
        place: TopicPartition,
        partition: messages.MetadataResponse.MetadataResponsePartition,
        *,
        anew: bool,
    ) -> None:
        # A broker that lags tells of an older leader: asking that one would lead back here (KIP-320).
        if not anew and 0 <= partition.leader_epoch < self._epochs.get(place, -1):
            return
        self._epochs[place] = partition.leader_epoch
        if partition.leader_id >= 0:
            self.leaders[place] = partition.leader_id
            self._leaderless.discard(place)
        else:
            self.leaders.pop(place, None)
            self._leaderless.add(place)

    def why_no_leader(self, place: TopicPartition) -> Errors:
        return Errors.LEADER_NOT_AVAILABLE if place in self._leaderless else Errors.UNKNOWN_TOPIC_OR_PARTITION

    def ids_of(self, topics: Iterable[str]) -> bool:
        """Whether all have one: a cluster may be too old to give ids."""
        return all(any(self.topic_ids.get(topic, b"")) for topic in topics)


# One broker.


def asking(
    request: Message, response: type[Message], *, broker: int = ANY, at_most: int = NEWEST, lane: str = ""
) -> Ask:
    """For a request that is the same in every version."""
    return Ask(broker, type(request), lambda _: request, response, at_most, lane=lane)


def ask_until_heard(routing: Routing, ask: Ask, response: type[R], attempts: Attempts | None = None) -> Steps[R]:
    """Asked again when the connection breaks, as Kafka's own admin client does. `attempts`: as part of them."""
    attempts = attempts or (yield from begin(ask.kind.__name__, routing.timeout_s))
    while True:
        try:
            return (yield from attempts.ask(ask, response))
        except (ConnectionLost, Unreachable) as error:
            # A cluster that was there may be restarting. One that never was is not waited for.
            if isinstance(error, Unreachable) and not routing.brokers and not routing.patient:
                raise
            yield from attempts.again(error)


def call(
    routing: Routing, request: Message, response: type[R], *, broker: int = ANY, at_most: int = NEWEST
) -> Steps[R]:
    """One request, one answer."""
    return ask_until_heard(routing, asking(request, response, broker=broker, at_most=at_most), response)


# Metadata.


@operation
def metadata(
    routing: Routing, topics: Iterable[str] | None = None, *, auto_create: bool = False
) -> Steps[messages.MetadataResponse]:
    """Of the named topics, or of all. What it says about brokers, leaders and ids is remembered."""
    return refresh(routing, topics, None, auto_create=auto_create)


def refresh(
    routing: Routing, topics: Iterable[str] | None, attempts: Attempts | None, *, auto_create: bool = False
) -> Steps[messages.MetadataResponse]:
    request = messages.MetadataRequest(
        topics=None if topics is None else [messages.MetadataRequest.MetadataRequestTopic(name=t) for t in topics],
        allow_auto_topic_creation=auto_create,
    )
    ask = asking(request, messages.MetadataResponse)
    response = yield from ask_until_heard(routing, ask, messages.MetadataResponse, attempts)
    routing.learn(response)
    return response


@operation
def partitions(routing: Routing, topic: str, *, auto_create: bool = False) -> Steps[list[int]]:
    """Sorted. Raises KafkaError for a topic that is not there."""
    attempts = yield from begin(f"finding the partitions of {topic}", routing.timeout_s)
    while True:
        (found,) = (yield from refresh(routing, [topic], attempts, auto_create=auto_create)).topics
        if not found.error_code:
            return sorted(partition.partition_index for partition in found.partitions)
        error = KafkaError(known(found.error_code), topic)
        # While a topic is being created Kafka answers as if it did not exist; without creation that is final.
        if not error.retriable or (not auto_create and error.error == Errors.UNKNOWN_TOPIC_OR_PARTITION):
            raise error
        yield from attempts.again(error)


def find_leaders(routing: Routing, places: Iterable[TopicPartition], attempts: Attempts | None = None) -> Steps[None]:
    """Returns when each has a leader. Raises KafkaError for one that is not there."""
    unled = [place for place in places if place not in routing.leaders]
    if not unled:
        return
    attempts = attempts or (yield from begin(f"finding the leader of {unled[0]}", routing.timeout_s))
    while True:
        for topic in (yield from refresh(routing, sorted({place.topic for place in unled}), attempts)).topics:
            error = KafkaError(known(topic.error_code), topic.name or "")
            if topic.error_code and (not error.retriable or error.error == Errors.UNKNOWN_TOPIC_OR_PARTITION):
                raise error
        unled = [place for place in unled if place not in routing.leaders]
        if not unled:
            return
        missing = KafkaError(routing.why_no_leader(unled[0]), str(unled[0]))
        if missing.error == Errors.UNKNOWN_TOPIC_OR_PARTITION:
            raise missing
        yield from attempts.again(missing)


# Leaders.


class Work(Generic[R, T]):
    """What is asked of partitions' leaders."""

    __slots__ = ("answered", "at_most", "explain", "kind", "make", "read", "response")

    def __init__(
        self,
        kind: type[Message],
        response: type[R],
        make: Callable[[Sequence[TopicPartition], int], Message],
        read: Callable[[R, Sequence[TopicPartition]], Outcomes[T]],
        at_most: int = NEWEST,
        *,
        answered: bool = True,
        explain: Callable[[Attempts, int, Sequence[TopicPartition]], Steps[Outcomes[T]]] | None = None,
    ) -> None:
        """`make` gives the request of one leader, of the version that was agreed on. `explain` is asked when a leader
        broke the connection: outcomes for those it would break it for again."""
        self.kind = kind
        self.response = response
        self.make = make
        self.read = read
        self.at_most = at_most
        self.answered = answered
        self.explain = explain


def at_leaders(
    routing: Routing, places: Iterable[TopicPartition], work: Work[R, T], what: str, *, new_topics: bool = False
) -> Steps[Outcomes[T]]:
    """Asks each partition's leader; what fails with a retriable error is asked again, with fresh metadata, until the
    deadline. The last error stays in the outcome of its partition. With `new_topics` a topic that is unknown to its
    leader may just not have got there yet."""
    attempts = yield from begin(what, routing.timeout_s)
    outcomes: Outcomes[T] = {}
    left = list(places)
    while left:
        outcomes.update((yield from _ask_leaders(routing, left, work, attempts)))
        failed = {place: error for place in left if (error := _passing(outcomes[place], new_topics)) is not None}
        if not failed:
            break
        left = list(failed)
        try:
            yield from attempts.again(failed[left[0]])
            yield from refresh(routing, sorted({place.topic for place in left}), attempts)
        except TimedOut:
            break
    return outcomes


def _ask_leaders(
    routing: Routing, places: Sequence[TopicPartition], work: Work[R, T], attempts: Attempts
) -> Steps[Outcomes[T]]:
    unknown = {place.topic for place in places if place not in routing.leaders}
    if unknown:
        yield from refresh(routing, sorted(unknown), attempts)
    led: dict[int, list[TopicPartition]] = {}
    outcomes: Outcomes[T] = {}
    for place in places:
        leader = routing.leaders.get(place)
        if leader is None:
            outcomes[place] = KafkaError(routing.why_no_leader(place), str(place))
        else:
            led.setdefault(leader, []).append(place)
    asks = [_ask_leader(leader, theirs, work) for leader, theirs in led.items()]
    answers = yield from attempts.exchange(*asks)
    for (leader, theirs), answer in zip(led.items(), answers, strict=True):
        if isinstance(answer, ConnectionLost | Unreachable):
            outcomes.update({place: KafkaError(Errors.NETWORK_EXCEPTION, str(place), str(answer)) for place in theirs})
            if work.explain is not None and isinstance(answer, ConnectionLost):
                outcomes.update((yield from work.explain(attempts, leader, theirs)))
        elif isinstance(answer, ClientError):
            raise answer
        else:
            assert isinstance(answer, work.response)
            found: Outcomes[T] = _read(work, answer, theirs)
            outcomes.update(found)
    return outcomes


def _ask_leader(leader: int, places: Sequence[TopicPartition], work: Work[R, T]) -> Ask:
    return Ask(
        leader,
        work.kind,
        lambda version: work.make(places, version),
        work.response,
        work.at_most,
        answered=work.answered,
    )


def _read(work: Work[R, T], answer: R, places: Sequence[TopicPartition]) -> Outcomes[T]:
    found = work.read(answer, places)
    for place in found:
        if place not in places:
            raise CorruptAnswer(f"a {work.response.__name__} names {place}, which was not asked for")
    for place in places:
        if place not in found:
            raise CorruptAnswer(f"a {work.response.__name__} says nothing about {place}")
    return found


def _passing(outcome: object, new_topics: bool) -> KafkaError | None:
    """The error if it may pass by itself."""
    if not isinstance(outcome, KafkaError) or not outcome.retriable:
        return None
    return outcome if new_topics or outcome.error != Errors.UNKNOWN_TOPIC_OR_PARTITION else None


# Coordinators.


@operation
def coordinator(routing: Routing, kind: int, key: str) -> Steps[int]:
    """The broker that keeps a group or a transactional id. Remembered until it says that it does not."""
    attempts = yield from begin(f"finding the coordinator of {key}", routing.timeout_s)
    return (yield from find_coordinator(routing, kind, key, attempts))


def find_coordinator(routing: Routing, kind: int, key: str, attempts: Attempts) -> Steps[int]:
    if (kind, key) in routing.coordinators:
        return routing.coordinators[kind, key]

    def make(version: int) -> Message:
        if version < _BATCHED_FIND:
            return messages.FindCoordinatorRequest(key_type=kind, key=key)
        return messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])

    ask = Ask(ANY, messages.FindCoordinatorRequest, make, messages.FindCoordinatorResponse)
    while True:
        response = yield from ask_until_heard(routing, ask, messages.FindCoordinatorResponse, attempts)
        found = response.coordinators[0] if response.coordinators else response
        if not found.error_code:
            if found.node_id not in routing.brokers:
                yield from refresh(routing, [], attempts)
            routing.coordinators[kind, key] = found.node_id
            return found.node_id
        error = KafkaError(known(found.error_code), f"group {key}" if kind == GROUP else key)
        if not error.retriable:
            raise error
        yield from attempts.again(error)


def at_coordinator(
    routing: Routing,
    owner: tuple[int, str],
    ask: Ask,
    response: type[R],
    error_of: Callable[[R], int | tuple[int, str | None]],
    *,
    timeout_s: float | None = None,
) -> Steps[tuple[int, R]]:
    """Asks whoever coordinates `owner` (kind and key) by now, until it gives an answer that holds: its id, and the
    answer. `error_of` finds an
    answer's error, and perhaps a word about it. Raises KafkaError for one that will not pass."""
    subject = f"group {owner[1]}" if owner[0] == GROUP else owner[1]
    attempts = yield from begin(f"{ask.kind.__name__} of {owner[1]}", timeout_s or routing.timeout_s)
    while True:
        trouble: ClientError
        try:
            broker = yield from find_coordinator(routing, *owner, attempts)
            answer = yield from attempts.ask(ask.of(broker), response)
        except (ConnectionLost, Unreachable) as lost:
            trouble = lost
            routing.coordinators.pop(owner, None)
        else:
            found = error_of(answer)
            code, message = (found, None) if isinstance(found, int) else found
            error = known(code)
            if error == Errors.NONE:
                return broker, answer
            trouble = KafkaError(error, subject, message)
            if not error.retriable:
                raise trouble
            if error in MOVED:
                routing.coordinators.pop(owner, None)
        yield from attempts.again(trouble)


def ask_coordinator(
    routing: Routing, owner: tuple[int, str], ask: Ask, response: type[R], *, timeout_s: float, find_again: bool
) -> Steps[R]:
    """One attempt, for who decides itself what an answer means. Raises what stands in place of one."""
    if find_again:
        routing.coordinators.pop(owner, None)
    attempts = yield from begin(f"{ask.kind.__name__} of {owner[1]}", timeout_s)
    broker = yield from find_coordinator(routing, *owner, attempts)
    (answer,) = yield from attempts.exchange(ask.of(broker), at_most_s=timeout_s)
    if isinstance(answer, ClientError):
        raise answer
    assert isinstance(answer, response)
    return answer
