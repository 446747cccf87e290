"""On Spark, every operator does what Kafka Streams does.

Cases of the oracle share a topology, so that one query serves many. Each application runs twice, the second time from
the checkpoint of the first.
"""

import itertools
import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.oracle import functions, processors, topologies
from tests.oracle.bundles import bundled
from tests.oracle.cases import Case, Input, Weather, Written
from tests.oracle.comparing import untold
from tests.oracle.families import random_case
from tests.oracle.kafka import Oracle
from tests.oracle.on_spark import OnSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.jvm

Topics = dict[str, list[Written]]

BATCHES = 2
LATELY = int(time.time()) // 600 * 600_000 - 3 * 86_400_000
"""On the edge of every window. Records of 1970 would be past the retention of their topics."""
NOT_COMPARABLE = {"clock", "times", "headers"}
"""Processors that tell the wall clock, or the number of the partition."""


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    found = Oracle()
    yield found
    found.close()


@pytest.fixture
def apart(spark: "SparkSession") -> Iterator[None]:
    """Functions of the tests travel with the topology: Spark's workers cannot import them."""
    from pyspark import cloudpickle  # noqa: PLC0415

    modules = (functions, processors, topologies)
    for module in modules:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    yield
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]


def picked(family: str, count: int, fits: Callable[[Case], bool]) -> list[Case]:
    """The first random cases that fit."""
    found: list[Case] = []
    for seed in range(400, 1000):
        case = random_case(family, seed)
        if fits(case):
            found.append(case)
        if len(found) == count:
            break
    return found


def in_one_task(case: Case) -> bool:
    """No repartition, no wall clock, no topics that only the data names, and nothing but strings from the topic."""
    if any(step["op"] == "to_dynamic" or len(step.get("topics", ())) > 1 for step in case.steps):
        return False
    if any(step.get("processor", {}).get("kind") in NOT_COMPARABLE for step in case.steps):
        return False
    return len(topologies.topology_of(case).sub_topologies()) == 1


def weather(topics: list[str], count: int, seed: int) -> list[Input]:
    case = Case("weather")
    Weather(random.Random(seed), 10, ["a", "b", "ab", "ü"]).rain(case, topics, count)
    return [step | {"timestamp": step["timestamp"] + LATELY} for step in case.inputs]


def spread(steps: list[Input]) -> list[Input]:
    """Over two partitions by key, one of which lags behind by far."""
    return [
        step | {"partition": 1, "timestamp": step["timestamp"] - 300} if step["key"] in ("a", "ab") else step
        for step in steps
    ]


def in_order(batch: list[Input]) -> list[Input]:
    """As a task takes what is there at once: the partition whose first record is the oldest goes first."""
    queues: dict[str, deque[Input]] = {}
    for step in batch:
        queues.setdefault(step["topic"], deque()).append(step)
    order: list[Input] = []
    while queues:
        topic = min(queues, key=lambda name: queues[name][0]["timestamp"])
        order.append(queues[topic].popleft())
        if not queues[topic]:
            del queues[topic]
    return order


