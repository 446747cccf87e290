"""The broker's tables put together, and the names Kafka accepts in a file without declaring them."""

from collections.abc import Mapping
from types import MappingProxyType

from ottla.model.properties import (
    broker_coordination,
    broker_log,
    broker_quorum,
    broker_replication,
    broker_security,
    broker_server,
    broker_tiered,
    broker_transactions,
    group,
    own,
    topic,
    topic_schemas,
)
from ottla.model.properties.property import BOOLEAN, STRING, Property, table

SECTIONS: Mapping[str, tuple[Property, ...]] = MappingProxyType(
    {
        "Node and connections": broker_server.PROPERTIES,
        "Logs": broker_log.PROPERTIES,
        "Replication": broker_replication.PROPERTIES,
        "Metadata quorum": broker_quorum.PROPERTIES,
        "Groups and offsets": broker_coordination.PROPERTIES,
        "Transactions": broker_transactions.PROPERTIES,
        "Security": broker_security.PROPERTIES,
        "Tiered storage": broker_tiered.PROPERTIES,
    }
)

BROKER: Mapping[str, Property] = table(*SECTIONS.values())
DYNAMIC_ONLY: Mapping[str, Property] = table(broker_replication.DYNAMIC_ONLY)
"""Throttles that exist only as dynamic broker configs; a file cannot set them."""
OWN: Mapping[str, Property] = table(own.PROPERTIES)
TOPIC: Mapping[str, Property] = table((*topic.PROPERTIES, *topic_schemas.PROPERTIES))
GROUP: Mapping[str, Property] = table(group.PROPERTIES)
CLIENT_METRICS: Mapping[str, Property] = table(group.CLIENT_METRICS)

AUTHORIZER: Mapping[str, Property] = table(
    (
        Property(
            "super.users",
            STRING,
            "",
            "Users who may do everything, as User:name parted by semicolons. Brokers and controllers are to be among "
            "them: what they say to each other needs CLUSTER_ACTION.",
        ),
        Property(
            "allow.everyone.if.no.acl.found",
            BOOLEAN,
            False,
            "Whether a resource that no ACL is about, of anybody, is open to all.",
        ),
    )
)
"""What Kafka's StandardAuthorizer reads from the file though the broker's table does not list it."""
OF_THE_AUTHORIZER = (*AUTHORIZER, "ottla.audit.format")
"""What a service beside a node has of the node's own settings."""

STATIC: Mapping[str, Property] = MappingProxyType({**BROKER, **OWN, **AUTHORIZER})
"""Every name a file may set, apart from prefixed ones."""

PASSED_ON = (
    "registry.",
    "connect.",
    "sql.",
    "ksql.",
    "listener.name.",
    "config.providers.",
    "rsm.config.",
    "rlmm.config.",
    "remote.log.metadata.",
    "metrics.jmx.",
    "kafka.csv.metrics.",
    "confluent.",
    "authorizer.",
    "create.topic.policy.",
    "alter.config.policy.",
    "client.quota.callback.",
    "replica.selector.",
    "principal.builder.",
    "ssl.engine.factory.",
    "sasl.oauthbearer.",
)
"""Prefixes of settings that are handed on unread: by Kafka to plugins and listeners, by a node to its services."""

RETIRED = frozenset(
    (
        "advertised.host.name",
        "advertised.port",
        "auto.include.jmx.reporter",
        "broker.id.generation.enable",
        "control.plane.listener.name",
        "controlled.shutdown.max.retries",
        "controlled.shutdown.retry.backoff.ms",
        "delegation.token.master.key",
        "group.coordinator.new.enable",
        "host.name",
        "inter.broker.protocol.version",
        "leader.imbalance.per.broker.percentage",
        "log.message.downconversion.enable",
        "log.message.format.version",
        "log.message.timestamp.difference.max.ms",
        "offsets.commit.required.acks",
        "password.encoder.cipher.algorithm",
        "password.encoder.iterations",
        "password.encoder.key.length",
        "password.encoder.keyfactory.algorithm",
        "password.encoder.old.secret",
        "password.encoder.secret",
        "port",
        "quota.consumer.default",
        "quota.producer.default",
        "reserved.broker.max.id",
        "zookeeper.metadata.migration.enable",
    )
)
"""Names of earlier Kafka releases that 4.3 ignores; a file that still carries them starts with a warning."""


def is_retired(name: str) -> bool:
    return name in RETIRED or name.startswith("zookeeper.")
