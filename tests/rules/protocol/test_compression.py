"""Four codecs: what they give back, whom they understand, and where they stop."""

import gzip
import io
import tracemalloc
import warnings
from random import Random
from struct import pack
from typing import Any

import cramjam
import lz4.frame
import pytest
from aiokafka import codec as aiokafka_codec
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.protocol import compression
from ottla.protocol.compression import (
    CODECS,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    Bounds,
    DecompressionError,
    compress,
    decompress,
)
from tests.support.examples import examples

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import codec as kafka_codec

TEXT = b"".join(b"line %d of a text that can be squeezed\n" % i for i in range(5_000))
SQUEEZING = [GZIP, SNAPPY, LZ4, ZSTD]
MIB = 1 << 20


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=30, deadline=None)
@given(data=st.binary(max_size=2_000), times=st.integers(1, 60))
def test_what_was_compressed_comes_back_from_any_buffer(codec: int, data: bytes, times: int) -> None:
    whole = data * times
    packed = compress(codec, bytearray(whole))
    assert decompress(codec, packed) == whole
    assert decompress(codec, memoryview(packed)) == whole


@pytest.mark.parametrize("codec", SQUEEZING)
@pytest.mark.parametrize("data", [b"x", TEXT], ids=["short", "long"])
def test_the_codecs_of_clients_understand_ours_and_we_theirs(codec: int, data: bytes) -> None:
    encode, decode = {
        GZIP: (kafka_codec.gzip_encode, kafka_codec.gzip_decode),
        SNAPPY: (aiokafka_codec.snappy_encode, aiokafka_codec.snappy_decode),
        LZ4: (kafka_codec.lz4_encode, kafka_codec.lz4_decode),
        ZSTD: (aiokafka_codec.zstd_encode, aiokafka_codec.zstd_decode),
    }[codec]
    assert bytes(decode(compress(codec, data))) == data
    assert decompress(codec, encode(data)) == data


def test_snappy_is_read_bare_and_in_xerial_blocks_and_written_in_blocks() -> None:
    bare = bytes(cramjam.snappy.compress_raw(TEXT))
    assert decompress(SNAPPY, bare) == TEXT
    ours = compress(SNAPPY, TEXT)
    assert ours.startswith(b"\x82SNAPPY\0\0\0\0\1\0\0\0\1")
    assert decompress(SNAPPY, ours + ours) == TEXT + TEXT


def test_lz4_frames_are_what_java_can_read() -> None:
    info = lz4.frame.get_frame_info(compress(LZ4, TEXT))
    assert (info["block_size"], info["block_linked"], info["content_size"]) == (65536, False, 0)


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_frames_on_end_are_read_as_one(codec: int) -> None:
    one = compress(codec, b"one ")
    assert decompress(codec, one + compress(codec, b"two")) == b"one two"
    assert decompress(codec, one * 64) == b"one " * 64
    with pytest.raises(DecompressionError, match="more than 64 frames"):
        decompress(codec, one * 65)


@pytest.mark.parametrize("codec", SQUEEZING)
def test_data_cut_short_is_refused(codec: int) -> None:
    packed = compress(codec, TEXT[:3_000])
    for cut in range(len(packed)):
        if codec == SNAPPY and cut == 16:
            continue  # a header with no blocks is an empty stream
        with pytest.raises(DecompressionError):
            decompress(codec, packed[:cut])


@pytest.mark.parametrize("codec", SQUEEZING)
@settings(max_examples=examples(60), deadline=None)
@given(data=st.binary(max_size=100))
def test_garbage_is_refused_or_means_something(codec: int, data: bytes) -> None:
    for wire in (data, compress(codec, b"abc" * 100)[:20] + data):
        try:
            decompress(codec, wire)
        except DecompressionError:
            continue


@pytest.mark.parametrize("codec", [-1, 5, 6, 7])
def test_an_unknown_codec_is_refused(codec: int) -> None:
    with pytest.raises(DecompressionError, match="no codec"):
        decompress(codec, b"data")


def zeros(size: int, opener: Any) -> bytes:
    """A bomb, made without holding what it will become."""
    out = io.BytesIO()
    with opener(out) as sink:
        for _ in range(size // MIB):
            sink.write(bytes(MIB))
    return out.getvalue()


def bomb(codec: int) -> bytes:
    match codec:
        case compression.GZIP:
            return zeros(80 * MIB, lambda out: gzip.GzipFile(fileobj=out, mode="wb", mtime=0))
        case compression.LZ4:
            return zeros(80 * MIB, lambda out: lz4.frame.open(out, "wb"))
        case compression.ZSTD:
            return zstd.compress(bytes(80 * MIB))  # states its size, which some readers trust
        case _:
            block = bytes(cramjam.snappy.compress_raw(bytes(MIB)))
            return b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + (pack(">i", len(block)) + block) * 80


@pytest.mark.parametrize("codec", SQUEEZING)
@pytest.mark.parametrize("limit", [MIB, 8 * MIB])
def test_a_bomb_stops_at_the_limit(codec: int, limit: int) -> None:
    wire = bomb(codec)
    decompress(codec, compress(codec, b"warm"))
    tracemalloc.start()
    try:
        with pytest.raises(DecompressionError, match="more than"):
            decompress(codec, wire, Bounds(max_bytes=limit))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * limit + MIB


@pytest.mark.parametrize("codec", SQUEEZING)
def test_a_reader_takes_whatever_fits_into_its_memory(codec: int) -> None:
    """Equal bytes compress ten thousandfold, and nobody has refused them when they were written."""
    data = bytes(8 * MIB)
    assert decompress(codec, compress(codec, data)) == data


def test_a_broker_takes_a_ratio_at_most_beyond_what_is_exempt_and_names_the_setting() -> None:
    bounds = Bounds(max_bytes=4 * MIB, max_ratio=1000, free_bytes=MIB)
    assert decompress(ZSTD, zstd.compress(bytes(MIB)), bounds) == bytes(MIB)

    text = "zstd data unfolds into more than 1048576 bytes, as ottla.decompression.max.ratio is 1000"
    with pytest.raises(DecompressionError, match=text):
        decompress(ZSTD, zstd.compress(bytes(2 * MIB)), bounds)

    noise_first = zstd.compress(Random(0).randbytes(8192) + bytes(8 * MIB))
    text = "zstd data unfolds into more than 4194304 bytes, as ottla.decompressed.batch.max.bytes says"
    with pytest.raises(DecompressionError, match=text):
        decompress(ZSTD, noise_first, bounds)


def test_plain_data_has_the_limit_too() -> None:
    assert decompress(NONE, b"abc", Bounds(max_bytes=3)) == b"abc"
    with pytest.raises(DecompressionError):
        decompress(NONE, b"abcd", Bounds(max_bytes=3))


@pytest.mark.parametrize("claimed", [b"\xff\xff\xff\xff\x0f", b"\x80\x80\x40", b"\xff\x7f"])
def test_a_snappy_block_cannot_claim_more_than_snappy_can_do(claimed: bytes) -> None:
    tracemalloc.start()
    try:
        for wire in (
            claimed + b"aaaa",
            b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + pack(">i", len(claimed) + 4) + claimed + b"aaaa",
        ):
            with pytest.raises(DecompressionError):
                decompress(SNAPPY, wire)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize("length", [0, -1, 5, 0x7FFFFFFF])
def test_a_xerial_block_cannot_claim_more_than_is_left(length: int) -> None:
    with pytest.raises(DecompressionError, match="claims"):
        decompress(SNAPPY, b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + pack(">i", length) + b"abcd")
