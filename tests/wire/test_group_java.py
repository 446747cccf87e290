"""Apache's own consumer and group tool, with either protocol."""

from typing import Any

import pytest

from tests.support.requests import batch, create_topic, produced
from tests.support.wire import Wire

TOOLS = "org.apache.kafka.tools.consumer"


@pytest.fixture
def orders(wire: Wire, topic: str) -> str:
    """A topic of four partitions with forty records."""
    create_topic(wire, topic, 4)
    for partition in range(4):
        produced(wire, topic, batch(10), partition=partition)
    return topic


@pytest.mark.jvm
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_java_consumers_share_and_are_described(java_tools: Any, bootstrap: str, orders: str, protocol: str) -> None:
    group = f"{orders}-{protocol}"
    out = java_tools.must(
        f"{TOOLS}.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", orders, "--group", group, "--max-messages", "40"),
        *("--from-beginning", "--timeout-ms", "60000", "--command-property", f"group.protocol={protocol}"),
    )
    assert sorted(map(int, out.split())) == sorted(list(range(10)) * 4)
    described = java_tools.must(
        f"{TOOLS}.group.ConsumerGroupCommand",
        *("--bootstrap-server", bootstrap, "--describe", "--group", group),
    )
    rows = [line.split() for line in described.splitlines() if line.startswith(group)]
    assert sorted((int(row[2]), row[3], row[5]) for row in rows) == [(index, "10", "0") for index in range(4)]
    listed = java_tools.must(
        f"{TOOLS}.group.ConsumerGroupCommand", "--bootstrap-server", bootstrap, "--list", "--type", protocol
    )
    assert group in listed.split()
    reset = ("--reset-offsets", "--group", group, "--topic", orders, "--to-earliest", "--execute")
    java_tools.must(f"{TOOLS}.group.ConsumerGroupCommand", "--bootstrap-server", bootstrap, *reset)
    deleted = java_tools.must(
        f"{TOOLS}.group.ConsumerGroupCommand", "--bootstrap-server", bootstrap, "--delete", "--group", group
    )
    assert "successful" in deleted
