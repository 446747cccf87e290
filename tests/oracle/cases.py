"""Cases for the oracle: a topology as steps, and what is fed into it. Both Kafka Streams and ours are driven by one.

A case is JSON: {"id", "topology": [step, ...], "inputs": [input, ...], "stores": [name, ...]}. A step has "op", "in"
(what it takes), "out" (the name others take its result by) and the fields of its operator; functions are named, see
functions.py. An input is {"topic", "key", "value", "timestamp", "headers"} or {"advance_wall_clock": milliseconds}.
With "dead_letters", the name of a topic, records that fail go there and processing goes on.
Keys, values and headers are bytes, written as Latin-1 text: compared byte by byte and still legible.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Step = dict[str, Any]
Input = dict[str, Any]


class Written(NamedTuple):
    """A record in an output topic."""

    topic: str
    key: str | None
    value: str | None
    timestamp: int | None
    headers: tuple[tuple[str, str | None], ...] = ()


class Entry(NamedTuple):
    """What a store holds at the end. A windowed key is [key@start/end]; a plain store has no timestamps."""

    key: str | int
    value: str | int
    timestamp: int | None


@dataclass(slots=True)
class Answer:
    """What became of a case."""

    describe: str = ""
    outputs: list[list[Written]] = field(default_factory=list)
    """One list for each input, by topic and then in order of writing."""
    stores: dict[str, list[Entry]] = field(default_factory=dict)
    error: str | None = None


@dataclass(slots=True)
class Case:
    name: str
    steps: list[Step] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    dead_letters: str | None = None
    """The topic for records that fail; with one, processing goes on after an error."""
    cache: int = 0
    """How many bytes the record caches have; none: every update goes out."""
    optimization: str = "none"
    """Kafka's topology.optimization."""
    lenient: bool = False
    """What cannot be read is skipped."""
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)
    """Those of ours that Kafka Streams asks for while it runs; calls.py tells how."""

    def add(self, op: str, source: str | None = None, /, **fields: Any) -> str:
        """One more step. Returns the name of its result."""
        result = f"{op}-{len(self.steps)}"
        step: Step = {"op": op, "out": result} | {name: value for name, value in fields.items() if value is not None}
        if source is not None:
            step["in"] = source
        self.steps.append(step)
        return result

    def stream(self, *topics: str, key: str = "string", value: str = "string", **options: Any) -> str:
        return self.add("stream", topics=list(topics), consumed={"key": key, "value": value} | options)

    def table(self, topic: str, store: str | None = None, value: str = "string") -> str:
        kept = {"store": store, "key": "string", "value": value}
        return self.add("table", topic=topic, consumed={"key": "string", "value": value}, materialized=kept)

    def global_table(self, topic: str, store: str | None = None) -> str:
        kept = {"store": store, "key": "string", "value": "string"}
        return self.add("global_table", topic=topic, consumed={"key": "string", "value": "string"}, materialized=kept)

    def store(self, name: str) -> str:
        self.add("store", kind="key-value", name=name, key="string", value="string")
        return name

    def to(self, source: str, topic: str = "out", value: str | None = "string", key: str | None = None) -> None:
        self.add("to", source, topic=topic, produced={"key": key, "value": value})

    def feed(self, topic: str, key: str | None, value: str | None, timestamp: int, *headers: tuple[str, str]) -> None:
        self.inputs.append(
            {
                "topic": topic,
                "key": latin(key),
                "value": latin(value),
                "timestamp": timestamp,
                "headers": [[name, latin(text)] for name, text in headers],
            }
        )

    def advance_wall_clock(self, milliseconds: int) -> None:
        self.inputs.append({"advance_wall_clock": milliseconds})

    def document(self) -> dict[str, Any]:
        return {
            "id": self.name,
            "topology": self.steps,
            "inputs": self.inputs,
            "stores": sorted(self.stores()),
            "dead_letters": self.dead_letters,
            "cache": self.cache,
            "optimization": self.optimization,
            "lenient": self.lenient,
        }

    def topics(self) -> set[str]:
        """Those that it is fed by."""
        return {step["topic"] for step in self.inputs if "topic" in step}

    def stores(self) -> set[str]:
        """The names of those stores that have one of the user's; not of those with headers, which a processor tells."""
        made = [step for step in self.steps if step["op"] in ("store", "add_store")]
        named = {step["name"] for step in made if not step.get("headers")}
        kept = (step.get("materialized", {}).get("store") for step in self.steps)
        return named | {name for name in kept if name is not None}


def latin(text: str | None) -> str | None:
    """UTF-8 bytes, a character for each."""
    return None if text is None else text.encode().decode("latin-1")


KEYS = ["a", "b", "c", "ab", "ü", ""]
WORDS = ["alpha", "be", "sea", "delta wing", "e", "Über", "", "one two one", "xylophone"]


class Weather:
    """Random input: times that come out of order, tombstones, missing keys, headers now and then."""

    def __init__(self, dice: random.Random, pace: int, keys: list[str] | None = None) -> None:
        self.dice = dice
        self._pace = pace
        self._keys = keys or dice.sample(KEYS, dice.randint(1, 4))
        self._now = dice.choice([0, 1, pace, 5 * pace])

    def time(self) -> int:
        """Mostly forward, often on the edge of a window, sometimes far back."""
        dice, pace = self.dice, self._pace
        if dice.random() < 0.6:
            self._now += dice.choice([0, 1, pace // 2, pace, dice.randint(0, 3 * pace)])
            if dice.random() < 0.3:
                self._now = max(self._now, self._now // pace * pace + dice.choice([-1, 0, 1]))
            return max(0, self._now)
        if dice.random() < 0.05:
            self._now += dice.choice([20 * pace, 20 * pace, 70_000, 10_000_000])  # stores forget by the minute
            return self._now
        return max(0, self._now - dice.choice([1, pace - 1, pace, pace + 1, dice.randint(0, 5 * pace)]))

    def key(self) -> str | None:
        return None if self.dice.random() < 0.07 else self.dice.choice(self._keys)

    def value(self) -> str | None:
        return None if self.dice.random() < 0.15 else self.dice.choice(WORDS)

    def headers(self) -> list[tuple[str, str]]:
        dice = self.dice
        if dice.random() < 0.7:
            return []
        return [(dice.choice(["h", "trace"]), str(dice.randint(0, 9))) for _ in range(dice.randint(1, 2))]

    def rain(self, case: Case, topics: list[str], count: int) -> None:
        for _ in range(count):
            topic = self.dice.choice(topics)
            case.feed(topic, self.key(), self.value(), self.time(), *self.headers())
