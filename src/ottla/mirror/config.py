"""The keys of the three connectors, under MirrorMaker's names. Settings of clients (`source.cluster.*`,
`source.consumer.*` and the like) have no fixed names: `everything` has these."""

from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta, field

from ottla.connect import spi
from ottla.mirror.policy import DEFAULT
from ottla.mirror.selection import GROUPS_EXCLUDED, SETTINGS_EXCLUDED, TOPICS_EXCLUDED

_MM2: Final = "org.apache.kafka.connect.mirror."
_FILTERS: Final = (
    spi.Foreign(
        "topic.filter.class",
        "is Java code: topics and topics.exclude say which",
        (f"{_MM2}DefaultTopicFilter",),
    ),
    spi.Foreign(
        "group.filter.class", "is Java code: groups and groups.exclude say which", (f"{_MM2}DefaultGroupFilter",)
    ),
    spi.Foreign(
        "config.property.filter.class",
        "is Java code: config.properties.exclude says which settings are not copied",
        (f"{_MM2}DefaultConfigPropertyFilter",),
    ),
)


class MirrorConfig(spi.Config, kw_only=True):
    """What all three have."""

    REFUSED: ClassVar[tuple[spi.Foreign, ...]] = _FILTERS

    everything: spi.Everything = field(default_factory=dict)

    source_cluster_alias: Annotated[str, Meta(min_length=1, description="What the source is called.")]
    target_cluster_alias: Annotated[str, Meta(min_length=1, description="What the target is called.")] = "target"
    source_cluster_bootstrap_servers: Annotated[str, Meta(description="Where the source is reached.")] = ""
    target_cluster_bootstrap_servers: Annotated[str, Meta(description="Where the target is reached.")] = ""
    enabled: Annotated[bool, Meta(description="Whether anything is copied at all.")] = True
    replication_policy_class: Annotated[str, Meta(description="How topics are called on the target.")] = DEFAULT
    replication_policy_separator: Annotated[str, Meta(description="Between alias and topic.")] = "."
    replication_policy_internal_topic_separator_enabled: Annotated[
        bool, Meta(description="Whether mirroring's own topics have that separator too.")
    ] = True
    admin_timeout_ms: Annotated[int, Meta(ge=1, description="How long to try what is asked of a cluster.")] = 60_000


class SourceMirrorConfig(MirrorConfig, kw_only=True):
    topics: Annotated[str, Meta(description="Topics to copy: names and patterns, separated by commas.")] = ".*"
    topics_exclude: Annotated[str, Meta(description="Topics that are left out.")] = TOPICS_EXCLUDED
    config_properties_exclude: Annotated[str, Meta(description="Settings of topics that are not copied.")] = (
        SETTINGS_EXCLUDED
    )
    use_defaults_from: Annotated[
        Literal["source", "target"], Meta(description="Whose defaults count where a topic has no value of its own.")
    ] = "target"
    replication_factor: Annotated[int, Meta(ge=-1, description="Of topics made on the target.")] = 2
    refresh_topics_enabled: Annotated[bool, Meta(description="Look for new topics now and then.")] = True
    refresh_topics_interval_seconds: Annotated[int, Meta(ge=1, description="How often.")] = 600
    sync_topic_configs_enabled: Annotated[bool, Meta(description="Keep settings of topics as the source's are.")] = True
    sync_topic_configs_interval_seconds: Annotated[int, Meta(ge=1, description="How often.")] = 600
    sync_topic_acls_enabled: Annotated[bool, Meta(description="Copy who may read a topic.")] = True
    sync_topic_acls_interval_seconds: Annotated[int, Meta(ge=1, description="How often.")] = 600
    emit_offset_syncs_enabled: Annotated[bool, Meta(description="Write pairs of offsets, for groups.")] = field(
        default=True, name="emit.offset-syncs.enabled"
    )
    offset_lag_max: Annotated[int, Meta(ge=0, description="How far a translated offset may lag behind.")] = 100
    offset_syncs_topic_location: Annotated[
        Literal["source", "target"], Meta(description="On which cluster these pairs are written.")
    ] = field(default="source", name="offset-syncs.topic.location")
    offset_syncs_topic_replication_factor: Annotated[int, Meta(ge=-1, description="Of their topic.")] = field(
        default=3, name="offset-syncs.topic.replication.factor"
    )
    heartbeats_replication_enabled: Annotated[bool, Meta(description="Copy heartbeats whatever topics says.")] = True
    consumer_poll_timeout_ms: Annotated[
        int, Meta(ge=1, description="How long a source without news is left alone.")
    ] = 1000


class CheckpointMirrorConfig(MirrorConfig, kw_only=True):
    topics: Annotated[str, Meta(description="Topics whose groups are looked after.")] = ".*"
    topics_exclude: Annotated[str, Meta(description="Topics that are left out.")] = TOPICS_EXCLUDED
    groups: Annotated[str, Meta(description="Groups to look after: names and patterns.")] = ".*"
    groups_exclude: Annotated[str, Meta(description="Groups that are left out.")] = GROUPS_EXCLUDED
    emit_checkpoints_enabled: Annotated[bool, Meta(description="Tell where groups would go on.")] = True
    emit_checkpoints_interval_seconds: Annotated[int, Meta(ge=1, description="How often.")] = 60
    sync_group_offsets_enabled: Annotated[
        bool, Meta(description="Write translated offsets for groups that are idle on the target.")
    ] = False
    sync_group_offsets_interval_seconds: Annotated[int, Meta(ge=1, description="How often.")] = 60
    refresh_groups_enabled: Annotated[bool, Meta(description="Look for new groups now and then.")] = True
    refresh_groups_interval_seconds: Annotated[int, Meta(ge=1, description="How often.")] = 600
    offset_syncs_topic_location: Annotated[
        Literal["source", "target"], Meta(description="Where pairs of offsets are read.")
    ] = field(default="source", name="offset-syncs.topic.location")
    checkpoints_topic_replication_factor: Annotated[int, Meta(ge=-1, description="Of the topic of checkpoints.")] = 3


class HeartbeatMirrorConfig(MirrorConfig, kw_only=True):
    emit_heartbeats_enabled: Annotated[bool, Meta(description="Write heartbeats.")] = True
    emit_heartbeats_interval_seconds: Annotated[int, Meta(ge=1, description="How often.")] = 1
    heartbeats_topic_replication_factor: Annotated[int, Meta(ge=-1, description="Of their topic.")] = 3
