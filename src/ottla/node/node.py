"""One node: a controller, a broker, or both."""

import asyncio
import logging
import socket

from ottla.broker.front.admission import Doors
from ottla.broker.front.dispatch import CONTROLLER_HANDLERS, HANDLERS, Routes
from ottla.broker.front.server import CannotListen, Server
from ottla.broker.security.authorizer import AllowAll, Authorizer
from ottla.broker.services import ControllerServices
from ottla.metadata.batches import CorruptMetadata
from ottla.model.errors import Errors
from ottla.model.properties import Listener, Settings
from ottla.net.connection import ReadBudget
from ottla.net.host_name import NoHostName
from ottla.net.peer import Peers
from ottla.node import options
from ottla.node.local_broker import LocalBroker
from ottla.node.surroundings import Surroundings
from ottla.runtime.control_plane import ControlPlane, controller_registration
from ottla.runtime.formatting import METADATA_LOG, FormatError
from ottla.runtime.joining import cluster_to_join
from ottla.runtime.lifecycle import RegistrationRefused
from ottla.runtime.metadata_log import MetadataLogError
from ottla.storage.directory import DirectoryInUse, LogDirectory
from ottla.storage.fs import CorruptLog, StorageError
from ottla.storage.segment import OpenFiles

log = logging.getLogger(__name__)


class StartFailed(Exception):
    """The node cannot start. The text says what is wrong and what to do; there is nothing to see in a traceback."""


