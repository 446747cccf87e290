"""What clients are told after a leader's death: librdkafka in two steps, the others at once what is the case."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.front.client import Client
from ottla.broker.handlers import k03_metadata
from ottla.broker.replicas.leader_news import LeaderNews
from ottla.broker.replicas.lost_leaders import AGAIN_MS, LINGER_MS, MOMENT_MS, LostLeaders
from ottla.broker.security.authorizer import AllowAll, Underway
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import EMPTY, MetadataImage
from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol import messages as m

TOPIC_ID = bytes(range(16))
RDKAFKA, JAVA = "librdkafka", "apache-kafka-java"
DIED = 100_000


def a_cluster() -> MetadataImage:
    """Two brokers; the second leads the only partition."""
    delta = MetadataDelta(EMPTY)
    for broker_id in (1, 2):
        endpoint = m.RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="here", port=9090 + broker_id)
        delta.replay(m.RegisterBrokerRecord(broker_id=broker_id, broker_epoch=5, end_points=[endpoint], fenced=False))
    delta.replay(m.TopicRecord(name="t", topic_id=TOPIC_ID))
    delta.replay(
        m.PartitionRecord(partition_id=0, topic_id=TOPIC_ID, replicas=[2, 1], isr=[2, 1], leader=2, leader_epoch=0)
    )
    return delta.apply(offset=1, epoch=1, timestamp=0)


class Watched(LeaderNews):
    """Tells when somebody begins to wait."""

    awaited: asyncio.Event

    async def next(self, until: Millis) -> None:
        self.awaited.set()
        await super().next(until)


Told = tuple[list[int], int, Errors]
"""The brokers of the answer, the leader of the partition, and its error."""


class Story:
    """Broker 2 dies, and the controller decides."""

    def __init__(self, *, again: bool = False, wait_ms: int = 1000) -> None:
        self.now = DIED
        self.clock: Any = SimpleNamespace(monotonic=lambda: Millis(self.now))
        self.image = a_cluster()
        self.news = Watched(self.clock, LostLeaders(wait_ms, self.image))
        if again:
            self.now -= AGAIN_MS - 1
            self.news.lost(2)
            self.news.reached(2)
            self.now = DIED
        self.news.lost(2)

    def decided(self) -> "Story":
        """Ten milliseconds later."""
        self.now = DIED + 10
        delta = MetadataDelta(self.image)
        delta.replay(m.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=5, fenced=1))
        delta.replay(m.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=[1], leader=1))
        self.image = delta.apply(offset=2, epoch=1, timestamp=0)
        self.news.on_metadata(delta, self.image)
        return self

    def told(self, software: str, now: int) -> Told:
        self.now = now
        return asyncio.run(self.telling(software))

    async def telling(self, software: str) -> Told:
        services: Any = SimpleNamespace(broker_id=1, control_plane=self, leader_news=self.news, clock=self.clock)
        client = Client.known_as("User:ANONYMOUS", "127.0.0.1", "PLAINTEXT", AllowAll(), Underway())
        session: Any = SimpleNamespace(client=client._replace(software_name=software, software_version="1"))
        asked = m.MetadataRequest(
            topics=[m.MetadataRequest.MetadataRequestTopic(name="t")], allow_auto_topic_creation=False
        )
        outcome = k03_metadata.handle(services, session, asked, 12)
        answer = outcome if isinstance(outcome, m.MetadataResponse) else await outcome
        (partition,) = answer.topics[0].partitions
        return [broker.node_id for broker in answer.brokers], partition.leader_id, Errors(partition.error_code)


@pytest.mark.parametrize("software", [RDKAFKA, "confluent-kafka-python"])
def test_librdkafka_hears_of_the_new_leader_first_and_of_the_old_ones_absence_later(software: str) -> None:
    story = Story().decided()
    fenced = DIED + 10
    assert story.told(software, fenced) == ([1, 2], 1, Errors.NONE)
    assert story.told(software, fenced + LINGER_MS) == ([1], 1, Errors.NONE)


def test_a_broker_that_died_again_is_gone_before_librdkafka_hears_of_new_leaders() -> None:
    story = Story(again=True).decided()
    assert story.told(RDKAFKA, DIED + 10) == ([1], -1, Errors.LEADER_NOT_AVAILABLE)
    assert story.told(RDKAFKA, DIED + MOMENT_MS) == ([1], 1, Errors.NONE)


@pytest.mark.parametrize("again", [True, False])
def test_others_are_told_what_is_the_case(again: bool) -> None:
    assert Story(again=again).decided().told(JAVA, DIED + 10) == ([1], 1, Errors.NONE)


@pytest.mark.parametrize("again", [True, False])
def test_without_a_wait_everybody_is_told_what_is_the_case(again: bool) -> None:
    assert Story(again=again, wait_ms=0).decided().told(RDKAFKA, DIED + 10) == ([1], 1, Errors.NONE)


LONG_MS = 3_600_000
"""Nothing but an event ends such a wait within a test."""


async def asked_before(story: Story, happens: Callable[[], object]) -> Told:
    """What a client is told whose question lay there before it happened."""
    story.news.awaited = asyncio.Event()
    asking = asyncio.create_task(story.telling(JAVA))
    async with asyncio.timeout(60):
        await story.news.awaited.wait()
        happens()
        return await asking


def test_who_waits_for_news_is_answered_with_the_verdict() -> None:
    story = Story(wait_ms=LONG_MS)
    assert asyncio.run(asked_before(story, story.decided)) == ([1], 1, Errors.NONE)


def test_who_waits_for_news_is_answered_when_the_lost_leader_is_reached_again() -> None:
    story = Story(wait_ms=LONG_MS)
    assert asyncio.run(asked_before(story, lambda: story.news.reached(2))) == ([1, 2], 2, Errors.NONE)


def test_who_waits_for_news_is_answered_when_there_will_be_none() -> None:
    story = Story(wait_ms=1)

    def too_late() -> None:
        story.now += 1

    assert asyncio.run(asked_before(story, too_late)) == ([1, 2], 2, Errors.NONE)
