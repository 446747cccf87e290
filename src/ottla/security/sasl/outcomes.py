"""What can come of one message of a client in a SASL exchange."""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeAlias

from ottla.model.ids import Millis


class Challenge(NamedTuple):
    """Not done yet: the client answers to this."""

    message: bytes


class Accepted(NamedTuple):
    name: str
    """Of the user, without a type."""
    message: bytes = b""
    expires: Millis | None = None
    """By the wall clock: what the login rests on ends then."""
    by_token: bool = False
    """By a delegation token: somebody else's word, with which no further tokens are made."""


class Rejected(NamedTuple):
    why: str
    """For this node's log."""
    message: str | None = None
    """For the client; None: that his credentials are no good, and no more."""


class Need(NamedTuple):
    """Something has to be looked up or worked out first; the same message is then evaluated again."""

    what: str
    key: str


MAX_MESSAGE_BYTES: Final = 8 * 1024
"""Of a client that has a name and a password to tell. What a listener takes (`sasl.server.max.receive.size`) is made
for tokens and tickets."""


def too_long(message: bytes) -> Rejected | None:
    if len(message) <= MAX_MESSAGE_BYTES:
        return None
    return Rejected(f"a message of {len(message)} bytes, where {MAX_MESSAGE_BYTES} are enough for anybody")


Outcome: TypeAlias = Challenge | Accepted | Rejected | Need

DERIVE_TOKEN_KEYS: Final = "keys of a delegation token"
FETCH_SIGNING_KEYS: Final = "keys that tokens are signed with"


class Exchange(Protocol):
    """The server's end of one mechanism, from its first message to the last."""

    def evaluate(self, message: bytes, now: Millis, *, again: bool = False) -> Outcome:
        """`now` by the wall clock. `again`: what was needed has been tried to get; it is not asked for twice."""


Begin: TypeAlias = Callable[[], Exchange]
