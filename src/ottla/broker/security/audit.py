"""Who was refused what, in Kafka's words and on Kafka's logger, or as JSON; and who logged in.

A client that is refused asks again and again: of equal lines one is written in a second, and another at its end tells
how many there were in between. Who asks for something else each time does not fill the log either: of a kind only so
many different lines are written in a second, and the rest are counted. What clients say of themselves (names of users,
of topics, of mechanisms) is cut, and written so that it cannot be taken for a line of this log. No secret passes by.
"""

import logging
from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

from ottla.model.acls import Acl, Pattern, PermissionType
from ottla.model.ids import Millis
from ottla.model.permissions import RESOURCE_NAMES, Operation, Resource
from ottla.model.ports import Clock
from ottla.security.acls import Rule, Verdict
from ottla.security.lines import cut, shown

logger = logging.getLogger("kafka.authorizer.logger")

TEXT: Final = "kafka"
JSON: Final = "json"
FORMATS: Final = (TEXT, JSON)
_PERIOD: Final = Millis(1000)
_LONGEST_REASON: Final = 1000
_LEVELS: Final = {True: logging.INFO, False: logging.DEBUG}
"""By whether something was refused."""


class Asked(NamedTuple):
    principal: str
    host: str
    operation: Operation
    resource: Resource
    name: str
    api: str


class Login(NamedTuple):
    """An attempt to log in, for whoever authenticates: `Audit.logged_in` writes it down."""

    principal: str
    """Of the one who logged in, or tried to."""
    host: str
    listener: str
    mechanism: str
    failure: str = ""
    """Why it failed, for the log alone: the client is told less."""


class Kind(Enum):
    """What is written; each has lines of its own, so that strangers at the door do not drown what users did."""

    FAILED_LOGIN = "failed logins"
    LOGIN = "logins"
    DENIED = "refusals"
    ALLOWED = "permissions"

    @property
    def level(self) -> int:
        return _LEVELS[self in (Kind.FAILED_LOGIN, Kind.DENIED)]


_MOST: Final = {Kind.FAILED_LOGIN: 50, Kind.LOGIN: 500, Kind.DENIED: 500, Kind.ALLOWED: 5_000}
"""Different lines in a second."""


class Audit:
    __slots__ = ("_awake", "_begun", "_clock", "_form", "_later", "_repeated", "_said", "_since", "_unsaid", "_write")

    def __init__(self, clock: Clock, form: str = TEXT) -> None:
        self._clock = clock
        self._form = form
        self._write: Callable[[int, Asked | Login, Verdict | None, int], None] = _json if form == JSON else _text
        self._later: Callable[[float, Callable[[], None]], object] | None = None
        self._awake = False
        """A timer is set."""
        self._begun: dict[Kind, int] = {}
        """Lines of this second."""
        self._unsaid: dict[Kind, int] = {}
        self._said: dict[Asked | Login, tuple[Millis, Kind, Verdict | None]] = {}
        self._repeated: dict[Asked | Login, int] = {}
        """How often since it was said."""
        self._since = Millis(0)

    def wake_by(self, later: Callable[[float, Callable[[], None]], object]) -> None:
        """`later(seconds, do)`: what is counted is told also if nothing more happens."""
        self._later = later

    @property
    def tells_allowed(self) -> bool:
        return logger.isEnabledFor(logging.DEBUG)

    def refused(self, asked: Asked, why: Callable[[], Verdict]) -> None:
        if logger.isEnabledFor(logging.INFO):
            self._say(Kind.DENIED, _bounded(asked), why)

    def allowed(self, asked: Asked, why: Callable[[], Verdict]) -> None:
        if self.tells_allowed:
            self._say(Kind.ALLOWED, _bounded(asked), why)

    def logged_in(self, login: Login) -> None:
        kind = Kind.FAILED_LOGIN if login.failure else Kind.LOGIN
        if logger.isEnabledFor(kind.level):
            self._say(kind, _bounded_login(login), None)

    def _say(self, kind: Kind, about: Asked | Login, why: Callable[[], Verdict] | None) -> None:
        now = self._clock.monotonic()
        self._catch_up(now, _PERIOD)
        self._wake_up()
        if about in self._said:
            self._repeated[about] = self._repeated.get(about, 0) + 1
            return
        if self._begun.get(kind, 0) >= _MOST[kind]:
            self._unsaid[kind] = self._unsaid.get(kind, 0) + 1
            return
        self._begun[kind] = self._begun.get(kind, 0) + 1
        verdict = None if why is None else why()
        self._said[about] = now, kind, verdict
        self._write(kind.level, about, verdict, 0)

    def flush(self) -> None:
        """Tells of all that is counted, as when the node stops."""
        self._catch_up(self._clock.monotonic(), Millis(0))

    def _wake_up(self) -> None:
        if self._later is not None and not self._awake:
            self._awake = True
            self._later(_PERIOD / 1000, self._woken)

    def _woken(self) -> None:
        self._awake = False
        self._catch_up(self._clock.monotonic(), _PERIOD)
        if self._said or self._unsaid:
            self._wake_up()

    def _catch_up(self, now: Millis, period: Millis) -> None:
        """Tells of repetitions, once a second has passed since the line."""
        if now - self._since < period:
            return
        self._since = now
        self._begun.clear()
        for about, (at, kind, verdict) in list(self._said.items()):
            if now - at < period:
                continue
            del self._said[about]
            times = self._repeated.pop(about, 0)
            if times:
                self._write(kind.level, about, verdict, times)
        for kind, times in self._unsaid.items():
            _write_rest(self._form, kind, times)
        self._unsaid.clear()


