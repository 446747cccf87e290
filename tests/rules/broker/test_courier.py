"""Requests to other brokers that share the way: what is on it, what waits, and who is waited for."""

from asyncio import sleep
from collections.abc import Iterator
from random import Random

import pytest

from ottla.broker.coordination.courier import Courier, Neighbours
from ottla.broker.events import Events
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.settings.configs import Configs
from ottla.broker.waiting.requests import WaitingRequests
from ottla.metadata.image import EMPTY, BrokerRegistration, Endpoint
from ottla.metrics.counts import Traffic
from ottla.model.ids import BrokerId, Uuid
from ottla.model.properties import Settings
from ottla.net.peer import Address, Outcome, Then, Unreachable
from ottla.protocol import messages
from ottla.protocol.codec import Message, Request, ResponseT_co
from ottla.replication.leader import Brokers
from ottla.testing.sim.loop import SimLoop
from ottla.testing.sim.world import SimClock

Topic = messages.MetadataRequest.MetadataRequestTopic
ME, OTHER, THIRD = BrokerId(1), BrokerId(2), BrokerId(3)


class Silence:
    """Takes requests, and answers when it is told to."""

    def __init__(self) -> None:
        self.traffic: dict[str, Traffic] = {}
        self.asked: list[tuple[int, Message, Then]] = []

    def send(self, to: Address, request: Message, then: Then, *, timeout_ms: int, lane: str = "") -> None:
        self.asked.append((to.port, request, then))

    async def ask(
        self, to: Address, request: Request[ResponseT_co], *, timeout_ms: int, lane: str = ""
    ) -> ResponseT_co:
        raise AssertionError("a courier sends")

    def close(self) -> None: ...


def registered(broker_id: int, *, fenced: bool = False) -> BrokerRegistration:
    endpoint = Endpoint("PLAINTEXT", "127.0.0.1", broker_id, 0)
    return BrokerRegistration(broker_id, 5, Uuid(bytes(16)), (endpoint,), {}, None, fenced, False, (), ())


class Scene:
    def __init__(self) -> None:
        self.loop = SimLoop(Random(1))
        clock = SimClock(self.loop)
        self.replicas = Replicas(ME, [], WaitingRequests(self.loop, clock), clock, Events())
        self.peers = Silence()
        configs = Configs(Settings.defaults("/data"), ME, EMPTY)
        self.told: list[tuple[list[str], Outcome]] = []
        self.courier: Courier[str] = Courier(
            Neighbours(self.loop, self.peers, self.replicas, configs),
            "test",
            lambda items: messages.MetadataRequest(topics=[Topic(name=item) for item in items]),
            lambda items, outcome: self.told.append((items, outcome)),
        )
        self.follow()

    def follow(self, *fenced: int) -> None:
        self.replicas.brokers = Brokers({each: registered(each, fenced=each in fenced) for each in (ME, OTHER, THIRD)})
        self.courier.on_metadata()

    def post(self, broker_id: int, *items: str) -> None:
        for item in items:
            self.courier.post(broker_id, item)
        self.loop.run_until_complete(sleep(0))

    def on_the_way(self) -> list[tuple[int, list[str]]]:
        found = []
        for port, request, _ in self.peers.asked:
            assert isinstance(request, messages.MetadataRequest) and request.topics is not None
            found.append((port, [topic.name or "" for topic in request.topics]))
        return found

    def answer(self, number: int, outcome: Outcome) -> None:
        self.peers.asked[number][2](outcome)
        self.loop.run_until_complete(sleep(0))


@pytest.fixture
def scene() -> Iterator[Scene]:
    found = Scene()
    yield found
    found.loop.close()


def test_what_comes_while_a_request_is_on_its_way_shares_the_next_one(scene: Scene) -> None:
    scene.post(OTHER, "a", "b")
    scene.post(OTHER, "c")
    scene.post(OTHER, "d")
    scene.post(THIRD, "e")
    assert scene.on_the_way() == [(OTHER, ["a", "b"]), (THIRD, ["e"])]
    answer = messages.MetadataResponse()
    scene.answer(0, answer)
    assert scene.told == [(["a", "b"], answer)]
    assert scene.on_the_way()[2:] == [(OTHER, ["c", "d"])]


def test_who_is_fenced_is_not_waited_for_and_what_it_says_later_is_not_heard(scene: Scene) -> None:
    """A marker would reach the partition's new leader only when the old one's request timed out, after half a minute;
    until then no reader of committed records gets on."""
    scene.post(OTHER, "a")
    scene.post(OTHER, "b")
    scene.post(THIRD, "c")
    scene.follow(OTHER)
    ((items, outcome),) = scene.told
    assert items == ["a", "b"] and isinstance(outcome, Unreachable)
    scene.answer(0, messages.MetadataResponse())
    assert len(scene.told) == 1

    scene.follow()
    scene.post(OTHER, "d")
    scene.answer(0, messages.MetadataResponse())
    assert scene.on_the_way()[1:] == [(THIRD, ["c"]), (OTHER, ["d"])]
    answer = messages.MetadataResponse()
    scene.answer(2, answer)
    assert scene.told[1:] == [(["d"], answer)]


def test_what_was_posted_just_before_a_broker_was_fenced_is_not_sent_to_it(scene: Scene) -> None:
    scene.courier.post(OTHER, "a")
    scene.follow(OTHER)
    scene.loop.run_until_complete(sleep(0))
    ((items, outcome),) = scene.told
    assert items == ["a"] and isinstance(outcome, Unreachable)
    assert scene.on_the_way() == []
