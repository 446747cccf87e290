"""Apache's own tools around groups and transactions: what works on a live group, and what they refuse."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support import jvm
from tests.support.jvm import Tools, run_alone
from tests.support.nodes import Ottla
from tests.support.programs import Program
from tests.support.requests import NOON, batch, create_topic, fetch, produced
from tests.support.transactions import TV1, ByHand
from tests.support.wire import Wire

pytestmark = pytest.mark.jvm

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PARTITIONS = 4
MESSAGES = 400

QUICK = {
    # The time that a rebalance of KIP-848 takes is made of heartbeats.
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "transaction.state.log.num.partitions": "3",
    # Lets a record into a partition that its transaction's coordinator knows nothing of.
    "transaction.partition.verification.enable": "false",
}

Tool = Callable[..., str]


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A node of one's own."""
    with Ottla(tmp_path_factory.mktemp("node"), extra=QUICK) as node:
        yield node.bootstrap


@pytest.fixture
def groups(java_tools: Tools, bootstrap: str) -> Tool:
    """kafka-consumer-groups with the node's address filled in."""
    return partial(java_tools.must, GROUPS, "--bootstrap-server", bootstrap)


def rows(table: str, group: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines() if line.startswith(group)]


class Member:
    """A VerifiableConsumer that runs until it is stopped."""

    def __init__(self, running: ExitStack, name: str, directory: Path, *words: str) -> None:
        command = jvm.java(jvm.kafka_jars(), "org.apache.kafka.tools.VerifiableConsumer", *words)
        self.program = running.enter_context(Program(name, command, directory))

    def until(self, what: str, glance: Callable[["Member"], bool]) -> None:
        self.program.until(what, lambda: glance(self))

    def events(self, name: str) -> list[Any]:
        whole = self.program.printed().rpartition("\n")[0].splitlines()
        told = [json.loads(line) for line in whole if line.startswith("{")]  # errors of the JVM are in there too
        return [event for event in told if event["name"] == name]

    def owned(self) -> int:
        """How many partitions it has, as it has been told so far."""
        gained, lost = self.events("partitions_assigned"), self.events("partitions_revoked")
        return sum(len(event["partitions"]) for event in gained) - sum(len(event["partitions"]) for event in lost)

    def consumed(self) -> list[tuple[int, int]]:
        """Partition and offset of every record, in the order in which they came."""
        return [
            (part["partition"], offset)
            for event in self.events("records_consumed")
            for part in event["partitions"]
            for offset in range(part["minOffset"], part["maxOffset"] + 1)
        ]


def have_read_all(one: Member, other: Member) -> bool:
    return len(one.consumed() + other.consumed()) >= MESSAGES


