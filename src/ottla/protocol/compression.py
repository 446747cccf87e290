"""Kafka's four codecs behind one table, every decompression bounded.

A few kilobytes can unfold into gigabytes, so no size that the data itself claims is believed: output is produced as a
stream with a stop. Whoever reads what a broker has taken bounds its memory and no more: equal bytes compress ten
thousandfold, and what was written must be readable. A broker that looks inside before it takes a batch bounds the ratio
too, for its loop serves others. Libraries are imported on first use: a broker that only passes batches on never loads
them.
"""

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any, Final, NamedTuple

# ruff: noqa: PLC0415

Buffer = bytes | bytearray | memoryview

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

READER_MAX_BYTES: Final = 256 << 20
"""Four times what a broker unpacks by default (ottla.decompressed.batch.max.bytes), which most batches it takes never
have to pass."""
MAX_FRAMES: Final = 64
"""Frames or gzip members on end. Producers write one; each costs a copy of what follows, so many are an attack."""

_LZ4_SLICE: Final = 64 << 10
_LZ4_STEP: Final = 256 << 10
_XERIAL_MAGIC: Final = b"\x82SNAPPY\0"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\0\0\0\1\0\0\0\1"
_XERIAL_BLOCK: Final = 32 << 10
_INT32 = Struct(">i")


class DecompressionError(ValueError):
    """Data that is not of its codec, is cut short, or unfolds into more than is allowed."""


class TooBig(DecompressionError):
    """It unfolds into more than is allowed."""


class Bounds(NamedTuple):
    """How much compressed data may become."""

    max_bytes: int = READER_MAX_BYTES
    max_ratio: int | None = None
    """None: only a broker that has not taken the data yet asks for a ratio."""
    free_bytes: int = 0
    """Up to here the ratio does not matter: batches of equal records compress very well."""

    def allowed(self, size: int) -> int:
        if self.max_ratio is None:
            return self.max_bytes
        return min(self.max_bytes, max(self.free_bytes, self.max_ratio * size))

    def setting(self, size: int) -> str:
        """The broker's setting that stopped data of this size, for those who have to change it; none for readers."""
        if self.max_ratio is None:
            return ""
        if self.allowed(size) < self.max_bytes:
            return f", as ottla.decompression.max.ratio is {self.max_ratio}"
        return ", as ottla.decompressed.batch.max.bytes says"


DEFAULT_BOUNDS: Final = Bounds()


class Codec(NamedTuple):
    name: str
    compress: Callable[[Buffer], bytes]
    decompress: Callable[[Buffer, int], bytes]
    """Takes the data and the number of bytes it may become."""


def compress(codec: int, data: Buffer) -> bytes:
    return CODECS[codec].compress(data)


def decompress(codec: int, data: Buffer, bounds: Bounds = DEFAULT_BOUNDS) -> bytes:
    found = CODECS.get(codec)
    if found is None:
        raise DecompressionError(f"Kafka has no codec {codec}")
    try:
        return found.decompress(data, bounds.allowed(len(data)))
    except TooBig as error:
        raise TooBig(f"{error}{bounds.setting(len(data))}") from None


def _too_big(name: str, allowed: int) -> TooBig:
    return TooBig(f"{name} data unfolds into more than {allowed} bytes")


def _plain(data: Buffer, allowed: int) -> bytes:
    if len(data) > allowed:
        raise _too_big("plain", allowed)
    return bytes(data)


def _frames(name: str, data: Buffer, allowed: int, decoder: Callable[[], Any]) -> bytes:
    """One or more frames on end, each by a decompressor object of the standard library's shape."""
    out: list[bytes] = []
    total = 0
    for _ in range(MAX_FRAMES):
        frame = decoder()
        out.append(frame.decompress(data, allowed - total + 1))
        total += len(out[-1])
        if total > allowed:
            raise _too_big(name, allowed)
        if not frame.eof:
            raise DecompressionError(f"{name} data ends in the middle")
        data = frame.unused_data
        if not data:
            return out[0] if len(out) == 1 else b"".join(out)
    raise DecompressionError(f"{name} data has more than {MAX_FRAMES} frames")


def _gzip_compress(data: Buffer) -> bytes:
    import zlib

    gzip = zlib.compressobj(wbits=31)
    return gzip.compress(data) + gzip.flush()


def _gzip_decompress(data: Buffer, allowed: int) -> bytes:
    import zlib

    try:
        return _frames("gzip", data, allowed, lambda: zlib.decompressobj(wbits=31))
    except zlib.error as error:
        raise DecompressionError(f"not gzip: {error}") from error


