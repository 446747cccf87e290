"""What is done to a cluster. Each fault strikes once, undoes itself, and tells when it began to hurt."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from tests.faults.cluster import FaultyCluster, Member
from tests.faults.disks import LoopDisk
from tests.faults.network import CLIENTS

DAY_S = 86_400


@dataclass(slots=True)
class Blow:
    """One strike of a fault."""

    fault: str
    story: str
    at: int
    """Monotonic nanoseconds: from here on clients may have had to wait."""


class Strike(Protocol):
    def __call__(self, cluster: FaultyCluster, topic: str, dice: random.Random) -> Blow: ...


class Fault(Protocol):
    name: ClassVar[str]
    needs: ClassVar[str]
    """"", "links", "disks" or "clocks": what the cluster must have been built with."""

    def strike(self, cluster: FaultyCluster, topic: str, dice: random.Random) -> Blow:
        """Returns when the fault is over; what it broke may still have to mend."""


def wait(dice: random.Random, low: float, high: float) -> None:
    time.sleep(dice.uniform(low, high))


def any_leader(cluster: FaultyCluster, topic: str, dice: random.Random) -> Member:
    """A node that leads something, so that its loss is felt."""
    leaders = sorted({leader for leader in cluster.leaders(topic).values() if leader > 0})
    return cluster.member(dice.choice(leaders)) if leaders else dice.choice(cluster.members)


def let_write(member: Member, topic: str) -> None:
    """A second; on a busy machine longer, until the node has been seen to write three times: what it wrote first may be
    on its way to the others. With acks=all it soon cannot write any more."""
    sizes: set[int] = set()
    began = time.monotonic()
    while (spent := time.monotonic() - began) < 1 or (len(sizes) < 4 and spent < 20):
        sizes.add(sum(path.stat().st_size for path in member.data.glob(f"{topic}-*/*.log")))
        time.sleep(0.05)


class Calm:
    """Nothing: a run needs stretches in which nothing happens, to tell what faults do."""

    name: ClassVar[str] = "none"
    needs: ClassVar[str] = ""

    def strike(self, cluster: FaultyCluster, topic: str, dice: random.Random) -> Blow:
        at = time.monotonic_ns()
        wait(dice, 2, 4)
        return Blow(self.name, "nothing", at)


class Kill:
    """kill -9 of one node, which comes back a while later."""

    name: ClassVar[str] = "kill"
    needs: ClassVar[str] = ""

    def strike(self, cluster: FaultyCluster, topic: str, dice: random.Random) -> Blow:
        victim = any_leader(cluster, topic, dice)
        at = time.monotonic_ns()
        victim.kill()
        wait(dice, 1, 4)
        victim.start()
        return Blow(self.name, f"node {victim.number}", at)


class KillAll:
    """kill -9 of all nodes at once. The page cache survives, so nothing may be lost."""

    name: ClassVar[str] = "killall"
    needs: ClassVar[str] = ""

    def strike(self, cluster: FaultyCluster, topic: str, dice: random.Random) -> Blow:
        at = time.monotonic_ns()
        for member in cluster.members:
            member.kill()
        for member in dice.sample(cluster.members, len(cluster.members)):
            member.start()
            wait(dice, 0, 0.5)
        return Blow(self.name, "all nodes", at)


class Pause:
    """SIGSTOP of a leader: to the others it is dead, to itself no time has passed when it goes on."""

    name: ClassVar[str] = "pause"
    needs: ClassVar[str] = ""
    seconds: ClassVar[tuple[float, float]] = (3, 15)

    def strike(self, cluster: FaultyCluster, topic: str, dice: random.Random) -> Blow:
        victim = any_leader(cluster, topic, dice)
        at = time.monotonic_ns()
        victim.pause()
        try:
            wait(dice, *self.seconds)
        finally:
            victim.resume()
        return Blow(self.name, f"node {victim.number}", at)


class Strand:
    """The last one writing: both followers are stopped, the leader is killed, the followers go on without it.

    What the leader alone had acknowledged (acks=1) is then lost for certain; what needed the others (acks=all) is not.
    """

    name: ClassVar[str] = "strand"
    needs: ClassVar[str] = ""

    def strike(self, cluster: FaultyCluster, topic: str, dice: random.Random) -> Blow:
        victim = any_leader(cluster, topic, dice)
        others = [member for member in cluster.members if member is not victim]
        at = time.monotonic_ns()
        for member in others:
            member.pause()
        try:
            let_write(victim, topic)
            victim.kill()
        finally:
            for member in others:
                member.resume()
        # Nobody may have an answer ready: that is not yet another leader.
        in_charge = lambda: victim.number not in (cluster.leaders(topic) or {0: victim.number}).values()  # noqa: E731
        cluster.wait("the others have taken over", in_charge)
        victim.start()
        return Blow(self.name, f"node {victim.number}", at)


class Rolling:
    """SIGTERM and a new start of each node in turn, as for an upgrade; the next goes when the last is in sync."""

    name: ClassVar[str] = "rolling"
    needs: ClassVar[str] = ""

    def strike(self, cluster: FaultyCluster, topic: str, dice: random.Random) -> Blow:
        at = time.monotonic_ns()
        for member in cluster.members:
            member.stop()
            member.start()
            cluster.wait("all replicas are in sync again", lambda: cluster.in_sync(topic))
        return Blow(self.name, "each node in turn", at)


Cuts = list[tuple[int, int]]


class Split:
    """Links are cut: one node from the others, a ring of them, one direction only, or a node from its clients."""

    name: ClassVar[str] = "partition"
    needs: ClassVar[str] = "links"

    def strike(self, cluster: FaultyCluster, topic: str, dice: random.Random) -> Blow:
        victim = any_leader(cluster, topic, dice).number
        others = [member.number for member in cluster.members if member.number != victim]
        kinds: dict[str, Callable[[int, list[int]], Cuts]] = {
            "from the others": self.isolate,
            "from the others and the clients": lambda v, o: self.isolate(v, [*o, CLIENTS]),
            "from one other": lambda v, o: self.isolate(v, o[:1]),
            "on its way out": lambda v, o: [(v, other) for other in o],
            "on its way in": lambda v, o: [(other, v) for other in o],
            "from the clients": lambda v, o: self.isolate(v, [CLIENTS]),
        }
        kind = dice.choice(sorted(kinds))
        at = time.monotonic_ns()
        for source, target in kinds[kind](victim, others):
            cluster.network.cut(source, target)
        try:
            wait(dice, 5, 15)
        finally:
            cluster.network.heal()
        return Blow(self.name, f"node {victim} cut off {kind}", at)

    @staticmethod
    def isolate(victim: int, others: list[int]) -> Cuts:
        return [(victim, other) for other in others] + [(other, victim) for other in others]


class DiskFull:
    """A node's disk is full for a while. A node that gives up is started again once there is room."""

    name: ClassVar[str] = "diskfull"
    needs: ClassVar[str] = "disks"

    def strike(self, cluster: FaultyCluster, topic: str, dice: random.Random) -> Blow:
        victim = any_leader(cluster, topic, dice)
        assert isinstance(victim.disk, LoopDisk)
        at = time.monotonic_ns()
        victim.disk.fill()
        try:
            wait(dice, 5, 10)
        finally:
            victim.disk.free()
        gave_up = not victim.alive
        if gave_up:
            victim.start()
        return Blow(self.name, f"node {victim.number}{', which gave up' if gave_up else ''}", at)


