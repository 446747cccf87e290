"""Timers on the node's loop. Cores never see these: they are given the time and say when they want it next."""

import asyncio
from collections.abc import Callable


class Repeating:
    """Calls `action` every `interval_ms` from `start` to `stop`; an interval of 0 or less never calls."""

    __slots__ = ("_action", "_handle", "_interval_s")

    def __init__(self, interval_ms: int, action: Callable[[], None]) -> None:
        self._interval_s = interval_ms / 1000
        self._action = action
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        if self._interval_s > 0 and self._handle is None:
            self._handle = asyncio.get_running_loop().call_later(self._interval_s, self._fire)

    def _fire(self) -> None:
        self._handle = None
        self.start()  # first, so that an action may stop its own timer
        self._action()

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
