"""Consumers in groups, as people use them: share, come and go, die, commit, seek, pause, follow patterns, migrate."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS, eventually
from tests.support.requests import create_topic
from tests.support.wire import Wire

NewTopicName = Callable[[], str]
PATIENCE_S = PATIENCE_SECONDS
_POLLS_THAT_BRING_ALL = 10
"""Each waits for records for a twentieth of a second."""


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A node whose consumer-protocol members report twice a second: nobody has to wait five seconds for a rebalance."""
    other = os.environ.get("OTTLA_TEST_BOOTSTRAP")
    if other:
        yield other
        return
    from ottla.testing import Cluster  # noqa: PLC0415

    quick: dict[str, Any] = {
        "group_consumer_min_heartbeat_interval_ms": 500,
        "group_consumer_heartbeat_interval_ms": 500,
    }
    with Cluster(**quick) as kafka:
        yield kafka.bootstrap_servers


class Member:
    """A consumer of librdkafka or kafka-python in a thread of its own, as consumers are run."""

    def __init__(self, consumer: Any, poll: Callable[[Any], list[tuple[int, bytes]]]) -> None:
        self.consumer = consumer
        self._poll = poll
        self.seen: list[tuple[int, bytes]] = []
        self.polls = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                self.seen += self._poll(self.consumer)
            self.polls += 1
            time.sleep(0.01)

    def with_consumer(self, action: Callable[[Any], Any]) -> Any:
        with self._lock:
            return action(self.consumer)

    def poll_again(self) -> None:
        """Returns when the consumer has been polled so often that it would have brought what there is to bring."""
        enough = self.polls + _POLLS_THAT_BRING_ALL
        eventually(lambda: self.polls >= enough, "polling")

    def partitions(self) -> list[int]:
        return sorted(place.partition for place in self.with_consumer(lambda consumer: consumer.assignment()))

    def halt(self) -> None:
        """Stops polling, without a word to anybody."""
        self._stop.set()
        self._thread.join()

    def close(self) -> None:
        self.halt()
        self.consumer.close()


def librdkafka(bootstrap: str, group: str, topics: list[str], **settings: str) -> Member:
    from confluent_kafka import Consumer  # noqa: PLC0415

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    consumer.subscribe(topics)

    def poll(consumer: Any) -> list[tuple[int, bytes]]:
        return [
            (message.partition(), message.value()) for message in consumer.consume(100, 0.05) if not message.error()
        ]

    return Member(consumer, poll)


def kafka_python(bootstrap: str, group: str, topics: list[str], **settings: Any) -> Member:
    from kafka import KafkaConsumer  # noqa: PLC0415

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=300,
        **settings,
    )
    consumer.subscribe(topics)
    for topic in topics:
        # What is known of a topic counts from the subscription on. A leader that joins before that joins once more when
        # it hears of its partitions, and 3.0.12 forgets such a second join if its answer comes between two polls: it
        # stays in the rebalance for good, without rest and without a heartbeat. Seen with Apache Kafka as well.
        consumer.partitions_for_topic(topic)

    def poll(consumer: Any) -> list[tuple[int, bytes]]:
        # A join that is answered between two polls is thrown away, and made again.
        polled = consumer.poll(50 if consumer.assignment() else 1000)
        return [(record.partition, record.value) for records in polled.values() for record in records]

    return Member(consumer, poll)


Start = Callable[..., Member]
KINDS: list[Any] = [
    pytest.param(lambda *a, **k: librdkafka(*a, heartbeat_interval_ms="300", **k), id="librdkafka-classic"),
    pytest.param(lambda *a, **k: librdkafka(*a, group_protocol="consumer", **k), id="librdkafka-consumer"),
    pytest.param(kafka_python, id="kafka-python"),
]


@pytest.fixture(params=KINDS)
def start(request: pytest.FixtureRequest, bootstrap: str) -> Iterator[Start]:
    members: list[Member] = []

    def begin(group: str, topics: list[str], **settings: Any) -> Member:
        member: Member = request.param(bootstrap, group, topics, **settings)
        members.append(member)
        return member

    yield begin
    for member in members:
        if not member._stop.is_set():
            member.close()


@pytest.fixture
def orders(bootstrap: str, topic: str) -> str:
    """A topic of four partitions with forty records."""
    from confluent_kafka import Producer  # noqa: PLC0415

    with Wire(bootstrap) as wire:
        create_topic(wire, topic, 4)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(40):
        producer.produce(topic, str(number).encode(), partition=number % 4)
    assert producer.flush(20) == 0
    return topic


def test_members_share_a_topic_and_take_over_from_who_leaves(start: Start, orders: str) -> None:
    group = f"{orders}-group"
    one = start(group, [orders])
    eventually(lambda: one.partitions() == [0, 1, 2, 3], "one has everything")
    eventually(lambda: len(set(one.seen)) == 40, "one reads everything")
    two = start(group, [orders])
    eventually(
        lambda: sorted(one.partitions() + two.partitions()) == [0, 1, 2, 3] and len(two.partitions()) == 2,
        "both have half",
    )
    two.close()
    eventually(lambda: one.partitions() == [0, 1, 2, 3], "one has everything again")


