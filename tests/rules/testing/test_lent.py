"""Who keeps what lies in a connection's buffer is found out."""

import asyncio
import socket
import struct
from collections.abc import Callable

from ottla.metrics.counts import Traffic
from ottla.net.connection import PlainConnection, ReadBudget, Scratch
from ottla.testing.lent import STRANGE, LendingConnection


class Keeper:
    """Keeps frames as they are, and copies."""

    def __init__(self) -> None:
        self.copies: list[bytes] = []
        self.kept: list[memoryview] = []

    def frame_received(self, frame: memoryview) -> None:
        self.copies.append(bytes(frame))
        self.kept.append(frame[1:])

    def frame_refused(self, size: int, limit: int) -> None:
        raise AssertionError

    def output_drained(self) -> None: ...

    def connection_lost(self) -> None: ...


async def turns_until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0)


def test_a_frame_that_is_kept_holds_other_bytes_whoever_receives() -> None:
    async def scenario() -> tuple[Keeper, Keeper]:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        first, second = Keeper(), Keeper()
        loop = asyncio.get_running_loop()
        connection = LendingConnection(PlainConnection(ours, loop, Scratch(), ReadBudget(0), 100, Traffic()))
        connection.start(first)
        with theirs:
            theirs.sendall(struct.pack(">i", 5) + b"first")
            await turns_until(lambda: bool(first.copies))
            connection.hand_over(second, 100)
            theirs.sendall(struct.pack(">i", 6) + b"second")
            await turns_until(lambda: bool(second.copies))
        connection.close()
        return first, second

    first, second = asyncio.run(scenario())
    assert (first.copies, second.copies) == ([b"first"], [b"second"])
    assert [bytes(each) for each in (*first.kept, *second.kept)] == [STRANGE * 4, STRANGE * 5]
