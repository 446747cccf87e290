"""What a log needs to know of its topic's configuration: one frozen value, replaced as a whole at run time."""

from typing import Final, NamedTuple

from ottla.protocol.compression import DEFAULT_BOUNDS, Bounds

CODECS: Final = {"uncompressed": 0, "none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
NEVER: Final = (1 << 63) - 1


class SchemaRules(NamedTuple):
    """What a topic asks of the schemas of its records. The log itself has no use for it."""

    key: str | None
    """How the subject of keys is named; None: keys may be anything."""
    value: str | None
    decode: bool
    dead_letters: str
    """The topic for records that do not pass; empty: they are refused."""


class LogConfig(NamedTuple):
    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    index_interval_bytes: int = 4096
    segment_index_bytes: int = 10 << 20
    retention_ms: int = 7 * 24 * 3600 * 1000
    """Negative: for ever."""
    retention_bytes: int = -1
    max_message_bytes: int = (1 << 20) + 12
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = NEVER
    message_timestamp_after_max_ms: int = 3600 * 1000
    cleanup_policy: tuple[str, ...] = ("delete",)
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NEVER
    min_cleanable_dirty_ratio: float = 0.5
    delete_retention_ms: int = 24 * 3600 * 1000
    compression_type: str = "producer"
    file_delete_delay_ms: int = 60_000
    flush_messages: int = NEVER
    flush_ms: int = NEVER
    preallocate: bool = False
    """Accepted for Kafka's sake. Segments always grow on demand: sparse or zeroed tails would slow recovery down."""
    producer_id_expiration_ms: int = 24 * 3600 * 1000
    min_insync_replicas: int = 1
    """The log itself has no use for it: it travels along for the partition's leader."""
    unpacking: Bounds = DEFAULT_BOUNDS
    """What a compressed batch may become where the log has to look inside."""
    validation: SchemaRules | None = None
    """Travels along for the broker, which looks at the records before they come here."""

    @property
    def is_plain(self) -> bool:
        """Nothing but the header of a batch matters: the common case."""
        plain = self.compression_type == "producer" and self.message_timestamp_type == "CreateTime"
        plain = plain and not self.compact and self.message_timestamp_before_max_ms == NEVER
        return plain and self.validation is None

    @property
    def compact(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def forced_codec(self) -> int | None:
        """The codec every batch has to be stored with; None keeps the producer's."""
        return None if self.compression_type == "producer" else CODECS[self.compression_type]

    @property
    def log_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"
