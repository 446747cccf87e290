"""Which broker is asked, what is asked again, and that every operation ends by its deadline. Time is a number here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client.addresses import Address
from ottla.client.errors import ClientError, ConnectionLost, KafkaError, TimedOut, Unreachable, UnsupportedApi
from ottla.client.routing import (
    GROUP,
    Outcomes,
    Routing,
    Work,
    asking,
    at_coordinator,
    at_leaders,
    call,
    coordinator,
    find_leaders,
    metadata,
)
from ottla.client.steps import ANY, Ask, Exchange, Heard, Pause, Steps
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import messages as m
from ottla.protocol.codec import Message
from tests.support.examples import examples

T = TypeVar("T")
Reply = Message | ClientError

PLACE = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)
LOST = ConnectionLost("somewhere:9092", "it broke")
NOWHERE = Unreachable({"somewhere:9092": "nothing listens there"})
TIMEOUT_S = 20.0


def routing() -> Routing:
    return Routing([Address("somewhere", 9092)], TIMEOUT_S)


def described(*leaders: int, epoch: int = 0, topic_id: bytes = b"i" * 16, controller: int = 1) -> m.MetadataResponse:
    """Topic `orders`, with the leader of each partition; three brokers."""
    kind = m.MetadataResponse
    partitions = [
        kind.MetadataResponsePartition(partition_index=index, leader_id=leader, leader_epoch=epoch)
        for index, leader in enumerate(leaders)
    ]
    return kind(
        brokers=[kind.MetadataResponseBroker(each, f"host{each}", 9092) for each in (1, 2, 3)],
        controller_id=controller,
        topics=[kind.MetadataResponseTopic(name="orders", topic_id=topic_id, partitions=partitions)],
    )


class Ran(NamedTuple):
    result: Any
    asked: list[tuple[float, int, str]]
    """When, whom, what."""
    ended_s: float


def run(steps: Steps[T], answer: Callable[[Ask, float], Reply], *, each_takes_s: float = 0.0) -> Ran:
    """Plays the face: a clock that moves by what is waited for."""
    now_s = 100.0
    asked: list[tuple[float, int, str]] = []
    try:
        action = next(steps)
        while True:
            if isinstance(action, Pause):
                now_s = max(now_s, action.until_s)
                action = steps.send(Heard(now_s))
                continue
            assert isinstance(action, Exchange)
            assert action.until_s <= 100.0 + TIMEOUT_S + 1e-6, "no attempt may outlast the operation"
            asked += [(now_s - 100.0, ask.broker, ask.kind.__name__) for ask in action.asks]
            answers = tuple(answer(ask, now_s) for ask in action.asks)
            now_s = min(now_s + each_takes_s, max(action.until_s, now_s))
            action = steps.send(Heard(now_s, answers))
    except StopIteration as end:
        return Ran(end.value, asked, now_s - 100.0)
    except ClientError as error:
        return Ran(error, asked, now_s - 100.0)


def script(*replies: Reply, of_metadata: Reply | None = None) -> Callable[[Ask, float], Reply]:
    """Metadata is always the same, everything else comes in order."""
    left = iter(replies)
    return lambda ask, _: (of_metadata or described(1, 2)) if ask.kind is m.MetadataRequest else next(left)


def producers(places: Iterable[TopicPartition], error: Errors = Errors.NONE) -> m.DescribeProducersResponse:
    kind = m.DescribeProducersResponse
    partitions = [kind.PartitionResponse(partition_index=place.partition, error_code=error) for place in places]
    return kind(topics=[kind.TopicResponse(name="orders", partitions=partitions)])


def outcomes(response: m.DescribeProducersResponse, _: object) -> Outcomes[str]:
    return {
        TopicPartition(topic.name, each.partition_index): KafkaError(Errors(each.error_code), topic.name)
        if each.error_code
        else "done"
        for topic in response.topics
        for each in topic.partitions
    }


WORK: Work[m.DescribeProducersResponse, str] = Work(
    m.DescribeProducersRequest, m.DescribeProducersResponse, lambda places, _: m.DescribeProducersRequest(), outcomes
)


def test_each_leader_is_asked_once_for_all_of_its_partitions() -> None:
    known = routing()
    third = TopicPartition("orders", 2)
    known.learn(described(1, 2, 1))
    ran = run(
        at_leaders(known, [PLACE, OTHER, third], WORK, "x"),
        lambda ask, _: producers([PLACE, third] if ask.broker == 1 else [OTHER]),
    )
    assert ran.result == {PLACE: "done", OTHER: "done", third: "done"}
    assert [broker for _, broker, _ in ran.asked] == [1, 2]


def test_what_failed_and_may_pass_is_asked_again_alone_with_fresh_metadata() -> None:
    known = routing()
    known.learn(described(1, 2))
    ran = run(
        at_leaders(known, [PLACE, OTHER], WORK, "x"),
        script(producers([PLACE]), LOST, producers([OTHER]), of_metadata=described(1, 3, epoch=1)),
    )
    assert ran.result == {PLACE: "done", OTHER: "done"}
    assert [(broker, kind) for _, broker, kind in ran.asked] == [
        (1, "DescribeProducersRequest"),
        (2, "DescribeProducersRequest"),
        (ANY, "MetadataRequest"),
        (3, "DescribeProducersRequest"),
    ]


def test_an_error_that_will_not_pass_is_the_outcome_of_its_partition() -> None:
    ran = run(at_leaders(routing(), [PLACE], WORK, "x"), script(producers([PLACE], Errors.TOPIC_AUTHORIZATION_FAILED)))
    assert isinstance(ran.result[PLACE], KafkaError)
    assert ran.result[PLACE].error == Errors.TOPIC_AUTHORIZATION_FAILED


def test_what_nobody_can_answer_is_raised() -> None:
    refusal = UnsupportedApi("host1:9092", "DescribeProducers", "it is not in the broker's list")
    assert run(at_leaders(routing(), [PLACE], WORK, "x"), script(refusal)).result is refusal


@pytest.mark.parametrize("said", [[], [PLACE, OTHER]], ids=["too little", "too much"])
def test_an_answer_must_be_about_what_was_asked(said: list[TopicPartition]) -> None:
    ran = run(at_leaders(routing(), [PLACE], WORK, "x"), script(producers(said)))
    assert "DescribeProducersResponse" in str(ran.result)


def test_kip_320_a_broker_that_lags_does_not_bring_an_older_leader_back() -> None:
    known = routing()
    known.learn(described(2, epoch=5))
    known.learn(described(1, epoch=4))
    assert known.leaders[PLACE] == 2
    known.learn(described(1, epoch=0, topic_id=b"another" + bytes(9)))  # made anew under the same name
    assert known.leaders[PLACE] == 1


def test_a_partition_without_a_leader_is_waited_for() -> None:
    known = routing()
    said = iter([described(-1), described(-1), described(3, epoch=1)])
    ran = run(find_leaders(known, [PLACE]), lambda *_: next(said))
    assert ran.result is None
    assert known.leaders == {PLACE: 3}


def test_pauses_between_attempts_grow_up_to_a_second() -> None:
    known = routing()
    known.learn(described(1))
    ran = run(call(known, m.ListGroupsRequest(), m.ListGroupsResponse), lambda *_: LOST)
    assert isinstance(ran.result, TimedOut)
    times = [at for at, _, _ in ran.asked]
    gaps = [round(later - earlier, 6) for earlier, later in pairwise(times)]
    assert gaps[:8] == [0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0]
    assert 19.0 < ran.ended_s <= TIMEOUT_S


def test_a_cluster_that_never_was_is_not_waited_for_but_one_that_was_is() -> None:
    assert run(metadata.steps(routing()), lambda *_: NOWHERE).asked == [(0.0, ANY, "MetadataRequest")]
    known = routing()
    known.learn(described(1))
    ran = run(metadata.steps(known), script(NOWHERE, of_metadata=NOWHERE))
    assert isinstance(ran.result, TimedOut)


def found(broker: int, error: Errors = Errors.NONE) -> m.FindCoordinatorResponse:
    return m.FindCoordinatorResponse(
        coordinators=[m.FindCoordinatorResponse.Coordinator("g", broker, "h", 1, error_code=error)]
    )


def beat(known: Routing) -> Steps[Any]:
    request = m.HeartbeatRequest("g", 1, "me")
    return at_coordinator(
        known,
        (GROUP, "g"),
        asking(request, m.HeartbeatResponse),
        m.HeartbeatResponse,
        lambda answer: answer.error_code,
    )


def test_a_coordinator_is_remembered_until_it_says_that_it_is_none() -> None:
    known = routing()
    known.learn(described(1))
    first = run(beat(known), script(found(2), m.HeartbeatResponse()))
    assert [kind for *_, kind in first.asked] == ["FindCoordinatorRequest", "HeartbeatRequest"]
    moved = m.HeartbeatResponse(error_code=Errors.NOT_COORDINATOR)
    second = run(beat(known), script(moved, found(3), m.HeartbeatResponse()))
    assert [(broker, kind) for _, broker, kind in second.asked] == [
        (2, "HeartbeatRequest"),
        (ANY, "FindCoordinatorRequest"),
        (3, "HeartbeatRequest"),
    ]
    assert second.result[0] == 3


def test_a_coordinator_that_still_loads_is_asked_again_and_not_looked_for() -> None:
    known = routing()
    known.learn(described(1))
    loading = m.HeartbeatResponse(error_code=Errors.COORDINATOR_LOAD_IN_PROGRESS)
    ran = run(beat(known), script(found(2), loading, m.HeartbeatResponse()))
    assert [kind for *_, kind in ran.asked] == ["FindCoordinatorRequest", "HeartbeatRequest", "HeartbeatRequest"]


def test_old_brokers_are_asked_for_one_coordinator_and_new_ones_for_a_list() -> None:
    steps = coordinator.steps(routing(), GROUP, "g")
    next(steps)
    exchange = steps.send(Heard(0.0))
    while isinstance(exchange, Pause):
        exchange = steps.send(Heard(0.0))
    (ask,) = exchange.asks
    assert ask.make(3) == m.FindCoordinatorRequest(key="g")
    assert ask.make(4) == m.FindCoordinatorRequest(coordinator_keys=["g"])


# Whatever is answered.

REPLIES = st.sampled_from(
    [
        LOST,
        NOWHERE,
        *(producers([PLACE], error) for error in Errors if error not in (Errors.UNKNOWN_SERVER_ERROR,)),
    ]
)
METADATA = st.sampled_from([described(1), described(2, epoch=1), described(-1, epoch=2), described(3, epoch=3), LOST])


@given(st.lists(REPLIES, min_size=1), st.lists(METADATA, min_size=1), st.floats(0, 30))
@settings(max_examples=examples(300), deadline=None)
def test_any_schedule_of_answers_ends_before_the_deadline(
    replies: list[Reply], described_as: list[Reply], each_takes_s: float
) -> None:
    turns = {"metadata": 0, "other": 0}

    def answer(ask: Ask, _: float) -> Reply:
        if ask.kind is m.MetadataRequest:
            turns["metadata"] += 1
            return described_as[turns["metadata"] % len(described_as)]
        turns["other"] += 1
        return replies[turns["other"] % len(replies)]

    known = routing()
    known.learn(described(1))
    ran = run(at_leaders(known, [PLACE], WORK, "x"), answer, each_takes_s=each_takes_s)
    assert ran.ended_s <= TIMEOUT_S + 1e-6
    assert isinstance(ran.result, ClientError) or list(ran.result) == [PLACE]
    assert len(ran.asked) < 200
