"""One framed connection on a raw socket: whole frames in, chunks out, nothing copied that need not be.

Reading. Every idle connection reads into one scratch buffer shared by the listener, so ten thousand idle peers cost no
buffers. Whose frame has not arrived in full takes that buffer along and leaves another, so that nothing is copied; but
there are few of them, and who comes too late for one, or has too large a frame, copies its front part into a buffer of
its own, which grows with what has arrived, never with what the peer claims (CVE-2022-34917).

Writing. `send` tries the socket at once; what does not fit waits for writability. A chunk is bytes, or a slice of a
file. How either reaches the socket is for the two kinds of connection: a `PlainConnection` sends slices by `sendfile`,
and their pages never enter the process; `net.tls_connection` has the other kind, which encrypts what it sends. By
`sendfile` a descriptor sends what the file holds: only the plain kind knows of it, and what the other kind is made of
(`net.secured`) is no socket.

The owner of the connection gets frames through `Receiver`. A frame is a view into a buffer that is used again: it is
valid until the call returns, whoever wants to keep bytes copies them.
"""

import os
import socket
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable, Iterable
from struct import Struct
from time import monotonic
from typing import Final, Protocol

from ottla.metrics.counts import Traffic

_unpack_size: Final = Struct(">i").unpack_from
_FIRST_BUFFER: Final = 64 * 1024
SCRATCH_BYTES: Final = 256 * 1024
_MOST_LENT: Final = 4
BY_OWNER: Final = 1
BY_BUDGET: Final = 2
BY_LOGIN: Final = 4
BY_QUOTA: Final = 8
"""Why a connection does not read: it goes on when no reason is left."""
MORE: Final = getattr(socket, "MSG_MORE", 0)


class FileChunk(Protocol):
    """A run of bytes in an open file. The object keeps the descriptor open as long as it lives."""

    position: int
    length: int

    def __len__(self) -> int: ...

    def fileno(self) -> int: ...


Chunk = bytes | memoryview | FileChunk


class Receiver(Protocol):
    def frame_received(self, frame: memoryview) -> None:
        """One whole frame, without its size. Valid until this returns."""

    def frame_refused(self, size: int, limit: int) -> None:
        """The peer announced a frame that is over the limit or negative. The connection is being closed."""

    def output_drained(self) -> None:
        """All output has gone to the socket after it had been blocked."""

    def connection_lost(self) -> None:
        """The socket is closed: exactly once, after which nothing is called any more."""