class Node:
    """`start` returns when clients can produce (or, without a broker, when the quorum is joined); `stop` is a clean
    shutdown."""

    def __init__(
        self, settings: Settings, authorizer: Authorizer | None = None, surroundings: Surroundings | None = None
    ) -> None:
        self.settings = settings
        self._authorizer = authorizer or AllowAll()
        self._world = surroundings or Surroundings()
        self._directories: list[LogDirectory] = []
        self._control_plane: ControlPlane | None = None
        self._peers: Peers | None = None
        self._server: Server | None = None
        self._broker: LocalBroker | None = None
        self._registering: asyncio.Task[None] | None = None
        self.listeners: tuple[Listener, ...] = ()
        """Where clients are told to connect, free ports filled in."""
        self.stopped = asyncio.Event()
        """Set when the node has stopped by itself, because its metadata directory failed."""

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{listener.host}:{listener.port}" for listener in self.listeners)

    @property
    def has_joined(self) -> bool:
        """It takes part in its cluster, even if it serves no clients yet."""
        return self._control_plane is not None

    @property
    def control_plane(self) -> ControlPlane:
        assert self._control_plane is not None, "the node is not started"
        return self._control_plane

    # ---- starting

    async def start(self) -> None:
        """Raises StartFailed with a sentence for the operator, and leaves nothing behind."""
        try:
            await self._start()
        except (
            CannotListen,
            CorruptLog,
            DirectoryInUse,
            FormatError,
            MetadataLogError,
            NoHostName,
            RegistrationRefused,
            options.TooFewDescriptors,
        ) as error:
            await self.stop(clean=False)
            raise StartFailed(str(error)) from error
        except CorruptMetadata as error:
            await self.stop(clean=False)
            raise StartFailed(
                f"{self.settings.metadata_log_dir}/{METADATA_LOG} cannot be read: {error}. Restore it "
                "from a backup, or from the other controllers."
            ) from error
        except OSError as error:
            await self.stop(clean=False)
            raise StartFailed(_os_error_text(error)) from error

    async def _start(self) -> None:
        settings = self.settings = self.settings.with_host_name(self._world.host_name)
        loop = asyncio.get_running_loop()
        options.check_descriptors()
        budget = ReadBudget(settings.get_int("queued.max.request.bytes"))
        doors = options.doors(settings)
        server = self._server = self._world.listen(loop, doors, budget, options.options(settings))
        sockets = {listener.name: server.bind(listener) for listener in self._listeners_to_open()}
        files = OpenFiles(self._world.filesystem, options.open_files(settings))
        self._open_directories(files)
        self._peers = self._world.peers(loop, f"node-{settings.node_id}")
        control_plane = self._control_plane = ControlPlane.open(
            settings,
            peers=self._peers,
            files=files,
            clock=self._world.clock,
            ids=self._world.ids,
            disk=self._world.disk(),
            joined=await cluster_to_join(settings, files.fs, self._peers),
            absent=[each.path for each in self._directories if not each.is_online],
        )
        for directory in self._directories:
            if directory.is_online:
                directory.identify()
        control_plane.on_failure = self._metadata_failed
        self._serve_controller(server, sockets)
        await control_plane.start()
        if settings.is_controller:
            self._registering = loop.create_task(self._register_controller())
        if settings.is_broker:
            await self._start_broker(server, sockets, doors)

    def _listeners_to_open(self) -> list[Listener]:
        """A quorum of one that asks for any free port has nobody who could find it there."""
        settings = self.settings
        found = list(settings.broker_listeners) if settings.is_broker else []
        if settings.is_controller:
            found += [each for each in settings.controller_listeners if each.port]
        return found

    def _open_directories(self, files: OpenFiles) -> None:
        reserve = self.settings.get_int("ottla.disk.reserve.bytes")
        loop = asyncio.get_running_loop()

        def failed(error: StorageError) -> None:
            """Called by whichever thread noticed, so the node's own thread looks what that means."""
            loop.call_soon_threadsafe(self._look_at_directories, error)

        for path in dict.fromkeys((*self.settings.log_dirs, self.settings.metadata_log_dir)):
            try:
                opened = LogDirectory.open(files, path, reserve_bytes=reserve, on_offline=failed)
            except StorageError as error:
                if path == self.settings.metadata_log_dir:
                    raise
                log.error("%s. The node starts without it.", error.strerror)
                opened = LogDirectory.absent(files, path, error)
            self._directories.append(opened)

    def _serve_controller(self, server: Server, sockets: dict[str, tuple[socket.socket, int]]) -> None:
        """Before the quorum is joined: the others must be able to reach this node to form it."""
        services = ControllerServices(
            node_id=self.settings.node_id,
            limits=options.limits(self.settings),
            clock=self._world.clock,
            control_plane=self.control_plane,
            authorizer=self._authorizer,
        )
        for listener in self.settings.controller_listeners:
            if self.settings.is_controller and listener.name in sockets:
                server.serve(sockets[listener.name][0], listener.name, Routes(CONTROLLER_HANDLERS), services)

    async def _register_controller(self) -> None:
        request = controller_registration(self.settings, self._world.ids)
        while True:
            reply = await self.control_plane.submit(request)
            if reply.error_code != Errors.REQUEST_TIMED_OUT:
                return

    async def _start_broker(self, server: Server, sockets: dict[str, tuple[socket.socket, int]], doors: Doors) -> None:
        self.listeners = options.advertised(self.settings, {name: port for name, (_, port) in sockets.items()})
        assert self._peers is not None
        broker = self._broker = LocalBroker(
            self.settings, self._world, self.control_plane, self._peers, self._own_directories(), self._authorizer
        )
        services = await broker.start(self.listeners)

        def apply(current: Settings) -> None:
            doors.clients.limits = options.connection_limits(current)

        apply(services.configs.settings)
        broker.on_settings = apply
        for listener in self.settings.broker_listeners:
            server.serve(sockets[listener.name][0], listener.name, Routes(HANDLERS), services)

    def _own_directories(self) -> list[LogDirectory]:
        return [each for each in self._directories if each.path in self.settings.log_dirs]

    # ---- stopping

    def _metadata_failed(self, error: BaseException) -> None:
        """Without its metadata directory a node is blind: it stops, as Kafka does."""
        log.critical("the metadata log is lost, the node stops: %s", error)
        self.stopped.set()

    def _look_at_directories(self, error: StorageError) -> None:
        if self._server is None:
            return  # the node could not start, and says so itself
        log.error("%s", error)
        if self._broker is not None:
            self._broker.directories_failed()
        if not any(directory.is_online for directory in self._directories):
            log.critical("no log directory is left, the node stops")
            self.stopped.set()

    async def stop(self, *, clean: bool = True, hand_over: bool = True) -> None:
        """Without `hand_over` the leaders stay where they are: for a cluster that stops as a whole."""
        epoch = -1
        if self._registering is not None:
            self._registering.cancel()
        if self._broker is not None:
            # The leaders move while clients are still served: they learn where to go.
            epoch = await self._broker.leave(hand_over=clean and hand_over and self._may_be_missed())
        if self._server is not None:
            self._server.close()
        if self._broker is not None:
            await self._broker.stop()
        if self._control_plane is not None:
            await self._control_plane.close()
        if self._peers is not None:
            self._peers.close()
        for directory in self._directories:
            directory.close(clean=clean, broker_epoch=epoch)
        self._directories = []
        self._server = self._broker = self._control_plane = self._peers = None

    def abandon(self) -> None:
        """The end by force, as by kill -9: sockets close, locks are let go, nothing is flushed and nobody is told."""
        if self._server is not None:
            self._server.close()
        if self._peers is not None:
            self._peers.close()
        for directory in self._directories:
            directory.close(clean=False)

    def _may_be_missed(self) -> bool:
        return self._control_plane is not None and self._control_plane.failure is None


def _os_error_text(error: OSError) -> str:
    if isinstance(error, StorageError):
        return f"{error.strerror}. Make it usable, take it out of log.dirs, or choose another with --data or log.dirs."
    return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
