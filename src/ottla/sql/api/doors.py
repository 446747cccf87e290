"""Who may ask a SQL server, and over what: https by Kafka's `ssl.*`, callers by HTTP Basic, rights by the cluster's
ACLs.

Callers are the cluster's own users, as of the schema registry, or those of a file. Who is let in may do by a statement
what ACLs allow him on the topics that it names (`sql.server.askers`); what is about the server itself needs rights on
the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ottla.client.addresses import Address
from ottla.client.aio.cluster import Cluster
from ottla.client.security import Security
from ottla.http.asgi import Scope
from ottla.http.auth import OPEN_DOOR, Caller, Doorkeeper
from ottla.model.permissions import Permission
from ottla.registry.doors.service import ServiceAcls, service_door
from ottla.sql.api.bodies import problem_of
from ottla.sql.errors import SqlError
from ottla.sql.server.askers import Asker
from ottla.sql.settings import SqlSettings

if TYPE_CHECKING:
    from ottla.http.call import Call

_SHOWN: Final = "authorization"


def door_of(settings: SqlSettings, brokers: Sequence[Address], security: Security, cluster: Cluster) -> SqlDoor:
    """Raises ValueError for settings that do not go together."""
    return SqlDoor(*service_door("sql", settings, brokers, security, cluster))


class SqlDoor:
    """Whoever knows the callers says who they are; what they may is decided by the cluster's ACLs."""

    def __init__(self, door: Doorkeeper = OPEN_DOOR, acls: ServiceAcls | None = None) -> None:
        """`acls`: None if whoever is let in may do everything."""
        self._door = door
        self._acls = acls

    async def stop(self) -> None:
        if self._acls is not None:
            await self._acls.view.stop()

    async def admit(self, headers: Mapping[str, str], host: str) -> Caller:
        """Raises Problem."""
        caller = await self._door.admit(headers, host)
        if self._acls is not None:
            await self._acls.view.fresh()
        return caller

    async def admitted(self, scope: Scope) -> Asker:
        """Of a request that no route answers. Raises Problem."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        caller = await self.admit(headers, scope["client"][0] if scope["client"] else "")
        return self.asker(caller, headers)

    def may(self, caller: Caller, need: object, call: Call) -> bool:
        """What is about the server as a whole. Raises Problem, which says what is missing."""
        assert isinstance(need, Permission)
        try:
            self.asker(caller, call.headers).check(need)
        except SqlError as error:
            raise problem_of(error) from None
        return True

    def asker(self, caller: Caller, headers: Mapping[str, str]) -> Asker:
        """Raises Problem as long as the ACLs are not known."""
        shown = {_SHOWN: headers[_SHOWN]} if _SHOWN in headers else {}
        if self._acls is None:
            return Asker(caller.principal, caller.host, shown=shown)
        acls = self._acls.rights
        rights = acls.of(caller)
        return Asker(
            caller.principal,
            caller.host,
            lambda need, name: rights.allows(*need, name),
            lambda need, name: acls.refused(caller, need, name, "a statement"),
            shown,
        )
