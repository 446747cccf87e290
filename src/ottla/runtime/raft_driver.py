"""Runs the quorum's core: votes and batches to the disk, questions to the other members, commits to those who wait.

Events go in one at a time. Each one's effects are carried out in order, and a vote is durable before the next effect:
until then later events wait. Only the flush of the log goes on beside them; the core knows what it must wait for.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from ottla.metrics.counts import QuorumCounts
from ottla.model.errors import Errors
from ottla.model.ids import Millis, Uuid, uuid_text
from ottla.model.ports import Clock
from ottla.model.properties import Settings
from ottla.net.peer import Address, Outcome, Peers, Unreachable
from ottla.protocol import messages
from ottla.protocol.codec import Message, MetadataRecord, Request
from ottla.protocol.refusals import refused
from ottla.raft import wire
from ottla.raft.core import Draw, Quorum, Timing
from ottla.raft.describe import describe_quorum
from ottla.raft.election import NOBODY, ElectionState
from ottla.raft.exchange import (
    Advance,
    Append,
    AppendControl,
    Effect,
    Endpoints,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    InstallSnapshot,
    Persist,
    Reply,
    Send,
    StoreSnapshot,
    Truncate,
)
from ottla.raft.roles import NEVER, Leader, Resigned
from ottla.raft.snapshots import SnapshotId
from ottla.raft.voters import VoterEndpoint, static_voters
from ottla.runtime.disk import DiskThread
from ottla.runtime.formatting import local_voter
from ottla.runtime.metadata_log import MetadataLog, MetadataLogError
from ottla.runtime.runner import NotLeader, Placed
from ottla.storage.flush import Flush
from ottla.storage.fs import Filesystem
from ottla.storage.names import LEADER_EPOCHS, METADATA_TOPIC, parse_log_dir
from ottla.storage.names import SNAPSHOT as PRODUCER_SNAPSHOT

logger = logging.getLogger(__name__)

_LANE: Final = "raft"
_FETCH_LANE: Final = "raft-fetch"
LANES: Final = (_LANE, _FETCH_LANE)
_RESIGN_SECONDS: Final = 0.5

Event = Callable[[int], list[Effect]]


class QuorumListener(Protocol):
    def committed(self, high_watermark: int) -> None:
        """Everything below may be read from the log."""

    def leader_changed(self, leader_id: int, epoch: int) -> None:
        """-1 for nobody. This node itself is named only when `committed` has told all that earlier leaders left.

        Then it may append.
        """

    def snapshot_loaded(self, snapshot: SnapshotId) -> None:
        """The log was replaced by a snapshot: the image must be loaded from it."""

    def failed(self, error: BaseException) -> None: ...


class _Asked:
    """A request of another node that waits for its answer."""

    __slots__ = ("request", "then", "version")

    def __init__(self, request: Message, version: int, then: Callable[[Message], None]) -> None:
        self.request = request
        self.version = version
        self.then = then


class Stage(Enum):
    """Where the driver stands between two events."""

    READY = "the next event is taken at once"
    BUSY = "effects are being carried out: what comes meanwhile waits"
    PERSISTING = "a vote is on its way to the disk: events wait until it is there"
    CLOSING = "no more events, and a vote is still on its way"
    CLOSED = "no more events"


class Failed(NamedTuple):
    """A stage as well, and the last: this node can no longer take part."""

    error: BaseException


class _Kin:
    """Which cluster is the own one, and who was found to be of another."""

    __slots__ = ("_foreign", "cluster_id")

    def __init__(self, cluster_id: str | None) -> None:
        self.cluster_id = cluster_id
        self._foreign: list[Address] = []

    def has(self, cluster_id: str | None) -> bool:
        return not cluster_id or self.cluster_id is None or cluster_id == self.cluster_id

    def complain_of(self, node: Address | None) -> None:
        """Once for each: it will be asked again and again, and nothing else tells why this one does not start."""
        if node is not None and node not in self._foreign:
            self._foreign.append(node)
            logger.error(
                "the node at %s:%d belongs to another cluster than %s, whose data this node has: "
                "the quorum's addresses or the data directory are wrong",
                *(node.host, node.port, self.cluster_id),
            )


class RaftDriver:
    __slots__ = (
        "_clock",
        "_disk",
        "_effects",
        "_events",
        "_flush",
        "_kin",
        "_listener",
        "_peers",
        "_stage",
        "_timer",
        "_told",
        "_waiters",
        "counts",
        "metadata_log",
        "quorum",
    )

    def __init__(
        self,
        metadata_log: MetadataLog,
        quorum: Quorum,
        *,
        disk: DiskThread,
        clock: Clock,
        peers: Peers,
        listener: QuorumListener,
        cluster_id: str | None = None,
    ) -> None:
        """Without a cluster id any cluster is taken for the own one."""
        self.metadata_log = metadata_log
        self.quorum = quorum
        self._told = (NOBODY, quorum.epoch)
        """Leader and epoch, as the listener was told."""
        self.counts = QuorumCounts()
        self._disk = disk
        self._clock = clock
        self._peers = peers
        self._listener = listener
        self._kin = _Kin(cluster_id)
        self._events: deque[Event] = deque()
        self._effects: deque[Effect] = deque()
        self._flush = _FlushState()
        self._stage: Stage | Failed = Stage.READY
        self._timer: tuple[int, asyncio.TimerHandle] | None = None
        """With the moment when it fires."""
        self._waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    # ---- living

    async def start(self) -> None:
        """Returns at once if others are needed, and as leader if this node is the whole quorum."""
        self._request_flush()
        self._submit(self.quorum.tick)
        if self.quorum.is_voter and self.quorum.voters.majority == 1:
            await self._until(lambda: self.is_leader)

    async def resign(self) -> None:
        """Hands leadership on, and waits a moment for the others to know."""
        if not self.step_down():
            return
        try:
            async with asyncio.timeout(_RESIGN_SECONDS):
                await self._until(self._is_replaced)
        except TimeoutError:
            return  # they will notice

    def step_down(self) -> bool:
        """Begins to hand leadership on. False if it is not ours, or there is nobody who could take it."""
        if not isinstance(self.quorum.role, Leader) or self.quorum.voters.ids == (self.quorum.local.id,):
            return False
        self._submit(self.quorum.resign)
        return True

    def _is_replaced(self) -> bool:
        role = self.quorum.role
        return not isinstance(role, Leader) and not (isinstance(role, Resigned) and role.unacked)

    async def close(self) -> None:
        """No more timers and events; what the disk has begun is waited for."""
        if not isinstance(self._stage, Failed):
            self._stage = Stage.CLOSING if self._stage is Stage.PERSISTING else Stage.CLOSED
        self._cancel_timer()
        await self._until(lambda: self._flush.running is None and self._stage is not Stage.CLOSING)

    async def _until(self, condition: Callable[[], bool]) -> None:
        if condition():
            return
        if isinstance(self._stage, Failed):
            raise self._stage.error
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((condition, waiter))
        await waiter

    def _wake(self) -> None:
        for entry in [w for w in self._waiters if w[0]()]:
            self._waiters.remove(entry)
            if not entry[1].done():
                entry[1].set_result(None)

    def _fail(self, error: BaseException) -> None:
        if isinstance(self._stage, Failed):
            return
        self._stage = Failed(error)
        self._events.clear()
        self._effects.clear()
        self._cancel_timer()
        for _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(error)
        self._waiters.clear()
        self._listener.failed(error)

    # ---- what the control plane uses

    @property
    def leader_id(self) -> int:
        """As the listener was told."""
        return self._told[0]

    @property
    def epoch(self) -> int:
        """As the listener was told."""
        return self._told[1]

    @property
    def is_leader(self) -> bool:
        """As the listener was told."""
        return self.leader_id == self.quorum.local.id

    @property
    def high_watermark(self) -> int:
        return self.quorum.high_watermark

    def leader_address(self) -> Address | None:
        """The controller listener of the leader."""
        return self._address(self.quorum.leader_endpoints)

    def append(self, records: Sequence[MetadataRecord]) -> Placed:
        """Raises NotLeader."""
        if not (self.is_leader and self.quorum.is_active) or isinstance(self._stage, Failed):
            raise NotLeader(f"node {self.quorum.local.id} does not lead the quorum in epoch {self.quorum.epoch}")
        placed = self.metadata_log.append(records)
        self.counts.appended_as_leader(len(records), placed.last_offset, self._clock.monotonic())
        return placed

    def commit(self) -> None:
        """Starts to make durable what was appended, here and on the followers."""
        self._request_flush()
        self._submit(self.quorum.log_changed)

    # ---- requests of other nodes

    def handle(self, request: Request[Message], version: int, then: Callable[[Message], None]) -> None:
        """`then` is called with the answer, now or later, unless the node fails before."""
        if isinstance(request, messages.DescribeQuorumRequest):
            then(self._describe(request, version))
            return
        if not self._kin.has(getattr(request, "cluster_id", None)):
            then(refused(request, Errors.INCONSISTENT_CLUSTER_ID))
            return
        try:
            asked = wire.read_request(request)
        except wire.BadRequest:
            then(refused(request, Errors.INVALID_REQUEST))
            return
        if not self._takes_events:
            then(refused(request, Errors.BROKER_NOT_AVAILABLE))
            return
        self._submit(partial(self.quorum.request, asked, _Asked(request, version, then)))

    def _describe(self, request: "messages.DescribeQuorumRequest", version: int) -> Message:
        response = describe_quorum(self.quorum, request, now=self._clock.monotonic(), wall_clock=self._clock.wall())
        if version < _NAMES_NODES:
            response.nodes = []
        return response

    # ---- events and effects

    @property
    def _takes_events(self) -> bool:
        return self._stage in (Stage.READY, Stage.BUSY, Stage.PERSISTING)

    def _submit(self, event: Event) -> None:
        if not self._takes_events:
            return
        self._events.append(event)
        if self._stage is Stage.READY:
            self._drain()

    def _drain(self) -> None:
        self._stage = Stage.BUSY
        try:
            while True:
                while self._effects:
                    self._perform(self._effects.popleft())
                    if self._stage is not Stage.BUSY:
                        return  # until the vote is on the disk; or it was at once, and the rest is done
                self._announce()
                if not self._events:
                    break
                self._effects.extend(self._events.popleft()(self._clock.monotonic()))
            self._schedule()
        except Exception as error:  # noqa: BLE001 - whatever it is, this node can no longer take part
            self._fail(error)
        if self._stage is Stage.BUSY:
            self._stage = Stage.READY
        self._wake()

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Send():
                self._send(effect)
            case Reply():
                self._reply(effect)
            case Advance(offset):
                self.counts.committed(offset, self._clock.monotonic())
                self._listener.committed(offset)
            case Persist(state):
                self._stage = Stage.PERSISTING
                self._disk.run(partial(self.metadata_log.write_election, state), self._persisted)
            case AppendControl(epoch, records):
                self.metadata_log.epoch = epoch
                self.metadata_log.append_control(records)
                self._log_was_written()
            case Append(records, epoch):
                self._append_replicated(records, epoch)
            case Truncate(offset):
                self.metadata_log.truncate_to(offset)
                self._log_was_written()
            case StoreSnapshot():
                self._store_snapshot(effect)
            case InstallSnapshot(snapshot):
                self.metadata_log.install_snapshot(snapshot)
                self._listener.snapshot_loaded(snapshot)
                self._log_was_written()

    def _persisted(self, error: BaseException | None) -> None:
        if error is not None:
            self._fail(error)
        elif self._stage is Stage.PERSISTING:
            self._drain()
        elif self._stage is Stage.CLOSING:
            self._stage = Stage.CLOSED
        self._wake()

    def _append_replicated(self, records: object, epoch: int) -> None:
        assert isinstance(records, bytes)
        before = self.metadata_log.end_offset
        rejected = self.metadata_log.append_replicated(records, epoch)
        self.counts.fetched += self.metadata_log.end_offset - before
        self._log_was_written()
        if rejected is not None:
            if rejected.error != Errors.KAFKA_STORAGE_ERROR:  # of which the log has complained itself
                logger.warning("the leader of epoch %d sent what cannot be appended: %s", epoch, rejected.message)
            self._events.appendleft(self.quorum.append_refused)

    def _log_was_written(self) -> None:
        self._request_flush()
        self._events.appendleft(self.quorum.log_changed)  # before anything that does not know of it yet

    def _store_snapshot(self, effect: StoreSnapshot) -> None:
        data = effect.data
        assert isinstance(data, bytes)
        self.metadata_log.store_snapshot(effect.id, effect.position, data)
        if effect.is_last:
            self._disk.run(
                partial(self.metadata_log.finish_download, effect.id), partial(self._snapshot_stored, effect.id)
            )

    def _snapshot_stored(self, snapshot: SnapshotId, error: BaseException | None) -> None:
        if error is not None:
            self._fail(error)
            return
        self._submit(partial(self._consider_snapshot, snapshot))

    def _consider_snapshot(self, snapshot: SnapshotId, now: int) -> list[Effect]:
        effects = self.quorum.snapshot_stored(snapshot, now)
        if not any(isinstance(effect, InstallSnapshot) for effect in effects):
            self.metadata_log.discard_download(snapshot)
        return effects

    def _announce(self) -> None:
        leader_id, epoch = self.quorum.leader_id, self.quorum.epoch
        if leader_id == self.quorum.local.id and not self.quorum.is_active:
            leader_id = NOBODY
        if (leader_id, epoch) != self._told:
            self._told = leader_id, epoch
            self._listener.leader_changed(leader_id, epoch)

    # ---- the disk

    def _request_flush(self) -> None:
        """While one flush runs, everything appended meanwhile waits for the next one."""
        if self._flush.running is not None:
            self._flush.again = True
            return
        self._flush.again = False
        try:
            flush = self.metadata_log.flush_begin()
        except OSError as error:
            self._fail(error)
            return
        if flush is not None:
            self._flush.running = flush
            self._disk.run(flush.run, partial(self._flushed, flush))

    def _flushed(self, flush: Flush, error: BaseException | None) -> None:
        self._flush.running = None
        if error is not None:
            self._fail(error)
            self._wake()
            return
        self.metadata_log.log.flush_done(flush)
        if self._flush.again:
            self._request_flush()
        self._submit(self.quorum.log_changed)
        self._wake()

    # ---- the wire

    def _address(self, endpoints: Endpoints) -> Address | None:
        if not endpoints:
            return None
        found = next((e for e in endpoints if e.name == self._listener_name), endpoints[0])
        return Address(found.host, found.port)

    @property
    def _listener_name(self) -> str:
        own = self.quorum.local.endpoints
        return own[0].name if own else next((v.endpoints[0].name for v in self.quorum.voters.voters if v.endpoints), "")

    def _send(self, effect: Send) -> None:
        then = partial(self._answered, effect)
        to = self._address(effect.to)
        if to is None:
            asyncio.get_running_loop().call_soon(then, Unreachable("it has no address"))
            return
        message = wire.write_request(effect.request, self._kin.cluster_id)
        is_fetch = isinstance(effect.request, FetchRequest | FetchSnapshotRequest)
        lane = _FETCH_LANE if is_fetch else _LANE
        self.counts.requests += 1
        self._peers.send(to, message, then, timeout_ms=self.quorum.timing.request_timeout_ms, lane=lane)

    def _answered(self, sent: Send, outcome: Outcome) -> None:
        response: Any = None
        if not isinstance(outcome, Unreachable):
            self.counts.responses += 1
            if getattr(outcome, "error_code", Errors.NONE) == Errors.INCONSISTENT_CLUSTER_ID:
                self._kin.complain_of(self._address(sent.to))
            response = wire.read_response(sent.request, outcome, self._listener_name)
        self._submit(partial(self.quorum.response, sent.node_id, sent.request, response))

    def _reply(self, effect: Reply) -> None:
        asked, response = effect.token, effect.response
        assert isinstance(asked, _Asked)
        if effect.read_from >= 0:
            if isinstance(response, FetchResponse):
                records = self.metadata_log.read(effect.read_from, effect.max_bytes)
                response = response._replace(records=records)
            elif isinstance(response, FetchSnapshotResponse) and response.snapshot is not None:
                data = self.metadata_log.read_snapshot(response.snapshot, effect.read_from, effect.max_bytes)
                response = response._replace(data=data)
        asked.then(wire.write_response(asked.request, response, asked.version, self._listener_name))

    # ---- time

    def _schedule(self) -> None:
        due = self.quorum.deadline()
        if self._timer is not None and self._timer[0] <= due:
            return  # it fires early, and looks again
        self._cancel_timer()
        if due < NEVER and self._takes_events:
            delay = max(1, due - self._clock.monotonic()) / 1000
            self._timer = due, asyncio.get_running_loop().call_later(delay, self._on_timer)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer[1].cancel()
            self._timer = None

    def _on_timer(self) -> None:
        self._timer = None
        self._submit(self.quorum.tick)


class _FlushState:
    __slots__ = ("again", "running")

    def __init__(self) -> None:
        self.running: Flush | None = None
        self.again = False


_NAMES_NODES: Final = 2


def start_quorum(settings: Settings, metadata_log: MetadataLog, directory_id: Uuid, now: Millis, draw: Draw) -> Quorum:
    """The core as the log and the configuration describe it. Raises MetadataLogError for a quorum we cannot run."""
    listeners = settings.controller_listener_names
    listener = listeners[0] if listeners else ""
    local = local_voter(settings, directory_id)
    history = metadata_log.history
    history.use_static(static_voters([(v.id, v.host, v.port) for v in settings.voters], listener))
    if history.kraft_version == 0:
        configured = history.voters.find(settings.node_id)
        if configured is not None:
            local = local._replace(endpoints=configured.endpoints)
    _refuse_unusable(settings, metadata_log, directory_id)
    election = metadata_log.read_election()
    if history.voters.ids == (settings.node_id,):
        _refuse_lost_records(settings, metadata_log, election)
    return Quorum(
        local,
        metadata_log,
        election=election,
        draw=draw,
        now=now,
        timing=_timing(settings),
        bootstrap=tuple((VoterEndpoint(listener, b.host, b.port),) for b in settings.bootstrap_controllers),
        can_vote=settings.is_controller,
    )


def _refuse_unusable(settings: Settings, metadata_log: MetadataLog, directory_id: Uuid) -> None:
    history = metadata_log.history
    if not history.voters.voters and (metadata_log.end_offset > 0 or not settings.bootstrap_controllers):
        raise MetadataLogError(
            f"{metadata_log.settings.path} names no voters. It was formatted for static voters: set "
            "controller.quorum.voters."
        )
    known = history.voters.find(settings.node_id)
    alone = history.voters.ids == (settings.node_id,)
    if history.kraft_version and alone and known is not None and known.directory_id != directory_id:
        raise MetadataLogError(
            f"Voter {settings.node_id} is known with directory {uuid_text(known.directory_id)}, but meta.properties "
            f"says {uuid_text(directory_id)}: this is not the disk the quorum was formatted with."
        )


def _refuse_lost_records(settings: Settings, metadata_log: MetadataLog, election: ElectionState) -> None:
    """Nobody else has the records that a quorum of one has lost. To go on without them would set the logs of all
    topics aside, and the brokers' view of the cluster would follow."""
    path, end, witnessed = metadata_log.settings.path, metadata_log.end_offset, metadata_log.witness.end
    if witnessed > end:
        metadata_log.keep_witness()
        raise MetadataLogError(
            f"{path} ends at offset {end}, and went to {witnessed} at least: metadata is lost. Restore it from a "
            f"backup. To go on without it, remove {LEADER_EPOCHS} and *{PRODUCER_SNAPSHOT} there: topics that it told "
            "of are lost then."
        )
    is_blank = end == 0 and all(snapshot.offset == 0 for snapshot in metadata_log.snapshots)
    if is_blank and (election.epoch > 1 or _holds_topics(settings, metadata_log.fs)):
        raise MetadataLogError(
            f"{path} is empty, and this node has had a cluster: its metadata is lost. Restore it from a backup, or "
            f"move {', '.join(settings.log_dirs)} away to start afresh."
        )


def _holds_topics(settings: Settings, fs: Filesystem) -> bool:
    for path in settings.log_dirs:
        with suppress(OSError):  # a node may start without one of its directories
            found = [parse_log_dir(entry.name) for entry in fs.list(path) if entry.is_dir]
            if any(each is not None and not each[1] and each[0].topic != METADATA_TOPIC for each in found):
                return True
    return False


def _timing(settings: Settings) -> Timing:
    return Timing(
        election_timeout_ms=settings.get_int("controller.quorum.election.timeout.ms"),
        backoff_max_ms=settings.get_int("controller.quorum.election.backoff.max.ms"),
        fetch_timeout_ms=settings.get_int("controller.quorum.fetch.timeout.ms"),
        request_timeout_ms=settings.get_int("controller.quorum.request.timeout.ms"),
        retry_backoff_ms=settings.get_int("controller.quorum.retry.backoff.ms"),
        grace_ms=settings.get_int("ottla.quorum.reconnect.grace.ms"),
        fetch_max_bytes=settings.get_int("controller.quorum.fetch.max.bytes"),
        snapshot_max_bytes=settings.get_int("controller.quorum.fetch.snapshot.max.bytes"),
        auto_join=settings.get_bool("controller.quorum.auto.join.enable"),
    )
