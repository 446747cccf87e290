"""A case on our own TopologyTestDriver."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ottla.streams import Topology, TopologyTestDriver, ValueAndTimestamp
from tests.oracle.cases import Answer, Case, Entry, Input, Written
from tests.oracle.functions import text
from tests.oracle.topologies import topology_of

APPLICATION = "oracle"


def driven(case: Case, *, columns: bool = False) -> Answer:
    """`columns`: as column expressions what can be said by them, instead of Python functions."""
    return driven_topology(topology_of(case, columns=columns), case)


def driven_topology(topology: Topology, case: Case) -> Answer:
    answer = Answer(topology.describe())
    if not case.inputs:
        return answer
    with TopologyTestDriver(topology, APPLICATION, settings_of(case)) as driver:
        for step in case.inputs:
            _feed(driver, step)
            answer.outputs.append(list(_drained(driver)))
        answer.stores = {name: entries(driver, name) for name in case.stores()}
    return answer


@contextmanager
def fed(case: Case) -> Iterator[TopologyTestDriver]:
    """A driver that has seen all input."""
    with TopologyTestDriver(topology_of(case), APPLICATION, settings_of(case)) as driver:
        for step in case.inputs:
            _feed(driver, step)
        yield driver


def entries(driver: TopologyTestDriver, store: str) -> list[Entry]:
    return list(_entries(_contents(driver, store)))


def settings_of(case: Case) -> dict[str, str]:
    cache = {"statestore.cache.max.bytes": str(case.cache)}
    if case.lenient:
        cache["deserialization.exception.handler"] = "continue"
    if case.dead_letters is None:
        return cache
    return cache | {
        "errors.dead.letter.queue.topic.name": case.dead_letters,
        "deserialization.exception.handler": "continue",
        "processing.exception.handler": "continue",
    }


def _feed(driver: TopologyTestDriver, step: Input) -> None:
    if "advance_wall_clock" in step:
        driver.advance_wall_clock_time(step["advance_wall_clock"])
        return
    headers = tuple((name, as_bytes(value)) for name, value in step["headers"])
    driver.pipe_raw(step["topic"], as_bytes(step["key"]), as_bytes(step["value"]), step["timestamp"], headers)


def _drained(driver: TopologyTestDriver) -> Iterator[Written]:
    for topic in sorted(driver.produced_topic_names()):
        records = driver.output(topic)
        while records:
            raw = records.popleft()
            headers = tuple((name, as_text(value)) for name, value in raw.headers)
            yield Written(topic, as_text(raw.key), as_text(raw.value), raw.timestamp, headers)


def _contents(driver: TopologyTestDriver, name: str) -> Iterable[tuple[Any, Any]]:
    ways = (
        driver.get_timestamped_key_value_store,
        driver.get_key_value_store,
        driver.get_timestamped_window_store,
        driver.get_window_store,
        driver.get_session_store,
    )
    for way in ways:
        try:
            return way(name).all()
        except LookupError:
            continue
    driver.get_versioned_key_value_store(name)
    return ()  # it cannot be listed, here as in Kafka


def _entries(contents: Iterable[tuple[Any, Any]]) -> Iterator[Entry]:
    for key, value in contents:
        plain, timestamp = value if isinstance(value, ValueAndTimestamp) else (value, None)
        yield Entry(_shown(key), _shown(plain), timestamp)


def _shown(value: Any) -> str | int:
    return value if isinstance(value, int) else text(value)


def as_bytes(latin: str | None) -> bytes | None:
    return None if latin is None else latin.encode("latin-1")


def as_text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("latin-1")
