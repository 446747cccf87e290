"""What can be allowed to somebody: an operation on a resource. Kafka's own, with their codes on the wire."""

from enum import IntEnum
from typing import Final, NamedTuple


class Operation(IntEnum):
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


RESOURCE_NAMES: Final = {
    Resource.TOPIC: "Topic",
    Resource.GROUP: "Group",
    Resource.CLUSTER: "Cluster",
    Resource.TRANSACTIONAL_ID: "TransactionalId",
    Resource.DELEGATION_TOKEN: "DelegationToken",
    Resource.USER: "User",
}
"""As Kafka's logs and tools write them."""

CLUSTER_NAME: Final = "kafka-cluster"
"""The one name that the cluster resource has."""


class Permission(NamedTuple):
    operation: Operation
    resource: Resource


ALTER_TOPIC: Final = Permission(Operation.ALTER, Resource.TOPIC)
ALTER_TOPIC_CONFIGS: Final = Permission(Operation.ALTER_CONFIGS, Resource.TOPIC)
CREATE_TOPIC: Final = Permission(Operation.CREATE, Resource.TOPIC)
DELETE_TOPIC: Final = Permission(Operation.DELETE, Resource.TOPIC)
DESCRIBE_TOPIC: Final = Permission(Operation.DESCRIBE, Resource.TOPIC)
DESCRIBE_TOPIC_CONFIGS: Final = Permission(Operation.DESCRIBE_CONFIGS, Resource.TOPIC)
READ_TOPIC: Final = Permission(Operation.READ, Resource.TOPIC)
WRITE_TOPIC: Final = Permission(Operation.WRITE, Resource.TOPIC)
ALTER_GROUP_CONFIGS: Final = Permission(Operation.ALTER_CONFIGS, Resource.GROUP)
DELETE_GROUP: Final = Permission(Operation.DELETE, Resource.GROUP)
DESCRIBE_GROUP: Final = Permission(Operation.DESCRIBE, Resource.GROUP)
DESCRIBE_GROUP_CONFIGS: Final = Permission(Operation.DESCRIBE_CONFIGS, Resource.GROUP)
READ_GROUP: Final = Permission(Operation.READ, Resource.GROUP)
DESCRIBE_TRANSACTIONAL_ID: Final = Permission(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID)
TWO_PHASE_COMMIT: Final = Permission(Operation.TWO_PHASE_COMMIT, Resource.TRANSACTIONAL_ID)
WRITE_TRANSACTIONAL_ID: Final = Permission(Operation.WRITE, Resource.TRANSACTIONAL_ID)
ALTER_CLUSTER: Final = Permission(Operation.ALTER, Resource.CLUSTER)
ALTER_CLUSTER_CONFIGS: Final = Permission(Operation.ALTER_CONFIGS, Resource.CLUSTER)
CLUSTER_ACTION: Final = Permission(Operation.CLUSTER_ACTION, Resource.CLUSTER)
CREATE_CLUSTER: Final = Permission(Operation.CREATE, Resource.CLUSTER)
DELETE_CLUSTER: Final = Permission(Operation.DELETE, Resource.CLUSTER)
DESCRIBE_CLUSTER: Final = Permission(Operation.DESCRIBE, Resource.CLUSTER)
DESCRIBE_CLUSTER_CONFIGS: Final = Permission(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER)
CREATE_TOKENS: Final = Permission(Operation.CREATE_TOKENS, Resource.USER)
DESCRIBE_TOKEN: Final = Permission(Operation.DESCRIBE, Resource.DELEGATION_TOKEN)
DESCRIBE_TOKENS: Final = Permission(Operation.DESCRIBE_TOKENS, Resource.USER)
IDEMPOTENT_WRITE: Final = Permission(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER)

OPERATIONS: Final = {
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
"""What a client is told that it may do, if it asks (KIP-430)."""
