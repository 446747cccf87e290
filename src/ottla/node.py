"""The composition root: settings in, a running node out. The only place that knows everybody."""

import asyncio
import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

from ottla import __version__
from ottla.broker.admission import Admission
from ottla.broker.configs import Configs
from ottla.broker.coordinators import Coordinators, Host
from ottla.broker.dispatch import Routes
from ottla.broker.fetch_sessions import FetchSessions
from ottla.broker.groups import group_coordinators, reconfigure
from ottla.broker.housekeeping import Housekeeping
from ottla.broker.markers import LocalMarkers
from ottla.broker.producer_ids import ProducerIds
from ottla.broker.replicas import Replicas
from ottla.broker.security.authorizer import AllowAll, Authorizer
from ottla.broker.server import CannotListen, Server, SocketOptions
from ottla.broker.services import Limits, Services
from ottla.broker.transactions import Transactions
from ottla.broker.verification import Backoff, Verifier
from ottla.broker.waiting import WaitingRequests
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.model.ids import BrokerId, Millis
from ottla.model.ports import Clock
from ottla.model.properties import Listener, Settings
from ottla.net.connection import ReadBudget
from ottla.protocol.messages import AllocateProducerIdsRequest
from ottla.runtime.clock import SystemClock, SystemIds
from ottla.runtime.control_plane import ControlPlane, RegistrationRefused
from ottla.runtime.formatting import FormatError
from ottla.runtime.metadata_log import MetadataLogError
from ottla.storage.directory import DirectoryInUse, LogDirectory
from ottla.storage.fs import CorruptLog, RealFilesystem, StorageError
from ottla.storage.segment import OpenFiles

if TYPE_CHECKING:
    from ottla.coordinator.group.shard import GroupShard

log = logging.getLogger(__name__)

_DESCRIPTORS_KEPT_FREE = 256
_FRAME_OVERHEAD = 1 << 20
_DEFAULT_OPEN_FILES = 1024


class StartFailed(Exception):
    """The node cannot start. The text says what is wrong and what to do; there is nothing to see in a traceback."""


