"""Who was refused what, in Kafka's words or as JSON, and who logged in: the lines that nodes and services write alike.

A client that is refused asks again and again: of equal lines one is written in a second, and another at its end tells
how many there were in between. Who asks for something else each time does not fill the log either: of a kind only so
many different lines are written in a second, and the rest are counted. What clients say of themselves (names of users,
of topics, of mechanisms) is cut, and written so that it cannot be taken for a line of this log. No secret passes by.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol

from ottla.model.acls import Acl, Pattern, PermissionType
from ottla.model.ids import Millis
from ottla.model.permissions import RESOURCE_NAMES, Operation, Resource
from ottla.model.ports import Clock
from ottla.security.acls import Rule, Verdict
from ottla.security.lines import cut, shown

INFO: Final = 20
DEBUG: Final = 10
"""Python's numbers."""
TEXT: Final = "kafka"
JSON: Final = "json"
FORMATS: Final = (TEXT, JSON)
_PERIOD: Final = Millis(1000)
_LONGEST_REASON: Final = 1000
_LEVELS: Final = {True: INFO, False: DEBUG}
"""By whether something was refused."""


class Log(Protocol):
    """A logger of Python's."""

    def isEnabledFor(self, level: int, /) -> bool: ...

    def log(self, level: int, msg: object, /, *args: object) -> None: ...


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
    __slots__ = ("_awake", "_begun", "_clock", "_is_json", "_later", "_log", "_repeated", "_said", "_since", "_unsaid")

    def __init__(self, clock: Clock, log: Log, form: str = TEXT) -> None:
        self._clock = clock
        self._log = log
        self._is_json = form == JSON
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
        return self._log.isEnabledFor(DEBUG)

    def refused(self, asked: Asked, why: Callable[[], Verdict]) -> None:
        if self._log.isEnabledFor(INFO):
            self._say(Kind.DENIED, _bounded(asked), why)

    def allowed(self, asked: Asked, why: Callable[[], Verdict]) -> None:
        if self.tells_allowed:
            self._say(Kind.ALLOWED, _bounded(asked), why)

    def logged_in(self, login: Login) -> None:
        kind = Kind.FAILED_LOGIN if login.failure else Kind.LOGIN
        if self._log.isEnabledFor(kind.level):
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

    def _write(self, level: int, about: Asked | Login, verdict: Verdict | None, times: int) -> None:
        written = _json if self._is_json else _text
        self._log.log(level, "%s", written(about, verdict, times))

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
            self._log.log(kind.level, "%s", (_json_of_rest if self._is_json else _text_of_rest)(kind, times))
        self._unsaid.clear()


def _bounded(asked: Asked) -> Asked:
    return asked._replace(principal=cut(asked.principal), name=cut(asked.name), api=cut(asked.api))


def _bounded_login(login: Login) -> Login:
    return login._replace(
        principal=cut(login.principal), mechanism=cut(login.mechanism), failure=cut(login.failure, _LONGEST_REASON)
    )


def _text_of_rest(kind: Kind, times: int) -> str:
    return f"{times} more {kind.value} in a second: only {_MOST[kind]} of them are written"


def _json_of_rest(kind: Kind, times: int) -> str:
    return _as_json({"event": "unwritten", "kind": kind.value, "count": times})


def _text(about: Asked | Login, verdict: Verdict | None, repeated: int) -> str:
    again = f" ({repeated} more times)" if repeated else ""
    if isinstance(about, Login):
        outcome = f"failed: {shown(about.failure)}" if about.failure else "succeeded"
        return (
            f"Login of principal = {shown(about.principal)} with mechanism = {shown(about.mechanism)} from host = "
            f"{about.host} on listener = {about.listener} {outcome}{again}"
        )
    assert verdict is not None
    return (
        f"Principal = {shown(about.principal)} is {'Allowed' if verdict.allowed else 'Denied'} operation = "
        f"{about.operation.name} from host = {about.host} on resource = {RESOURCE_NAMES[about.resource]}:LITERAL:"
        f"{shown(about.name)} for request = {shown(about.api)} with resourceRefCount = {repeated or 1} based on rule "
        f"{rule_text(verdict)}{again}"
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


def _json(about: Asked | Login, verdict: Verdict | None, repeated: int) -> str:
    line: dict[str, Any] = {"event": "login" if isinstance(about, Login) else "authorization"}
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
    return _as_json(line)


def _as_json(line: dict[str, Any]) -> str:
    import json  # noqa: PLC0415  who reads text does not pay for it

    text = json.dumps(line, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(line)
