"""SCRAM-SHA-256 and -512 (RFC 5802, 7677; KIP-84): both ends show that they know a password, and neither sends it.

As Kafka speaks it: no channel binding (`n,,`), names in ASCII with `=2C` and `=3D`, no SASLprep, and the extension
`tokenauth=true` for delegation tokens (KIP-48). Nonces are given by the caller.
"""

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from shlex import quote
from typing import Final, NamedTuple, Protocol

from ottla.metadata.scram import MAX_ITERATIONS, MIN_ITERATIONS, SCRAM_BY_TYPE, ScramKeys, ScramMechanism, keys_of
from ottla.model.ids import Millis
from ottla.security.lines import LONGEST, quoted
from ottla.security.sasl.outcomes import DERIVE_TOKEN_KEYS, Accepted, Challenge, Need, Outcome, Rejected, too_long

_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64: Final = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"
_CLIENT_FIRST: Final = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<acts_as>{_NAME}))?,)(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<more>{_EXTENSIONS}))"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<bare>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_SERVER_FIRST: Final = re.compile(
    rf"r=(?P<nonce>{_PRINTABLE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[1-9][0-9]{{0,9}}){_EXTENSIONS}"
)
_SERVER_FINAL: Final = re.compile(rf"(?:e=(?P<error>{_VALUE})|v=(?P<signature>{_BASE64})){_EXTENSIONS}")
_BY_TOKEN: Final = ",tokenauth=true"
_NO_BINDING: Final = "n,,"


class ScramCredential(NamedTuple):
    salt: bytes
    iterations: int
    keys: ScramKeys


class TokenCredential(NamedTuple):
    owner: str
    """The name of the principal that whoever has the token acts as."""
    expires: Millis
    credential: ScramCredential | None
    """None: its keys are not worked out yet."""


class ScramUsers(Protocol):
    """Where credentials are found."""

    def scram(self, mechanism: ScramMechanism, name: str) -> ScramCredential | None: ...

    def token(self, mechanism: ScramMechanism, token_id: str) -> TokenCredential | None: ...

    def stranger(self, mechanism: ScramMechanism, name: str) -> ScramCredential:
        """What one who does not exist is answered with: for the same name always the same, and nobody has its
        password."""


class ScramServer:
    __slots__ = ("_first", "_known", "_mechanism", "_nonce", "_users")

    def __init__(self, mechanism: ScramMechanism, users: ScramUsers, nonce: str) -> None:
        """`nonce` is this end's part of it, made for this exchange."""
        self._mechanism = mechanism
        self._users = users
        self._nonce = nonce
        self._first: _First | None = None
        self._known: Accepted | None = None

    def evaluate(self, message: bytes, now: Millis, *, again: bool = False) -> Outcome:
        refused = too_long(message)
        if refused is not None:
            return refused
        text = message.decode("latin-1")  # what is not ASCII fits no pattern
        return self._begin(text, now, again) if self._first is None else self._finish(text, self._first)

    def _begin(self, text: str, now: Millis, again: bool) -> Outcome:
        found = _CLIENT_FIRST.fullmatch(text)
        if found is None:
            return Rejected("a first SCRAM message of another form")
        name = _unescaped(found["name"])
        if found["acts_as"] and _unescaped(found["acts_as"]) != name:
            message = "Authentication failed: Client requested an authorization id that is different from username"
            return Rejected(f"{quoted(name)} wants to act as {quoted(_unescaped(found['acts_as']))}", message)
        if f"{found['more']},".find(f"{_BY_TOKEN},") >= 0:
            token = self._users.token(self._mechanism, name)
            if token is not None and token.credential is None and not again:
                return Need(DERIVE_TOKEN_KEYS, name)
            # One that has expired is as good as none: to find out is for its owner, who can describe it.
            alive = token is not None and token.credential is not None and now < token.expires
            credential = token.credential if token is not None and alive else None
            self._known = Accepted(token.owner, expires=token.expires, by_token=True) if token and alive else None
        else:
            credential, named = self._users.scram(self._mechanism, name), Accepted(name)
            self._known = named if credential is not None else None
        stranger = self._users.stranger(self._mechanism, name)  # made for everybody: it takes its time
        credential = credential or stranger
        nonce = found["nonce"] + self._nonce
        answer = f"r={nonce},s={b64encode(credential.salt).decode()},i={credential.iterations}"
        self._first = _First(name, nonce, found["gs2"], f"{found['bare']},{answer}", credential.keys)
        return Challenge(answer.encode())

    def _finish(self, text: str, first: "_First") -> Outcome:
        found = _CLIENT_FINAL.fullmatch(text)
        if found is None:
            return Rejected(f"a final SCRAM message of another form, of {quoted(first.name)}")
        signed = f"{first.messages},{found['bare']}".encode()
        proof = _decoded(found["proof"])
        # CVE-2024-56128: the whole nonce, and what the client thinks of channels, belong to what is checked.
        same_nonce = hmac.compare_digest(found["nonce"], first.nonce)
        same_channel = hmac.compare_digest(found["channel"], b64encode(first.gs2.encode()).decode())
        right = _proves(self._mechanism, first.keys, signed, proof)
        if not same_nonce or not same_channel:
            return Rejected(f"{quoted(first.name)} answers to {'another channel' if same_nonce else 'another nonce'}")
        if self._known is None or not right:
            return Rejected(self._why(first.name))
        signature = hmac.digest(first.keys.server, signed, self._mechanism.hash)
        return self._known._replace(message=b"v=" + b64encode(signature))

    def _why(self, name: str) -> str:
        """For the log, with what to do about it. A token has no password that could be changed."""
        word = quote(name) if name.isprintable() and len(name) <= LONGEST else "NAME"  # a line of the log stays one
        who = quoted(name)
        others = [each.name for each in SCRAM_BY_TYPE.values() if self._users.scram(each, name) is not None]
        if self._known is not None:
            remedy = "" if self._known.by_token else f": `ottla users password {word}` sets another"
            return f"a wrong password of {who}{remedy}"
        if others:
            return (
                f"no {self._mechanism.name} credential is kept for {who}, but one for {', '.join(others)}: it has "
                f"to log in by that, or `ottla users add {word}` makes both"
            )
        return f"no {self._mechanism.name} credential is kept for {who}: `ottla users add {word}` makes one"


