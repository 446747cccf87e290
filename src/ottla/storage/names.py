"""File and directory names, exactly as Kafka's LogFileUtils and LocalLog spell them."""

import re
from typing import Final

from ottla.model.ids import TopicPartition

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
SEGMENT_SUFFIXES: Final = (LOG, INDEX, TIME_INDEX, TXN_INDEX)

PARTITION_METADATA: Final = "partition.metadata"
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
META_PROPERTIES: Final = "meta.properties"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
LOCK: Final = ".lock"
RESERVE: Final = ".ottla_reserve"
METADATA_TOPIC: Final = "__cluster_metadata"

DELETE_DIR: Final = "-delete"
FUTURE_DIR: Final = "-future"
STRAY_DIR: Final = "-stray"

_MAX_NAME: Final = 255
_MARKED_DIR = re.compile(r"(\S+)-(\d+)\.\S+-(delete|future|stray)")
_OFFSET = re.compile(r"(\d{20})(\..+)")


def segment_prefix(directory: str, base_offset: int) -> str:
    """Add a suffix to get a file of the segment."""
    return f"{directory}/{base_offset:020d}"


def parse_file(name: str) -> tuple[int, str] | None:
    """Offset and suffix of a segment's or snapshot's file; None for any other name."""
    if len(name) < 24 or name[20] != ".":
        return None
    match = _OFFSET.fullmatch(name)
    return (int(match[1]), match[2]) if match else None


def log_dir_name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def marked_dir_name(partition: TopicPartition, unique: str, suffix: str) -> str:
    """`unique` is 32 hex digits. The topic is cut where the name would get too long for the file system."""
    full_suffix = f"-{partition.partition}.{unique}{suffix}"
    return partition.topic[: _MAX_NAME - len(full_suffix)] + full_suffix


def may_be_marked(partition: TopicPartition) -> bool:
    """Whether its name leaves room for a mark without being cut."""
    return marked_dir_name(partition, "0" * 32, FUTURE_DIR).startswith(log_dir_name(partition) + ".")


def parse_log_dir(name: str) -> tuple[TopicPartition, str] | None:
    """Topic partition and mark ("", "-delete", "-future", "-stray"); None for a directory that is not a log's."""
    if name.endswith((DELETE_DIR, FUTURE_DIR, STRAY_DIR)):
        match = _MARKED_DIR.fullmatch(name)
        if match:
            return TopicPartition(match[1], int(match[2])), "-" + match[3]
    topic, dash, partition = name.rpartition("-")
    if not dash or not topic or not (partition.isascii() and partition.isdigit()):
        return None
    return TopicPartition(topic, int(partition)), ""
