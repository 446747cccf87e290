"""A framed connection under TLS: `net.connection` on a socket whose handshake is done (`net.secured`).

Reading. What has come is taken in one call into a buffer shared by all connections of a loop, handed to OpenSSL record
by record, and read out decrypted into another shared buffer, from which frames are delivered as from a plain socket.
OpenSSL is never given a part of a record: asked for what is in it, it would answer by an exception, which costs as much
as it takes to decrypt it. And it is given little at a time, as it keeps the memory it once needed for as long as the
connection lives.

Java encrypts a request piece by piece and sends each by itself. So that nobody is woken for each of them, the system is
told how much of the rest is worth waking for (SO_RCVLOWAT), once it is known how much is still to come.

Writing. Chunks, small ones and pieces of files alike, are gathered, encrypted and sent by one call; what the socket
does not take is sent as it is when there is room. A file's bytes have to be read to be encrypted: nothing in this
module hands a descriptor to anybody who would send by it.
"""

import socket
import ssl
import sys
from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextlib import suppress
from os import preadv
from struct import Struct
from time import monotonic
from typing import Final

from ottla.metrics.counts import Traffic
from ottla.net.connection import BY_OWNER, Connection, ReadBudget, Scratch
from ottla.net.secured import Secured

_ARRIVED_BYTES: Final = 256 * 1024
_HEADER: Final = Struct(">HxH")
"""Of a record: what it carries and the version's first byte, its length."""
_unpack_header: Final = _HEADER.unpack_from
_RECORD_HEADER: Final = _HEADER.size
_KINDS: Final = frozenset((0x1403, 0x1503, 0x1603, 0x1703))
_MOST_IN_A_RECORD: Final = 16 * 1024
_LEAST_ADDED: Final = _RECORD_HEADER + 8 + 1
"""To each record by any cipher suite: the tag of CCM_8, and the byte that TLS 1.3 keeps the kind in. To wait for more
than what comes would be to wait for ever."""
_LONGEST_BODY: Final = _MOST_IN_A_RECORD + 2048
"""Of a record by TLS 1.2; those of 1.3 are shorter."""
_GIVEN_BYTES: Final = 17 * 1024
"""Given to OpenSSL at a time, if it is of several records: they are short then."""
_CAN_WAIT: Final = sys.platform == "linux"
_WORTH_WAITING_BYTES: Final = 4 * 1024
_WAITED_FOR_BYTES: Final = 64 * 1024
"""At most: it lies in the receive buffer meanwhile. For more than half of that (128 KiB unless it is set) Linux makes
another buffer, and older ones hold the window down to what was asked for."""
GATHERED_BYTES: Final = 32 * 1024
_NOTHING: Final = memoryview(b"")


class TlsBuffers:
    """Shared by all connections of a loop: what comes, before it is decrypted, and what goes, before it is encrypted.
    The second is in use within a call, the first while frames are delivered, when others may send."""

    __slots__ = ("arrived", "gathered")

    def __init__(self, gathered_bytes: int = GATHERED_BYTES) -> None:
        self.arrived = memoryview(bytearray(_ARRIVED_BYTES))
        self.gathered = memoryview(bytearray(gathered_bytes))


