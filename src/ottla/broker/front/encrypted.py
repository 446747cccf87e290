"""Listeners with TLS: their handshakes under way, and the connections that come of them."""

import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence

from ottla.broker.front.wrong_listener import advice
from ottla.metrics.counts import Traffic
from ottla.model.properties import Listener
from ottla.net.connection import ReadBudget, Scratch
from ottla.net.handshakes import HandshakeFailed, Handshakes, Spoke
from ottla.net.secured import Secured
from ottla.net.tls_connection import TlsBuffers, TlsConnection
from ottla.net.tls_listener import ListenerTls


class Encrypted:
    __slots__ = ("_budget", "_buffers", "_handshakes", "_listeners", "_loop", "_scratch")

    def __init__(
        self, loop: AbstractEventLoop, timeout_s: float, half_open: int, scratch: Scratch, budget: ReadBudget
    ) -> None:
        self._loop = loop
        self._scratch = scratch
        self._budget = budget
        self._buffers = TlsBuffers()
        self._handshakes = Handshakes(loop, timeout_s, half_open)
        self._listeners: dict[str, ListenerTls] = {}

    def add(self, listener_name: str, tls: ListenerTls) -> None:
        self._listeners[listener_name] = tls

    def of(self, listener_name: str) -> ListenerTls | None:
        return self._listeners.get(listener_name)

    def begin(
        self,
        sock: socket.socket,
        tls: ListenerTls,
        done: Callable[[Secured], None],
        failed: Callable[[HandshakeFailed], None],
    ) -> None:
        self._handshakes.begin(sock, tls.context, done, failed)

    def connection(self, secured: Secured, max_frame: int, traffic: Traffic) -> TlsConnection:
        return TlsConnection(secured, self._loop, self._scratch, self._budget, max_frame, traffic, self._buffers)

    def sentence(self, failure: HandshakeFailed, listener_name: str, listeners: Sequence[Listener]) -> str | None:
        """What to say of it, or None: who connects and says nothing asks whether somebody listens."""
        if failure.spoke is Spoke.NOTHING and not failure.late:
            return None
        if failure.spoke in (Spoke.TLS, Spoke.NOTHING):
            return f"no TLS on the listener {listener_name}: {failure}"
        return f"{failure} to the listener {listener_name}, {advice(listener_name, listeners, encrypted=False)}"

    def close(self) -> None:
        self._handshakes.close()
