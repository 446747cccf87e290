"""The process that cleans. `cleaners.CleanerProcess` starts it as `python -m ottla.runtime.cleaner`."""

import os
import sys
from contextlib import suppress


def step_back() -> None:
    """Whoever answers a request gets a processor at once: the cleaner has what is left."""
    with suppress(OSError, AttributeError):  # a sandbox may forbid it, and cleaning goes on without
        os.nice(19)


def main() -> None:
    step_back()
    # Not before: loading takes a tenth of a second, and a request would have to wait.
    from ottla.runtime.cleaner.rounds import Line, serve  # noqa: PLC0415

    serve(Line(sys.stdin.buffer, sys.stdout.buffer))


if __name__ == "__main__":
    main()
