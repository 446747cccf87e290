"""Who may ask for the stores of an application, and over what: https by Kafka's `ssl.*`, callers by HTTP Basic, rights
by the cluster's ACLs.

A properties file says so (`application.server.settings.file`), as its secrets are nobody's business; without one
everybody who reaches the port may ask. Callers are the cluster's own users, or those of a file. A store is what its
topic holds: who may READ that may ask for it, and who may not even DESCRIBE it is not told that there is one. What is
about the application as a whole needs DESCRIBE on the cluster.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.client.addresses import parse_bootstrap
from ottla.client.aio.acl_view import AclView
from ottla.client.aio.cluster import Cluster
from ottla.client.reach import Reach
from ottla.client.security import SecurityRefused, settings_of
from ottla.http.auth import Caller, Doorkeeper
from ottla.http.problems import Problem
from ottla.model.permissions import CLUSTER_NAME, DESCRIBE_TOPIC, Permission, Resource
from ottla.model.properties.broker import STATIC
from ottla.model.properties.property import closest, table
from ottla.registry.doors.service import ServiceAcls, service_door
from ottla.registry.doors.settings import login_settings
from ottla.registry.tls import ServiceTls
from ottla.security.tls import settings as tls

if TYPE_CHECKING:
    from ottla.http.call import Call

SERVICE: Final = "queries"
SETTINGS: Final = table(login_settings(SERVICE, "who asks for a store needs READ on the topic that keeps it"))
_CLIENT_ID: Final = "ottla-queries-door"
_LIKENESS: Final = 0.5


class QueryDoor:
    """Whoever knows the callers says who they are; what they may is decided by the cluster's ACLs."""

    def __init__(self, door: Doorkeeper, acls: ServiceAcls | None, topic_of: Callable[[str], str | None]) -> None:
        """`acls`: None if whoever is let in may ask for everything. `topic_of` a store: None if there is none."""
        self._door = door
        self._acls = acls
        self._topic_of = topic_of

    async def admit(self, headers: Mapping[str, str], host: str) -> Caller:
        caller = await self._door.admit(headers, host)
        if self._acls is not None:
            await self._acls.view.fresh()
        return caller

    def may(self, caller: Caller, need: object, call: "Call") -> bool:
        """Raises Problem, which says what is missing if the caller may know."""
        assert isinstance(need, Permission)
        if self._acls is None:
            return True
        request = f"{call.method} {call.url}"
        if need.resource is Resource.CLUSTER:
            self._acls.rights.check(caller, need, CLUSTER_NAME, request)
            return True
        store = call.path["store"]
        topic = self._topic_of(store)
        if topic is None or not self.sees(caller, topic):
            raise Problem(404, f"there is no store {store}, or none that {caller.principal} may see")
        self._acls.rights.check(caller, need, topic, request)
        return True

    def sees(self, caller: Caller, topic: str) -> bool:
        return self._acls is None or self._acls.rights.allows(caller, DESCRIBE_TOPIC, topic)


class Safety:
    """The door of an application's server and its TLS, as the file says."""

    def __init__(self, file: Path, reach: Reach, topic_of: Callable[[str], str | None]) -> None:
        """`reach`: how the application itself comes to the cluster. Raises ValueError that says what to do."""
        try:
            logins, stores = _read(settings_of(file))
        except SecurityRefused as error:
            raise ValueError(str(error)) from error
        self.tls = ServiceTls(stores) if stores["ssl.keystore.location"] or stores["ssl.keystore.key"] else None
        self.door: QueryDoor | None = None
        self._cluster: Cluster | None = None
        self._view: AclView | None = None
        if logins[f"{SERVICE}.authentication.method"].upper() != "NONE":
            security, brokers = reach.security(), parse_bootstrap(reach.servers)
            self._cluster = Cluster(brokers, client_id=_CLIENT_ID, security=security)
            door, acls = service_door(SERVICE, logins, brokers, security, self._cluster)
            self._view = None if acls is None else acls.view
            self.door = QueryDoor(door, acls, topic_of)

    @asynccontextmanager
    async def alongside(self) -> AsyncIterator[None]:
        """While the server runs, on its loop."""
        following = None if self.tls is None else asyncio.create_task(self.tls.follow(), name="queries-certificate")
        try:
            yield
        finally:
            if following is not None:
                following.cancel()
                with suppress(asyncio.CancelledError):
                    await following
            if self._view is not None:
                await self._view.stop()
            if self._cluster is not None:
                await self._cluster.close()


def _read(given: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is said of callers, and of https. Raises ValueError."""
    logins: dict[str, Any] = {name: each.default for name, each in SETTINGS.items()}
    stores: dict[str, Any] = {name: STATIC[name].default for name in tls.NAMES}
    for name, text in given.items():
        if name in SETTINGS:
            logins[name] = SETTINGS[name].parse(text)
        elif name in stores:
            stores[name] = STATIC[name].parse(text)
        else:
            near = closest(name, (*SETTINGS, *stores), _LIKENESS)
            meant = f": did you mean {near}?" if near else f"; there are {', '.join(SETTINGS)} and ssl.*"
            raise ValueError(f"{name} is no setting of a server of queries{meant}")
    return logins, stores
