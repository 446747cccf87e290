"""The asyncio face of the client against real nodes: what registry, Connect, SQL and console stand on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

import pytest

from ottla.client import admin, groups
from ottla.client.addresses import parse_bootstrap
from ottla.client.aio.cluster import Cluster as Client
from ottla.client.aio.member import Member
from ottla.client.aio.producer import Producer, Written
from ottla.client.aio.reader import Reader
from ottla.client.aio.transactions import TransactionalProducer
from ottla.client.errors import ClientError, KafkaError, LoginFailed, Unreachable
from ottla.client.membership import Assigned, MemberSettings, Peer
from ottla.client.offsets import EARLIEST, LATEST, Found, list_offsets, offset_of
from ottla.client.security import Security
from ottla.client.transacting import Fenced
from ottla.model.ids import TopicPartition
from ottla.protocol import messages as m
from ottla.security.sasl.speaker import Credentials
from ottla.testing import Cluster
from tests.support.nodes import free_ports

T = TypeVar("T")
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def one() -> Iterator[Cluster]:
    with Cluster(1, transaction_state_log_num_partitions=1, offsets_topic_num_partitions=1) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    with Cluster(3, offsets_topic_num_partitions=1) as kafka:
        yield kafka


def run(kafka: Cluster, work: Callable[[Client], Awaitable[T]], *, security: Security = Security()) -> T:  # noqa: B008
    async def main() -> T:
        addresses = parse_bootstrap(kafka.bootstrap_servers)
        async with asyncio.timeout(PATIENCE_S), Client(addresses, timeout_s=20, security=security) as client:
            return await work(client)

    return asyncio.run(main())


async def create(client: Client, topic: str, partitions: int = 1, replicas: int = 1) -> list[TopicPartition]:
    made = await admin.create_topics(client, [admin.NewTopic(topic, partitions, replicas)])
    assert not isinstance(made[topic], KafkaError), made
    return [TopicPartition(topic, index) for index in range(partitions)]


async def values(client: Client, places: Sequence[TopicPartition], count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    async with Reader(client, dict.fromkeys(places, (0, None))) as reader:
        async for fetched in reader:
            found += [record.value for record in fetched.records]
            if len(found) >= count:
                return found
    raise AssertionError("a reader that follows has no end")


# Produce and read.


def test_what_is_written_is_read_at_the_offset_that_was_told(one: Cluster) -> None:
    async def work(client: Client) -> None:
        (place,) = await create(client, "written")
        async with Producer(client) as producer:
            told = [await producer.send("written", value, key=b"k") for value in (b"a", b"b", b"c")]
        assert [each.offset for each in told] == [0, 1, 2]
        async with Reader(client, {place: (1, 3)}) as reader:
            read = [(record.offset, record.value) async for fetched in reader for record in fetched.records]
        assert read == [(1, b"b"), (2, b"c")]

    run(one, work)


def test_records_that_are_posted_together_travel_together_and_keep_their_order(one: Cluster) -> None:
    async def work(client: Client) -> None:
        places = await create(client, "posted", 3)
        async with Producer(client) as producer:
            promised = [await producer.post("posted", b"%d" % n, partition=n % 3) for n in range(3000)]
            await producer.flush()
        offsets = [(await each).offset for each in promised]
        assert offsets == [n // 3 for n in range(3000)]
        read = await values(client, places, 3000)
        assert sorted(int(value or b"") for value in read) == list(range(3000))

    run(one, work)


def test_more_than_the_buffer_holds_waits_for_room(one: Cluster) -> None:
    async def work(client: Client) -> None:
        (place,) = await create(client, "large")
        async with Producer(client) as producer:
            for _ in range(24):
                await producer.post("large", bytes(500_000), partition=0)
        end = offset_of((await list_offsets(client, {place: LATEST}))[place])
        assert end == 24

    run(one, work)


def test_a_reader_knows_when_it_has_caught_up_and_follows_what_comes(one: Cluster) -> None:
    async def work(client: Client) -> None:
        places = await create(client, "followed", 2)
        async with Producer(client) as producer, Reader(client, dict.fromkeys(places, (0, None))) as reader:
            for n in range(10):
                await producer.send("followed", b"%d" % n, partition=n % 2)
            found = await list_offsets(client, dict.fromkeys(places, LATEST))
            ends = {place: offset_of(outcome) for place, outcome in found.items()}
            assert not reader.reached(ends)
            seen = 0
            while not reader.reached(ends):
                seen += sum(len(list(fetched.records)) for fetched in await reader.poll())
            assert seen == 10
            assert await reader.poll(0.01) == []
            mine = await producer.send("followed", b"mine", partition=0)
            while reader.positions()[mine.place] <= mine.offset:
                for fetched in await reader.poll():
                    assert [record.value for record in fetched.records] == [b"mine"]

    run(one, work)


def test_a_failure_is_told_to_who_sent_and_the_producer_goes_on(one: Cluster) -> None:
    async def work(client: Client) -> None:
        configs = {"max.message.bytes": "1000"}
        await admin.create_topics(client, [admin.NewTopic("tight", 1, 1, configs)])
        async with Producer(client) as producer:
            with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
                await producer.send("tight", bytes(5000))
            with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
                await producer.flush()
            assert (await producer.send("tight", b"small")).offset == 0

    run(one, work)


# Trouble.


def test_a_node_that_restarts_is_waited_for_by_producer_reader_and_questions() -> None:
    with Cluster(1, offsets_topic_num_partitions=1) as kafka:

        async def work(client: Client) -> None:
            (place,) = await create(client, "restarted")
            async with Producer(client) as producer, Reader(client, {place: (0, None)}) as reader:
                await producer.send("restarted", b"before")
                assert [r.value for f in await reader.poll() for r in f.records] == [b"before"]
                tail = asyncio.create_task(_next(reader))
                await asyncio.to_thread(kafka.kill, 1)
                later = [asyncio.create_task(producer.send("restarted", b"%d" % n)) for n in range(5)]
                asked = asyncio.create_task(client.metadata(["restarted"]))
                await asyncio.to_thread(kafka.restart, 1)
                assert (await tail)[0] == b"0"
                assert [(await each).offset for each in later] == [1, 2, 3, 4, 5]
                assert (await asked).topics[0].error_code == 0

        run(kafka, work)


async def _next(reader: Reader) -> list[bytes | None]:
    while not (found := [record.value for fetched in await reader.poll() for record in fetched.records]):
        pass
    return found


def test_the_death_of_a_leader_costs_no_record_and_doubles_none(three: Cluster) -> None:
    async def work(client: Client) -> None:
        places = await create(client, "survives", 6, 3)
        reading = asyncio.create_task(values(client, places, 600))
        async with Producer(client) as producer:
            sent: list[Written] = []
            for n in range(600):
                if n == 200:
                    victim = three.leader_of("survives", 0)
                    await asyncio.to_thread(three.kill, victim)
                sent.append(await producer.send("survives", b"%d" % n, partition=n % 6))
        assert sorted(int(value or b"") for value in await reading) == list(range(600))
        assert len({(each.place, each.offset) for each in sent}) == 600
        await asyncio.to_thread(three.restart, victim)

    run(three, work)


def test_a_cluster_that_never_was_is_told_with_its_address() -> None:
    async def main() -> None:
        (port,) = free_ports(1)
        async with Client(parse_bootstrap(f"127.0.0.1:{port}"), timeout_s=20) as client:
            with pytest.raises(Unreachable, match=f"127.0.0.1:{port}: nothing listens there"):
                await client.metadata()

    asyncio.run(main())


def test_who_gives_up_waiting_disturbs_nobody_else_on_the_connection(one: Cluster) -> None:
    async def work(client: Client) -> None:
        (place,) = await create(client, "patient")
        await client.metadata(["patient"])
        async with Reader(client, {place: (0, None)}, max_wait_ms=10_000) as reader:
            given_up = asyncio.create_task(reader.poll())
            described = [asyncio.create_task(admin.describe_cluster(client)) for _ in range(5)]
            for task in described[::2]:
                task.cancel()
            for task in described[1::2]:
                assert (await task).brokers
            given_up.cancel()
            await asyncio.gather(given_up, return_exceptions=True)
            async with Producer(client) as producer:
                await producer.send("patient", b"x")
            assert await _next(reader) == [b"x"]

    run(one, work)


def test_who_waits_while_the_client_is_closed_is_told_so_and_opens_nothing() -> None:
    async def main() -> None:
        entered, over = asyncio.Event(), asyncio.Event()

        async def never_answers(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            entered.set()
            await over.wait()
            writer.close()

        silent = await asyncio.start_server(never_answers, "127.0.0.1", 0)
        client = Client(parse_bootstrap(f"127.0.0.1:{silent.sockets[0].getsockname()[1]}"))
        asking = asyncio.create_task(client.metadata())
        async with asyncio.timeout(PATIENCE_S):
            await entered.wait()
            await client.close()
            with pytest.raises(Unreachable, match="it was closed"):
                await asking
            with pytest.raises(ClientError, match="the client was closed"):
                await client.metadata()
            over.set()
            silent.close()
            await silent.wait_closed()

    asyncio.run(main())


def test_a_value_that_no_batch_can_hold_ends_the_producer_and_nobody_waits_for_it(one: Cluster) -> None:
    async def work(client: Client) -> None:
        producer = Producer(client)
        with pytest.raises(ClientError, match="not open"):
            await producer.send("wrong", b"x")
        with pytest.raises(TypeError):
            async with producer:
                with pytest.raises(ClientError, match="closed before it was written"):
                    await producer.send("wrong", "no bytes")  # type: ignore[arg-type]
                with pytest.raises(ClientError, match="closed before it was written"):
                    await producer.flush()
                with pytest.raises(ClientError, match="not open"):
                    await producer.send("wrong", b"x")

    run(one, work)


def test_a_client_that_logs_in_where_nobody_does_is_told_so(one: Cluster) -> None:
    with pytest.raises(LoginFailed, match="nobody logs in at that listener"):
        run(one, lambda client: client.metadata(), security=Security(credentials=Credentials("PLAIN", "alice", "x")))


# Administration.


def test_operations_are_the_same_as_in_the_blocking_face(one: Cluster) -> None:
    async def work(client: Client) -> None:
        (place,) = await create(client, "administered")
        await admin.alter_configs(
            client, admin.TOPIC, "administered", [admin.ConfigChange("retention.ms", admin.SET, "1000000")]
        )
        configs = (await admin.describe_configs(client, admin.TOPIC, ["administered"]))["administered"]
        assert not isinstance(configs, KafkaError)
        assert {each.name: each.value for each in configs}["retention.ms"] == "1000000"
        async with Producer(client) as producer:
            await producer.send("administered", b"x")
        assert await groups.commit(client, "g-administered", {place: 1}) == {place: None}
        assert (await groups.committed(client, "g-administered"))[place].offset == 1
        assert "g-administered" in [group.name for group in await groups.list_groups(client)]
        assert (await groups.describe(client, "g-administered")).state == "Empty"
        assert await groups.delete(client, ["g-administered"]) == {"g-administered": None}
        found = await list_offsets(client, {place: EARLIEST})
        assert isinstance(found[place], Found)
        assert await admin.delete_topics(client, ["administered"]) == {"administered": None}

    run(one, work)


# Transactions.


def test_a_transaction_is_seen_whole_or_not_at_all(one: Cluster) -> None:
    async def work(client: Client) -> None:
        (place,) = await create(client, "exact")
        async with TransactionalProducer(client, "t-exact") as producer:
            async with producer.transaction():
                await producer.send("exact", b"a")
                await producer.send_offsets("g-exact", {place: 7})
            with pytest.raises(RuntimeError, match="changed my mind"):
                async with producer.transaction():
                    await producer.send("exact", b"never")
                    await producer.send_offsets("g-exact", {place: 9})
                    raise RuntimeError("changed my mind")
            async with producer.transaction():
                pass
            async with producer.transaction():
                await producer.post("exact", b"b")
        assert await values(client, [place], 2) == [b"a", b"b"]
        assert (await groups.committed(client, "g-exact"))[place].offset == 7

    run(one, work)


def test_a_successor_fences_who_writes_under_the_same_name(one: Cluster) -> None:
    async def work(client: Client) -> None:
        (place,) = await create(client, "fencing")
        async with TransactionalProducer(client, "t-fenced") as old, TransactionalProducer(client, "t-fenced") as new:
            with pytest.raises(Fenced, match="t-fenced"):
                async with old.transaction():
                    await old.post("fencing", b"late")
            async with new.transaction():
                await new.send("fencing", b"mine")
        assert await values(client, [place], 1) == [b"mine"]

    run(one, work)


# Members.

SETTINGS = MemberSettings("workers", "connect", session_timeout_ms=6_000, heartbeat_interval_ms=200)


def halves(protocol: str, peers: Sequence[Peer]) -> dict[str, bytes]:
    names = sorted(peer.member_id for peer in peers)
    return {name: bytes(range(6))[index :: len(names)] for index, name in enumerate(names)}


class Worker:
    """An owner that says when something changes."""

    def __init__(self, client: Client, settings: MemberSettings, name: str) -> None:
        self.member = Member(client, settings, halves, self)
        self.name = name
        self.part: Assigned | None = None
        self.losses = 0
        self.changed = asyncio.Event()
        self.life = asyncio.create_task(self.member.run())
        self.life.add_done_callback(lambda _: self.changed.set())

    async def prepare(self) -> Sequence[tuple[str, bytes]]:
        self.part = None
        return [("shares", self.name.encode())]

    async def assigned(self, part: Assigned) -> None:
        self.part = part
        self.changed.set()

    def lost(self) -> None:
        self.losses += 1
        self.part = None
        self.changed.set()

    async def leave(self) -> None:
        self.part = None
        self.member.leave()
        await self.life


def parts(*workers: Worker) -> list[int]:
    return sorted(index for worker in workers if worker.part is not None for index in worker.part.assignment)


async def until(reached: Callable[[], bool], *workers: Worker) -> None:
    while not reached():
        for worker in workers:
            worker.changed.clear()
        changes = [asyncio.create_task(worker.changed.wait()) for worker in workers]
        await asyncio.wait(changes, return_when=asyncio.FIRST_COMPLETED)
        for change in changes:
            change.cancel()


async def settled(*workers: Worker) -> None:
    """All in one generation, and everything is somebody's."""
    await until(
        lambda: (
            parts(*workers) == list(range(6))
            and len({worker.part.generation if worker.part is not None else None for worker in workers}) == 1
        ),
        *workers,
    )


