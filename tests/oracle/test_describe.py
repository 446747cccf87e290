"""`describe` gives the text of Java's Topology.describe(), byte for byte."""

import pytest

from tests.oracle.cases import Case
from tests.oracle.comparing import same_description
from tests.oracle.families import FAMILIES, random_case
from tests.oracle.hand_made import HAND_MADE, hand_made
from tests.oracle.kafka import Oracle
from tests.oracle.topologies import topology_of

pytestmark = pytest.mark.jvm

SEEDS = range(200, 215)
MIXED_SEEDS = range(200, 280)


def the_same(oracle: Oracle, cases: list[Case]) -> None:
    for case in cases:
        case.inputs.clear()
    for case, theirs in oracle.ask_all(cases):
        assert theirs.error is None, f"{case.name}: {theirs.error}"
        same_description(theirs.describe, topology_of(case).describe())


def test_topologies_picked_by_hand_read_as_in_java(oracle: Oracle) -> None:
    the_same(oracle, [hand_made(name) for name in HAND_MADE])


@pytest.mark.parametrize("family", FAMILIES)
def test_random_topologies_read_as_in_java(oracle: Oracle, family: str) -> None:
    the_same(oracle, [random_case(family, seed) for seed in (MIXED_SEEDS if family == "mixed" else SEEDS)])
