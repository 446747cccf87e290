"""A topology of strings, run in the test driver: what goes in, and what comes out as (key, value, timestamp)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.serdes import Serdes
from ottla.streams.test_driver import TopologyTestDriver
from ottla.streams.windows import Windowed

Input = tuple[Any, ...]
"""(topic, key, value, timestamp)"""


def driver_of(build: Callable[[StreamsBuilder], None], config: Mapping[str, Any] | None = None) -> TopologyTestDriver:
    """Without record caches, so that every update shows."""
    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    build(builder)
    return TopologyTestDriver(builder.build(), "app", {"statestore.cache.max.bytes": 0, **(config or {})})


def feed(driver: TopologyTestDriver, inputs: Sequence[Input]) -> None:
    for topic, key, value, timestamp in inputs:
        driver.create_input_topic(topic, Serdes.string, Serdes.string).pipe_input(key, value, timestamp)


def results(driver: TopologyTestDriver, topic: str = "out") -> list[tuple[Any, Any, int]]:
    records = driver.create_output_topic(topic).read_all()
    return [(shown(record.key), record.value, record.timestamp) for record in records]


def run(build: Callable[[StreamsBuilder], None], inputs: Sequence[Input]) -> list[tuple[Any, Any, int]]:
    with driver_of(build) as driver:
        feed(driver, inputs)
        return results(driver)


def shown(key: Any) -> Any:
    """A windowed key as [key@start/end], as Java prints it."""
    return f"[{key.key}@{key.window.start}/{key.window.end}]" if isinstance(key, Windowed) else key
