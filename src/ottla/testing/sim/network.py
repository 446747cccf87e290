"""A network between simulated processes: connections with delay, resets and cuts, each direction in order as in TCP."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, Final, NamedTuple

from ottla.broker.front.dispatch import Routes
from ottla.broker.front.session import Session
from ottla.metrics.counts import Traffic
from ottla.model.properties import Listener
from ottla.net.connection import BY_OWNER
from ottla.net.peer import Address, Outcome, Refused, Then, Unreachable, ask
from ottla.protocol import messages
from ottla.protocol.apis import API
from ottla.protocol.codec import Message, Request, ResponseT_co
from ottla.protocol.frames import RequestHeader, decode_response_header, encode_request
from ottla.storage.answers import FileSlice
from ottla.testing.lent import lend
from ottla.testing.sim.loop import Life, SimLoop

Frame = bytes

REFUSED: Final = "connection refused"


class Weather(NamedTuple):
    """How bad the network is. Probabilities are per frame."""

    delay_low: float = 0.0002
    delay_high: float = 0.003
    slow: float = 0.01
    slow_seconds: float = 0.3
    reset: float = 0.0


CALM = Weather(slow=0.0)


class SimNetwork:
    def __init__(self, loop: SimLoop, dice: Random) -> None:
        self.loop = loop
        self.dice = dice
        self.weather = Weather()
        self.listening: dict[Address, Listening] = {}
        self._cut: dict[tuple[str, str], float] = {}
        """Sender and receiver, and since when."""
        self._links: dict[Link, None] = {}

    # ---- faults

    def cut(self, one: str, other: str) -> None:
        """Nothing passes from `one` to `other` until `heal`; what is sent meanwhile waits: TCP would send it again."""
        self._cut.setdefault((one, other), self.loop.time())

    def heal(self) -> None:
        cut, self._cut = self._cut, {}
        for link in list(self._links):
            for direction in link.directions:
                since = cut.get((direction.sender, direction.receiver))
                if since is not None:
                    # TCP waits longer with each try: a link that was cut for long is silent for as long again.
                    self.loop.call_later(self.dice.uniform(0, self.loop.time() - since), direction.heal)

    def is_cut(self, one: str, other: str) -> bool:
        return (one, other) in self._cut

    def reset_some(self) -> None:
        for link in list(self._links):
            if self.dice.random() < 0.3:
                link.break_off("reset")

    # ---- connections

    def connect(self, life: Life, to: Address, client: "Client") -> "Link":
        link = Link(self, life, to, client)
        self._links[link] = None
        self.loop.call_later(self.delay(), link.arrive)
        return link

    def forget(self, link: "Link") -> None:
        self._links.pop(link, None)

    def delay(self) -> float:
        weather = self.weather
        if self.dice.random() < weather.slow:
            return self.dice.uniform(0, weather.slow_seconds)
        return self.dice.uniform(weather.delay_low, weather.delay_high)


class Listening(NamedTuple):
    life: Life
    accept: "Callable[[Link], SimConnection]"


class Client(NamedTuple):
    received: Callable[[Frame], None]
    lost: Callable[[str], None]


class Direction:
    """One half of a connection: frames arrive in order, each after a delay, or wait while the way is cut."""

    __slots__ = ("_deliver", "_last", "_link", "_sent", "_waiting", "receiver", "sender")

    def __init__(self, link: "Link", sender: str, receiver: str, deliver: Callable[[Frame], None]) -> None:
        self._link = link
        self._deliver = deliver
        self._last = 0.0
        self._sent = 0
        self._waiting: list[tuple[int, Frame]] = []
        self.sender = sender
        self.receiver = receiver

    def send(self, frame: Frame) -> None:
        self._sent += 1
        self._travel(self._sent, frame)

    def _travel(self, number: int, frame: Frame) -> None:
        network = self._link.network
        if network.is_cut(self.sender, self.receiver) or self._waiting:
            self._waiting.append((number, frame))
            return
        if network.dice.random() < network.weather.reset:
            self._link.break_off("reset by the network")
            return
        # Later than the one before by a little: timers of the same moment run in no order.
        self._last = max(self._last + 1e-6, network.loop.time() + network.delay())
        network.loop.call_at(self._last, self._arrive, number, frame)

    def _arrive(self, number: int, frame: Frame) -> None:
        if self._link.network.is_cut(self.sender, self.receiver):
            self._waiting.append((number, frame))
        elif self._link.open:
            self._deliver(frame)

    def heal(self) -> None:
        waiting, self._waiting = sorted(self._waiting), []
        for number, frame in waiting:
            self._travel(number, frame)


class Link:
    """A connection from a client's life to a listener."""

    def __init__(self, network: SimNetwork, life: Life, to: Address, client: Client) -> None:
        self.network = network
        self.life = life
        self.to = to
        self.client = client
        self.open = True
        self.connection: SimConnection | None = None
        self.server: Life | None = None
        self._early: list[Frame] = []
        self._there: Direction | None = None
        self._back: Direction | None = None
        life.on_death.append(self._client_died)

    def arrive(self) -> None:
        """The connection request reaches the other side."""
        found = self.network.listening.get(self.to)
        if not self.open:
            return
        if found is None or not found.life.alive:
            self.break_off(REFUSED)
            return
        if self.network.is_cut(self.life.name, found.life.name):
            self.network.loop.call_later(0.5, self.arrive)
            return
        self.server = found.life
        self._there = Direction(self, self.life.name, found.life.name, self._to_server)
        self._back = Direction(self, found.life.name, self.life.name, self._to_client)
        found.life.on_death.append(self._server_died)
        self.connection = found.life.run(found.accept, self)
        early, self._early = self._early, []
        for frame in early:
            self._there.send(frame)

    def send(self, frame: Frame) -> None:
        if self._there is None:
            self._early.append(frame)
        else:
            self._there.send(frame)

    def send_back(self, frame: Frame) -> None:
        if self._back is not None and self.open:
            self._back.send(frame)

    @property
    def directions(self) -> "list[Direction]":
        return [direction for direction in (self._there, self._back) if direction is not None]

    def _to_server(self, frame: Frame) -> None:
        assert self.server is not None and self.connection is not None
        self.server.run(self.connection.deliver, frame)

    def _to_client(self, frame: Frame) -> None:
        self.life.run(self.client.received, frame)

    def _server_died(self) -> None:
        # The kernel of a killed process answers for it: the other side hears at once, if it can be reached.
        self.network.loop.call_later(self.network.delay(), self.break_off, "connection closed by the other side")

    def _client_died(self) -> None:
        self.network.loop.call_later(self.network.delay(), self.break_off, "the client is gone")

    def break_off(self, why: str) -> None:
        if not self.open:
            return
        if self.server is not None and (
            self.network.is_cut(self.server.name, self.life.name)
            or self.network.is_cut(self.life.name, self.server.name)
        ):
            self.network.loop.call_later(0.25, self.break_off, why)
            return
        self.open = False
        self.network.forget(self)
        self.life.run(self.client.lost, why)
        if self.connection is not None and self.server is not None:
            self.server.run(self.connection.lost)


