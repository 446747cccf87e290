"""The quorum under many seeds, and the proof that the checkers see: every planted bug is caught.

A failing seed prints the command that replays it.
"""

import os
import subprocess
import sys

import pytest

from ottla.testing.sim import raft
from ottla.testing.sim.planted import BUGS, Planted
from ottla.testing.sim.raft_checkers import Violation
from tests.support.examples import seeds

SEEDS = 200
EVENTS = 20_000
CHUNK = 10
BUG_SEEDS = 40
SHOWED_IT = {"votes-forgotten": 15, "no-divergence": 17, "two-changes": 8, "no-check-quorum": 9, "any-snapshot": 6}
"""The seed that showed a bug when this was last looked at is tried first; any other may show it too."""


@pytest.mark.parametrize("first", seeds(SEEDS)[::CHUNK])
def test_no_rule_of_the_quorum_is_broken_and_it_heals(first: int) -> None:
    for seed in range(first, first + CHUNK):
        world = raft.run(seed, EVENTS)
        assert world.events >= EVENTS


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught(bug: Planted) -> None:
    with bug.planted():
        for seed in [SHOWED_IT.get(bug.name, 0), *range(BUG_SEEDS)]:
            try:
                raft.run(seed, EVENTS)
            except Violation:
                return
    pytest.fail(f"{bug.name} ({bug.what}) went unnoticed in {BUG_SEEDS} seeds")


def test_the_world_is_whole_again_after_a_planted_bug() -> None:
    before = raft.run(3, 2000).trace
    for bug in BUGS:
        with bug.planted():
            pass
    assert raft.run(3, 2000).trace == before


def test_a_seed_gives_the_same_run_in_another_process_with_other_hashes() -> None:
    ours = f"trace {raft.run(7, 3000).trace:x}"
    command = [sys.executable, "-m", "ottla.testing.sim", "raft", "--seed", "7", "--events", "3000"]
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        assert ours in done.stdout


def test_a_failing_seed_says_how_to_replay_it() -> None:
    bug = next(each for each in BUGS if each.name == "fetch-before-fsync")
    with bug.planted(), pytest.raises(Violation, match=r"python -m ottla\.testing\.sim raft --seed 0 --events 500"):
        raft.run(0, 500)


def test_worlds_differ_and_meet_what_they_are_meant_to_meet() -> None:
    """Otherwise a quiet change of the simulation could leave nothing to check."""
    worlds = [raft.run(seed, 3000) for seed in range(30)]
    assert {3, 5} <= {len(w.nodes) for w in worlds}
    assert any(w.dynamic for w in worlds) and not all(w.dynamic for w in worlds)
    assert sum(w.seen["elections"] for w in worlds) > 100
    assert sum(w.seen["truncations"] for w in worlds) > 10
    assert sum(w.seen["snapshots"] for w in worlds) > 10
    assert sum(w.seen["voter changes"] for w in worlds) > 10
    assert sum(w.seen["replaced disks"] for w in worlds) > 2
