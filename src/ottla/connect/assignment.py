"""Shares connectors out among workers: who has one keeps it, who has too many gives some back first.

A connector that moves is given back in one generation and handed out in the next (as KIP-415 does), so that two workers
never run it at once. What a worker that is gone had is free at once: its successor fences what it left behind.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shares:
    parts: Mapping[str, tuple[str, ...]]
    """By worker, what it has from now on."""
    unfinished: bool
    """Something was given back: another generation has to hand it out."""


def share_out(held: Mapping[str, Iterable[str]], connectors: Iterable[str]) -> Shares:
    """`held`: by worker, what it has now. The same input gives the same shares, whoever computes them."""
    workers = sorted(held)
    assert workers, "somebody has to lead"
    wanted = sorted(connectors)
    free = dict.fromkeys(wanted)
    parts: dict[str, list[str]] = {worker: [] for worker in workers}
    twice = _claimed_twice(held)
    for worker in workers:
        for name in held[worker]:
            if name in free and name not in twice:
                del free[name]
                parts[worker].append(name)
    # Claimed by two, after a worker was away: both give it back before anybody runs it.
    ready = [name for name in free if name not in twice]
    given_back = _level(parts, ready, -(-len(wanted) // len(workers)))
    for name in ready:
        least = min(workers, key=lambda worker: (len(parts[worker]), worker))
        parts[least].append(name)
    return Shares({worker: tuple(part) for worker, part in parts.items()}, given_back or bool(twice))


def _claimed_twice(held: Mapping[str, Iterable[str]]) -> dict[str, None]:
    seen: dict[str, None] = {}
    twice: dict[str, None] = {}
    for worker in sorted(held):
        for name in held[worker]:
            (twice if name in seen else seen)[name] = None
    return twice


def _level(parts: dict[str, list[str]], free: list[str], ceiling: int) -> bool:
    """Takes what is above a fair share away, as far as somebody else has room for it."""
    total = sum(map(len, parts.values())) + len(free)
    floor = total // len(parts)
    short = sum(max(floor - len(part), 0) for part in parts.values()) - len(free)
    taken = False
    for worker in sorted(parts, key=lambda worker: (-len(parts[worker]), worker)):
        while len(parts[worker]) > ceiling or (short > 0 and len(parts[worker]) > floor):
            parts[worker].pop()
            short -= 1
            taken = True
    return taken
