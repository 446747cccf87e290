"""What the conformance tests ask of a Kafka client: a dozen verbs that every client has under another name."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple, Protocol

from tests.support.patience import PATIENCE_SECONDS

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

DEADLINE_S = PATIENCE_SECONDS
"""How long any single step may take before the test gives up."""


class Given(NamedTuple):
    """A record as handed to a producer."""

    value: bytes | None
    key: bytes | None = None
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Seen(NamedTuple):
    """A record as a consumer saw it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Refused(Exception):
    """The server's answer was an error: its number in Kafka's table."""

    def __init__(self, code: int, detail: str = "") -> None:
        super().__init__(f"error {code}: {detail}")
        self.code = code


class Client(Protocol):
    """One real client. Consumers are assigned a partition; none of them joins a group."""

    name: ClassVar[str]
    codecs: ClassVar[tuple[str, ...]]
    lacks: ClassVar[frozenset[str]]
    """Verbs, or features of records, that this client has no way to express."""

    def create_topic(
        self, topic: str, partitions: int = 1, replication_factor: int = 1, configs: Mapping[str, str] = ...
    ) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def list_topics(self) -> set[str]: ...

    def create_partitions(self, topic: str, total: int) -> None: ...

    def partition_count(self, topic: str) -> int: ...

    def describe_topic_configs(self, topic: str) -> dict[str, str]: ...

    def alter_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None: ...

    def produce(
        self,
        topic: str,
        records: Sequence[Given],
        *,
        partition: int = 0,
        codec: str = "none",
        idempotent: bool = False,
        max_request_bytes: int = 1_000_000,
    ) -> list[int]:
        """The offset of each record, once all are acknowledged by acks=all."""

    def consume(self, topic: str, count: int, *, partition: int = 0, offset: int = 0) -> list[Seen]:
        """Exactly the next `count` records; an offset outside of the log is refused, never reset."""

    def earliest_offset(self, topic: str, partition: int = 0) -> int: ...

    def latest_offset(self, topic: str, partition: int = 0) -> int: ...

    def offset_for_time(self, topic: str, timestamp: int, partition: int = 0) -> int | None: ...

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        """The new low watermark."""

    def close(self) -> None: ...
