"""A record on its way into a topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.connect.dead_letters import RawHeader


class RawRecord(NamedTuple):
    """Bytes for a topic."""

    key: bytes | None
    value: bytes | None
    topic: str
    partition: int | None = None
    timestamp: int | None = None
    headers: Sequence[RawHeader] = ()
