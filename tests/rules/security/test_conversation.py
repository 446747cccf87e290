"""What may come when in a login, what is answered, and what closes: asked of Apache Kafka 4.3.1, row by row."""

import pytest

from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol import messages as m
from ottla.protocol.apis import API
from ottla.protocol.frames import RequestHeader, encode_request
from ottla.security.sasl.conversation import Answer, Close, Fail, Greet, LoggedIn, Login, State, Wait
from ottla.security.sasl.outcomes import Accepted, Need, Outcome
from tests.rules.security.logins import NOW, WALL, Talk, plain, scram_login, told

ALICE = Login("alice", "PLAIN", ends=Millis(5_000))


def begun(mechanism: str = "PLAIN", max_session: int = 0) -> Talk:
    talk = Talk(max_session)
    talk.handshake(mechanism)
    return talk


# A right login.


def test_versions_then_handshake_then_token_is_a_login() -> None:
    talk = Talk()
    assert talk.greet() == Greet()
    answer = told(talk.handshake(), 17, 1)
    assert (answer.error_code, answer.mechanisms) == (0, ["PLAIN", "SCRAM-SHA-256"])
    step = talk.authenticate(plain("alice", "secret"))
    assert isinstance(step, LoggedIn)
    assert step.login == Login("alice", "PLAIN")
    done = told(step)
    assert (done.error_code, done.error_message, bytes(done.auth_bytes), done.session_lifetime_ms) == (0, "", b"", 0)


def test_the_versions_need_not_be_asked_for() -> None:
    assert isinstance(begun().authenticate(plain("alice", "secret")), LoggedIn)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_version_of_saslauthenticate_is_understood(version: int) -> None:
    step = begun().authenticate(plain("alice", "secret"), version)
    assert told(step, 36, version).error_code == 0


def test_after_handshake_0_tokens_come_bare_and_so_do_answers() -> None:
    talk = Talk()
    assert told(talk.handshake("SCRAM-SHA-256", 0), 17, 0).error_code == 0
    step = talk.raw(b"n,,n=alice,r=abc")
    assert isinstance(step, Answer)
    assert step.frame[:4] == (len(step.frame) - 4).to_bytes(4, "big")
    assert step.frame[4:].startswith(b"r=abcfrom-server,s=")


def test_after_handshake_0_a_login_without_a_last_word_is_answered_with_an_empty_one() -> None:
    talk = Talk()
    talk.handshake("PLAIN", 0)
    assert talk.raw(plain("alice", "secret")) == LoggedIn(bytes(4), Login("alice", "PLAIN"))


def test_after_handshake_0_a_failure_just_closes_late() -> None:
    talk = Talk()
    talk.handshake("PLAIN", 0)
    step = talk.raw(plain("alice", "wrong"))
    assert isinstance(step, Fail)
    assert step.frame is None
    assert step.why.startswith("a wrong password of 'alice'; who may log in by PLAIN stands in")


def test_scram_is_two_messages_each_way() -> None:
    talk = Talk()
    step = scram_login(talk, "alice", "secret")
    assert isinstance(step, LoggedIn)
    assert step.login == Login("alice", "SCRAM-SHA-256")
    assert bytes(told(step).auth_bytes).startswith(b"v=")


# Wrong credentials: answered with 58, late, and closed.


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (plain("alice", "wrong"), "Authentication failed: Invalid username or password"),
        (plain("nobody", "secret"), "Authentication failed: Invalid username or password"),
        (plain("", "secret"), "Authentication failed: username not specified"),
        (plain("alice", ""), "Authentication failed: password not specified"),
        (
            plain("alice", "secret", "bob"),
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"a\0b\0c\0d\0e", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (
            b"\0\xff\0\xff",
            "Authentication failed during authentication due to invalid credentials with SASL mechanism PLAIN",
        ),
    ],
)
def test_plain_says_what_is_wrong_and_never_who_exists(token: bytes, text: str) -> None:
    step = begun().authenticate(token)
    assert isinstance(step, Fail)
    answer = told(step)
    assert (answer.error_code, answer.error_message) == (Errors.SASL_AUTHENTICATION_FAILED, text)


