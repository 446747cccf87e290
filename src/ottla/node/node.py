"""One node: a controller, a broker, or both, as a table of services."""

import asyncio
import logging

from ottla.broker.front.server import CannotListen
from ottla.broker.security.authorizer import AllowAll, Authorizer
from ottla.metadata.batches import CorruptMetadata
from ottla.model.properties import Listener, Settings
from ottla.net.host_name import NoHostName
from ottla.node import options
from ottla.node.broker import Broker
from ottla.node.monitoring.watched import BrokerView, Watched
from ottla.node.network import Network
from ottla.node.quorum import Metadata, QuorumMember
from ottla.node.quotas import QuotasInForce
from ottla.node.services import CannotStart, Ending, Health, ServiceTable
from ottla.node.storage import Storage
from ottla.node.surroundings import Surroundings
from ottla.runtime.control_plane import ControlPlane
from ottla.runtime.formatting import METADATA_LOG, FormatError
from ottla.runtime.joining import cluster_to_join
from ottla.runtime.lifecycle import RegistrationRefused
from ottla.runtime.metadata_log import MetadataLogError
from ottla.storage.directory import DirectoryInUse
from ottla.storage.fs import CorruptLog, StorageError

logger = logging.getLogger(__name__)


class StartFailed(Exception):
    """The node cannot start. The text says what is wrong and what to do; there is nothing to see in a traceback."""


