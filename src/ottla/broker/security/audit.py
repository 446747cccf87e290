"""Who was refused what, in Kafka's words and on Kafka's logger, or as JSON; and who logged in.

A client that is refused asks again and again: of equal lines one is written in a second, and the next one tells how
many there were in between. Nothing that is written here comes from a request's body, and no secret passes by.
"""

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.model.acls import Acl, Pattern, PermissionType
from ottla.model.ids import Millis
from ottla.model.permissions import RESOURCE_NAMES, Operation, Resource
from ottla.model.ports import Clock
from ottla.security.acls import Rule, Verdict

logger = logging.getLogger("kafka.authorizer.logger")

TEXT: Final = "kafka"
JSON: Final = "json"
FORMATS: Final = (TEXT, JSON)
_PERIOD: Final = Millis(1000)
_MAX_REMEMBERED: Final = 10_000
"""Different lines in a second, beyond which repetitions are written in full."""


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


class Audit:
    __slots__ = ("_clock", "_repeated", "_said", "_since", "_write")

    def __init__(self, clock: Clock, form: str = TEXT) -> None:
        self._clock = clock
        self._write: Callable[[int, Asked | Login, Verdict | None, int], None] = _json if form == JSON else _text
        self._said: dict[Asked | Login, tuple[Millis, Verdict | None]] = {}
        self._repeated: dict[Asked | Login, int] = {}
        """How often since it was said."""
        self._since = Millis(0)

    @property
    def tells_allowed(self) -> bool:
        return logger.isEnabledFor(logging.DEBUG)

    def refused(self, asked: Asked, why: Callable[[], Verdict]) -> None:
        if logger.isEnabledFor(logging.INFO):
            self._say(logging.INFO, asked, why)

    def allowed(self, asked: Asked, why: Callable[[], Verdict]) -> None:
        if self.tells_allowed:
            self._say(logging.DEBUG, asked, why)

    def logged_in(self, login: Login) -> None:
        level = logging.INFO if login.failure else logging.DEBUG
        if logger.isEnabledFor(level):
            self._say(level, login, None)

    def _say(self, level: int, about: Asked | Login, why: Callable[[], Verdict] | None) -> None:
        now = self._clock.monotonic()
        self._catch_up(now)
        if about in self._said:
            self._repeated[about] = self._repeated.get(about, 0) + 1
            return
        verdict = None if why is None else why()
        if len(self._said) < _MAX_REMEMBERED:
            self._said[about] = now, verdict
        self._write(level, about, verdict, 0)

    def _catch_up(self, now: Millis) -> None:
        """Tells of repetitions, once a second has passed since the line."""
        if now - self._since < _PERIOD:
            return
        self._since = now
        for about, (at, verdict) in list(self._said.items()):
            if now - at < _PERIOD:
                continue
            del self._said[about]
            times = self._repeated.pop(about, 0)
            if times:
                refused = bool(about.failure) if isinstance(about, Login) else not (verdict and verdict.allowed)
                self._write(logging.INFO if refused else logging.DEBUG, about, verdict, times)


def _text(level: int, about: Asked | Login, verdict: Verdict | None, repeated: int) -> None:
    again = f" ({repeated} more times)" if repeated else ""
    if isinstance(about, Login):
        outcome = f"failed: {about.failure}" if about.failure else "succeeded"
        logger.log(
            level,
            "Login of principal = %s with mechanism = %s from host = %s on listener = %s %s%s",
            about.principal,
            about.mechanism,
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
        about.principal,
        "Allowed" if verdict.allowed else "Denied",
        about.operation.name,
        about.host,
        RESOURCE_NAMES[about.resource],
        about.name,
        about.api,
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
    logger.log(level, "%s", json.dumps(line, ensure_ascii=False))
