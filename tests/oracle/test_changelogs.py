"""A changelog that Kafka Streams wrote makes our store what its own store is, so that an application of ours goes on
where one of Java stopped. The way back needs no test of its own: both write the same bytes (test_operators)."""

from collections.abc import Iterator

import pytest

from ottla.streams import TopologyTestDriver
from tests.oracle.cases import Answer, Case, Written
from tests.oracle.families import random_case
from tests.oracle.kafka import Oracle
from tests.oracle.ours import APPLICATION, as_bytes, entries, fed, settings_of
from tests.oracle.topologies import topology_of

pytestmark = pytest.mark.jvm

SEEDS = range(500, 510)
FAMILIES = ("aggregates", "windows", "sessions", "processors", "store-reads", "tables", "grouped-tables")
"""Key-value stores with and without timestamps, window and session stores, of bounded size and in memory."""


def changes(answer: Answer, store: str) -> list[Written]:
    topic = f"{APPLICATION}-{store}-changelog"
    return [record for records in answer.outputs for record in records if record.topic == topic]


def unlogged(case: Case) -> set[str]:
    kept = [step.get("materialized", {}) for step in case.steps]
    return {step["store"] for step in kept if step.get("logging") is False and "store" in step}


def restored(case: Case, theirs: Answer) -> Iterator[tuple[str, TopologyTestDriver]]:
    """Each store out of its changelog, in a driver that has been given no input."""
    assert theirs.error is None, f"{case.name}: {theirs.error}"
    with TopologyTestDriver(topology_of(case), APPLICATION, settings_of(case)) as driver:
        for name in sorted(case.stores() - unlogged(case)):
            store = driver.get_state_store(name)
            for record in changes(theirs, name):
                headers = tuple((header, as_bytes(value)) for header, value in record.headers)
                store.restore(as_bytes(record.key), as_bytes(record.value), record.timestamp, headers)
            yield name, driver


@pytest.mark.parametrize("family", FAMILIES)
def test_a_changelog_of_kafka_streams_makes_its_store(oracle: Oracle, family: str) -> None:
    for case, theirs in oracle.ask_all([random_case(family, seed) for seed in SEEDS]):
        for name, driver in restored(case, theirs):
            assert entries(driver, name) == theirs.stores[name], f"{case.name}: store {name}"


def test_a_changelog_of_kafka_streams_makes_the_history_of_a_versioned_store(oracle: Oracle) -> None:
    for case, theirs in oracle.ask_all([random_case("versioned-stores", seed) for seed in SEEDS]):
        with fed(case) as went_on:
            known = went_on.get_versioned_key_value_store("kept")
            for name, driver in restored(case, theirs):
                store = driver.get_versioned_key_value_store(name)
                for key in ("a", "b"):
                    assert store.get(key) == known.get(key)
                    assert store.history(key, 0, 1 << 40) == known.history(key, 0, 1 << 40)