def test_members_share_what_there_is_and_another_leads_when_the_leader_leaves(one: Cluster) -> None:
    async def work(client: Client) -> None:
        settings = SETTINGS._replace(group="shared")
        first = Worker(client, settings, "first")
        await settled(first)
        assert first.part is not None
        assert first.part.leads
        assert first.part.peers == (Peer(first.part.member_id, None, b"first"),)
        second = Worker(client, settings, "second")
        await settled(first, second)
        assert second.part is not None
        assert not second.part.leads
        await first.leave()
        await settled(second)
        assert second.part.leads
        assert second.losses == 0
        await second.leave()
        assert (await groups.describe(client, "shared")).members == ()

    run(one, work)


def test_a_member_that_was_removed_hears_that_it_lost_its_part_and_comes_back(one: Cluster) -> None:
    async def work(client: Client) -> None:
        worker = Worker(client, SETTINGS._replace(group="removed"), "w")
        await settled(worker)
        assert worker.part is not None
        expelled = m.LeaveGroupRequest.MemberIdentity(worker.part.member_id)
        await client.call(m.LeaveGroupRequest("removed", members=[expelled]), m.LeaveGroupResponse)
        await until(lambda: worker.losses == 1, worker)
        await settled(worker)
        assert worker.part.member_id != expelled.member_id
        await worker.leave()

    run(one, work)