class _First(NamedTuple):
    """What the first two messages settled."""

    name: str
    nonce: str
    gs2: str
    messages: str
    keys: ScramKeys


class ScramMismatch(Exception):
    """The server's message cannot be accepted: the text says why."""


class ScramClient:
    """`first`; `heard` the server's answer, which says how to salt the password; `final` with that; then `check`."""

    __slots__ = ("_answer", "_bare", "_keys", "_mechanism", "_nonce", "_signed", "_whole_nonce")

    def __init__(self, mechanism: ScramMechanism, name: str, nonce: str, *, by_token: bool = False) -> None:
        self._mechanism = mechanism
        self._nonce = nonce
        self._bare = f"n={_escaped(name)},r={nonce}{_BY_TOKEN if by_token else ''}"
        self._answer = ""
        self._whole_nonce = ""
        self._signed = b""
        self._keys: ScramKeys | None = None

    def first(self) -> bytes:
        return (_NO_BINDING + self._bare).encode()

    def heard(self, message: bytes) -> tuple[bytes, int]:
        """Salt and iterations. Raises ScramMismatch."""
        self._answer = message.decode("latin-1")
        found = _SERVER_FIRST.fullmatch(self._answer)
        if found is None:
            raise ScramMismatch("its first SCRAM message has another form")
        if not found["nonce"].startswith(self._nonce) or found["nonce"] == self._nonce:
            raise ScramMismatch("it answers to another nonce")
        iterations = int(found["iterations"])
        if not MIN_ITERATIONS <= iterations <= 100 * MAX_ITERATIONS:
            raise ScramMismatch(f"it asks for {iterations} iterations")
        self._whole_nonce = found["nonce"]
        return _decoded(found["salt"]), iterations

    def final(self, salted: bytes) -> bytes:
        bare = f"c={b64encode(_NO_BINDING.encode()).decode()},r={self._whole_nonce}"
        self._signed = f"{self._bare},{self._answer},{bare}".encode()
        self._keys = keys_of(self._mechanism, salted)
        client_key = hmac.digest(salted, b"Client Key", self._mechanism.hash)
        proof = _xor(client_key, hmac.digest(self._keys.stored, self._signed, self._mechanism.hash))
        return f"{bare},p={b64encode(proof).decode()}".encode()

    def check(self, message: bytes) -> None:
        """Whether the server knows the password as well. Raises ScramMismatch."""
        assert self._keys is not None, "before `final`"
        found = _SERVER_FINAL.fullmatch(message.decode("latin-1"))
        if found is None:
            raise ScramMismatch("its final SCRAM message has another form")
        if found["error"]:
            raise ScramMismatch(f"it says: {found['error']}")
        expected = hmac.digest(self._keys.server, self._signed, self._mechanism.hash)
        if not hmac.compare_digest(_decoded(found["signature"]), expected):
            raise ScramMismatch("it does not know the password")


def _proves(mechanism: ScramMechanism, keys: ScramKeys, signed: bytes, proof: bytes) -> bool:
    """RFC 5802: the proof is the client key, hidden by a signature that only its hash can make."""
    if len(proof) != mechanism.digest_bytes:
        return False
    client_key = _xor(proof, hmac.digest(keys.stored, signed, mechanism.hash))
    return hmac.compare_digest(hashlib.new(mechanism.hash, client_key).digest(), keys.stored)


def _xor(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).to_bytes(len(one), "big")


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except NotBase64:
        return b""


def _escaped(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
