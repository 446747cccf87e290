"""How far the cleaner's process stands back: idle where processors are to be had, merely nice where they are not.

A nice process may finish its slice, three milliseconds, when a request wakes the node up; an idle one stops there and
then. But where others take all processors an idle process hardly ever runs, and logs would grow. So it watches how long
it is kept waiting.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_SCHEDSTAT: Final = Path("/proc/self/schedstat")
LOOK_SECONDS: Final = 0.1
STARVED_SHARE: Final = 0.8
"""Of the time since the last look spent ready to run, and not running."""
NICE_SECONDS: Final = 10.0
"""For how long it is merely nice before it tries to be idle again."""


class Standing:
    """Decides from two clocks whether to be idle. Seconds in, the answer out."""

    __slots__ = ("_looked", "_nice_until", "_waited")

    def __init__(self, now: float, waited: float) -> None:
        self._looked = now
        self._waited = waited
        self._nice_until = now

    def is_due(self, now: float) -> bool:
        """Whether enough time has passed for another look."""
        return now - self._looked >= LOOK_SECONDS

    def is_idle(self, now: float, waited: float) -> bool:
        """`waited` is how long the process has waited for a processor since it began."""
        share = (waited - self._waited) / (now - self._looked)
        self._looked, self._waited = now, waited
        if share >= STARVED_SHARE:
            self._nice_until = now + NICE_SECONDS
        return now >= self._nice_until


class Priority:
    """That of this process."""

    __slots__ = ("_idle", "_standing")

    def __init__(self, now: float) -> None:
        with suppress(OSError, AttributeError):  # a sandbox may forbid it, a system not know it: it cleans all the same
            os.nice(19)
        waited = waited_seconds()
        # Who cannot tell that he starves must not be idle.
        self._standing = None if waited is None else Standing(now, waited)
        self._idle = False
        if self._standing is not None and not _is_loaded():
            # Until the first look, which comes when everything is loaded, the machine's load has to do.
            self._become(idle=True)

    def adapt(self, now: float) -> None:
        if self._standing is None or not self._standing.is_due(now):
            return
        idle = self._standing.is_idle(now, waited_seconds() or 0.0)
        if idle != self._idle:
            self._become(idle=idle)

    def _become(self, *, idle: bool) -> None:
        self._idle = idle
        with suppress(OSError, AttributeError):
            os.sched_setscheduler(0, os.SCHED_IDLE if idle else os.SCHED_OTHER, os.sched_param(0))


def _is_loaded() -> bool:
    try:
        return os.getloadavg()[0] >= (os.cpu_count() or 1)
    except (OSError, AttributeError):
        return True


def waited_seconds() -> float | None:
    """How long this process has been ready to run without running; None where the system does not tell."""
    try:
        return int(_SCHEDSTAT.read_bytes().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return None
