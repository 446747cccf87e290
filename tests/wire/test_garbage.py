"""Garbage on the socket: a typed error or a closed connection, never a traceback, never memory, never other clients.

The node is a process of its own here, so that its memory and all that it prints can be seen.
"""

import gzip
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from struct import pack, unpack_from

import cramjam
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.protocol import messages as m
from ottla.protocol.apis import API
from ottla.protocol.batch import seal
from ottla.protocol.frames import RequestHeader, encode_request
from tests.support import anything
from tests.support.examples import examples
from tests.support.nodes import Ottla, resident_bytes
from tests.support.patience import PATIENCE_SECONDS
from tests.support.requests import (
    NAMED_PRODUCE,
    batch,
    create_topic,
    create_topic_request,
    fetch,
    list_offset,
    produce_request,
    produced,
)
from tests.support.wire import Closed, Wire

PATIENCE_S = PATIENCE_SECONDS
"""How long the server may take to be done with a connection whose other end is closed."""
GROWTH_LIMIT = 200 << 20
MUTATIONS_PER_VERSION = 5

KEYED = "compacted"
"""A topic in whose batches the node has to look for keys. Mutated requests do not name it, or they might change it."""

SPINE = (0, 1, 2, 3, 10, 18, 19, 20, 21, 22, 23, 32, 33, 35, 37, 44, 55, 57, 60, 61, 74, 75)


class Target:
    """A node, and a well-behaved client that is connected to it all the while."""

    def __init__(self, node: Ottla) -> None:
        self.node = node
        self.bystander = Wire(node.bootstrap)
        create_topic(self.bystander, "bystander")
        create_topic(self.bystander, anything.TOPIC)
        create_topic(self.bystander, KEYED, configs={"cleanup.policy": "compact"})
        self._written = 0
        self._read = 0
        assert node.process is not None
        self._pid = node.process.pid
        self._before = resident_bytes(self._pid)

    def throw(self, data: bytes) -> bytes:
        """Sends the bytes, says goodbye, and returns all that came back before the server hung up."""
        with socket.create_connection(("127.0.0.1", self.node.port), timeout=PATIENCE_S) as thrower:
            came = bytearray()
            try:
                thrower.sendall(data)
                thrower.shutdown(socket.SHUT_WR)
                while piece := thrower.recv(65536):
                    came += piece
            except TimeoutError:
                raise
            except OSError:
                pass  # hung up in the middle of it: as good
            return bytes(came)

    def is_well(self) -> None:
        """The node lives, says nothing bad, has not grown, and serves its other client."""
        began = time.monotonic()
        assert produced(self.bystander, "bystander", batch(1)) == self._written
        assert fetch(self.bystander, "bystander", self._written).error_code == 0
        self._written += 1
        assert time.monotonic() - began < PATIENCE_S, "another client was kept waiting"
        printed = self.node.printed()[self._read :]
        self._read += len(printed)
        assert "Traceback" not in printed, printed[:5000]
        grown = resident_bytes(self._pid) - self._before
        assert grown < GROWTH_LIMIT, f"the node has grown by {grown >> 20} MiB"


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    directory: Path = tmp_path_factory.mktemp("garbage")
    # Thousands of connections a second from one address are this test's own way to live.
    with Ottla(directory, extra={"ottla.connection.creation.rate.per.ip": "100000"}) as node:
        target = Target(node)
        yield target
        target.bystander.__exit__(None, None, None)
        assert node.process is not None and node.process.poll() is None, node.printed()


def frames_in(data: bytes) -> list[bytes]:
    """The whole responses in what came back; nothing may be left over. Who spoke HTTP is told so in HTTP."""
    if data.startswith(b"HTTP/1.1 400 "):
        return []
    frames, pos = [], 0
    while pos < len(data):
        (size,) = unpack_from(">i", data, pos)
        assert 4 <= size <= len(data) - pos - 4, "half a response came back"
        frames.append(data[pos + 4 : pos + 4 + size])
        pos += 4 + size
    return frames


@pytest.mark.parametrize("key", sorted(API))
def test_mutated_requests_of_every_version(target: Target, key: int) -> None:
    dice = Random(key)
    for version in range(API[key].min_version, API[key].max_version + 1):
        whole = anything.frame(key, version, dice)
        for _ in range(MUTATIONS_PER_VERSION if key in SPINE else 1):
            assert len(frames_in(target.throw(anything.mutated(whole, dice)))) <= 1
    target.is_well()


