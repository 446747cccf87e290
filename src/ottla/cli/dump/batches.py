"""`.log` segments and `.checkpoint` metadata snapshots: both are batches in a row."""

import os
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, NamedTuple

from ottla.cli.dump.lines import RECORD_MARK, Dump
from ottla.cli.dump.payloads import Decoder, control_fields
from ottla.cli.output import Json
from ottla.protocol import batch as b
from ottla.protocol.compression import DecompressionError
from ottla.protocol.records import CorruptBatch, Record, read_records

CODECS: Final = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
_MAX_BATCH_BYTES: Final = 1 << 30


class Placed(NamedTuple):
    """A batch and where it stands. `data` is None when only headers are read."""

    position: int
    header: b.BatchHeader
    data: bytes | None


class Torn(Exception):
    """From here on the bytes are no batches."""

    def __init__(self, position: int, reason: str) -> None:
        self.position = position
        self.reason = reason
        super().__init__(reason)


def read_batches(
    file: BinaryIO, *, headers_only: bool = False, start: int = 0, end: int | None = None
) -> Iterator[Placed]:
    """Whole batches up to `end`. Raises Torn where something else stands."""
    size = os.fstat(file.fileno()).st_size if end is None else end
    position = start
    while position < size:
        file.seek(position)
        head = file.read(min(b.HEADER_SIZE, size - position))
        if len(head) < b.HEADER_SIZE:
            raise Torn(position, f"{len(head)} bytes are left, less than a batch header")
        header = b.read_header(head)
        if not b.HEADER_SIZE <= header.size <= _MAX_BATCH_BYTES:
            raise Torn(position, f"a batch claims {header.size} bytes")
        if position + header.size > size:
            raise Torn(position, f"a batch of {header.size} bytes stands where {size - position} are left")
        data = None if headers_only else head + file.read(header.size - b.HEADER_SIZE)
        yield Placed(position, header, data)
        position += header.size


class Depth(NamedTuple):
    """How far to look."""

    records: bool
    data: bool
    skip_record_metadata: bool = False
    max_bytes: int | None = None


def dump_batches(path: str, depth: Depth, decoder: Decoder, dump: Dump) -> None:
    _heading(path, dump)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        end = size if depth.max_bytes is None else min(size, depth.max_bytes)
        previous = -1
        try:
            for placed in read_batches(file, end=end):
                _check(placed, previous, dump)
                previous = placed.header.last_offset
                dump.line("batch", batch_fields(placed))
                if depth.records or depth.data:
                    _dump_records(placed, depth, decoder, dump)
        except Torn as torn:
            if depth.max_bytes is None:
                left = size - torn.position
                name = os.path.basename(path)
                dump.heading(f"Found {left} invalid bytes at the end of {name}", {"invalid_bytes": left})
                dump.problem(f"position {torn.position}: {torn.reason}")


def _heading(path: str, dump: Dump) -> None:
    name = os.path.basename(path)
    stem = name.split(".", maxsplit=1)[0]
    if name.endswith(".log") and stem.isdigit():
        dump.heading(f"Log starting offset: {int(stem)}", {"log_starting_offset": int(stem)})
    elif name == "bootstrap.checkpoint":
        dump.heading("KRaft bootstrap snapshot", {"bootstrap": True})
    elif stem.replace("-", "", 1).isdigit():
        offset, _, epoch = stem.partition("-")
        fields = {"snapshot_end_offset": int(offset), "epoch": int(epoch)}
        dump.heading(f"Snapshot end offset: {int(offset)}, epoch: {int(epoch)}", fields)


def _check(placed: Placed, previous: int, dump: Dump) -> None:
    header = placed.header
    where = f"position {placed.position}, offset {header.base_offset}"
    if header.magic != b.MAGIC_V2:
        dump.problem(f"{where}: magic {header.magic}, not 2; the records of such a batch are not read")
        return
    if not _valid(placed):
        dump.problem(f"{where}: the checksum does not match, the batch is damaged")
    if header.base_offset <= previous:
        dump.problem(f"{where}: comes after offset {previous}")
    if header.last_offset_delta < 0 or header.record_count < 0:
        dump.problem(f"{where}: {header.record_count} records up to {header.last_offset_delta} after the base offset")


def _valid(placed: Placed) -> bool:
    return placed.data is not None and b.computed_crc(placed.data) == placed.header.crc


def batch_fields(placed: Placed) -> dict[str, Json]:
    header = placed.header
    return {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.leader_epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "deleteHorizonMs": f"OptionalLong[{header.base_timestamp}]" if header.attributes & b.DELETE_HORIZON else None,
        "position": placed.position,
        timestamp_type(header): header.max_timestamp,
        "size": header.size,
        "magic": header.magic,
        "compresscodec": CODECS.get(header.codec, f"unknown({header.codec})"),
        "crc": header.crc,
        "isvalid": _valid(placed),
    }


def timestamp_type(header: b.BatchHeader) -> str:
    return "LogAppendTime" if header.attributes & b.LOG_APPEND_TIME else "CreateTime"


def _dump_records(placed: Placed, depth: Depth, decoder: Decoder, dump: Dump) -> None:
    header = placed.header
    if placed.data is None or header.magic != b.MAGIC_V2:
        return
    count = 0
    try:
        for record in read_records(placed.data):
            count += 1
            fields = {} if depth.skip_record_metadata else record_fields(record, header)
            if header.is_control:
                fields.update(_decoded(lambda r=record: control_fields(r), record, dump))  # type: ignore[misc]
            elif depth.data:
                fields.update(_decoded(lambda r=record: decoder(r), record, dump))  # type: ignore[misc]
            dump.line("record", fields, RECORD_MARK)
    except (CorruptBatch, DecompressionError, ValueError) as error:
        dump.problem(f"position {placed.position}, offset {header.base_offset}, record {count}: {error}")


def _decoded(decode: Callable[[], dict[str, Json]], record: Record, dump: Dump) -> dict[str, Json]:
    try:
        return decode()
    except ValueError as error:
        dump.problem(f"offset {record.offset}: the record cannot be decoded: {error}")
        return {}


def record_fields(record: Record, header: b.BatchHeader) -> dict[str, Json]:
    sequence = -1
    if header.base_sequence >= 0:
        sequence = (header.base_sequence + record.offset - header.base_offset) & 0x7FFFFFFF
    return {
        "offset": record.offset,
        timestamp_type(header): record.timestamp,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
        "sequence": sequence,
        "headerKeys": [name for name, _ in record.headers],
    }
