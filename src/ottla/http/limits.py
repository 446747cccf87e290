"""How much of a stranger's time and bytes is taken before anybody looks at the request."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Limits:
    body_bytes: int = 16 << 20
    head_bytes: int = 64 << 10
    """Request line and headers together. A subject or a key may stand in the path, so this is not small."""
    silence_s: float = 30.0
    """How long a client may send nothing in the midst of a request, and before its first, or take nothing of its
    answer. A head has up to twice as long to become whole."""
    keep_alive_s: float = 75.0
    """How long a connection stays open between two requests. Longer than the 60 s of common proxies, so that it is
    they who close."""
    connections: int = 1_000
    stopping_s: float = 3.0
    """How long answers may still take when the service stops."""


DEFAULT_LIMITS: Final = Limits()
