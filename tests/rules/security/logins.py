"""A login played against the core: requests in, steps out, with the time in hand."""

from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ottla.metadata.scram import (
    MIN_ITERATIONS,
    SCRAM_SHA_256,
    ScramKeys,
    ScramMechanism,
    keys_of,
    salted_password,
)
from ottla.model.ids import Millis
from ottla.protocol import messages as m
from ottla.protocol.codec import Message
from ottla.protocol.frames import RequestHeader, decode_response_header, encode_request
from ottla.security.sasl.conversation import Answer, Conversation, Fail, LoggedIn, Login, Offer, Step, Wait
from ottla.security.sasl.outcomes import Begin
from ottla.security.sasl.plain import PlainServer
from ottla.security.sasl.scram import ScramClient, ScramCredential, ScramServer, TokenCredential

NOW = Millis(1_000)
WALL = Millis(1_700_000_000_000)
SALT = b"twenty-six-bytes-of-salt.."


class Passwords:
    """SCRAM users by name; tokens by id, with owner, end and secret."""

    def __init__(
        self, users: Mapping[str, str] | None = None, tokens: Mapping[str, tuple[str, int, str]] | None = None
    ) -> None:
        self.users = dict(users or {})
        self.tokens = dict(tokens or {})
        self.derived: set[str] = set()

    def scram(self, mechanism: ScramMechanism, name: str) -> ScramCredential | None:
        return credential(mechanism, self.users[name]) if name in self.users else None

    def token(self, mechanism: ScramMechanism, token_id: str) -> TokenCredential | None:
        if token_id not in self.tokens:
            return None
        owner, expires, secret = self.tokens[token_id]
        keys = credential(mechanism, secret) if token_id in self.derived else None
        return TokenCredential(owner, Millis(expires), keys)

    def stranger(self, mechanism: ScramMechanism, name: str) -> ScramCredential:
        return ScramCredential(name.encode(), MIN_ITERATIONS, ScramKeys(b"?" * 32, b"?" * 32))


@lru_cache(1_000)
def salted(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Milliseconds, which are spent once."""
    return salted_password(mechanism, password, salt, iterations)


def credential(mechanism: ScramMechanism, password: str) -> ScramCredential:
    keys = keys_of(mechanism, salted(mechanism, password, SALT, MIN_ITERATIONS))
    return ScramCredential(SALT, MIN_ITERATIONS, keys)


USERS = Passwords({"alice": "secret", "bob": "other"})


def scram_server() -> ScramServer:
    return ScramServer(SCRAM_SHA_256, USERS, "from-server")


def plain_server() -> PlainServer:
    return PlainServer({"alice": "secret", "bob": "other"})


def offers(max_session: int = 0, **more: Begin) -> dict[str, Offer]:
    begins: dict[str, Begin] = {"PLAIN": plain_server, "SCRAM-SHA-256": scram_server, **more}
    return {name: Offer(begin, Millis(max_session)) for name, begin in begins.items()}


class Talk:
    """One connection's login."""

    def __init__(self, max_session: int = 0, before: Login | None = None, **more: Begin) -> None:
        self.core = Conversation(offers(max_session, **more), before)
        self.now = NOW
        self.wall = WALL

    def send(self, request: Message, version: int) -> Step:
        header = RequestHeader(request.API_KEY, version, 7, "client")
        return self.raw(encode_request(header, request)[4:])

    def raw(self, frame: bytes) -> Step:
        return self.core.received(frame, self.now, self.wall)

    def greet(self, version: int = 4, *, answered: bool = True) -> Step:
        step = self.send(m.ApiVersionsRequest(client_software_name="x", client_software_version="1"), version)
        self.core.greeted(answered=answered)
        return step

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> Step:
        return self.send(m.SaslHandshakeRequest(mechanism=mechanism), version)

    def authenticate(self, token: bytes, version: int = 2) -> Step:
        return self.send(m.SaslAuthenticateRequest(auth_bytes=token), version)


def plain(name: str, password: str, acts_as: str = "") -> bytes:
    return f"{acts_as}\0{name}\0{password}".encode()


def told(step: Step, key: int = 36, version: int = 2) -> Any:
    """The answer in a step."""
    assert isinstance(step, Answer | Fail | LoggedIn), step
    assert step.frame is not None
    frame = memoryview(step.frame)[4:]
    number, body = decode_response_header(frame, key, version)
    assert number == 7
    return m.response_class(key).decode(frame, version, body)


def scram_login(talk: Talk, name: str, password: str, mechanism: ScramMechanism = SCRAM_SHA_256) -> Step:
    """Handshake and both messages; the last step."""
    talk.handshake(mechanism.name)
    client = ScramClient(mechanism, name, "from-client")
    step = talk.authenticate(client.first())
    if isinstance(step, Wait):
        return step
    salt, iterations = client.heard(told(step).auth_bytes)
    return talk.authenticate(client.final(salted(mechanism, password, salt, iterations)))


def proof(data: bytes) -> str:
    return b64encode(data).decode()
