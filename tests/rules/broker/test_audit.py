"""The audit log: Kafka's line or JSON, one of a kind in a second."""

import json
import logging
from collections.abc import Callable

import pytest

from ottla.broker.security.audit import Asked, Audit, Login
from ottla.model.acls import Acl
from ottla.model.ids import Millis
from ottla.model.permissions import Operation, Resource
from ottla.security.acls import Rule, Verdict

LOGGER = "kafka.authorizer.logger"
WRITE = Asked("User:alice", "127.0.0.1", Operation.WRITE, Resource.TOPIC, "t-one", "Produce")
DENIED = Verdict(False, Rule.DEFAULT_DENY)
LINE = (
    "Principal = User:alice is Denied operation = WRITE from host = 127.0.0.1 on resource = Topic:LITERAL:t-one "
    "for request = Produce with resourceRefCount = 1 based on rule DefaultDeny"
)


class Clock:
    def __init__(self) -> None:
        self.now = Millis(10_000)

    def monotonic(self) -> Millis:
        return self.now

    def wall(self) -> Millis:
        return self.now


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, LOGGER)
    return caplog


def test_a_refusal_is_written_in_kafkas_words(lines: pytest.LogCaptureFixture) -> None:
    Audit(Clock()).refused(WRITE, lambda: DENIED)
    assert [(each.levelname, each.getMessage()) for each in lines.records] == [("INFO", LINE)]


def test_the_entry_that_decided_is_named(lines: pytest.LogCaptureFixture) -> None:
    acl = Acl(2, "t-", 4, "User:*", "*", 2, 2)
    Audit(Clock()).refused(WRITE, lambda: Verdict(False, Rule.MATCHING_ACL, acl))
    assert lines.messages[0].endswith(
        "based on rule MatchingAcl(acl=StandardAcl(resourceType=TOPIC, resourceName=t-, patternType=PREFIXED, "
        "principal=User:*, host=*, operation=ALL, permissionType=DENY))"
    )


def test_of_equal_lines_one_is_written_in_a_second_and_the_others_are_counted(lines: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    audit = Audit(clock)
    for _ in range(5):
        audit.refused(WRITE, lambda: DENIED)
    assert lines.messages == [LINE]
    clock.now = Millis(clock.now + 1000)
    audit.refused(WRITE._replace(name="other"), lambda: DENIED)
    counted = LINE.replace("resourceRefCount = 1", "resourceRefCount = 4") + " (4 more times)"
    assert lines.messages == [LINE, counted, LINE.replace("t-one", "other")]
    audit.refused(WRITE, lambda: DENIED)
    assert lines.messages[3:] == [LINE]


def test_what_is_allowed_is_written_for_those_who_debug(lines: pytest.LogCaptureFixture) -> None:
    audit = Audit(Clock())
    audit.allowed(WRITE, lambda: Verdict(True, Rule.SUPER_USER))
    assert (lines.messages, audit.tells_allowed) == ([], False)
    lines.set_level(logging.DEBUG, LOGGER)
    audit.allowed(WRITE, lambda: Verdict(True, Rule.SUPER_USER))
    assert lines.messages == [LINE.replace("Denied", "Allowed").replace("DefaultDeny", "SuperUser")]


def test_json_says_the_same(lines: pytest.LogCaptureFixture) -> None:
    Audit(Clock(), "json").refused(WRITE, lambda: DENIED)
    assert json.loads(lines.messages[0]) == {
        "event": "authorization",
        "principal": "User:alice",
        "host": "127.0.0.1",
        "operation": "WRITE",
        "resourceType": "TOPIC",
        "resourceName": "t-one",
        "request": "Produce",
        "result": "denied",
        "rule": "DefaultDeny",
    }


def test_logins_are_written_failed_ones_for_everybody_to_see(lines: pytest.LogCaptureFixture) -> None:
    audit = Audit(Clock())
    failed = Login("User:alice", "10.0.0.1", "CLIENT", "SCRAM-SHA-256", "wrong password")
    audit.logged_in(failed)
    audit.logged_in(failed._replace(failure=""))
    assert lines.messages == [
        "Login of principal = User:alice with mechanism = SCRAM-SHA-256 from host = 10.0.0.1 on listener = CLIENT "
        "failed: wrong password"
    ]
    Audit(Clock(), "json").logged_in(failed)
    assert json.loads(lines.messages[1])["failure"] == "wrong password"


def test_what_a_client_calls_itself_cannot_make_a_line_of_its_own(lines: pytest.LogCaptureFixture) -> None:
    forged = "x\nPrincipal = User:admin is Allowed"
    audit = Audit(Clock())
    audit.refused(WRITE._replace(principal=f"User:{forged}", name=forged), lambda: DENIED)
    audit.logged_in(Login("unknown", "10.0.0.1", "CLIENT", forged, f"it asks for {forged}"))
    Audit(Clock(), "json").refused(WRITE._replace(name="a\u2028b"), lambda: DENIED)
    assert [message for message in lines.messages if not message.isprintable()] == []
    assert "Topic:LITERAL:'x\\nPrincipal = User:admin is Allowed' for" in lines.messages[0]
    assert json.loads(lines.messages[2])["resourceName"] == "a\u2028b"


def test_what_a_client_says_at_great_length_is_cut(lines: pytest.LogCaptureFixture) -> None:
    long = "x" * 500_000
    audit = Audit(Clock())
    audit.refused(WRITE._replace(principal=long, name=long, api=long), lambda: DENIED)
    audit.logged_in(Login(long, "10.0.0.1", "CLIENT", long, long))
    Audit(Clock(), "json").logged_in(Login(long, "10.0.0.1", "CLIENT", long, long))
    assert [len(message) < 2000 for message in lines.messages] == [True, True, True]
    assert f"{'x' * 256}… (500000 characters)" in lines.messages[0]


def test_of_different_lines_so_many_are_written_in_a_second_and_the_rest_counted(
    lines: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    audit = Audit(clock)
    for number in range(10_000):
        audit.logged_in(Login("unknown", "10.0.0.1", "CLIENT", "PLAIN", f"an unknown user: {number}"))
    audit.refused(WRITE, lambda: DENIED)  # of another kind: strangers do not drown it
    assert (len(lines.messages), lines.messages[-1]) == (51, LINE)
    clock.now = Millis(clock.now + 1000)
    audit.refused(WRITE._replace(name="other"), lambda: DENIED)
    assert lines.messages[51:] == [
        "9950 more failed logins in a second: only 50 of them are written",
        LINE.replace("t-one", "other"),
    ]


def test_what_was_counted_is_told_also_if_nothing_more_happens(lines: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    timers: list[tuple[float, Callable[[], None]]] = []
    audit = Audit(clock)
    audit.wake_by(lambda seconds, do: timers.append((seconds, do)))
    for _ in range(3):
        audit.refused(WRITE, lambda: DENIED)
    ((seconds, wake),) = timers
    clock.now = Millis(clock.now + int(seconds * 1000))
    wake()
    counted = LINE.replace("resourceRefCount = 1", "resourceRefCount = 2") + " (2 more times)"
    assert lines.messages == [LINE, counted]
    assert len(timers) == 1, "there is nothing left to tell"
    audit.refused(WRITE, lambda: DENIED)
    audit.refused(WRITE, lambda: DENIED)
    audit.flush()
    assert lines.messages[2:] == [LINE, f"{LINE} (1 more times)"]
