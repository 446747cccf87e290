"""Snapshots of the metadata log: their names, their bytes, and which of them may go.

A snapshot is a run of batches from offset 0: a control batch with the header (and the quorum's version and voters when
they live in the log), the records, a control batch with the footer. A file without its footer is no snapshot.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, cast

from ottla.metadata.batches import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    CorruptMetadata,
    encode_batches,
    encode_control_batch,
    read_batches,
)
from ottla.protocol import messages
from ottla.protocol.codec import Message, MetadataRecord
from ottla.raft.voters import VoterSet, voters_of, voters_record

SUFFIX: Final = ".checkpoint"
PARTIAL_SUFFIX: Final = ".checkpoint.part"
DELETED_SUFFIX: Final = ".checkpoint.deleted"
BOOTSTRAP_FILE: Final = "bootstrap.checkpoint"
_OFFSET_DIGITS: Final = 20
_EPOCH_DIGITS: Final = 10


class SnapshotId(NamedTuple):
    """`offset` is the first one the snapshot does not contain."""

    offset: int
    epoch: int

    @property
    def stem(self) -> str:
        return f"{self.offset:0{_OFFSET_DIGITS}d}-{self.epoch:0{_EPOCH_DIGITS}d}"


class SnapshotFile(NamedTuple):
    id: SnapshotId
    suffix: str


def parse_name(name: str) -> SnapshotFile | None:
    """None for a file that is no snapshot; leftovers of an interrupted write or deletion are told by their suffix."""
    for suffix in (PARTIAL_SUFFIX, DELETED_SUFFIX, SUFFIX):
        if name.endswith(suffix):
            digits, dash, rest = name[:_OFFSET_DIGITS], name[_OFFSET_DIGITS : _OFFSET_DIGITS + 1], name[21:31]
            if digits.isdecimal() and dash == "-" and len(rest) == _EPOCH_DIGITS and rest.isdecimal():
                return SnapshotFile(SnapshotId(int(digits), int(rest)), suffix)
    return None


def encode_snapshot(
    records: Iterable[Message],
    *,
    epoch: int,
    now: int,
    last_contained_timestamp: int,
    metadata_version: int,
    kraft_version: int = 0,
    voters: VoterSet | None = None,
) -> Iterator[bytearray]:
    """The batches of a snapshot file, in order."""
    header: list[tuple[int, Message]] = [
        (
            SNAPSHOT_HEADER,
            messages.SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_contained_timestamp),
        )
    ]
    if kraft_version > 0:
        header.append((KRAFT_VERSION, messages.KRaftVersionRecord(version=0, kraft_version=kraft_version)))
        if voters is not None:
            header.append((KRAFT_VOTERS, voters_record(voters)))
    yield encode_control_batch(header, base_offset=0, epoch=epoch, timestamp=now)
    content = list(records)
    offset = len(header)
    yield from encode_batches(
        content, base_offset=offset, epoch=epoch, timestamp=now, metadata_version=metadata_version
    )
    footer = [(SNAPSHOT_FOOTER, messages.SnapshotFooterRecord(version=0))]
    yield encode_control_batch(footer, base_offset=offset + len(content), epoch=epoch, timestamp=now)


class Snapshot(NamedTuple):
    records: list[MetadataRecord]
    last_contained_timestamp: int
    kraft_version: int
    voters: VoterSet | None


def decode_snapshot(data: bytes) -> Snapshot:
    """Raises CorruptMetadata if anything is missing, the footer included."""
    records: list[MetadataRecord] = []
    control: dict[str, Message] = {}
    for batch in read_batches(data):
        if batch.is_control:
            control |= {type(message).__name__: message for message in batch.records}
        else:
            records += cast("list[MetadataRecord]", batch.records)  # what is not control was read as such
    header = control.get("SnapshotHeaderRecord")
    if header is None or "SnapshotFooterRecord" not in control:
        raise CorruptMetadata("a snapshot without header or footer was never finished")
    assert isinstance(header, messages.SnapshotHeaderRecord)
    version = control.get("KRaftVersionRecord")
    voters = control.get("VotersRecord")
    return Snapshot(
        records,
        header.last_contained_log_timestamp,
        version.kraft_version if isinstance(version, messages.KRaftVersionRecord) else 0,
        voters_of(voters) if isinstance(voters, messages.VotersRecord) else None,
    )


def log_start_after_cleaning(
    snapshots: Sequence[SnapshotId],
    *,
    size_of: Callable[[SnapshotId], int],
    timestamp_of: Callable[[SnapshotId], int],
    log_size_from: Callable[[int], int],
    retention_bytes: int,
    retention_ms: int,
    now: int,
) -> SnapshotId | None:
    """The snapshot to start the log at: older snapshots and the segments below it may go. None if all stay.

    Kafka's rule: while log and snapshots together are too large, or the oldest snapshot too old, the next snapshot
    becomes the start; the latest one always stays.
    """
    ordered = sorted(snapshots)
    kept = 0
    if retention_bytes >= 0:
        total = sum(size_of(s) for s in ordered)
        while kept < len(ordered) - 1 and log_size_from(ordered[kept].offset) + total > retention_bytes:
            total -= size_of(ordered[kept])
            kept += 1
    if retention_ms >= 0:
        while kept < len(ordered) - 1 and now - timestamp_of(ordered[kept]) > retention_ms:
            kept += 1
    return ordered[kept] if kept else None
