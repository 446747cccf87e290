"""What is sent back when it is more than a value: another status, other bytes, a stream."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """A value that becomes JSON, unless it is bytes already."""

    value: Any = None
    status: int = 200
    media_type: str | None = None
    """None: the one that was negotiated."""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stream:
    """Pieces, each sent when it is there. A slow reader makes `pieces` wait, one that goes away closes it. What goes
    wrong before the first piece is still an error with a status; later the connection breaks off, so that nobody takes
    half for the whole."""

    pieces: AsyncIterator[bytes]
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


ACCEPTED = Answer(b"", 202)
NO_CONTENT = Answer(status=204)