def test_a_group_goes_on_where_it_committed(start: Start, orders: str) -> None:
    group = f"{orders}-group"
    one = start(group, [orders])
    eventually(lambda: len(set(one.seen)) == 40, "one reads everything")
    one.with_consumer(commit)
    one.close()
    two = start(group, [orders])
    eventually(lambda: two.partitions() == [0, 1, 2, 3], "two has everything")
    two.poll_again()
    assert two.seen == []
    two.with_consumer(seek_to_start)
    eventually(lambda: len(two.seen) == 40, "two reads again from the start")


def commit(consumer: Any) -> None:
    if hasattr(consumer, "consume"):
        consumer.commit(asynchronous=False)
    else:
        consumer.commit()


def seek_to_start(consumer: Any) -> None:
    if hasattr(consumer, "consume"):
        for place in consumer.assignment():
            place.offset = 0
            consumer.seek(place)
    else:
        consumer.seek_to_beginning()


def test_a_paused_partition_is_kept_and_not_read(start: Start, orders: str) -> None:
    one = start(f"{orders}-group", [orders])
    eventually(lambda: len(set(one.seen)) == 40, "one reads everything")

    def pause(consumer: Any) -> None:
        places = list(consumer.assignment())
        consumer.pause(places) if hasattr(consumer, "consume") else consumer.pause(*places)

    def resume(consumer: Any) -> None:
        places = list(consumer.assignment())
        consumer.resume(places) if hasattr(consumer, "consume") else consumer.resume(*places)

    one.with_consumer(pause)
    one.with_consumer(seek_to_start)
    before = len(one.seen)
    one.poll_again()
    assert len(one.seen) == before
    one.with_consumer(resume)
    eventually(lambda: len(one.seen) == before + 40, "one reads on")


def test_a_member_that_dies_is_replaced_when_its_session_is_over(bootstrap: str, orders: str) -> None:
    group = f"{orders}-group"
    settings = {"session_timeout_ms": "6000", "heartbeat_interval_ms": "300"}
    one = librdkafka(bootstrap, group, [orders], **settings)
    eventually(lambda: one.partitions() == [0, 1, 2, 3], "one has everything")
    with Wire(bootstrap) as wire:
        # A member that joins, takes part in one rebalance and is never heard of again.
        assert len(ghost(wire, group, orders)) == 2, "the ghost got its share"
    eventually(lambda: one.partitions() == [0, 1, 2, 3], "one has everything again")
    one.close()


def ghost(wire: Wire, group: str, topic: str) -> list[int]:
    """Gives the partitions it got: its session may be over before anybody has seen the other member without them."""
    from ottla.protocol import messages as m  # noqa: PLC0415

    protocols = [
        m.JoinGroupRequest.JoinGroupRequestProtocol(
            name="range", metadata=b"\0\0" + m.ConsumerProtocolSubscription(topics=[topic]).encode(0)
        )
    ]
    request = m.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=6000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=protocols,
    )
    request.member_id = wire.ask(request, 9).member_id
    joined = wire.ask(request, 9)
    assert joined.error_code == 0
    synced = wire.ask(
        m.SyncGroupRequest(
            group_id=group,
            member_id=joined.member_id,
            generation_id=joined.generation_id,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
        ),
        5,
    )
    assert synced.error_code == 0
    given = m.ConsumerProtocolAssignment.decode(synced.assignment, 0, 2).assigned_partitions
    return [partition for each in given for partition in each.partitions]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_static_member_that_restarts_keeps_its_partitions(bootstrap: str, orders: str, protocol: str) -> None:
    group = f"{orders}-group"
    quick = {"heartbeat_interval_ms": "300"} if protocol == "classic" else {}

    def member(instance: str) -> Member:
        return librdkafka(bootstrap, group, [orders], group_protocol=protocol, group_instance_id=instance, **quick)

    one, two = member("one"), member("two")
    eventually(lambda: len(one.partitions()) == len(two.partitions()) == 2, "both have half")
    before = one.partitions()
    two_before = two.partitions()
    one.close()
    one = member("one")
    eventually(lambda: one.partitions() == before, "one is back")
    assert two.partitions() == two_before
    one.close()
    two.close()


def test_a_pattern_finds_topics_that_come_later(bootstrap: str, new_topic_name: NewTopicName) -> None:
    name = new_topic_name()
    first, second = f"{name}-first", f"{name}-second"
    with Wire(bootstrap) as wire:
        create_topic(wire, first, 1)
        member = librdkafka(
            bootstrap,
            f"{name}-group",
            [f"^{name}-.*"],
            group_protocol="consumer",
            topic_metadata_refresh_interval_ms="500",
        )

        def topics() -> set[str]:
            return {place.topic for place in member.with_consumer(lambda consumer: consumer.assignment())}

        eventually(lambda: first in topics(), "the first topic is assigned")
        create_topic(wire, second, 1)
        eventually(lambda: {first, second} <= topics(), "the second one too")
        member.close()


