"""The property table: every setting of Kafka 4.3 and of ottla declared once, and what follows from it.

- the tables: BROKER, TOPIC, GROUP, CLIENT_METRICS (Kafka's), DYNAMIC_ONLY (throttles), OWN (`ottla.*`);
- `Settings`: a node's checked configuration, from a Kafka server.properties or from nothing;
- `effective_*`: values with source and synonyms as DescribeConfigs reports them; `topic_values`, `group_values` typed;
- `check_*`: whether a requested change is allowed.
"""

from ottla.model.properties.broker import (
    AUTHORIZER,
    BROKER,
    CLIENT_METRICS,
    DYNAMIC_ONLY,
    GROUP,
    OWN,
    SECTIONS,
    STATIC,
    TOPIC,
)
from ottla.model.properties.changes import (
    UnknownName,
    check_broker_config,
    check_client_metrics_config,
    check_group_config,
    check_running_broker,
    check_topic_config,
)
from ottla.model.properties.dynamic import dynamic_property
from ottla.model.properties.effective import (
    ConfigEntry,
    Source,
    Synonym,
    effective_broker_config,
    effective_client_metrics_config,
    effective_cluster_default_config,
    effective_group_config,
    effective_topic_config,
    group_values,
    topic_values,
)
from ottla.model.properties.file import parse_properties
from ottla.model.properties.grammar import HostPort, Listener, Voter
from ottla.model.properties.property import (
    REQUIRED,
    Differs,
    Importance,
    OutOfBounds,
    Property,
    Required,
    Type,
    Update,
    Value,
)
from ottla.model.properties.settings import Settings, SettingsError

__all__ = [
    "AUTHORIZER",
    "BROKER",
    "CLIENT_METRICS",
    "DYNAMIC_ONLY",
    "GROUP",
    "OWN",
    "REQUIRED",
    "SECTIONS",
    "STATIC",
    "TOPIC",
    "ConfigEntry",
    "Differs",
    "HostPort",
    "Importance",
    "Listener",
    "OutOfBounds",
    "Property",
    "Required",
    "Settings",
    "SettingsError",
    "Source",
    "Synonym",
    "Type",
    "UnknownName",
    "Update",
    "Value",
    "Voter",
    "check_broker_config",
    "check_client_metrics_config",
    "check_group_config",
    "check_running_broker",
    "check_topic_config",
    "dynamic_property",
    "effective_broker_config",
    "effective_client_metrics_config",
    "effective_cluster_default_config",
    "effective_group_config",
    "effective_topic_config",
    "group_values",
    "parse_properties",
    "topic_values",
]
