"""Batches, logs and what is in them, for the tests of the storage room."""

from collections.abc import Sequence

from ottla.model.ids import TopicPartition
from ottla.protocol import batch as b
from ottla.protocol.records import NewRecord, build_batch, read_records
from ottla.storage.answers import Appended, FileSlice, Rejected
from ottla.storage.config import LogConfig
from ottla.storage.fs import Filesystem
from ottla.storage.leading import append_as_leader
from ottla.storage.log import Log
from ottla.storage.opening import create_log, open_log
from ottla.storage.reading import batches_of, read
from ottla.storage.segment import OpenFiles
from ottla.testing.disk import SimDisk

PARTITION = TopicPartition("orders", 0)
TOPIC_ID = bytes(range(1, 17))
DIR = "/data"
PATH = "/data/orders-0"
NOW = 1_700_000_000_000


def a_batch(
    *values: bytes,
    key: bytes | None = b"k",
    at: int = NOW,
    codec: int = 0,
    attributes: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """`producer` is producer id, epoch and first sequence."""
    records = [NewRecord(key, value, at + index) for index, value in enumerate(values or (b"v",))]
    return build_batch(
        records,
        codec=codec,
        attributes=attributes,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
    )


def a_marker(producer_id: int, epoch: int, *, commit: bool, coordinator_epoch: int = 0, at: int = NOW) -> bytearray:
    key = b"\0\0" + (1 if commit else 0).to_bytes(2, "big")
    value = b"\0\0" + coordinator_epoch.to_bytes(4, "big")
    return build_batch(
        [NewRecord(key, value, at)],
        attributes=b.TRANSACTIONAL | b.CONTROL,
        producer_id=producer_id,
        producer_epoch=epoch,
    )


def created(fs: Filesystem | None = None, config: LogConfig | None = None) -> Log:
    fs = fs if fs is not None else SimDisk()
    fs.mkdir(DIR)
    return create_log(fs, PATH, PARTITION, TOPIC_ID, config or LogConfig(), now=NOW)


def reopened(
    fs: Filesystem,
    config: LogConfig | None = None,
    *,
    clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
) -> Log:
    return open_log(
        OpenFiles(fs),
        PATH,
        PARTITION,
        TOPIC_ID,
        config or LogConfig(),
        now=NOW,
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
    )


def append(log: Log, *values: bytes, at: int = NOW, producer: tuple[int, int, int] = (-1, -1, -1)) -> Appended:
    return accepted(append_as_leader(log, a_batch(*values, at=at, producer=producer), 0, max(at, NOW)))


def accepted(outcome: Appended | Rejected) -> Appended:
    assert isinstance(outcome, Appended), outcome
    return outcome


def rejected(outcome: Appended | Rejected) -> Rejected:
    assert isinstance(outcome, Rejected), outcome
    return outcome


def fill(log: Log, batches: int, size: int = 100) -> None:
    for number in range(batches):
        append(log, b"%06d" % number + b"." * size)


def values(log: Log, start: int | None = None, upper: int | None = None) -> list[bytes | None]:
    """The value of every record from `start` on, offset by offset."""
    start = log.log_start_offset if start is None else start
    return [
        record.value
        for batch in batches_of(log, start, upper)
        if not b.read_header(batch).is_control
        for record in read_records(batch)
        if record.offset >= start
    ]


def fetched(log: Log, offset: int, max_bytes: int = 1 << 20, upper: int | None = None) -> list[int]:
    """Base offsets of the whole batches a fetch returns."""
    piece = read(log, offset, max_bytes, upper_bound=log.log_end_offset if upper is None else upper)
    return base_offsets(piece.read()) if isinstance(piece, FileSlice) else []


def base_offsets(data: bytes) -> list[int]:
    found, position = [], 0
    while position + b.HEADER_SIZE <= len(data):
        header = b.read_header(data, position)
        if position + header.size > len(data):
            break
        found.append(header.base_offset)
        position += header.size
    return found


def everything(fs: SimDisk) -> dict[str, bytes]:
    return {path: bytes(inode.data) for path, inode in sorted(fs.names.items())}


def flip(fs: SimDisk, path: str, position: int, bit: int = 0) -> None:
    fs.names[path].data[position] ^= 1 << bit


def sizes(batches: Sequence[bytes | bytearray | memoryview]) -> list[int]:
    return [len(batch) for batch in batches]
