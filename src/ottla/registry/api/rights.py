"""What a caller may do with a subject, decided by the cluster's ACLs.

Kafka has no resource that a subject would be. A subject is asked for as its topic: `orders-key` and `orders-value` are
of the topic `orders`, any other subject of a topic of its own name (which literal and prefixed entries can name, there
or not). The context does not matter. Operations are Kafka's: who may DESCRIBE a topic, as all do who may read it or
write to it, sees its schemas; WRITE registers, DELETE deletes; DESCRIBE_CONFIGS and ALTER_CONFIGS are for config and
mode, on the cluster for those of contexts and of all. Lists leave out what the caller does not see.
"""

from collections.abc import Callable
from typing import Final

from ottla.http.auth import Caller
from ottla.http.problems import Problem
from ottla.model.permissions import (
    ALTER_CLUSTER_CONFIGS,
    ALTER_TOPIC_CONFIGS,
    CLUSTER_NAME,
    DELETE_TOPIC,
    DESCRIBE_CLUSTER_CONFIGS,
    DESCRIBE_TOPIC,
    DESCRIBE_TOPIC_CONFIGS,
    RESOURCE_NAMES,
    WRITE_TOPIC,
    Permission,
    Resource,
)
from ottla.registry.machine.names import split
from ottla.security.acls import Rights as Decisions
from ottla.security.acls import Rules
from ottla.security.hosts import as_java

SEE: Final = DESCRIBE_TOPIC
REGISTER: Final = WRITE_TOPIC
DELETE: Final = DELETE_TOPIC
SEE_CONFIG: Final = DESCRIBE_TOPIC_CONFIGS
CHANGE_CONFIG: Final = ALTER_TOPIC_CONFIGS
_OF_ALL: Final = {SEE_CONFIG: DESCRIBE_CLUSTER_CONFIGS, CHANGE_CONFIG: ALTER_CLUSTER_CONFIGS}
"""What takes the place of a topic's where no subject is named."""
_ENDINGS: Final = ("-key", "-value")
_DENIED: Final = 40301


def topic_of(subject: str) -> str:
    _, name = split(subject)
    for ending in _ENDINGS:
        if name.endswith(ending) and name != ending:
            return name.removesuffix(ending)
    return name


class Rights:
    def __init__(self, rules: Callable[[], Rules | None]) -> None:
        """`rules` gives None as long as they are not known: nobody gets anything before."""
        self._rules = rules

    def sees(self, caller: Caller) -> Callable[[str], bool]:
        """Whether he sees a subject: for lists."""
        decisions = self._of(caller)
        return lambda subject: decisions.allows(*SEE, topic_of(subject))

    def check(self, caller: Caller, permission: Permission, subject: str) -> None:
        """Raises Problem. A subject without a name is a context, or all of them."""
        topic = topic_of(subject)
        needed, name = permission, topic
        if not topic and permission in _OF_ALL:
            needed, name = _OF_ALL[permission], CLUSTER_NAME
        if not self._of(caller).allows(*needed, name):
            raise denied(caller, needed, name)

    def _of(self, caller: Caller) -> Decisions:
        rules = self._rules()
        if rules is None:
            raise Problem(503, "The ACLs of the cluster are not known yet; try again.")
        return rules.rights(caller.principal, as_java(caller.host))


def denied(caller: Caller, needed: Permission, name: str) -> Problem:
    resource = RESOURCE_NAMES[needed.resource]
    where = f"{resource} {name}" if needed.resource is Resource.TOPIC else f"the {resource.lower()}"
    return Problem(403, f"{caller.principal} may not do this: it needs {needed.operation.name} on {where}.", _DENIED)
