"""Python imports this by itself in a node whose wall clock is faked: `clocks` puts its directory on the path.

libfaketime 0.9.10, told to leave the monotonic clock alone, refuses to sleep until a moment of that clock (EINVAL), and
that is how Python sleeps. A cleaner thread took it for an error of the disk, and the node stopped.
"""

import select
import time


def sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


time.sleep = sleep  # type: ignore[assignment]