def test_an_unknown_scram_user_and_a_wrong_password_get_the_same_steps_and_words() -> None:
    steps = [scram_login(Talk(), name, "wrong") for name in ("alice", "nobody")]
    text = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    for step in steps:
        assert isinstance(step, Fail)
        assert (told(step).error_code, told(step).error_message) == (58, text)
    assert [step.why for step in steps if isinstance(step, Fail)] == [
        "a wrong password of 'alice': `ottla users password alice` sets another",
        "no SCRAM-SHA-256 credential is kept for 'nobody': `ottla users add nobody` makes one",
    ]


def test_a_name_that_is_no_word_makes_no_line_of_the_log() -> None:
    for name in ("eve\nINFO all is well", "\x1b[2J"):
        for step in (scram_login(Talk(), name, "wrong"), begun().authenticate(f"\0{name}\0wrong".encode())):
            assert isinstance(step, Fail)
            assert step.why.isprintable()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_what_a_client_says_of_itself_is_short_or_refused(mechanism: str) -> None:
    """A listener takes half a megabyte before the login, all of which would stand in the log."""
    for length in (5_000, 500_000):
        talk = begun(mechanism)
        step = talk.authenticate(plain("x" * length, "secret") if mechanism == "PLAIN" else scram_first("x" * length))
        if isinstance(step, Answer):
            step = talk.authenticate(b"no proof")
        assert isinstance(step, Fail)
        assert (len(step.why) < 500, told(step).error_code) == (True, 58)
    talk = Talk()
    step = talk.handshake("x\n" * 16_000)
    assert isinstance(step, Fail)
    assert (len(step.why) < 500, step.why.isprintable(), len(talk.core.mechanism)) == (True, True, 64)


def scram_first(name: str) -> bytes:
    return f"n,,n={name},r=nonce".encode()


def test_a_mechanism_that_is_not_enabled_is_answered_with_those_that_are() -> None:
    step = Talk().handshake("GSSAPI")
    assert isinstance(step, Fail)
    answer = told(step, 17, 1)
    assert (answer.error_code, answer.mechanisms) == (33, ["PLAIN", "SCRAM-SHA-256"])


# Out of place.


@pytest.mark.parametrize("key", [key for key in API if key not in (17, 18)])
def test_any_other_request_before_the_login_closes_at_once(key: int) -> None:
    api = API[key]
    frame = encode_request(RequestHeader(key, api.min_version, 7, "c"), m.request_class(key)())[4:]
    for talk in (Talk(), greeted()):
        assert talk.raw(frame) == Close(f"{api.name} came before the login: is its security.protocol one without SASL?")
        assert talk.core.state is State.OVER


def greeted() -> Talk:
    talk = Talk()
    talk.greet()
    return talk


def test_a_second_apiversions_closes() -> None:
    assert greeted().greet() == Close("ApiVersions came before the login: is its security.protocol one without SASL?")


def test_apiversions_of_an_unknown_version_may_come_again() -> None:
    talk = Talk()
    assert talk.greet(answered=False) == Greet()
    assert talk.greet() == Greet()
    assert isinstance(talk.handshake(), Answer)


@pytest.mark.parametrize("key", list(API))
def test_another_request_behind_the_handshake_gets_its_own_kind_of_answer_late(key: int) -> None:
    if key == 36:
        return
    api = API[key]
    version = api.stable_max
    step = begun().send(m.request_class(key)(), version)
    assert isinstance(step, Fail)
    assert step.why == f"{api.name} came in the middle of the login"
    if "error_code" in m.response_class(key).FIELDS and step.frame is not None:
        assert told(step, key, version).error_code == Errors.ILLEGAL_SASL_STATE


@pytest.mark.parametrize(
    "frame", [b"", b"\0", b"\0\x11\0\x01\0\0\0\x07\xff", b"\xff" * 64, b"\0\x11\0\x01\0\0\0\x07\xff\xff\0\x09P"]
)
def test_what_cannot_be_read_closes(frame: bytes) -> None:
    assert isinstance(Talk().raw(frame), Close)
    assert isinstance(begun().raw(frame), Close)


def test_an_unknown_version_of_saslauthenticate_or_handshake_closes() -> None:
    header = b"\0\x24\0\x09\0\0\0\x07\0\0"
    assert isinstance(begun().raw(header), Close)
    assert isinstance(Talk().raw(b"\0\x11\0\x09\0\0\0\x07\0\0"), Close)


