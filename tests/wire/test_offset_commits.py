"""What an offset commit is answered, the short way that nearly all of them go and the long way alike."""

import asyncio
from pathlib import Path
from random import Random
from struct import pack
from typing import Any

import pytest

from ottla.model.errors import Errors
from ottla.model.permissions import Operation, Resource
from ottla.model.properties import Settings
from ottla.node.node import Node
from ottla.protocol import messages as m
from ottla.protocol.frames import RequestHeader, encode_request
from ottla.protocol.ordinary_commit import DECODERS, FIRST_VERSION, OrdinaryCommit
from tests.support.authorizing import ByFunction
from tests.support.wire import Wire

Topic = m.OffsetCommitRequest.OffsetCommitRequestTopic
Partition = m.OffsetCommitRequest.OffsetCommitRequestPartition

VERSIONS = range(FIRST_VERSION, 11)
BY_TOPIC_ID = 10
DENIED = ("secret", "secret-and-absent")
TOPICS = ("open", "wide", "absent", *DENIED)
SOME_TAG = b"\x01\xa8\x46\x00"
"""One tagged field that no version knows, in place of none: the short way does not take it."""


class Doorkeeper(ByFunction):
    def allows(self, operation: Operation, resource: Resource, name: str) -> bool:
        return operation == Operation.CREATE or name not in (*DENIED, "closed")


class Members:
    """A member of a classic group and one of a consumer group, and the ids of the topics."""

    def __init__(self, wire: Wire) -> None:
        created = wire.ask(
            m.CreateTopicsRequest(
                topics=[
                    m.CreateTopicsRequest.CreatableTopic(*each)
                    for each in (("open", 3, 1), ("wide", 4, 1), ("secret", 1, 1))
                ]
            )
        )
        self.topic_ids = {topic.name: topic.topic_id for topic in created.topics}
        while wire.ask(m.FindCoordinatorRequest(coordinator_keys=["classic"])).coordinators[0].error_code:
            pass
        self.known = {"classic": self._classic(wire), "modern": self._modern(wire)}
        """Group to member id and generation."""

    def _classic(self, wire: Wire) -> tuple[str, int]:
        protocol = m.JoinGroupRequest.JoinGroupRequestProtocol("range", b"")
        join = m.JoinGroupRequest("classic", 60_000, 60_000, "", None, "consumer", [protocol])
        while (joined := wire.ask(join)).error_code:
            join.member_id = joined.member_id
        assignment = m.SyncGroupRequest.SyncGroupRequestAssignment(joined.member_id, b"")
        sync = m.SyncGroupRequest(
            "classic", joined.generation_id, joined.member_id, None, "consumer", "range", [assignment]
        )
        assert wire.ask(sync).error_code == 0
        return joined.member_id, joined.generation_id

    def _modern(self, wire: Wire) -> tuple[str, int]:
        answer = wire.ask(
            m.ConsumerGroupHeartbeatRequest(
                "modern",
                "a-member",
                0,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=["open"],
                topic_partitions=[],
            )
        )
        assert answer.error_code == 0
        return "a-member", answer.member_epoch


def some_commit(dice: Random, members: Members, version: int) -> m.OffsetCommitRequest:
    group = dice.choice(("classic", "modern", "simple", "none", "closed"))
    member_id, generation = members.known.get(group, ("", -1 if group == "simple" else 4))
    if dice.random() < 0.2:
        member_id = dice.choice(("", "stranger"))
    generation += dice.choice((0, 0, 0, 0, 1, -1))
    topics = []
    for name in dice.sample(TOPICS, dice.choice((1, 1, 2, 3))):
        partitions = [
            Partition(
                index, dice.randrange(1000), dice.choice((-1, 0, 3)), dice.choice(("", "", "", None, "x", "x" * 5000))
            )
            for index in dice.sample(range(5), dice.choice((1, 2, 3)))
        ]
        topic_id = members.topic_ids.get(name, name.encode().ljust(16)[:16])
        topics.append(Topic("", topic_id, partitions) if version >= BY_TOPIC_ID else Topic(name, bytes(16), partitions))
    return m.OffsetCommitRequest(group, generation, member_id, dice.choice((None, None, None, "static")), topics=topics)


def answered(wire: Wire, frame: bytes) -> bytes:
    wire.send_bytes(frame)
    return bytes(wire.receive_frame())


def both_ways(wire: Wire, request: m.OffsetCommitRequest, version: int) -> tuple[bytes, bytes]:
    frame = encode_request(RequestHeader(request.API_KEY, version, 7, None), request)
    assert frame.endswith(b"\0")
    tagged = frame[4:-1] + SOME_TAG
    return answered(wire, frame), answered(wire, pack(">i", len(tagged)) + tagged)


def is_ordinary(request: m.OffsetCommitRequest, version: int) -> bool:
    return isinstance(DECODERS[version](memoryview(request.encode(version)), 0)[0], OrdinaryCommit)


def talk(bootstrap: str) -> None:
    dice = Random(13)
    seen: set[tuple[bool, int]] = set()
    with Wire(bootstrap) as wire:
        members = Members(wire)
        for _ in range(600):
            version = dice.choice(VERSIONS)
            request = some_commit(dice, members, version)
            short, long = both_ways(wire, request, version)
            assert short == long, (version, request)
            answer: Any = m.OffsetCommitResponse.decode(memoryview(short), version, 5)
            errors = {each.error_code for topic in answer.topics for each in topic.partitions}
            seen |= {(is_ordinary(request, version), error) for error in errors}
    ordinary = {Errors(error) for short, error in seen if short}
    assert ordinary >= {
        Errors.NONE,
        Errors.GROUP_AUTHORIZATION_FAILED,
        Errors.GROUP_ID_NOT_FOUND,
        Errors.ILLEGAL_GENERATION,
        Errors.STALE_MEMBER_EPOCH,
        Errors.TOPIC_AUTHORIZATION_FAILED,
        Errors.UNKNOWN_MEMBER_ID,
        Errors.UNKNOWN_TOPIC_ID,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert (False, Errors.OFFSET_METADATA_TOO_LARGE) in seen


def ask_about_topics(bootstrap: str) -> None:
    """By name: who may not read a topic does not learn whether there is one."""
    request = m.OffsetCommitRequest(
        "simple", -1, "", None, topics=[Topic(name, bytes(16), [Partition(0, 5)]) for name in TOPICS]
    )
    with Wire(bootstrap) as wire:
        Members(wire)
        answer = wire.ask(request, BY_TOPIC_ID - 1)
    assert {topic.name: Errors(topic.partitions[0].error_code) for topic in answer.topics} == {
        "open": Errors.NONE,
        "wide": Errors.NONE,
        "absent": Errors.UNKNOWN_TOPIC_OR_PARTITION,
        "secret": Errors.TOPIC_AUTHORIZATION_FAILED,
        "secret-and-absent": Errors.TOPIC_AUTHORIZATION_FAILED,
    }


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(talk, id="both ways give the same answer"),
        pytest.param(ask_about_topics, id="a topic one may not read is told apart from none by nobody"),
    ],
)
def test_offset_commits(tmp_path: Path, story: Any) -> None:
    async def main() -> None:
        settings = Settings.defaults(
            str(tmp_path),
            listeners="PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            ottla_disk_reserve_bytes="0",
            group_initial_rebalance_delay_ms="0",
        )
        node = Node(settings, Doorkeeper())
        await node.start()
        try:
            await asyncio.to_thread(story, node.bootstrap_servers)
        finally:
            await node.stop()

    asyncio.run(main())
