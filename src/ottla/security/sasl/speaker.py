"""The client's end of a login: what nodes say to each other, and our clients to any broker.

`log_in` is a generator: it yields requests, and is sent their answers; or a password that is to be salted, which takes
milliseconds the first time, or a token that is to be fetched, and is sent the outcome. Who has the connection runs it.
"""

from collections.abc import Callable, Generator
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from ottla.metadata.scram import SCRAM_BY_NAME, ScramMechanism, salted_password
from ottla.model.errors import Errors
from ottla.protocol import messages
from ottla.protocol.codec import Message
from ottla.security.sasl.plain import PLAIN, plain_message
from ottla.security.sasl.scram import ScramClient, ScramMismatch

OAUTHBEARER = "OAUTHBEARER"
_SALTED: Final = lru_cache(maxsize=16)(salted_password)
"""A server's salt seldom changes, and to work out what follows from it is the most that a login costs a client: who
connects again and again does it once (RFC 5802, 5.1)."""


class Credentials(NamedTuple):
    """Who to be, and how to show it."""

    mechanism: str
    name: str = ""
    password: str = ""
    by_token: bool = False
    """Name and password are those of a delegation token."""
    token: "Callable[[], bytes | LoginRefused] | None" = None
    """Where a bearer token is to be had, if it is not the password. It may take a while."""

    @property
    def who(self) -> str:
        return self.name or "whoever its token names"

    def __repr__(self) -> str:
        return f"Credentials({self.mechanism}, {self.name!r})"  # the rest is nobody's business


class SaltPassword(NamedTuple):
    mechanism: ScramMechanism
    password: str
    salt: bytes
    iterations: int

    def done(self) -> bytes:
        return _SALTED(*self)

    def __repr__(self) -> str:
        return f"SaltPassword({self.mechanism.name}, {self.iterations})"


class LoginRefused(Exception):
    """The text says what the other side said."""


class FetchToken(NamedTuple):
    done: "Callable[[], bytes | LoginRefused]"


SlowWork: TypeAlias = SaltPassword | FetchToken
"""Its `done` takes a while, and gives what the login goes on with."""
Told: TypeAlias = Message | bytes | LoginRefused
LoginSteps: TypeAlias = Generator[Message | SlowWork, Told, int]
"""Returns for how many milliseconds the session lasts; 0: for as long as the connection."""


def log_in(credentials: Credentials, nonce: str) -> LoginSteps:
    """Raises LoginRefused. `nonce` is a fresh random text."""
    mechanism = credentials.mechanism
    answer = yield messages.SaslHandshakeRequest(mechanism=mechanism)
    assert isinstance(answer, messages.SaslHandshakeResponse)
    if answer.error_code == Errors.ILLEGAL_SASL_STATE:
        raise LoginRefused("nobody logs in at that listener: security.protocol has to be without SASL")
    if answer.error_code:
        raise LoginRefused(f"it does not offer the mechanism {mechanism}, but {', '.join(answer.mechanisms) or 'none'}")
    if mechanism == PLAIN:
        reply = yield from _said(plain_message(credentials.name, credentials.password))
    elif mechanism in SCRAM_BY_NAME:
        reply = yield from _scram(credentials, SCRAM_BY_NAME[mechanism], nonce)
    elif mechanism == OAUTHBEARER:
        reply = yield from _bearer(credentials)
    else:
        raise LoginRefused(f"{mechanism} is no mechanism of this version")
    return reply.session_lifetime_ms


def _said(token: bytes) -> "Generator[Message, Told, messages.SaslAuthenticateResponse]":
    answer = yield messages.SaslAuthenticateRequest(auth_bytes=token)
    assert isinstance(answer, messages.SaslAuthenticateResponse)
    if answer.error_code:
        raise LoginRefused(answer.error_message or Errors(answer.error_code).text)
    return answer


def _scram(
    credentials: Credentials, mechanism: ScramMechanism, nonce: str
) -> "Generator[Message | SlowWork, Told, messages.SaslAuthenticateResponse]":
    client = ScramClient(mechanism, credentials.name, nonce, by_token=credentials.by_token)
    answer = yield from _said(client.first())
    try:
        salt, iterations = client.heard(answer.auth_bytes)
        salted = yield SaltPassword(mechanism, credentials.password, salt, iterations)
        assert isinstance(salted, bytes)
        answer = yield from _said(client.final(salted))
        client.check(answer.auth_bytes)
    except ScramMismatch as mismatch:
        raise LoginRefused(str(mismatch)) from mismatch
    return answer


def _bearer(
    credentials: Credentials,
) -> "Generator[Message | SlowWork, Told, messages.SaslAuthenticateResponse]":
    token: Told = credentials.password.encode()
    if credentials.token is not None:
        token = yield FetchToken(credentials.token)
        if isinstance(token, LoginRefused):
            raise token
    assert isinstance(token, bytes)
    answer = yield from _said(b"n,,\x01auth=Bearer %s\x01\x01" % token)
    if answer.auth_bytes:  # what is wrong with the token; the last word is an error (RFC 7628)
        yield from _said(b"\x01")
    return answer
