"""SCRAM, both ends: against each other, against `scramp`, and against whoever bends the messages."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scramp import ScramClient as OtherClient
from scramp import ScramException
from scramp import ScramMechanism as OtherMechanism

from ottla.metadata.scram import MIN_ITERATIONS, SCRAM_SHA_256, SCRAM_SHA_512, ScramMechanism
from ottla.model.ids import Millis
from ottla.security.sasl.outcomes import DERIVE_TOKEN_KEYS, Accepted, Challenge, Need, Rejected
from ottla.security.sasl.scram import ScramClient, ScramMismatch, ScramServer
from ottla.security.sasl.speaker import SaltPassword
from tests.rules.security.logins import SALT, USERS, WALL, Passwords, credential, salted
from tests.support.examples import examples

BOTH = pytest.mark.parametrize("mechanism", [SCRAM_SHA_256, SCRAM_SHA_512], ids=lambda each: each.name)
names = st.text(st.characters(min_codepoint=1, max_codepoint=127), min_size=1, max_size=20)
printable = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters=","), min_size=8, max_size=30
)


def server(users: Passwords = USERS, mechanism: ScramMechanism = SCRAM_SHA_256, nonce: str = "S") -> ScramServer:
    return ScramServer(mechanism, users, nonce)


def first(at: ScramServer, message: bytes) -> str:
    outcome = at.evaluate(message, WALL)
    assert isinstance(outcome, Challenge), outcome
    return outcome.message.decode()


def logged_in(at: ScramServer, client: ScramClient, password: str, mechanism: ScramMechanism = SCRAM_SHA_256) -> object:
    salt, iterations = client.heard(first(at, client.first()).encode())
    outcome = at.evaluate(client.final(salted(mechanism, password, salt, iterations)), WALL)
    if isinstance(outcome, Accepted):
        client.check(outcome.message)
        return outcome._replace(message=b"")
    return outcome


@settings(max_examples=20, deadline=None)
@given(names, printable, printable, st.sampled_from([SCRAM_SHA_256, SCRAM_SHA_512]))
def test_whoever_knows_the_password_gets_in_whatever_his_name(
    name: str, ours: str, theirs: str, mechanism: ScramMechanism
) -> None:
    users = Passwords({name: "pass,word=é"})
    at = server(users, mechanism, ours)
    assert logged_in(at, ScramClient(mechanism, name, theirs), "pass,word=é", mechanism) == Accepted(name)


@settings(max_examples=10, deadline=None)
@given(st.text(st.sampled_from("abcXYZ019"), min_size=1), st.text(st.sampled_from("abc=, 019"), min_size=1))
@BOTH
def test_another_implementation_of_a_client_agrees(mechanism: ScramMechanism, name: str, password: str) -> None:
    at = server(Passwords({name: password}), mechanism)
    client = OtherClient([mechanism.name], name, password)
    client.set_server_first(first(at, client.get_client_first().encode()))
    outcome = at.evaluate(client.get_client_final().encode(), WALL)
    assert isinstance(outcome, Accepted)
    client.set_server_final(outcome.message.decode())


@settings(max_examples=10, deadline=None)
@given(st.text(st.sampled_from("abcXYZ019"), min_size=1), st.text(st.sampled_from("abc=, 019"), min_size=1))
@BOTH
def test_another_implementation_of_a_server_agrees(mechanism: ScramMechanism, name: str, password: str) -> None:
    other = OtherMechanism(mechanism.name)
    salt, stored, server_key, iterations = other.make_auth_info(password, salt=SALT, iteration_count=MIN_ITERATIONS)
    at = other.make_server(lambda _: (salt, stored, server_key, iterations))
    client = ScramClient(mechanism, name, "my-nonce-of-some-length")
    at.set_client_first(client.first().decode())
    heard = client.heard(at.get_server_first().encode())
    at.set_client_final(client.final(salted(mechanism, password, *heard)).decode())
    client.check(at.get_server_final().encode())
    with pytest.raises(ScramMismatch, match="does not know the password"):
        client.check(b"v=" + b"A" * 43 + b"=")


@BOTH
def test_a_wrong_password_is_rejected_and_so_is_nobody(mechanism: ScramMechanism) -> None:
    for name in ("alice", "nobody"):
        outcome = logged_in(server(mechanism=mechanism), ScramClient(mechanism, name, "abc"), "wrong", mechanism)
        assert isinstance(outcome, Rejected)
        assert outcome.message is None


def test_a_stranger_is_answered_the_same_each_time() -> None:
    assert first(server(), b"n,,n=nobody,r=abc") == first(server(), b"n,,n=nobody,r=abc")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n,,n=,r=abc",
        b"n,,n=alice",
        b"n,,n=alice,r=",
        b"n,,r=abc,n=alice",
        b"y,,n=alice,r=abc",  # it could do channel binding, and we said nothing of it
        b"p=tls-unique,,n=alice,r=abc",
        b"n,,n=al=ice,r=abc",
        b"n,,n=al\0ice,r=abc",
        "n,,n=aliçe,r=abc".encode(),
        b"n,,n=alice,r=a bc",
        b"n,,m=ext,n=alice,r=abc",
        b"\xff\xfe",
        b"n,,n=" + b"a" * 100_000 + b"=,r=abc",
    ],
)
def test_a_first_message_of_another_form_is_rejected(message: bytes) -> None:
    assert isinstance(server().evaluate(message, WALL), Rejected)


def final_of(at: ScramServer, password: str = "secret") -> str:
    client = ScramClient(SCRAM_SHA_256, "alice", "abc")
    salt, iterations = client.heard(first(at, client.first()).encode())
    return client.final(salted(SCRAM_SHA_256, password, salt, iterations)).decode()


def test_cve_2024_56128_the_whole_nonce_has_to_come_back() -> None:
    for change in (("r=abcS", "r=abcT"), ("r=abcS", "r=abc"), ("r=abcS", "r=abcSS"), ("r=abcS", "r=S")):
        at = server()
        outcome = at.evaluate(final_of(at).replace(*change).encode(), WALL)
        assert outcome == Rejected("'alice' answers to another nonce")


def test_the_channel_that_a_client_thinks_of_is_none() -> None:
    at = server()
    assert at.evaluate(final_of(at).replace("c=biws", "c=eSws").encode(), WALL) == Rejected(
        "'alice' answers to another channel"
    )


def test_a_final_of_another_exchange_is_worth_nothing() -> None:
    spied = server()
    replayed = final_of(spied)
    at = server(nonce="T")
    final_of(at)
    assert isinstance(at.evaluate(replayed.encode(), WALL), Rejected)


@pytest.mark.parametrize(
    "message", [b"", b"c=biws,r=abcS", b"c=biws,r=abcS,p=", b"c=biws,r=abcS,p=AAAA", b"c=biws,r=abcS,p=!", b"\xff"]
)
def test_a_final_without_a_proof_is_rejected(message: bytes) -> None:
    at = server()
    final_of(at)
    assert isinstance(at.evaluate(message, WALL), Rejected)


def test_nobody_acts_as_another() -> None:
    outcome = server().evaluate(b"n,a=bob,n=alice,r=abc", WALL)
    assert isinstance(outcome, Rejected)
    assert outcome.message is not None and "different from username" in outcome.message
    assert isinstance(server().evaluate(b"n,a=alice,n=alice,r=abc", WALL), Challenge)


@settings(max_examples=examples(50), deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_rejected_or_answered_and_never_more(message: bytes) -> None:
    at = server()
    assert isinstance(at.evaluate(message, WALL), Rejected | Challenge)
    started = server()
    final_of(started)
    assert isinstance(started.evaluate(message, WALL), Rejected)


# Delegation tokens.


def test_a_token_logs_in_as_its_owner_until_it_ends() -> None:
    users = Passwords(tokens={"id": ("alice", WALL + 5_000, "hmac")})
    by_token = ScramClient(SCRAM_SHA_256, "id", "abc", by_token=True)
    assert server(users).evaluate(by_token.first(), WALL) == Need(DERIVE_TOKEN_KEYS, "id")
    users.derived.add("id")
    assert logged_in(server(users), by_token, "hmac") == Accepted("alice", expires=Millis(WALL + 5_000), by_token=True)


def test_a_token_that_has_ended_or_never_was_is_treated_as_a_stranger() -> None:
    users = Passwords(tokens={"old": ("alice", WALL, "hmac")})
    users.derived.add("old")
    for token_id in ("old", "none"):
        client = ScramClient(SCRAM_SHA_256, token_id, "abc", by_token=True)
        assert isinstance(logged_in(server(users), client, "hmac"), Rejected)


def test_a_user_is_no_token_and_a_token_no_user() -> None:
    users = Passwords({"alice": "secret"}, {"id": ("alice", WALL + 5_000, "hmac")})
    users.derived.add("id")
    assert isinstance(logged_in(server(users), ScramClient(SCRAM_SHA_256, "id", "abc"), "hmac"), Rejected)
    as_token = ScramClient(SCRAM_SHA_256, "alice", "abc", by_token=True)
    assert isinstance(logged_in(server(users), as_token, "secret"), Rejected)


# A server that cheats.


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"r=xyz,s=c2FsdA==,i=4096", "another nonce"),
        (b"r=abc,s=c2FsdA==,i=4096", "another nonce"),
        (b"r=abcS,s=c2FsdA==,i=1", "1 iterations"),
        (b"r=abcS,s=c2FsdA==,i=2000000000", "iterations"),
        (b"r=abcS,s=c2FsdA==", "another form"),
        (b"", "another form"),
    ],
)
def test_a_client_does_not_answer_to_a_server_that_asks_for_less_than_it_should(answer: bytes, why: str) -> None:
    with pytest.raises(ScramMismatch, match=why):
        ScramClient(SCRAM_SHA_256, "alice", "abc").heard(answer)


def test_scramp_refuses_what_we_refuse() -> None:
    client = OtherClient([SCRAM_SHA_256.name], "alice", "wrong")
    at = server()
    client.set_server_first(first(at, client.get_client_first().encode()))
    assert isinstance(at.evaluate(client.get_client_final().encode(), WALL), Rejected)
    with pytest.raises(ScramException):
        client.set_server_final("v=AAAA")


def test_a_password_is_salted_once_for_a_server_that_says_the_same_again() -> None:
    first_time = SaltPassword(SCRAM_SHA_256, "secret", SALT, MIN_ITERATIONS).done()
    assert SaltPassword(SCRAM_SHA_256, "secret", SALT, MIN_ITERATIONS).done() is first_time
    assert SaltPassword(SCRAM_SHA_256, "other", SALT, MIN_ITERATIONS).done() != first_time


def test_keys_do_not_tell_the_password() -> None:
    found = credential(SCRAM_SHA_256, "secret")
    assert b"secret" not in b"".join((found.salt, *found.keys))