def apart_in_time(steps: list[Input]) -> list[Input]:
    """No two topics share a timestamp: which of two such records goes first nobody promises."""
    topics = sorted({step["topic"] for step in steps})
    width = len(topics)
    return [step | {"timestamp": step["timestamp"] // width * width + topics.index(step["topic"])} for step in steps]


def by_topic(records: list[Written]) -> Topics:
    """Without repartition topics, which a native aggregate does not need; what is in them shows behind them."""
    found: Topics = {}
    for record in records:
        if not record.topic.endswith("-repartition"):
            found.setdefault(record.topic, []).append(untold(record))
    return found


def by_key(topics: Topics) -> Topics:
    """What holds with several partitions: each key's records in order."""
    found: Topics = {}
    for topic, records in topics.items():
        for record in records:
            found.setdefault(f"{topic} {record.key!r}", []).append(record)
    return found


def differences(expected: Topics, found: Topics) -> str:
    """The first of each topic, as text. The changelog of suppress is left out: Kafka writes it at its own commits."""
    lines = []
    for topic in sorted(expected | found):
        they, we = expected.get(topic, []), found.get(topic, [])
        if they != we and not any(record.timestamp is None for record in they):
            pairs = itertools.zip_longest(they, we)
            number, pair = next((number, pair) for number, pair in enumerate(pairs) if pair[0] != pair[1])
            lines.append(
                f"{topic}, {len(they)} and {len(we)} records, at {number}:\n  Kafka {pair[0]}\n  ours  {pair[1]}"
            )
    return "\n".join(lines)


def last_per_topic(topics: Topics) -> Topics:
    """The last record of each key, by key. A native aggregate has no headers: its rows come from many records."""
    found: Topics = {}
    for topic, records in topics.items():
        last = {record.key: record._replace(headers=()) for record in records}
        found[topic] = [last[key] for key in sorted(last, key=str)]
    return found


class Comparison:
    """Runs a case on both."""

    def __init__(self, oracle: Oracle, bootstrap: str, directory: Path) -> None:
        self._oracle = oracle
        self._bootstrap = bootstrap
        self._directory = directory

    def batches(self, case: Case, *, columns: bool = False, partitions: int = 1) -> Iterator[tuple[Topics, Topics]]:
        """What Kafka Streams wrote and what we wrote, by topic, for each batch."""
        size = -(-len(case.inputs) // BATCHES)
        cuts = [in_order(case.inputs[start : start + size]) for start in range(0, len(case.inputs), size)]
        expected: list[list[Written]] = [[] for _ in cuts]
        for partition in range(partitions):  # each is a task of its own, and the oracle has one task
            mine = [[step for step in cut if step.get("partition", 0) == partition] for cut in cuts]
            case.inputs = [step for cut in mine for step in cut]
            theirs = self._oracle.ask(case)
            assert theirs.error is None, theirs.error
            outputs = iter(theirs.outputs)
            for cut, all_records in zip(mine, expected, strict=True):
                all_records += [record for _ in cut for record in next(outputs)]
        application = OnSpark(case, self._bootstrap, self._directory, columns=columns, partitions=partitions)
        for cut, records in zip(cuts, expected, strict=True):
            yield by_topic(records), by_topic(application.batch(cut))


@pytest.fixture
def comparison(oracle: Oracle, bootstrap: str, apart: None, tmp_path: Path) -> Comparison:
    return Comparison(oracle, bootstrap, tmp_path)


def test_operators_over_one_topic_write_the_same_records_of_each_key(comparison: Comparison) -> None:
    families = (
        "aggregates", "windows", "windows-on-close", "sessions", "sessions-on-close", "suppressed", "processors",
    )  # fmt: skip
    cases = [case for family in families for case in picked(family, 2, in_one_task)]
    case = bundled("oracle-one-topic", cases, spread(weather(["in"], 80, 1)), "one-topic.")
    for expected, found in comparison.batches(case, partitions=2):
        theirs, ours = by_key(expected), by_key(found)
        assert not differences(theirs, ours), differences(theirs, ours)


def test_joins_write_the_same_records_in_the_same_order(comparison: Comparison) -> None:
    cases = picked("stream-joins", 4, in_one_task) + picked("table-joins", 1, in_one_task)
    cases += picked("global-joins", 1, in_one_task)
    cases[-1].steps[0]["topic"] = "everyone"
    cases += picked("stateless", 2, in_one_task) + picked("splitting", 2, in_one_task)
    for step in (step for case in cases for step in case.steps):
        if step["op"] == "stream" and step["topics"] in (["views"], ["in"]):
            step["topics"] = ["left"]
    # The first to get a record: once a sink has written something of it, Kafka's dead letter has no key and value left.
    cases.insert(0, Case("poisoned"))
    cases[0].to(cases[0].add("filter", cases[0].stream("left"), f="fail:be"))
    steps = apart_in_time(weather(["left", "right", "profiles"], 60, 2))
    people = apart_in_time(weather(["everyone"], 8, 3))
    case = bundled("oracle-joins", cases, people + steps, "joins.")
    case.dead_letters = "joins.dead-letters"
    for expected, found in comparison.batches(case):
        assert not differences(expected, found), differences(expected, found)


def regrouped() -> Case:
    """Three sub-topologies: a stream is given new keys, a table made of it, and that table grouped anew."""
    strings = {"key": "string", "value": "string"}
    case = Case("regrouped")
    stream = case.add("select_key", case.stream("in"), f="first-letter")
    grouped = case.add("group_by_key", stream, grouped=strings)
    table = case.add("reduce", grouped, f="concat<15", materialized=strings | {"store": "by-letter"})
    case.to(case.add("to_stream", table), "letters")
    again = case.add("group_by", table, key_f="key-upper", value_f="same", grouped=strings)
    fields = {"initial": "empty", "f": "append<30", "subtractor": "remove", "materialized": strings | {"store": "loud"}}
    case.to(case.add("to_stream", case.add("aggregate", again, **fields)))
    return case


def test_tables_over_repartition_topics_write_the_same_records_in_the_same_order(comparison: Comparison) -> None:
    case = bundled("oracle-tables", [regrouped()], weather(["in"], 40, 4), "tables.")
    for expected, found in comparison.batches(case):
        assert not differences(expected, found), differences(expected, found)


NATIVE_INPUTS = ("in1", "in2", "in3", "in4", "in5")


def native_counts() -> Case:
    """What Spark computes by itself, each over its own topic: counts by a new key, per window, per hop; no count; and
    again per hop. Those of in2 and in5 the source counts."""
    strings, longs = {"key": "string", "value": "string"}, {"key": "string", "value": "long"}
    case = Case("native")
    grouped = case.add("group_by", case.stream("in1"), key_f="key-upper", grouped=strings)
    case.to(case.add("to_stream", case.add("count", grouped, materialized=longs | {"store": "counts"})), value="long")
    grouped = case.add("group_by_key", case.stream("in2"), grouped=strings)
    windowed = case.add("windowed_by", grouped, type="time", size=10, grace=5)
    counted = case.add("count", windowed, materialized=longs | {"store": "tumbling"})
    case.to(case.add("to_stream", counted), "tumbled", value="long")
    grouped = case.add("group_by_key", case.stream("in3"), grouped=strings)
    windowed = case.add("windowed_by", grouped, type="time", size=15, advance=5, grace=20)
    summed = case.add("aggregate", windowed, initial="zero", f="sum-length", materialized=longs | {"store": "hops"})
    case.to(case.add("to_stream", summed), "hopped", value="long")
    kept = case.add("filter", case.stream("in4"), f="length>3")
    case.to(case.add("map", kept, key_f="key-upper", value_f="with-key"), "mapped")
    grouped = case.add("group_by_key", case.stream("in5"), grouped=strings)
    windowed = case.add("windowed_by", grouped, type="time", size=15, advance=5, grace=8)
    counted = case.add("count", windowed, materialized=longs | {"store": "overlapping"})
    case.to(case.add("to_stream", counted), "overlapped", value="long")
    return case


def test_native_operators_write_the_last_value_per_key_of_each_batch(comparison: Comparison) -> None:
    steps = [step | {"topic": topic} for step in weather(["in"], 50, 5) for topic in NATIVE_INPUTS]
    case = bundled("oracle-native", [native_counts()], spread(steps), "native.")
    for expected, found in comparison.batches(case, columns=True, partitions=2):
        they, we = by_key({"mapped": expected["native.mapped-0"]}), by_key({"mapped": found["native.mapped-0"]})
        assert not differences(they, we), differences(they, we)
        last_found, last_expected = last_per_topic(found), last_per_topic(expected)
        assert not differences(last_expected, last_found), differences(last_expected, last_found)
