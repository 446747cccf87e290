"""Who may do what. Today everybody may do everything; `protocol.apis` says what each request needs."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from ottla.model.permissions import Operation, Resource

May: TypeAlias = Callable[[Operation, Resource, str], bool]
"""Whether one client may do that with the resource of that name. Called for every topic of every request."""


class Authorizer(Protocol):
    def for_client(self, principal: str, host: str) -> May:
        """Asked once for each connection: what depends on the client alone is found out here."""


class AllowAll:
    """No authorizer is configured: as Kafka, everything is allowed."""

    __slots__ = ()

    def for_client(self, principal: str, host: str) -> May:
        return _everything


def _everything(operation: Operation, resource: Resource, name: str) -> bool:
    return True
