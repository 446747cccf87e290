"""One entry of an access control list, and filters that find entries. Kafka's own, with their codes on the wire."""

from enum import IntEnum
from typing import Final, NamedTuple

ANY: Final = 1
"""Of a filter: any type, operation or permission."""
MATCH: Final = 2
"""Of a filter's pattern: every entry that covers the name (KIP-290)."""
WILDCARD: Final = "*"
"""As a literal name every resource of the type, as a host every address; behind `User:` everybody."""
EVERYBODY: Final = "User:*"


class Pattern(IntEnum):
    LITERAL = 3
    PREFIXED = 4


class PermissionType(IntEnum):
    DENY = 2
    ALLOW = 3


class Acl(NamedTuple):
    """The numbers are those of Resource, Pattern, Operation and PermissionType. They stay plain: a log of a later Kafka
    may hold some that have no name here, and they are kept."""

    resource: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int

    def covers(self, name: str) -> bool:
        if self.pattern == Pattern.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)


class AclFilter(NamedTuple):
    resource: int = ANY
    name: str | None = None
    pattern: int = ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission: int = ANY

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource in (ANY, acl.resource)
            and self.operation in (ANY, acl.operation)
            and self.permission in (ANY, acl.permission)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self._names(acl)
        )

    def _names(self, acl: Acl) -> bool:
        if self.pattern not in (ANY, MATCH, acl.pattern):
            return False
        if self.name is None:
            return True
        return acl.covers(self.name) if self.pattern == MATCH else self.name == acl.name