def test_verifiable_consumers_of_either_protocol_share_what_the_verifiable_producer_writes(
    bootstrap: str, wire: Wire, groups: Tool, java_tools: Tools, tmp_path: Path
) -> None:
    create_topic(wire, "shared", PARTITIONS)
    words = ("--bootstrap-server", bootstrap, "--topic", "shared")
    with ExitStack() as running:
        pairs = {
            protocol: tuple(
                Member(
                    running,
                    f"{protocol}-{name}",
                    tmp_path,
                    *words,
                    "--group-protocol",
                    protocol,
                    "--group-id",
                    protocol,
                )
                for name in ("one", "other")
            )
            for protocol in ("classic", "consumer")
        }
        for pair in pairs.values():
            for member in pair:
                member.until("its half of the partitions", lambda member: member.owned() == PARTITIONS // 2)
        run_alone(
            "org.apache.kafka.tools.VerifiableProducer",
            *words,
            "--max-messages",
            str(MESSAGES),
            "--repeating-keys",
            "20",
        )
        for group, (one, other) in pairs.items():
            one.until("every record", partial(have_read_all, other))
            assert one.consumed() and other.consumed()
            assert len({*one.consumed(), *other.consumed()}) == len(one.consumed() + other.consumed()) == MESSAGES
            (state,) = rows(groups("--describe", "--group", group, "--state"), group)
            assert state[-2:] == ["Stable", "2"]
            members = rows(groups("--describe", "--group", group, "--members"), group)
            assert [member[4] for member in members] == ["2", "2"]
            refused = java_tools.run(GROUPS, "--bootstrap-server", bootstrap, "--delete", "--group", group)
            assert "GroupNotEmptyException" in refused.out
            assert '"shutdown_complete"' in one.program.stop()
            other.until("all partitions", lambda other: other.owned() == PARTITIONS)
            assert '"shutdown_complete"' in other.program.stop()
            assert all(event["success"] for member in (one, other) for event in member.events("offsets_committed"))
            described = rows(groups("--describe", "--group", group), group)
            assert sum(int(row[3]) for row in described) == MESSAGES
            assert {row[5] for row in described} == {"0"}, "no lag"


def test_kafka_consumer_groups_moves_and_deletes_offsets(wire: Wire, topic: str, groups: Tool, tmp_path: Path) -> None:
    create_topic(wire, topic, 2)
    for partition in range(2):
        produced(wire, topic, batch(10), partition=partition)
    group = f"{topic}-group"

    def reset(*words: str) -> dict[int, int]:
        place = () if "--from-file" in words else ("--topic", topic)
        table = groups("--reset-offsets", "--group", group, *place, *words)
        return {int(row[2]): int(row[3]) for row in rows(table, group)}

    def committed() -> dict[int, str]:
        return {int(row[2]): row[3] for row in rows(groups("--describe", "--group", group), group)}

    assert reset("--to-offset", "7", "--execute") == {0: 7, 1: 7}
    assert reset("--shift-by", "-3", "--dry-run") == {0: 4, 1: 4}
    assert committed() == {0: "7", 1: "7"}, "a dry run moves nothing"
    assert reset("--shift-by", "-30", "--execute") == {0: 0, 1: 0}
    # NOON + 5 ms: the sixth record is the first one at or after it.
    assert reset("--to-datetime", "2023-11-14T22:13:20.005Z", "--execute") == {0: 5, 1: 5}
    assert NOON == 1_700_000_000_000
    plan = tmp_path / "plan.csv"
    plan.write_text(f"{topic},0,2\n{topic},1,9\n")
    assert reset("--from-file", str(plan), "--execute") == {0: 2, 1: 9}
    exported = groups("--reset-offsets", "--group", group, "--topic", topic, "--to-current", "--export", "--dry-run")
    assert {f'"{topic}",0,2', f'"{topic}",1,9'} <= set(exported.split())

    assert "Successful" in groups("--delete-offsets", "--group", group, "--topic", f"{topic}:0")
    assert committed() == {0: "-", 1: "9"} or committed() == {1: "9"}
    assert group in groups("--list", "--state", "empty")
    assert "successful" in groups("--delete", "--group", group)
    assert group not in groups("--list")


def test_kafka_transactions_finds_and_ends_a_hanging_transaction(
    java_tools: Tools, bootstrap: str, wire: Wire, topic: str
) -> None:
    tool = partial(java_tools.must, "TransactionsCommand", "--bootstrap-server", bootstrap)
    create_topic(wire, topic, 2)
    known, lost = (ByHand(wire, name, TV1).begin() for name in ("known", "lost"))
    assert known.add((topic, 0)) == {(topic, 0): 0}
    assert known.produce(topic, 0) == (0, 0)
    assert lost.produce(topic, 1) == (0, 0)

    listed = {line.split()[0]: line.split()[-1] for line in tool("list").splitlines()[1:]}
    assert listed == {"known": "Ongoing", "lost": "Empty"}
    described = tool("describe", "--transactional-id", "known").splitlines()[1].split()
    assert (described[4], described[-1]) == ("Ongoing", f"{topic}-0")
    for scope in (("--topic", topic), ("--broker-id", "1")):
        (found,) = tool("find-hanging", *scope, "--max-transaction-timeout", "0").splitlines()[1:]
        assert found.split()[:4] == [topic, "1", str(lost.producer_id), str(lost.epoch)]
    assert fetch(wire, topic, partition=1, isolation_level=1).last_stable_offset == 0

    tool("abort", "--topic", topic, "--partition", "1", "--start-offset", "0")
    assert fetch(wire, topic, partition=1, isolation_level=1).last_stable_offset == 2
    assert len(tool("find-hanging", "--topic", topic, "--max-transaction-timeout", "0").splitlines()) == 1

    tool("forceTerminateTransaction", "--transactionalId", "known")
    assert known.end(committed=True) == 90  # PRODUCER_FENCED
    assert fetch(wire, topic, partition=0, isolation_level=1).last_stable_offset == 2
