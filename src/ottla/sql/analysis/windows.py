"""WINDOW …: size, advance, grace and retention."""

from typing import Final

from ottla.sql import tree as t
from ottla.sql.analysis.refusals import refuse
from ottla.sql.model import WindowedKey
from ottla.streams.windows import SessionWindows, TimeWindows

DAY_MS: Final = 86_400_000


def windows(written: t.Window, *, final: bool) -> tuple[TimeWindows | SessionWindows, int | None]:
    """The windows, and for how long they are kept, if that is said."""
    size = written.size.ms
    if size <= 0:
        refuse("a window needs a size above 0", written.size)
    advance = size if written.advance is None else written.advance.ms
    if not 0 < advance <= size:
        refuse("ADVANCE BY has to be above 0 and at most the SIZE", written.advance)
    default = 0 if final else max(DAY_MS - size, 0)
    grace = default if written.grace is None else written.grace.ms
    retention = None if written.retention is None else written.retention.ms
    if retention is not None and retention < size + (written.grace.ms if written.grace else 0):
        refuse("RETENTION is at least SIZE and GRACE PERIOD together", written.retention)
    if retention is not None:
        retention = max(retention, size + grace) if written.grace or final else retention
        grace = min(grace, retention - size)
    if written.kind == "SESSION":
        return SessionWindows.of(size, grace_ms=grace), retention
    return TimeWindows.of(size, advance_ms=advance, grace_ms=grace), retention


def windowed_key(written: t.Window) -> WindowedKey:
    return WindowedKey(written.kind, None if written.kind == "SESSION" else written.size.ms)
