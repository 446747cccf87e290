"""Waiting for what another thread or process does: as short as it takes, and with an end.

A machine may be busy with other work, and is then slow, not wrong: no test sets a time within which something has to
happen, but for this one, after which it will not. What has to be quick is judged by the processor time that it took.
"""

import time
from collections.abc import Callable

PATIENCE_SECONDS = 240.0
PATIENCE_MS = int(PATIENCE_SECONDS * 1000)
"""For requests that say how long a server may take."""
_GLANCE_SECONDS = 0.02


def eventually(condition: Callable[[], bool], what: str = "it") -> None:
    """Returns as soon as `condition` holds; fails when it has not held for so long."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true in time"
        time.sleep(_GLANCE_SECONDS)


def least_cpu_s(work: Callable[[], object], times: int = 5) -> float:
    """Of several runs the shortest, in seconds of the processor: into the others may fall a collection of the garbage
    that all tests before have left."""
    taken_s = []
    for _ in range(times):
        begun = time.process_time()
        work()
        taken_s.append(time.process_time() - begun)
    return min(taken_s)
