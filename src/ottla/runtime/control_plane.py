"""The control plane of a node, as its broker sees it: the image, changes to it, and requests that make changes.

A quorum of one for now: the controller lives here and every request is decided here.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Final, overload

from ottla.controller.activation import activation_records
from ottla.controller.machine import CommandContext, Controller
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.features import SUPPORTED
from ottla.metadata.image import KRAFT_VERSION, MetadataImage
from ottla.model.errors import Errors
from ottla.model.ids import Uuid
from ottla.model.ports import Clock, Ids
from ottla.model.properties import Listener, Settings
from ottla.protocol import messages
from ottla.protocol.codec import Message
from ottla.raft.describe import describe_quorum
from ottla.runtime.clock import SystemClock, SystemIds
from ottla.runtime.disk import DiskThread, SyncThread
from ottla.runtime.formatting import Identity, bootstrap_records, identify
from ottla.runtime.metadata_log import MetadataLog, MetadataLogSettings, SnapshotJob
from ottla.runtime.raft_driver import RaftDriver, start_quorum
from ottla.runtime.runner import Placed, Runner
from ottla.runtime.timers import Repeating
from ottla.storage.fs import Filesystem, RealFilesystem
from ottla.storage.segment import OpenFiles

Subscriber = Callable[[MetadataDelta, MetadataImage], None]

SECURITY_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
_SESSION_CHECK_MS: Final = 500


class RegistrationRefused(Exception):
    """The controller does not want this broker."""

    def __init__(self, error: Errors) -> None:
        super().__init__(f"the controller refuses this broker: {error.name}. {error.text}")
        self.error = error


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What a request does not carry itself."""

    describable: Container[str] | None = None
    """Topics whose configs the asker may see; None for all."""


PLAIN: Final = RequestContext()


