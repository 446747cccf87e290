"""Waiting between attempts, for who asks in a loop of its own: deadline and growing pauses of `steps`, slept."""

import time

from ottla.client.steps import Attempts, Heard, Pause


def now_s() -> float:
    return time.monotonic()


def waited(pause: Pause) -> Heard:
    wait_s = pause.until_s - now_s()
    if wait_s > 0:
        time.sleep(wait_s)
    return Heard(now_s())


class Deadline:
    __slots__ = ("_attempts",)

    def __init__(self, seconds: float) -> None:
        self._attempts = Attempts("", seconds, now_s())

    def left(self) -> float:
        return max(self._attempts.end_s - now_s(), 0.0)

    def pause(self, what: str, last: Exception) -> None:
        """Waits before the next attempt, longer each time; raises TimedOut when no time is left for one."""
        self._attempts.what = what
        steps = self._attempts.again(last)
        try:
            action = next(steps)
            while True:
                assert isinstance(action, Pause)
                action = steps.send(waited(action))
        except StopIteration:
            return
