"""What the quorum says, on this node: facts that are committed, and a controller for as long as this node leads.

Every node follows the metadata log into an image. When this node is elected an active controller is made from it, which
decides and appends; when it is not any more, that is thrown away with everything uncommitted. The first error of the
metadata directory ends it all.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from ottla.metadata.image import MetadataImage
from ottla.model.ports import Clock, Ids
from ottla.model.properties import Settings
from ottla.net.peer import Peers
from ottla.protocol.codec import MetadataRecord
from ottla.raft.snapshots import SnapshotId
from ottla.runtime.active import ActiveController
from ottla.runtime.committed import CommittedImage
from ottla.runtime.disk import DiskThread
from ottla.runtime.formatting import Identity, bootstrap_records
from ottla.runtime.metadata_log import MetadataLog
from ottla.runtime.raft_driver import RaftDriver, start_quorum
from ottla.runtime.runner import NotLeader, Placed
from ottla.runtime.snapshots import Snapshots
from ottla.storage.fs import StorageError

logger = logging.getLogger(__name__)


class MetadataQuorum:
    """It is what the driver tells its news to (`QuorumListener`), and what the active controller writes to
    (`LeaderLog`)."""

    __slots__ = (
        "_cluster_id",
        "_disk",
        "_last_leader",
        "_log",
        "_new_active",
        "_on_failure",
        "_on_leader",
        "_settings",
        "_snapshots",
        "active",
        "caught_up",
        "committed_image",
        "failure",
        "raft",
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
        self._settings = settings
        self._cluster_id = identity.cluster_id
        self._log = metadata_log
        self._disk = disk
        self._on_failure = on_failure
        self._on_leader: list[Callable[[], None]] = []
        self._last_leader = -1
        self.failure: BaseException | None = None
        """What ended it: most likely what the disk said when the metadata directory was lost."""
        committed = self.committed_image = CommittedImage(metadata_log.load(identity.cluster_id))
        self._note_version(committed.image)
        self._snapshots = Snapshots(metadata_log, committed, disk)
        self.active: ActiveController | None = None
        """While this node leads."""
        self.caught_up = False
        self._new_active = partial(
            ActiveController,
            settings=settings,
            log=self,
            clock=clock,
            ids=ids,
            peers=peers,
            publish=committed.told,
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

    def on_leader(self, callback: Callable[[], None]) -> None:
        """Called when the active controller is another one than before, or none."""
        self._on_leader.append(callback)

    async def start(self) -> None:
        """A quorum of one has its active controller when this returns."""
        await self.raft.start()
        self._snapshots.start()

    async def close(self) -> None:
        """Hands leadership on, makes everything durable and closes the log."""
        self._snapshots.stop()
        if self.failure is None:
            await self.raft.resign()
        await self.raft.close()
        if self.active is not None:
            self.active.deactivate()
        if self.failure is None:
            self._snapshots.take_before_the_end()
        await self._snapshots.written()
        self._disk.close()
        self._log.log.close(clean=self.failure is None)

    # ---- what the quorum says

    def committed(self, high_watermark: int) -> None:
        try:
            if self.active is not None:
                self.active.advance(high_watermark)
            else:
                self.committed_image.follow(self._log.log, high_watermark)
                self._note_version(self.committed_image.image)
        except Exception as error:
            self.failed(error)
            raise
        self.caught_up = self.caught_up or self.committed_image.image.offset + 1 >= high_watermark
        self._snapshots.take_if_wanted()

    def leader_changed(self, leader_id: int, epoch: int) -> None:
        if self.active is not None:
            self.active.deactivate()
            self.active = None
        if leader_id == self._settings.node_id:
            self._activate(self._last_leader)
        if leader_id >= 0:
            self._last_leader = leader_id
        for callback in self._on_leader:
            callback()

    def _activate(self, predecessor: int) -> None:
        image, torn = self.committed_image.take_over()
        new_cluster = not image.metadata_version
        bootstrap = bootstrap_records(self._log.fs, self._settings.metadata_log_dir) if new_cluster else []
        self.active = self._new_active(image)
        try:
            self.active.activate(
                bootstrap,
                min_isr=self._settings.get_int("min.insync.replicas"),
                torn_transaction=torn,
                predecessor=predecessor,
            )
        except NotLeader:
            return  # the disk refuses: it has stepped down already, and hears of that next

    def snapshot_loaded(self, snapshot: SnapshotId) -> None:
        self.committed_image.replace(self._log.load(self._cluster_id))
        self._note_version(self.committed_image.image)

    def failed(self, error: BaseException) -> None:
        if self.failure is not None:
            return
        self.failure = error
        if self.active is not None:
            self.active.fail(error)
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
            logger.error("another node has to be the active controller: %s", error)
            raise NotLeader(str(error)) from error

    def commit(self) -> None:
        self.raft.commit()

    @property
    def log_end_offset(self) -> int:
        return self._log.log.log_end_offset

    @property
    def kraft_version(self) -> int:
        return self._log.quorum.kraft_version

    @property
    def voters(self) -> tuple[int, ...]:
        known = self._log.quorum.voters
        return tuple(known.ids) if known else tuple(voter.id for voter in self._settings.voters)
