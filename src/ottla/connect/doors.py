"""Who may ask a worker, and over what: https by Kafka's `ssl.*`, callers by HTTP Basic, rights by the cluster's ACLs.

Callers are the cluster's own users, as of the schema registry, or those of a file. Kafka has no resource that a
connector would be, and a connector does what its worker may: so whoever looks needs DESCRIBE on the cluster, whoever
changes anything ALTER. A request that is passed on to the leader carries what its caller has shown, and the leader
looks at it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ottla.client.addresses import Address
from ottla.client.aio.cluster import Cluster
from ottla.client.security import Security
from ottla.connect.settings import ConnectSettings
from ottla.http.auth import OPEN_DOOR, Caller, Doorkeeper
from ottla.http.routes import Route
from ottla.model.permissions import CLUSTER_NAME, Operation, Permission, Resource
from ottla.model.properties.broker import STATIC
from ottla.registry.doors.service import ServiceAcls, service_door
from ottla.registry.tls import ServiceTls
from ottla.security.tls import settings as tls

if TYPE_CHECKING:
    from ottla.http.call import Call

LOOK: Final = Permission(Operation.DESCRIBE, Resource.CLUSTER)
CHANGE: Final = Permission(Operation.ALTER, Resource.CLUSTER)
_LOOKING: Final = ("GET", "HEAD", "OPTIONS")


def worker_tls(settings: ConnectSettings) -> ServiceTls | None:
    """None: nothing listens on https. Raises ValueError."""
    if all(address.scheme != "https" for address in settings.listeners):
        return None
    given = settings.https
    read: dict[str, Any] = {name: STATIC[name].default for name in tls.NAMES}
    read |= {name: STATIC[name].parse(given[name]) for name in tls.NAMES if name in given}
    return ServiceTls(read)


def with_needs(routes: Sequence[Route]) -> tuple[Route, ...]:
    return tuple(replace(route, needs=LOOK if route.method in _LOOKING else CHANGE) for route in routes)


def door_of(settings: ConnectSettings, brokers: Sequence[Address], security: Security, cluster: Cluster) -> Doorkeeper:
    """Raises ValueError for settings that do not go together."""
    if not settings.has_logins:
        return OPEN_DOOR
    door, acls = service_door("connect", settings, brokers, security, cluster)
    return door if acls is None else WorkerDoor(door, acls)


class WorkerDoor:
    """Whoever knows the callers says who they are; what they may is decided by the cluster's ACLs."""

    def __init__(self, door: Doorkeeper, acls: ServiceAcls) -> None:
        self._door = door
        self._acls = acls

    async def admit(self, headers: Mapping[str, str], host: str) -> Caller:
        caller = await self._door.admit(headers, host)
        await self._acls.view.fresh()
        return caller

    def may(self, caller: Caller, need: object, call: Call) -> bool:
        """Raises Problem, which says what is missing."""
        assert isinstance(need, Permission)
        self._acls.rights.check(caller, need, CLUSTER_NAME, f"{call.method} {call.url}")
        return True
