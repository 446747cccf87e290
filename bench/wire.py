"""The few frames that the bench sends by itself, written by hand so that neither server's own code is the client.

Owns the bytes of ApiVersions v0, Metadata v4, Produce v12 and OffsetCommit v9 (the newest that name their topics), and
one blocking connection. Not a client: no retries, no versions.
"""

import socket
import struct
import time
from collections.abc import Sequence
from typing import NamedTuple

import crc32c

PRODUCE, METADATA, OFFSET_COMMIT, JOIN_GROUP, API_VERSIONS = 0, 3, 8, 11, 18
PRODUCE_VERSION, METADATA_VERSION, OFFSET_COMMIT_VERSION = 12, 4, 9
ACKS_ALL = -1
CLIENT_ID = b"bench"
PARTITION = struct.Struct(">hiii")  # error, index, leader, how many replicas


class Partition(NamedTuple):
    topic: str
    number: int
    error: int
    leader: int
    in_sync: tuple[int, ...] = ()


class Produced(NamedTuple):
    error: int
    base_offset: int


class Connection:
    """One blocking connection; one request, one reply."""

    def __init__(self, port: int, timeout_seconds: float = 30.0) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, frame: bytes) -> bytes:
        """The reply without its length and correlation id."""
        self.socket.sendall(frame)
        return self.receive()

    def receive(self) -> bytes:
        """The next reply, as `ask` returns it."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)[4:]

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self.socket.recv(min(size - len(parts), 1 << 20))
            if not part:
                raise ConnectionError("the server closed the connection")
            parts += part
        return bytes(parts)


class Reader:
    """Walks a reply."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.pos = 0

    def take(self, layout: str) -> int:
        (value,) = struct.unpack_from(">" + layout, self.data, self.pos)
        self.pos += struct.calcsize(">" + layout)
        return int(value)

    def text(self) -> str | None:
        size = self.take("h")
        if size < 0:
            return None
        self.pos += size
        return self.data[self.pos - size : self.pos].decode()

    def numbers(self) -> tuple[int, ...]:
        count = self.take("i")
        self.pos += 4 * count
        return struct.unpack_from(f">{count}i", self.data, self.pos - 4 * count)

    def skip(self, size: int) -> None:
        self.pos += size


def request(api_key: int, version: int, body: bytes, *, flexible: bool = False) -> bytes:
    header = struct.pack(">hhih", api_key, version, 1, len(CLIENT_ID)) + CLIENT_ID + (b"\0" if flexible else b"")
    return struct.pack(">i", len(header) + len(body)) + header + body


def metadata_request(topics: list[str] | None, *, create: bool = False) -> bytes:
    """None asks for every topic."""
    if topics is None:
        names = struct.pack(">i", -1)
    else:
        names = struct.pack(">i", len(topics)) + b"".join(_text(topic) for topic in topics)
    return request(METADATA, METADATA_VERSION, names + struct.pack(">?", create))


def metadata_partitions(reply: bytes) -> list[Partition]:
    reader = Reader(reply)
    _brokers(reader)
    reader.text(), reader.take("i")  # cluster id, controller
    return [partition for _ in range(reader.take("i")) for partition in _topic_partitions(reader)]


def metadata_brokers(reply: bytes) -> list[int]:
    """The ids of the brokers that are up."""
    return _brokers(Reader(reply))


def _brokers(reader: Reader) -> list[int]:
    reader.take("i")  # throttle
    found = []
    for _ in range(reader.take("i")):
        found.append(reader.take("i"))
        reader.text(), reader.take("i"), reader.text()
    return found


def _topic_partitions(reader: Reader) -> list[Partition]:
    topic_error = reader.take("h")
    topic = reader.text() or ""
    reader.take("?")
    partitions = []
    for _ in range(reader.take("i")):
        error, index, leader, replicas = PARTITION.unpack_from(reader.data, reader.pos)
        reader.skip(PARTITION.size + 4 * replicas)
        in_sync = reader.numbers()
        partitions.append(Partition(topic, index, error or topic_error, leader, in_sync))
    return partitions


def served_apis(connection: Connection) -> set[int]:
    reader = Reader(connection.ask(request(API_VERSIONS, 0, b"")))
    if error := reader.take("h"):
        raise ConnectionError(f"ApiVersions answered with error {error}")
    served = set()
    for _ in range(reader.take("i")):
        served.add(reader.take("h"))
        reader.skip(4)
    return served


def produce_request(topic: str, partition: int, batch: bytes) -> bytes:
    """acks=all, one partition, one batch."""
    body = (
        b"\0"  # no transactional id
        + struct.pack(">hi", ACKS_ALL, 30_000)
        + b"\2"  # one topic
        + _compact(topic.encode())
        + b"\2"  # one partition
        + struct.pack(">i", partition)
        + _compact(batch)
        + b"\0\0\0"
    )
    return request(PRODUCE, PRODUCE_VERSION, body, flexible=True)


def produced(reply: bytes) -> Produced:
    reader = Reader(reply)
    reader.take("B"), reader.take("B")  # header tags, one topic
    reader.skip(reader.take("B") - 1)  # its name, below 127 bytes: the size is one byte, and one too high
    reader.take("B"), reader.take("i")  # one partition, its index
    return Produced(reader.take("h"), reader.take("q"))


def offset_commit_request(group: str, topic: str, offsets: Sequence[int]) -> bytes:
    """For the partitions 0, 1, …, by nobody in particular: a group that only keeps offsets."""
    partitions = b"".join(struct.pack(">iqi", index, offset, -1) + b"\1\0" for index, offset in enumerate(offsets))
    body = (
        _compact(group.encode())
        + struct.pack(">i", -1)  # no generation
        + b"\1\0"  # no member, no instance
        + b"\2"  # one topic
        + _compact(topic.encode())
        + _unsigned(len(offsets) + 1)
        + partitions
        + b"\0\0"
    )
    return request(OFFSET_COMMIT, OFFSET_COMMIT_VERSION, body, flexible=True)


def committed_errors(reply: bytes) -> list[int]:
    """The error of each partition; below 127 of them."""
    reader = Reader(reply)
    reader.take("B"), reader.take("i"), reader.take("B")  # header tags, throttle, one topic
    reader.skip(reader.take("B") - 1)
    errors = []
    for _ in range(reader.take("B") - 1):
        reader.take("i")
        errors.append(reader.take("h"))
        reader.take("B")
    return errors


def one_record_batch(value: bytes) -> bytes:
    """Record batch v2 of a producer without an id, uncompressed."""
    inner = b"\0" + _signed(0) + _signed(0) + _signed(-1) + _signed(len(value)) + value + _signed(0)
    record = _signed(len(inner)) + inner
    now_ms = int(time.time() * 1000)
    checked = struct.pack(">hiqqqhii", 0, 0, now_ms, now_ms, -1, -1, -1, 1) + record
    return struct.pack(">qiibI", 0, len(checked) + 9, -1, 2, crc32c.crc32c(checked)) + checked


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def _compact(value: bytes) -> bytes:
    return _unsigned(len(value) + 1) + value


def _signed(value: int) -> bytes:
    return _unsigned((value << 1) ^ (value >> 63))


def _unsigned(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
