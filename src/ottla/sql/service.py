"""A SQL server that runs: start, stop, addresses. What the platform process, the command and tests have of it."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ottla.client.addresses import Address as BrokerAddress
from ottla.client.aio.cluster import Cluster
from ottla.client.aio.producer import Producer
from ottla.client.security import PLAINTEXT, Security
from ottla.http.addresses import Address
from ottla.http.asgi import AsgiApplication
from ottla.http.limits import Limits
from ottla.http.listening import Listening, opened
from ottla.sql.processing_log.entries import stream_statement
from ottla.sql.server import processing_log, topics
from ottla.sql.server.connectors import Connectors
from ottla.sql.server.engine import Engine
from ottla.sql.server.history import HistoryHost, HistoryLimits
from ottla.sql.server.looking import LookLimits
from ottla.sql.server.processing_log import ProcessingLog
from ottla.sql.server.replaying import Persistent
from ottla.sql.server.selecting import ClientLimits
from ottla.sql.server.views import ViewLimits
from ottla.sql.settings import SqlSettings

if TYPE_CHECKING:
    from ottla.registry.lookup import Registry
    from ottla.registry.tls import ServiceTls
    from ottla.sql.api.doors import SqlDoor

logger = logging.getLogger(__name__)

_CLIENT_ID: Final = "ottla-sql"


class Safety:
    """TLS and the door of a server, where it has them."""

    def __init__(self, tls: "ServiceTls | None" = None, door: "SqlDoor | None" = None) -> None:
        self.door = door
        self._tls = tls
        self._renewal: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._tls is not None:
            self._renewal = asyncio.create_task(self._tls.follow(), name="sql-certificates")

    async def stop(self) -> None:
        if self.door is not None:
            await self.door.stop()
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)

    def context(self) -> ssl.SSLContext | None:
        return None if self._tls is None else self._tls.server()

    def client(self) -> ssl.SSLContext | None:
        """Whose certificates are believed of a service beside it; None: the system's."""
        return None if self._tls is None else self._tls.client


class SqlService:
    """`start` returns when all statements of the log have been read and questions are answered."""

    name = "sql"

    def __init__(
        self,
        settings: SqlSettings,
        bootstrap: Sequence[BrokerAddress],
        *,
        security: Security = PLAINTEXT,
        ports: Sequence[socket.socket] = (),
        persistent: Persistent | None = None,
        history: HistoryHost | None = None,
        registry: "Registry | None" = None,
    ) -> None:
        self._settings = settings
        self._ports = ports
        self._persistent = persistent
        self._history = history if settings["sql.history.enabled"] else None
        self._registry = registry
        self._bootstrap = bootstrap
        self._security = security
        self._safety = Safety()
        self._cluster = Cluster(bootstrap, client_id=_CLIENT_ID, security=security)
        self._producer = Producer(self._cluster)
        self._open: list[Listening] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._cluster_id = ""
        self.engine: Engine | None = None

    async def start(self) -> None:
        """Raises OSError when an address cannot be had, ClientError, ValueError for settings of TLS and logins that do
        not go together."""
        self._make_safe()
        context = self._safety.context()
        for listening in opened(self._settings.listeners, self._application, self._ports, context):
            self._open.append(listening)
        await self._producer.__aenter__()
        engine = self.engine = Engine(
            self._cluster,
            self._producer,
            service_id=self._settings["ksql.service.id"],
            registry=self._registry,
            persistent=self._persistent,
            defaults=self._settings.defaults,
            limits=self._limits(),
            connectors=Connectors(self._settings["ksql.connect.url"], self._safety.client),
            history=self._history,
            dead_letters=bool(self._settings["sql.dead.letter.topic"]),
            python_functions=self._settings["ksql.functions.python.enabled"],
        )
        self._cluster_id = (await self._cluster.metadata([])).cluster_id or ""
        await engine.log.prepare(self._settings["ksql.internal.topic.replicas"])
        if self._settings["sql.dead.letter.topic"]:
            await topics.make(self._cluster, self._settings["sql.dead.letter.topic"])
        await self._begin_processing_log(engine)
        self._tasks.append(asyncio.create_task(engine.log.follow(), name="sql-statements"))
        await engine.ready()
        for listening in self._open:
            await listening.start_now()

    async def _begin_processing_log(self, engine: Engine) -> None:
        settings = self._settings
        if not await processing_log.prepare(self._cluster, settings):
            return
        topic = processing_log.log_topic(settings)
        written = ProcessingLog(self._producer, topic, rows=settings["ksql.logging.processing.rows.include"])
        engine.clients.processing_log = written
        self._tasks.append(asyncio.create_task(written.follow(), name="sql-processing-log"))
        if settings["ksql.logging.processing.stream.auto.create"]:
            engine.replaying.declare(stream_statement(settings["ksql.logging.processing.stream.name"], topic))

    def _make_safe(self) -> None:
        """What is needed for it is loaded by who asks for it."""
        settings = self._settings
        if not settings.has_logins and all(address.scheme == "http" for address in settings.listeners):
            return
        from ottla.sql.api.doors import SqlDoor, door_of  # noqa: PLC0415
        from ottla.sql.tls import server_tls  # noqa: PLC0415

        has_users = settings.has_logins
        door = door_of(settings, self._bootstrap, self._security, self._cluster) if has_users else SqlDoor()
        self._safety = Safety(server_tls(settings), door)
        self._safety.start()

    def _limits(self) -> ClientLimits:
        settings = self._settings
        return ClientLimits(
            statements=settings["sql.request.max.statements"],
            push_queries=settings["ksql.max.push.queries"],
            push_state_rows=settings["sql.push.state.max.rows"],
            push_state_bytes=settings["sql.push.state.max.bytes"],
            views=ViewLimits(
                settings["sql.view.max.rows"], settings["sql.view.max.bytes"], settings["sql.views.max.bytes"]
            ),
            pull_rows=settings["sql.pull.max.rows"],
            pull_s=settings["sql.pull.timeout.ms"] / 1000,
            looks=LookLimits(
                settings["sql.sample.max.records"],
                settings["sql.sample.max.bytes"],
                settings["sql.sample.timeout.ms"] / 1000,
            ),
            history=HistoryLimits(
                settings["sql.history.max.rows"],
                settings["sql.history.timeout.ms"] / 1000,
                settings["sql.history.max.queries"],
            ),
        )

    async def stop(self) -> None:
        """May be called whatever became of the start."""
        if self.engine is not None:
            await self.engine.close()
        for listening in self._open:
            await listening.stop()
        await self._safety.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.engine is not None:
            await self._producer.__aexit__(None)
        await self._cluster.close()

    def _application(self, address: Address) -> AsgiApplication:
        from ottla.sql.api.application import SqlApplication  # noqa: PLC0415  with the first listener
        from ottla.sql.api.doors import SqlDoor  # noqa: PLC0415

        assert self.engine is not None
        limits = Limits(body_bytes=self._settings["sql.body.max.bytes"])
        door = self._safety.door or SqlDoor()
        return SqlApplication(self.engine, self._cluster_id, address, limits, self._advertised, door)

    def _advertised(self) -> str:
        return str(self._settings["ksql.advertised.listener"] or self.addresses[0])

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(str(listening.address) for listening in self._open)

    def banner(self) -> Sequence[str]:
        return [f"sql      {address}" for address in self.addresses]
