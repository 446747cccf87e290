"""OAUTHBEARER (RFC 7628, KIP-255, KIP-768): a token that somebody else has signed says who the client is.

What is checked is fixed by the configuration: signature by a key of the set, issuer, audience, the times, the user. The
algorithm is one of those with a public key, whatever the token says of itself: neither `none` nor one that would take
the public key for a password. CVE-2026-33557 was a default that checked none of this.
"""

import json
import re
from base64 import urlsafe_b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from ottla.model.ids import Millis
from ottla.security.lines import quoted
from ottla.security.sasl.outcomes import FETCH_SIGNING_KEYS, Accepted, Challenge, Need, Outcome, Rejected

OAUTHBEARER: Final = "OAUTHBEARER"
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
MAX_TOKEN_BYTES: Final = 64 * 1024
_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_INITIAL: Final = re.compile(
    rf"n,(?:a=(?P<acts_as>{_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]*\x01)*)\x01", re.DOTALL
)
_BEARER: Final = re.compile(r"(?i:bearer) +(?P<token>[-_.A-Za-z0-9]+)")
_INVALID: Final = '{"status":"invalid_token"}'
_GO_ON: Final = b"\x01"


class BearerRules(NamedTuple):
    issuer: str = ""
    audiences: tuple[str, ...] = ()
    skew_s: int = 30
    user_claim: str = "sub"
    scope_claim: str = "scope"
    unsecured: bool = False
    """For tests: tokens that nobody signed, and only those."""


class SigningKeys(Protocol):
    def find(self, key_id: str | None) -> Any:
        """None: there is no such key in the set, as far as it is known."""


class _Bad(Exception):
    """A token that is worth nothing: why."""


class _Missing(Exception):
    """A key that is not known yet."""


class BearerServer:
    __slots__ = ("_failed", "_keys", "_rules")

    def __init__(self, rules: BearerRules, keys: SigningKeys) -> None:
        self._rules = rules
        self._keys = keys
        self._failed = ""

    def evaluate(self, message: bytes, now: Millis, *, again: bool = False) -> Outcome:
        if self._failed:
            # RFC 7628: the client was told in so many words, and says that it has heard it.
            return Rejected(self._failed, _INVALID) if message == _GO_ON else Rejected("an answer of another form")
        found = _INITIAL.fullmatch(message.decode("latin-1"))
        pairs = dict(pair.split("=", 1) for pair in found["pairs"].split("\x01") if pair) if found else {}
        bearer = _BEARER.fullmatch(pairs.get("auth", ""))
        if found is None or bearer is None:
            return Rejected("an OAUTHBEARER message of another form")
        try:
            claims = self._claims(bearer["token"], again=again)
            name, expires = _judged(claims, self._rules, now)
        except _Missing as missing:
            return Need(FETCH_SIGNING_KEYS, str(missing))
        except _Bad as bad:
            self._failed = f"a token is refused: {bad}"
            return Challenge(_INVALID.encode())
        if found["acts_as"] and found["acts_as"] != name:
            text = (
                f"Authentication failed: Client requested an authorization id ({found['acts_as']}) that is different "
                f"from the token's principal name ({name})"
            )
            return Rejected(f"{quoted(name)} wants to act as {quoted(found['acts_as'])}", text)
        return Accepted(name, expires=expires)

    def _claims(self, token: str, *, again: bool) -> Mapping[str, Any]:
        if len(token) > MAX_TOKEN_BYTES:
            raise _Bad(f"it has {len(token)} bytes; {MAX_TOKEN_BYTES} are allowed")
        parts = token.split(".")
        if len(parts) != 3:
            raise _Bad("it is no signed JWT")
        header = _json(parts[0], "header")
        algorithm = header.get("alg")
        if self._rules.unsecured:
            if algorithm != "none" or parts[2]:
                raise _Bad("it is signed, and this listener takes unsecured ones only")
            return _json(parts[1], "claims")
        if algorithm not in ALGORITHMS:
            raise _Bad(f"its algorithm is {str(algorithm)[:20]!r}")
        key_id = header.get("kid")
        key = self._keys.find(key_id if isinstance(key_id, str) else None)
        if key is None:
            if not again:
                raise _Missing(str(key_id)[:200])
            raise _Bad(f"no key of the set has its id, {str(key_id)[:40]!r}")
        return _verified(token, key, str(algorithm))


def _verified(token: str, key: Any, algorithm: str) -> Mapping[str, Any]:
    import jwt  # noqa: PLC0415  an extra, and heavy: only for who has OAUTHBEARER

    try:
        # The signature alone: times, audience and issuer are judged below, by a time that is given.
        claims = json.loads(jwt.PyJWS().decode(token, key, algorithms=[algorithm]))
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
        raise _Bad(f"its signature does not hold ({type(error).__name__})") from error
    if not isinstance(claims, dict):
        raise _Bad("its claims cannot be read")
    return claims


def _judged(claims: Mapping[str, Any], rules: BearerRules, now: Millis) -> tuple[str, Millis]:
    """Who it is, and until when."""
    now_s = now / 1000
    expires, issued = _time(claims, "exp"), _time(claims, "iat")
    if now_s >= expires + rules.skew_s:
        raise _Bad(f"it ended {now_s - expires:.0f} s ago")
    if issued > now_s + rules.skew_s:
        raise _Bad(f"it is from the future, by {issued - now_s:.0f} s: do the clocks agree?")
    if "nbf" in claims and _time(claims, "nbf") > now_s + rules.skew_s:
        raise _Bad("it is not valid yet")
    if expires < issued:
        raise _Bad("it ended before it began")
    if not rules.unsecured:
        _meant_for_us(claims, rules)
    name = claims.get(rules.user_claim)
    if not isinstance(name, str) or not name.strip():
        raise _Bad(f"its claim {rules.user_claim} names nobody")
    scope = claims.get(rules.scope_claim)
    if scope is not None and not isinstance(scope, str | list):
        raise _Bad(f"its claim {rules.scope_claim} is no scope")
    return name, Millis(int(expires * 1000))


def _meant_for_us(claims: Mapping[str, Any], rules: BearerRules) -> None:
    if claims.get("iss") != rules.issuer:
        raise _Bad(f"its issuer is {str(claims.get('iss'))[:80]!r}")
    audience = claims.get("aud")
    named = audience if isinstance(audience, list) else [audience]
    if not any(each in rules.audiences for each in named if isinstance(each, str)):
        raise _Bad(f"it is made for {str(audience)[:80]!r}")


def _time(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1e12:
        raise _Bad(f"its claim {name} is no time")
    return float(value)


def _json(part: str, what: str) -> Mapping[str, Any]:
    try:
        found = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (NotBase64, ValueError, RecursionError) as error:
        raise _Bad(f"its {what} cannot be read") from error
    if not isinstance(found, dict):
        raise _Bad(f"its {what} cannot be read")
    return found
