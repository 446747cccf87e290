"""The control plane of a node: the committed facts, and requests that change them.

Every node follows the metadata log. The one that leads its quorum has the active controller and decides; all others
pass requests on to it, so whoever asks need not know where it is.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from ottla.controller.permits import ANY, Permits
from ottla.metadata.features import SUPPORTED
from ottla.metadata.image import KRAFT_VERSION, MetadataImage
from ottla.model.errors import Errors
from ottla.model.ids import ZERO_UUID
from ottla.model.ports import Clock, Ids
from ottla.model.properties import Settings
from ottla.net.peer import Peers
from ottla.protocol import messages
from ottla.protocol.apis import API, Decider
from ottla.protocol.codec import Message, Request, ResponseT_co
from ottla.protocol.refusals import refused
from ottla.runtime.active import NotController
from ottla.runtime.clock import SystemClock, SystemIds
from ottla.runtime.committed import Condition, Subscriber
from ottla.runtime.disk import DiskThread, SyncThread
from ottla.runtime.formatting import Identity, identify
from ottla.runtime.forwarding import Forwarder, Sender
from ottla.runtime.metadata_log import MetadataLog, MetadataLogSettings
from ottla.runtime.metadata_quorum import MetadataQuorum
from ottla.runtime.runner import NotLeader
from ottla.storage.fs import Filesystem, RealFilesystem
from ottla.storage.segment import OpenFiles

SECURITY_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
_SEEN_HERE_SECONDS: Final = 1.0
_CREATE_TOPICS: Final = 19


class ControlPlane:
    """Open, start, serve, close; in this order."""

    __slots__ = ("_committed", "_forwarder", "_quorum", "identity", "raft", "settings")

    def __init__(self, settings: Settings, identity: Identity, quorum: MetadataQuorum, forwarder: Forwarder) -> None:
        self.settings = settings
        self.identity = identity
        self.raft = quorum.raft
        self._quorum = quorum
        self._committed = quorum.committed_image
        self._forwarder = forwarder
        quorum.on_leader(forwarder.leader_changed)

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
        quorum = MetadataQuorum(
            settings,
            identity,
            log,
            clock=clock,
            ids=ids,
            disk=disk or SyncThread(),
            peers=peers,
            on_failure=on_failure,
        )
        return cls(settings, identity, quorum, Forwarder(peers, quorum.raft.leader_address, clock))

    # ---- living

    async def start(self) -> None:
        """Takes part in the quorum. A quorum of one has its active controller when this returns."""
        await self._quorum.start()

    async def close(self) -> None:
        """Hands leadership on, makes everything durable and closes the log."""
        await self._quorum.close()

    # ---- what the node uses

    @property
    def image(self) -> MetadataImage:
        """The committed facts, replaced as a whole with each change."""
        return self._committed.image

    def subscribe(self, subscriber: Subscriber) -> None:
        """Called on the loop with each committed change and the image it leads to, before the request is answered."""
        self._committed.subscribe(subscriber)

    async def reached(self, offset: int) -> None:
        """The own image has come as far as this offset of the metadata log."""
        await self._committed.reached(offset)

    def on_leader(self, callback: Callable[[], None]) -> None:
        """Called when the active controller is another one than before, or none."""
        self._quorum.on_leader(callback)

    @property
    def has_caught_up(self) -> bool:
        """Since its start this node has read the metadata log as far as it was committed."""
        return self._quorum.caught_up

    @property
    def failure(self) -> BaseException | None:
        """What ended this control plane: most likely what the disk said when the metadata directory was lost."""
        return self._quorum.failure

    @property
    def is_active(self) -> bool:
        return self._quorum.active is not None

    @property
    def is_whole_cluster(self) -> bool:
        """This node is the only voter and the only broker there is."""
        return self._quorum.voters == tuple(self.image.brokers) == (self.settings.node_id,)

    @property
    def leader_id(self) -> int:
        return self.raft.leader_id

    @property
    def leader_epoch(self) -> int:
        return self.raft.epoch

    @property
    def kraft_version(self) -> int:
        return self._quorum.kraft_version

    @property
    def log_end_offset(self) -> int:
        return self._quorum.log_end_offset

    @property
    def finalized_features(self) -> dict[str, int]:
        """As ApiVersions reports them: the image's levels and the quorum's own; a level of 0 is left out."""
        own = {KRAFT_VERSION: self.kraft_version} if self.kraft_version else {}
        return {**self.image.features, **own}

    async def submit(
        self,
        request: Request[ResponseT_co],
        timeout_ms: int = 30_000,
        *,
        on_behalf_of: Sender | None = None,
        permits: Permits | None = None,
    ) -> ResponseT_co:
        """Decides a request, here or wherever the active controller is, and answers when the decision is committed.
        None: this node asks for itself. `permits` are what the client may change, if it is decided here.

        Raises StorageError if the disk of this node's controller refuses; a controller that cannot be reached is an
        answer with REQUEST_TIMED_OUT.
        """
        if self.failure is not None:
            raise self.failure
        if self.raft.is_leader:
            try:
                return await self.submit_here(request, on_behalf_of, permits)
            except NotController:
                pass  # lost it while deciding: the new one is asked
        answer = await self._forwarder.forward(request, timeout_ms, on_behalf_of)
        await self._seen_here(request, answer)
        return answer

    async def submit_here(
        self, request: Request[ResponseT_co], on_behalf_of: Sender | None = None, permits: Permits | None = None
    ) -> ResponseT_co:
        """For requests that came to this node as the controller. Raises NotController."""
        api = API[request.API_KEY]
        if api.served is not None and api.served.decider is Decider.QUORUM:
            return await self.ask_quorum(request, api.stable_max)
        active = self._quorum.active
        if active is None:
            raise NotController("this node is not the active controller")
        try:
            requester = "" if on_behalf_of is None else on_behalf_of.principal
            return await active.submit(request, requester, permits or ANY)
        except NotLeader as error:
            raise NotController("another node is the active controller now") from error

    async def answer_here(
        self, request: Request[ResponseT_co], on_behalf_of: Sender | None = None, permits: Permits | None = None
    ) -> ResponseT_co:
        """As `submit_here`, with NOT_CONTROLLER in the shape of the request's own answer."""
        try:
            return await self.submit_here(request, on_behalf_of, permits)
        except NotController as error:
            return refused(request, Errors.NOT_CONTROLLER, str(error))

    async def ask_quorum(self, request: Request[ResponseT_co], version: int) -> ResponseT_co:
        waiter: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.raft.handle(request, version, lambda answer: None if waiter.done() else waiter.set_result(answer))
        answer: ResponseT_co = await waiter
        return answer

    def broker_connected(self, broker_id: int, broker_epoch: int, connection: object) -> None:
        """A heartbeat came over that connection."""
        if self._quorum.active is not None:
            self._quorum.active.connected(broker_id, broker_epoch, connection)

    def broker_disconnected(self, broker_id: int, broker_epoch: int, connection: object) -> None:
        """The connection over which a broker sent its heartbeats broke."""
        if self._quorum.active is not None:
            self._quorum.active.disconnected(broker_id, broker_epoch, connection)

    async def _seen_here(self, request: Message, answer: Message) -> None:
        """A topic that another node has just created is looked for here next: waits a moment until it has arrived."""
        if request.API_KEY != _CREATE_TOPICS or not isinstance(request, messages.CreateTopicsRequest):
            return
        assert isinstance(answer, messages.CreateTopicsResponse)
        if request.validate_only:
            return
        wanted = [(t.name, t.topic_id) for t in answer.topics if not t.error_code]
        await self.seen_here(lambda image: all(_has(image, *topic) for topic in wanted))

    async def seen_here(self, holds: Condition) -> None:
        """Waits until the own image is as it should be after a change, and those who follow it know: for a moment only,
        since what was decided holds anyway."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SEEN_HERE_SECONDS):
                await self._committed.until(holds)


def _has(image: MetadataImage, name: str, topic_id: bytes) -> bool:
    """Answers to versions before 7 do not tell the id."""
    return name in image.topics if topic_id == ZERO_UUID else topic_id in image.topics_by_id


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
