"""A Connect worker that runs: start, stop, health, banner. What the platform process, and tests, have of it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ottla.client.addresses import Address as BrokerAddress
from ottla.client.aio.cluster import Cluster
from ottla.client.aio.producer import Producer
from ottla.client.membership import MemberSettings
from ottla.client.security import PLAINTEXT, Security
from ottla.connect.catalogue import catalogue
from ottla.connect.definitions import ConfigError
from ottla.connect.duties import Duties, RestartRule
from ottla.connect.failures import StartFailed
from ottla.connect.herder import Herder
from ottla.connect.journal import Writer, prepare
from ottla.connect.membership import PROTOCOL_TYPE, WorkerMember
from ottla.connect.orders import ConnectorRunner, WorkerFacts
from ottla.connect.plugins import PluginType
from ottla.connect.providers import Providers
from ottla.connect.settings import ConnectSettings
from ottla.connect.validation import Judge, task_configs
from ottla.connect.worker import State, Topics, Worker, followers
from ottla.http.addresses import Address
from ottla.http.asgi import AsgiApplication
from ottla.http.auth import OPEN_DOOR, Doorkeeper
from ottla.http.limits import Limits
from ottla.http.listening import Listening, opened

if TYPE_CHECKING:
    from ottla.connect.api.loggers import Levels
    from ottla.registry.tls import ServiceTls

logger = logging.getLogger(__name__)

_CLIENT_ID: Final = "ottla-connect"
_START_PATIENCE_S: Final = 60.0
_LAST_WORDS_S: Final = 10.0

RunnerMaker = Callable[[WorkerFacts], ConnectorRunner]
"""Makes whoever runs the connectors; starts nothing yet."""


class ConnectService:
    """`start` returns when the topics are read and calls are answered; the group is joined behind it."""

    name = "connect"

    def __init__(
        self,
        settings: ConnectSettings,
        bootstrap: Sequence[BrokerAddress],
        make_runner: RunnerMaker,
        *,
        security: Security = PLAINTEXT,
        ports: Sequence[socket.socket] = (),
    ) -> None:
        """`ports`, if somebody else has taken them: one for each of `connect.listeners`, in that order."""
        self._settings = settings
        self._bootstrap = bootstrap
        self._make_runner = make_runner
        self._ports = ports
        self._security = security
        self._door: Doorkeeper = OPEN_DOOR
        self._tls: ServiceTls | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._cluster = Cluster(bootstrap, client_id=_CLIENT_ID, timeout_s=30.0, security=security)
        self._open: list[Listening] = []
        self._worker: Worker | None = None
        self._member: WorkerMember | None = None
        self._membership: asyncio.Task[None] | None = None
        self._producer: Producer | None = None
        self._cluster_id = ""
        self._levels: Levels | None = None

    # Its life.

    async def start(self) -> None:
        """Raises OSError when an address cannot be had, WrongTopic, ClientError, StartFailed."""
        try:
            providers = Providers(self._settings.given)
        except ConfigError as error:
            raise StartFailed(str(error)) from error
        self._make_safe()
        self._bind()
        worker = self._worker = self._made(providers)
        await self._read(worker)
        for listening in self._open:
            await listening.start_now()
        self._member = WorkerMember(worker, self._cluster, self._member_settings(), self.url)
        self._membership = asyncio.create_task(self._member.run(), name="connect-member")

    def _make_safe(self) -> None:
        """What is needed for it is loaded by who asks for it."""
        settings = self._settings
        if not settings.has_logins and all(address.scheme == "http" for address in settings.listeners):
            return
        from ottla.connect.doors import door_of, worker_tls  # noqa: PLC0415

        try:
            self._tls = worker_tls(settings)
            self._door = door_of(settings, self._bootstrap, self._security, self._cluster)
        except ValueError as error:
            raise StartFailed(str(error)) from error
        if self._tls is not None:
            self._renewal = asyncio.create_task(self._tls.follow(), name="connect-certificates")

    def _bind(self) -> None:
        context = None if self._tls is None else self._tls.server()
        for listening in opened(self._settings.listeners, self._application, self._ports, context):
            self._open.append(listening)

    def _made(self, providers: Providers) -> Worker:
        settings, state = self._settings, State()
        plugins = catalogue(settings["connect.plugin.modules"])
        rule = RestartRule(
            settings["connector.auto.restart"],
            settings["connector.auto.restart.backoff.ms"],
            settings["connector.auto.restart.backoff.max.ms"],
        )
        connectors = plugins.of(PluginType.SOURCE, PluginType.SINK)
        versions = {name: row.version for row in connectors for name in row.names}
        herder = Herder(
            state.configs,
            state.statuses,
            lambda config: task_configs(plugins, config),
            settings["inter.worker.key.ttl.ms"],
        )
        stands_by = settings["connect.spark.standby"]
        tracks = settings["topic.tracking.enable"]
        duties = Duties(
            self.worker_id, state.configs, state.statuses, rule, versions, stands_by=stands_by, tracks_topics=tracks
        )
        return Worker(state, herder, duties, self._make_runner(self._facts()), providers, plugins)

    def _facts(self) -> WorkerFacts:
        settings = self._settings
        hosts = (f"[{each.host}]" if ":" in each.host else each.host for each in self._bootstrap)
        addresses = zip(hosts, (each.port for each in self._bootstrap), strict=True)
        defaults = {"key.converter": settings["key.converter"], "value.converter": settings["value.converter"]}
        return WorkerFacts(
            bootstrap=",".join(f"{host}:{port}" for host, port in addresses),
            group_id=settings["group.id"],
            offsets_topic=settings["offset.storage.topic"],
            client=settings.client,
            defaults={**defaults, "header.converter": settings["header.converter"], **settings.inherited},
            exactly_once_sources=settings["exactly.once.source.support"].lower() == "enabled",
            topic_creation=settings["topic.creation.enable"],
            last_batch_s=settings.seconds("task.shutdown.graceful.timeout.ms"),
            modules=settings["connect.plugin.modules"],
        )

    async def _read(self, worker: Worker) -> None:
        settings, cluster = self._settings, self._cluster
        names = (settings["config.storage.topic"], settings["status.storage.topic"], settings["offset.storage.topic"])
        copies = settings["config.storage.replication.factor"]
        configs = await prepare(cluster, names[0], 1, copies, "config.storage.topic", one=True)
        counts = [configs]
        for name, kind in ((names[1], "status"), (names[2], "offset")):
            wanted, copies = settings[f"{kind}.storage.partitions"], settings[f"{kind}.storage.replication.factor"]
            counts.append(await prepare(cluster, name, wanted, copies, f"{kind}.storage.topic"))
        self._cluster_id = (await cluster.metadata([])).cluster_id or ""
        self._producer = await Producer(cluster).__aenter__()
        writer = Writer(cluster, names[0], settings["group.id"])
        three = followers(worker, cluster, names, (counts[0], counts[1], counts[2]))
        worker.follow(Topics(*three, writer, self._producer))
        try:
            async with asyncio.timeout(_START_PATIENCE_S):
                await worker.begin()
        except TimeoutError:
            why = "; ".join(worker.troubles()) or "they are long, or the cluster slow"
            raise StartFailed(
                f"the topics {', '.join(names)} were not read within {_START_PATIENCE_S:g} s: {why}"
            ) from None

    def _member_settings(self) -> MemberSettings:
        settings = self._settings
        return MemberSettings(
            settings["group.id"],
            PROTOCOL_TYPE,
            settings["session.timeout.ms"],
            settings["rebalance.timeout.ms"],
            settings["heartbeat.interval.ms"],
        )

    async def stop(self, *, hand_over: bool = True) -> None:
        """Jobs end first, then the group is left, so that others go on where they ended. May be called whatever became
        of the start. Without `hand_over` nobody is told, as after kill -9."""
        for listening in self._open:
            await listening.stop()
        if self._renewal is not None:
            self._renewal.cancel()
        if self._worker is not None:
            if hand_over and self._worker.ready:
                await self._worker.close()
            if hand_over and self._member is not None and self._membership is not None:
                self._member.leave()
                await asyncio.wait([self._membership], timeout=_LAST_WORDS_S)
            await self._worker.jobs.close()
            await self._worker.stop()
        if self._membership is not None:
            self._membership.cancel()
            await asyncio.gather(self._membership, return_exceptions=True)
        if self._producer is not None:
            await self._producer.__aexit__(asyncio.CancelledError, None, None)
        await self._cluster.close()

    def abandon(self) -> None:
        """The end by force, as by kill -9: sockets close, nobody is told."""
        for listening in self._open:
            listening.abandon()

    # What others see of it.

    def _application(self, address: Address) -> AsgiApplication:
        from ottla.connect.api.application import application  # noqa: PLC0415  with the first listener
        from ottla.connect.api.desk import Desk  # noqa: PLC0415
        from ottla.connect.api.loggers import Levels  # noqa: PLC0415

        worker = self._worker
        assert worker is not None, "listening, but not started"
        if self._levels is None:
            self._levels = Levels(worker.jobs.set_level)
            worker.on_logger = self._levels.follow
        settings = self._settings
        plugins = catalogue(settings["connect.plugin.modules"])
        converters = {name: value for name, value in settings.inherited.items() if name in _CONVERTERS}
        defaults = {"header.converter": settings["header.converter"], **converters}
        judge = Judge(defaults, worker.providers, settings.override_policy, plugins, settings[_ALLOWLIST])
        limits = Limits(body_bytes=settings["connect.body.max.bytes"])
        tls = self._tls
        desk = Desk(worker, judge, settings, self.url, (lambda: tls.client) if tls is not None else None)
        return application(desk, self._cluster, self._cluster_id, self._levels, address, limits, self._door)

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(str(listening.address) for listening in self._open)

    @property
    def url(self) -> str:
        """Where other workers reach this one."""
        wanted = self._settings["rest.advertised.listener"].lower()
        addresses = [each.address for each in self._open]
        first = next((each for each in addresses if each.scheme == wanted), addresses[0])
        host = self._settings["rest.advertised.host.name"] or first.host
        if host in ("", "0.0.0.0", "::"):
            host = socket.gethostname()
        return str(first._replace(host=host, port=self._settings["rest.advertised.port"] or first.port))

    @property
    def worker_id(self) -> str:
        """As statuses tell it: host:port."""
        return self.url.partition("://")[2]

    @property
    def leads(self) -> bool:
        return self._worker is not None and self._worker.leads

    def troubles(self) -> Mapping[str, str]:
        """A word for programs, and what it means here, for people; empty: it does what it is for."""
        found: dict[str, str] = {}
        if self._worker is not None and (said := self._worker.troubles()):
            found["connect_topics"] = "; ".join(said)
        if self._member is not None and self._member.failure is not None:
            found["connect_group"] = self._member.failure
        return found

    def banner(self) -> Sequence[str]:
        return [f"connect {address}" for address in self.addresses]


_ALLOWLIST: Final = "connector.client.config.override.allowlist"
_CONVERTERS: Final = ("key.converter", "value.converter")