@pytest.mark.parametrize("key", SPINE)
def test_requests_cut_short_at_any_byte(target: Target, key: int) -> None:
    dice = Random(key)
    for version in {API[key].min_version, API[key].max_version}:
        whole = anything.frame(key, version, dice)
        for cut in sorted(dice.sample(range(len(whole)), min(12, len(whole)))):
            assert target.throw(whole[:cut]) == b""  # the frame never ended
            told = pack(">i", max(0, cut - 4)) + whole[4 : max(4, cut)]
            assert len(frames_in(target.throw(told))) <= 1  # the frame is whole, its content is not
    target.is_well()


STRANGERS = (
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),  # the start of TLS
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"\x00" * 100,
    b"\xff" * 100,
)
payloads = st.binary(max_size=200)
headers = st.builds(
    lambda *fields: pack(">hhih", *fields),
    st.sampled_from(sorted(API)),
    st.integers(-1, 20),
    st.integers(-(2**31), 2**31 - 1),
    st.just(-1),
)
framed = st.one_of(payloads, st.builds(lambda header, body: header + body, headers, payloads)).map(
    lambda payload: pack(">i", len(payload)) + payload
)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(data=st.one_of(payloads, framed, st.sampled_from(STRANGERS)))
def test_bytes_of_any_kind(target: Target, data: bytes) -> None:
    frames_in(target.throw(data))
    target.is_well()


def lies() -> list[bytes]:
    """Frames whose inner lengths promise more than there is."""
    plain = [
        pack(">hhih", 3, 1, 1, -1),  # topics of Metadata
        pack(">hhihhhi", 0, 3, 1, -1, -1, -1, 1),  # topics of Produce
        pack(">hhihi", 2, 1, 1, -1, -1),  # topics of ListOffsets
    ]
    compact = [
        pack(">hhih", 3, 12, 1, -1) + b"\x00",  # topics of Metadata
        pack(">hhih", 18, 3, 1, -1) + b"\x00",  # the client's name
        pack(">hhih", 18, 3, 1, -1),  # tags of the header
        pack(">hhih", 0, 9, 1, -1) + b"\x00\x00\xff\xff\x00\x00\x00\x01",  # topics of Produce
        pack(">hhih", 1, 12, 1, -1) + b"\x00" + pack(">iiiibii", -1, 1, 1, 1, 0, 0, -1),  # topics of Fetch
        pack(">hhih", 19, 7, 1, -1) + b"\x00",  # topics of CreateTopics
    ]
    found = [start + b"\x7f\xff\xff\xff" for start in plain]
    found += [start + length for start in compact for length in (b"\xff\xff\xff\xff\x07", b"\xff\x7f", b"\x7f")]
    found += [pack(">hhih", 3, 1, 1, 500) + b"abc", pack(">hhih", 3, 1, 1, 32767)]  # the client id
    return found


def test_lengths_that_lie(target: Target) -> None:
    for payload in lies():
        assert target.throw(pack(">i", len(payload)) + payload) == b""
    target.is_well()


def test_a_request_for_a_billion_of_something_is_refused(target: Target) -> None:
    with Wire(target.node.bootstrap) as wire:
        for count in (100_000, 2**31 - 1):
            new = m.CreateTopicsRequest.CreatableTopic(name=f"huge-{count}", num_partitions=count, replication_factor=1)
            (answer,) = wire.ask(m.CreateTopicsRequest(topics=[new], timeout_ms=5000)).topics
            assert answer.error_code != 0
        more = m.CreatePartitionsRequest.CreatePartitionsTopic(name="bystander", count=2**31 - 1, assignments=None)
        (grown,) = wire.ask(m.CreatePartitionsRequest(topics=[more], timeout_ms=5000)).results
        assert grown.error_code != 0
    target.is_well()


BOMB_BYTES = 1 << 30


