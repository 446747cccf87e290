"""A framed connection under TLS: `net.connection` on a socket whose handshake is done (`net.handshakes`).

OpenSSL reads and writes the descriptor itself, so the loop's readiness calls serve as for a plain socket, but for this:

- It may hold bytes that the descriptor no longer announces: after each read it is asked (`pending`).
- A write that found no room has to be tried again with the same bytes, which are therefore kept until they are gone.
- Either direction may have to wait for the other (a peer asks for new keys): a read waits for room, a write for bytes.

What is to be sent is gathered into one buffer shared by all connections of a loop, small chunks and pieces of files
alike: each write is a record of TLS and a packet, and a file's bytes must be read to be encrypted. Nothing in this
module hands a descriptor to anybody who would send by it.
"""

import ssl
from asyncio import AbstractEventLoop
from contextlib import suppress
from os import preadv
from time import monotonic
from typing import Final

from ottla.metrics.counts import Traffic
from ottla.net.connection import BY_OWNER, SCRATCH_BYTES, Connection, ReadBudget, Scratch

GATHERED_BYTES: Final = 128 * 1024
"""Offered to OpenSSL at once, as eight records: what a peer that reads slowly makes us keep, at most."""
_RECORD_BYTES: Final = 16 * 1024
"""The most that one record carries, and one read gives."""


class TlsConnection(Connection):
    __slots__ = ("_gathered", "_read_waits", "_repeat", "_tls", "_write_waits")

    def __init__(
        self,
        sock: ssl.SSLSocket,
        loop: AbstractEventLoop,
        scratch: Scratch,
        budget: ReadBudget,
        max_frame: int,
        traffic: Traffic,
        gathered: Scratch,
    ) -> None:
        super().__init__(sock, loop, scratch, budget, max_frame, traffic)
        self._tls = sock
        self._gathered = gathered
        self._repeat = False
        """The head of the queue was offered and found no room: it is offered again as it is."""
        self._read_waits = False
        """A read waits until the socket can be written."""
        self._write_waits = False
        """A write waits until the socket can be read."""

    # ---- reading

    def pause_reading(self, reason: int = BY_OWNER) -> None:
        if self._write_waits:
            self._paused |= reason  # the reader stays, for the sake of the write
        else:
            super().pause_reading(reason)

    def resume_reading(self, reason: int = BY_OWNER) -> None:
        super().resume_reading(reason)
        if self._paused or self._sock is None:
            return
        if self._read_waits:
            self._loop.remove_reader(self._fd)
        elif self._tls.pending():
            self._loop.call_soon(self._readable)

    def _readable(self) -> None:
        if self._write_waits:
            self._write_again()
        taken = 0
        while self._sock is not None and not self._paused and not self._read_waits:
            received = self._read_once()
            if not received:
                return
            taken += received
            if self._sock is None or self._paused or not self._tls.pending():
                return
            if taken >= SCRATCH_BYTES:  # the others have their turn
                self._loop.call_soon(self._readable)
                return

    def _read_once(self) -> int:
        """Fills the buffer as far as there are bytes, and hands out frames. 0: nothing was there."""
        own = self._own
        target = self._scratch.view if own is None else memoryview(own)[self._have :]
        received = 0
        ended = False
        try:
            while received < len(target):
                got = self._tls.recv_into(target[received:])
                received += got
                ended = not got
                # A short record is the end of what was sent together: to ask once more would most likely find nothing.
                if got < _RECORD_BYTES and not self._tls.pending():
                    break
        except (ssl.SSLWantReadError, InterruptedError):
            pass
        except ssl.SSLWantWriteError:
            self._read_after_write()
        except OSError:
            ended = True
        if received:
            self.last_active = monotonic()
            self._traffic.received += received
            if own is None:
                start = self._deliver(target, 0, received)
                if start < received and self._sock is not None:
                    self._keep(target[start:received])
            else:
                self._have += received
                self._deliver_own()
        if ended:
            self.close()
        return received

    def _read_after_write(self) -> None:
        self._read_waits = True
        self._loop.remove_reader(self._fd)
        self._loop.add_writer(self._fd, self._writable)

    # ---- writing

    def _send_now(self, data: bytes) -> None:
        if self._sock is None:
            return
        idle = not self._out
        self._queue(data)
        if idle:
            self._flush()
            if self._out and self._sock is not None:
                self._await_room()

    def _await_room(self) -> None:
        if not self._write_waits:
            super()._await_room()

    def _writable(self) -> None:
        if self._read_waits:
            self._read_waits = False
            if not self._paused:
                self._loop.add_reader(self._fd, self._readable)
                self._loop.call_soon(self._readable)
        if self._out:
            super()._writable()
        elif self._sock is not None:
            self._loop.remove_writer(self._fd)

    def _flush(self) -> None:
        out = self._out
        try:
            while out:
                data = out.popleft() if self._repeat else self._gather()
                assert isinstance(data, bytes | memoryview)
                try:
                    sent = self._tls.send(data)
                except ssl.SSLWantWriteError:
                    self._offer_again(data)
                    return
                except ssl.SSLWantReadError:
                    self._offer_again(data)
                    self._write_after_read()
                    return
                self._repeat = False
                if sent < len(data):
                    out.appendleft(memoryview(bytes(data))[sent:])
                self.out_bytes -= sent
                self._traffic.sent += sent
                self.last_active = monotonic()
        except OSError:
            self.close()

    def _offer_again(self, data: bytes | memoryview) -> None:
        self._out.appendleft(bytes(data))
        self._repeat = True

    def _gather(self) -> bytes | memoryview:
        """Takes the next bytes out of the queue, to be sent in one go."""
        out = self._out
        view = self._gathered.view
        filled = 0
        while out and filled < len(view):
            chunk = out[0]
            room = view[filled:]
            if isinstance(chunk, bytes | memoryview):
                if len(chunk) > len(room):
                    taken = len(room)
                    room[:] = memoryview(chunk)[:taken]
                    out[0] = memoryview(chunk)[taken:]
                else:
                    if len(out) == 1 and not filled:
                        out.popleft()
                        return chunk  # most replies
                    taken = len(chunk)
                    room[:taken] = chunk
                    out.popleft()
            else:
                taken = preadv(chunk.fileno(), [room[: chunk.length]], chunk.position)
                if not taken and chunk.length:
                    raise ConnectionAbortedError("the log segment ended before the reply did")
                chunk.position += taken
                chunk.length -= taken
                if not chunk.length:
                    out.popleft()
            filled += taken
        return view[:filled]

    def _write_after_read(self) -> None:
        self._write_waits = True
        self._loop.remove_writer(self._fd)
        self._loop.add_reader(self._fd, self._readable)

    def _write_again(self) -> None:
        self._write_waits = False
        if self._paused:
            self._loop.remove_reader(self._fd)
        self._loop.add_writer(self._fd, self._writable)

    # ---- the end

    def close(self) -> None:
        if self._sock is not None and not self._repeat:
            # Says goodbye, so that the peer need not take the end for an attack that cut the stream; nobody waits.
            with suppress(OSError, ValueError):
                self._tls.unwrap()
        super().close()