class Line(Protocol):
    """A connection as its receiver uses it; the simulator has one of its own."""

    out_bytes: int
    last_active: float
    """When bytes last went in or out, by the clock of the loop."""

    @property
    def reading_paused(self) -> bool: ...

    @property
    def seconds(self) -> Callable[[], float]:
        """Tells now, by the clock that `last_active` is of. Whoever asks twice for each request keeps it."""

    def us_since(self, then: float) -> int:
        """Microseconds, by the same."""

    def pause_reading(self, reason: int = BY_OWNER) -> None: ...

    def resume_reading(self, reason: int = BY_OWNER) -> None: ...

    def send(self, chunks: Iterable[Chunk]) -> None: ...

    def send_bytes(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class ReadBudget:
    """Bytes of frames under way, over all connections: above the limit no new large frame is begun."""

    __slots__ = ("limit", "used", "waiting")

    def __init__(self, limit: int) -> None:
        self.limit = limit  # 0 or less: no limit
        self.used = 0
        self.waiting: deque[Connection] = deque()

    def reserve(self, size: int) -> bool:
        # As Kafka's memory pool: whoever finds any room may go on, so the largest frame is never starved.
        if 0 < self.limit <= self.used:
            return False
        self.used += size
        return True

    def release(self, size: int) -> None:
        self.used -= size
        while self.waiting and (self.limit <= 0 or self.used < self.limit):
            self.waiting.popleft().budget_available()


class Scratch:
    """The read buffer shared by all connections of a loop, in use only between a recv and its callback's return; or
    until the frame in it is whole, if it is lent for that long."""

    __slots__ = ("_spare", "lent", "view")

    def __init__(self, size: int = SCRATCH_BYTES) -> None:
        self.view = memoryview(bytearray(size))
        self.lent = 0
        self._spare: list[memoryview] = []

    def lend(self) -> memoryview | None:
        """The buffer as it is: another one takes its place. None if too many are lent."""
        if self.lent >= _MOST_LENT:
            return None
        self.lent += 1
        lent = self.view
        self.view = self._spare.pop() if self._spare else memoryview(bytearray(len(lent)))
        return lent

    def give_back(self, lent: memoryview) -> None:
        self.lent -= 1
        self._spare.append(lent)


class Unfinished:
    """Frames whose last one has not come to its end: a buffer, where in it the first begins, where what came ends."""

    __slots__ = ("buffer", "have", "is_lent", "start")

    def __init__(self, buffer: memoryview, start: int, have: int, *, is_lent: bool) -> None:
        self.buffer = buffer
        self.start = start
        self.have = have
        self.is_lent = is_lent
        """By the scratch."""

    def needed(self) -> int:
        """Bytes of the first frame and its size, as far as that is known."""
        size: int = _unpack_size(self.buffer, self.start)[0] if self.have - self.start >= 4 else 0
        return size + 4

    def missing(self) -> int:
        """Those that have not come."""
        return self.needed() - (self.have - self.start)

    def has_room(self, need: int) -> bool:
        """For a first frame of so many bytes to its end; what came of it is moved to the front if that is needed."""
        size = len(self.buffer)
        if self.start + need > size:
            if need > size:
                return False
            have = self.have - self.start
            self.buffer[:have] = self.buffer[self.start : self.have]
            self.start, self.have = 0, have
        return True


class Connection:
    __slots__ = (
        "_budget",
        "_corked",
        "_fd",
        "_loop",
        "_max_frame",
        "_out",
        "_paused",
        "_receiver",
        "_reserved",
        "_scratch",
        "_sock",
        "_traffic",
        "_unfinished",
        "last_active",
        "out_bytes",
        "seconds",
    )

    def __init__(
        self,
        sock: socket.socket,
        loop: AbstractEventLoop,
        scratch: Scratch,
        budget: ReadBudget,
        max_frame: int,
        traffic: Traffic,
    ) -> None:
        self._sock: socket.socket | None = sock
        self.seconds: Callable[[], float] = monotonic
        self._fd = sock.fileno()
        self._loop = loop
        self._scratch = scratch
        self._budget = budget
        self._max_frame = max_frame
        self._traffic = traffic
        self._receiver: Receiver | None = None
        self._unfinished: Unfinished | None = None
        self._reserved = 0
        self._paused = BY_OWNER
        self._out: deque[Chunk] = deque()
        self._corked: list[bytes] | None = None
        """Replies to the requests of one recv, while these are handled: they leave in one send."""
        self.out_bytes = 0
        self.last_active = monotonic()  # what loops go by too, and finer: uvloop keeps milliseconds

    def start(self, receiver: Receiver, max_frame: int = 0) -> None:
        """`max_frame`: of this receiver, if it takes less than others."""
        self._receiver = receiver
        self._max_frame = max_frame or self._max_frame
        self.resume_reading()

    def hand_over(self, receiver: Receiver, max_frame: int) -> None:
        """What comes next is for somebody else: from a callback of the receiver so far, who may have had to be content
        with smaller frames."""
        self._receiver = receiver
        self._max_frame = max_frame
        # Whoever delivers just now still has the former receiver in hand: a pause makes it stop and look again.
        self.pause_reading(BY_LOGIN)
        self._loop.call_soon(self.resume_reading, BY_LOGIN)

    # ---- what each kind does its own way

    def _readable(self) -> None:
        """Takes what has come and hands out the frames in it."""
        raise NotImplementedError

    def _send_now(self, data: bytes) -> None:
        """Sends, or queues what does not fit and waits for writability."""
        raise NotImplementedError

    def _flush(self) -> None:
        """Sends of the queue until all is gone or the socket is full."""
        raise NotImplementedError

    # ---- common to both

    def us_since(self, then: float) -> int:
        return int((monotonic() - then) * 1_000_000)

    # ---- reading

    @property
    def closed(self) -> bool:
        return self._sock is None

    @property
    def reading_paused(self) -> bool:
        return self._paused != 0

    def pause_reading(self, reason: int = BY_OWNER) -> None:
        if not self._paused and self._sock is not None:
            self._loop.remove_reader(self._fd)
        self._paused |= reason

    def resume_reading(self, reason: int = BY_OWNER) -> None:
        """Frames already received are delivered first, so a caller may be called back from inside this."""
        if not self._paused & reason:
            return
        self._paused &= ~reason
        if self._paused or self._sock is None:
            return
        if self._unfinished is not None:
            self._go_on(self._unfinished)
        if not self._paused and self._sock is not None:
            self._loop.add_reader(self._fd, self._readable)

    def budget_available(self) -> None:
        if self._unfinished is not None:
            self._reserve(self._unfinished.needed())
        if self._reserved:
            self.resume_reading(BY_BUDGET)

    def notice_reset(self) -> None:
        """Looks for a reset that came together with bytes. uvloop calls the reader of such a socket once more and never
        again, and that call finds the bytes. To be called now and then, for a reader cannot ask twice each time."""
        if not self._paused:
            self._readable()

    def _go_on(self, rest: Unfinished) -> None:
        """More of it has come, or reading goes on."""
        start = self._deliver(rest.buffer, rest.start, rest.have)
        if self._sock is None:
            return
        if start == rest.have:
            self._drop_unfinished()
        elif self._paused or rest.is_lent:
            rest.start = start
            if not self._paused:
                self._make_room(rest)
        elif start or rest.have == len(rest.buffer):
            self._copy(rest.buffer[start : rest.have])

    def _deliver(self, view: memoryview, start: int, end: int) -> int:
        """Hands out the whole frames in view[start:end] until reading is paused; returns where the rest begins."""
        receiver = self._receiver
        assert receiver is not None
        self._corked = []
        while end - start >= 4 and not self._paused:
            (size,) = _unpack_size(view, start)
            if size < 0 or size > self._max_frame:
                receiver.frame_refused(size, self._max_frame)
                self.close()
                return end
            stop = start + 4 + size
            if stop > end:
                break
            if self._reserved:
                self._release()
            receiver.frame_received(view[start + 4 : stop])
            if self._sock is None:
                return end
            start = stop
        self._uncork()
        return start

    def _keep(self, start: int, end: int) -> None:
        """What lies there in the scratch belongs to a frame that is not at its end."""
        view = self._scratch.view
        need = _unpack_size(view, start)[0] + 4 if end - start >= 4 else 4
        lent = self._scratch.lend() if need <= len(view) else None
        if lent is None:
            self._copy(view[start:end])
        else:
            self._unfinished = Unfinished(lent, start, end, is_lent=True)
            self._make_room(self._unfinished)

    def _make_room(self, rest: Unfinished) -> None:
        """In a buffer that is lent, for a frame that has begun in it."""
        need = rest.needed()
        if rest.has_room(need):
            self._begin(need, rest.have - rest.start)
        else:
            self._copy(rest.buffer[rest.start : rest.have])

    def _copy(self, rest: memoryview) -> None:
        """Moves an unfinished frame into a buffer that fits what has come so far, at most twice over."""
        have = len(rest)
        need = _unpack_size(rest, 0)[0] + 4 if have >= 4 else 4
        buffer = memoryview(bytearray(max(have, min(need, max(_FIRST_BUFFER, 2 * have)))))
        buffer[:have] = rest
        self._drop_unfinished()
        self._unfinished = Unfinished(buffer, 0, have, is_lent=False)
        self._begin(need, have)

    def _begin(self, need: int, have: int) -> None:
        """A frame of which so much has come."""
        if need > _FIRST_BUFFER and need > have and not self._reserved:
            self._reserve(need)

    def _drop_unfinished(self) -> None:
        rest, self._unfinished = self._unfinished, None
        if rest is not None and rest.is_lent:
            self._scratch.give_back(rest.buffer)

    def _reserve(self, need: int) -> None:
        if self._budget.reserve(need):
            self._reserved = need
        else:
            self._budget.waiting.append(self)
            self.pause_reading(BY_BUDGET)

    def _release(self) -> None:
        reserved, self._reserved = self._reserved, 0
        self._budget.release(reserved)

    # ---- writing

    def send(self, chunks: Iterable[Chunk]) -> None:
        """Takes over the chunks, sends what the socket takes now and the rest as it drains."""
        if self._corked:
            data, self._corked = b"".join(self._corked), []
            self._send_now(data)
        if self._sock is None:
            return
        idle = not self._out
        for chunk in chunks:
            self._queue(chunk)
        if idle:
            self._flush()
            if self._out and self._sock is not None:
                self._await_room()

    def send_bytes(self, data: bytes) -> None:
        """The common case, one small reply: sent at once, or with its neighbours if several requests came together."""
        if self._corked is None:
            self._send_now(data)
        else:
            self._corked.append(data)

    def _uncork(self) -> None:
        corked, self._corked = self._corked, None
        if corked:
            self._send_now(corked[0] if len(corked) == 1 else b"".join(corked))

    def _queue(self, chunk: Chunk) -> None:
        self._out.append(chunk)
        self.out_bytes += len(chunk)

    def _await_room(self) -> None:
        self._loop.add_writer(self._fd, self._writable)

    def _writable(self) -> None:
        self._flush()
        if not self._out and self._sock is not None:
            self._loop.remove_writer(self._fd)
            assert self._receiver is not None
            self._receiver.output_drained()

    # ---- the end

    def close(self) -> None:
        """Drops what is unsent. Safe to call twice and from inside a callback."""
        sock, self._sock = self._sock, None
        if sock is None:
            return
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        self._out.clear()
        self.out_bytes = 0
        self._drop_unfinished()
        if self._reserved:
            self._release()
        sock.close()
        receiver, self._receiver = self._receiver, None  # or the two would hold each other until a collection
        if receiver is not None:
            receiver.connection_lost()


class PlainConnection(Connection):
    """On a socket as it is: what is sent can be read on the way."""

    __slots__ = ()

    def __init__(
        self,
        sock: socket.socket,
        loop: AbstractEventLoop,
        scratch: Scratch,
        budget: ReadBudget,
        max_frame: int,
        traffic: Traffic,
    ) -> None:
        assert type(sock) is socket.socket, "sendfile would send plain text by a descriptor that is for TLS"
        super().__init__(sock, loop, scratch, budget, max_frame, traffic)

    def _readable(self) -> None:
        sock = self._sock
        if sock is None:
            return
        rest = self._unfinished
        target = self._scratch.view if rest is None else rest.buffer[rest.have :]
        try:
            received = sock.recv_into(target)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            return
        if not received:
            self.close()
            return
        self.last_active = monotonic()
        self._traffic.received += received
        if rest is None:
            start = self._deliver(target, 0, received)
            if start < received and self._sock is not None:
                self._keep(start, received)
        else:
            rest.have += received
            self._go_on(rest)

    def _send_now(self, data: bytes) -> None:
        sock = self._sock
        if sock is None:
            return
        if self._out:
            self._queue(data)
            return
        try:
            sent = sock.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self.close()
            return
        self._traffic.sent += sent
        if sent < len(data):
            self._queue(memoryview(data)[sent:])
            self._loop.add_writer(self._fd, self._writable)

    def _flush(self) -> None:
        """Sends until all is gone or the socket takes less than it is offered: it is full then, and to ask once more
        would only hear so."""
        out = self._out
        sock = self._sock
        assert sock is not None
        try:
            while out:
                chunk = out[0]
                offered = len(chunk)
                if isinstance(chunk, bytes | memoryview):
                    sent = sock.send(chunk, MORE if len(out) > 1 else 0)
                    if sent < offered:
                        out[0] = memoryview(chunk)[sent:]
                else:
                    sent = self._send_file(chunk)
                self.out_bytes -= sent
                self._traffic.sent += sent
                self.last_active = monotonic()
                if sent < offered:
                    break
                out.popleft()
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()

    def _send_file(self, chunk: FileChunk) -> int:
        sent = os.sendfile(self._fd, chunk.fileno(), chunk.position, chunk.length)
        if not sent and chunk.length:
            # The file is shorter than promised (cut by another hand): the frame cannot be finished.
            raise ConnectionAbortedError("the log segment ended before the reply did")
        chunk.position += sent
        chunk.length -= sent
        return sent