def _bounded(asked: Asked) -> Asked:
    return asked._replace(principal=cut(asked.principal), name=cut(asked.name), api=cut(asked.api))


def _bounded_login(login: Login) -> Login:
    return login._replace(
        principal=cut(login.principal), mechanism=cut(login.mechanism), failure=cut(login.failure, _LONGEST_REASON)
    )


def _write_rest(form: str, kind: Kind, times: int) -> None:
    if form == JSON:
        logger.log(kind.level, '{"event": "unwritten", "kind": "%s", "count": %d}', kind.value, times)
    else:
        logger.log(kind.level, "%d more %s in a second: only %d of them are written", times, kind.value, _MOST[kind])


def _text(level: int, about: Asked | Login, verdict: Verdict | None, repeated: int) -> None:
    again = f" ({repeated} more times)" if repeated else ""
    if isinstance(about, Login):
        outcome = f"failed: {shown(about.failure)}" if about.failure else "succeeded"
        logger.log(
            level,
            "Login of principal = %s with mechanism = %s from host = %s on listener = %s %s%s",
            shown(about.principal),
            shown(about.mechanism),
            about.host,
            about.listener,
            outcome,
            again,
        )
        return
    assert verdict is not None
    logger.log(
        level,
        "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s for request = %s with "
        "resourceRefCount = %d based on rule %s%s",
        shown(about.principal),
        "Allowed" if verdict.allowed else "Denied",
        about.operation.name,
        about.host,
        RESOURCE_NAMES[about.resource],
        shown(about.name),
        shown(about.api),
        repeated or 1,
        rule_text(verdict),
        again,
    )


def rule_text(verdict: Verdict) -> str:
    """As Kafka writes it."""
    return f"MatchingAcl(acl={acl_text(verdict.acl)})" if verdict.acl is not None else verdict.rule.value


def acl_text(acl: Acl) -> str:
    return (
        f"StandardAcl(resourceType={Resource(acl.resource).name}, resourceName={acl.name}, "
        f"patternType={Pattern(acl.pattern).name}, principal={acl.principal}, host={acl.host}, "
        f"operation={Operation(acl.operation).name}, permissionType={PermissionType(acl.permission).name})"
    )


def _json(level: int, about: Asked | Login, verdict: Verdict | None, repeated: int) -> None:
    import json  # noqa: PLC0415  who reads text does not pay for it

    line: dict[str, object] = {"event": "login" if isinstance(about, Login) else "authorization"}
    if isinstance(about, Login):
        line |= about._asdict() | {"result": "failed" if about.failure else "succeeded"}
    else:
        assert verdict is not None
        line |= {
            "principal": about.principal,
            "host": about.host,
            "operation": about.operation.name,
            "resourceType": about.resource.name,
            "resourceName": about.name,
            "request": about.api,
            "result": "allowed" if verdict.allowed else "denied",
            "rule": verdict.rule.value,
        }
        if verdict.rule is Rule.MATCHING_ACL and verdict.acl is not None:
            line["acl"] = acl_text(verdict.acl)
    if repeated:
        line["repeated"] = repeated
    text = json.dumps(line, ensure_ascii=False)
    logger.log(level, "%s", text if text.isprintable() else json.dumps(line))
