"""The server's end of a login: which request may come when, what is answered, and what closes the connection.

    client                                   state before → after
    ApiVersions                              GREETING → HANDSHAKE; of an unknown version or an unusable one: GREETING
    SaslHandshake v0, mechanism offered      GREETING, HANDSHAKE → BARE_TOKENS
    SaslHandshake v1, mechanism offered      GREETING, HANDSHAKE → TOKENS
    a token, or SaslAuthenticate             BARE_TOKENS or TOKENS → the same, until the mechanism has enough
    anything else                            the end

A re-login (KIP-368) is the same conversation begun with a handshake, for a login that there is. What goes wrong with
credentials is answered late (`Fail`), which slows down whoever guesses; what is out of place closes at once and is not
answered (`Close`), but for requests behind a handshake, which get an answer of their own kind.

Time is given: `now` never goes back, `wall` is the clock that credentials end by.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol import messages
from ottla.protocol.apis import API
from ottla.protocol.codec import DecodeError, EncodeError, Message, Request
from ottla.protocol.frames import RequestHeader, decode_request_header, decode_response_header, encode_response
from ottla.protocol.refusals import can_be_refused, is_refusal, is_refused_by_item, refused
from ottla.security.lines import quoted
from ottla.security.sasl.outcomes import Accepted, Begin, Challenge, Exchange, Need, Outcome, Rejected

HANDSHAKE_KEY: Final = 17
API_VERSIONS_KEY: Final = 18
AUTHENTICATE_KEY: Final = 36
_SIZE_BYTES: Final = 4
_NAMED_AT_MOST: Final = 64
"""Characters of a mechanism: that of a client may be any text."""
_WITH_LIFETIME: Final = 1
"""From this version on SaslAuthenticate tells how long a session lasts (KIP-368)."""


class Login(NamedTuple):
    """Who is logged in."""

    name: str
    mechanism: str
    by_token: bool = False
    ends: Millis | None = None
    """By the clock that never goes back: what comes later has to log in again. None: never."""


class Offer(NamedTuple):
    """One mechanism of a listener."""

    begin: Begin
    max_session: Millis = Millis(0)
    """connections.max.reauth.ms; 0: as long as the connection lasts."""


Offers: TypeAlias = Mapping[str, Offer]
"""By mechanism, in the order in which clients are told of them."""


# What is to be done.


class Greet(NamedTuple):
    """ApiVersions: answered as for anybody. `Conversation.greeted` is to be told whether the client got its answer."""


class Answer(NamedTuple):
    frame: bytes


class Wait(NamedTuple):
    """Get this, then call `resumed`."""

    need: Need


class LoggedIn(NamedTuple):
    frame: bytes
    login: Login


class Fail(NamedTuple):
    """Read nothing more, wait a moment, answer (if there is something to say), close."""

    frame: bytes | None
    why: str


class Close(NamedTuple):
    why: str


Step: TypeAlias = Greet | Answer | Wait | LoggedIn | Fail | Close


class State(Enum):
    GREETING = "before anything"
    HANDSHAKE = "versions are known"
    BARE_TOKENS = "tokens come without a header"
    TOKENS = "tokens come in SaslAuthenticate"
    OTHER_MECHANISM = "a re-login by another mechanism than the login was"
    OVER = "logged in, or failed"


class Conversation:
    __slots__ = ("_authenticate", "_before", "_exchange", "_message", "_offers", "mechanism", "state")

    def __init__(self, offers: Offers, before: Login | None = None) -> None:
        """`before`: the login that there is already, for a re-login."""
        self._offers = offers
        self._before = before
        self.mechanism = ""
        """That the client has chosen."""
        self._exchange: Exchange | None = None
        self._message = b""
        self._authenticate: RequestHeader | None = None
        """Of the SaslAuthenticate that is not answered yet."""
        self.state = State.GREETING if before is None else State.HANDSHAKE

    def received(self, frame: bytes, now: Millis, wall: Millis) -> Step:
        match self.state:
            case State.GREETING | State.HANDSHAKE:
                return self._handshake(frame)
            case State.BARE_TOKENS:
                return self._evaluate(None, frame, now, wall)
            case State.TOKENS:
                return self._in_request(frame, now, wall)
            case State.OTHER_MECHANISM:
                assert self._before is not None
                was = self._before.mechanism
                return self._over(Fail(None, f"a re-login by {self.mechanism} where the login was by {was}"))
            case State.OVER:
                return Close("a frame after the end of the login")

    def greeted(self, *, answered: bool) -> None:
        """After `Greet`: a client whose version or software was refused may try once more."""
        if answered:
            self.state = State.HANDSHAKE

    def resumed(self, now: Millis, wall: Millis) -> Step:
        """After `Wait`."""
        return self._settle(self._outcome(self._message, wall, again=True), now, wall)

    # Handshake.

    def _handshake(self, frame: bytes) -> Step:
        try:
            header, body = decode_request_header(frame)
        except DecodeError as error:
            return self._over(Close(f"its first request cannot be read: {error}"))
        if header.api_key == API_VERSIONS_KEY and self.state is State.GREETING:
            return Greet()
        if header.api_key != HANDSHAKE_KEY:
            without = "is its security.protocol one without SASL?"
            return self._over(Close(f"{_named(header.api_key)} came before the login: {without}"))
        kind = messages.SaslHandshakeRequest
        if header.api_version not in kind.DECODERS:
            return self._over(Close(f"SaslHandshake has no version {header.api_version}"))
        try:
            request = kind.decode(memoryview(frame), header.api_version, body)
        except DecodeError as error:
            return self._over(Close(f"its SaslHandshake cannot be read: {error}"))
        return self._choose(header, request.mechanism)

    def _choose(self, header: RequestHeader, mechanism: str) -> Step:
        offered = list(self._offers)
        self.mechanism = mechanism[:_NAMED_AT_MOST]
        if mechanism not in self._offers:
            answer = messages.SaslHandshakeResponse(
                error_code=Errors.UNSUPPORTED_SASL_MECHANISM, mechanisms=list(offered)
            )
            why = f"it asks for the mechanism {self.mechanism!r}; offered are {', '.join(offered)}"
            return self._over(Fail(_framed(header, answer), why))
        if self._before is not None and mechanism != self._before.mechanism:
            self.state = State.OTHER_MECHANISM
        else:
            self._exchange = self._offers[mechanism].begin()
            self.state = State.TOKENS if header.api_version >= 1 else State.BARE_TOKENS
        return Answer(_framed(header, messages.SaslHandshakeResponse(mechanisms=list(offered))))

    # Tokens.

    def _in_request(self, frame: bytes, now: Millis, wall: Millis) -> Step:
        try:
            header, body = decode_request_header(frame)
            kind = messages.request_class(header.api_key) if header.api_key in API else None
            if kind is None or header.api_version not in kind.DECODERS:
                name = _named(header.api_key)
                return self._over(Close(f"{name} v{header.api_version} came in the middle of the login"))
            request = kind.decode(memoryview(frame), header.api_version, body)
        except DecodeError as error:
            return self._over(Close(f"a request in the middle of the login cannot be read: {error}"))
        if not isinstance(request, messages.SaslAuthenticateRequest):
            why = f"{_named(header.api_key)} came in the middle of the login"
            return self._over(Fail(_illegal(header, request), why))
        return self._evaluate(header, request.auth_bytes, now, wall)

    def _evaluate(self, header: RequestHeader | None, message: bytes, now: Millis, wall: Millis) -> Step:
        self._authenticate = header
        self._message = bytes(message)
        return self._settle(self._outcome(self._message, wall), now, wall)

    def _outcome(self, message: bytes, wall: Millis, *, again: bool = False) -> Outcome:
        assert self._exchange is not None
        return self._exchange.evaluate(message, wall, again=again)

    def _settle(self, outcome: Outcome, now: Millis, wall: Millis) -> Step:
        match outcome:
            case Need():
                return Wait(outcome)
            case Challenge(message):
                return Answer(self._told(message))
            case Rejected(why, text):
                return self._failed(why, text or self._no_good())
            case Accepted():
                return self._accepted(outcome, now, wall)

    def _accepted(self, accepted: Accepted, now: Millis, wall: Millis) -> Step:
        before = self._before
        if before is not None and accepted.name != before.name:
            return self._failed(
                f"a re-login as {quoted(accepted.name)} on a connection of {quoted(before.name)}",
                f"Cannot change principals during re-authentication from User.{before.name}: User.{accepted.name}",
            )
        lifetime = _lifetime(self._offers[self.mechanism].max_session, accepted.expires, wall)
        ends = None if lifetime is None else Millis(now + lifetime)
        login = Login(accepted.name, self.mechanism, accepted.by_token, ends)
        return self._over(LoggedIn(self._told(accepted.message, lifetime or 0), login))

    def _failed(self, why: str, text: str) -> Step:
        header = self._authenticate
        if header is None:
            return self._over(Fail(None, why))
        answer = messages.SaslAuthenticateResponse(error_code=Errors.SASL_AUTHENTICATION_FAILED, error_message=text)
        return self._over(Fail(_framed(header, answer), why))

    def _no_good(self) -> str:
        which = "authentication" if self._before is None else "re-authentication"
        return f"Authentication failed during {which} due to invalid credentials with SASL mechanism {self.mechanism}"

    def _told(self, message: bytes, lifetime_ms: int = 0) -> bytes:
        header = self._authenticate
        if header is None:
            return len(message).to_bytes(4, "big") + message
        answer = messages.SaslAuthenticateResponse(auth_bytes=message)
        if header.api_version >= _WITH_LIFETIME:
            answer.session_lifetime_ms = lifetime_ms
        return _framed(header, answer)

    def _over(self, step: Step) -> Step:
        self.state = State.OVER
        self._exchange = None
        self._message = b""
        return step


def _lifetime(max_session: Millis, expires: Millis | None, wall: Millis) -> int | None:
    """How long a session lasts: until the setting or the credential ends it, whichever is first. None: for ever."""
    if expires is None:
        return max_session or None
    left = max(0, expires - wall)
    return min(left, max_session) if max_session else left


def _framed(header: RequestHeader, response: Message) -> bytes:
    return encode_response(header.api_key, header.api_version, header.correlation_id, response)


def _illegal(header: RequestHeader, request: Request[Message]) -> bytes | None:
    """The answer of another request's own kind, where that has room for an error."""
    if not can_be_refused(request):
        return None
    answer = refused(request, Errors.ILLEGAL_SASL_STATE)
    try:
        frame = _framed(header, answer)
    except EncodeError:
        return None
    if not is_refused_by_item(request):  # the field for all of it is in some versions of an answer and not in others
        _, body = decode_response_header(frame, header.api_key, header.api_version, _SIZE_BYTES)
        told = type(answer).decode(memoryview(frame), header.api_version, body)
        if not is_refusal(told, Errors.ILLEGAL_SASL_STATE):
            return None
    return frame


def _named(key: int) -> str:
    return API[key].name if key in API else f"request {key}"