def test_nothing_comes_after_the_end() -> None:
    talk = begun()
    talk.authenticate(plain("alice", "wrong"))
    assert talk.authenticate(plain("alice", "secret")) == Close("a frame after the end of the login")


# How long it holds, and again (KIP-368).


class Expiring:
    """Somebody whose credential ends."""

    def evaluate(self, message: bytes, now: Millis, *, again: bool = False) -> Outcome:
        return Accepted("alice", expires=Millis(WALL + 3_000))


@pytest.mark.parametrize(
    ("max_session", "expires", "lifetime"),
    [(0, True, 3_000), (2_000, True, 2_000), (9_000, True, 3_000), (9_000, False, 9_000)],
)
def test_a_session_ends_with_the_setting_or_the_credential_whichever_is_first(
    max_session: int, expires: bool, lifetime: int
) -> None:
    talk = Talk(max_session, ENDS=Expiring)
    talk.handshake("ENDS" if expires else "PLAIN")
    step = talk.authenticate(plain("alice", "secret"))
    assert isinstance(step, LoggedIn)
    assert (step.login.ends, told(step).session_lifetime_ms) == (NOW + lifetime, lifetime)


def test_a_credential_that_has_ended_already_leaves_no_time() -> None:
    talk = Talk(ENDS=Expiring)
    talk.wall = Millis(WALL + 60_000)
    talk.handshake("ENDS")
    step = talk.authenticate(b"x")
    assert isinstance(step, LoggedIn)
    assert (step.login.ends, told(step).session_lifetime_ms) == (NOW, 0)


def test_clients_that_know_only_version_0_are_not_told_of_an_end_but_have_one() -> None:
    talk = begun(max_session=2_000)
    step = talk.authenticate(plain("alice", "secret"), 0)
    assert isinstance(step, LoggedIn)
    assert step.login.ends == NOW + 2_000


def test_a_login_may_be_renewed() -> None:
    talk = Talk(2_000, ALICE)
    assert told(talk.handshake(), 17, 1).error_code == 0
    step = talk.authenticate(plain("alice", "secret"))
    assert isinstance(step, LoggedIn)
    assert step.login == Login("alice", "PLAIN", ends=Millis(NOW + 2_000))


def test_a_renewal_may_not_be_somebody_else() -> None:
    talk = Talk(2_000, ALICE)
    talk.handshake()
    step = talk.authenticate(plain("bob", "other"))
    assert isinstance(step, Fail)
    text = "Cannot change principals during re-authentication from User.alice: User.bob"
    assert (told(step).error_code, told(step).error_message) == (58, text)


def test_a_renewal_by_another_mechanism_gets_its_handshake_and_then_nothing() -> None:
    talk = Talk(2_000, ALICE)
    assert told(talk.handshake("SCRAM-SHA-256"), 17, 1).error_code == 0
    step = talk.authenticate(b"n,,n=alice,r=abc")
    assert step == Fail(None, "a re-login by SCRAM-SHA-256 where the login was by PLAIN")


def test_a_renewal_with_a_wrong_password_is_said_to_be_one() -> None:
    talk = Talk(2_000, Login("alice", "SCRAM-SHA-256", ends=Millis(5_000)))
    step = scram_login(talk, "alice", "wrong")
    text = "Authentication failed during re-authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    assert told(step).error_message == text


def test_apiversions_is_no_part_of_a_renewal() -> None:
    assert isinstance(Talk(2_000, ALICE).greet(), Close)


# What has to be fetched first.


class NeedsKeys:
    def evaluate(self, message: bytes, now: Millis, *, again: bool = False) -> Outcome:
        return Accepted("alice") if again else Need("keys", "k1")


def test_a_message_is_judged_again_when_what_it_needed_is_there() -> None:
    talk = Talk(KEYS=NeedsKeys)
    talk.handshake("KEYS")
    assert talk.authenticate(b"x") == Wait(Need("keys", "k1"))
    step = talk.core.resumed(NOW, WALL)
    assert isinstance(step, LoggedIn)
    assert told(step).error_code == 0
