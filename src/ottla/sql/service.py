"""A SQL server that runs: start, stop, addresses. What the platform process, the command and tests have of it."""

import asyncio
import logging
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ottla.client.addresses import Address as BrokerAddress
from ottla.client.aio.cluster import Cluster
from ottla.client.aio.producer import Producer
from ottla.client.security import PLAINTEXT, Security
from ottla.http.addresses import Address
from ottla.http.asgi import AsgiApplication
from ottla.http.limits import Limits
from ottla.http.listening import Listening
from ottla.sql.server.engine import Engine, Persistent
from ottla.sql.settings import SqlSettings

if TYPE_CHECKING:
    from ottla.registry.lookup import Registry

logger = logging.getLogger(__name__)

_CLIENT_ID: Final = "ottla-sql"


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
        registry: "Registry | None" = None,
    ) -> None:
        self._settings = settings
        self._ports = ports
        self._persistent = persistent
        self._registry = registry
        self._cluster = Cluster(bootstrap, client_id=_CLIENT_ID, security=security)
        self._producer = Producer(self._cluster)
        self._open: list[Listening] = []
        self._following: asyncio.Task[None] | None = None
        self._cluster_id = ""
        self.engine: Engine | None = None

    async def start(self) -> None:
        """Raises OSError when an address cannot be had, ClientError."""
        for number, address in enumerate(self._settings.listeners):
            listening = Listening(address, self._application)
            if self._ports:
                listening.adopt(self._ports[number])
            else:
                listening.open()
            self._open.append(listening)
        await self._producer.__aenter__()
        engine = self.engine = Engine(
            self._cluster,
            self._producer,
            service_id=self._settings["ksql.service.id"],
            registry=self._registry,
            persistent=self._persistent,
            defaults=self._settings.defaults,
        )
        self._cluster_id = (await self._cluster.metadata([])).cluster_id or ""
        await engine.log.prepare(self._settings["ksql.internal.topic.replicas"])
        self._following = asyncio.create_task(engine.log.follow(), name="sql-statements")
        await engine.ready()
        for listening in self._open:
            await listening.start_now()

    async def stop(self) -> None:
        """May be called whatever became of the start."""
        if self.engine is not None:
            await self.engine.close()
        for listening in self._open:
            await listening.stop()
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        if self.engine is not None:
            await self._producer.__aexit__(None)
        await self._cluster.close()

    def _application(self, address: Address) -> AsgiApplication:
        from ottla.sql.api.application import SqlApplication  # noqa: PLC0415  with the first listener

        assert self.engine is not None
        limits = Limits(body_bytes=self._settings["sql.body.max.bytes"])
        return SqlApplication(self.engine, self._cluster_id, address, limits, lambda: self.addresses[0])

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(str(listening.address) for listening in self._open)

    def banner(self) -> Sequence[str]:
        return [f"sql      {address}" for address in self.addresses]
