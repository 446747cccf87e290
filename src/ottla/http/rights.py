"""A doorkeeper that decides by the cluster's ACLs, as a broker does: one set of rights for every service.

A route says `needs=Right(WRITE_TOPIC, "topic")`: the permission, and the part of the path that names the resource. Who
the caller is, is found out by whoever made the door; the decision is `ottla.security.acls`, of the entries as they are
now.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.http.auth import Caller
from ottla.http.problems import Problem
from ottla.model.permissions import CLUSTER_NAME, RESOURCE_NAMES, Permission, Resource
from ottla.security.acls import Rules
from ottla.security.hosts import as_java

if TYPE_CHECKING:
    from ottla.http.call import Call

Admit = Callable[[Mapping[str, str], str], Awaitable[Caller]]
"""Takes headers and host. Raises Problem (401) for who does not say, or cannot prove, who it is."""
_UNKNOWN: Final = Problem(503, "The ACLs of the cluster are not known yet; try again.")


class Right(NamedTuple):
    """What a route needs."""

    permission: Permission
    part: str = ""
    """The name in braces of the route's path. Empty: the cluster."""

    def __str__(self) -> str:
        resource = RESOURCE_NAMES[self.permission.resource]
        return f"{self.permission.operation.name} on {resource}{f' {{{self.part}}}' if self.part else ''}"


class AclDoor:
    def __init__(self, admit: Admit, rules: Callable[[], Rules | None]) -> None:
        """`rules` gives None as long as they are not known: nobody gets in before."""
        self._admit = admit
        self._rules = rules

    async def admit(self, headers: Mapping[str, str], host: str) -> Caller:
        return await self._admit(headers, host)

    def may(self, caller: Caller, need: object, call: "Call") -> bool:
        assert isinstance(need, Right), f"{need!r} is nothing that ACLs could allow"
        rules = self._rules()
        if rules is None:
            raise _UNKNOWN
        permission, part = need
        name = CLUSTER_NAME if permission.resource is Resource.CLUSTER else call.path[part]
        return rules.rights(caller.principal, as_java(caller.host)).allows(*permission, name)
