"""Requests to other brokers, one at a time to each: what comes meanwhile shares the next one.

Who is fenced is not waited for: what it led is led by others by then, and a process that is stopped answers nothing and
breaks no connection, so its requests would only be told at their timeout.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from ottla.broker.replicas.replicas import Replicas
from ottla.broker.settings.configs import Configs
from ottla.net.peer import Address, Outcome, Peers, Unreachable
from ottla.protocol.codec import Message

Item = TypeVar("Item")


class Neighbours(NamedTuple):
    """The other brokers of the cluster, and how to reach them."""

    loop: AbstractEventLoop
    peers: Peers
    replicas: Replicas
    configs: Configs

    def address(self, broker_id: int) -> Address | None:
        broker = self.replicas.brokers.registered.get(broker_id)
        endpoint = None if broker is None else broker.listener(self.configs.settings.inter_broker_listener)
        return None if endpoint is None else Address(endpoint.host, endpoint.port)


class Courier(Generic[Item]):
    __slots__ = ("_build", "_deliver", "_lane", "_neighbours", "_on_the_way", "_waiting")

    def __init__(
        self,
        neighbours: Neighbours,
        lane: str,
        build: Callable[[list[Item]], Message],
        deliver: Callable[[list[Item], Outcome], None],
    ) -> None:
        """`build` makes one request of several items, `deliver` takes its answer apart again."""
        self._neighbours = neighbours
        self._lane = lane
        self._build = build
        self._deliver = deliver
        self._waiting: dict[int, list[Item]] = {}
        self._on_the_way: dict[int, list[Item]] = {}

    def post(self, broker_id: int, item: Item) -> None:
        """The answer never comes from inside this call."""
        waiting = self._waiting.setdefault(broker_id, [])
        waiting.append(item)
        if len(waiting) == 1 and broker_id not in self._on_the_way:
            self._neighbours.loop.call_soon(self._send, broker_id)

    def _send(self, broker_id: int) -> None:
        items = self._waiting.pop(broker_id, None)
        if not items:
            return
        address = self._neighbours.address(broker_id)
        if address is None:
            self._deliver(items, Unreachable(f"nobody knows where broker {broker_id} listens"))
            return
        if not self._neighbours.replicas.brokers.is_alive(broker_id):  # since it was posted, or since the last answer
            self._deliver(items, _fenced(broker_id))
            return
        self._on_the_way[broker_id] = items
        timeout_ms = self._neighbours.configs.settings.get_int("request.timeout.ms")
        self._neighbours.peers.send(
            address,
            self._build(items),
            lambda outcome: self._answered(broker_id, items, outcome),
            timeout_ms=timeout_ms,
            lane=self._lane,
        )

    def _answered(self, broker_id: int, items: list[Item], outcome: Outcome) -> None:
        if self._on_the_way.get(broker_id) is not items:
            return  # it was fenced meanwhile, and they were told so
        del self._on_the_way[broker_id]
        self._send(broker_id)
        self._deliver(items, outcome)

    def on_metadata(self) -> None:
        """Called after the replicas have heard of it."""
        brokers = self._neighbours.replicas.brokers
        for broker_id in [known for known in self._on_the_way if not brokers.is_alive(known)]:
            items = self._on_the_way.pop(broker_id) + self._waiting.pop(broker_id, [])
            self._deliver(items, _fenced(broker_id))


def _fenced(broker_id: int) -> Unreachable:
    return Unreachable(f"broker {broker_id} is fenced")
