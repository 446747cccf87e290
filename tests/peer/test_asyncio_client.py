"""A member of a group at Apache Kafka's coordinator, and the asyncio face at its broker."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from ottla.client import admin, groups
from ottla.client.addresses import parse_bootstrap
from ottla.client.aio.cluster import Cluster
from ottla.client.aio.member import Member
from ottla.client.aio.producer import Producer
from ottla.client.aio.reader import Reader
from ottla.client.aio.transactions import TransactionalProducer
from ottla.client.errors import KafkaError
from ottla.client.membership import Assigned, MemberSettings, Peer
from ottla.model.ids import TopicPartition
from tests.support.nodes import ApacheKafka

pytestmark = pytest.mark.jvm

SETTINGS = MemberSettings("workers", "connect", session_timeout_ms=10_000, heartbeat_interval_ms=200)
PATIENCE_S = 120.0


def halves(protocol: str, peers: Sequence[Peer]) -> dict[str, bytes]:
    names = sorted(peer.member_id for peer in peers)
    return {name: bytes(range(6))[index :: len(names)] for index, name in enumerate(names)}


class Owner:
    def __init__(self) -> None:
        self.parts: asyncio.Queue[Assigned] = asyncio.Queue()

    async def prepare(self) -> Sequence[tuple[str, bytes]]:
        return [("shares", b"meta")]

    async def assigned(self, part: Assigned) -> None:
        self.parts.put_nowait(part)

    def lost(self) -> None:
        raise AssertionError("nothing was to be lost")


async def members_share(client: Cluster) -> None:
    owners = [Owner(), Owner()]
    members = [Member(client, SETTINGS, halves, owner) for owner in owners]
    lives = [asyncio.create_task(members[0].run())]
    alone = await owners[0].parts.get()
    assert (alone.leads, alone.assignment) == (True, bytes(range(6)))
    lives.append(asyncio.create_task(members[1].run()))
    first, second = await owners[0].parts.get(), await owners[1].parts.get()
    assert first.generation == second.generation
    assert sorted(first.assignment + second.assignment) == list(range(6))
    assert (first.leads, second.leads) == (True, False)
    described = await groups.describe(client, "workers")
    assert (described.state, len(described.members)) == ("Stable", 2)
    members[0].leave()
    await lives[0]
    last = await owners[1].parts.get()
    assert (last.leads, last.assignment) == (True, bytes(range(6)))
    members[1].leave()
    await lives[1]


async def an_instance_id_has_one_owner(client: Cluster) -> None:
    settings = SETTINGS._replace(group="static", instance_id="i")

    class Fenced(Owner):
        def lost(self) -> None:
            return

    older, newer = Fenced(), Owner()
    life = asyncio.create_task(Member(client, settings, halves, older).run())
    await older.parts.get()
    member = Member(client, settings, halves, newer)
    successor = asyncio.create_task(member.run())
    with pytest.raises(KafkaError, match="FENCED_INSTANCE_ID"):
        await life
    await newer.parts.get()
    member.leave()
    await successor


async def records_and_transactions(client: Cluster) -> None:
    place = TopicPartition("exact", 0)
    await admin.create_topics(client, [admin.NewTopic("exact", 1, 1)])
    async with Producer(client) as producer:
        assert (await producer.send("exact", b"a")).offset == 0
    async with TransactionalProducer(client, "t") as producer:
        async with producer.transaction():
            await producer.send("exact", b"b")
            await producer.send_offsets("g", {place: 1})
        with pytest.raises(RuntimeError):
            async with producer.transaction():
                await producer.send("exact", b"never")
                raise RuntimeError
        async with producer.transaction():
            await producer.send("exact", b"c")
    read: list[bytes | None] = []
    async with Reader(client, {place: (0, None)}) as reader:
        while len(read) < 3:
            read += [record.value for fetched in await reader.poll() for record in fetched.records]
    assert read == [b"a", b"b", b"c"]
    assert (await groups.committed(client, "g"))[place].offset == 1


@pytest.mark.matrix
def test_the_asyncio_face_and_its_members_are_at_home_at_apache_kafka(tmp_path: Path) -> None:
    async def main(bootstrap: str) -> None:
        async with asyncio.timeout(PATIENCE_S), Cluster(parse_bootstrap(bootstrap), timeout_s=60) as client:
            await members_share(client)
            await an_instance_id_has_one_owner(client)
            await records_and_transactions(client)

    with ApacheKafka(tmp_path) as kafka:
        asyncio.run(main(kafka.bootstrap))