class ControlPlane:
    """Open, start, register the broker, serve, close; in this order."""

    __slots__ = (
        "_bootstrap",
        "_clock",
        "_controller",
        "_disk",
        "_driver",
        "_ids",
        "_runner",
        "_snapshot",
        "_subscribers",
        "_timers",
        "_torn_transaction",
        "broker_epoch",
        "identity",
        "image",
        "on_failure",
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
    ) -> None:
        self.settings = settings
        self.identity = identity
        self.broker_epoch = -1
        self.on_failure: Callable[[BaseException], None] | None = None
        """Called if the metadata directory is lost. The node must stop then, as Kafka does."""
        self._clock = clock
        self._ids = ids
        self._disk = disk
        self._subscribers: list[Subscriber] = []
        self._snapshot: SnapshotJob | None = None
        replayer = metadata_log.load(identity.cluster_id)
        self._torn_transaction = replayer.transaction_start is not None
        if self._torn_transaction:
            replayer.abandon_transaction()
        self.image = replayer.image()
        """The committed facts, replaced as a whole with each commit."""
        metadata_log.metadata_version = self.image.metadata_version
        self._bootstrap = (
            [] if self.image.metadata_version else bootstrap_records(metadata_log.fs, settings.metadata_log_dir)
        )
        self._controller = Controller(self.image, settings)
        quorum = start_quorum(settings, metadata_log, identity.metadata_directory_id, clock.monotonic())
        self._driver = RaftDriver(metadata_log, quorum, disk, clock, self._advanced, self._failed)
        self._runner: Runner[tuple[MetadataDelta, MetadataImage]] = Runner(self, self._driver, self._publish)
        self._timers = [Repeating(metadata_log.settings.snapshot_interval_ms, self._snapshot_if_changed)]

    @classmethod
    def open(
        cls,
        settings: Settings,
        *,
        fs: Filesystem | None = None,
        files: OpenFiles | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        disk: DiskThread | None = None,
    ) -> "ControlPlane":
        """Formats new directories, then loads snapshot and log. The caller holds the directories' locks.

        Raises FormatError, MetadataLogError, CorruptLog, CorruptMetadata or StorageError, each with what to do.
        """
        clock = clock or SystemClock()
        ids = ids or SystemIds()
        files = files or OpenFiles(fs or RealFilesystem())
        identity = identify(settings, files.fs, clock, ids)
        log = MetadataLog(MetadataLogSettings.of(settings), files, clock)
        return cls(settings, identity, log, clock=clock, ids=ids, disk=disk or SyncThread())

    # Living

    async def start(self) -> None:
        """Becomes leader of the quorum, writes what a new cluster begins with, and returns when that is committed."""
        await self._driver.start()
        records = activation_records(
            self._controller.image,
            self._bootstrap,
            min_isr=str(self.settings.get_int("min.insync.replicas")),
            open_transaction=self._torn_transaction,
        )
        if self._torn_transaction:
            # The abort was replayed by forgetting; a delta has no way to take it.
            self._driver.append(records[:1])
            records = records[1:]
        offset = self._runner.carry_out(records)
        registration = self._controller.decide(self._controller_registration(), self._context(PLAIN))
        offset = self._runner.carry_out(_messages(registration.records)) or offset
        await self._runner.committed(offset)
        for timer in self._timers:
            timer.start()
        self._watch_sessions()

    def _controller_registration(self) -> "messages.ControllerRegistrationRequest":
        kind = messages.ControllerRegistrationRequest
        return kind(
            controller_id=self.settings.node_id,
            incarnation_id=self._ids.uuid(),
            listeners=[
                kind.Listener(
                    name=each.name,
                    host=each.host,
                    port=each.port,
                    security_protocol=SECURITY_PROTOCOLS[each.protocol],
                )
                for each in self.settings.advertised_controller_listeners
            ],
            features=[
                kind.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED.items()
            ],
        )

    def _watch_sessions(self) -> None:
        """Brokers of other processes are fenced when they fall silent; alone there is nobody to watch."""
        if any(broker != self.settings.node_id for broker in self.image.brokers):
            timer = Repeating(_SESSION_CHECK_MS, self._check_sessions)
            self._timers.append(timer)
            timer.start()

    def _check_sessions(self) -> None:
        self._runner.carry_out(_messages(self._controller.tick(self._clock.monotonic()).records))

    async def close(self) -> None:
        """Fences the local broker, makes everything durable and closes the log."""
        for timer in self._timers:
            timer.stop()
        if self.broker_epoch >= 0 and self.failure is None:
            await self._say_goodbye()
        await self._driver.flushes.idle()
        if self._driver.metadata_log.is_long and self.failure is None:
            # Kafka's limit is 20 MB; each restart of a node with 10,000 partitions writes half a megabyte of it.
            self._take_snapshot()
        await self._driver.settled()
        self._disk.close()
        self._driver.metadata_log.log.close(clean=self.failure is None)

    async def _say_goodbye(self) -> None:
        request = messages.BrokerHeartbeatRequest(
            broker_id=self.settings.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._controller.image.offset,
            want_fence=True,
            want_shut_down=True,
        )
        self.broker_epoch = -1
        await self.submit(request)

    # What brokers use

    def subscribe(self, subscriber: Subscriber) -> None:
        """Called on the loop with each committed delta and the image it leads to, before the request is answered."""
        self._subscribers.append(subscriber)

    @property
    def failure(self) -> BaseException | None:
        """What ended this control plane: most likely what the disk said when the metadata directory was lost."""
        return self._runner.error

    @property
    def leader_epoch(self) -> int:
        return self._driver.quorum.epoch

    @property
    def kraft_version(self) -> int:
        return self._driver.metadata_log.quorum.kraft_version

    @property
    def finalized_features(self) -> dict[str, int]:
        """As ApiVersions reports them: the image's levels and the quorum's own; a level of 0 is left out."""
        own = {KRAFT_VERSION: self.kraft_version} if self.kraft_version else {}
        return {**self.image.features, **own}

    @overload
    async def submit(
        self, request: "messages.CreateTopicsRequest", context: RequestContext = ...
    ) -> "messages.CreateTopicsResponse": ...

    @overload
    async def submit(
        self, request: "messages.DeleteTopicsRequest", context: RequestContext = ...
    ) -> "messages.DeleteTopicsResponse": ...

    @overload
    async def submit(
        self, request: "messages.CreatePartitionsRequest", context: RequestContext = ...
    ) -> "messages.CreatePartitionsResponse": ...

    @overload
    async def submit(
        self, request: "messages.AlterConfigsRequest", context: RequestContext = ...
    ) -> "messages.AlterConfigsResponse": ...

    @overload
    async def submit(
        self, request: "messages.IncrementalAlterConfigsRequest", context: RequestContext = ...
    ) -> "messages.IncrementalAlterConfigsResponse": ...

    @overload
    async def submit(
        self, request: "messages.UpdateFeaturesRequest", context: RequestContext = ...
    ) -> "messages.UpdateFeaturesResponse": ...

    @overload
    async def submit(
        self, request: "messages.AllocateProducerIdsRequest", context: RequestContext = ...
    ) -> "messages.AllocateProducerIdsResponse": ...

    @overload
    async def submit(
        self, request: "messages.BrokerRegistrationRequest", context: RequestContext = ...
    ) -> "messages.BrokerRegistrationResponse": ...

    @overload
    async def submit(
        self, request: "messages.BrokerHeartbeatRequest", context: RequestContext = ...
    ) -> "messages.BrokerHeartbeatResponse": ...

    @overload
    async def submit(
        self, request: "messages.UnregisterBrokerRequest", context: RequestContext = ...
    ) -> "messages.UnregisterBrokerResponse": ...

    @overload
    async def submit(
        self, request: "messages.DescribeQuorumRequest", context: RequestContext = ...
    ) -> "messages.DescribeQuorumResponse": ...

    async def submit(self, request: Message, context: RequestContext = PLAIN) -> Message:
        """Decides a request and answers it when the decision is committed. Raises StorageError if the disk refuses."""
        if self.failure is not None:
            raise self.failure
        if isinstance(request, messages.DescribeQuorumRequest):
            end = self._driver.metadata_log.log.log_end_offset
            return describe_quorum(self._driver.quorum, request, log_end_offset=end, now=self._clock.wall())
        fresh = len(request.topics) if isinstance(request, messages.CreateTopicsRequest) else 0
        decision = self._controller.decide(request, self._context(context, fresh))
        # No await between deciding and replaying: two requests must not be decided from the same image.
        offset = self._runner.carry_out(_messages(decision.records))
        await self._runner.committed(offset)
        return decision.reply

    def _context(self, context: RequestContext, fresh_ids: int = 0) -> CommandContext:
        return CommandContext(
            now=self._clock.monotonic(),
            next_offset=self._driver.metadata_log.log.log_end_offset,
            kraft_version=self.kraft_version,
            fresh_ids=[self._ids.uuid() for _ in range(fresh_ids)],
            describable=context.describable,
        )

    async def register_broker(
        self,
        listeners: Sequence[Listener] | None = None,
        log_dirs: Sequence[Uuid] | None = None,
        *,
        rack: str | None = None,
        previous_broker_epoch: int = -1,
    ) -> int:
        """Registers and unfences the local broker and gives it its partitions back, each in a new leader epoch.

        `listeners` are those the broker really has (default: the configured ones), `log_dirs` the ids of its live
        directories, `previous_broker_epoch` what the clean-shutdown markers say.
        """
        kind = messages.BrokerRegistrationRequest
        request = kind(
            broker_id=self.settings.node_id,
            cluster_id=self.identity.cluster_id,
            incarnation_id=self._ids.uuid(),
            listeners=[
                kind.Listener(
                    name=each.name,
                    host=each.host,
                    port=each.port,
                    security_protocol=SECURITY_PROTOCOLS[each.protocol],
                )
                for each in (self.settings.advertised_listeners if listeners is None else listeners)
            ],
            features=[
                kind.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED.items()
            ],
            rack=rack,
            log_dirs=list(self.identity.directory_ids.values() if log_dirs is None else log_dirs),
            previous_broker_epoch=previous_broker_epoch,
        )
        decision = self._controller.decide(request, self._context(PLAIN))
        reply = decision.reply
        assert isinstance(reply, messages.BrokerRegistrationResponse)
        if reply.error_code:
            assert isinstance(reply.error_code, Errors)
            raise RegistrationRefused(reply.error_code)
        # Registration and unfencing share one commit: nobody can see the broker fenced in between.
        self._runner.carry_out(_messages(decision.records))
        heartbeat = messages.BrokerHeartbeatRequest(
            broker_id=self.settings.node_id,
            broker_epoch=reply.broker_epoch,
            current_metadata_offset=self._controller.image.offset,
            cordoned_log_dirs=[],
        )
        decision = self._controller.decide(heartbeat, self._context(PLAIN))
        await self._runner.committed(self._runner.carry_out(_messages(decision.records)))
        self.broker_epoch = reply.broker_epoch
        return self.broker_epoch

    # What the runner and the driver call

    def replay(
        self, records: Sequence[Message], *, base_offset: int, epoch: int, timestamp: int
    ) -> tuple[MetadataDelta, MetadataImage]:
        delta = self._controller.replay(records, base_offset=base_offset, epoch=epoch, timestamp=timestamp)
        if delta.features_changed:
            self._driver.metadata_log.metadata_version = self._controller.image.metadata_version
        return delta, self._controller.image

    def _advanced(self, high_watermark: int) -> None:
        try:
            self._runner.advance(high_watermark)
        except Exception as error:
            self._failed(error)
            raise
        if self._driver.metadata_log.wants_snapshot:
            self._take_snapshot()

    def _failed(self, error: BaseException) -> None:
        self._runner.fail(error)
        if self.on_failure is not None:
            self.on_failure(error)

    def _publish(self, change: tuple[MetadataDelta, MetadataImage], placed: Placed) -> None:
        delta, self.image = change
        for subscriber in self._subscribers:
            subscriber(delta, self.image)

    def _snapshot_if_changed(self) -> None:
        if self._driver.metadata_log.has_unsaved:
            self._take_snapshot()

    def _take_snapshot(self) -> None:
        if self._snapshot is None and self.image.offset >= 0:
            job = self._snapshot = self._driver.metadata_log.begin_snapshot(self.image)
            self._disk.run(job.run, lambda error: self._snapshot_done(job, error))

    def _snapshot_done(self, job: SnapshotJob, error: BaseException | None) -> None:
        """A snapshot that failed is no loss: the log has it all, and the next one may succeed."""
        self._snapshot = None
        if error is None:
            self._driver.metadata_log.remove(self._driver.metadata_log.finish_snapshot(job))


def _messages(records: Sequence[object]) -> list[Message]:
    return [record for record in records if isinstance(record, Message)]