def test_a_living_group_moves_to_the_consumer_protocol_and_back(bootstrap: str, orders: str) -> None:
    group = f"{orders}-group"

    def kind() -> str:
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415

        admin = AdminClient({"bootstrap.servers": bootstrap})
        listed = admin.list_consumer_groups().result()
        return str(next(found.type for found in listed.valid if found.group_id == group)).rsplit(".", 1)[-1]

    classic = librdkafka(bootstrap, group, [orders], heartbeat_interval_ms="300")
    eventually(lambda: classic.partitions() == [0, 1, 2, 3], "the classic member has everything")
    eventually(lambda: len(classic.seen) == 40, "it reads everything")
    classic.with_consumer(commit)
    assert kind() == "CLASSIC"
    modern = librdkafka(bootstrap, group, [orders], group_protocol="consumer")
    eventually(lambda: len(modern.partitions()) == len(classic.partitions()) == 2, "both have half")
    assert kind() == "CONSUMER"
    assert not set(modern.partitions()) & set(classic.partitions())
    modern.close()
    eventually(lambda: classic.partitions() == [0, 1, 2, 3], "the classic member has everything again")
    assert kind() == "CLASSIC"
    classic.poll_again()
    assert (len(classic.seen), modern.seen) == (40, [])  # nothing was read twice: the offsets moved along
    classic.close()


def test_aiokafka_consumers_share_and_commit(bootstrap: str, orders: str) -> None:
    from aiokafka import AIOKafkaConsumer  # noqa: PLC0415

    group = f"{orders}-group"

    def consumer() -> Any:
        return AIOKafkaConsumer(
            orders,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=300,
        )

    async def play() -> tuple[int, list[int], int]:
        one = consumer()
        await one.start()
        read = [await asyncio.wait_for(one.getone(), PATIENCE_S) for _ in range(40)]
        await one.commit()
        two = consumer()
        await two.start()
        shares: list[int] = []
        for _ in range(600):
            shares = sorted((len(one.assignment()), len(two.assignment())))
            if shares == [2, 2]:
                break
            await asyncio.sleep(0.1)
        await one.stop()
        await two.stop()
        three = consumer()
        await three.start()
        place = next(iter(three.assignment()))
        committed = await three.committed(place)
        await three.stop()
        return len(read), shares, committed

    assert asyncio.run(play()) == (40, [2, 2], 10)


def test_the_command_line_lists_describes_moves_and_deletes(
    bootstrap: str, orders: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import json  # noqa: PLC0415

    from ottla.cli.app import run  # noqa: PLC0415

    def ottla(*words: str, fails: int = 0) -> str:
        capsys.readouterr()
        assert run(["groups", *words, "--bootstrap", bootstrap]) == fails
        captured = capsys.readouterr()
        return captured.err if fails else captured.out

    group = f"{orders}-group"
    with closing(librdkafka(bootstrap, group, [orders])) as member:
        eventually(lambda: len(member.seen) == 40, "it reads everything")
        member.with_consumer(commit)
        (described,) = json.loads(ottla("describe", group, "--json"))
        assert (described["state"], described["type"], described["lag"]) == ("Stable", "classic", 0)
        assert [(row["partition"], row["committed"], row["end"]) for row in described["partitions"]] == [
            (index, 10, 10) for index in range(4)
        ]
        assert f"{orders}(0,1,2,3)" in ottla("describe", group, "--members")
        assert "is Stable with 1 member:" in ottla("reset-offsets", group, "--to-earliest", fails=1)
        assert "stop its consumers first" in ottla("delete", group, fails=1)
    assert group in ottla("list", "--state", "empty", "--type", "classic")
    assert group not in ottla("list", "--state", "stable")
    moved = json.loads(ottla("reset-offsets", group, "--shift-by", "-3", "--json"))
    assert [(row["old_offset"], row["new_offset"]) for row in moved] == [(10, 7)] * 4
    assert json.loads(ottla("describe", group, "--json"))[0]["lag"] == 0
    ottla("reset-offsets", group, "--topic", f"{orders}:1,2", "--to-earliest", "--execute")
    assert json.loads(ottla("describe", group, "--json"))[0]["lag"] == 20
    ottla("reset-offsets", group, "--to-datetime", "2020-01-01", "--execute")
    assert json.loads(ottla("describe", group, "--json"))[0]["lag"] == 40
    ottla("reset-offsets", group, "--topic", orders, "--to-latest", "--execute")
    ottla("reset-offsets", group, "--topic", orders, "--to-offset", "999", "--execute")
    assert json.loads(ottla("describe", group, "--json"))[0]["lag"] == 0
    assert "exactly one of" in ottla("reset-offsets", group, fails=2)
    assert ottla("delete", group) == f"deleted {group}\n"
    assert "groups list" in ottla("describe", group, fails=1)
