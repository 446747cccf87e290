"""Who looks whether a connector has something to do: a thread for each, in the driver.

It takes turns with Spark: it looks, gives portions of work to the feed, and looks again when all of them are settled;
so there is one batch at a time. A connector's own code is called by this thread alone, and by no other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from ottla.connect.jobs.feed import packed

LOOK_S: Final = 0.25
"""Between two looks that find nothing, at least."""
BATCH_S: Final = 0.5
"""Between the beginnings of two batches, at least: what Spark spends on one does not depend on how much is in it."""
HANDOVER_S: Final = 1.0
"""Spark asks for more when a batch is done, and sleeps if there is none: so that is looked for first, if quickly."""

Pause = Callable[[float], None]
"""Sleeps for some seconds. Raises Ended."""


class Ended(Exception):
    """The connector was told to stop while it waited."""


class Looks(Protocol):
    """What is there to do."""

    gather_ms: int
    """How long records are gathered into a batch, at least."""

    def look(self, pause: Pause) -> Sequence[object]:
        """Portions of work, one for each task; none if there is nothing to do now."""

    def rest_s(self) -> float:
        """How long nobody needs to look, when there was nothing."""


class Looking:
    def __init__(self, looks: Looks, put: Callable[[list[bytes]], None], ended: threading.Event, *, once: bool) -> None:
        """`once`: when nothing is found, that is the end."""
        self._looks = looks
        self._put = put
        self._ended = ended
        self._once = once
        self._least_s = 0.0 if once else max(BATCH_S, looks.gather_ms / 1000)
        self._due = 0.0
        self._turn = threading.Event()
        """It is ours."""
        self._turn.set()
        self._looked = threading.Event()
        """Since Spark gave the turn back; or it is too early to."""
        self._awaited = 0
        self._reports: list[Any] = []
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="looking", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def has_begun(self) -> bool:
        return self._thread.ident is not None

    def is_settled_within(self, seconds: float) -> bool:
        """Whether Spark has nothing left to do, or comes to that in time."""
        return self._turn.wait(seconds)

    def join(self, patience_s: float) -> bool:
        """When it has ended. Whether it has: a connector may never return."""
        self._turn.set()
        self._thread.join(patience_s)
        return not self._thread.is_alive()

    # Spark's side.

    def gather(self, reports: Sequence[Any]) -> list[Any]:
        """Reports of all portions, once the last is there: Spark may run them as several batches."""
        self._reports += reports
        return self._reports if len(self._reports) == self._awaited else []

    def settled(self) -> None:
        """All that was given is done: on with it."""
        self._reports, self._awaited = [], 0
        self._looked.clear()
        self._turn.set()
        if self._thread.is_alive():
            self._looked.wait(HANDOVER_S)

    def given_up(self) -> None:
        """The portions will not be settled: nobody need wait for that, and nobody looks again."""
        self._ended.set()
        self._turn.set()

    # Its own thread.

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                self._turn.wait()
                wait_s = self._due - time.monotonic()
                if wait_s > 0:
                    self._looked.set()
                    self._ended.wait(wait_s)
                elif not self._ended.is_set():
                    self._look()
                    self._looked.set()
        except Ended:
            pass
        except BaseException as error:  # noqa: BLE001  a connector may raise anything at all
            self.error = error
            self._ended.set()
        finally:
            self._looked.set()  # nobody will look again

    def _look(self) -> None:
        began = time.monotonic()
        portions = packed(self._looks.look(self._pause))
        if portions:
            self._due = began + self._least_s
            self._awaited = len(portions)
            self._turn.clear()
            self._put(portions)
        elif self._once:
            self._ended.set()
        else:
            self._due = time.monotonic() + max(LOOK_S, self._looks.rest_s())

    def _pause(self, seconds: float) -> None:
        if self._ended.wait(seconds):
            raise Ended
