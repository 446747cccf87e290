"""PLAIN (RFC 4616): name and password as they are, which only TLS keeps from others. Users stand in the JAAS text."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from ottla.model.ids import Millis
from ottla.security.lines import quoted
from ottla.security.sasl.outcomes import Accepted, Outcome, Rejected, too_long

PLAIN: Final = "PLAIN"
_TOKENS: Final = 3


class PlainServer:
    __slots__ = ("_users",)

    def __init__(self, users: Mapping[str, str]) -> None:
        """Passwords by name."""
        self._users = users

    def evaluate(self, message: bytes, now: Millis, *, again: bool = False) -> Outcome:
        refused = too_long(message)
        if refused is not None:
            return refused
        try:
            tokens = message.decode().split("\0", _TOKENS)
        except UnicodeDecodeError:
            return Rejected("a PLAIN message that is not UTF-8")
        if len(tokens) != _TOKENS:
            text = f"Invalid SASL/PLAIN response: expected {_TOKENS} tokens, got {len(tokens)}"
            return Rejected("a PLAIN message of another form", text)
        acts_as, name, password = tokens
        if not name:
            return Rejected("no user is named", "Authentication failed: username not specified")
        if not password:
            return Rejected(f"{quoted(name)} gave no password", "Authentication failed: password not specified")
        known = self._users.get(name)
        # Who is unknown is compared as well, with what nobody can send; of digests, so that no length tells anything.
        is_right = hmac.compare_digest(_digest(password), _digest(known if known is not None else "\0"))
        if known is None or not is_right:
            why = f"an unknown user: {quoted(name)}" if known is None else f"a wrong password of {quoted(name)}"
            text = "Authentication failed: Invalid username or password"
            return Rejected(f"{why}; who may log in by PLAIN stands in the listener's sasl.jaas.config", text)
        if acts_as and acts_as != name:
            text = "Authentication failed: Client requested an authorization id that is different from username"
            return Rejected(f"{quoted(name)} wants to act as {quoted(acts_as)}", text)
        return Accepted(name)


def _digest(password: str) -> bytes:
    return hashlib.sha256(password.encode()).digest()


def plain_message(name: str, password: str) -> bytes:
    return f"\0{name}\0{password}".encode()
