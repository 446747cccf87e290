"""The control plane of a node: the committed facts, and requests that change them.

Every node follows the metadata log. The one that leads its quorum has the active controller and decides; all others
pass requests on to it, so whoever asks need not know where it is.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, overload

from ottla.metadata.features import SUPPORTED
from ottla.metadata.image import KRAFT_VERSION, MetadataImage
from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.model.ports import Clock, Ids
from ottla.model.properties import Settings
from ottla.net.peer import Peers
from ottla.protocol import messages
from ottla.protocol.codec import Message, MetadataRecord
from ottla.raft.snapshots import SnapshotId
from ottla.runtime.active import ActiveController, NotController
from ottla.runtime.clock import SystemClock, SystemIds
from ottla.runtime.committed import CommittedImage, Subscriber
from ottla.runtime.disk import DiskThread, SyncThread
from ottla.runtime.formatting import Identity, bootstrap_records, identify
from ottla.runtime.forwarding import Forwarder
from ottla.runtime.metadata_log import MetadataLog, MetadataLogSettings, SnapshotJob
from ottla.runtime.raft_driver import RaftDriver, start_quorum
from ottla.runtime.refusals import refused
from ottla.runtime.runner import NotLeader, Placed
from ottla.runtime.timers import Repeating
from ottla.storage.fs import Filesystem, RealFilesystem, StorageError
from ottla.storage.segment import OpenFiles

log = logging.getLogger(__name__)

SECURITY_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
_OF_THE_QUORUM: Final = frozenset(
    ("DescribeQuorumRequest", "AddRaftVoterRequest", "RemoveRaftVoterRequest", "UpdateRaftVoterRequest")
)
_SEEN_HERE_MS: Final = Millis(1_000)


class ControlPlane:
    """Open, start, serve, close; in this order. It is what the quorum tells its news to (`QuorumListener`)."""

    __slots__ = (
        "_active",
        "_clock",
        "_committed",
        "_disk",
        "_forwarder",
        "_last_leader",
        "_log",
        "_metadata_failed",
        "_new_active",
        "_on_failure",
        "_on_leader",
        "_snapshot",
        "_timers",
        "identity",
        "raft",
        "settings",
    )

    def __init__(
        self,
        settings: Settings,
        identity: Identity,
        metadata_log: MetadataLog,
        *,
        clock: Clock,
        ids: Ids,
        disk: DiskThread,
        peers: Peers,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self.settings = settings
        self.identity = identity
        self._on_failure = on_failure
        self._clock = clock
        self._disk = disk
        self._log = metadata_log
        self._metadata_failed: BaseException | None = None
        self._on_leader: list[Callable[[], None]] = []
        self._last_leader = -1
        self._snapshot: SnapshotJob | None = None
        self._committed = CommittedImage(metadata_log.load(identity.cluster_id))
        self._note_version(self.image)
        self._active: ActiveController | None = None
        self._new_active = partial(
            ActiveController,
            settings=settings,
            log=self,
            clock=clock,
            ids=ids,
            peers=peers,
            publish=self._committed.told,
            on_features=self._note_version,
        )
        quorum = start_quorum(settings, metadata_log, identity.metadata_directory_id, clock.monotonic(), ids.number)
        self.raft = RaftDriver(
            metadata_log,
            quorum,
            disk=disk,
            clock=clock,
            peers=peers,
            listener=self,
            cluster_id=identity.cluster_id,
        )
        self._forwarder = Forwarder(peers, self.raft.leader_address, clock)
        self._timers = [Repeating(metadata_log.settings.snapshot_interval_ms, self._snapshot_if_changed)]

    @classmethod
    def open(
        cls,
        settings: Settings,
        *,
        peers: Peers,
        fs: Filesystem | None = None,
        files: OpenFiles | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        disk: DiskThread | None = None,
        joined: str | None = None,
        absent: Sequence[str] = (),
        on_failure: Callable[[BaseException], None] = lambda _: None,
    ) -> "ControlPlane":
        """Formats new directories, then loads snapshot and log. The caller holds the locks of all directories but those
        that are `absent`. `joined` is the cluster that a new node has found (`cluster_to_join`). `on_failure` is called
        if the metadata directory is lost: the node must stop then, as Kafka does.

        Raises FormatError, MetadataLogError, CorruptLog, CorruptMetadata or StorageError, each with what to do.
        """
        clock = clock or SystemClock()
        ids = ids or SystemIds()
        if files is None:  # an empty one is false
            files = OpenFiles(fs if fs is not None else RealFilesystem())
        identity = identify(settings, files.fs, clock, ids, joined, absent)
        log = MetadataLog(MetadataLogSettings.of(settings), files, clock)
        return cls(
            settings,
            identity,
            log,
            clock=clock,
            ids=ids,
            disk=disk or SyncThread(),
            peers=peers,
            on_failure=on_failure,
        )

    # ---- living

    async def start(self) -> None:
        """Takes part in the quorum. A quorum of one has its active controller when this returns."""
        await self.raft.start()
        for timer in self._timers:
            timer.start()

    async def close(self) -> None:
        """Hands leadership on, makes everything durable and closes the log."""
        for timer in self._timers:
            timer.stop()
        if self.failure is None:
            await self.raft.resign()
        await self.raft.close()
        if self._active is not None:
            self._active.deactivate()
        if self._log.is_long and self.failure is None and self._snapshot is None and self.image.offset >= 0:
            # Kafka's limit is 20 MB; each restart of a node with 10,000 partitions writes half a megabyte of it.
            self._take_snapshot()
        await self._disk_idle()
        self._disk.close()
        self._log.log.close(clean=self.failure is None)

    async def _disk_idle(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._disk.run(lambda: None, lambda _: None if waiter.done() else waiter.set_result(None))
        await waiter

    # ---- what the node uses

    @property
    def image(self) -> MetadataImage:
        """The committed facts, replaced as a whole with each change."""
        return self._committed.image

    def subscribe(self, subscriber: Subscriber) -> None:
        """Called on the loop with each committed change and the image it leads to, before the request is answered."""
        self._committed.subscribe(subscriber)

    def on_leader(self, callback: Callable[[], None]) -> None:
        """Called when the active controller is another one than before, or none."""
        self._on_leader.append(callback)

    @property
    def failure(self) -> BaseException | None:
        """What ended this control plane: most likely what the disk said when the metadata directory was lost."""
        return self._metadata_failed

    @property
    def is_active(self) -> bool:
        return self._active is not None

    @property
    def is_whole_cluster(self) -> bool:
        """This node is the only voter and the only broker there is."""
        voters = self._log.quorum.voters.ids if self._log.quorum.voters else tuple(v.id for v in self.settings.voters)
        return tuple(voters) == tuple(self.image.brokers) == (self.settings.node_id,)

    @property
    def leader_id(self) -> int:
        return self.raft.leader_id

    @property
    def leader_epoch(self) -> int:
        return self.raft.epoch

    @property
    def kraft_version(self) -> int:
        return self._log.quorum.kraft_version

    @property
    def log_end_offset(self) -> int:
        return self._log.log.log_end_offset

    @property
    def finalized_features(self) -> dict[str, int]:
        """As ApiVersions reports them: the image's levels and the quorum's own; a level of 0 is left out."""
        own = {KRAFT_VERSION: self.kraft_version} if self.kraft_version else {}
        return {**self.image.features, **own}

    @overload
    async def submit(
        self, request: "messages.CreateTopicsRequest", timeout_ms: int = ...
    ) -> "messages.CreateTopicsResponse": ...

    @overload
    async def submit(
        self, request: "messages.DeleteTopicsRequest", timeout_ms: int = ...
    ) -> "messages.DeleteTopicsResponse": ...

    @overload
    async def submit(
        self, request: "messages.CreatePartitionsRequest", timeout_ms: int = ...
    ) -> "messages.CreatePartitionsResponse": ...

    @overload
    async def submit(
        self, request: "messages.AlterConfigsRequest", timeout_ms: int = ...
    ) -> "messages.AlterConfigsResponse": ...

    @overload
    async def submit(
        self, request: "messages.IncrementalAlterConfigsRequest", timeout_ms: int = ...
    ) -> "messages.IncrementalAlterConfigsResponse": ...

    @overload
    async def submit(
        self, request: "messages.UpdateFeaturesRequest", timeout_ms: int = ...
    ) -> "messages.UpdateFeaturesResponse": ...

    @overload
    async def submit(
        self, request: "messages.AllocateProducerIdsRequest", timeout_ms: int = ...
    ) -> "messages.AllocateProducerIdsResponse": ...

    @overload
    async def submit(
        self, request: "messages.BrokerRegistrationRequest", timeout_ms: int = ...
    ) -> "messages.BrokerRegistrationResponse": ...

    @overload
    async def submit(
        self, request: "messages.BrokerHeartbeatRequest", timeout_ms: int = ...
    ) -> "messages.BrokerHeartbeatResponse": ...

    @overload
    async def submit(
        self, request: "messages.UnregisterBrokerRequest", timeout_ms: int = ...
    ) -> "messages.UnregisterBrokerResponse": ...

    @overload
    async def submit(
        self, request: "messages.DescribeQuorumRequest", timeout_ms: int = ...
    ) -> "messages.DescribeQuorumResponse": ...

    @overload
    async def submit(
        self, request: "messages.AlterPartitionRequest", timeout_ms: int = ...
    ) -> "messages.AlterPartitionResponse": ...

    @overload
    async def submit(
        self, request: "messages.ElectLeadersRequest", timeout_ms: int = ...
    ) -> "messages.ElectLeadersResponse": ...

    @overload
    async def submit(
        self, request: "messages.AlterPartitionReassignmentsRequest", timeout_ms: int = ...
    ) -> "messages.AlterPartitionReassignmentsResponse": ...

    @overload
    async def submit(
        self, request: "messages.ListPartitionReassignmentsRequest", timeout_ms: int = ...
    ) -> "messages.ListPartitionReassignmentsResponse": ...

    @overload
    async def submit(
        self, request: "messages.AssignReplicasToDirsRequest", timeout_ms: int = ...
    ) -> "messages.AssignReplicasToDirsResponse": ...

    @overload
    async def submit(
        self, request: "messages.ControllerRegistrationRequest", timeout_ms: int = ...
    ) -> "messages.ControllerRegistrationResponse": ...

    @overload
    async def submit(
        self, request: "messages.AddRaftVoterRequest", timeout_ms: int = ...
    ) -> "messages.AddRaftVoterResponse": ...

    @overload
    async def submit(
        self, request: "messages.RemoveRaftVoterRequest", timeout_ms: int = ...
    ) -> "messages.RemoveRaftVoterResponse": ...

    @overload
    async def submit(
        self, request: "messages.UpdateRaftVoterRequest", timeout_ms: int = ...
    ) -> "messages.UpdateRaftVoterResponse": ...

    async def submit(self, request: Message, timeout_ms: int = 30_000) -> Message:
        """Decides a request, here or wherever the active controller is, and answers when the decision is committed.

        Raises StorageError if the disk of this node's controller refuses; a controller that cannot be reached is an
        answer with REQUEST_TIMED_OUT.
        """
        if self._metadata_failed is not None:
            raise self._metadata_failed
        if self.raft.is_leader:
            try:
                return await self.submit_here(request)
            except NotController:
                pass  # lost it while deciding: the new one is asked
        answer = await self._forwarder.forward(request, timeout_ms)
        await self._seen_here(answer)
        return answer

    async def submit_here(self, request: Message) -> Message:
        """For requests that came to this node as the controller. Raises NotController."""
        if type(request).__name__ in _OF_THE_QUORUM:
            return await self.ask_quorum(request, messages.API[request.API_KEY].stable_max)
        if self._active is None:
            raise NotController("this node is not the active controller")
        try:
            return await self._active.submit(request)
        except NotLeader as error:
            raise NotController("another node is the active controller now") from error

    async def answer_here(self, request: Message) -> Message:
        """As `submit_here`, with NOT_CONTROLLER in the shape of the request's own answer."""
        try:
            return await self.submit_here(request)
        except NotController as error:
            return refused(request, Errors.NOT_CONTROLLER, str(error))

    async def ask_quorum(self, request: Message, version: int) -> Message:
        waiter: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self.raft.handle(request, version, lambda answer: None if waiter.done() else waiter.set_result(answer))
        return await waiter

    def broker_connected(self, broker_id: int, broker_epoch: int, connection: object) -> None:
        """A heartbeat came over that connection."""
        if self._active is not None:
            self._active.connected(broker_id, broker_epoch, connection)

    def broker_disconnected(self, broker_id: int, broker_epoch: int, connection: object) -> None:
        """The connection over which a broker sent its heartbeats broke."""
        if self._active is not None:
            self._active.disconnected(broker_id, broker_epoch, connection)

    async def _seen_here(self, answer: Message) -> None:
        """A topic that another node has just created is looked for here next: waits a moment until it has arrived."""
        if not isinstance(answer, messages.CreateTopicsResponse):
            return
        wanted = [t.topic_id for t in answer.topics if not t.error_code]
        deadline = self._clock.monotonic() + _SEEN_HERE_MS
        while self._clock.monotonic() < deadline:
            if all(topic_id in self.image.topics_by_id for topic_id in wanted):
                return
            await asyncio.sleep(0.005)

    # ---- what the quorum says

    def committed(self, high_watermark: int) -> None:
        try:
            if self._active is not None:
                self._active.advance(high_watermark)
            else:
                self._committed.follow(self._log.log, high_watermark)
                self._note_version(self.image)
        except Exception as error:
            self.failed(error)
            raise
        if self._log.wants_snapshot:
            self._take_snapshot()

    def leader_changed(self, leader_id: int, epoch: int) -> None:
        if self._active is not None:
            self._active.deactivate()
            self._active = None
        if leader_id == self.settings.node_id:
            self._activate(self._last_leader)
        if leader_id >= 0:
            self._last_leader = leader_id
        self._forwarder.leader_changed()
        for callback in self._on_leader:
            callback()

    def _activate(self, predecessor: int) -> None:
        image, torn = self._committed.take_over()
        new_cluster = not image.metadata_version
        bootstrap = bootstrap_records(self._log.fs, self.settings.metadata_log_dir) if new_cluster else []
        self._active = self._new_active(image)
        try:
            self._active.activate(
                bootstrap,
                min_isr=self.settings.get_int("min.insync.replicas"),
                torn_transaction=torn,
                predecessor=predecessor,
            )
        except NotLeader:
            return  # the disk refuses: it has stepped down already, and hears of that next

    def snapshot_loaded(self, snapshot: SnapshotId) -> None:
        self._committed.replace(self._log.load(self.identity.cluster_id))
        self._note_version(self.image)

    def failed(self, error: BaseException) -> None:
        if self._metadata_failed is not None:
            return
        self._metadata_failed = error
        if self._active is not None:
            self._active.fail(error)
        self._on_failure(error)

    def _note_version(self, image: MetadataImage) -> None:
        self._log.metadata_version = image.metadata_version

    # ---- what the active controller writes to

    def append(self, records: Sequence[MetadataRecord]) -> Placed:
        """Raises NotLeader, and StorageError if the disk refuses and nobody else can be the active controller."""
        try:
            return self.raft.append(records)
        except StorageError as error:
            if not self.raft.step_down():
                raise
            log.error("another node has to be the active controller: %s", error)
            raise NotLeader(str(error)) from error

    def commit(self) -> None:
        self.raft.commit()

    # ---- snapshots

    def _snapshot_if_changed(self) -> None:
        if self._log.has_unsaved:
            self._take_snapshot()

    def _take_snapshot(self) -> None:
        if self._snapshot is None and self.image.offset >= 0:
            job = self._snapshot = self._log.begin_snapshot(self.image)
            self._disk.run(job.run, lambda error: self._snapshot_done(job, error))

    def _snapshot_done(self, job: SnapshotJob, error: BaseException | None) -> None:
        """A snapshot that failed is no loss: the log has it all, and the next one may succeed."""
        self._snapshot = None
        if error is None:
            self._log.remove(self._log.finish_snapshot(job))


def controller_registration(settings: Settings, ids: Ids) -> "messages.ControllerRegistrationRequest":
    """What a controller says of itself to the active one."""
    kind = messages.ControllerRegistrationRequest
    return kind(
        controller_id=settings.node_id,
        incarnation_id=ids.uuid(),
        listeners=[
            kind.Listener(
                name=each.name, host=each.host, port=each.port, security_protocol=SECURITY_PROTOCOLS[each.protocol]
            )
            for each in settings.advertised_controller_listeners
        ],
        features=[
            kind.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED.items()
        ],
    )
