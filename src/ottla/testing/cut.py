"""Connections between nodes that can be cut: for tests of what happens when nodes no longer see each other."""

import asyncio

from ottla.net.peer import Address, SocketPeers, Then, Unreachable, ask
from ottla.protocol.codec import Message, Request, ResponseT_co


class CuttablePeers:
    """`SocketPeers` that lose what goes to some addresses: a request there is never answered, as behind a firewall that
    drops packets, so it times out."""

    def __init__(self, loop: asyncio.AbstractEventLoop, peers: SocketPeers) -> None:
        self._loop = loop
        self._peers = peers
        self.traffic = self._peers.traffic
        self._cut: frozenset[Address] = frozenset()

    def cut(self, addresses: frozenset[Address]) -> None:
        """From any thread. Answers that are under way to those addresses are lost as well."""
        self._loop.call_soon_threadsafe(self._set, addresses)

    def _set(self, addresses: frozenset[Address]) -> None:
        self._cut = addresses

    def send(self, to: Address, request: Message, then: Then, *, timeout_ms: int, lane: str = "") -> None:
        if to in self._cut:
            self._loop.call_later(timeout_ms / 1000, then, Unreachable(f"{to}: cut off"))
            return
        deadline = self._loop.time() + timeout_ms / 1000

        def arrived(outcome: Message | Unreachable) -> None:
            if to in self._cut:
                self._loop.call_at(deadline, then, Unreachable(f"{to}: cut off"))
            else:
                then(outcome)

        self._peers.send(to, request, arrived, timeout_ms=timeout_ms, lane=lane)

    async def ask(
        self, to: Address, request: Request[ResponseT_co], *, timeout_ms: int, lane: str = ""
    ) -> ResponseT_co:
        return await ask(self, self._loop, to, request, timeout_ms=timeout_ms, lane=lane)

    def close(self) -> None:
        self._peers.close()
