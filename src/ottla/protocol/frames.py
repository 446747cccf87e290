"""Frames and headers: what stands around a message on the wire and in the metadata log.

A frame is an int32 size, a header, a body. Sizes are not checked here: the connection reads the size and knows its
limit; everything else gets the bytes after it.
"""

from struct import Struct, error
from typing import Any, Final, NamedTuple

from ottla.protocol.codec import Buffer, DecodeError, EncodeError, Message, Part, joined, read_varint, skip_tags, varint
from ottla.protocol.messages import FIRST_FLEXIBLE, METADATA_RECORDS

API_VERSIONS: Final = 18
NO_FLEXIBLE: Final = 0x8000

_REQUEST = Struct(">hhih")
_pack_plain: Final = Struct(">ii").pack
_pack_flexible: Final = Struct(">iix").pack
_INT32 = Struct(">i")

_FIRST_FLEXIBLE: Final = {key: NO_FLEXIBLE if version is None else version for key, version in FIRST_FLEXIBLE.items()}
# KIP-511: a client must be able to read this answer before it knows what the broker speaks.
_FIRST_FLEXIBLE_HEADER: Final = {**_FIRST_FLEXIBLE, API_VERSIONS: NO_FLEXIBLE}


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_request_header(buf: Buffer, pos: int = 0) -> tuple[RequestHeader, int]:
    """The header and where the body starts. Keys and versions that Kafka lacks come back as they are: whether to answer
    or to hang up is for the session to say."""
    try:
        key, version, correlation_id, length = _REQUEST.unpack_from(buf, pos)
        pos += 10
        client_id = None
        if length != -1:
            end = pos + length
            if length < 0 or end > len(buf):
                raise DecodeError(f"the client id claims {length} bytes where {len(buf) - pos} are left")
            client_id = str(buf[pos:end], "utf-8")
            pos = end
        if version >= _FIRST_FLEXIBLE.get(key, NO_FLEXIBLE):
            tags = buf[pos]
            pos += 1
            if tags:
                pos = skip_tags(buf, pos, tags, len(buf))
    except (error, IndexError, UnicodeDecodeError) as cause:
        raise DecodeError(f"the request header is malformed: {cause}") from cause
    return RequestHeader(key, version, correlation_id, client_id), pos


def encode_request_header(header: RequestHeader) -> bytes:
    key, version, correlation_id, client_id = header
    name = b"" if client_id is None else client_id.encode()
    try:
        start = _REQUEST.pack(key, version, correlation_id, -1 if client_id is None else len(name))
    except error as cause:
        raise EncodeError(f"{header} does not fit a request header: {cause}") from cause
    return start + name + (b"\0" if version >= _FIRST_FLEXIBLE.get(key, NO_FLEXIBLE) else b"")


def encode_response_header(key: int, version: int, correlation_id: int) -> bytes:
    start = _INT32.pack(correlation_id)
    return start + b"\0" if version >= _FIRST_FLEXIBLE_HEADER.get(key, NO_FLEXIBLE) else start


def decode_response_header(buf: Buffer, key: int, version: int, pos: int = 0) -> tuple[int, int]:
    """The correlation id of a response to that request, and where the body starts."""
    try:
        (correlation_id,) = _INT32.unpack_from(buf, pos)
        pos += 4
        if version >= _FIRST_FLEXIBLE_HEADER.get(key, NO_FLEXIBLE):
            tags = buf[pos]
            pos = skip_tags(buf, pos + 1, tags, len(buf)) if tags else pos + 1
    except (error, IndexError) as cause:
        raise DecodeError(f"the response header is malformed: {cause}") from cause
    return correlation_id, pos


def encode_request(header: RequestHeader, request: Message) -> bytes:
    """A whole frame, size included."""
    start = encode_request_header(header)
    body = request.encode(header.api_version)
    return _INT32.pack(len(start) + len(body)) + start + body


def encode_response(key: int, version: int, correlation_id: int, response: Message) -> bytes:
    """A whole frame, size included, in one piece. Flat, as nearly every answer comes through here."""
    encoder = response.ENCODERS.get(version)
    if encoder is None:
        raise EncodeError(f"{type(response).__name__} has no version {version}")
    parts: list[Any] = []
    encoder(response, parts)
    try:
        body = b"".join(parts)
    except TypeError as cause:
        raise EncodeError("records that are not bytes need encode_response_chunks") from cause
    if version >= _FIRST_FLEXIBLE_HEADER.get(key, NO_FLEXIBLE):
        return _pack_flexible(len(body) + 5, correlation_id) + body
    return _pack_plain(len(body) + 4, correlation_id) + body


def encode_response_chunks(key: int, version: int, correlation_id: int, response: Message) -> list[Part]:
    """A whole frame in which records objects that are not plain bytes stand as chunks of their own, uncopied."""
    encoder = response.ENCODERS.get(version)
    if encoder is None:
        raise EncodeError(f"{type(response).__name__} has no version {version}")
    parts: list[Any] = [b""]  # for sure plain bytes, whatever follows: the place of the header
    encoder(response, parts)
    chunks = joined(parts)
    start = encode_response_header(key, version, correlation_id)
    chunks[0] = _INT32.pack(sum(map(len, chunks)) + len(start)) + start + chunks[0]
    return chunks


METADATA_FRAME_VERSION: Final = 1


def encode_metadata_record(record: Message, version: int) -> bytes:
    """The value of a record in the metadata log: frame version, type, version, message."""
    return varint(METADATA_FRAME_VERSION) + varint(record.API_KEY) + varint(version) + record.encode(version)


def decode_metadata_record(value: Buffer) -> tuple[Message, int]:
    """The record and the version it was written in."""
    try:
        frame_version, pos = read_varint(value, 0)
        kind, pos = read_varint(value, pos)
        version, pos = read_varint(value, pos)
    except IndexError as cause:
        raise DecodeError("a metadata record ends inside its frame") from cause
    if frame_version != METADATA_FRAME_VERSION:
        raise DecodeError(f"a metadata record has frame version {frame_version}, not {METADATA_FRAME_VERSION}")
    if kind not in METADATA_RECORDS:
        raise DecodeError(f"a metadata record has type {kind}, which Kafka does not have")
    return METADATA_RECORDS[kind].decode(value, version, pos), version