class Node:
    """Broker and controller in one. `start` returns when clients can produce; `stop` is a clean shutdown."""

    def __init__(self, settings: Settings, authorizer: Authorizer | None = None) -> None:
        self.settings = settings
        self._authorizer = authorizer or AllowAll()
        self._clock: Clock = SystemClock()
        self._ids = SystemIds()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._directories: list[LogDirectory] = []
        self._control_plane: ControlPlane | None = None
        self._server: Server | None = None
        self._configs: Configs | None = None
        self._replicas: Replicas | None = None
        self._housekeeping: Housekeeping | None = None
        self._groups: Coordinators[GroupShard] | None = None
        self._transactions: Transactions | None = None
        self.listeners: tuple[Listener, ...] = ()
        """Where clients are told to connect, free ports filled in."""
        self.stopped = asyncio.Event()
        """Set when the node has stopped by itself, because its metadata directory failed."""

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{listener.host}:{listener.port}" for listener in self.listeners)

    @property
    def control_plane(self) -> ControlPlane:
        assert self._control_plane is not None, "the node is not started"
        return self._control_plane

    # ---- starting

    async def start(self) -> None:
        """Raises StartFailed with a sentence for the operator, and leaves nothing behind."""
        try:
            await self._start()
        except (CannotListen, FormatError, MetadataLogError, CorruptLog, DirectoryInUse, RegistrationRefused) as error:
            await self.stop(clean=False)
            raise StartFailed(str(error)) from error
        except OSError as error:
            await self.stop(clean=False)
            raise StartFailed(_os_error_text(error)) from error

    async def _start(self) -> None:
        settings = self.settings
        _refuse_what_is_not_built(settings)
        loop = self._loop = asyncio.get_running_loop()
        server = self._server = Server(loop, _admission(settings), ReadBudget(_budget(settings)), _options(settings))
        sockets = [server.bind(listener) for listener in settings.broker_listeners]
        files = OpenFiles(RealFilesystem(), _open_files(settings))
        self._open_directories(files)
        control_plane = self._control_plane = ControlPlane.open(settings, files=files, clock=self._clock, ids=self._ids)
        control_plane.on_failure = self._metadata_failed
        await control_plane.start()
        self.listeners = _advertised(settings, [port for _, port in sockets])
        await control_plane.register_broker(self.listeners, previous_broker_epoch=self._previous_epoch())
        services = self._assemble(loop, control_plane)
        for (sock, _), listener in zip(sockets, settings.broker_listeners, strict=True):
            server.serve(sock, listener.name, Routes(), services)

    def _open_directories(self, files: OpenFiles) -> None:
        reserve = self.settings.get_int("ottla.disk.reserve.bytes")
        for path in self.settings.log_dirs:
            self._directories.append(
                LogDirectory.open(files, path, reserve_bytes=reserve, on_offline=self._directory_failed)
            )

    def _previous_epoch(self) -> int:
        """The broker epoch of the last clean shutdown, if every directory tells the same (KIP-966)."""
        epochs = {directory.clean_broker_epoch for directory in self._directories}
        epoch = epochs.pop() if len(epochs) == 1 else None
        return -1 if epoch is None else epoch

    def _assemble(self, loop: asyncio.AbstractEventLoop, control_plane: ControlPlane) -> Services:
        settings = self.settings
        broker_id = BrokerId(settings.node_id)
        configs = self._configs = Configs(settings, broker_id, control_plane.image)
        waiting = WaitingRequests(loop, self._clock)
        replicas = self._replicas = Replicas(broker_id, self._directories, configs, waiting, self._clock, self._ids)
        now = self._clock.wall()
        for directory in self._directories:
            found = directory.load(configs.log_config, now)
            replicas.deletions += [(directory, deletion) for deletion in found.deletions]
        replicas.load(control_plane.image)
        host = Host(loop, self._clock, replicas, waiting, control_plane)
        groups = self._groups = group_coordinators(settings, host, self._ids)
        groups.on_metadata(control_plane.image)
        producer_ids = ProducerIds(self._producer_id_block)
        markers = LocalMarkers(host, groups, settings.get_int("request.timeout.ms"))
        transactions = self._transactions = Transactions(settings, host, producer_ids, markers)
        transactions.coordinators.on_metadata(control_plane.image)
        control_plane.subscribe(self._on_metadata)
        self._housekeeping = Housekeeping(loop, replicas, configs, self._clock)
        self._housekeeping.start()
        return Services(
            broker_id=broker_id,
            configs=configs,
            limits=_limits(settings),
            clock=self._clock,
            control_plane=control_plane,
            replicas=replicas,
            waiting=waiting,
            fetch_sessions=FetchSessions(
                settings.get_int("max.incremental.fetch.session.cache.slots"), _SESSION_EVICTION
            ),
            authorizer=self._authorizer,
            new_fetch_session_id=_session_ids(),
            producer_ids=producer_ids,
            groups=groups,
            transactions=transactions,
            markers=markers,
            verifier=Verifier(transactions, self._clock, loop, _verification_backoff(settings)),
        )

    async def _producer_id_block(self) -> tuple[int, int]:
        request = AllocateProducerIdsRequest(
            broker_id=self.settings.node_id, broker_epoch=self.control_plane.broker_epoch
        )
        block = await self.control_plane.submit(request)
        assert not block.error_code, block
        return block.producer_id_start, block.producer_id_len

    def _on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        assert self._configs is not None and self._replicas is not None
        assert self._groups is not None and self._transactions is not None
        settings_changed = self._configs.on_metadata(delta, image)
        self._replicas.on_metadata(delta, image, settings_changed=settings_changed)
        self._groups.on_metadata(image)
        self._transactions.coordinators.on_metadata(image)
        if settings_changed:
            reconfigure(self._groups, self._configs.settings)

    # ---- stopping

    def _metadata_failed(self, error: BaseException) -> None:
        """Without its metadata directory a node is blind: it stops, as Kafka does."""
        log.critical("the metadata log is lost, the node stops: %s", error)
        self.stopped.set()

    def _directory_failed(self, error: StorageError) -> None:
        """Called by whichever thread noticed, so the node's own thread looks what that means."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._look_at_directories, error)

    def _look_at_directories(self, error: StorageError) -> None:
        log.error("%s", error)
        for directory in self._directories:
            if not directory.is_online and self._replicas is not None:
                self._replicas.take_offline(directory)
        if not any(directory.is_online for directory in self._directories):
            log.critical("no log directory is left, the node stops")
            self.stopped.set()

    async def stop(self, *, clean: bool = True) -> None:
        if self._server is not None:
            self._server.close()
        if self._groups is not None:
            self._groups.close()
        if self._transactions is not None:
            self._transactions.coordinators.close()
        if self._housekeeping is not None:
            await self._housekeeping.stop()
        epoch = -1
        if self._control_plane is not None:
            epoch = self._control_plane.broker_epoch
            await self._control_plane.close()
        for directory in self._directories:
            directory.close(clean=clean, broker_epoch=epoch)
        self._directories = []
        self._server = self._housekeeping = self._control_plane = None


_SESSION_EVICTION = Millis(120_000)


def _session_ids() -> Callable[[], int]:
    """Positive, and starting anywhere: a session id of before a restart must not be taken for a new one."""
    ids = count(int.from_bytes(os.urandom(4), "big") >> 1)
    return lambda: next(ids) % 0x7FFFFFFF + 1


def _refuse_what_is_not_built(settings: Settings) -> None:
    if not (settings.is_broker and settings.is_controller):
        raise FormatError(
            "process.roles must be broker,controller: this version runs a node that is both. "
            "Separate roles come with clusters of several nodes."
        )
    for listener in settings.listeners:
        if listener.protocol != "PLAINTEXT":
            raise FormatError(
                f"listener {listener.name} asks for {listener.protocol}: this version serves PLAINTEXT only. "
                "Keep it on loopback or behind something that encrypts."
            )


def _admission(settings: Settings) -> Admission:
    return Admission(
        settings.get_int("max.connections"),
        settings.get_int("max.connections.per.ip"),
        settings.get_int("ottla.connection.creation.rate.per.ip"),
    )


def _budget(settings: Settings) -> int:
    return settings.get_int("queued.max.request.bytes")


def _max_frame(settings: Settings) -> int:
    """A file that raises message.max.bytes alone would work with Kafka's 100 MiB frames: it works here too."""
    limit = settings.get_int("socket.request.max.bytes")
    if "socket.request.max.bytes" in settings.given:
        return limit
    return max(limit, settings.get_int("message.max.bytes") + _FRAME_OVERHEAD)


