"""The active controller: decides, appends, replays, and answers when the quorum has committed.

It exists only while this node leads the quorum, and is thrown away with everything uncommitted when it no longer does.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from ottla.controller.activation import activation_records
from ottla.controller.machine import CommandContext, Controller
from ottla.controller.permits import ANY, Permits
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.model.ids import Millis
from ottla.model.ports import Clock, Ids
from ottla.model.properties import Settings
from ottla.net.peer import Peers
from ottla.protocol import messages
from ottla.protocol.codec import MetadataRecord, Request, ResponseT_co
from ottla.runtime.missing_brokers import MissingBrokers
from ottla.runtime.runner import NotLeader, Placed, Runner

logger = logging.getLogger(__name__)

Change = tuple[MetadataDelta, MetadataImage]

_CREATE_TOPICS: Final = 19
_CREATE_ACLS: Final = 30
_CREATE_TOKEN: Final = 38


class NotController(Exception):
    """This node is not the active controller, or has just ceased to be."""


class LeaderLog(Protocol):
    """What the active controller needs of the quorum."""

    def append(self, records: Sequence[MetadataRecord]) -> Placed: ...

    def commit(self) -> None: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def kraft_version(self) -> int: ...


class ActiveController:
    __slots__ = ("_clock", "_ids", "_log", "_missing", "_on_features", "_runner", "_timer", "controller")

    def __init__(
        self,
        image: MetadataImage,
        settings: Settings,
        log: LeaderLog,
        *,
        clock: Clock,
        ids: Ids,
        peers: Peers,
        publish: Callable[[MetadataDelta, MetadataImage], None],
        on_features: Callable[[MetadataImage], None],
    ) -> None:
        self.controller = Controller(image, settings)
        self._log = log
        self._clock = clock
        self._ids = ids
        self._on_features = on_features
        self._runner: Runner[Change] = Runner(self, log, lambda change, _: publish(*change))
        self._timer: asyncio.TimerHandle | None = None
        self._missing = MissingBrokers(
            peers, settings.inter_broker_listener, missing=self.controller.missing, found=self._found
        )

    def activate(
        self, bootstrap: Sequence[MetadataRecord], *, min_isr: int, torn_transaction: bool, predecessor: int
    ) -> None:
        """Writes what a new cluster begins with, and the end of what the last controller left open. The broker in the
        process of the last controller is the first to be missed."""
        self.controller.activated(self._clock.monotonic(), (predecessor,))
        records = activation_records(
            self.controller.image, bootstrap, min_isr=str(min_isr), open_transaction=torn_transaction
        )
        if torn_transaction:
            # The abort was replayed by forgetting; a delta has no way to take it.
            self._log.append(records[:1])
            records = records[1:]
        self._runner.carry_out(records)
        self._schedule()
        self._missing.look()

    def deactivate(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._missing.close()
        self._runner.fail(NotController("another node is the active controller now"))

    async def submit(self, request: Request[ResponseT_co], requester: str = "", permits: Permits = ANY) -> ResponseT_co:
        """Raises NotController if leadership was lost before the decision was committed: it may or may not hold."""
        decision = self.controller.decide(request, self._context(_fresh_ids(request), requester, permits))
        # No await between deciding and replaying: two requests must not be decided from the same image.
        offset = self._runner.carry_out(decision.records)
        self._schedule()
        await self._runner.committed(offset)
        return decision.reply

    def advance(self, high_watermark: int) -> None:
        self._runner.advance(high_watermark)

    def fail(self, error: BaseException) -> None:
        self._runner.fail(error)

    def _context(self, fresh_ids: int, requester: str, permits: Permits) -> CommandContext:
        return CommandContext(
            now=self._clock.monotonic(),
            next_offset=self._log.log_end_offset,
            kraft_version=self._log.kraft_version,
            fresh_ids=[self._ids.uuid() for _ in range(fresh_ids)],
            wall=self._clock.wall(),
            requester=requester,
            permits=permits,
        )

    def replay(self, records: Sequence[MetadataRecord], *, base_offset: int, epoch: int, timestamp: int) -> Change:
        delta = self.controller.replay(records, base_offset=base_offset, epoch=epoch, timestamp=timestamp)
        if delta.features_changed:
            self._on_features(self.controller.image)
        return delta, self.controller.image

    # ---- time

    def connected(self, broker_id: int, broker_epoch: int, connection: object) -> None:
        self.controller.connected(broker_id, broker_epoch, self._clock.monotonic(), connection)
        self._schedule()

    def disconnected(self, broker_id: int, broker_epoch: int, connection: object) -> None:
        self.controller.disconnected(broker_id, broker_epoch, self._clock.monotonic(), connection)
        self._schedule()
        self._missing.look()

    def _found(self, broker_id: int, broker_epoch: int, *, alive: bool) -> None:
        judge = self.controller.answered if alive else self.controller.dead
        judge(broker_id, broker_epoch, self._clock.monotonic())
        self._schedule()

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self.controller.next_tick(self._clock.monotonic())
        if due is not None and self._runner.error is None:
            delay = max(0, due - self._clock.monotonic()) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        now: Millis = self._clock.monotonic()
        decision = self.controller.tick(now, self._clock.wall())
        for effect in decision.effects:
            logger.warning("%s", effect)
        try:
            self._runner.carry_out(decision.records)
        except NotLeader:
            return  # whoever leads next ticks for itself
        self._schedule()


def _fresh_ids(request: Request[ResponseT_co]) -> int:
    """How many ids it takes to decide that request. By its key first: no codec is loaded to ask what it is not."""
    if request.API_KEY == _CREATE_TOPICS and isinstance(request, messages.CreateTopicsRequest):
        return len(request.topics)
    if request.API_KEY == _CREATE_ACLS and isinstance(request, messages.CreateAclsRequest):
        return len(request.creations)
    return int(request.API_KEY == _CREATE_TOKEN)
