"""A framed connection under TLS, over a real socket pair: as a plain one, and nothing of it is plain."""

import asyncio
import os
import random
import socket
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.metrics.counts import Traffic
from ottla.net.connection import Connection, PlainConnection, ReadBudget, Scratch
from ottla.net.handshakes import Handshake, HandshakeFailed
from ottla.net.secured import Secured
from ottla.net.tls_connection import GATHERED_BYTES, TlsBuffers, TlsConnection
from tests.support.certificates import client_context, server_context
from tests.support.examples import examples
from tests.support.tls_peer import TlsPeer

PATIENCE_S = 30
PLAIN_TEXT = b"what nobody on the way may read "


class Recorder:
    def __init__(self, pause_after: int = 0) -> None:
        self.frames: list[bytes] = []
        self.refused: list[int] = []
        self.lost = self.drained = 0
        self.connection: Connection | None = None
        self.pause_after = pause_after
        self.changed = asyncio.Event()

    def frame_received(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        if self.pause_after and len(self.frames) % self.pause_after == 0:
            assert self.connection is not None
            self.connection.pause_reading()
        self.changed.set()

    def frame_refused(self, size: int, limit: int) -> None:
        self.refused.append(size)
        self.changed.set()

    def output_drained(self) -> None:
        self.drained += 1
        self.changed.set()

    def connection_lost(self) -> None:
        self.lost += 1
        self.changed.set()

    async def heard(self) -> None:
        self.changed.clear()
        await self.changed.wait()


class Slice:
    def __init__(self, file: int, position: int, length: int) -> None:
        self.file, self.position, self.length = file, position, length

    def __len__(self) -> int:
        return self.length

    def fileno(self) -> int:
        return self.file


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """As `socket.socketpair`, but of sockets for which a low-water mark means something."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)
    theirs.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return ours, theirs


class Woken(TlsConnection):
    """Counts how often there was something to read."""

    __slots__ = ("times", "woken")

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.times = 0
        self.woken = asyncio.Event()

    def _readable(self) -> None:
        self.times += 1
        super()._readable()
        self.woken.set()


async def shaken(ours: socket.socket, theirs: socket.socket, first: bytes = b"") -> tuple[Secured, TlsPeer]:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Secured] = loop.create_future()

    def failed(failure: HandshakeFailed) -> None:
        done.set_exception(failure)

    Handshake(loop, ours, server_context()).begin(done.set_result, failed, PATIENCE_S)
    peer = TlsPeer(theirs, client_context())
    await peer.handshake(first)
    return await done, peer


@asynccontextmanager
async def connected(
    recorder: Recorder,
    *,
    scratch: int = 256 * 1024,
    max_frame: int = 1 << 24,
    gathered: int = GATHERED_BYTES,
    first: bytes = b"",
    received_bytes: int = 0,
) -> AsyncIterator[tuple[Woken, TlsPeer]]:
    ours, theirs = tcp_pair()
    if received_bytes:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, received_bytes)
    ours.setblocking(False)
    theirs.setblocking(False)
    async with asyncio.timeout(PATIENCE_S):
        secured, peer = await shaken(ours, theirs, first)
        connection = Woken(
            secured,
            asyncio.get_running_loop(),
            Scratch(scratch),
            ReadBudget(0),
            max_frame,
            Traffic(),
            TlsBuffers(gathered),
        )
        recorder.connection = connection
        connection.start(recorder)
        try:
            yield connection, peer
        finally:
            connection.close()
            theirs.close()


def framed(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.one_of(st.integers(0, 300), st.integers(0, 60_000)), min_size=1, max_size=10),
    cuts=st.lists(st.integers(1, 20_000), min_size=1, max_size=8),
    pause_after=st.integers(0, 3),
    scratch=st.sampled_from((64, 4096, 256 * 1024)),
)
def test_frames_arrive_whole_and_in_order_however_the_stream_is_cut_and_paused(
    sizes: list[int], cuts: list[int], pause_after: int, scratch: int
) -> None:
    frames = [random.Random(size).randbytes(size) for size in sizes]

    async def scenario() -> list[bytes]:
        recorder = Recorder(pause_after)
        async with connected(recorder, scratch=scratch) as (connection, peer):
            sending = asyncio.create_task(peer.send_piecewise(framed(*frames), cuts))
            while len(recorder.frames) < len(frames):
                await asyncio.sleep(0)
                connection.resume_reading()
            await sending
        return recorder.frames

    assert asyncio.run(scenario()) == frames


def test_what_openssl_holds_back_is_delivered_when_reading_goes_on() -> None:
    """The descriptor is silent then: nobody but OpenSSL knows of the bytes."""

    async def scenario() -> list[bytes]:
        recorder = Recorder(pause_after=1)
        async with connected(recorder, scratch=32) as (connection, peer):
            await peer.send(framed(b"a" * 20, b"b" * 20, b"c" * 200))  # one record
            while len(recorder.frames) < 3:
                await recorder.heard()
                connection.resume_reading()
        return recorder.frames

    assert asyncio.run(scenario()) == [b"a" * 20, b"b" * 20, b"c" * 200]


def test_records_of_a_few_bytes_are_read_many_at_a_time() -> None:
    """librdkafka writes one for each field of a message."""

    async def scenario() -> tuple[list[bytes], int]:
        recorder = Recorder()
        async with connected(recorder) as (_, peer):
            stream = framed(*(b"%d" % number * 50 for number in range(200)))
            pieces = [stream[at : at + 9] for at in range(0, len(stream), 9)]
            await peer.send_records(pieces)
            calls = 0
            while len(recorder.frames) < 200:
                await recorder.heard()
                calls += 1
        return recorder.frames, calls

    frames, calls = asyncio.run(scenario())
    assert frames == [b"%d" % number * 50 for number in range(200)]
    assert calls < 20


def test_what_came_with_the_end_of_the_handshake_is_delivered() -> None:
    """The handshake has read it then, a part of a record among it."""

    async def scenario() -> list[bytes]:
        recorder = Recorder()
        async with connected(recorder, first=framed(b"a" * 10, b"b" * 40_000)):
            while len(recorder.frames) < 2:
                await recorder.heard()
        return recorder.frames

    assert asyncio.run(scenario()) == [b"a" * 10, b"b" * 40_000]


@pytest.mark.skipif(sys.platform != "linux", reason="no other system tells a socket how much is worth waking for")
def test_nobody_is_woken_for_each_piece_of_a_frame() -> None:
    """Java encrypts a request piece by piece, and sends each by itself."""

    async def scenario() -> tuple[list[bytes], int]:
        recorder = Recorder()
        async with connected(recorder) as (connection, peer):
            stream = framed(b"a" * 60_000)
            await peer.send(stream[:100])
            await connection.woken.wait()
            for at in range(100, len(stream), 1000):
                await peer.send(stream[at : at + 1000])
                await asyncio.sleep(0)
            await peer.send(framed(b"b"))
            while len(recorder.frames) < 2:
                await recorder.heard()
        return recorder.frames, connection.times

    frames, times = asyncio.run(scenario())
    assert frames == [b"a" * 60_000, b"b"]
    assert times < 6


@settings(max_examples=examples(25), deadline=None)
@given(
    turns=st.lists(
        st.tuples(
            st.one_of(st.integers(0, 20_000), st.integers(60_000, 70_000), st.integers(0, 300_000)),
            st.one_of(st.integers(1, 16_384), st.sampled_from((1_000, 16_383, 16_384))),
            st.integers(1, 70_000),
        ),
        min_size=1,
        max_size=4,
    ),
    received_bytes=st.sampled_from((0, 16_384, 65_536, 102_400)),
    scratch=st.sampled_from((4_096, 64 * 1024, 256 * 1024)),
)
def test_nobody_sleeps_on_a_frame_that_is_there(
    turns: list[tuple[int, int, int]], received_bytes: int, scratch: int
) -> None:
    """The peer says nothing more before it has an answer: bytes that would be waited for beyond would never come. Its
    records are as large as it likes and come cut as the way likes; the kernel's buffer may be smaller than a frame."""

    async def scenario() -> int:
        recorder = Recorder()
        async with connected(recorder, scratch=scratch, received_bytes=received_bytes) as (connection, peer):
            for number, (size, record, cut) in enumerate(turns, 1):
                await peer.send_cut(framed(bytes(size)), record, cut)
                while len(recorder.frames) < number:
                    await recorder.heard()
                connection.send_bytes(b"go on")
                assert await peer.read_exactly(5) == b"go on"
        return len(recorder.frames)

    assert asyncio.run(scenario()) == len(turns)


@settings(max_examples=examples(25), deadline=None)
@given(
    size=st.integers(5_000, 200_000),
    share=st.floats(0.01, 0.99),
    record=st.integers(200, 16_384),
    says_goodbye=st.booleans(),
)
def test_the_end_in_the_middle_of_a_frame_is_noticed_however_much_is_waited_for(
    size: int, share: float, record: int, says_goodbye: bool
) -> None:
    async def scenario() -> int:
        recorder = Recorder()
        async with connected(recorder) as (connection, peer):
            await peer.send_cut(framed(bytes(size))[: int(size * share)], record, record)
            await connection.woken.wait()
            await peer.end(says_goodbye=says_goodbye)
            while not recorder.lost:
                await recorder.heard()
        return recorder.lost

    assert asyncio.run(scenario()) == 1


def test_bytes_and_files_arrive_in_order_and_nothing_of_them_can_be_read_on_the_way(tmp_path: Path) -> None:
    content = PLAIN_TEXT * 40_000  # 1.3 MB: more than a socket takes at once
    (tmp_path / "segment").write_bytes(content)

    async def scenario() -> tuple[bytes, bytes, int]:
        recorder = Recorder()
        file = os.open(tmp_path / "segment", os.O_RDONLY)
        try:
            async with connected(recorder) as (connection, peer):
                connection.send([b"head", Slice(file, 0, len(content)), memoryview(b"middle"), Slice(file, 32, 320)])
                connection.send_bytes(b"tail")
                expected = b"head" + content + b"middle" + content[32:352] + b"tail"
                arrived = await peer.read_exactly(len(expected))
                assert arrived == expected
                while connection.out_bytes:
                    await recorder.heard()
                return arrived[:4], bytes(peer.seen), recorder.drained
        finally:
            os.close(file)

    head, seen, drained = asyncio.run(scenario())
    assert head == b"head"
    assert PLAIN_TEXT.strip() not in seen
    assert len(seen) > len(content)
    assert drained >= 1


@settings(max_examples=10, deadline=None)
@given(
    chunks=st.lists(st.integers(0, 400_000), min_size=1, max_size=4), gathered=st.sampled_from((1000, 16_384, 70_000))
)
def test_a_slow_reader_gets_every_byte(chunks: list[int], gathered: int) -> None:
    """What the socket does not take goes out later, as it is."""
    data = [random.Random(number).randbytes(size) for number, size in enumerate(chunks)]

    async def scenario() -> bytes:
        recorder = Recorder()
        async with connected(recorder, gathered=gathered) as (connection, peer):
            for chunk in data:
                connection.send([chunk])
            arrived = bytearray()
            while len(arrived) < sum(chunks):
                arrived += await peer.read(20_000)
                await asyncio.sleep(0)
            assert not connection.out_bytes
            return bytes(arrived)

    assert asyncio.run(scenario()) == b"".join(data)


def test_a_file_that_is_shorter_than_promised_ends_the_connection(tmp_path: Path) -> None:
    (tmp_path / "segment").write_bytes(b"short")

    async def scenario() -> int:
        recorder = Recorder()
        file = os.open(tmp_path / "segment", os.O_RDONLY)
        try:
            async with connected(recorder) as (connection, _):
                connection.send([Slice(file, 0, 500)])
                return recorder.lost
        finally:
            os.close(file)

    assert asyncio.run(scenario()) == 1


def test_goodbye_is_said_before_the_socket_closes() -> None:
    """Else the end could be an attack that cuts the stream, and clients say so."""

    async def scenario() -> bytes:
        recorder = Recorder()
        async with connected(recorder) as (connection, peer):
            connection.close()
            assert recorder.lost == 1
            return await peer.read()

    assert asyncio.run(scenario()) == b""


def test_a_frame_over_the_limit_is_refused_before_it_is_read() -> None:
    async def scenario() -> tuple[list[int], int]:
        recorder = Recorder()
        async with connected(recorder, max_frame=1000) as (_, peer):
            await peer.send(struct.pack(">i", 1001))
            while not recorder.lost:
                await recorder.heard()
        return recorder.refused, recorder.lost

    assert asyncio.run(scenario()) == ([1001], 1)


def test_a_peer_that_breaks_the_protocol_is_let_go() -> None:
    async def scenario() -> int:
        recorder = Recorder()
        async with connected(recorder) as (_, peer):
            await asyncio.get_running_loop().sock_sendall(peer._sock, b"plain text in the middle")
            while not recorder.lost:
                await recorder.heard()
        return recorder.lost

    assert asyncio.run(scenario()) == 1


def test_a_connection_that_sends_files_by_descriptor_cannot_be_made_of_what_a_handshake_gives() -> None:
    """By sendfile a segment would leave in plain text."""

    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        secured, _ = await shaken(ours, theirs)
        made: Any = secured
        assert not isinstance(secured, socket.socket)
        assert not hasattr(secured, "fileno")
        with ours, theirs, pytest.raises((AssertionError, AttributeError, TypeError)):
            PlainConnection(made, asyncio.get_running_loop(), Scratch(64), ReadBudget(0), 100, Traffic())

    asyncio.run(scenario())


def test_sendfile_is_known_to_the_plain_connection_alone() -> None:
    net = Path(__file__).parents[3] / "src" / "ottla"
    named = [path for path in net.rglob("*.py") if "os.sendfile(" in path.read_text()]
    assert [path.relative_to(net).as_posix() for path in named] == ["net/connection.py"]
    assert not hasattr(TlsConnection, "_send_file")
