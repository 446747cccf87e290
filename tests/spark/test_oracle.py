"""On Spark, every operator does what Kafka Streams does.

Cases of the oracle share a topology, so that one query serves many. Each application runs twice, the second time from
the checkpoint of the first, and each run takes several micro-batches. Where runs and batches are cut is random; the
seed stands in the name of the test. OTTLA_ORACLE_SEEDS=1,2,3 tries others, with other topologies and input as well.
"""

import itertools
import os
import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from ottla.client.partitioner import partition_of_key
from ottla.model.ids import TopicPartition
from ottla.pipelines.source.offsets import share
from ottla.streams import Topology
from tests.oracle import functions, processors, topologies
from tests.oracle.bundles import bundled
from tests.oracle.cases import Case, Input, Weather, Written
from tests.oracle.comparing import untold
from tests.oracle.families import random_case
from tests.oracle.kafka import Oracle
from tests.oracle.on_spark import OnSpark
from tests.oracle.sql_cases import inputs, sql_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.jvm

Topics = dict[str, list[Written]]

SEEDS = tuple(int(seed) for seed in os.environ.get("OTTLA_ORACLE_SEEDS", "1").split(","))
RUNS = 2
CACHE = 10_000_000
MOST_BATCHES = 3
"""In a run, about."""
LATELY = int(time.time()) // 600 * 600_000 - 3 * 86_400_000
"""On the edge of every window. Records of 1970 would be past the retention of their topics."""
NOT_COMPARABLE = {"clock", "times", "headers"}
"""Processors that tell the wall clock, or the number of the partition: they have a test of their own."""


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


def picked(family: str, count: int, fits: Callable[[Case], bool], seed: int) -> list[Case]:
    """The first random cases that fit."""
    found: list[Case] = []
    for number in itertools.count(400 * seed):
        case = random_case(family, number)
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


def of_one_topic(case: Case) -> bool:
    return in_one_task(case) and case.topics() == {"in"}


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


def last_per_key(topics: Topics) -> Topics:
    """The last record of each key."""
    return {topic: list({record.key: record for record in records}.values()) for topic, records in topics.items()}


class Cut(NamedTuple):
    """The inputs of a run, and how they come: at most so many in a micro-batch."""

    most: int
    batches: list[list[Input]]
    clock: int = 0

    @property
    def inputs(self) -> list[Input]:
        return [step for batch in self.batches for step in batch]


def cut(
    inputs: list[Input], dice: random.Random, apart: frozenset[str] = frozenset(), *, together: bool = False
) -> list[Cut]:
    """Anywhere. Topics that are `apart` are read by other queries, all at once, and by these first. Those that one task
    reads `together` go by their times, wherever batches end."""
    first = next(number for number, step in enumerate(inputs) if step["topic"] not in apart)
    places = sorted(dice.sample(range(first + 1, len(inputs)), RUNS - 1))
    runs = [inputs[start:end] for start, end in itertools.pairwise([0, *places, len(inputs)])]
    found = [_in_batches(run, dice, apart) for run in runs]
    if not together:
        return found
    return [
        Cut(each.most, [each.batches[0], in_order([step for step in run if step["topic"] not in apart])])
        for each, run in zip(found, runs, strict=True)
    ]


