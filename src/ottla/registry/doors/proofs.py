"""What callers have shown of late. Never holds a password or a token, only a keyed hash of it. Time is an argument."""

import hashlib
import hmac
from typing import Final, NamedTuple

from ottla.http.auth import Basic, Bearer

MOST: Final = 10_000
"""Different callers that are remembered; of more, the oldest is asked about again."""


class Shown(NamedTuple):
    principal: str
    holds_s: float = 0.0
    """How long at most that may be believed; 0: as long as anything is."""


class Proofs:
    __slots__ = ("_keep_s", "_key", "_known")

    def __init__(self, key: bytes, keep_s: float) -> None:
        self._key = key
        self._keep_s = keep_s
        self._known: dict[bytes, tuple[str, float]] = {}

    def mark(self, given: Basic | Bearer) -> bytes:
        # The name of a user has no colon, so no two pairs are written alike.
        text = f"basic:{given.user}:{given.password}" if isinstance(given, Basic) else f"bearer:{given.token}"
        return hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256)

    def principal(self, mark: bytes, now_s: float) -> str | None:
        known = self._known.get(mark)
        if known is None:
            return None
        principal, until_s = known
        if now_s < until_s:
            return principal
        del self._known[mark]
        return None

    def remember(self, mark: bytes, shown: Shown, now_s: float) -> None:
        self._known.pop(mark, None)  # who was asked about anew is the newest
        while len(self._known) >= MOST:
            del self._known[next(iter(self._known))]
        keep_s = min(self._keep_s, shown.holds_s) if shown.holds_s else self._keep_s
        self._known[mark] = shown.principal, now_s + keep_s
