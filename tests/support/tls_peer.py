"""The far end of a TLS connection over a raw socket, which sees what is on the wire as well as what it means."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress


class TlsPeer:
    def __init__(self, sock: socket.socket, context: ssl.SSLContext, host: str | None = "localhost") -> None:
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=host)
        self.seen = bytearray()
        """As anybody on the way sees it."""

    async def handshake(self, first: bytes = b"") -> None:
        """`first` is sent along with the last of it."""
        while True:
            try:
                self._tls.do_handshake()
                if first:
                    self._tls.write(first)
                await self._flush()
                return
            except ssl.SSLWantReadError:
                await self._flush()
                await self._more()

    async def send(self, data: bytes) -> None:
        self._tls.write(data)
        await self._flush()

    async def send_records(self, pieces: Sequence[bytes]) -> None:
        """Each in a record of its own, all at once."""
        for piece in pieces:
            self._tls.write(piece)
        await self._flush()

    async def send_piecewise(self, data: bytes, cuts: list[int]) -> None:
        """Cut on the wire wherever that falls, not between records."""
        self._tls.write(data)
        encrypted = self._out.read()
        at = turn = 0
        while at < len(encrypted):
            piece = encrypted[at : at + cuts[turn % len(cuts)]]
            await self._loop.sock_sendall(self._sock, piece)
            at, turn = at + len(piece), turn + 1
            await asyncio.sleep(0)

    async def send_cut(self, data: bytes, record: int, cut: int) -> None:
        """In records of that size, and on the wire in pieces of the other."""
        for at in range(0, len(data), record):
            self._tls.write(data[at : at + record])
        encrypted = self._out.read()
        for at in range(0, len(encrypted), cut):
            await self._loop.sock_sendall(self._sock, encrypted[at : at + cut])
            await asyncio.sleep(0)

    async def end(self, *, says_goodbye: bool) -> None:
        """Nothing more is sent."""
        if says_goodbye:
            with suppress(ssl.SSLWantReadError):
                self._tls.unwrap()
            await self._flush()
        self._sock.shutdown(socket.SHUT_WR)

    async def read_exactly(self, count: int) -> bytes:
        found = bytearray()
        while len(found) < count:
            found += await self.read(count - len(found))
        return bytes(found)

    async def read(self, most: int = 65536) -> bytes:
        """Empty at the end, if goodbye was said; else the end raises SSLEOFError."""
        while True:
            try:
                return self._tls.read(most)
            except ssl.SSLZeroReturnError:
                return b""
            except ssl.SSLWantReadError:
                await self._more()

    async def _more(self) -> None:
        data = await self._loop.sock_recv(self._sock, 65536)
        self.seen += data
        if data:
            self._in.write(data)
        else:
            self._in.write_eof()

    async def _flush(self) -> None:
        data = self._out.read()
        if data:
            await self._loop.sock_sendall(self._sock, data)
