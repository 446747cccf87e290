"""What a session asks: may this client do that? `protocol.apis` says what each request needs."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from ottla.model.permissions import Operation, Resource

if TYPE_CHECKING:
    from ottla.broker.front.client import Client
    from ottla.security.acls import AclIndex

May: TypeAlias = Callable[[Operation, Resource, str], bool]
"""Whether one client may do that with the resource of that name. Called for every topic of every request."""


class Underway:
    """Which request a connection is being answered, for the audit log. While one that waits for something may still ask
    for permission no other is begun, so the last one it is."""

    __slots__ = ("api",)

    def __init__(self, api: str = "") -> None:
        self.api = api


class Rights(NamedTuple):
    """Of one client."""

    may: May
    """A refusal is written to the audit log."""
    sees: May
    """The same in passing, where a refusal only leaves something out or is followed by a second question: none of it is
    written down, as in Kafka."""
    may_somewhere: Callable[[Operation, Resource], bool]
    """Whether there is any name for which it may."""
    elsewhere: May
    """As `sees`, for a thread beside the loop: it shares nothing with the others and remembers nothing."""


class Authorizer(Protocol):
    def for_client(self, principal: str, host: str, underway: Underway) -> Rights:
        """Asked once for each connection: what depends on the client alone is found out here."""

    def is_ready_for(self, principal: str) -> bool:
        """False: it does not know the rights of anybody but super users yet."""

    def forget(self) -> None:
        """What was decided before is to be decided anew, as with the next change of an ACL."""

    def logged_in(self, principal: str, client: "Client", mechanism: str, failure: str = "") -> None:
        """Somebody did, or with a `failure` did not: for the audit log. The client is told less of why."""

    @property
    def acls(self) -> "AclIndex | None":
        """None: there are no ACLs, as there is no authorizer."""


class AllowAll:
    """No authorizer is configured: as Kafka, everything is allowed."""

    __slots__ = ()

    def for_client(self, principal: str, host: str, underway: Underway) -> Rights:
        return EVERYTHING

    def is_ready_for(self, principal: str) -> bool:
        return True

    def forget(self) -> None:
        """There is nothing to forget."""

    def logged_in(self, principal: str, client: "Client", mechanism: str, failure: str = "") -> None:
        """Without an authorizer there is no audit log."""

    @property
    def acls(self) -> None:
        return None


def _everything(operation: Operation, resource: Resource, name: str) -> bool:
    return True


EVERYTHING = Rights(_everything, _everything, lambda operation, resource: True, _everything)