def bombs() -> dict[int, bytes]:
    """A gigabyte of zeros by each codec, or as much as it packs into a megabyte."""
    zeros = bytes(16 << 20)
    lz4_block = bytes(cramjam.lz4.compress_block(bytes(4 << 20), store_size=False))
    lz4_frame = bytearray(b"\x04\x22\x4d\x18\x60\x70\x73")  # independent blocks of up to 4 MiB
    for _ in range(60):
        lz4_frame += pack("<I", len(lz4_block)) + lz4_block
    return {
        1: gzip.compress(zeros * 16, 9),
        2: bytes(cramjam.snappy.compress_raw(zeros)),
        3: bytes(lz4_frame + bytes(4)),
        4: bytes(cramjam.zstd.compress(zeros, 1)) * (BOMB_BYTES // len(zeros)),
    }


def as_batch(codec: int, payload: bytes, count: int = 1) -> bytes:
    """A batch with a proper header and CRC around any payload."""
    whole = bytearray(batch(count)[:61]) + payload
    whole[22] = codec
    seal(whole)
    return bytes(whole)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_decompression_bombs(target: Target, codec: int) -> None:
    """On a compacted topic the node has to look for keys; on a plain one it looks inside only to find a time."""
    bomb = as_batch(codec, bombs()[codec])
    assert len(bomb) < 1_048_588, "it would be refused for its size"
    with Wire(target.node.bootstrap) as wire:
        topic = f"bombed-{codec}"
        create_topic(wire, topic)
        began = time.monotonic()
        wire.send(produce_request(KEYED, bomb), NAMED_PRODUCE)
        assert wire.receive(0, NAMED_PRODUCE).responses[0].partition_responses[0].error_code != 0
        wire.send(produce_request(topic, bomb), NAMED_PRODUCE)
        wire.receive(0, NAMED_PRODUCE)
        with suppress(Closed):  # an answer or the end, both will do
            list_offset(wire, topic, 1)
        assert time.monotonic() - began < PATIENCE_S
    target.is_well()


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_compressed_noise(target: Target, codec: int) -> None:
    dice = Random(codec)
    with Wire(target.node.bootstrap) as wire:
        for _ in range(20):
            data = as_batch(codec, dice.randbytes(dice.randrange(0, 300)))
            wire.send(produce_request(KEYED, data), NAMED_PRODUCE)
            assert wire.receive(0, NAMED_PRODUCE).responses[0].partition_responses[0].error_code != 0
    target.is_well()


def test_frames_that_never_end_cost_nothing(target: Target) -> None:
    """A hundred clients announce the largest frame there is, send a little and fall silent."""
    silent = []
    try:
        for _ in range(100):
            one = socket.create_connection(("127.0.0.1", target.node.port), timeout=PATIENCE_S)
            silent.append(one)
            one.sendall(pack(">ihhih", 10_000_000, 0, 9, 1, -1) + bytes(1000))
        target.is_well()
    finally:
        for one in silent:
            one.close()
    target.is_well()


def test_clients_that_never_read_are_not_waited_for(target: Target) -> None:
    """Each asks for far more than its socket holds, and never reads."""
    with Wire(target.node.bootstrap) as wire:
        create_topic(wire, "unread")
        for _ in range(10):
            produced(wire, "unread", batch(20_000))
    deaf = []
    try:
        for _ in range(10):
            one = Wire(target.node.bootstrap)
            deaf.append(one)
            for _ in range(20):
                one.send(m.MetadataRequest(topics=None), 12)
                one.send(unread_fetch(), 12)
        target.is_well()
    finally:
        for one in deaf:
            one.__exit__(None, None, None)
    target.is_well()


def test_a_thousand_requests_at_once_do_not_hold_up_the_others(target: Target) -> None:
    """Forty kilobytes in one piece, each twenty bytes of it asking for a hundred thousand, and nobody reads."""
    topics = [create_topic_request(f"wide-{number}", 20) for number in range(200)]
    with Wire(target.node.bootstrap) as wire:
        wire.ask(m.CreateTopicsRequest(topics=topics, timeout_ms=60_000))
        wire.send(m.MetadataRequest(topics=None), 12)
        assert len(wire.receive_frame()) > 100_000
    request = encode_request(RequestHeader(3, 12, 1, "wide"), m.MetadataRequest(topics=None))
    with socket.create_connection(("127.0.0.1", target.node.port), timeout=PATIENCE_S) as eager:
        eager.sendall(request * 2000)
        target.is_well()
    target.is_well()


def unread_fetch() -> m.FetchRequest:
    partition = m.FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10_000_000)
    return m.FetchRequest(
        max_wait_ms=0, min_bytes=0, topics=[m.FetchRequest.FetchTopic(topic="unread", partitions=[partition])]
    )


def test_connections_that_come_and_go(target: Target) -> None:
    for _ in range(300):
        socket.create_connection(("127.0.0.1", target.node.port), timeout=PATIENCE_S).close()
    target.is_well()
