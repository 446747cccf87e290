"""Whether this life of a sink still counts: who comes after it takes its transactional id, and with it the offsets.

A life may not know that it is over: its process stood still while others took over, its worker was given up and the
Spark host goes on, or it was left behind in a call that did not return. Its commit is refused then, but its target
knows nothing of epochs. So it asks before it writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from ottla.pipelines.sink.encoding import Sender
from ottla.pipelines.sink.transaction import Transaction

FRESH_S: Final = 0.25
"""So long an answer holds: whoever takes over reads offsets and starts a query before it writes. The clock goes on
while a process stands still."""


class Fence:
    """Of one process."""

    __slots__ = ("_clock", "_sure_until", "_transaction")

    def __init__(self, transaction: Transaction, clock: Callable[[], float] = time.monotonic) -> None:
        self._transaction = transaction
        self._clock = clock
        self._sure_until = float("-inf")

    def begin(self, sender: Sender) -> None:
        """A batch that will be committed under this identity."""
        self._transaction.sender = sender

    def held(self) -> None:
        """The coordinator has just taken something from us."""
        self._sure_until = self._clock() + FRESH_S

    def check(self) -> None:
        """Raises Fenced, KafkaError, TimedOut."""
        now = self._clock()
        if now >= self._sure_until:
            self._transaction.require_ours()
            self._sure_until = now + FRESH_S
