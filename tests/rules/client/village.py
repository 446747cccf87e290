"""Members of one group around the real coordinator's core, and a network that loses, delays and doubles.

Time is a number; what happens next is taken from a heap. Owners are eager: when told to prepare they give up their
part, sooner or later, before they join.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from typing import Any

from ottla.client.membership import (
    Assigned,
    Effect,
    Failed,
    Left,
    Lost,
    MemberSettings,
    Membership,
    Peer,
    Prepare,
    Send,
    State,
)
from ottla.coordinator.group.caller import Caller
from ottla.protocol import messages
from ottla.protocol.codec import Message
from tests.rules.coordinator.group.scene import Scene, Waiting

PARTS = 12
SETTINGS = MemberSettings("g", "connect", session_timeout_ms=10_000, rebalance_timeout_ms=30_000)
LONGEST_DELAY_MS = 15_000


def shares(protocol: str, peers: Sequence[Peer]) -> dict[str, bytes]:
    """Everything is somebody's."""
    names = sorted(peer.member_id for peer in peers)
    return {name: bytes(range(PARTS))[index :: len(names)] for index, name in enumerate(names)}


class Villager:
    def __init__(self, village: Village, name: str, instance_id: str | None) -> None:
        self.village = village
        self.name = name
        self.core = Membership(SETTINGS._replace(instance_id=instance_id), shares)
        self.part: Assigned | None = None
        self.ended: Effect | None = None
        self.crashed = False

    def perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            self._perform(effect)
        self.village.watch()
        at = self.core.next_tick_ms()
        if at is not None:
            self.village.at(at, self._tick)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Send():
                self.village.send(self, effect)
            case Prepare(number):
                slow = self.village.dice.random() < self.village.weather
                self.village.later(self.village.dice.randrange(40_000 if slow else 500), lambda: self._ready(number))
            case Assigned():
                self.part = effect
            case Lost():
                self.part = None
            case Left() | Failed():
                self.part, self.ended = None, effect

    def leave(self) -> None:
        self.part = None
        self.perform(self.core.leave(self.village.now))

    def _ready(self, number: int) -> None:
        if not self.crashed:
            effects = self.core.ready(number, [("mine", self.name.encode())], self.village.now)
            self.part = None if effects else self.part
            self.perform(effects)

    def _tick(self) -> None:
        at = self.core.next_tick_ms()
        if not self.crashed and at is not None and at <= self.village.now:
            self.perform(self.core.tick(self.village.now))

    def heard(self, number: int, answer: Message | None) -> None:
        if self.crashed:
            return
        now = self.village.now
        self.perform(self.core.unanswered(number, now) if answer is None else self.core.answered(number, answer, now))


class Village:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.scene = Scene(initial_rebalance_delay=3_000)
        self.members: list[Villager] = []
        self.weather = 0.0
        """How likely it is that a message gets lost, or comes twice."""
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = 0
        self._parked: list[tuple[Waiting, Callable[[Message | None], None]]] = []

    @property
    def now(self) -> int:
        return self.scene.now

    # What happens.

    def move_in(self, instance_id: str | None = None) -> Villager:
        member = Villager(self, f"m{len(self.members)}", instance_id)
        self.members.append(member)
        member.perform(member.core.start(self.now))
        return member

    def coordinator_moves(self) -> None:
        """Another broker reads the log; who waited for the old one's answer hears that the connection broke."""
        self.scene.restart()
        parked, self._parked = self._parked, []
        for _, answer in parked:
            answer(None)

    def run(self, millis: int) -> None:
        end = self.now + millis
        while True:
            upcoming = [at for at in (self._events[0][0] if self._events else None, self.scene.shard.next_tick()) if at]
            at = max(min(upcoming, default=end), self.now)
            if at > end:
                break
            self.scene.pass_time(at - self.now)
            self._answer_parked()
            if self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()
            elif not upcoming or at == end:
                break
        self.scene.pass_time(end - self.now)
        self._answer_parked()

    # What is seen.

    def living(self) -> list[Villager]:
        return [member for member in self.members if not member.crashed and member.ended is None]

    def watch(self) -> None:
        """Nothing is held by two at once, whatever the network does. Two that claim one instance id may, until the next
        heartbeat of the older one: that is a mistake of whoever started them."""
        instances = [member.core.settings.instance_id for member in self.living()]
        if any(instances.count(each) > 1 for each in instances if each is not None):
            return
        held = [part for member in self.living() if member.part is not None for part in member.part.assignment]
        assert len(held) == len(set(held)), [(member.name, member.part) for member in self.living()]

    def settled(self) -> bool:
        living = self.living()
        parts = [member.part for member in living]
        return (
            all(member.core.state is State.STABLE for member in living)
            and len({part.generation for part in parts if part}) == 1
            and sum(part.leads for part in parts if part) == 1
            and sorted(index for part in parts if part for index in part.assignment) == list(range(PARTS))
        )

    # The clock and the network.

    def at(self, millis: int, action: Callable[[], None]) -> None:
        self._numbers += 1
        heapq.heappush(self._events, (max(millis, self.now), self._numbers, action))

    def later(self, millis: int, action: Callable[[], None]) -> None:
        self.at(self.now + millis, action)

    def _travel(self) -> int:
        return self.dice.randrange(1, LONGEST_DELAY_MS) if self.dice.random() < self.weather else 1

    def send(self, member: Villager, sent: Send) -> None:
        self.later(sent.patience_ms, lambda: member.heard(sent.number, None))
        if self.dice.random() < self.weather:
            return

        def answer(message: Message | None) -> None:
            if self.dice.random() < self.weather:
                return
            for _ in range(2 if self.dice.random() < self.weather else 1):
                self.later(self._travel(), lambda: member.heard(sent.number, message))

        self.later(self._travel(), lambda: self._arrive(sent.make(9), answer))

    def _arrive(self, request: Message, answer: Callable[[Message | None], None]) -> None:
        reply = self._asked(request)
        if isinstance(reply, Waiting):
            self._parked.append((reply, answer))
        else:
            answer(reply)
        self._answer_parked()

    def _asked(self, request: Message) -> Any:
        scene, shard = self.scene, self.scene.shard
        match request:
            case messages.JoinGroupRequest():
                return scene.take(shard.join(request, Caller("client", "/host", 9), scene.time))
            case messages.SyncGroupRequest():
                return scene.take(shard.sync(request, scene.time))
            case messages.HeartbeatRequest():
                return scene.take(shard.heartbeat(request, scene.time))
            case messages.LeaveGroupRequest():
                return scene.take(shard.leave(request, scene.time))
        raise AssertionError(request)

    def _answer_parked(self) -> None:
        parked, self._parked = self._parked, []
        for waiting, answer in parked:
            if waiting.answer is None:
                self._parked.append((waiting, answer))
            else:
                answer(waiting.answer)
