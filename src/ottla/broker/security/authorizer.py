"""Who may do what. Every handler names what it needs; today everybody may do everything."""

from enum import IntEnum
from typing import Protocol


class Operation(IntEnum):
    """Kafka's ACL operations, with their codes on the wire."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Resource(IntEnum):
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


CLUSTER_NAME = "kafka-cluster"
"""The one name that the cluster resource has."""


class Authorizer(Protocol):
    def allows(self, principal: str, host: str, operation: Operation, resource: Resource, name: str) -> bool: ...


class AllowAll:
    """No authorizer is configured: as Kafka, everything is allowed."""

    __slots__ = ()

    def allows(self, principal: str, host: str, operation: Operation, resource: Resource, name: str) -> bool:
        return True


_FOR_RESOURCE: dict[Resource, tuple[Operation, ...]] = {
    Resource.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}


def allowed_operations(authorizer: Authorizer, principal: str, host: str, resource: Resource, name: str) -> int:
    """The bit field that Metadata and DescribeCluster return on request (KIP-430)."""
    return sum(
        1 << operation
        for operation in _FOR_RESOURCE[resource]
        if authorizer.allows(principal, host, operation, resource, name)
    )
