"""`ottla transactions` against a running node."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import NewTopicName
from tests.support.jvm import Tools
from tests.support.requests import create_topic, fetch
from tests.support.transactions import TV2, ByHand
from tests.support.wire import Wire
from tests.wire.test_cli import Shell


@pytest.fixture
def ottla(
    bootstrap: str, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Shell:
    monkeypatch.setenv("OTTLA_BOOTSTRAP", bootstrap)
    return Shell(capsysbinary, tmp_path)


@pytest.fixture
def opened(wire: Wire, new_topic_name: NewTopicName) -> tuple[str, ByHand]:
    """A topic, and a producer with a record in an open transaction on it."""
    topic = new_topic_name()
    create_topic(wire, topic)
    producer = ByHand(wire, f"{topic}-txn", TV2).begin()
    assert producer.produce(topic) == (0, 0)
    return topic, producer


def rows(shell: Callable[..., Any], producer: ByHand, *words: str) -> list[Any]:
    return [row for row in shell("transactions", *words) if row["producer_id"] == producer.producer_id]


def test_list_shows_what_is_open(ottla: Shell, opened: tuple[str, ByHand]) -> None:
    _, producer = opened
    (row,) = rows(ottla.json, producer, "list", "--state", "Ongoing")
    assert (row["transactional_id"], row["state"]) == (producer.name, "Ongoing")
    assert rows(ottla.json, producer, "list", "--state", "Empty") == []
    assert len(rows(ottla.json, producer, "list", "--pattern", f"{producer.name[:-2]}.n")) == 1
    assert "knows no state Nonsense" in ottla("transactions", "list", "--state", "Nonsense", fails=1)


def test_describe_shows_the_partitions(ottla: Shell, opened: tuple[str, ByHand]) -> None:
    topic, producer = opened
    (row,) = ottla.json("transactions", "describe", producer.name)
    assert row["partitions"] == [{"topic": topic, "partition": 0}]
    assert f"{topic}-0" in ottla("transactions", "describe", producer.name)
    assert "nobody" in ottla("transactions", "describe", "nobody", fails=1)


def test_what_its_coordinator_knows_does_not_hang(ottla: Shell, opened: tuple[str, ByHand]) -> None:
    topic, _ = opened
    asked = ("transactions", "find-hanging", "--topic", topic, "--max-transaction-timeout", "0")
    assert ottla.json(*asked) == []


def test_abort_by_place_ends_it_on_the_partition(ottla: Shell, wire: Wire, opened: tuple[str, ByHand]) -> None:
    topic, producer = opened
    place = ("--topic", topic, "--partition", "0", "--start-offset")
    assert "starts at offset 9" in ottla("transactions", "abort", *place, "9", fails=1)
    assert str(producer.producer_id) in ottla("transactions", "abort", *place, "0")
    assert fetch(wire, topic, isolation_level=1).last_stable_offset == 2


def test_abort_by_name_fences_the_producer(ottla: Shell, wire: Wire, opened: tuple[str, ByHand]) -> None:
    topic, producer = opened
    assert "fenced" in ottla("transactions", "abort", "--transactional-id", producer.name)
    assert producer.end(committed=True) == 90  # PRODUCER_FENCED
    assert fetch(wire, topic, isolation_level=1).last_stable_offset == 2
    assert "nobody" in ottla("transactions", "abort", "--transactional-id", "nobody", fails=1)


def test_abort_wants_one_way_to_name_it(ottla: Shell) -> None:
    ottla("transactions", "abort", fails=2)
    ottla("transactions", "abort", "--topic", "t", fails=2)


@pytest.mark.jvm
def test_kafkas_own_tool_sees_and_ends_transactions(
    bootstrap: str, wire: Wire, opened: tuple[str, ByHand], java_tools: Tools
) -> None:
    topic, producer = opened

    def tool(*words: str) -> str:
        return java_tools.must("TransactionsCommand", "--bootstrap-server", bootstrap, *words)

    assert producer.name in tool("list")
    assert "Ongoing" in tool("describe", "--transactional-id", producer.name)
    assert str(producer.producer_id) in tool("describe-producers", "--topic", topic, "--partition", "0")
    assert topic not in tool("find-hanging", "--topic", topic, "--max-transaction-timeout", "0")
    tool("abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    assert fetch(wire, topic, isolation_level=1).last_stable_offset == 2
    tool("forceTerminateTransaction", "--transactionalId", producer.name)
    assert producer.end(committed=True) == 90  # PRODUCER_FENCED