def _options(settings: Settings) -> SocketOptions:
    return SocketOptions(
        max_frame_bytes=_max_frame(settings),
        backlog=settings.get_int("socket.listen.backlog.size"),
        send_buffer_bytes=settings.get_int("socket.send.buffer.bytes"),
        receive_buffer_bytes=settings.get_int("socket.receive.buffer.bytes"),
        idle=Millis(settings.get_int("connections.max.idle.ms")),
        slow_peer=Millis(settings.get_int("ottla.slow.peer.timeout.ms")),
    )


def _limits(settings: Settings) -> Limits:
    return Limits(
        max_in_flight=settings.get_int("ottla.max.in.flight.requests.per.connection"),
        max_unsent_bytes=settings.get_int("ottla.write.buffer.bytes"),
        fetch_max_bytes=settings.get_int("fetch.max.bytes"),
        partitions_per_response=settings.get_int("max.request.partition.size.limit"),
    )


def _verification_backoff(settings: Settings) -> Backoff:
    return Backoff(
        settings.get_int("add.partitions.to.txn.retry.backoff.ms"),
        settings.get_int("add.partitions.to.txn.retry.backoff.max.ms"),
    )


def _open_files(settings: Settings) -> int:
    """Segments kept open: what the process may have, less what connections and the rest need."""
    asked = settings.get_int("ottla.open.files.max")
    if asked > 0:
        return asked
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    room = allowed - settings.get_int("max.connections") - _DESCRIPTORS_KEPT_FREE
    return max(64, min(_DEFAULT_OPEN_FILES, room))


def _advertised(settings: Settings, ports: list[int]) -> tuple[Listener, ...]:
    """The advertised listeners, with the ports that were really taken where the file says 0."""
    taken = {listener.name: port for listener, port in zip(settings.broker_listeners, ports, strict=True)}
    return tuple(
        listener._replace(port=listener.port or taken.get(listener.name, 0))
        for listener in settings.advertised_listeners
    )


def _os_error_text(error: OSError) -> str:
    if isinstance(error, StorageError):
        return str(error)
    return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"


# ---- the process around a node


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # noqa: PLC0415  has no wheel for Windows
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def run(settings: Settings) -> int:
    """Runs a node until SIGTERM or SIGINT. Returns the exit code of the process."""
    logging.basicConfig(
        level=os.environ.get("OTTLA_LOG_LEVEL", "INFO").upper(),
        format="%(asctime)s %(levelname)s %(message)s",
        stream=sys.stderr,
    )
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(_serve(settings))
    except StartFailed as error:
        print(f"ottla cannot start: {error}", file=sys.stderr)
        return 1
    finally:
        loop.close()


async def _serve(settings: Settings) -> int:
    node = Node(settings)
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    await node.start()
    _banner(node)
    # What is alive now lives as long as the node: the collector need not walk it again and again.
    gc.collect()
    gc.freeze()
    waits = [loop.create_task(asked.wait()), loop.create_task(node.stopped.wait())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    failed = node.stopped.is_set()
    await node.stop(clean=not failed)
    return 1 if failed else 0


def _banner(node: Node) -> None:
    image = node.control_plane.image
    print(f"ottla {__version__} is ready")
    for listener in node.listeners:
        print(f"  kafka    {listener.host}:{listener.port}  ({listener.name})")
    print(f"  data     {', '.join(node.settings.log_dirs)}")
    print(f"  cluster  {image.cluster_id}, node {node.settings.node_id}, {len(image.topics)} topics")
    print("  stop with Ctrl-C", flush=True)


__all__ = ["Node", "StartFailed", "new_event_loop", "run"]
