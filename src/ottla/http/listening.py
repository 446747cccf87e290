"""A port that is bound at once, and a server behind it that is loaded when somebody comes."""

import asyncio
import importlib
import logging
import socket
import ssl
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ottla.http.addresses import Address
from ottla.http.asgi import AsgiApplication

logger = logging.getLogger(__name__)

_BACKLOG = 128
_TURN_SECONDS = 0.0005
"""While modules are loaded in a thread: with the usual 5 ms the loop would wait that long after each call of the
system, ten times and more for one request."""


def opened(
    addresses: Sequence[Address],
    make: Callable[[Address], AsgiApplication],
    taken: Sequence[socket.socket] = (),
    tls: ssl.SSLContext | None = None,
) -> "Iterator[Listening]":
    """One after the other, so that who fails at the third has two to close: each address bound, or the port that
    somebody else has taken for it. `tls` is for those with https. Raises OSError when an address cannot be had."""
    for number, address in enumerate(addresses):
        listening = Listening(address, make, tls=tls if address.scheme == "https" else None)
        if taken:
            listening.adopt(taken[number])
        else:
            listening.open()
        yield listening


class Listening:
    """`open` binds, `start` serves on the running loop, `stop` ends it.

    `make` gives the application, and imports what it needs, when the first connection comes: it is called in a thread,
    so that the loop goes on meanwhile."""

    def __init__(
        self,
        address: Address,
        make: Callable[[Address], AsgiApplication],
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        assert (address.scheme == "https") == (tls is not None), f"{address} and its TLS context do not fit"
        self.address = address
        """With the port that was got, once it is open."""
        self._make = make
        self._tls = tls
        self._socket: socket.socket | None = None
        self._loading: asyncio.Task[None] | None = None
        self._server: Any = None

    def open(self) -> Address:
        """Raises OSError when the address cannot be had."""
        host = self.address.host
        family = socket.AF_INET6 if ":" in host or (not host and socket.has_dualstack_ipv6()) else socket.AF_INET
        bound = socket.create_server(
            (host, self.address.port),
            family=family,
            backlog=_BACKLOG,
            dualstack_ipv6=not host and family == socket.AF_INET6,
        )
        return self.adopt(bound)

    def adopt(self, bound: socket.socket) -> Address:
        """Instead of `open`, a port that somebody else has taken for us."""
        bound.setblocking(False)
        self._socket = bound
        self.address = self.address._replace(port=bound.getsockname()[1])
        return self.address

    def start(self) -> None:
        """Waits for the first connection, which stays in the backlog until there is a server."""
        assert self._socket is not None, "not open"
        asyncio.get_running_loop().add_reader(self._socket, self._first_came)

    async def start_now(self) -> None:
        """For a process whose work this is: the first client does not wait."""
        assert self._loading is None
        await self._load()

    def _first_came(self) -> None:
        assert self._socket is not None and self._loading is None
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._socket)
        self._loading = loop.create_task(self._load())
        self._loading.add_done_callback(self._loaded)

    async def _load(self) -> None:
        assert self._socket is not None
        self._server = await asyncio.to_thread(self._made)
        await self._server.start(self._socket)

    def _made(self) -> Any:
        usual = sys.getswitchinterval()
        sys.setswitchinterval(min(usual, _TURN_SECONDS))
        try:
            serving = importlib.import_module("ottla.http.serving")
            return serving.HttpServer(self._make(self.address), self._tls)
        finally:
            sys.setswitchinterval(usual)

    def _loaded(self, loading: "asyncio.Task[None]") -> None:
        if not loading.cancelled() and (error := loading.exception()) is not None:
            logger.error("%s cannot be served: %s", self.address, error, exc_info=error)
            self.abandon()  # clients are refused, and do not wait for an answer that will never come

    def abandon(self) -> None:
        """The end by force: sockets close, nobody is waited for."""
        if self._socket is None:
            return
        asyncio.get_running_loop().remove_reader(self._socket)
        if self._loading is not None:
            self._loading.cancel()
        if self._server is not None:
            self._server.abandon()
        self._socket.close()
        self._socket = self._server = self._loading = None

    async def stop(self) -> None:
        """May be called at any time, and twice."""
        if self._socket is None:
            return
        asyncio.get_running_loop().remove_reader(self._socket)
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait((self._loading,))
        if self._server is not None:
            await self._server.stop()
        self._socket.close()
        self._socket = self._server = self._loading = None