class TlsConnection(Connection):
    __slots__ = ("_begun", "_buffers", "_incoming", "_is_encrypted", "_low_water", "_outgoing", "_tls", "_undecrypted")

    def __init__(
        self,
        secured: Secured,
        loop: AbstractEventLoop,
        scratch: Scratch,
        budget: ReadBudget,
        max_frame: int,
        traffic: Traffic,
        buffers: TlsBuffers,
    ) -> None:
        super().__init__(secured.sock, loop, scratch, budget, max_frame, traffic)
        self._tls = secured.tls
        self._incoming = secured.incoming
        self._outgoing = secured.outgoing
        self._buffers = buffers
        self._undecrypted = memoryview(secured.incoming.read())
        """What came while nobody wanted to read: right behind the handshake, or while reading was paused."""
        self._begun = b""
        """The part that has come of a record that is not at its end."""
        self._low_water = 1
        """How many bytes have to be there before the socket is said to be readable."""
        self._is_encrypted = False
        """The head of the queue is what the socket did not take: it goes out as it is."""

    # ---- reading

    def resume_reading(self, reason: int = BY_OWNER) -> None:
        super().resume_reading(reason)
        if self._paused or self._sock is None:
            return
        if self._undecrypted or self._incoming.pending or self._tls.pending():
            # It is here already, and no readiness of the socket tells of it.
            self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        if self._paused or self._sock is None:
            return
        rest, self._undecrypted = self._undecrypted, _NOTHING
        self._take(rest)

    def _readable(self) -> None:
        sock = self._sock
        if sock is None or self._undecrypted:  # which comes first, and soon
            return
        arrived = self._buffers.arrived
        begun = self._begun
        have = len(begun)
        if have:
            arrived[:have] = begun
        try:
            received = sock.recv_into(arrived[have:])
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            return
        if not received:
            self.close()
            return
        self.last_active = monotonic()
        self._begun = b""
        self._take(arrived[: have + received])

    def _take(self, data: memoryview) -> None:
        """Decrypts, and hands out the frames in it; what is too much for now is kept."""
        left = data
        while self._sock is not None:
            if self._paused:
                self._undecrypted = memoryview(bytes(left))  # the buffer is somebody else's in a moment
                break
            rest = self._unfinished
            target = self._scratch.view if rest is None else rest.buffer[rest.have :]
            received, at = self._decrypted_into(target, left)
            left = left[at:]
            is_all = received < len(target)
            if is_all and left:
                self._begun = bytes(left)
            if received:
                self._traffic.received += received
                if rest is None:
                    start = self._deliver(target, 0, received)
                    if start < received and self._sock is not None:
                        self._keep(start, received)
                else:
                    rest.have += received
                    self._go_on(rest)
            if is_all:
                break
        if self._sock is not None:
            if self._outgoing.pending:
                self._answer()
            if self._unfinished is not None or self._begun or self._low_water > 1:
                self._wait_for_the_rest()

    def _decrypted_into(self, target: memoryview, data: memoryview) -> tuple[int, int]:
        """As much as there is room for: how much that was, and how much of the data OpenSSL has been given for it. With
        room left, that is all but the part of a record at the end."""
        incoming = self._incoming
        read: Callable[[int, memoryview], int] = self._tls.read  # type: ignore[assignment]  # so it is with a buffer
        room = len(target)
        received = at = 0
        hungry = not incoming.pending and not self._tls.pending()
        try:
            while received < room:
                if hungry:
                    end = _end_of_records(data, at)
                    if end == at:
                        break
                    incoming.write(data[at:end])
                    at = end
                try:
                    got = read(room - received, target[received:])
                except ssl.SSLWantReadError:  # it was for TLS itself, such as new keys
                    hungry = not incoming.pending
                    continue
                if not got:
                    self._end_after(received)
                    break
                received += got
                # One read gives what is left of a record, if there is room for it.
                hungry = not incoming.pending
        except OSError:  # goodbye, or what is no TLS
            self._end_after(received)
        return received, at

    def _wait_for_the_rest(self) -> None:
        """Of the first frame that is not at its end, and of the record. No more is waited for than it takes."""
        wanted = 1
        if not self._paused:
            begun, rest = self._begun, self._unfinished
            record = _unpack_header(begun, 0)[1] + _RECORD_HEADER if len(begun) >= _RECORD_HEADER else 0
            wanted = max(record, 0 if rest is None else _least_encrypted(rest.missing())) - len(begun)
            wanted = 1 if wanted < _WORTH_WAITING_BYTES else min(wanted, _WAITED_FOR_BYTES)
        if wanted != self._low_water and _CAN_WAIT:
            assert self._sock is not None
            self._low_water = wanted
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wanted)

    def _end_after(self, received: int) -> None:
        """What came before the end is still delivered."""
        if received:
            self._loop.call_soon(self.close)
        else:
            self.close()

    def _answer(self) -> None:
        """TLS has something to say by itself, such as new keys."""
        self._queue(b"")
        if len(self._out) == 1:
            self._flush()
            if self._out and self._sock is not None:
                self._await_room()

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

    def _flush(self) -> None:
        out = self._out
        try:
            while out:
                data = self._left_over() if self._is_encrypted else memoryview(self._encrypted())
                sent = self._sent(data)
                if sent < len(data):
                    self._is_encrypted = True
                    out.appendleft(data[sent:])
                    self.out_bytes += len(data) - sent
                    return
                self._is_encrypted = False
        except OSError:
            self.close()

    def _left_over(self) -> memoryview:
        data = self._out.popleft()
        assert isinstance(data, memoryview)
        self.out_bytes -= len(data)
        return data

    def _sent(self, data: memoryview) -> int:
        assert self._sock is not None
        try:
            sent = self._sock.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        self.last_active = monotonic()
        return sent

    def _encrypted(self) -> bytes:
        """Of the queue's next bytes, which are taken out of it."""
        data = self._gathered()
        size = len(data)
        self.out_bytes -= size
        self._traffic.sent += size
        if size:
            taken = self._tls.write(data)
            assert taken == size, "memory has room for all that is written to it"
        return self._outgoing.read()

    def _gathered(self) -> bytes | memoryview:
        out = self._out
        view = self._buffers.gathered
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
                    out.popleft()
                    if not out and not filled:
                        return chunk  # most replies
                    taken = len(chunk)
                    room[:taken] = chunk
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

    # ---- the end

    def close(self) -> None:
        if self._sock is not None and not self._is_encrypted:
            self._say_goodbye()
        self._undecrypted, self._begun = _NOTHING, b""
        super().close()

    def _say_goodbye(self) -> None:
        """So that the peer need not take the end for an attack that cut the stream. Nobody waits for its answer."""
        assert self._sock is not None
        with suppress(OSError, ValueError):
            try:
                self._tls.unwrap()
            except ssl.SSLWantReadError:
                pass
            finally:
                if self._outgoing.pending:
                    self._sock.send(self._outgoing.read())


def _least_encrypted(size: int) -> int:
    return size + (size + _MOST_IN_A_RECORD - 1) // _MOST_IN_A_RECORD * _LEAST_ADDED


def _end_of_records(data: memoryview, start: int) -> int:
    """Where the whole records end that are to be given to OpenSSL at once, at least one if there is one."""
    at, size = start, len(data)
    enough = start + _GIVEN_BYTES
    while size - at >= _RECORD_HEADER:
        kind, length = _unpack_header(data, at)
        end = at + _RECORD_HEADER + length
        if length > _LONGEST_BODY or kind not in _KINDS:
            return size  # that is no TLS: OpenSSL will say so
        if end > size or (end > enough and at > start):
            break
        at = end
    return at
