"""Asks after brokers whose connection to this controller broke, so that nobody waits for a dead one.

Where a process was killed, its host refuses connections. That is proof, while a broken connection is only a hint.
Whoever answers is on its way back. Whoever says nothing keeps its grace: it may be stopped, or behind a broken network.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from ottla.metadata.image import BrokerRegistration
from ottla.net.peer import Address, Outcome, Peers, Refused, Unreachable
from ottla.protocol import messages

_PAUSE_SECONDS: Final = 0.02
"""A process that is being killed may take connections for a moment longer, so it is asked again and again."""
_PATIENCE_MS: Final = 1000
_LANE: Final = "missing"


class Found(Protocol):
    def __call__(self, broker_id: int, broker_epoch: int, *, alive: bool) -> None: ...


class MissingBrokers:
    __slots__ = ("_asked", "_closed", "_found", "_listener", "_missing", "_peers")

    def __init__(
        self,
        peers: Peers,
        listener: str,
        *,
        missing: Callable[[], Iterable[BrokerRegistration]],
        found: Found,
    ) -> None:
        """`listener` is the one on which brokers reach each other."""
        self._peers = peers
        self._listener = listener
        self._missing = missing
        self._found = found
        self._asked: dict[int, int] = {}
        """Broker id to epoch, of those whose answer is awaited."""
        self._closed = False

    def look(self) -> None:
        """Asks every missing broker, until it is back or fenced."""
        if self._closed:
            return
        for broker in self._missing():
            endpoint = broker.listener(self._listener)
            if endpoint is not None and broker.id not in self._asked:
                self._asked[broker.id] = broker.epoch
                self._ask(broker.id, Address(endpoint.host, endpoint.port))

    def close(self) -> None:
        self._closed = True

    def _ask(self, broker_id: int, address: Address) -> None:
        self._peers.send(
            address,
            messages.MetadataRequest(topics=[], allow_auto_topic_creation=False),
            lambda outcome: self._answered(broker_id, outcome),
            timeout_ms=_PATIENCE_MS,
            lane=_LANE,
        )

    def _answered(self, broker_id: int, outcome: Outcome) -> None:
        epoch = self._asked.pop(broker_id)
        if self._closed:
            return
        if isinstance(outcome, Refused):
            self._found(broker_id, epoch, alive=False)
            return
        if not isinstance(outcome, Unreachable):
            self._found(broker_id, epoch, alive=True)
        asyncio.get_running_loop().call_later(_PAUSE_SECONDS, self.look)
