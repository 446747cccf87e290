"""Looking inside a batch where a topic's configuration demands it: keys on compacted topics, a forced codec."""

from typing import NamedTuple

from ottla.protocol import batch as b
from ottla.protocol import compression
from ottla.protocol.compression import DEFAULT_BOUNDS, Bounds
from ottla.protocol.records import CorruptBatch, read_records


class RecordError(NamedTuple):
    batch_index: int
    message: str


class Undecodable(ValueError):
    """The records contradict their header or do not decompress."""


def keyless_records(batch: b.Buffer, bounds: Bounds = DEFAULT_BOUNDS) -> tuple[RecordError, ...]:
    try:
        return tuple(
            RecordError(index, "a compacted topic takes no record without a key")
            for index, record in enumerate(read_records(batch, bounds))
            if record.key is None
        )
    except (CorruptBatch, compression.DecompressionError) as error:
        raise Undecodable(str(error)) from error


def untimely_records(
    batch: b.Buffer, earliest: int, latest: int, bounds: Bounds = DEFAULT_BOUNDS
) -> tuple[RecordError, ...]:
    """The records outside [earliest, latest]; one without a timestamp (-1) is always in time."""
    try:
        return tuple(
            RecordError(index, f"timestamp {record.timestamp} is outside [{earliest}, {latest}]")
            for index, record in enumerate(read_records(batch, bounds))
            if record.timestamp != -1 and not earliest <= record.timestamp <= latest
        )
    except (CorruptBatch, compression.DecompressionError) as error:
        raise Undecodable(str(error)) from error


def recompress(batch: b.Buffer, codec: int, bounds: Bounds = DEFAULT_BOUNDS) -> bytearray:
    """The same records under another codec, sealed anew."""
    header = b.read_header(batch)
    body: b.Buffer = memoryview(batch)[b.HEADER_SIZE : header.size]
    try:
        if header.codec:
            body = compression.decompress(header.codec, body, bounds)
    except compression.DecompressionError as error:
        raise Undecodable(str(error)) from error
    fresh = header._replace(attributes=header.attributes & ~b.CODEC_MASK | codec)
    out = bytearray(b.build_header(fresh))
    out += compression.compress(codec, body) if codec else body
    b.seal(out)
    return out