def _snappy_compress(data: Buffer) -> bytes:
    """In blocks under xerial's header, as Java's clients write and every client reads."""
    from cramjam import snappy

    view = memoryview(data)
    out = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(snappy.compress_raw(bytes(view[start : start + _XERIAL_BLOCK])))
        out += (_INT32.pack(len(block)), block)
    return b"".join(out)


def _snappy_decompress(data: Buffer, allowed: int) -> bytes:
    """Both shapes that clients send: xerial's blocks, or one bare block (librdkafka)."""
    view = memoryview(data)
    if bytes(view[:8]) != _XERIAL_MAGIC:
        return _snappy_block(view, allowed, allowed)
    out: list[bytes] = []
    pos, left = len(_XERIAL_HEADER), allowed
    if len(view) < pos:
        raise DecompressionError("snappy data ends inside its header")
    while pos < len(view):
        if bytes(view[pos : pos + 8]) == _XERIAL_MAGIC:  # streams on end are one stream, as in xerial's own reader
            pos += len(_XERIAL_HEADER)
            continue
        if len(view) - pos < 4:
            raise DecompressionError("snappy data ends inside a block's length")
        (length,) = _INT32.unpack_from(view, pos)
        pos += 4
        if not 0 < length <= len(view) - pos:
            raise DecompressionError(f"a snappy block claims {length} bytes where {len(view) - pos} are left")
        out.append(_snappy_block(view[pos : pos + length], left, allowed))
        left -= len(out[-1])
        pos += length
    return b"".join(out)


def _snappy_block(block: memoryview, left: int, allowed: int) -> bytes:
    """The block's own claim is what the library would allocate, so it is read and judged first."""
    from cramjam import DecompressionError as Failed
    from cramjam import snappy

    raw = bytes(block)
    try:
        claimed = snappy.decompress_raw_len(raw)
        if claimed > left:
            raise _too_big("snappy", allowed)
        # Snappy copies at most 64 bytes for each 2 or 3 of its own: a claim beyond that is a lie about to be allocated.
        if claimed > 64 * len(raw):
            raise DecompressionError(f"a snappy block of {len(raw)} bytes claims to unfold into {claimed}")
        return bytes(snappy.decompress_raw(raw))
    except Failed as error:
        raise DecompressionError(f"not snappy: {error}") from error


def _lz4_compress(data: Buffer) -> bytes:
    from lz4 import frame

    # Independent 64 KiB blocks without a stated size: what Java's clients write, and all that they can read.
    packed: bytes = frame.compress(data, block_size=frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False)
    return packed


def _lz4_decompress(data: Buffer, allowed: int) -> bytes:
    """In small steps, because the library allocates as much as it is allowed to return."""
    from lz4 import frame

    view = memoryview(data)
    out: list[bytes] = []
    pos, left, frames = 0, allowed, 0
    context = frame.create_decompression_context()
    while pos < len(view) or not frames:
        try:
            piece, read, ended = frame.decompress_chunk(context, view[pos : pos + _LZ4_SLICE], max_length=_LZ4_STEP)
        except RuntimeError as error:
            raise DecompressionError(f"not lz4: {error}") from error
        out.append(piece)
        pos += read
        left -= len(piece)
        frames += ended
        if left < 0:
            raise _too_big("lz4", allowed)
        if frames > MAX_FRAMES:
            raise DecompressionError(f"lz4 data has more than {MAX_FRAMES} frames")
        if not (read or piece or ended):
            raise DecompressionError("lz4 data ends in the middle")
    if not ended:
        raise DecompressionError("lz4 data ends in the middle")
    return b"".join(out)


@cache
def _zstd() -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]  # Python 3.14
    except ImportError:
        from backports import zstd  # type: ignore[no-redef, unused-ignore]
    return zstd


def _zstd_compress(data: Buffer) -> bytes:
    packed: bytes = _zstd().compress(data)
    return packed


def _zstd_decompress(data: Buffer, allowed: int) -> bytes:
    zstd = _zstd()

    try:
        return _frames("zstd", data, allowed, zstd.ZstdDecompressor)
    except zstd.ZstdError as error:
        raise DecompressionError(f"not zstd: {error}") from error


CODECS: Final = {
    NONE: Codec("none", bytes, _plain),
    GZIP: Codec("gzip", _gzip_compress, _gzip_decompress),
    SNAPPY: Codec("snappy", _snappy_compress, _snappy_decompress),
    LZ4: Codec("lz4", _lz4_compress, _lz4_decompress),
    ZSTD: Codec("zstd", _zstd_compress, _zstd_decompress),
}
"""By the number in a batch's attributes."""
