"""Who may ask for a node's pages, if `http.authentication.method` is BASIC: the users who log in at its listeners.

Metrics name topics and users, so they are for whoever may DESCRIBE the cluster: the same decision as on the wire, and
the same line of the audit log. Whether a node is alive and ready is told to everybody, since whoever looks after it
(a balancer, a supervisor) has no user.
"""

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from ottla.broker.front.client import ANONYMOUS, NOBODY, note_login
from ottla.broker.security.authorizer import AllowAll, Authorizer, Underway
from ottla.broker.security.missing import missing
from ottla.broker.security.users import Users
from ottla.http.auth import Basic, Bearer, Caller, challenge, credentials
from ottla.http.problems import Problem
from ottla.metadata.image import MetadataImage
from ottla.metadata.scram import SCRAM_BY_TYPE
from ottla.model.ids import Millis
from ottla.model.permissions import CLUSTER_NAME, Permission
from ottla.model.properties import Settings
from ottla.model.properties.sasl import jaas_of, mechanisms_of
from ottla.node.logins import secret_for_strangers
from ottla.registry.doors.door import BasicDoor
from ottla.registry.doors.proofs import Shown
from ottla.registry.doors.users_file import Kept
from ottla.security.lines import quoted
from ottla.security.sasl.outcomes import Accepted
from ottla.security.sasl.plain import PLAIN, PlainServer, plain_message

if TYPE_CHECKING:
    from ottla.http.call import Call

_LISTENER: Final = "HTTP"
_MECHANISM: Final = "BASIC"
"""In the audit log."""
_KEEP_S: Final = 60.0
"""A password that was changed counts after so long."""


class NodeUsers:
    """SCRAM's users are in the metadata, PLAIN's in the settings of the listeners."""

    def __init__(self, settings: Settings, image: Callable[[], MetadataImage]) -> None:
        self._settings = settings
        self._users = Users(image, None, secret_for_strangers(settings))

    async def shown(self, given: Basic | Bearer) -> Shown | None:
        if isinstance(given, Bearer) or not given.user:
            return None
        kept = self._kept(given.user)
        by_scram = await asyncio.to_thread(lambda: [each.fits(given.password) for each in kept])
        return Shown(f"User:{given.user}") if any(by_scram) or self._is_plain(given) else None

    def _kept(self, name: str) -> list[Kept]:
        """One for each mechanism: who has none is looked at like most others, by a password that nobody has. How long
        that takes must not tell who exists."""
        found = []
        for mechanism in SCRAM_BY_TYPE.values():
            known = self._users.scram(mechanism, name)
            shown = self._users.stranger(mechanism, name)  # made for everybody: it takes its time
            shown = known or shown
            found.append(Kept(mechanism, shown.iterations, shown.salt, shown.keys.stored))
        return found

    def _is_plain(self, given: Basic) -> bool:
        listeners = [each.name for each in self._settings.listeners if each.protocol.startswith("SASL")]
        for listener in listeners:
            jaas = (
                jaas_of(self._settings, listener, PLAIN) if PLAIN in mechanisms_of(self._settings, listener) else None
            )
            if jaas is not None and "\0" not in given.user + given.password:
                server, message = PlainServer(jaas.users), plain_message(given.user, given.password)
                if isinstance(server.evaluate(message, Millis(0)), Accepted):
                    return True
        return False


def _who(headers: Mapping[str, str]) -> str:
    """For the audit log alone."""
    try:
        given = credentials(headers)
    except Problem:
        return "credentials that cannot be read"
    return f"a wrong password of {quoted(given.user)}, or no such user" if isinstance(given, Basic) else "no password"


class PagesDoor:
    def __init__(self, users: NodeUsers, authorizer: Authorizer, failure_delay: Millis) -> None:
        self._door = BasicDoor(users, ("BASIC",), "ottla", _KEEP_S)
        self._authorizer = authorizer
        self._failure_delay = failure_delay

    async def admit(self, headers: Mapping[str, str], host: str) -> Caller:
        """Who says nothing may still ask for what everybody is told. Whoever guesses waits for his answer, as at any
        other door of the node."""
        if not headers.get("authorization"):
            return Caller(ANONYMOUS, host)
        try:
            caller = await self._door.admit(headers, host)
        except Problem as problem:
            if problem.status == HTTPStatus.UNAUTHORIZED:
                note_login(self._authorizer, NOBODY, host, _LISTENER, _MECHANISM, _who(headers))
                await asyncio.sleep(self._failure_delay / 1000)
            raise
        note_login(self._authorizer, caller.principal, host, _LISTENER, _MECHANISM)
        return caller

    def may(self, caller: Caller, need: object, call: "Call") -> bool:
        """Raises Problem, which says what is missing."""
        assert isinstance(need, Permission)
        is_anonymous = caller.principal == ANONYMOUS
        if is_anonymous and isinstance(self._authorizer, AllowAll):
            raise self._log_in()
        rights = self._authorizer.for_client(
            caller.principal, caller.host, Underway(f"GET {call.url.partition('?')[0]}")
        )
        if rights.may(*need, CLUSTER_NAME):
            return True
        raise self._log_in() if is_anonymous else Problem(403, missing(caller.principal, (need,), CLUSTER_NAME))

    @staticmethod
    def _log_in() -> Problem:
        return Problem(401, "Log in: basic authentication is needed here.", headers=challenge("Basic"))
