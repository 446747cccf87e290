"""A bounded wait: how long a whole operation may take, and the growing pauses between its attempts."""

import time
from typing import Final

from ottla.client.errors import TimedOut

FIRST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 1.0


class Deadline:
    __slots__ = ("_pause", "end", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = time.monotonic() + seconds
        """In time.monotonic() seconds."""
        self._pause = FIRST_PAUSE_S

    def left(self) -> float:
        return max(self.end - time.monotonic(), 0.0)

    def attempt(self, longest_s: float) -> float:
        """When one attempt has to be over: a broker that hangs must not use up the time of the others."""
        return min(self.end, time.monotonic() + longest_s)

    def pause(self, what: str, last: Exception) -> None:
        """Waits before the next attempt, longer each time; raises TimedOut when no time is left for one."""
        if self.left() <= self._pause:
            raise TimedOut(what, self.seconds, last) from last
        time.sleep(self._pause)
        self._pause = min(self._pause * 2, LONGEST_PAUSE_S)
