"""A framed connection over a real socket pair: frames in, chunks out."""

import asyncio
import gc
import os
import socket
import struct
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.metrics.counts import Traffic
from ottla.net.connection import Connection, PlainConnection, ReadBudget, Scratch
from tests.support.examples import examples
from tests.support.patience import PATIENCE_SECONDS


class Recorder:
    """Keeps what a connection delivers; may pause it after some frames."""

    def __init__(self, pause_after: int = 0) -> None:
        self.frames: list[bytes] = []
        self.refused: list[int] = []
        self.lost = 0
        self.drained = 0
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

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


class Slice:
    """A run of a file, as storage hands it out."""

    def __init__(self, file: int, position: int, length: int) -> None:
        self.file, self.position, self.length = file, position, length

    def __len__(self) -> int:
        return self.length

    def fileno(self) -> int:
        return self.file


@asynccontextmanager
async def connected(
    recorder: Recorder,
    *,
    scratch: int | Scratch = 4096,
    max_frame: int = 1 << 20,
    budget: ReadBudget | None = None,
) -> AsyncIterator[tuple[Connection, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    loop = asyncio.get_running_loop()
    shared = Scratch(scratch) if isinstance(scratch, int) else scratch
    connection = PlainConnection(ours, loop, shared, budget or ReadBudget(0), max_frame, Traffic())
    recorder.connection = connection
    connection.start(recorder)
    try:
        yield connection, theirs
    finally:
        connection.close()
        theirs.close()


async def turns_until(condition: Callable[[], bool]) -> None:
    """Lets the loop turn until the connection has seen what was sent: nobody is told of it."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


def framed(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


@settings(max_examples=examples(40), deadline=None)
@given(
    frames=st.lists(st.binary(max_size=9000), min_size=1, max_size=12),
    cuts=st.lists(st.integers(1, 5000), min_size=1, max_size=8),
    pause_after=st.integers(0, 3),
    scratch=st.sampled_from((64, 4096, 20_000)),
)
def test_frames_arrive_whole_and_in_order_however_the_stream_is_cut_and_paused(
    frames: list[bytes], cuts: list[int], pause_after: int, scratch: int
) -> None:
    async def scenario() -> list[bytes]:
        recorder = Recorder(pause_after)
        async with connected(recorder, scratch=scratch) as (connection, theirs):
            loop = asyncio.get_running_loop()
            stream = framed(*frames)
            at = turn = 0
            while at < len(stream):
                piece = stream[at : at + cuts[turn % len(cuts)]]
                await loop.sock_sendall(theirs, piece)
                at += len(piece)
                turn += 1
                await asyncio.sleep(0)
                connection.resume_reading()
            while len(recorder.frames) < len(frames):
                seen = len(recorder.frames)
                connection.resume_reading()
                await recorder.until(lambda seen=seen: len(recorder.frames) > seen)  # type: ignore[misc]
            return recorder.frames

    assert asyncio.run(scenario()) == frames


def test_a_frame_over_the_limit_is_refused_and_the_connection_closed() -> None:
    async def scenario() -> tuple[list[int], int, list[bytes]]:
        recorder = Recorder()
        async with connected(recorder, max_frame=100) as (_, theirs):
            theirs.send(framed(b"fine") + struct.pack(">i", 101))
            await recorder.until(lambda: recorder.lost > 0)
            return recorder.refused, recorder.lost, recorder.frames

    assert asyncio.run(scenario()) == ([101], 1, [b"fine"])


def test_a_negative_size_is_refused() -> None:
    async def scenario() -> tuple[list[int], int]:
        recorder = Recorder()
        async with connected(recorder) as (_, theirs):
            theirs.send(struct.pack(">i", -1))
            await recorder.until(lambda: recorder.lost > 0)
            return recorder.refused, recorder.lost

    assert asyncio.run(scenario()) == ([-1], 1)


def test_cve_2022_34917_a_claimed_length_reserves_no_memory_before_bytes_arrive() -> None:
    async def scenario() -> int:
        recorder = Recorder()
        async with connected(recorder, max_frame=1 << 30) as (connection, theirs):
            theirs.send(struct.pack(">i", 1 << 29) + b"x")
            await turns_until(lambda: connection._unfinished is not None)
            assert connection._unfinished is not None
            return len(connection._unfinished.buffer)

    assert asyncio.run(scenario()) <= 64 * 1024


def test_the_scratch_goes_along_with_an_unfinished_frame_and_comes_back_with_its_end_or_the_connections() -> None:
    """So nothing is copied; for whom there is none left, his frame is."""

    async def scenario() -> tuple[list[int], list[list[bytes]], int]:
        scratch, loop = Scratch(100_000), asyncio.get_running_loop()
        recorders = [Recorder() for _ in range(7)]
        whole = framed(b"x" * 50_000)
        async with AsyncExitStack() as stack:
            made = [await stack.enter_async_context(connected(each, scratch=scratch)) for each in recorders]
            for connection, theirs in made:
                await loop.sock_sendall(theirs, whole[:700])
                await turns_until(lambda connection=connection: connection._unfinished is not None)  # type: ignore[misc]
            kept = [len(connection._unfinished.buffer) for connection, _ in made if connection._unfinished is not None]
            made[0][0].close()
            for recorder, (_, theirs) in list(zip(recorders, made, strict=True))[1:]:
                await loop.sock_sendall(theirs, whole[700:])
                await recorder.until(lambda recorder=recorder: bool(recorder.frames))  # type: ignore[misc]
            return kept, [recorder.frames for recorder in recorders], scratch.lent

    kept, frames, lent = asyncio.run(scenario())
    assert kept == [100_000] * 4 + [50_004] * 3
    assert frames == [[]] + [[b"x" * 50_000]] * 6
    assert lent == 0


def test_above_the_budget_no_new_large_frame_is_begun_until_one_is_done() -> None:
    async def scenario() -> list[int]:
        budget = ReadBudget(100_000)
        first, second = Recorder(), Recorder()
        big = bytes(90_000)
        loop = asyncio.get_running_loop()
        async with connected(first, budget=budget) as (_, one), connected(second, budget=budget) as (two, other):
            budget.reserve(20_000)
            await loop.sock_sendall(one, framed(big)[:70_000])
            await turns_until(lambda: budget.used > 20_000)
            used = [budget.used]
            await loop.sock_sendall(other, framed(big)[:70_000])
            await turns_until(lambda: two.reading_paused)
            await loop.sock_sendall(one, framed(big)[70_000:])
            await first.until(lambda: len(first.frames) == 1)
            await loop.sock_sendall(other, framed(big)[70_000:])
            await second.until(lambda: len(second.frames) == 1)
            return [*used, budget.used]

    assert asyncio.run(scenario()) == [110_004, 20_000]


def test_bytes_and_file_slices_leave_in_order_whatever_the_socket_takes_at_once(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    content = os.urandom(600_000)
    path.write_bytes(content)

    async def scenario() -> tuple[bytes, int, int]:
        recorder = Recorder()
        async with connected(recorder) as (connection, theirs):
            fd = os.open(path, os.O_RDONLY)
            connection.send([b"head", Slice(fd, 100, 500_000), b"between", Slice(fd, 7, 90_000)])
            connection.send_bytes(b"tail")
            expected = 4 + 500_000 + 7 + 90_000 + 4
            received = b""
            while len(received) < expected:
                received += await asyncio.get_running_loop().sock_recv(theirs, 1 << 16)
            await recorder.until(lambda: recorder.drained > 0)
            os.close(fd)
            return received, connection.out_bytes, recorder.lost

    received, unsent, lost = asyncio.run(scenario())
    assert received == b"head" + content[100:500_100] + b"between" + content[7:90_007] + b"tail"
    assert (unsent, lost) == (0, 0)


def test_a_segment_that_ends_before_its_reply_closes_the_connection(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(b"short")

    async def scenario() -> int:
        recorder = Recorder()
        async with connected(recorder) as (connection, _):
            fd = os.open(path, os.O_RDONLY)
            connection.send([b"head", Slice(fd, 0, 100)])
            await recorder.until(lambda: recorder.lost > 0)
            os.close(fd)
            return recorder.lost

    assert asyncio.run(scenario()) == 1


def test_a_peer_that_goes_away_is_noticed_once() -> None:
    async def scenario() -> int:
        recorder = Recorder()
        async with connected(recorder) as (connection, theirs):
            theirs.close()
            await recorder.until(lambda: recorder.lost > 0)
            connection.close()
            connection.send_bytes(b"into the void")
            return recorder.lost

    assert asyncio.run(scenario()) == 1


def test_a_connection_that_was_closed_goes_without_the_collector() -> None:
    """Nodes tell it not to walk what is old: rings of objects would stay for good."""

    async def scenario() -> "weakref.ref[Recorder]":
        recorder = Recorder()
        async with connected(recorder):
            pass
        assert recorder.lost == 1
        return weakref.ref(recorder)

    gc.disable()
    try:
        assert asyncio.run(scenario())() is None
    finally:
        gc.enable()
