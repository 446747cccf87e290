"""Every operator does what Kafka Streams does, record by record: outputs, internal topics, final stores."""

import pytest

from tests.oracle.batches import in_batches
from tests.oracle.cases import Case
from tests.oracle.comparing import same_outputs, same_sequences, same_stores
from tests.oracle.families import FAMILIES, random_case
from tests.oracle.hand_made import HAND_MADE, hand_made
from tests.oracle.kafka import Oracle
from tests.oracle.ours import driven

pytestmark = pytest.mark.jvm

SEEDS = range(14)
OTHER_SEEDS = range(100, 105)
ORDERED = [family for family in FAMILIES if family != "mixed"]
"""Kafka promises no order between two sub-topologies, nor between their repartition topics."""
EVERY_UPDATE = [family for family in ORDERED if family != "cached"]


def the_same(oracle: Oracle, cases: list[Case]) -> None:
    for case, theirs in oracle.ask_all(cases):
        ours = driven(case)
        same_outputs(case, theirs, ours)
        same_stores(case, theirs, ours)
        same_outputs(case, theirs, driven(case, columns=True), internal=False)


def test_topologies_picked_by_hand_give_what_kafka_streams_gives(oracle: Oracle) -> None:
    the_same(oracle, [hand_made(name) for name in HAND_MADE])


@pytest.mark.parametrize("family", FAMILIES)
def test_random_topologies_give_what_kafka_streams_gives(oracle: Oracle, family: str) -> None:
    the_same(oracle, [random_case(family, seed) for seed in SEEDS])


@pytest.mark.parametrize("family", ORDERED)
def test_a_task_that_lives_for_one_record_goes_on_where_the_last_one_stopped(oracle: Oracle, family: str) -> None:
    cases = [random_case(family, seed) for seed in OTHER_SEEDS]
    for case, theirs in oracle.ask_all(cases):
        same_outputs(case, theirs, in_batches(case))


@pytest.mark.parametrize("size", [3, 7])
def test_where_batches_end_changes_nothing_for_one_input_topic(oracle: Oracle, size: int) -> None:
    """With several, records of a batch go by their timestamps, as they do in Kafka when all are there at once."""
    cases = [random_case(family, 300 + size) for family in EVERY_UPDATE]
    for case, theirs in oracle.ask_all([case for case in cases if len(case.topics()) == 1]):
        same_sequences(case, theirs, in_batches(case, size))


STATEFUL = [family for family in ORDERED if family not in ("processors", "cached")]
"""What punctuators were due is nowhere but in the state, in Kafka neither; and a cache is written when a batch ends."""


@pytest.mark.parametrize("family", STATEFUL)
def test_a_task_that_lost_its_stores_goes_on_from_its_changelogs(oracle: Oracle, family: str) -> None:
    cases = [case for seed in range(100, 115) if is_logged(case := random_case(family, seed))]
    for case, theirs in oracle.ask_all(cases):
        same_outputs(case, theirs, in_batches(case, lost=True))


def is_logged(case: Case) -> bool:
    """Whether the changelogs tell all: which key of a bounded store was used last they do not."""
    return all(step.get("materialized", {}).get("logging", True) and "most" not in step for step in case.steps)
