"""Who may do what with which subject: the cluster's own ACLs, as a broker decides by them.

Kafka has no resource that a subject would be, so a subject is as its topic: `orders-key` and `orders-value`, in any
context, as the topic `orders`; one of another name as the topic of that name. Whoever may describe the topic, as all
do who may read or write it, sees the schemas.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.http.auth import Caller
from ottla.http.problems import Problem
from ottla.model.permissions import CLUSTER_NAME, DESCRIBE_TOPIC, RESOURCE_NAMES, Permission, Resource
from ottla.registry.machine.names import split
from ottla.security.acls import Rules
from ottla.security.hosts import as_java

if TYPE_CHECKING:
    from ottla.client.aio.acl_view import AclView

logger = logging.getLogger("ottla.registry.audit")

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
    def __init__(self, view: "AclView") -> None:
        self._view = view

    async def fresh(self) -> None:
        """Before somebody is asked about: what is known is of the last few seconds then."""
        await self._view.fresh()

    async def stop(self) -> None:
        await self._view.stop()

    def check(self, caller: Caller, permission: Permission, subject: str) -> None:
        """Raises Problem: 403, with what is missing. It is the same whether the subject exists or not."""
        asked, name = cluster_instead(permission, subject)
        if self._rules().rights(caller.principal, as_java(caller.host)).allows(*asked, name):
            return
        logger.info(
            "principal=%s host=%s operation=%s resource=%s:%r subject=%r result=denied",
            caller.principal, caller.host, asked.operation.name, RESOURCE_NAMES[asked.resource], name, subject,
        )  # fmt: skip
        raise Problem(403, f"{caller.principal} {_missing(asked, name, caller)}", _DENIED)

    def sees(self, caller: Caller) -> Callable[[str], bool]:
        """Which subjects, for lists."""
        rights = self._rules().rights(caller.principal, as_java(caller.host))
        return lambda subject: rights.allows(*DESCRIBE_TOPIC, topic_of(subject))

    def _rules(self) -> Rules:
        rules = self._view.rules()
        if rules is None:
            raise Problem(503, "The ACLs of the cluster cannot be read, so nobody is let in; the log says why.")
        return rules


def _missing(asked: Permission, name: str, caller: Caller) -> str:
    operation = asked.operation.name
    where = "the cluster" if asked.resource is Resource.CLUSTER else f"topic {name}"
    words = "cluster" if asked.resource is Resource.CLUSTER else f"topic:{name}"
    user = caller.principal.removeprefix("User:")
    grant = f"ottla acls allow {user} {operation.lower().replace('_', '-')} {words} --execute"
    return f"needs {operation} on {where}; allow it with: {grant}"
