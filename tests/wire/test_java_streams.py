"""A Kafka Streams application, Apache's own, counts words exactly once while its node is stopped and killed."""

import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from ottla.protocol import messages as m
from ottla.protocol.records import NewRecord, build_batch
from tests.support import jvm
from tests.support.committed import committed
from tests.support.nodes import Ottla
from tests.support.programs import Program
from tests.support.requests import NOON, create_topic, describe_topic, fetch, list_offset, produced, wait_for_topic
from tests.support.wire import Wire

pytestmark = pytest.mark.jvm

PARTITIONS = 2
WORDS = [f"word-{number}" for number in range(40)]
Lines = list[list[str]]


def lines(dice: random.Random, count: int) -> Lines:
    return [dice.choices(WORDS, k=3) for _ in range(count)]


def feed(node: Ottla, what: Lines) -> None:
    with Wire(node.bootstrap) as wire:
        wait_for_topic(wire, "lines", PARTITIONS)
        for partition in range(PARTITIONS):
            own = what[partition::PARTITIONS]
            records = [NewRecord(None, " ".join(line).encode(), NOON + number) for number, line in enumerate(own)]
            produced(wire, "lines", bytes(build_batch(records)), partition=partition)


def visible(node: Ottla) -> int:
    """How far readers of what is committed get in the output, over all partitions."""
    with Wire(node.bootstrap) as wire:
        parts = [fetch(wire, "counts", partition=index, isolation_level=1) for index in range(PARTITIONS)]
    return sum(part.last_stable_offset for part in parts)


def goes_on(app: Program, node: Ottla, before: int) -> int:
    """Returns while the application is in the midst of it: more is committed than was before the latest lines were fed,
    and more is to do. Gives how much."""
    app.until("another commit", lambda: visible(node) > before)
    return visible(node)


def counts(node: Ottla) -> dict[str, list[int]]:
    """Every count that was committed, by word, in the order of the output."""
    found: dict[str, list[int]] = defaultdict(list)
    for record in committed(node.bootstrap, "counts", PARTITIONS):
        found[record.key].append(int(record.value))
    return found


def expected(*parts: Lines) -> dict[str, list[int]]:
    """One more with every occurrence of a word: a record counted twice, or not at all, shows."""
    found: dict[str, list[int]] = defaultdict(list)
    for word in (word for part in parts for line in part for word in line):
        found[word].append(len(found[word]) + 1)
    return found


def word_count(node: Ottla, directory: Path, protocol: str) -> Program:
    jars = jvm.program_jars()
    classes = jvm.compiled(jars, jvm.JAVA_SOURCES / "WordCount.java")
    arguments = (node.bootstrap, str(directory / "state"), "lines", "counts", protocol)
    return Program("word-count", jvm.java(jars, "WordCount", *arguments, classes=classes), directory)


def all_counted(app: Program, node: Ottla, parts: Sequence[Lines]) -> dict[str, list[int]]:
    """Waits until there are as many counts as words, and gives them."""
    words = sum(len(line) for part in parts for line in part)

    def enough() -> dict[str, list[int]] | None:
        found = counts(node)
        return found if sum(map(len, found.values())) >= words else None

    return app.until(f"{words} counts", enough)


@pytest.mark.matrix
def test_words_are_counted_once_over_a_stop_and_a_kill_of_the_node(tmp_path: Path) -> None:
    dice = random.Random(4)
    first, second, third, fourth, fifth = parts = [lines(dice, 300) for _ in range(5)]
    node = Ottla(tmp_path / "node", extra={"transaction.state.log.num.partitions": "3"}).start()
    with Wire(node.bootstrap) as wire:
        create_topic(wire, "lines", PARTITIONS)
        create_topic(wire, "counts", PARTITIONS)
    feed(node, first)
    with word_count(node, tmp_path / "app", "classic") as app:
        seen = 0
        for part, end in ((second, node.stop), (third, node.kill)):
            seen = goes_on(app, node, seen)
            feed(node, part)
            end()
            node.start()
        goes_on(app, node, seen)
        feed(node, fourth)
        assert all_counted(app, node, parts[:4]) == expected(*parts[:4])
        assert "closed" in app.stop()

    # Another machine takes over: its state comes from the changelog alone.
    with word_count(node, tmp_path / "other", "classic") as app:
        feed(node, fifth)
        all_counted(app, node, parts)
        assert "closed" in app.stop()
    assert counts(node) == expected(*parts)
    check_internal_topics(node)
    assert node.stop() == 0
    assert "Traceback" not in node.printed()


def check_internal_topics(node: Ottla) -> None:
    with Wire(node.bootstrap) as wire:
        for topic, policy in (("word-count-words-repartition", "delete"), ("word-count-counts-changelog", "compact")):
            assert len(describe_topic(wire, topic).partitions) == PARTITIONS
            asked = m.DescribeConfigsRequest.DescribeConfigsResource(2, topic, ["cleanup.policy"])
            (answer,) = wire.ask(m.DescribeConfigsRequest(resources=[asked])).results
            assert [config.value for config in answer.configs] == [policy]
        starts = [list_offset(wire, "word-count-words-repartition", -2, partition=i).offset for i in range(PARTITIONS)]
        assert all(starts), "what was counted is deleted from the topic in between"