class SimConnection:
    """The server's end, in place of a `net.connection.Connection`."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._paused = 0
        self._waiting: deque[Frame] = deque()
        self.session: Session | None = None
        self.out_bytes = 0
        self.last_active = link.network.loop.time()

    def seconds(self) -> float:
        return self._link.network.loop.time()

    def us_since(self, then: float) -> int:
        return int((self.seconds() - then) * 1_000_000)

    @property
    def closed(self) -> bool:
        return not self._link.open

    @property
    def reading_paused(self) -> bool:
        return self._paused != 0

    def pause_reading(self, reason: int = BY_OWNER) -> None:
        self._paused |= reason

    def resume_reading(self, reason: int = BY_OWNER) -> None:
        self._paused &= ~reason
        while self._waiting and not self._paused and self._link.open:
            self._hand_over(self._waiting.popleft())

    def deliver(self, frame: Frame) -> None:
        if self._paused:
            self._waiting.append(frame)
        else:
            self._hand_over(frame)

    def _hand_over(self, frame: Frame) -> None:
        assert self.session is not None
        self.last_active = self._link.network.loop.time()
        lend(memoryview(frame)[4:], self.session.frame_received)

    def send_bytes(self, data: bytes) -> None:
        self._link.send_back(data)

    def send(self, chunks: Iterable[Any]) -> None:
        self._link.send_back(
            b"".join(c.file.pread(c.length, c.position) if isinstance(c, FileSlice) else bytes(c) for c in chunks)
        )

    def close(self) -> None:
        if self._link.open:
            self._link.open = False
            self._link.network.forget(self._link)
            self._link.network.loop.call_later(
                self._link.network.delay(), self._link.life.run, self._link.client.lost, "closed by the other side"
            )
            self.lost()

    def lost(self) -> None:
        if self.session is not None:
            session, self.session = self.session, None
            session.connection_lost()


class SimServer:
    """The listeners of one simulated node: what a node takes for a `broker.front.server.Server`."""

    def __init__(self, network: SimNetwork, life: Life) -> None:
        self._network = network
        self._life = life
        self._bound: list[Address] = []
        self._sessions: dict[Session, None] = {}

    def bind(self, listener: Listener) -> tuple[Address, int]:
        address = Address(listener.host, listener.port)
        self._bound.append(address)
        return address, listener.port

    def serve(self, address: Address, listener_name: str, routes: Routes, services: Any) -> None:
        def accept(link: Link) -> SimConnection:
            connection = SimConnection(link)
            session = Session(
                connection,
                "127.0.0.1",
                listener_name,
                routes,
                services,
                self._network.loop,
                self._forget,
                f"User:{link.life.name}",  # as if it had shown a certificate
            )
            connection.session = session
            self._sessions[session] = None
            return connection

        self._network.listening[address] = Listening(self._life, accept)

    def _forget(self, session: Session) -> None:
        self._sessions.pop(session, None)
        if session.broker is not None and self._bound:
            session.services.control_plane.broker_disconnected(*session.broker, session)

    def close(self) -> None:
        for address in self._bound:
            self._network.listening.pop(address, None)
        self._bound.clear()
        for session in list(self._sessions):
            session.connection.close()


class SimPeers:
    """How a simulated process asks others: what a node takes for `net.peer.Peers`. Clients use it as well."""

    def __init__(self, network: SimNetwork, life: Life, name: str) -> None:
        self._network = network
        self._life = life
        self._name = name
        self._lanes: dict[tuple[Address, str], Lane] = {}
        self.traffic: dict[str, Traffic] = {}

    def send(self, to: Address, request: Message, then: Then, *, timeout_ms: int, lane: str = "") -> None:
        found = self._lanes.get((to, lane))
        if found is None or found.lost:
            found = self._lanes[to, lane] = Lane(self._network, self._life, to, self._name)
        found.send(request, then, timeout_ms)

    async def ask(
        self, to: Address, request: Request[ResponseT_co], *, timeout_ms: int, lane: str = ""
    ) -> ResponseT_co:
        return await ask(self, self._network.loop, to, request, timeout_ms=timeout_ms, lane=lane)

    def close(self) -> None:
        for lane in self._lanes.values():
            lane.close("this node is closing its connections")


class Asked(NamedTuple):
    request: Message
    version: int
    then: Then
    timer: asyncio.TimerHandle


class Lane:
    def __init__(self, network: SimNetwork, life: Life, to: Address, name: str) -> None:
        self._loop = network.loop
        self._name = name
        self._to = to
        self._asked: deque[Asked] = deque()
        self._next = 0
        self.lost = False
        self._link = network.connect(life, to, Client(self._received, self.close))

    def send(self, request: Message, then: Then, timeout_ms: int) -> None:
        version = API[request.API_KEY].stable_max
        frame = encode_request(RequestHeader(request.API_KEY, version, self._next, self._name), request)
        self._next += 1
        timer = self._loop.call_later(timeout_ms / 1000, self.close, f"no answer to {type(request).__name__}")
        self._asked.append(Asked(request, version, then, timer))
        self._link.send(frame)

    def _received(self, frame: Frame) -> None:
        if self.lost:
            return
        asked = self._asked.popleft()
        asked.timer.cancel()
        key = asked.request.API_KEY

        def answered(view: memoryview) -> None:
            _, body = decode_response_header(view, key, asked.version)
            asked.then(messages.response_class(key).decode(view, asked.version, body))

        lend(memoryview(frame)[4:], answered)

    def close(self, why: str) -> None:
        if self.lost:
            return
        self.lost = True
        self._link.break_off(why)
        kind = Refused if why == REFUSED else Unreachable
        problem: Outcome = kind(f"{self._to}: {why}")
        asked, self._asked = self._asked, deque()
        for each in asked:
            each.timer.cancel()
            self._loop.call_soon(each.then, problem)