def _in_batches(run: list[Input], dice: random.Random, apart: frozenset[str]) -> Cut:
    """As the source decides what comes into each micro-batch."""
    queues: dict[TopicPartition, list[Input]] = {}
    for step in run:
        if step["topic"] not in apart:
            queues.setdefault(TopicPartition(step["topic"], step.get("partition", 0)), []).append(step)
    # What different queries read is cut by each of them on its own.
    most = dice.randint(-(-sum(map(len, queues.values())) // MOST_BATCHES), len(run))
    begin, ends = dict.fromkeys(queues, 0), {place: len(queue) for place, queue in queues.items()}
    batches = [[step for step in run if step["topic"] in apart]]
    while begin != ends:
        end = share(begin, ends, most)
        new = {id(step) for place, queue in queues.items() for step in queue[begin[place] : end[place]]}
        batches.append(in_order([step for step in run if id(step) in new]))
        begin = end
    return Cut(most, batches)


class Ran(NamedTuple):
    """What Kafka Streams wrote and what we wrote in one run, by topic; of theirs each micro-batch for itself too."""

    theirs: Topics
    ours: Topics
    their_batches: list[Topics]


class Comparison:
    """Runs a case on both."""

    def __init__(self, oracle: Oracle, bootstrap: str, directory: Path) -> None:
        self._oracle = oracle
        self._bootstrap = bootstrap
        self._directory = directory

    def runs(
        self,
        case: Case,
        cuts: list[Cut],
        *,
        columns: bool = False,
        partitions: int = 1,
        topology: Topology | None = None,
    ) -> Iterator[Ran]:
        expected = self.expected(case, cuts, partitions)
        application = OnSpark(
            case, self._bootstrap, self._directory, columns=columns, partitions=partitions, topology=topology
        )
        for each, batches in zip(cuts, expected, strict=True):
            ours = application.run(each.inputs, most=each.most, clock=each.clock)
            theirs = [record for batch in batches for record in batch]
            yield Ran(by_topic(theirs), by_topic(ours), [by_topic(batch) for batch in batches])

    def ours(self, case: Case, cuts: list[Cut], *, partitions: int) -> Iterator[list[Written]]:
        application = OnSpark(case, self._bootstrap, self._directory, partitions=partitions)
        for each in cuts:
            yield application.run(each.inputs, most=each.most, clock=each.clock)

    def expected(
        self, case: Case, cuts: list[Cut], partitions: int = 1, *, clock_first: bool = True
    ) -> list[list[list[Written]]]:
        """Of each micro-batch of each run. The clock of a run is set before its first records, or behind those of its
        first batch: a batch looks after punctuators when its records are done."""
        found: list[list[list[Written]]] = [[[] for _ in each.batches] for each in cuts]
        for partition in range(partitions):  # each is a task of its own, and the oracle has one task
            case.inputs = []
            owners: list[list[Written]] = []
            now = 0
            for each, results in zip(cuts, found, strict=True):
                for batch, result in zip(each.batches, results, strict=True):
                    mine = [step for step in batch if step.get("partition", 0) == partition]
                    ticks = [{"advance_wall_clock": each.clock - now}] if each.clock > now and batch else []
                    now = each.clock if ticks else now
                    steps = [*ticks, *mine] if clock_first else [*mine, *ticks]
                    case.inputs += steps
                    owners += [result] * len(steps)
            theirs = self._oracle.ask(case)
            assert theirs.error is None, theirs.error
            for owner, records in zip(owners, theirs.outputs, strict=True):
                owner.extend(records)
        return found


@pytest.fixture
def comparison(oracle: Oracle, bootstrap: str, apart: None, tmp_path: Path) -> Comparison:
    return Comparison(oracle, bootstrap, tmp_path)


def same(theirs: Topics, ours: Topics) -> None:
    told = differences(theirs, ours)
    assert not told, told


@pytest.mark.parametrize("seed", SEEDS)
def test_operators_over_one_topic_write_the_same_records_of_each_key(comparison: Comparison, seed: int) -> None:
    families = (
        "aggregates", "windows", "windows-on-close", "sliding-windows", "sliding-windows-on-close", "unlimited-windows",
        "sessions", "sessions-on-close", "suppressed", "held-back", "processors",
    )  # fmt: skip
    cases = [case for family in families for case in picked(family, 2, of_one_topic, seed)]
    prefix = f"one-topic-{seed}."
    case = bundled(f"oracle-one-topic-{seed}", cases, spread(weather(["in"], 80, seed)), prefix)
    for ran in comparison.runs(case, cut(case.inputs, random.Random(seed)), partitions=2):
        same(by_key(ran.theirs), by_key(ran.ours))


@pytest.mark.parametrize("seed", SEEDS)
def test_cogroups_write_the_same_records_in_the_same_order(comparison: Comparison, seed: int) -> None:
    cases = picked("cogrouped", 4, in_one_task, seed)
    topics = sorted({topic for case in cases for topic in case.topics()})
    inputs = apart_in_time(weather(topics, 60, seed + 6))
    case = bundled(f"oracle-cogroups-{seed}", cases, inputs, f"cogroups-{seed}.")
    for ran in comparison.runs(case, cut(case.inputs, random.Random(seed), together=True)):
        same(ran.theirs, ran.ours)


def tells_every_row(case: Case) -> bool:
    """Rows are not deleted again: one that came and went within a batch is not told of."""
    told = all("<" not in step.get("f", "") and step["op"] != "filter" for step in case.steps)
    return told and of_one_topic(case)


@pytest.mark.parametrize("seed", SEEDS)
def test_tasks_with_record_caches_write_the_last_update_per_key_of_each_batch(
    comparison: Comparison, seed: int
) -> None:
    families = ("aggregates", "windows", "sliding-windows")
    cases = [case for family in families for case in picked(family, 2, tells_every_row, seed)]
    case = bundled(f"oracle-cached-{seed}", cases, weather(["in"], 50, seed + 7), f"cached-{seed}.")
    case.cache = CACHE
    for ran in comparison.runs(case, cut(case.inputs, random.Random(seed))):
        theirs: Topics = {}
        for batch in ran.their_batches:
            for topic, records in last_per_key(batch).items():
                theirs.setdefault(topic, []).extend(records)
        same(by_key(theirs), by_key(ran.ours))


@pytest.mark.parametrize("seed", SEEDS)
def test_joins_write_the_same_records_in_the_same_order(comparison: Comparison, seed: int) -> None:
    cases = picked("stream-joins", 4, in_one_task, seed) + picked("table-joins", 1, in_one_task, seed)
    cases += picked("global-joins", 1, in_one_task, seed)
    cases[-1].steps[0]["topic"] = "everyone"
    cases += picked("stateless", 2, in_one_task, seed) + picked("splitting", 2, in_one_task, seed)
    for step in (step for case in cases for step in case.steps):
        if step["op"] == "stream" and step["topics"] in (["views"], ["in"]):
            step["topics"] = ["left"]
    # The first to get a record: once a sink has written something of it, Kafka's dead letter has no key and value left.
    cases.insert(0, Case("poisoned"))
    cases[0].to(cases[0].add("filter", cases[0].stream("left"), f="fail:be"))
    steps = apart_in_time(weather(["left", "right", "profiles"], 60, seed + 1))
    people = apart_in_time(weather(["everyone"], 8, seed + 2))
    prefix = f"joins-{seed}."
    case = bundled(f"oracle-joins-{seed}", cases, people + steps, prefix)
    case.dead_letters = f"{prefix}dead-letters"
    cuts = cut(case.inputs, random.Random(seed), frozenset({f"{prefix}everyone"}), together=True)
    for ran in comparison.runs(case, cuts):
        same(ran.theirs, ran.ours)


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


@pytest.mark.parametrize("seed", SEEDS)
def test_tables_over_repartition_topics_write_the_same_records_in_the_same_order(
    comparison: Comparison, seed: int
) -> None:
    case = bundled(f"oracle-tables-{seed}", [regrouped()], weather(["in"], 40, seed + 3), f"tables-{seed}.")
    for ran in comparison.runs(case, cut(case.inputs, random.Random(seed))):
        same(ran.theirs, ran.ours)


@pytest.mark.matrix
@pytest.mark.parametrize("seed", SEEDS)
def test_optimized_topologies_write_the_same_records_in_the_same_order(comparison: Comparison, seed: int) -> None:
    cases = picked("optimized", 3, lambda case: case.topics() == {"in"} and len(case.steps) > 6, seed)
    case = bundled(f"oracle-optimized-{seed}", cases, weather(["in"], 40, seed + 8), f"optimized-{seed}.")
    case.optimization = "all"
    for ran in comparison.runs(case, cut(case.inputs, random.Random(seed))):
        same(ran.theirs, ran.ours)


def joined_tables() -> Case:
    """Joins by key of every kind, kept and not, looked up and regrouped; a transformer with a store between them."""
    strings = {"key": "string", "value": "string"}
    case = Case("joined-tables")
    left, right, third = (
        case.table(topic, store) for topic, store in (("left", "kept-left"), ("right", None), ("third", None))
    )
    case.store("seen")
    changed = {"kind": "changed", "store": "seen"}
    third = case.add(
        "transform_values", third, transformer=changed, stores=["seen"], materialized=strings | {"store": "third"}
    )
    inner = case.add("join", left, other=right, f="pair")
    outer = case.add("outer_join", inner, other=third, f="pair", materialized=strings | {"store": "outer"})
    marked = case.add("transform_values", outer, transformer={"kind": "marked", "kept": False})
    lefts = case.add("left_join", third, other=marked, f="pair")
    for number, table in enumerate((inner, outer, lefts)):
        case.to(case.add("to_stream", table), f"out-{number}")
    joined = case.add("left_join", case.stream("views"), other=lefts, f="pair", joined=strings | {"other": "string"})
    case.to(joined, "viewed")
    return case


@pytest.mark.parametrize("seed", SEEDS)
def test_joins_of_tables_write_the_same_records_in_the_same_order(comparison: Comparison, seed: int) -> None:
    steps = apart_in_time(weather(["left", "right", "third", "views"], 80, seed + 6))
    case = bundled(f"oracle-joined-tables-{seed}", [joined_tables()], steps, f"joined-tables-{seed}.")
    for ran in comparison.runs(case, cut(case.inputs, random.Random(seed), together=True)):
        same(ran.theirs, ran.ours)


def by_foreign_keys() -> Case:
    """One join behind the other, the second with a table that is made of another one, and a count of the result."""
    strings, longs = {"key": "string", "value": "string"}, {"key": "string", "value": "long"}
    case = Case("foreign-keys")
    left, right = case.table("left"), case.table("right", "kept-right")
    third = case.add("map_values", case.table("third"), f="null-if:b")
    kept = strings | {"store": "joined"}
    named = {"name": "by-letter"}
    inner = case.add("join", left, other=right, f="pair", key_f="first-letter", materialized=kept, table_joined=named)
    lefts = case.add("left_join", left, other=third, f="pair", key_f="first-letter", materialized=strings)
    both = case.add("left_join", inner, other=third, f="pair", key_f="key-letter", materialized=strings)
    for number, table in enumerate((inner, lefts, both)):
        case.to(case.add("to_stream", table), f"out-{number}")
    grouped = case.add("group_by", inner, key_f="first-letter", value_f="same", grouped=strings)
    case.to(case.add("to_stream", case.add("count", grouped, materialized=longs)), "counts", value="long")
    return case


EMPTY = "\0" * 8


def as_tables(
    topics: Topics, before: dict[str, dict[str | None, str | None]]
) -> dict[str, dict[str | None, str | None]]:
    """What the outputs hold in the end: the last value of each key that was not deleted. A group that has become empty
    may as well never have been."""
    for topic, records in topics.items():
        if not topic.startswith("oracle-"):
            rows = before.setdefault(topic, {})
            rows.update((record.key, record.value) for record in records)
            before[topic] = {key: value for key, value in rows.items() if value not in (None, EMPTY)}
    return before


@pytest.mark.matrix
@pytest.mark.parametrize("seed", SEEDS)
def test_joins_by_foreign_key_hold_the_same_tables_after_each_run(comparison: Comparison, seed: int) -> None:
    """Both sides are queries of their own, and Kafka promises no order between them either: the last results count.
    Rows of the left table lie where nobody would look for them by their keys."""
    dice = random.Random(seed)
    steps = weather(["left"], 60, seed + 7)
    for step in weather(["right", "third"], 60, seed + 8):
        step["key"] = dice.choice(["a", "b", "d", "e", "s", "\xc3"])
        steps.insert(
            dice.randint(0, len(steps)), step | {"partition": partition_of_key(step["key"].encode("latin-1"), 2)}
        )
    placed = [step if "partition" in step else step | {"partition": len(step["key"] or "") % 2} for step in steps]
    case = bundled(f"oracle-foreign-keys-{seed}", [by_foreign_keys()], placed, f"foreign-keys-{seed}.")
    cuts = cut(case.inputs, dice)
    together = [
        each._replace(batches=[[step | {"partition": 0} for step in batch] for batch in each.batches]) for each in cuts
    ]
    expected = comparison.expected(case, together)
    theirs: dict[str, dict[str | None, str | None]] = {}
    ours: dict[str, dict[str | None, str | None]] = {}
    for batches, written in zip(expected, comparison.ours(case, cuts, partitions=2), strict=True):
        as_tables(by_topic([record for batch in batches for record in batch]), theirs)
        assert as_tables(by_topic(written), ours) == theirs


def native_counts() -> Case:
    """What Spark computes by itself, each over its own topic: counts by a new key, per window, per hop, behind Python
    functions; no count; and again per hop. Those of in2 and in7 the source counts."""
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
    twice = case.add("flat_map_values", case.stream("in5"), f="twice")
    grouped = case.add("group_by_key", twice, grouped=strings)
    counted = case.add("count", grouped, materialized=longs | {"store": "doubled"})
    case.to(case.add("map_values", case.add("to_stream", counted), f="plus:1"), "doubles", value="long")
    twice = case.add("flat_map_values", case.stream("in6"), f="twice")
    grouped = case.add("group_by_key", twice, grouped=strings)
    windowed = case.add("windowed_by", grouped, type="time", size=10, grace=5)
    counted = case.add("count", windowed, materialized=longs | {"store": "tumbling-twice"})
    case.to(case.add("to_stream", counted), "tumbled-twice", value="long")
    grouped = case.add("group_by_key", case.stream("in7"), grouped=strings)
    windowed = case.add("windowed_by", grouped, type="time", size=15, advance=5, grace=8)
    counted = case.add("count", windowed, materialized=longs | {"store": "overlapping"})
    case.to(case.add("to_stream", counted), "overlapped", value="long")
    return case


@pytest.mark.parametrize("seed", SEEDS)
def test_native_operators_write_the_last_value_per_key_of_each_batch_with_the_headers_of_its_record(
    comparison: Comparison, seed: int
) -> None:
    one = spread(weather(["in"], 50, seed + 4))
    cuts_of_one = cut(one, random.Random(seed))
    prefix = f"native-{seed}."
    topics = [f"{prefix}in{number}" for number in range(1, 8)]
    case = bundled(f"oracle-native-{seed}", [native_counts()], [], prefix)
    case.cache = CACHE
    cuts = [
        each._replace(
            batches=[[step | {"topic": topic} for step in batch for topic in topics] for batch in each.batches]
        )
        for each in cuts_of_one
    ]
    for ran in comparison.runs(case, cuts, columns=True, partitions=2):
        mapped = f"{prefix}mapped-0"
        same(by_key({mapped: ran.theirs.pop(mapped)}), by_key({mapped: ran.ours.pop(mapped)}))
        theirs: Topics = {}
        for batch in ran.their_batches:
            for topic, records in last_per_key(batch).items():
                theirs.setdefault(topic, []).extend(records if topic != mapped else ())
        same(by_key(theirs), by_key(ran.ours))


def clocks() -> Case:
    """What tells the wall clock, headers or the origin of records."""
    case = Case("clocks")
    stream = case.stream("in")
    for number, fields in enumerate(
        [
            {"interval": 10, "clear": False},
            {"interval": 7, "clear": True, "start": 5},
            {"interval": 30, "clear": False, "times": 2},
        ]
    ):
        store = case.store(f"kv{number}")
        spec = {"kind": "clock", "type": "wall", "store": store, **fields}
        case.to(case.add("process", stream, processor=spec, stores=[store]), f"ticks{number}")
    for kind in ("headers", "times"):
        case.to(case.add("process", stream, processor={"kind": kind}, stores=[]), kind)
    return case


@pytest.mark.parametrize("seed", SEEDS)
def test_the_wall_clock_and_headers_are_what_kafka_streams_shows_a_processor(comparison: Comparison, seed: int) -> None:
    dice = random.Random(seed)
    case = bundled(f"oracle-clocks-{seed}", [clocks()], weather(["in"], 30, seed + 5), f"clocks-{seed}.")
    first, second = cut(case.inputs, dice)
    cuts = [first, second._replace(clock=dice.choice([7, 10, 35, 90]))]
    told = [by_topic(list(itertools.chain(*run))) for run in comparison.expected(case, cuts)]
    ticked = [by_topic(list(itertools.chain(*run))) for run in comparison.expected(case, cuts, clock_first=False)]
    assert any("ticks" in topic for topic in ticked[1])
    for by_records, by_clock, ran in zip(told, ticked, comparison.runs(case, cuts), strict=True):
        shown = {topic: records for topic, records in by_records.items() if "headers" in topic or "times" in topic}
        expected = {topic: records for topic, records in by_clock.items() if topic not in shown} | shown
        same(expected, ran.ours)


SQL = """
CREATE STREAM s (id STRING KEY, v STRING, n BIGINT, a ARRAY<INT>) WITH (KAFKA_TOPIC='{p}s', VALUE_FORMAT='JSON');
CREATE STREAM kept WITH (KAFKA_TOPIC='{p}kept') AS SELECT id, UCASE(v) AS up, n * 2 AS twice FROM s WHERE n > 0;
CREATE STREAM items WITH (KAFKA_TOPIC='{p}items') AS SELECT id, v, EXPLODE(a) AS item FROM s;
CREATE TABLE counts WITH (KAFKA_TOPIC='{p}counts') AS
    SELECT v, COUNT(*) AS c, SUM(n) AS total, AVG(n) AS mean FROM s WHERE v <> '' GROUP BY v;
CREATE TABLE lists WITH (KAFKA_TOPIC='{p}lists') AS
    SELECT id, COLLECT_LIST(n) AS every, LATEST_BY_OFFSET(v) AS newest FROM s GROUP BY id;
CREATE TABLE tumbled WITH (KAFKA_TOPIC='{p}tumbled') AS
    SELECT id, COUNT(*) AS c, MAX(n) AS high FROM s WINDOW TUMBLING (SIZE 10 MILLISECONDS) GROUP BY id;
CREATE TABLE sessions WITH (KAFKA_TOPIC='{p}sessions') AS
    SELECT id, COUNT(*) AS c, SUM(n) AS total FROM s WINDOW SESSION (5 MILLISECONDS) GROUP BY id;
"""


@pytest.mark.parametrize("seed", SEEDS)
def test_queries_of_sql_write_what_kafka_streams_does_or_the_last_of_it_per_key_and_batch(
    comparison: Comparison, seed: int
) -> None:
    """Streams every record. Of tables it is the last row of each key in a batch, as they say themselves."""
    prefix = f"sql-{seed}."
    sql = sql_case(f"oracle-sql-{seed}", {"statements": SQL.replace("{p}", prefix)})
    assert sql is not None
    given = [
        step | {"timestamp": step["timestamp"] + LATELY} for step in inputs(random.Random(seed), [f"{prefix}s"], 50)
    ]
    sql.case.cache = CACHE
    every, sessions = {f"{prefix}kept", f"{prefix}items"}, f"{prefix}sessions"
    rows: list[dict[str, dict[str | None, str | None]]] = [{}, {}]
    for ran in comparison.runs(sql.case, cut(given, random.Random(seed)), topology=sql.topology):
        theirs: Topics = {}
        for batch in ran.their_batches:
            for topic, records in batch.items():
                told = records if topic in every else last_per_key({topic: records})[topic]
                theirs.setdefault(topic, []).extend(told)
        # A session that came and went within a batch is not told of: of these it is the table that is the same.
        kept = [
            as_tables({sessions: side.pop(sessions, [])}, before)
            for side, before in zip((theirs, ran.ours), rows, strict=True)
        ]
        assert kept[0] == kept[1]
        same(by_key(public(theirs)), by_key(public(ran.ours)))


SQL_JOINS = """
CREATE STREAM s (id STRING KEY, v STRING, n BIGINT, a ARRAY<INT>) WITH (KAFKA_TOPIC='{p}s', VALUE_FORMAT='JSON');
CREATE STREAM r (id STRING KEY, w STRING, m INT) WITH (KAFKA_TOPIC='{p}r', VALUE_FORMAT='JSON');
CREATE TABLE u (id STRING PRIMARY KEY, w STRING, m INT) WITH (KAFKA_TOPIC='{p}u', VALUE_FORMAT='JSON');
CREATE STREAM eager WITH (KAFKA_TOPIC='{p}eager') AS
    SELECT s.id AS k, s.v, r.w FROM s LEFT JOIN r WITHIN 10 MILLISECONDS ON s.id = r.id;
CREATE STREAM patient WITH (KAFKA_TOPIC='{p}patient') AS SELECT ROWKEY, s.n, r.m
    FROM s FULL OUTER JOIN r WITHIN (5 MILLISECONDS, 20 MILLISECONDS) GRACE PERIOD 5 MILLISECONDS ON s.id = r.id;
CREATE STREAM looked_up WITH (KAFKA_TOPIC='{p}looked-up') AS
    SELECT s.id AS k, s.v, u.w FROM s LEFT JOIN u ON s.id = u.id WHERE s.n > 0;
"""


@pytest.mark.parametrize("seed", SEEDS)
def test_joins_of_sql_write_the_same_records_in_the_same_order(comparison: Comparison, seed: int) -> None:
    prefix = f"sql-joins-{seed}."
    sql = sql_case(f"oracle-sql-joins-{seed}", {"statements": SQL_JOINS.replace("{p}", prefix)})
    assert sql is not None
    assert len(sql.topology.sub_topologies()) == 1
    drawn = inputs(random.Random(seed + 1), [f"{prefix}{name}" for name in "sru"], 70)
    given = apart_in_time([step | {"timestamp": step["timestamp"] + LATELY} for step in drawn])
    for ran in comparison.runs(sql.case, cut(given, random.Random(seed), together=True), topology=sql.topology):
        same(public(ran.theirs), public(ran.ours))


def public(topics: Topics) -> Topics:
    return {topic: records for topic, records in topics.items() if not topic.startswith("oracle-")}
