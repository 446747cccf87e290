"""Waiting for what another thread or process does: as short as it takes, and with an end."""

import time
from collections.abc import Callable

PATIENCE_SECONDS = 60.0
_GLANCE_SECONDS = 0.02


def eventually(condition: Callable[[], bool], what: str = "it") -> None:
    """Returns as soon as `condition` holds; fails when it has not held for a minute."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true in time"
        time.sleep(_GLANCE_SECONDS)
