"""OAUTHBEARER: which tokens let somebody in, and which never (CVE-2026-33557)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.security.signing_keys import parsed
from ottla.model.ids import Millis
from ottla.security.sasl.oauthbearer import BearerRules, BearerServer
from ottla.security.sasl.outcomes import FETCH_SIGNING_KEYS, Accepted, Challenge, Need, Outcome, Rejected
from tests.support.bearer import AUDIENCE, ISSUER, Issuer, signed_with_public_key, unsecured

NOW_S = 1_700_000_000
NOW = Millis(NOW_S * 1000)
RULES = BearerRules(issuer=ISSUER, audiences=(AUDIENCE, "other"))
ISSUERS = {"ES256": Issuer(), "RS256": Issuer(kind="RSA")}
GOOD = ISSUERS["ES256"]
INVALID = '{"status":"invalid_token"}'


class Keys:
    def __init__(self, *issuers: Issuer) -> None:
        self.known: dict[str | None, Any] = {}
        for issuer in issuers:
            self.known.update(parsed(issuer.key_set()))

    def find(self, key_id: str | None) -> Any:
        return self.known.get(key_id)


def said(token: str, acts_as: str = "", more: str = "") -> bytes:
    return f"n,{'a=' + acts_as if acts_as else ''},\x01auth=Bearer {token}\x01{more}\x01".encode()


def judged(token: str, issuer: Issuer = GOOD, rules: BearerRules = RULES) -> Outcome:
    return BearerServer(rules, Keys(issuer)).evaluate(said(token), NOW, again=True)


@pytest.mark.parametrize("issuer", ISSUERS.values(), ids=list(ISSUERS))
def test_a_token_of_the_issuer_for_us_is_a_login_until_it_ends(issuer: Issuer) -> None:
    outcome = judged(issuer.token(now_s=NOW_S), issuer)
    assert outcome == Accepted("alice", expires=Millis((NOW_S + 60) * 1000))


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": ["x", "other"]},
        {"scope": "a b"},
        {"scope": ["a"]},
        {"exp": NOW_S - 29},
        {"iat": NOW_S + 29},
        {"nbf": NOW_S},
    ],
    ids=str,
)
def test_what_else_is_right(claims: dict[str, Any]) -> None:
    issued = {"iat": NOW_S - 100, **claims}
    if claims.get("exp") is None and claims.get("iat") is None:
        issued["exp"] = NOW_S + 60
    assert isinstance(judged(GOOD.token(now_s=NOW_S, **issued)), Accepted)


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": NOW_S - 30, "iat": NOW_S - 90}, "it ended 30 s ago"),
        ({"exp": None}, "its claim exp is no time"),
        ({"exp": "soon"}, "its claim exp is no time"),
        ({"exp": True}, "its claim exp is no time"),
        ({"exp": 1e300}, "its claim exp is no time"),
        ({"iat": None}, "its claim iat is no time"),
        ({"iat": NOW_S + 31, "exp": NOW_S + 99}, "it is from the future, by 31 s"),
        ({"iat": NOW_S + 20, "exp": NOW_S + 10}, "it ended before it began"),
        ({"nbf": NOW_S + 40}, "it is not valid yet"),
        ({"iss": "https://evil.example"}, "its issuer is 'https://evil.example'"),
        ({"iss": None}, "its issuer is 'None'"),
        ({"aud": "billing"}, "it is made for 'billing'"),
        ({"aud": None}, "it is made for 'None'"),
        ({"aud": [{"a": 1}]}, "it is made for"),
        ({"name": ""}, "names nobody"),
        ({"sub": None}, "names nobody"),
        ({"sub": 7}, "names nobody"),
        ({"scope": 7}, "is no scope"),
    ],
    ids=str,
)
def test_what_is_wrong_with_its_claims_is_said_to_the_client_in_one_word(claims: dict[str, Any], why: str) -> None:
    server = BearerServer(RULES, Keys(GOOD))
    assert server.evaluate(said(GOOD.token(now_s=NOW_S, **claims)), NOW) == Challenge(INVALID.encode())
    last = server.evaluate(b"\x01", NOW)
    assert isinstance(last, Rejected)
    assert last.message == INVALID
    assert why in last.why


def test_a_signature_of_somebody_else_is_worth_nothing() -> None:
    assert judged(Issuer().token(now_s=NOW_S)) == Challenge(INVALID.encode())


def test_a_token_that_was_changed_is_worth_nothing() -> None:
    head, _, tail = GOOD.token(now_s=NOW_S).split(".")
    _, others, _ = GOOD.token("root", now_s=NOW_S).split(".")
    assert isinstance(judged(f"{head}.{others}.{tail}"), Challenge)


def test_nobody_signed_it() -> None:
    for algorithm in ("none", "None", "NONE", ""):
        assert isinstance(judged(unsecured("alice", NOW_S + 60, alg=algorithm)), Challenge)


def test_the_public_key_is_no_password() -> None:
    claims = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "iat": NOW_S, "exp": NOW_S + 60}
    assert isinstance(judged(signed_with_public_key(GOOD, claims)), Challenge)


def test_a_key_that_is_not_known_is_fetched_once() -> None:
    keys = Keys()
    server = BearerServer(RULES, keys)
    message = said(GOOD.token(now_s=NOW_S))
    assert server.evaluate(message, NOW) == Need(FETCH_SIGNING_KEYS, "k1")
    assert BearerServer(RULES, keys).evaluate(message, NOW, again=True) == Challenge(INVALID.encode())
    keys.known = Keys(GOOD).known
    assert isinstance(server.evaluate(message, NOW, again=True), Accepted)


def test_a_token_without_key_id_goes_with_the_only_key() -> None:
    assert isinstance(judged(GOOD.token(now_s=NOW_S, key_id=None)), Accepted)


def test_a_set_with_secrets_or_nonsense_in_it_has_only_its_public_keys() -> None:
    listed = [{"kty": "oct", "k": "AAAA", "kid": "s"}, 7, {"kty": "RSA", "kid": "broken"}, {"kty": "EC", "kid": 9}]
    assert parsed(json.dumps({"keys": listed}).encode()) == {}
    for nonsense in (b"", b"[]", b'{"keys": 7}', b"\xff", b"[" * 100_000):
        with pytest.raises(ValueError, match="no set of JSON web keys"):
            parsed(nonsense)


def test_a_client_acts_as_itself() -> None:
    token = GOOD.token(now_s=NOW_S)
    server = BearerServer(RULES, Keys(GOOD))
    assert isinstance(server.evaluate(said(token, "alice"), NOW), Accepted)
    outcome = BearerServer(RULES, Keys(GOOD)).evaluate(said(token, "root"), NOW)
    assert isinstance(outcome, Rejected)
    assert outcome.message is not None and "(root)" in outcome.message


def test_extensions_are_let_through() -> None:
    message = said(GOOD.token(now_s=NOW_S), more="logicalCluster=lkc-1\x01")
    assert isinstance(BearerServer(RULES, Keys(GOOD)).evaluate(message, NOW), Accepted)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"\xff" * 9,
    ],
)
def test_a_message_of_another_form_is_rejected(message: bytes) -> None:
    assert isinstance(BearerServer(RULES, Keys(GOOD)).evaluate(message, NOW), Rejected)


def test_huge_and_deep_tokens_cost_nothing() -> None:
    for token in ("a" * 500_000, "." * 70_000, "a.b", "a.b.c.d", ("W3s" * 20_000) + ".x.y"):
        assert isinstance(judged(token), Challenge)


def test_after_a_refused_token_only_its_acknowledgement_is_heard() -> None:
    server = BearerServer(RULES, Keys(GOOD))
    server.evaluate(said("a.b.c"), NOW)
    outcome = server.evaluate(said(GOOD.token(now_s=NOW_S)), NOW)
    assert outcome == Rejected("an answer of another form")


def test_unsecured_tokens_are_taken_only_where_that_is_asked_for_and_then_no_others() -> None:
    rules = BearerRules(unsecured=True)
    assert judged(unsecured("bob", NOW_S + 60), rules=rules) == Accepted("bob", expires=Millis((NOW_S + 60) * 1000))
    assert isinstance(judged(GOOD.token(now_s=NOW_S), rules=rules), Challenge)
    assert isinstance(judged(unsecured("bob", NOW_S - 60), rules=rules), Challenge)


@given(st.binary(max_size=300))
def test_any_bytes_are_rejected(message: bytes) -> None:
    assert isinstance(BearerServer(RULES, Keys(GOOD)).evaluate(message, NOW), Rejected | Challenge)


@given(st.text(max_size=100), st.text(max_size=100), st.text(max_size=40))
def test_any_text_in_a_tokens_place_is_refused(head: str, body: str, tail: str) -> None:
    server = BearerServer(RULES, Keys(GOOD))
    message = f"n,,\x01auth=Bearer {head}.{body}.{tail}\x01\x01".encode(errors="replace")
    assert isinstance(server.evaluate(message, NOW), Rejected | Challenge | Need)
