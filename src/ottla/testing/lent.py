"""Connections that take the rule at its word: a frame is valid until the call returns (`net.connection`).

On a machine with little to do hardly anybody else reads into that buffer before a task looks at it, so who keeps a
frame is not found out. Here other bytes are in it at once. It costs, so clusters have it where they are told to by
OTTLA_LENDS_FRAMES, as in the suite; simulated ones always.
"""

import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.front.server import Server
from ottla.metrics.counts import Traffic
from ottla.net.connection import Connection, Receiver
from ottla.net.peer import SocketPeers

if TYPE_CHECKING:
    from ottla.net.secured import Secured

STRANGE: Final = b"\xaa"
"""Every byte of a frame, afterwards."""


def lend(frame: bytes | memoryview, receive: Callable[[memoryview], None]) -> None:
    buffer = bytearray(frame)
    try:
        receive(memoryview(buffer))
    finally:
        buffer[:] = STRANGE * len(buffer)  # not emptied: an exception that is kept may hold a frame, and reads nothing


class _Borrower:
    """The receiver, but for what its frames are."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def frame_received(self, frame: memoryview) -> None:
        lend(frame, self._receiver.frame_received)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._receiver, name)


class LendingConnection:
    """The connection, but for whom it delivers to. Compiled classes have no heirs, so it stands before one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def start(self, receiver: Receiver, max_frame: int = 0) -> None:
        self._connection.start(_Borrower(receiver), max_frame)

    def hand_over(self, receiver: Receiver, max_frame: int) -> None:
        self._connection.hand_over(_Borrower(receiver), max_frame)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class LendingServer(Server):
    __slots__ = ()

    def _converse(self, connection: Any, *of: Any) -> None:
        super()._converse(LendingConnection(connection), *of)  # type: ignore[arg-type]  # as good as one


class LendingPeers(SocketPeers):
    __slots__ = ()

    def _connection(self, traffic: Traffic, sock: "socket.socket | Secured") -> Any:
        return LendingConnection(super()._connection(traffic, sock))


def _is_asked_for() -> bool:
    return bool(os.environ.get("OTTLA_LENDS_FRAMES"))


def listening() -> type[Server]:
    """What takes the connections of a cluster's node."""
    return LendingServer if _is_asked_for() else Server


def reaching() -> type[SocketPeers]:
    """What its nodes reach each other by."""
    return LendingPeers if _is_asked_for() else SocketPeers
