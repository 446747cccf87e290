"""Where the replicas of new partitions go: striped over racks and brokers, as Kafka's StripedReplicaPlacer does.

Kafka throws dice for the starting point; here it is an argument, which callers derive from the topic's id. The dice for
the order after each round of all brokers grow from it, too: without them the same broker would always be the next in
line after another, and inherit everything when that one dies.
"""

from collections.abc import Container, Iterable, Sequence
from typing import TypeVar

from ottla.controller.refusal import Refusal
from ottla.metadata.image import BrokerRegistration
from ottla.model.errors import Errors

T = TypeVar("T")


class _Dice:
    """Knuth's linear congruential generator: the same throws for the same start, on every node."""

    __slots__ = ("_state",)

    def __init__(self, start: int) -> None:
        self._state = start

    def below(self, limit: int) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self._state >> 33) % limit

    def shuffle(self, items: list[T]) -> None:
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]


class _Stripe:
    """Brokers of one rack and one state in turn, each round starting one further."""

    __slots__ = ("_brokers", "_index", "_offset", "_round")

    def __init__(self, brokers: Sequence[int], start: int) -> None:
        self._brokers = sorted(brokers)
        self._offset = start % len(brokers) if brokers else 0
        self._index = 0
        self._round = 0

    def shuffle(self, dice: _Dice) -> None:
        dice.shuffle(self._brokers)

    def next(self, round_: int) -> int | None:
        if not self._brokers:
            return None
        if self._round != round_:
            self._round = round_
            self._index = 0
            self._offset = (self._offset + 1) % len(self._brokers)
        if self._index >= len(self._brokers):
            return None
        broker = self._brokers[(self._index + self._offset) % len(self._brokers)]
        self._index += 1
        return broker


class _Rack:
    __slots__ = ("_fenced", "_live")

    def __init__(self, brokers: Sequence[BrokerRegistration], start: int) -> None:
        self._live = _Stripe([b.id for b in brokers if not b.fenced], start)
        self._fenced = _Stripe([b.id for b in brokers if b.fenced], start)

    def shuffle(self, dice: _Dice) -> None:
        self._live.shuffle(dice)
        self._fenced.shuffle(dice)

    def next_live(self, round_: int) -> int | None:
        return self._live.next(round_)

    def next_any(self, round_: int) -> int | None:
        broker = self._live.next(round_)
        return self._fenced.next(round_) if broker is None else broker


def place(
    brokers: Iterable[BrokerRegistration], partitions: int, replication_factor: int, start: int
) -> list[tuple[int, ...]] | Refusal:
    """Replica lists for `partitions` new partitions; the first of each list is its preferred leader and is live."""
    usable = [b for b in brokers if not b.in_controlled_shutdown and _takes_replicas(b)]
    refusal = _refusal(usable, replication_factor)
    if refusal is not None:
        return refusal
    by_rack: dict[str, list[BrokerRegistration]] = {}
    for broker in usable:
        by_rack.setdefault(broker.rack or "", []).append(broker)
    racks = [_Rack(by_rack[name], start) for name in sorted(by_rack)]
    live = sum(not b.fenced for b in usable)
    dice = _Dice(start)
    placed = []
    for n in range(partitions):
        if n and live > 1 and n % live == 0:
            dice.shuffle(racks)
            for rack in racks:
                rack.shuffle(dice)
        placed.append(_place_one(racks, replication_factor, start + n, n))
    return placed


def _takes_replicas(broker: BrokerRegistration) -> bool:
    cordoned = broker.cordoned_log_dirs or ()
    return not broker.log_dirs or any(d not in cordoned for d in broker.log_dirs)


def _refusal(usable: Sequence[BrokerRegistration], replication_factor: int) -> Refusal | None:
    if all(b.fenced for b in usable):
        message = f"Replication factor {replication_factor} cannot be met: no broker is there to take a replica."
    elif replication_factor > len(usable):
        message = f"Replication factor {replication_factor} is larger than the number of brokers, {len(usable)}."
    else:
        return None
    return Refusal(Errors.INVALID_REPLICATION_FACTOR, message)


def _place_one(racks: Sequence[_Rack], replication_factor: int, offset: int, round_: int) -> tuple[int, ...]:
    """A leader from the first rack with a live broker, then one replica from each other rack in turn."""
    offset %= len(racks)
    chosen: list[int] = []
    leader_rack = offset
    while not chosen:
        leader = racks[leader_rack].next_live(round_)
        if leader is None:
            leader_rack = (leader_rack + 1) % len(racks)
        else:
            chosen.append(leader)
    at = offset
    skipped_leader_rack = False
    while len(chosen) < replication_factor:
        if at == leader_rack and not skipped_leader_rack:
            skipped_leader_rack = True
        else:
            broker = racks[at].next_any(round_)
            if broker is not None:
                chosen.append(broker)
        at = (at + 1) % len(racks)
    return tuple(chosen)


def why_misplaced(brokers: Container[int], replicas: Sequence[int]) -> str | None:
    """What is wrong with a replica list that somebody wrote by hand, as the end of a sentence about it."""
    if not replicas:
        return "has no replicas"
    unknown = [r for r in replicas if r not in brokers]
    if unknown:
        return f"names broker {unknown[0]}, which is not registered"
    return "names a broker more than once" if len(dict.fromkeys(replicas)) != len(replicas) else None
