"""What a request names is looked up, not searched for: the work grows with the names, not with their square.

A frame of one megabyte names a hundred thousand things, and all of it is answered in one step of the loop.
"""

import asyncio
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from ottla.broker.handlers import (
    k19_create_topics,
    k21_delete_records,
    k37_create_partitions,
    k50_describe_user_scram_credentials,
    k51_alter_user_scram_credentials,
    k75_describe_topic_partitions,
)
from ottla.broker.partition import Partition
from ottla.broker.waiting.purgatory import ProduceWait
from ottla.controller.permits import UNLIMITED
from ottla.controller.topics import NewTopics, create_partitions, create_topics
from ottla.metrics.counts import TopicCounts
from ottla.model.ids import ZERO_UUID, Millis
from ottla.protocol import messages as m
from tests.rules.controller.scene import Scene

MANY = 1500
FEW_LOOKS = 8
"""At each name: hashes collide, and some steps look twice. The square would be hundreds."""


class Name(str):
    """Counts how often somebody looks whether it is another."""

    __slots__ = ()
    looks: ClassVar[int] = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Name.looks += 1
        return str.__eq__(self, other)


def names(prefix: str = "name", count: int = MANY) -> list[str]:
    return [Name(f"{prefix}-{i:05}") for i in range(count)]


def looks_of(work: Callable[[], Any]) -> int:
    Name.looks = 0
    work()
    return Name.looks


def session(*, may: bool) -> Any:
    def answer(*_: Any) -> bool:
        return may

    client = SimpleNamespace(
        may=answer, sees=answer, operations=lambda *_: 0, principal="User:alice", by_token=False, listener="SSL"
    )
    return SimpleNamespace(client=client, client_id="test")


class Decides:
    """Services of a node whose controller does as asked."""

    def __init__(self, scene: Scene, answer: Any) -> None:
        self.control_plane = self
        self.image, self.settings = scene.image, scene.settings
        self.limits = SimpleNamespace(partitions_per_response=2000)
        self.configs = self
        self._answer = answer

    async def decide(self, request: Any, *_: Any, **__: Any) -> Any:
        return self._answer(request)

    async def seen_here(self, arrived: Callable[[Any], bool]) -> None:
        arrived(self.image)


def services(answer: Any = None, scene: Scene | None = None) -> Any:
    return Decides(scene or Scene(), answer)


def describe_topics(*, may: bool) -> None:
    asked = m.DescribeTopicPartitionsRequest(
        topics=[m.DescribeTopicPartitionsRequest.TopicRequest(name) for name in names()]
    )
    k75_describe_topic_partitions.handle(services(), session(may=may), asked, 0)


def create(*, may: bool) -> None:
    asked = m.CreateTopicsRequest(topics=[m.CreateTopicsRequest.CreatableTopic(name) for name in names()])
    there = services(lambda _: m.CreateTopicsResponse())
    asyncio.run(k19_create_topics.handle(there, session(may=may), asked, 7))


def more_partitions(*, may: bool) -> None:
    kind = m.CreatePartitionsRequest
    asked = kind(topics=[kind.CreatePartitionsTopic(name, 3) for name in names()])
    there = services(lambda _: m.CreatePartitionsResponse())
    asyncio.run(k37_create_partitions.handle(there, session(may=may), asked, 3))


def describe_users(*, may: bool) -> None:
    kind = m.DescribeUserScramCredentialsRequest
    k50_describe_user_scram_credentials.handle(
        services(), session(may=may), kind(users=[kind.UserName(name) for name in names()]), 0
    )


def alter_users(*, may: bool) -> None:
    kind = m.AlterUserScramCredentialsRequest
    changes = [kind.ScramCredentialDeletion(name, 1) for name in names()]
    result = m.AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    refused = [result(user=name, error_code=91) for name in names("other")]
    there = services(lambda _: m.AlterUserScramCredentialsResponse(results=refused))
    asyncio.run(k51_alter_user_scram_credentials.handle(there, session(may=may), kind(deletions=changes), 0))


def delete_records(*, may: bool) -> None:
    """Many partitions wait for their followers, and come to the end of their time together."""
    kind = m.DeleteRecordsResponse
    result = kind.DeleteRecordsPartitionResult
    response = kind(topics=[kind.DeleteRecordsTopicResult(name, [result(0)]) for name in names()])
    behind: dict[object, int] = {Partition(name, ZERO_UUID, 0, TopicCounts()): 5 for name in names()}
    parked: list[ProduceWait] = []
    loop = asyncio.new_event_loop()
    waiting = SimpleNamespace(
        loop=loop,
        deadline=Millis,
        park_delete=lambda wait, _: parked.append(wait),
        followers_changed=lambda _: None,
    )
    answer = k21_delete_records._wait(SimpleNamespace(waiting=waiting), response, behind, 1000)  # type: ignore[arg-type]
    parked[0].resume(None)  # type: ignore[operator]  # whoever waits gives it what is to be done then
    assert answer.result() is response
    loop.close()


def own_repeats(*, may: bool) -> None:
    """Names that come twice, of topics that take no partition of what a request may create."""
    twice = names() + names()
    scene = Scene()
    asked = m.CreateTopicsRequest(
        topics=[m.CreateTopicsRequest.CreatableTopic(name, num_partitions=0, replication_factor=1) for name in twice]
    )
    ids: Any = [i.to_bytes(16, "big") for i in range(1, len(twice) + 1)]
    create_topics(scene.image, scene.settings, {}, NewTopics(asked, ids))
    kind = m.CreatePartitionsRequest
    create_partitions(scene.image, kind(topics=[kind.CreatePartitionsTopic(name, 3) for name in twice]), UNLIMITED)


WORK: Iterable[Callable[..., None]] = (
    describe_topics,
    create,
    more_partitions,
    describe_users,
    alter_users,
    delete_records,
    own_repeats,
)


@pytest.mark.parametrize("may", [False, True], ids=["refused", "allowed"])
@pytest.mark.parametrize("work", WORK)
def test_a_request_with_many_names_looks_at_each_a_few_times(work: Callable[..., None], *, may: bool) -> None:
    assert looks_of(lambda: work(may=may)) <= FEW_LOOKS * 2 * MANY