class Node:
    """`start` returns when clients can produce (or, without a broker, when the quorum is joined); `stop` is a clean
    shutdown."""

    def __init__(
        self, settings: Settings, authorizer: Authorizer | None = None, surroundings: Surroundings | None = None
    ) -> None:
        self.settings = settings
        self._authorizer = authorizer
        self._world = surroundings or Surroundings()
        self._table = ServiceTable()
        self.stopped = asyncio.Event()
        """Set when the node has stopped by itself, because its metadata directory failed."""

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Where clients are told to connect, free ports filled in."""
        broker = self._table.find(Broker)
        return () if broker is None else broker.listeners

    @property
    def http_addresses(self) -> tuple[str, ...]:
        """Where it answers /metrics and the like: http://host:port, free ports filled in."""
        from ottla.node.http import HttpListeners  # noqa: PLC0415  a node that shows nothing does without

        shown = self._table.find(HttpListeners)
        return () if shown is None else shown.addresses

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{listener.host}:{listener.port}" for listener in self.listeners)

    @property
    def has_joined(self) -> bool:
        """It takes part in its cluster, even if it serves no clients yet."""
        return self._table.find(QuorumMember) is not None

    @property
    def control_plane(self) -> ControlPlane:
        member = self._table.find(QuorumMember)
        assert member is not None, "the node is not started"
        return member.control_plane

    async def health(self) -> dict[str, Health]:
        """By service, in the order in which they start: those that have not begun to are not among them."""
        return await self._table.health()

    def banner(self) -> list[str]:
        """Where its services can be reached."""
        return self._table.banner()

    # ---- starting

    async def start(self) -> None:
        """Raises StartFailed with a sentence for the operator, and leaves nothing behind."""
        try:
            await self._start()
        except Exception as error:
            await self.stop(clean=False)
            why = self._why(error)
            if why is None:
                raise  # a defect, to be seen as such
            raise StartFailed(why) from error

    def _why(self, error: Exception) -> str | None:
        match error:
            case (
                CannotListen()
                | CannotStart()
                | CorruptLog()
                | DirectoryInUse()
                | FormatError()
                | MetadataLogError()
                | NoHostName()
                | RegistrationRefused()
                | options.TooFewDescriptors()
            ):
                return str(error)
            case CorruptMetadata():
                place = f"{self.settings.metadata_log_dir}/{METADATA_LOG}"
                return f"{place} cannot be read: {error}. Restore it from a backup, or from the other controllers."
            case OSError():
                return _os_error_text(error)
        return None

    async def _start(self) -> None:
        world, table = self._world, self._table
        settings = self.settings = self.settings.with_host_name(world.host_name)
        options.check_descriptors()
        network = await table.start(Network(settings, world))
        storage = Storage(settings, world)
        storage.lost.hear(self._stop_without_directories)
        await table.start(storage)
        control_plane = ControlPlane.open(
            settings,
            peers=network.peers,
            files=storage.files,
            clock=world.clock,
            ids=world.ids,
            disk=world.disk(),
            joined=await cluster_to_join(settings, world.filesystem, network.peers, storage.offline),
            absent=storage.offline,
            on_failure=self._metadata_failed,
        )
        network.ask_for_logins(world.clock, lambda: control_plane.image)
        await table.start(Metadata(control_plane))
        authorizer = self._authorizer or await _authorizer(settings, world, control_plane, table)
        quotas = await table.start(QuotasInForce(settings, network, control_plane))
        watched = Watched(
            settings, world.clock, control_plane, network.server, network.peers, quotas.clients, self._broker_view
        )
        if settings.get_list("http.listeners"):
            from ottla.node.http import HttpListeners  # noqa: PLC0415  a node that shows nothing does without

            await table.start(HttpListeners(settings, watched, table, world.settled, authorizer, network.tls))
        await table.start(QuorumMember(settings, world, network, storage, control_plane, authorizer, quotas.clients))
        if settings.is_broker:
            await table.start(
                Broker(
                    settings,
                    world,
                    network,
                    storage,
                    control_plane,
                    authorizer,
                    quotas.clients,
                    self._registry_url,
                )
            )
            await self._start_platform(control_plane)

    def _broker_view(self) -> BrokerView | None:
        broker = self._table.find(Broker)
        return None if broker is None else broker.view

    def _registry_url(self) -> str | None:
        """Where the broker asks for schemas: as told, else the registry beside it."""
        from ottla.node.platform import Platform  # noqa: PLC0415  a broker alone does without

        told = self.settings.get_list("confluent.schema.registry.url")
        if told:
            return told[0]
        platform = self._table.find(Platform)
        beside = None if platform is None else platform.addresses.get("registry")
        return beside or self._world.registry()

    async def _start_platform(self, control_plane: ControlPlane) -> None:
        if any(self.settings.get_list(f"{service}.listeners") for service in ("registry", "connect", "sql")):
            from ottla.node.platform import Platform  # noqa: PLC0415  a broker alone does without

            await self._table.start(Platform(self.settings, self.listeners, control_plane.image.topics))

    # ---- stopping

    def _metadata_failed(self, error: BaseException) -> None:
        """Without its metadata directory a node is blind: it stops, as Kafka does."""
        logger.critical("the metadata log is lost, the node stops: %s", error)
        self.stopped.set()

    def _stop_without_directories(self) -> None:
        storage = self._table.find(Storage)
        if storage is not None and len(storage.offline) == len(storage.directories):
            logger.critical("no log directory is left, the node stops")
            self.stopped.set()

    async def stop(self, *, clean: bool = True, hand_over: bool = True) -> None:
        """Without `hand_over` the leaders stay where they are: for a cluster that stops as a whole."""
        await self._table.stop(Ending(clean=clean, hand_over=hand_over))

    def abandon(self) -> None:
        """The end by force, as by kill -9: sockets close, locks are let go, nothing is flushed and nobody is told."""
        self._table.abandon()


async def _authorizer(
    settings: Settings, world: Surroundings, control_plane: ControlPlane, table: ServiceTable
) -> Authorizer:
    """As authorizer.class.name says. It hears of a change before anybody is told that it was made."""
    if not settings.get_str("authorizer.class.name"):
        return AllowAll()
    from ottla.broker.security.standard import StandardAuthorizer  # noqa: PLC0415  a node without ACLs does without
    from ottla.node.audit_log import AuditLog  # noqa: PLC0415

    standard = StandardAuthorizer(settings, world.clock, lambda: control_plane.has_caught_up)
    standard.load(control_plane.image)
    control_plane.subscribe(standard.on_metadata)
    await table.start(AuditLog(standard.audit))
    return standard


def _os_error_text(error: OSError) -> str:
    if isinstance(error, StorageError):
        return f"{error.strerror}. Make it usable, take it out of log.dirs, or choose another with --data or log.dirs."
    return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