class PowerCut:
    """The plug of one node is pulled: all that it had not synced is gone."""

    name: ClassVar[str] = "powercut"
    needs: ClassVar[str] = "disks"

    def strike(self, cluster: FaultyCluster, topic: str, dice: random.Random) -> Blow:
        victim = any_leader(cluster, topic, dice)
        assert isinstance(victim.disk, LoopDisk)
        at = time.monotonic_ns()
        # Stopped first, so that it cannot tell anybody anything that its disk has not taken.
        victim.pause()
        victim.disk.cut_power()
        victim.kill()
        victim.disk.restore_power()
        wait(dice, 1, 4)
        victim.start()
        return Blow(self.name, f"node {victim.number}", at)


class ClockJump:
    """A node's wall clock is set to another hour or year, and back."""

    name: ClassVar[str] = "clock"
    needs: ClassVar[str] = "clocks"

    def strike(self, cluster: FaultyCluster, topic: str, dice: random.Random) -> Blow:
        victim = dice.choice(cluster.members)
        assert victim.clock is not None
        ahead = dice.choice([-365 * DAY_S, -3600, -60, 60, 3600, 365 * DAY_S])
        at = time.monotonic_ns()
        victim.clock.set(ahead)
        try:
            wait(dice, 3, 10)
        finally:
            victim.clock.set(0)
        return Blow(self.name, f"node {victim.number} by {ahead:+d} s", at)


FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        Calm(),
        Kill(),
        KillAll(),
        Pause(),
        Rolling(),
        Split(),
        DiskFull(),
        PowerCut(),
        ClockJump(),
        Strand(),
    )
}
