"""The process that cleans. `cleaners.CleanerProcess` starts it as `python -m ottla.runtime.cleaner`."""

import os
import sys
from contextlib import suppress


def step_back() -> None:
    """Whoever answers a request gets a processor at once, the cleaner what is left.

    A merely nice process may go on for milliseconds when another wakes up, an idle one stops there and then. But where
    all processors are taken, an idle one would hardly ever run and logs would grow: there it is only nice.
    """
    with suppress(OSError, AttributeError):  # a sandbox may forbid it, a system not know it: it cleans all the same
        os.nice(19)
        if os.getloadavg()[0] < (os.cpu_count() or 1):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def main() -> None:
    step_back()
    # Not before: loading takes a tenth of a second, and a request would have to wait.
    from ottla.runtime.cleaner.rounds import Line, serve  # noqa: PLC0415

    serve(Line(sys.stdin.buffer, sys.stdout.buffer))


if __name__ == "__main__":
    main()
