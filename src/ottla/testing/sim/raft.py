"""The quorum's core under a seed: one to five voters and some observers, a bad network, bad disks, bad clocks.

One heap of events, one clock. Messages are lost, late, out of order and doubled, links break in one direction, nodes
crash in the middle of their effects and lose what was not synced, disks are replaced, voters come and go. After every
event the checkers have looked at what happened; in the end everything heals, and the quorum must find together.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any, NamedTuple

from ottla.model.errors import Errors
from ottla.model.ids import Uuid
from ottla.protocol import messages
from ottla.raft.core import Quorum, Timing
from ottla.raft.election import ElectionState
from ottla.raft.exchange import (
    AddVoterRequest,
    Advance,
    Append,
    AppendControl,
    Effect,
    FetchResponse,
    FetchSnapshotResponse,
    InstallSnapshot,
    Persist,
    RemoveVoterRequest,
    Reply,
    Request,
    Response,
    Send,
    StoreSnapshot,
    Truncate,
    VersionsRequest,
    VersionsResponse,
)
from ottla.raft.roles import NEVER, Leader
from ottla.raft.snapshots import SnapshotId
from ottla.raft.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet, voters_of
from ottla.testing.sim.raft_checkers import ALL, Checker, Violation
from ottla.testing.sim.raft_log import SimLog, SimSnapshot

TIMING = Timing(max_wait_ms=500, fetch_max_bytes=8, snapshot_max_bytes=10, auto_join=True)
HEALING_MS = 10 * 2 * TIMING.election_timeout_ms
"""Ten election timeouts, each at its longest."""
_ADMIN = "admin"
_EVERYONE_MS = 60_000


class Faults(NamedTuple):
    """How bad the world is, drawn from the seed."""

    loss: float
    duplicates: float
    delay_ms: int
    fsync_ms: int
    chaos_ms: int
    """Mean pause between two blows."""
    append_ms: int
    mid_effect_crash: float
    voter_crash: float
    """How often a node that has just voted crashes and is back while the election goes on."""

    @classmethod
    def drawn(cls, dice: Random) -> "Faults":
        pick = dice.random()
        return cls(
            loss=dice.choice((0.0, 0.02, 0.1, 0.3)) if pick < 0.8 else 0.0,
            duplicates=dice.choice((0.0, 0.05, 0.5)),
            delay_ms=dice.choice((2, 20, 200, 2000)) if pick < 0.5 else dice.choice((2, 10)),
            fsync_ms=dice.choice((1, 5, 50, 3000)) if pick < 0.3 else dice.choice((1, 5)),
            chaos_ms=dice.choice((150, 400, 1500)),
            append_ms=dice.choice((5, 40, 200)),
            mid_effect_crash=dice.choice((0.0, 0.0, 0.0005)),
            voter_crash=dice.choice((0.0, 0.1, 0.5)),
        )


class SimNode:
    __slots__ = (
        "clock",
        "directory",
        "downloads",
        "election",
        "flushing",
        "id",
        "in_flight",
        "incarnation",
        "key",
        "led",
        "local",
        "log",
        "quorum",
        "rate",
        "timer_at",
    )

    def __init__(self, node_id: int, voters: VoterSet | None, *, dynamic: bool) -> None:
        self.id = node_id
        self.directory = 0
        self.incarnation = 0
        self.rate = 100
        """Percent of the world's time that passes here."""
        self.clock = (0, 0)
        """The world's time and the time here when the rate was set."""
        self.log = SimLog()
        if dynamic and voters is not None:
            self.log.history.restart(-1, voters, 1)
        elif voters is not None:
            self.log.history.use_static(voters)
        self.election = ElectionState()
        self.quorum: Quorum | None = None
        self.timer_at = NEVER
        self.flushing = -1
        """The end of the log that the disk is working on; -1 when it is idle."""
        self.in_flight: dict[int, Send] = {}
        self.led = -1
        """The last epoch it was seen to lead."""
        self.downloads: dict[SnapshotId, SimSnapshot] = {}
        self.name_disk()

    def name_disk(self) -> None:
        self.key = ReplicaKey(self.id, _directory(self.id, self.directory))
        self.local = Voter(*self.key, (_endpoint(self.id),))


def _directory(node_id: int, disk: int) -> Uuid:
    return Uuid((node_id * 1000 + disk + 1).to_bytes(16, "big"))


