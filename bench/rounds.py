"""The order of trials, and a line of progress for each."""

import sys
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from bench.measures import Trial


class Named(Protocol):
    @property
    def name(self) -> str: ...


STILL_FALLING = 0.9
S = TypeVar("S", bound=Named)


def interleaved(
    servers: Sequence[S], rounds: int, trial: Callable[[S], Trial], *, warmups: int = 0
) -> list[list[Trial]]:
    """A B A B …, so that a slow minute of the machine hits both: per server its trials in order, without warm-ups."""
    for _ in range(warmups):
        turn("warm-up", servers, trial)
    return by_server([turn(f"round {number + 1}", servers, trial) for number in range(rounds)])


def rotated(servers: Sequence[S], rounds: int, trial: Callable[[S], Trial], *, warmups: int = 0) -> list[list[Trial]]:
    """A B C, B C A, …, for what differs by less than it matters who comes behind whom: the system still writes what the
    one before has left."""
    for _ in range(warmups):
        turn("warm-up", servers, trial)
    taken: list[list[Trial]] = [[] for _ in servers]
    for number in range(rounds):
        for place in range(number, number + len(servers)):
            at = place % len(servers)
            taken[at] += turn(f"round {number + 1}", servers[at : at + 1], trial)
    return taken


def interleaved_when_warm(
    servers: Sequence[S], rounds: int, trial: Callable[[S], Trial], warmups: range
) -> list[list[Trial]]:
    """Warms up until the servers' CPU has stopped falling, then measures. `warmups`: how many at least, and below what.

    A JVM compiles as it goes: Kafka's CPU falls from 14 s to 4 s over its first 4 GB, and from 1,000 µs to 65 µs over
    its first 200,000 requests. Measured any earlier, every ratio would flatter ottla.
    """
    warm: list[list[Trial]] = []
    while len(warm) < warmups.start or (len(warm) < warmups.stop - 1 and not flat(by_server(warm))):
        warm.append(turn("warm-up", servers, trial))
    return interleaved(servers, rounds, trial)


def flat(taken: Sequence[Sequence[Trial]]) -> bool:
    """Whether no server's last trial was clearly cheaper than the cheapest before it."""
    return all(
        len(trials) > 1 and trials[-1]["cpu"] >= STILL_FALLING * min(trial["cpu"] for trial in trials[:-1])
        for trials in taken
    )


def turn(stage: str, servers: Sequence[S], trial: Callable[[S], Trial]) -> list[Trial]:
    """One trial on each."""
    results = []
    for server in servers:
        results.append(trial(server))
        progress(stage, server.name, results[-1])
    return results


def by_server(turns: Sequence[Sequence[Trial]]) -> list[list[Trial]]:
    return [list(trials) for trials in zip(*turns, strict=True)]


def progress(stage: str, name: str, result: Trial) -> None:
    numbers = "  ".join(f"{key} {value:.4g}" for key, value in result.items())
    print(f"  {stage:8} {name:12} {numbers}", file=sys.stderr, flush=True)
