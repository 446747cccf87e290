"""Replays one seed of a simulation: `python -m ottla.testing.sim raft --seed 42`, or looks through many of them."""

import argparse
import sys
from collections.abc import Callable, Sequence

from ottla.testing.sim import cluster, planted_cluster, planted_guarded, raft
from ottla.testing.sim.guarded import Guarded
from ottla.testing.sim.planted import BUGS, Planted


def _raft(seed: int, events: int, bug: str | None) -> str:
    if bug is None:
        world = raft.run(seed, events)
    else:
        with next(each for each in BUGS if each.name == bug).planted():
            world = raft.run(seed, events)
    return f"{world.events} events, {world.now} ms, trace {world.trace:x}: {world.describe()}"


def _cluster(seed: int, events: int, bug: str | None) -> str:
    return _told(planted_cluster.BUGS, bug, lambda: cluster.run(seed))


def _guarded(seed: int, events: int, bug: str | None) -> str:
    return _told(planted_guarded.BUGS, bug, lambda: cluster.run(seed, kind=Guarded))


def _told(bugs: Sequence[Planted], bug: str | None, run: Callable[[], cluster.Report]) -> str:
    if bug is None:
        report = run()
    else:
        with next(each for each in bugs if each.name == bug).planted():
            report = run()
    if report.problems:
        raise AssertionError(str(report))
    return f"trace {report.trace}: {report}"


SIMULATIONS: dict[str, Callable[[int, int, str | None], str]] = {
    "cluster": _cluster,
    "guarded": _guarded,
    "raft": _raft,
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ottla.testing.sim", description=__doc__)
    parser.add_argument("simulation", choices=sorted(SIMULATIONS))
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds to run")
    parser.add_argument("--events", type=int, default=20_000, help="events of each seed of raft before all heals")
    parser.add_argument("--bug", default=None, help="run with this planted bug")
    given = parser.parse_args(arguments)
    failed = 0
    for seed in range(given.seed, given.seed + given.seeds):
        try:
            print(f"seed {seed}: {SIMULATIONS[given.simulation](seed, given.events, given.bug)}")
        except AssertionError as violation:
            failed += 1
            print(f"VIOLATION {violation}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
