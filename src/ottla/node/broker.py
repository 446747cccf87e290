"""The broker of a node: its logs, who leads them, and everything that answers clients.

This is where the parts of a broker are made and joined: whoever hears of an event is written in `_join`.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from typing import NamedTuple

from ottla.broker.coordination.coordinators import Host
from ottla.broker.coordination.courier import Neighbours
from ottla.broker.coordination.groups import group_coordinators, reconfigure
from ottla.broker.coordination.markers import LocalMarkers, Markers
from ottla.broker.coordination.producer_ids import ProducerIds
from ottla.broker.coordination.transactions import Transactions
from ottla.broker.coordination.verification import Askers, Verifier
from ottla.broker.events import Events
from ottla.broker.front.dispatch import Routes
from ottla.broker.housekeeping.housekeeping import Housekeeping
from ottla.broker.quotas.clients import ClientQuotas
from ottla.broker.replicas.directory_assignments import DirectoryAssignments
from ottla.broker.replicas.fetch_sessions import FetchSessions
from ottla.broker.replicas.fetchers import Fetchers, FetchHost
from ottla.broker.replicas.isr import IsrChanges
from ottla.broker.replicas.leader_news import LeaderNews
from ottla.broker.replicas.lost_leaders import LostLeaders
from ottla.broker.replicas.moves import Moves
from ottla.broker.replicas.placement import Placement
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.replicas.throttles import ReplicationThrottle
from ottla.broker.security.authorizer import Authorizer
from ottla.broker.services import Coordination, Services
from ottla.broker.settings.configs import Configs
from ottla.broker.validation import Validation
from ottla.broker.waiting.requests import WaitingRequests
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.metadata.records import DIRECTORY_ASSIGNMENT_LEVEL
from ottla.model.errors import Errors
from ottla.model.ids import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    BrokerId,
    Millis,
    uuid_text,
)
from ottla.model.ports import Ids
from ottla.model.properties import Settings
from ottla.node import options
from ottla.node.heap import Growth
from ottla.node.lazy_schemas import LazySchemas
from ottla.node.monitoring.watched import BrokerView
from ottla.node.network import Network
from ottla.node.services import Ending, Health, Service
from ottla.node.storage import Storage
from ottla.node.surroundings import Surroundings
from ottla.protocol.apis import ListenerType
from ottla.protocol.messages import AllocateProducerIdsRequest
from ottla.runtime.control_plane import ControlPlane
from ottla.runtime.lifecycle import BrokerLifecycle
from ottla.storage import names
from ottla.storage.fs import StorageError

logger = logging.getLogger(__name__)

_SESSION_EVICTION = Millis(120_000)
_BLOCK_PATIENCE_MS = 5_000
"""A producer waits for its id meanwhile: it is told to try again long before it would give the request up."""
_PARTITIONS_PER_TURN = 500
"""Looked at before other work gets a turn."""
_NO_DIRECTORIES = {LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY}


class Parts(NamedTuple):
    """Of a broker that knows its cluster."""

    configs: Configs
    leader_news: LeaderNews
    placement: Placement
    fetchers: Fetchers
    isr: IsrChanges
    assignments: DirectoryAssignments
    moves: Moves
    housekeeping: Housekeeping


class Coordinating(NamedTuple):
    """What keeps its state in logs of this broker, so that these come first."""

    served: Coordination
    all_markers: Markers
    askers: Askers
    neighbours: Neighbours

    def on_metadata(self, image: MetadataImage) -> None:
        """Partitions have come or gone, or the brokers that lead them."""
        self.served.groups.on_metadata(image)
        self.served.transactions.coordinators.on_metadata(image)
        self.all_markers.on_metadata()
        self.askers.on_metadata()


class Broker(Service):
    """`start` registers, loads the logs, is unfenced and answers clients; `stop` moves the leaders elsewhere first."""

    name = "broker"

    def __init__(
        self,
        settings: Settings,
        world: Surroundings,
        network: Network,
        storage: Storage,
        control_plane: ControlPlane,
        authorizer: Authorizer,
        quotas: ClientQuotas,
        registry_url: Callable[[], str | None],
    ) -> None:
        self._settings = settings
        self._registry_url = registry_url
        self._world = world
        self._network = network
        self._storage = storage
        self._control_plane = control_plane
        self._authorizer = authorizer
        self._quotas = quotas
        self._running = AsyncExitStack()
        self._loop = asyncio.get_running_loop()
        self._events = Events()
        self._waiting = WaitingRequests(self._loop, world.clock)
        self._replicas = Replicas(BrokerId(settings.node_id), storage.of_data, self._waiting, world.clock, self._events)
        self.view: BrokerView | None = None
        """None before its logs are loaded."""
        self.listeners = network.advertised
        """Where clients are told to connect, free ports filled in."""
        self._lifecycle = BrokerLifecycle(
            settings,
            control_plane,
            world.ids,
            self.listeners,
            directories=storage.of_data,
            previous_epoch=self._previous_epoch(),
        )

    # ---- coming

    async def start(self) -> None:
        """Raises RegistrationRefused."""
        lifecycle, control_plane = self._lifecycle, self._control_plane
        await lifecycle.register()
        await lifecycle.catch_up()
        self._tell_of_unknown_directories(control_plane.image)
        if control_plane.is_whole_cluster:
            # Nobody could see the broker before its logs are there, so these are loaded once, with their leaders.
            await lifecycle.unfence()
        parts = self._replicate()
        self._load_logs(parts.configs)
        parts.placement.load(control_plane.image)
        coordinating = self._coordinate(parts.configs)
        self._join(parts, coordinating)
        parts.housekeeping.start()
        services = self._services(parts, coordinating)
        self.view = BrokerView(services, parts.housekeeping.cleaning)
        await lifecycle.unfence()
        lifecycle.start()
        self._network.reconfigure(parts.configs.settings)
        self._network.serve(self._settings.broker_listeners, Routes(ListenerType.BROKER), services)

    def _previous_epoch(self) -> int:
        """The broker epoch of the last clean shutdown, if every directory tells the same (KIP-966)."""
        epochs = {directory.clean_broker_epoch for directory in self._storage.of_data}
        epoch = epochs.pop() if len(epochs) == 1 else None
        return -1 if epoch is None else epoch

    def _tell_of_unknown_directories(self, image: MetadataImage) -> None:
        """A directory that was taken away, or whose meta.properties was damaged or made anew."""
        me, directories = self._settings.node_id, self._storage.of_data
        placed = (each for topic in image.topics.values() for each in topic.partitions.values() if me in each.replicas)
        unknown = {each.directory(me) for each in placed} - {each.id for each in directories} - _NO_DIRECTORIES
        if unknown and all(directory.is_online for directory in directories):
            logger.warning(
                "replicas of this node are said to be in %s, and no directory in log.dirs has that id: see "
                "meta.properties. Logs that are found elsewhere are used there.",
                ", ".join(sorted(map(uuid_text, unknown))),
            )

    def _replicate(self) -> Parts:
        """Before the logs are loaded: whoever leads or follows a partition hears of it from the start."""
        settings, clock, loop, replicas = self._settings, self._world.clock, self._loop, self._replicas
        submit, broker_id, events = self._control_plane.submit, replicas.broker_id, self._events
        configs = Configs(settings, broker_id, self._control_plane.image, self._network.check)
        lost_leaders = LostLeaders(settings.get_int("ottla.metadata.news.wait.ms"), self._control_plane.image)
        leader_news = LeaderNews(clock, lost_leaders)
        fetch_host = FetchHost(
            loop,
            clock,
            replicas,
            self._waiting,
            configs,
            self._network.peers,
            self._epoch,
            ReplicationThrottle("follower", configs, broker_id),
            leader_news,
        )
        parts = Parts(
            configs,
            leader_news,
            Placement(replicas, configs, self._waiting, clock, self._world.ids),
            Fetchers(fetch_host),
            IsrChanges(loop, replicas, configs, submit, self._epoch),
            DirectoryAssignments(loop, broker_id, submit, self._epoch),
            Moves(loop, replicas, configs, clock, self._world.ids, self._has_directory_ids),
            Housekeeping(loop, replicas, configs, clock, self._world.cleaner),
        )
        self._running.push_async_callback(parts.housekeeping.stop)
        self._running.push_async_callback(parts.moves.stop)
        self._running.push_async_callback(parts.assignments.stop)
        self._running.push_async_callback(parts.isr.stop)
        self._running.callback(parts.fetchers.close)
        events.followed.hear(parts.fetchers.follow)
        events.isr_change_wanted.hear(parts.isr.want)
        events.lies_in.hear(parts.assignments.want)
        events.moving.hear(parts.moves.start)
        parts.isr.start()
        return parts

    def _load_logs(self, configs: Configs) -> None:
        for directory in self._storage.of_data:
            if not directory.is_online:
                continue
            try:
                found = directory.load(configs.log_config, self._world.clock.wall())
            except StorageError:
                if not any(each.is_online for each in self._storage.of_data) or directory.is_online:
                    raise
                continue  # it has just broken: the others have their logs
            self._replicas.deletions += [(directory, deletion) for deletion in found.deletions]
            for name in found.ignored:
                if name.endswith(names.FUTURE_DIR):
                    logger.warning("%s/%s is no copy of a log that is of use: remove it", directory.path, name)

    def _coordinate(self, configs: Configs) -> Coordinating:
        settings = self._settings
        host = Host(self._loop, self._world.clock, self._replicas, self._waiting, self._control_plane)
        groups = group_coordinators(settings, host, self._world.ids)
        producer_ids = ProducerIds(self._producer_id_block)
        markers = LocalMarkers(host, groups, settings.get_int("request.timeout.ms"))
        neighbours = Neighbours(self._loop, self._network.peers, self._replicas, configs)
        all_markers = Markers(host, markers, neighbours)
        transactions = Transactions(settings, host, producer_ids, all_markers)
        self._running.callback(transactions.coordinators.close)
        self._running.callback(groups.close)
        askers = Askers(transactions, neighbours)
        verifier = Verifier(askers, self._world.clock, self._loop, options.verification_backoff(settings))
        served = Coordination(groups, transactions, producer_ids, markers, verifier)
        return Coordinating(served, all_markers, askers, neighbours)

    def _join(self, parts: Parts, coordinating: Coordinating) -> None:
        events, control_plane = self._events, self._control_plane
        coordinating.on_metadata(control_plane.image)
        control_plane.subscribe(partial(self._on_metadata, parts, coordinating))
        events.came_late.hear(lambda: coordinating.on_metadata(control_plane.image))
        events.came.hear(Growth(self._loop, self._world.settled).one_more)
        events.flush_wanted.hear(parts.housekeeping.flush_soon)
        events.log_start_moved.hear(parts.housekeeping.checkpoint_soon)
        events.settings_changed.hear(partial(reconfigure, coordinating.served.groups))
        events.settings_changed.hear(self._network.reconfigure)
        self._storage.lost.hear(self._directories_failed)

    def _services(self, parts: Parts, coordinating: Coordinating) -> Services:
        settings, configs, broker_id = self._settings, parts.configs, self._replicas.broker_id
        return Services(
            configs=configs,
            limits=options.limits(settings),
            clock=self._world.clock,
            control_plane=self._control_plane,
            replicas=self._replicas,
            moves=parts.moves,
            waiting=self._waiting,
            fetch_sessions=FetchSessions(
                settings.get_int("max.incremental.fetch.session.cache.slots"), _SESSION_EVICTION
            ),
            authorizer=self._authorizer,
            quotas=self._quotas,
            new_fetch_session_id=_session_ids(self._world.ids),
            coordination=coordinating.served,
            throttle=ReplicationThrottle("leader", configs, broker_id),
            leader_news=parts.leader_news,
            validation=Validation(
                LazySchemas(settings, self._world.clock, self._registry_url),
                coordinating.neighbours,
                lambda: self._control_plane.image,
            ),
        )

    def _has_directory_ids(self) -> bool:
        return self._control_plane.image.metadata_version >= DIRECTORY_ASSIGNMENT_LEVEL

    def _epoch(self) -> int:
        return self._lifecycle.epoch

    async def _producer_id_block(self) -> tuple[int, int] | None:
        request = AllocateProducerIdsRequest(broker_id=self._settings.node_id, broker_epoch=self._lifecycle.epoch)
        try:
            block = await self._control_plane.submit(request, _BLOCK_PATIENCE_MS)
        except StorageError:
            return None  # the disk of this node's controller refuses
        if block.error_code:  # no controller answers, or it does not know this broker's epoch yet
            logger.warning("the controller gives no producer ids: %s", Errors(block.error_code).name)
            return None
        return block.producer_id_start, block.producer_id_len

    # ---- living

    def _on_metadata(
        self, parts: Parts, coordinating: Coordinating, delta: MetadataDelta, image: MetadataImage
    ) -> None:
        parts.leader_news.on_metadata(delta, image)
        self._lifecycle.on_metadata(delta)
        settings_changed = parts.configs.on_metadata(delta, image)
        parts.placement.on_metadata(delta, image, settings_changed=settings_changed)
        coordinating.on_metadata(image)
        if settings_changed:
            self._events.settings_changed.tell(parts.configs.settings)

    def _directories_failed(self) -> None:
        for directory in self._storage.of_data:
            if not directory.is_online:
                self._replicas.take_offline(directory)
        self._lifecycle.beat_now()

    async def health(self) -> Health:
        """Whether what this broker is responsible for can be done now."""
        reasons = {}
        if self._lifecycle.fenced:
            reasons["fenced"] = "the broker is fenced: no partition is led here"
        runners = [] if self.view is None else self.view.services.coordination.groups.runners()
        if any(runner.error is not None for runner in runners):
            reasons["loading"] = "coordinators are being read from their logs"
        return Health.of({**reasons, **await self._partition_troubles()})

    async def _partition_troubles(self) -> dict[str, str]:
        """For whoever asks whether the next broker may be taken down."""
        behind = too_few = 0
        for turn, partition in enumerate(list(self._replicas.all())):
            if turn % _PARTITIONS_PER_TURN == _PARTITIONS_PER_TURN - 1:
                await asyncio.sleep(0)
            if partition.leader is not None:
                too_few += partition.leader.under_min_isr
                continue
            placed = self._control_plane.image.partition(partition.topic, partition.index)
            behind += placed is not None and self._replicas.broker_id not in placed.isr
        found = {}
        if behind:
            found["catching_up"] = f"{behind} replicas of this broker are not in sync"
        if too_few:
            found["under_min_isr"] = f"{too_few} partitions led here have fewer in sync than min.insync.replicas"
        return found

    def banner(self) -> Sequence[str]:
        return [f"kafka    {each.host}:{each.port}  ({each.name})" for each in self.listeners]

    # ---- going

    async def stop(self, ending: Ending) -> None:
        lifecycle = self._lifecycle
        self._storage.broker_epoch = lifecycle.epoch
        try:
            if ending.clean and ending.hand_over and self._control_plane.failure is None:
                # The leaders move while clients are still served: they learn where to go.
                await lifecycle.leave()
        finally:
            lifecycle.stop()
            self._network.stop_serving()
            self._events.silence()
            await self._running.aclose()


def _session_ids(ids: Ids) -> Callable[[], int]:
    """Positive, and starting anywhere: a session id of before a restart must not be taken for a new one."""
    numbers = count(ids.number(0, 0x7FFFFFFF))
    return lambda: next(numbers) % 0x7FFFFFFF + 1