def test_of_two_with_one_instance_id_the_older_ends_with_the_reason(one: Cluster) -> None:
    async def work(client: Client) -> None:
        settings = SETTINGS._replace(group="static", instance_id="worker-1")
        older = Worker(client, settings, "w")
        await settled(older)
        newer = Worker(client, settings, "w")
        with pytest.raises(KafkaError, match="FENCED_INSTANCE_ID"):
            await older.life
        assert older.losses == 1
        await settled(newer)
        await newer.leave()

    run(one, work)


def test_a_member_that_may_never_join_ends_with_the_reason(one: Cluster) -> None:
    async def work(client: Client) -> None:
        worker = Worker(client, SETTINGS._replace(group="refused", session_timeout_ms=1), "w")
        with pytest.raises(KafkaError, match="INVALID_SESSION_TIMEOUT"):
            await worker.life

    run(one, work)


def test_what_the_owner_raises_ends_its_member(one: Cluster) -> None:
    class Clumsy(Worker):
        async def assigned(self, part: Assigned) -> None:
            raise RuntimeError("out of order")

    async def work(client: Client) -> None:
        with pytest.raises(RuntimeError, match="out of order"):
            await Clumsy(client, SETTINGS._replace(group="clumsy"), "w").life

    run(one, work)


def test_members_outlive_the_death_of_their_coordinator(three: Cluster) -> None:
    async def work(client: Client) -> None:
        settings = SETTINGS._replace(group="orphans", session_timeout_ms=30_000)
        workers = [Worker(client, settings, name) for name in ("a", "b")]
        await settled(*workers)
        victim = await groups.coordinator(client, "orphans")
        await asyncio.to_thread(three.kill, victim)
        workers[0].member.rejoin()
        before = workers[1].part
        await until(lambda: workers[1].part not in (None, before), *workers)
        await settled(*workers)
        assert sum(worker.part is not None and worker.part.leads for worker in workers) == 1
        for worker in workers:
            await worker.leave()
        await asyncio.to_thread(three.restart, victim)

    run(three, work)
