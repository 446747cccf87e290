"""How running applications do, in a line each: for who waits for one (`run`), and for who looks at all (`top`)."""

import shutil
import sys
import time
from collections.abc import Mapping
from typing import Any, Final

from ottla.cli.output import note, size_text

Status = Mapping[str, Any]
SPAN_S: Final = 5.0
"""Rates are of about so long."""
LINE_S: Final = 1.0
"""How often the line is written anew."""
QUIET_S: Final = 60.0
"""Where nobody watches (a file, a service), a line about nothing but numbers comes once in so long."""


class Rates:
    """Records read and written per second, from totals that are looked at now and then."""

    __slots__ = ("_looks",)

    def __init__(self) -> None:
        self._looks: list[tuple[float, int, int]] = []

    def of(self, status: Status, now: float) -> tuple[float, float]:
        read, written = total(status, "read"), total(status, "written")
        self._looks = [*(look for look in self._looks if look[0] > now - SPAN_S), (now, read, written)]
        first, passed = self._looks[0], now - self._looks[0][0]
        if passed <= 0:
            return 0.0, 0.0
        return max(read - first[1], 0) / passed, max(written - first[2], 0) / passed


def total(status: Status, name: str) -> int:
    return sum(query.get(name) or 0 for query in status.get("queries", ()))


def line(status: Status, rates: tuple[float, float]) -> str:
    """RUNNING, batch 42: 1,250 records/s read, 1,300 written, lag 17, state 3.1 MiB; waits for records"""
    batches = total(status, "batches")
    waits = f"waits for {status['waits-for']}" if status.get("waits-for") else ""
    if not batches:
        return f"{status['state']}: {waits}"
    read, written = rates
    done = f"{batches} batches: {read:,.0f} records/s read, {written:,.0f} written, lag {total(status, 'lag'):,}"
    state = total(status, "state-bytes")
    held = f", state {size_text(state)}" if state else ""
    return f"{status['state']}, {done}{held}; {waits}"


class Report:
    """One line that is written over where somebody watches, else a line when more than numbers has changed."""

    def __init__(self) -> None:
        self._rates = Rates()
        self._watched = sys.stderr.isatty()
        self._last = ""
        self._at = self._next = float("-inf")
        self._stopping = False

    @property
    def due(self) -> bool:
        return time.monotonic() >= self._next

    def stopping(self) -> None:
        """Says once that the end has been asked for."""
        if not self._stopping:
            self._stopping = True
            self.end()
            note("stopping after the current batch")

    def tick(self, status: Status) -> None:
        now = time.monotonic()
        self._next = now + LINE_S
        text = line(status, self._rates.of(status, now))
        if self._watched:
            width = shutil.get_terminal_size().columns
            sys.stderr.write(f"\r\x1b[K{text[: width - 1]}")
            sys.stderr.flush()
            return
        about = f"{status['state']} {status.get('waits-for')}"
        moved = now - self._at >= QUIET_S and total(status, "batches")
        if (about != self._last and not total(status, "batches")) or moved:
            self._last, self._at = about, now
            note(text)

    def end(self) -> None:
        """What is said next has a line of its own."""
        if self._watched:
            sys.stderr.write("\r\x1b[K")
