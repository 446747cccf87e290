"""Callers of a service beside the cluster (a Connect worker, a SQL server): the cluster's own users, or those of a
file. Each service says by the same settings, behind its own name, who they are and by which rights they are judged."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

from ottla.client.addresses import Address
from ottla.client.aio.acl_view import AclView
from ottla.client.aio.cluster import Cluster
from ottla.client.security import Security
from ottla.http.rights import AclRights
from ottla.registry.doors.cluster_logins import BY_PASSWORD, ClusterLogins
from ottla.registry.doors.door import BasicDoor, Knows
from ottla.registry.doors.users_file import UsersFile
from ottla.security.acls import super_users

_LOGIN_S: Final = 10.0


class Reads(Protocol):
    def __getitem__(self, name: str, /) -> Any: ...


class ServiceAcls(NamedTuple):
    view: AclView
    rights: AclRights


class ServiceDoor(NamedTuple):
    door: BasicDoor
    acls: "ServiceAcls | None"
    """None: whoever is let in may do everything."""


def service_door(
    service: str, settings: Reads, brokers: Sequence[Address], security: Security, cluster: Cluster
) -> ServiceDoor:
    """Raises ValueError for settings that do not go together."""
    said = settings[f"{service}.authorization.method"].upper()
    users_file = settings[f"{service}.users.file"]
    if said == "ACL" and users_file:
        raise ValueError(
            f"{service}.authorization.method: ACLs are about the cluster's users, not of {service}.users.file"
        )
    keep_s = settings[f"{service}.login.cache.ms"] / 1000
    door = BasicDoor(_who_knows(service, settings, brokers, security), ("BASIC",), "ottla", keep_s)
    if said == "NONE" or users_file:
        return ServiceDoor(door, None)
    view = AclView(
        cluster,
        super_users(settings["super.users"]),
        allow_everyone_if_no_acl_found=settings["allow.everyone.if.no.acl.found"],
    )
    return ServiceDoor(door, ServiceAcls(view, AclRights(service, view.rules, settings["ottla.audit.format"])))


def _who_knows(service: str, settings: Reads, brokers: Sequence[Address], security: Security) -> Knows:
    if settings[f"{service}.users.file"]:
        return UsersFile(settings[f"{service}.users.file"])
    if not security.protocol.startswith("SASL"):
        raise ValueError(
            f"{service}.authentication.method: BASIC needs somebody who knows the users. Those of the cluster are "
            "known when the service itself logs in there (security.protocol=SASL_SSL or SASL_PLAINTEXT, sasl.mechanism "
            f"and sasl.jaas.config); others stand in {service}.users.file"
        )
    own = security.credentials.mechanism if security.credentials is not None else ""
    said = tuple(each.upper() for each in settings[f"{service}.login.mechanisms"]) or (own,)
    if not set(said) <= set(BY_PASSWORD):
        raise ValueError(
            f"{service}.login.mechanisms: say by which of {', '.join(BY_PASSWORD)} users log in; the service itself "
            f"does by {own}"
        )
    return ClusterLogins(brokers, security, said, _LOGIN_S)
