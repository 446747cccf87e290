"""The process that cleans. `cleaners.CleanerProcess` starts it as `python -m ottla.runtime.cleaner`."""

import time

from ottla.runtime.cleaner.priority import Priority


def main() -> None:
    priority = Priority(time.monotonic())
    # Not before: loading takes a tenth of a second, and a request would have to wait.
    from ottla.runtime.cleaner.rounds import Line, serve  # noqa: PLC0415
    from ottla.runtime.parent import Parent  # noqa: PLC0415

    serve(Line(Parent.of_this_process(), priority))


if __name__ == "__main__":
    main()
