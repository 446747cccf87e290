"""A broker's life in its cluster: it registers, catches up, is unfenced, says that it lives, and leaves in good order.

Heartbeats also keep a connection to the active controller open: when that breaks and does not come back, the controller
fences the broker long before its session would run out.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.features import SUPPORTED
from ottla.model.errors import Errors
from ottla.model.ports import Ids
from ottla.model.properties import Listener, Settings
from ottla.protocol import messages
from ottla.runtime.control_plane import SECURITY_PROTOCOLS, ControlPlane
from ottla.runtime.tasks import Tasks
from ottla.storage.directory import LogDirectory
from ottla.storage.fs import StorageError

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 0.1
_LEAVING_MS: Final = 1_500
"""How long a leaving broker waits for one answer: the others may be leaving as well, and with them the controller."""
_WAIT_A_LITTLE: Final = (Errors.DUPLICATE_BROKER_REGISTRATION, Errors.REQUEST_TIMED_OUT, Errors.NOT_CONTROLLER)
"""The controller still takes the process before this one for alive, or there is no controller at the moment."""


class RegistrationRefused(Exception):
    """The controller does not want this broker."""

    def __init__(self, error: Errors) -> None:
        super().__init__(f"the controller refuses this broker: {error.name}. {error.text}")
        self.error = error


class BrokerLifecycle:
    """Register, `catch_up`, load the logs, `unfence`, serve; then `leave`."""

    __slots__ = (
        "_beat_now",
        "_control_plane",
        "_directories",
        "_incarnation_id",
        "_listeners",
        "_previous_epoch",
        "_settings",
        "_tasks",
        "epoch",
        "fenced",
    )

    def __init__(
        self,
        settings: Settings,
        control_plane: ControlPlane,
        ids: Ids,
        listeners: Sequence[Listener],
        directories: Sequence[LogDirectory] = (),
        previous_epoch: int = -1,
    ) -> None:
        """`listeners` are those the broker really has, `directories` are watched for failures, `previous_epoch` is
        what the markers of a clean shutdown say."""
        self._settings = settings
        self._control_plane = control_plane
        self._listeners = listeners
        self._directories = directories
        self._previous_epoch = previous_epoch
        self._incarnation_id = ids.uuid()
        self._tasks = Tasks(asyncio.get_running_loop())
        self._beat_now = asyncio.Event()
        self.epoch = -1
        self.fenced = True
        control_plane.on_leader(self._beat_now.set)

    # ---- coming

    async def register(self) -> None:
        """Returns when the controller has taken the broker. Raises RegistrationRefused."""
        while True:
            reply = await self._control_plane.submit(self._registration())
            error = Errors(reply.error_code)
            if not error:
                break
            if error not in _WAIT_A_LITTLE:
                raise RegistrationRefused(error)
            await asyncio.sleep(_RETRY_SECONDS)
        self.epoch = reply.broker_epoch

    def _registration(self) -> "messages.BrokerRegistrationRequest":
        kind = messages.BrokerRegistrationRequest
        return kind(
            broker_id=self._settings.node_id,
            cluster_id=self._control_plane.identity.cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=[
                kind.Listener(
                    name=each.name, host=each.host, port=each.port, security_protocol=SECURITY_PROTOCOLS[each.protocol]
                )
                for each in self._listeners
            ],
            features=[
                kind.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED.items()
            ],
            rack=self._settings.find_str("broker.rack"),
            log_dirs=list(self._control_plane.identity.directory_ids.values()),
            previous_broker_epoch=self._previous_epoch,
        )

    async def catch_up(self) -> None:
        """The own image has come as far as the registration: a broker's epoch is the offset of its record."""
        await self._control_plane.reached(self.epoch)

    async def unfence(self) -> None:
        """Heartbeats until the controller lets the broker lead."""
        while self.fenced:
            await self._beat()
            if self.fenced:
                await asyncio.sleep(_RETRY_SECONDS / 2)

    def start(self) -> None:
        self._tasks.start(self._keep_alive(), "heartbeats")

    # ---- living

    async def _keep_alive(self) -> None:
        interval = self._settings.get_int("broker.heartbeat.interval.ms") / 1000
        cannot_write = False
        while True:
            try:
                async with asyncio.timeout(interval if not self.fenced else _RETRY_SECONDS):
                    await self._beat_now.wait()
            except TimeoutError:
                pass
            self._beat_now.clear()
            cannot_write = await self._beat_or_tell(cannot_write)

    async def _beat_or_tell(self, told: bool) -> bool:
        """A broker lives on, and says so, if the controller of the same node cannot write down what follows from it.
        Whether that is told: once, until it can again."""
        try:
            await self._beat()
        except StorageError as error:
            if not told:
                logger.error("the controller cannot write what this broker's heartbeats change: %s", error.strerror)
            return True
        return False

    def on_metadata(self, delta: MetadataDelta) -> None:
        """A broker that wants to leave may go once the others have read that it leads no more: they say so at once."""
        leaving = [b for b in delta.changed_brokers.values() if b is not None and b.in_controlled_shutdown]
        if any(broker.id != self._settings.node_id for broker in leaving):
            self._beat_now.set()

    def beat_now(self) -> None:
        """Something the controller should know has changed."""
        self._beat_now.set()

    async def _beat(self, *, leaving: bool = False) -> "messages.BrokerHeartbeatResponse":
        offline: list[bytes] = [d.id for d in self._directories if not d.is_online and d.id is not None]
        request = messages.BrokerHeartbeatRequest(
            broker_id=self._settings.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._control_plane.image.offset,
            want_shut_down=leaving,
            offline_log_dirs=offline,
            cordoned_log_dirs=[],
        )
        patience = self._settings.get_int("broker.session.timeout.ms") // 2
        reply = await self._control_plane.submit(
            request, timeout_ms=min(patience, _LEAVING_MS) if leaving else patience
        )
        error = Errors(reply.error_code)
        if error in (Errors.STALE_BROKER_EPOCH, Errors.BROKER_ID_NOT_REGISTERED) and not leaving:
            logger.warning("the controller has forgotten this broker (%s): it registers again", error.name)
            self.fenced = True
            await self.register()
        elif not error:
            self.fenced = reply.is_fenced
        return reply

    # ---- going

    async def leave(self) -> None:
        """A controlled shutdown: the controller moves the leaders first. After a while the broker goes anyway."""
        self.stop()
        if self.epoch < 0:
            return
        try:
            async with asyncio.timeout(self._settings.get_int("ottla.controlled.shutdown.timeout.ms") / 1000):
                await self._leave()
        except TimeoutError:
            logger.warning("the controller has not let this broker go in time: it goes without")
        except StorageError as error:
            logger.warning("the controller cannot write that this broker goes: it goes without. %s", error.strerror)

    def stop(self) -> None:
        self._tasks.cancel()

    async def _leave(self) -> None:
        gone = (Errors.STALE_BROKER_EPOCH, Errors.BROKER_ID_NOT_REGISTERED)
        while (reply := await self._leave_of_controller()) is not None:
            if reply.should_shut_down or reply.error_code in gone:
                return
            await asyncio.sleep(_RETRY_SECONDS / 2)
        # So it is for the last ones of a cluster that stops as a whole: too few are left to elect a controller.
        logger.info("no controller answers any more: this broker goes without being let go")

    async def _leave_of_controller(self) -> "messages.BrokerHeartbeatResponse | None":
        """None: nobody answers, and there is nobody who could take over."""
        try:
            async with asyncio.timeout(_LEAVING_MS / 1000):
                reply = await self._beat(leaving=True)
        except TimeoutError:
            return None
        return None if reply.error_code == Errors.REQUEST_TIMED_OUT else reply
