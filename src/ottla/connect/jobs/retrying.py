"""Trying again what may pass: pauses double from 300 ms to `errors.retry.delay.max.ms`, as Connect's do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from ottla.connect.dead_letters import LetterPolicy
from ottla.connect.spi import TryAgain

T = TypeVar("T")

FIRST_PAUSE_S: Final = 0.3
AT_LEAST_S: Final = 20.0
"""Also without `errors.retry.timeout`: a target that restarts must not fail a connector. Then it fails, and is started
again by its worker."""


class Retrying:
    """Counts, and waits."""

    __slots__ = ("_longest_s", "_sleep", "_timeout_s", "retries")

    def __init__(self, policy: LetterPolicy, sleep: Callable[[float], None] = time.sleep) -> None:
        self._timeout_s = float("inf") if policy.retry_timeout_ms < 0 else policy.retry_timeout_ms / 1000
        self._longest_s = policy.retry_delay_max_ms / 1000
        self._sleep = sleep
        self.retries = 0

    def run(self, attempt: Callable[[], T], at_least_s: float = AT_LEAST_S) -> T:
        """Raises the last TryAgain."""
        began = time.monotonic()
        pause = FIRST_PAUSE_S
        while True:
            try:
                return attempt()
            except TryAgain as again:
                wait = max(min(pause, self._longest_s), again.after_s or 0.0)
                if time.monotonic() - began + wait > max(self._timeout_s, at_least_s):
                    raise
                self.retries += 1
                self._sleep(wait)
                pause *= 2
