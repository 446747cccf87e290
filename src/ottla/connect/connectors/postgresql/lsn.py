"""Places in the write-ahead log: `16/B374D848`, or a number of bytes."""

from __future__ import annotations

import re
from typing import Any, Final

_TEXT: Final = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


def lsn_text(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_of(found: Any) -> int:
    """Of a text, or of a number, as Debezium writes it down. Raises ValueError."""
    if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
        return found
    matched = _TEXT.fullmatch(found) if isinstance(found, str) else None
    if matched is None:
        raise ValueError(f"{found!r} is no place in the WAL, which looks like 16/B374D848")
    return int(matched[1], 16) << 32 | int(matched[2], 16)
