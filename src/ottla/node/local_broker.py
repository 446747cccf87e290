"""The broker half of a node: its logs, who leads them, and everything that answers clients."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING

from ottla.broker.coordination.coordinators import Coordinators, Host
from ottla.broker.coordination.courier import Neighbours
from ottla.broker.coordination.groups import group_coordinators, reconfigure
from ottla.broker.coordination.markers import LocalMarkers, Markers
from ottla.broker.coordination.producer_ids import ProducerIds
from ottla.broker.coordination.transactions import Transactions
from ottla.broker.coordination.verification import Askers, Verifier
from ottla.broker.housekeeping.housekeeping import Housekeeping
from ottla.broker.replicas.directory_assignments import DirectoryAssignments
from ottla.broker.replicas.fetch_sessions import FetchSessions
from ottla.broker.replicas.fetchers import Fetchers, FetchHost
from ottla.broker.replicas.isr import IsrChanges
from ottla.broker.replicas.lost_leaders import LostLeaders
from ottla.broker.replicas.placement import Placement
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.replicas.throttles import ReplicationThrottle
from ottla.broker.security.authorizer import Authorizer
from ottla.broker.services import Services
from ottla.broker.settings.configs import Configs
from ottla.broker.waiting.requests import WaitingRequests
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.model.ids import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    BrokerId,
    Millis,
    uuid_text,
)
from ottla.model.ports import Ids
from ottla.model.properties import Listener, Settings
from ottla.net.peer import Peers
from ottla.node import options
from ottla.node.surroundings import Surroundings
from ottla.protocol.messages import AllocateProducerIdsRequest
from ottla.runtime.control_plane import ControlPlane
from ottla.runtime.lifecycle import BrokerLifecycle
from ottla.storage.directory import LogDirectory
from ottla.storage.fs import StorageError

if TYPE_CHECKING:  # its messages are loaded with the first group, not with the node
    from ottla.coordinator.group.shard import GroupShard

log = logging.getLogger(__name__)

_SESSION_EVICTION = Millis(120_000)
_NO_DIRECTORIES = {LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY}


class LocalBroker:
    """`start` registers, loads the logs and is unfenced; the services it returns answer clients."""

    def __init__(
        self,
        settings: Settings,
        world: Surroundings,
        control_plane: ControlPlane,
        peers: Peers,
        directories: list[LogDirectory],
        authorizer: Authorizer,
    ) -> None:
        self._settings = settings
        self._world = world
        self._control_plane = control_plane
        self._peers = peers
        self._directories = directories
        self._authorizer = authorizer
        self._lifecycle: BrokerLifecycle | None = None
        self._configs: Configs | None = None
        self._replicas: Replicas | None = None
        self._placement: Placement | None = None
        self._fetchers: Fetchers | None = None
        self._isr: IsrChanges | None = None
        self._assignments: DirectoryAssignments | None = None
        self._housekeeping: Housekeeping | None = None
        self._groups: Coordinators[GroupShard] | None = None
        self._transactions: Transactions | None = None
        self.on_settings: Callable[[Settings], None] = lambda settings: None
        """Told when settings were changed while the broker runs (KIP-226)."""

    # ---- coming

    async def start(self, listeners: Sequence[Listener]) -> Services:
        """Raises RegistrationRefused."""
        lifecycle = self._lifecycle = BrokerLifecycle(
            self._settings,
            self._control_plane,
            self._world.ids,
            listeners,
            previous_epoch=self._previous_epoch(),
        )
        await lifecycle.register()
        await lifecycle.catch_up()
        self._tell_of_unknown_directories(self._control_plane.image)
        if self._control_plane.is_whole_cluster:
            # Nobody could see the broker before its logs are there, so these are loaded once, with their leaders.
            await lifecycle.unfence()
        services = self._assemble(asyncio.get_running_loop(), self._control_plane)
        await lifecycle.unfence()
        lifecycle.start()
        return services

    def _previous_epoch(self) -> int:
        """The broker epoch of the last clean shutdown, if every directory tells the same (KIP-966)."""
        epochs = {directory.clean_broker_epoch for directory in self._directories}
        epoch = epochs.pop() if len(epochs) == 1 else None
        return -1 if epoch is None else epoch

    def _tell_of_unknown_directories(self, image: MetadataImage) -> None:
        """A directory that was taken away, or whose meta.properties was damaged or made anew."""
        me = self._settings.node_id
        placed = (each for topic in image.topics.values() for each in topic.partitions.values() if me in each.replicas)
        unknown = {each.directory(me) for each in placed} - {each.id for each in self._directories} - _NO_DIRECTORIES
        if unknown and all(directory.is_online for directory in self._directories):
            log.warning(
                "replicas of this node are said to be in %s, and no directory in log.dirs has that id: see "
                "meta.properties. Logs that are found elsewhere are used there.",
                ", ".join(sorted(map(uuid_text, unknown))),
            )

    def _assemble(self, loop: asyncio.AbstractEventLoop, control_plane: ControlPlane) -> Services:
        settings, clock = self._settings, self._world.clock
        broker_id = BrokerId(settings.node_id)
        configs = self._configs = Configs(settings, broker_id, control_plane.image)
        waiting = WaitingRequests(loop, clock)
        replicas = self._replicas = Replicas(broker_id, self._directories, waiting, clock)
        placement = self._placement = Placement(replicas, configs, waiting, clock, self._world.ids)
        lost_leaders = LostLeaders(settings.get_int("ottla.metadata.news.wait.ms"), control_plane.image)
        self._replicate(loop, replicas, configs, waiting, lost_leaders)
        placement.lies_in = self._assign_directories(loop, broker_id).want
        self._load_logs(replicas, configs)
        placement.load(control_plane.image)
        host = Host(loop, clock, replicas, waiting, control_plane)
        groups = self._groups = group_coordinators(settings, host, self._world.ids)
        groups.on_metadata(control_plane.image)
        producer_ids = ProducerIds(self._producer_id_block)
        markers = LocalMarkers(host, groups, settings.get_int("request.timeout.ms"))
        neighbours = Neighbours(loop, self._peers, replicas, configs)
        everywhere = Markers(host, markers, neighbours)
        transactions = self._transactions = Transactions(settings, host, producer_ids, everywhere)
        transactions.coordinators.on_metadata(control_plane.image)
        control_plane.subscribe(lambda delta, image: lost_leaders.on_metadata(delta, image, clock.monotonic()))
        control_plane.subscribe(self._on_metadata)
        placement.came_late = lambda: self._tell_coordinators(control_plane.image)
        self._housekeeping = Housekeeping(loop, replicas, configs, clock, self._world.cleaner)
        self._housekeeping.start()
        return Services(
            broker_id=broker_id,
            configs=configs,
            limits=options.limits(settings),
            clock=clock,
            control_plane=control_plane,
            replicas=replicas,
            waiting=waiting,
            fetch_sessions=FetchSessions(
                settings.get_int("max.incremental.fetch.session.cache.slots"), _SESSION_EVICTION
            ),
            authorizer=self._authorizer,
            new_fetch_session_id=_session_ids(self._world.ids),
            producer_ids=producer_ids,
            groups=groups,
            transactions=transactions,
            markers=markers,
            throttle=ReplicationThrottle("leader", configs, broker_id),
            verifier=Verifier(Askers(transactions, neighbours), clock, loop, options.verification_backoff(settings)),
            lost_leaders=lost_leaders,
        )

    def _load_logs(self, replicas: Replicas, configs: Configs) -> None:
        for directory in self._directories:
            if not directory.is_online:
                continue
            try:
                found = directory.load(configs.log_config, self._world.clock.wall())
            except StorageError:
                if not any(each.is_online for each in self._directories) or directory.is_online:
                    raise
                continue  # it has just broken: the others have their logs
            replicas.deletions += [(directory, deletion) for deletion in found.deletions]

    def _replicate(
        self,
        loop: asyncio.AbstractEventLoop,
        replicas: Replicas,
        configs: Configs,
        waiting: WaitingRequests,
        lost_leaders: LostLeaders,
    ) -> None:
        """Before the logs are loaded: whoever leads or follows a partition hears of it from the start."""
        lifecycle = self._lifecycle
        assert lifecycle is not None
        lifecycle.offline_directories = replicas.offline_directories
        host = FetchHost(
            loop,
            self._world.clock,
            replicas,
            waiting,
            configs,
            self._peers,
            lambda: lifecycle.epoch,
            ReplicationThrottle("follower", configs, replicas.broker_id),
            lost_leaders,
        )
        self._fetchers = Fetchers(host)
        self._fetchers.start()
        self._isr = IsrChanges(loop, replicas, configs, self._control_plane.submit, lambda: lifecycle.epoch)
        self._isr.start()

    def _assign_directories(self, loop: asyncio.AbstractEventLoop, broker_id: BrokerId) -> DirectoryAssignments:
        lifecycle = self._lifecycle
        assert lifecycle is not None
        self._assignments = DirectoryAssignments(loop, broker_id, self._control_plane.submit, lambda: lifecycle.epoch)
        return self._assignments

    async def _producer_id_block(self) -> tuple[int, int]:
        assert self._lifecycle is not None
        request = AllocateProducerIdsRequest(broker_id=self._settings.node_id, broker_epoch=self._lifecycle.epoch)
        block = await self._control_plane.submit(request)
        assert not block.error_code, block
        return block.producer_id_start, block.producer_id_len

    # ---- living

    def _on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        assert self._configs is not None and self._placement is not None
        assert self._groups is not None and self._transactions is not None
        assert self._lifecycle is not None
        self._lifecycle.on_metadata(delta)
        settings_changed = self._configs.on_metadata(delta, image)
        self._placement.on_metadata(delta, image, settings_changed=settings_changed)
        self._tell_coordinators(image)
        if settings_changed:
            reconfigure(self._groups, self._configs.settings)
            self.on_settings(self._configs.settings)

    def _tell_coordinators(self, image: MetadataImage) -> None:
        """Of partitions that have come or gone."""
        assert self._groups is not None and self._transactions is not None
        self._groups.on_metadata(image)
        self._transactions.coordinators.on_metadata(image)

    def directories_failed(self) -> None:
        for directory in self._directories:
            if not directory.is_online and self._replicas is not None:
                self._replicas.take_offline(directory)
        if self._lifecycle is not None:
            self._lifecycle.beat_now()

    # ---- going

    async def leave(self, *, hand_over: bool) -> int:
        """Moves the leaders elsewhere. Gives the broker epoch for the markers of a clean shutdown."""
        if self._lifecycle is None:
            return -1
        epoch = self._lifecycle.epoch
        if hand_over:
            await self._lifecycle.leave()
        self._lifecycle.stop()
        return epoch

    async def stop(self) -> None:
        if self._groups is not None:
            self._groups.close()
        if self._transactions is not None:
            self._transactions.coordinators.close()
        if self._fetchers is not None:
            self._fetchers.close()
        if self._isr is not None:
            await self._isr.stop()
        if self._assignments is not None:
            await self._assignments.stop()
        if self._housekeeping is not None:
            await self._housekeeping.stop()


def _session_ids(ids: Ids) -> Callable[[], int]:
    """Positive, and starting anywhere: a session id of before a restart must not be taken for a new one."""
    numbers = count(ids.number(0, 0x7FFFFFFF))
    return lambda: next(numbers) % 0x7FFFFFFF + 1
