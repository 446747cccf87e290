"""Who may do what with which subject: the cluster's own ACLs, as a broker decides by them.

Kafka has no resource that a subject would be, so a subject is as its topic: `orders-key` and `orders-value`, in any
context, as the topic `orders`; one of another name as the topic of that name. Whoever may describe the topic, as all
do who may read or write it, sees the schemas.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.http.auth import Caller
from ottla.http.rights import AclRights
from ottla.model.permissions import CLUSTER_NAME, DESCRIBE_TOPIC, Permission, Resource
from ottla.registry.machine.names import split

if TYPE_CHECKING:
    from ottla.client.aio.acl_view import AclView

_DENIED: Final = 40301
"""Confluent's code for it."""
_SUFFIXES: Final = ("-key", "-value")


def topic_of(subject: str) -> str:
    """Empty for a context as a whole."""
    name = split(subject)[1]
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and name != suffix:
            return name.removesuffix(suffix)
    return name


def cluster_instead(permission: Permission, subject: str) -> tuple[Permission, str]:
    """What is asked, and the name it is asked of: of the cluster for what is about more than one subject."""
    name = topic_of(subject) if permission.resource is Resource.TOPIC else ""
    return (permission, name) if name else (permission._replace(resource=Resource.CLUSTER), CLUSTER_NAME)


class SubjectRights:
    def __init__(self, view: "AclView", rights: AclRights) -> None:
        self._view = view
        self._rights = rights

    async def fresh(self) -> None:
        """Before somebody is asked about: what is known is of the last few seconds then."""
        await self._view.fresh()

    async def stop(self) -> None:
        await self._view.stop()

    def check(self, caller: Caller, permission: Permission, subject: str, request: str) -> None:
        """Raises Problem: 403, with what is missing. It is the same whether the subject exists or not."""
        asked, name = cluster_instead(permission, subject)
        self._rights.check(caller, asked, name, request, _DENIED)

    def sees(self, caller: Caller) -> Callable[[str], bool]:
        """Which subjects, for lists."""
        rights = self._rights.of(caller)
        return lambda subject: rights.allows(*DESCRIBE_TOPIC, topic_of(subject))
