"""The settings in force: the node's file with the dynamic configs of the metadata image laid over it (KIP-226)."""

from collections.abc import Callable, Mapping
from typing import cast

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    MetadataImage,
)
from ottla.model.ids import BrokerId
from ottla.model.properties import (
    ConfigEntry,
    Settings,
    effective_broker_config,
    effective_client_metrics_config,
    effective_cluster_default_config,
    effective_group_config,
    effective_topic_config,
    topic_values,
)
from ottla.model.properties.property import LONG_MAX, Value
from ottla.protocol.compression import Bounds
from ottla.storage.config import LogConfig, SchemaRules

_NONE: Mapping[str, str] = {}


class Configs:
    __slots__ = ("_broker_id", "_default_log_config", "_image", "_static", "judge", "settings")

    def __init__(
        self,
        static: Settings,
        broker_id: BrokerId,
        image: MetadataImage,
        judge: Callable[[Settings], None] = lambda settings: None,
    ) -> None:
        """`judge` raises ValueError for settings that this node cannot go over to while it runs."""
        self._static = static
        self._broker_id = broker_id
        self._image = image
        self.judge = judge
        self.settings = static
        self._default_log_config: LogConfig | None = None
        self._layer()

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> bool:
        """True if the settings of this broker changed, and with them what every topic inherits."""
        self._image = image
        mine = ((BROKER_RESOURCE, ""), (BROKER_RESOURCE, str(self._broker_id)))
        if not any(key in delta.changed_configs for key in mine):
            return False
        self._layer()
        return True

    def _layer(self) -> None:
        self.settings = self._static.with_dynamic(
            self._image.cluster_configs, self._image.broker_configs(self._broker_id)
        )
        self._default_log_config = None

    def log_config(self, topic: str) -> LogConfig:
        overrides = self._image.topic_configs(topic)
        if overrides:
            return _log_config(overrides, self.settings)
        if self._default_log_config is None:
            self._default_log_config = _log_config(_NONE, self.settings)
        return self._default_log_config

    def throttled_rate(self, name: str) -> int:
        """One of the limits that no file has a line for: of this broker, of all of them, or none."""
        image = self._image
        text = image.broker_configs(self._broker_id).get(name) or image.cluster_configs.get(name)
        return LONG_MAX if text is None else int(text)

    def topic_list(self, topic: str, name: str) -> tuple[str, ...]:
        """A setting of type list that no broker setting stands behind."""
        text = self._image.topic_configs(topic).get(name)
        return tuple(entry.strip() for entry in text.split(",")) if text else ()

    # ---- as DescribeConfigs tells them

    def topic(self, name: str) -> list[ConfigEntry]:
        return effective_topic_config(self._image.topic_configs(name), self.settings)

    def broker(self, name: str) -> list[ConfigEntry]:
        if not name:
            return effective_cluster_default_config(self._image.cluster_configs)
        return effective_broker_config(self.settings)

    def group(self, name: str) -> list[ConfigEntry]:
        return effective_group_config(self._image.configs.get((GROUP_RESOURCE, name), _NONE), self.settings)

    def client_metrics(self, name: str) -> list[ConfigEntry]:
        return effective_client_metrics_config(self._image.configs.get((CLIENT_METRICS_RESOURCE, name), _NONE))


def _log_config(overrides: Mapping[str, str], settings: Settings) -> LogConfig:
    values = topic_values(overrides, settings)

    def number(name: str) -> int:
        return cast(int, values[name])

    policy = cast("tuple[str, ...]", values["cleanup.policy"])
    # The active segment is never cleaned: it has to end before its records may wait no longer.
    max_lag = number("max.compaction.lag.ms")
    return LogConfig(
        segment_bytes=number("segment.bytes"),
        segment_ms=min(number("segment.ms"), max_lag) if "compact" in policy else number("segment.ms"),
        segment_jitter_ms=number("segment.jitter.ms"),
        index_interval_bytes=number("index.interval.bytes"),
        segment_index_bytes=number("segment.index.bytes"),
        retention_ms=number("retention.ms"),
        retention_bytes=number("retention.bytes"),
        max_message_bytes=number("max.message.bytes"),
        message_timestamp_type=cast(str, values["message.timestamp.type"]),
        message_timestamp_before_max_ms=number("message.timestamp.before.max.ms"),
        message_timestamp_after_max_ms=number("message.timestamp.after.max.ms"),
        cleanup_policy=policy,
        min_compaction_lag_ms=number("min.compaction.lag.ms"),
        max_compaction_lag_ms=max_lag,
        min_cleanable_dirty_ratio=cast(float, values["min.cleanable.dirty.ratio"]),
        delete_retention_ms=number("delete.retention.ms"),
        compression_type=cast(str, values["compression.type"]),
        file_delete_delay_ms=number("file.delete.delay.ms"),
        flush_messages=number("flush.messages"),
        flush_ms=number("flush.ms"),
        preallocate=cast(bool, values["preallocate"]),
        producer_id_expiration_ms=settings.get_int("producer.id.expiration.ms"),
        min_insync_replicas=number("min.insync.replicas"),
        validation=_schema_rules(values),
        unpacking=Bounds(
            max_bytes=settings.get_int("ottla.decompressed.batch.max.bytes"),
            max_ratio=settings.get_int("ottla.decompression.max.ratio"),
            free_bytes=settings.get_int("ottla.decompression.ratio.exempt.bytes"),
        ),
    )


def _schema_rules(values: Mapping[str, Value]) -> SchemaRules | None:
    def strategy(part: str) -> str | None:
        if not values[f"confluent.{part}.schema.validation"]:
            return None
        return cast(str, values[f"confluent.{part}.subject.name.strategy"]).rpartition(".")[2]

    key, value = strategy("key"), strategy("value")
    if key is None and value is None:
        return None
    return SchemaRules(
        key,
        value,
        decode=values["ottla.schema.validation.depth"] == "payload",
        dead_letters=cast(str, values["ottla.schema.validation.dead.letter.topic"]),
    )
