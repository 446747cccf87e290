"""The order of trials, and a line of progress for each."""

import sys
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from bench.measures import Trial


class Named(Protocol):
    @property
    def name(self) -> str: ...


S = TypeVar("S", bound=Named)


def interleaved(
    servers: Sequence[S], rounds: int, trial: Callable[[S], Trial], *, warmups: int = 0
) -> list[list[Trial]]:
    """A B A B …, so that a slow minute of the machine hits both: per server its trials in order, without warm-ups."""
    taken: list[list[Trial]] = [[] for _ in servers]
    for number in range(-warmups, rounds):
        for kept, server in zip(taken, servers, strict=True):
            result = trial(server)
            progress("warm-up" if number < 0 else f"round {number + 1}", server.name, result)
            if number >= 0:
                kept.append(result)
    return taken


def progress(stage: str, name: str, result: Trial) -> None:
    numbers = "  ".join(f"{key} {value:.4g}" for key, value in result.items())
    print(f"  {stage:8} {name:12} {numbers}", file=sys.stderr, flush=True)