def _endpoint(node_id: int) -> VoterEndpoint:
    return VoterEndpoint("C", "sim", node_id)


class Agenda:
    """What happens when. Of what is due at one time the first that was added comes first."""

    __slots__ = ("_numbered", "heap")

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbered = 0

    def number(self) -> int:
        self._numbered += 1
        return self._numbered

    def add(self, at: int, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        heappush(self.heap, (at, self.number(), action, arguments))


class World:
    """One seed. `run` raises Violation; `trace` is a hash of all that happened."""

    def __init__(self, seed: int, *, checkers: tuple[type[Checker], ...] = ALL) -> None:
        self.seed = seed
        self.dice = Random(seed)
        self.now = 0
        self.events = 0
        self.trace = 0
        self._agenda = Agenda()
        self._value = 0
        self.dynamic = self.dice.random() < 0.6
        self.faults = Faults.drawn(self.dice)
        self._healthy = False
        self._cut: dict[tuple[int, int], bool] = {}
        self.nodes: dict[int, SimNode] = {}
        self._lost_disks: dict[ReplicaKey, SimLog] = {}
        self.seen = dict.fromkeys(("elections", "truncations", "snapshots", "voter changes", "replaced disks"), 0)
        """How often what was meant to happen has happened."""
        self._checkers = [kind(self) for kind in checkers]
        self._hooks = {name: self._hooks_for(name) for name in _HOOKS}
        self._perform: dict[type, Callable[[SimNode, Any], None]] = {
            Send: self._send,
            Reply: self._reply,
            Advance: self._advance,
            Persist: self._persist,
            Append: self._append,
            AppendControl: self._append_control,
            Truncate: self._truncate,
            StoreSnapshot: self._store_snapshot,
            InstallSnapshot: self._install_snapshot,
        }
        self._build()

    def _hooks_for(self, name: str) -> list[Callable[..., None]]:
        return [getattr(c, name) for c in self._checkers if getattr(type(c), name) is not getattr(Checker, name)]

    def _build(self) -> None:
        dice = self.dice
        count = dice.choice((1, 2, 3, 3, 3, 4, 5, 5))
        observers = dice.choice((0, 0, 1, 2))
        voters = VoterSet(
            tuple(
                Voter(i, _directory(i, 0) if self.dynamic else Uuid(bytes(16)), (_endpoint(i),))
                for i in range(1, count + 1)
            )
        )
        for node_id in range(1, count + observers + 1):
            # A dynamic observer begins with an empty log and somebody's address, as a new node does.
            known = voters if node_id <= count or not self.dynamic else None
            node = self.nodes[node_id] = SimNode(node_id, known, dynamic=self.dynamic)
            node.rate = dice.choice((50, 90, 100, 100, 110, 200))
            self._start(node)
        self._later(self.faults.chaos_ms, self._chaos)
        self._later(self.faults.append_ms, self._client)

    def draw(self, low: int, high: int) -> int:
        return low + int(self.dice.random() * (high - low + 1))

    # Time

    def _later(self, delay: int, action: Callable[..., None], *arguments: object) -> None:
        self._agenda.add(self.now + delay, action, arguments)

    def run(self, events: int) -> None:
        heap = self._agenda.heap
        limit = self.events + events
        while self.events < limit:
            self.now, _, action, arguments = heappop(heap)
            self.events += 1
            action(*arguments)

    def run_for(self, duration: int, *, until: Callable[[], bool] | None = None) -> bool:
        end = self.now + duration
        heap = self._agenda.heap
        while heap and heap[0][0] <= end:
            self.now, _, action, arguments = heappop(heap)
            self.events += 1
            action(*arguments)
            if until is not None and self.events % 16 == 0 and until():
                return True
        self.now = end
        return until is not None and until()

    def time_at(self, node: SimNode) -> int:
        since, base = node.clock
        return base + (self.now - since) * node.rate // 100

    # One node

    def _start(self, node: SimNode) -> None:
        node.incarnation += 1
        node.timer_at = NEVER
        node.flushing = -1
        node.in_flight = {}
        node.downloads = {}
        everyone = tuple((_endpoint(i),) for i in sorted(self.nodes) if i != node.id)
        static = any(v.id == node.id for v in node.log.history.voters.voters)
        node.quorum = Quorum(
            node.local,
            node.log,
            election=node.election,
            draw=self.draw,
            now=self.time_at(node),
            timing=TIMING,
            bootstrap=everyone or ((_endpoint(1),),),
            can_vote=self.dynamic or static,
        )
        for hook in self._hooks["restarted"]:
            hook(node)
        self._flush(node)
        self._carry_out(node, node.quorum.tick(self.time_at(node)))

    def crash(self, node: SimNode) -> None:
        if node.quorum is None:
            return
        node.quorum = None
        node.log.crash(self.draw)
        for other in self.nodes.values():
            if other.quorum is not None:
                for number, sent in list(other.in_flight.items()):
                    if sent.to[0].port == node.id:
                        self._later(self.draw(1, 5), self._answer, other, other.incarnation, number, None)

    def _carry_out(self, node: SimNode, effects: list[Effect]) -> None:
        perform, chance = self._perform, self.faults.mid_effect_crash
        quorum = node.quorum
        assert quorum is not None
        for effect in effects:
            if chance and not self._healthy and self.dice.random() < chance:
                self.crash(node)
            if node.quorum is not quorum:
                return
            perform[type(effect)](node, effect)
        if node.quorum is not quorum:
            return
        role = quorum.role
        self.trace = (self.trace * 31 + node.id * 7 + role.epoch + quorum.high_watermark) & 0xFFFFFFFFFFFF
        if type(role) is Leader and node.led != role.epoch:
            node.led = role.epoch
            self.seen["elections"] += 1
            for hook in self._hooks["became_leader"]:
                hook(node, role)
        due = quorum.deadline()
        if due < node.timer_at:
            node.timer_at = due
            since, base = node.clock
            at = max(since + (due - base) * 100 // node.rate + 1, self.now + 1)
            self._agenda.add(at, self._tick, (node, node.incarnation, due))

    def _tick(self, node: SimNode, incarnation: int, due: int) -> None:
        if node.quorum is None or node.incarnation != incarnation or node.timer_at != due:
            return
        node.timer_at = NEVER
        self._carry_out(node, node.quorum.tick(self.time_at(node)))

    def _log_changed(self, node: SimNode) -> None:
        if node.quorum is not None:
            self._carry_out(node, node.quorum.log_changed(self.time_at(node)))

    # Its disk

    def _persist(self, node: SimNode, effect: Persist) -> None:
        node.election = effect.state
        if effect.state.voted_id >= 0 and not self._healthy and self.dice.random() < self.faults.voter_crash:
            self._later(self.draw(0, 20), self._blink, node)
        for hook in self._hooks["persisted"]:
            hook(node, effect.state)

    def _append(self, node: SimNode, effect: Append) -> None:
        records: Any = effect.records
        base, entries = records
        log = node.log
        hooks = self._hooks["appended"]
        assert base == log.end_offset, "the leader answers from where it was asked"
        for entry in entries:
            log.put(entry)
            for hook in hooks:
                hook(node, log.end_offset - 1)
        self._flush(node)
        self._log_changed(node)

    def _append_control(self, node: SimNode, effect: AppendControl) -> None:
        voters = next((voters_of(r) for r in effect.records if isinstance(r, messages.VotersRecord)), None)
        self.seen["voter changes"] += voters is not None
        self._append_own(node, effect.epoch, voters if voters is not None else 0)

    def _append_own(self, node: SimNode, epoch: int, value: object) -> None:
        node.log.append(epoch, value)
        for hook in self._hooks["appended"]:
            hook(node, node.log.end_offset - 1)
        self._flush(node)
        self._log_changed(node)

    def _truncate(self, node: SimNode, effect: Truncate) -> None:
        for hook in self._hooks["truncated"]:
            hook(node, effect.offset)
        node.log.truncate_to(effect.offset)
        self.seen["truncations"] += 1
        self._flush(node)
        self._log_changed(node)

    def _flush(self, node: SimNode) -> None:
        if node.flushing >= 0:
            return
        log = node.log
        node.flushing = log.end_offset
        wait = 1 if self._healthy else self.draw(0, self.faults.fsync_ms)
        self._later(wait, self._flushed, node, node.incarnation, log.end_offset, log.generation)

    def _flushed(self, node: SimNode, incarnation: int, end: int, generation: int) -> None:
        if node.quorum is None or node.incarnation != incarnation:
            return
        node.flushing = -1
        log = node.log
        log.synced(end, generation)
        if log.flushed < log.end_offset:
            self._flush(node)
        self._log_changed(node)

    def _advance(self, node: SimNode, effect: Advance) -> None:
        for hook in self._hooks["advanced"]:
            hook(node, effect.offset)

    def _store_snapshot(self, node: SimNode, effect: StoreSnapshot) -> None:
        if effect.is_last:
            # A snapshot is larger than a batch: much can happen until it is on the disk.
            slow = not self._healthy and self.dice.random() < 0.4
            wait = self.draw(0, 4000 if slow else self.faults.fsync_ms)
            self._later(wait, self._snapshot_stored, node, node.incarnation, effect.id)

    def _snapshot_stored(self, node: SimNode, incarnation: int, snapshot: SnapshotId) -> None:
        if node.quorum is not None and node.incarnation == incarnation:
            self._carry_out(node, node.quorum.snapshot_stored(snapshot, self.time_at(node)))

    def _install_snapshot(self, node: SimNode, effect: InstallSnapshot) -> None:
        quorum = node.quorum
        if quorum is not None and type(quorum.role) is Leader:
            raise Violation(f"node {node.id} leads and loads a snapshot")
        if quorum is not None and effect.id.offset < quorum.high_watermark:
            raise Violation(f"node {node.id} loads {effect.id}, behind its {quorum.high_watermark}")
        node.log.install(node.downloads[effect.id])
        self.seen["snapshots"] += 1
        self._log_changed(node)

    # The network

    def _send(self, node: SimNode, effect: Send) -> None:
        request = effect.request
        for hook in self._hooks["sending"]:
            hook(node, request)
        number = self._agenda.number()
        node.in_flight[number] = effect
        to = effect.to[0].port
        target = self.nodes.get(to)
        chance = 1.0 if self._healthy else self.dice.random()
        if target is None or target.quorum is None:
            self._later(1, self._answer, node, node.incarnation, number, None)
        elif chance < self.faults.loss or (self._cut and (node.id, to) in self._cut):
            # Some connections break at once, others only fall silent.
            wait = self.draw(1, 5) if self.dice.random() < 0.5 else TIMING.request_timeout_ms
            self._later(wait, self._answer, node, node.incarnation, number, None)
        else:
            wait = 1 if self._healthy else self.draw(0, self.faults.delay_ms)
            self._later(wait, self._deliver, target, node, node.incarnation, number, request)
            if not self._healthy and self.dice.random() < self.faults.duplicates:
                again = self.draw(0, 4 * self.faults.delay_ms)
                self._later(again, self._deliver, target, node, node.incarnation, number, request)

    def _deliver(self, target: SimNode, sender: SimNode, incarnation: int, number: int, request: Request) -> None:
        quorum = target.quorum
        if quorum is None:
            self._later(1, self._answer, sender, incarnation, number, None)
        elif type(request) is VersionsRequest:
            self._later(1, self._answer, sender, incarnation, number, _VERSIONS)
        else:
            token = (sender, incarnation, number, request)
            self._carry_out(target, quorum.request(request, token, self.time_at(target)))

    def _reply(self, node: SimNode, effect: Reply) -> None:
        token: Any = effect.token
        response = effect.response
        if token is _ADMIN:
            return
        sender, incarnation, number, request = token
        for hook in self._hooks["replying"]:
            hook(node, request, response)
        if effect.read_from >= 0:
            response = self._filled(node, effect, sender)
        healthy = self._healthy
        lost = not healthy and self.dice.random() < self.faults.loss
        if lost or (self._cut and (node.id, sender.id) in self._cut):
            self._later(TIMING.request_timeout_ms, self._answer, sender, incarnation, number, None)
            return
        wait = 1 if healthy else self.draw(0, self.faults.delay_ms)
        self._later(wait, self._answer, sender, incarnation, number, response)
        if not healthy and self.dice.random() < self.faults.duplicates:
            self._later(self.draw(0, 2 * self.faults.delay_ms), self._answer, sender, incarnation, number, response)

    def _filled(self, node: SimNode, effect: Reply, sender: SimNode) -> Response:
        response = effect.response
        if type(response) is FetchResponse:
            return response._replace(records=node.log.read(effect.read_from, effect.max_bytes))
        assert isinstance(response, FetchSnapshotResponse)
        found = next(s for s in node.log.snapshots if s.id == response.snapshot)
        sender.downloads[found.id] = found
        return response._replace(data=bytes(min(effect.max_bytes, response.size - effect.read_from)))

    def _answer(self, sender: SimNode, incarnation: int, number: int, response: Response | None) -> None:
        if sender.quorum is None or sender.incarnation != incarnation:
            return
        sent = sender.in_flight.pop(number, None)
        if sent is not None:
            node_id = sent.node_id
            self._carry_out(sender, sender.quorum.response(node_id, sent.request, response, self.time_at(sender)))

    # The world

    def _client(self) -> None:
        """Somebody writes to whoever leads."""
        self._later(5 if self._healthy else self.draw(0, 2 * self.faults.append_ms), self._client)
        self._value += 1
        for node in self.nodes.values():
            quorum = node.quorum
            if quorum is not None and quorum.is_active:
                self._append_own(node, quorum.epoch, self._value)

    def _chaos(self) -> None:
        if self._healthy:
            return
        self._later(self.draw(1, 2 * self.faults.chaos_ms), self._chaos)
        for node in self.nodes.values():
            if node.quorum is not None:
                for hook in self._hooks["looked_at"]:
                    hook(node, self.time_at(node))
        action = self.dice.choice(_BLOWS)
        getattr(self, action)(self.nodes[self.draw(1, len(self.nodes))])

    def _blow_crash(self, node: SimNode) -> None:
        self.crash(node)
        self._later(self.draw(1, 4000), self._blow_restart, node)

    def _blink(self, node: SimNode) -> None:
        if not self._healthy:
            self.crash(node)
            self._later(self.draw(0, 20), self._blow_restart, node)

    def _blow_crash_leader(self, node: SimNode) -> None:
        for other in self.nodes.values():
            if other.quorum is not None and type(other.quorum.role) is Leader:
                self._blow_crash(other)
                return

    def _blow_crash_everyone(self, node: SimNode) -> None:
        if self.dice.random() < 0.2:
            for other in self.nodes.values():
                self._blow_crash(other)

    def _blow_restart(self, node: SimNode) -> None:
        if node.quorum is None:
            self._start(node)

    def _blow_cut(self, node: SimNode) -> None:
        other = self.draw(1, len(self.nodes))
        self._cut[(node.id, other)] = True
        if self.dice.random() < 0.5:
            self._cut[(other, node.id)] = True

    def _blow_isolate(self, node: SimNode) -> None:
        for other in self.nodes:
            self._cut[(node.id, other)] = True
            if self.dice.random() < 0.8:
                self._cut[(other, node.id)] = True

    def _blow_mend(self, node: SimNode) -> None:
        self._cut.clear()

    def _blow_snapshot(self, node: SimNode) -> None:
        quorum = node.quorum
        if quorum is not None and quorum.high_watermark > node.log.start_offset + 2:
            back = min(self.draw(0, 5), quorum.high_watermark - node.log.start_offset - 1)
            node.log.take_snapshot(quorum.high_watermark - back)
            self._log_changed(node)

    def _blow_snapshot_by_leader(self, node: SimNode) -> None:
        """Whoever lags behind needs it."""
        leading = self._leading()
        if leading is not None:
            self._blow_snapshot(leading)

    def _blow_resign(self, node: SimNode) -> None:
        if node.quorum is not None:
            self._carry_out(node, node.quorum.resign(self.time_at(node)))

    def _leading(self) -> SimNode | None:
        leading = [n for n in self.nodes.values() if n.quorum is not None and n.quorum.is_active]
        return max(leading, key=lambda n: n.quorum.epoch if n.quorum is not None else -1, default=None)

    def _ask_leader(self, request: Request) -> None:
        node = self._leading()
        if node is not None and node.quorum is not None:
            self._carry_out(node, node.quorum.request(request, _ADMIN, self.time_at(node)))

    def _blow_add_voter(self, node: SimNode) -> None:
        if self.dynamic:
            self._ask_leader(AddVoterRequest(node.local, True, 2000))

    def _blow_remove_voter(self, node: SimNode) -> None:
        """Whoever removes a healthy voter while another one's disk is lost loses the quorum, and has it coming."""
        leading = self._leading()
        voters = leading.log.history.voters.voters if leading is not None else ()
        if self.dynamic and len(voters) > 1 and all(v.is_played_by(self.nodes[v.id].key) for v in voters):
            self._ask_leader(RemoveVoterRequest(node.key))

    def _blow_replace_disk(self, node: SimNode) -> None:
        """Allowed while every committed record stays on the disk of another voter."""
        leading = self._leading()
        if not self.dynamic or leading is None or leading.quorum is None:
            return
        history = leading.log.history
        voters = history.voters.voters
        if len(voters) < 3 or history.offset >= leading.quorum.high_watermark:
            return
        if any(not v.is_played_by(self.nodes[v.id].key) for v in voters):
            return
        if any(self._knows_other_voters(n, history.voters) for n in self.nodes.values()):
            return
        self.crash(node)
        self._lost_disks[node.key] = node.log
        self.seen["replaced disks"] += 1
        node.directory += 1
        node.name_disk()
        node.log = SimLog()
        node.election = ElectionState()
        node.led = -1
        self._later(self.draw(1, 1000), self._blow_restart, node)

    def _knows_other_voters(self, node: SimNode, voters: VoterSet) -> bool:
        return bool(node.log.history.voters.voters) and node.log.history.voters != voters

    def disk_of(self, voter: Voter) -> SimLog | None:
        """Also one that is lost: what it acknowledged while it lived was no lie."""
        node = self.nodes[voter.id]
        return node.log if voter.is_played_by(node.key) else self._lost_disks.get(voter.key)

    # The end

    def heal(self) -> None:
        """No more faults. Everybody comes back, and the quorum must work again in time."""
        self._healthy = True
        self._cut.clear()
        for node in self.nodes.values():
            node.clock = (self.now, self.time_at(node))
            node.rate = 100
            node.timer_at = NEVER
            self._blow_restart(node)
        for node in self.nodes.values():
            self._log_changed(node)  # timers of other clocks are set anew
        if not self.run_for(HEALING_MS, until=self._has_leader):
            raise Violation(f"no leader {HEALING_MS} ms after healing: {self.describe()}")
        leading = self._leading()
        assert leading is not None
        goal = leading.log.end_offset + 1
        if not self.run_for(_EVERYONE_MS, until=lambda: self._has_reached(goal)):
            raise Violation(f"not everybody has come to {goal} after healing: {self.describe()}")

    def _has_leader(self) -> bool:
        return self._leading() is not None

    def _has_reached(self, goal: int) -> bool:
        return all(n.quorum is not None and n.quorum.high_watermark >= goal for n in self.nodes.values())

    def describe(self) -> str:
        return "; ".join(
            f"{n.id}: {n.quorum.role if n.quorum else 'down'} hw={n.quorum.high_watermark if n.quorum else '-'} "
            f"log=[{n.log.start_offset},{n.log.flushed},{n.log.end_offset}) voters={n.log.history.voters.ids}"
            for n in self.nodes.values()
        )


_HOOKS = (
    "persisted",
    "sending",
    "replying",
    "advanced",
    "appended",
    "truncated",
    "restarted",
    "became_leader",
    "looked_at",
)
_BLOWS = (
    "_blow_crash",
    "_blow_crash",
    "_blow_crash_leader",
    "_blow_crash_everyone",
    "_blow_cut",
    "_blow_isolate",
    "_blow_mend",
    "_blow_mend",
    "_blow_snapshot",
    "_blow_snapshot_by_leader",
    "_blow_snapshot_by_leader",
    "_blow_snapshot_by_leader",
    "_blow_resign",
    "_blow_add_voter",
    "_blow_add_voter",
    "_blow_remove_voter",
    "_blow_replace_disk",
)
_VERSIONS = VersionsResponse(Errors.NONE, kraft_versions=(0, 1))


def run(seed: int, events: int = 20_000) -> World:
    """One seed to its end. Raises Violation."""
    world: World | None = None
    try:
        world = World(seed)
        world.run(events)
        world.heal()
    except Exception as error:
        place = "its first steps" if world is None else f"event {world.events}"
        state = "" if world is None else f"\n{world.describe()}"
        command = f"python -m ottla.testing.sim raft --seed {seed} --events {events}"
        raise Violation(f"seed {seed}, {place}: {error}{state}\nreplay it with: {command}") from error
    return world
