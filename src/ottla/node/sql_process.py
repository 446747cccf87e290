"""A SQL server with its Spark host: beside a node (`node.platform_process`), or as a process by itself
(`ottla sql-server`), against any Kafka cluster."""

import asyncio
import logging
import socket
from collections.abc import Sequence
from pathlib import Path

from ottla.client.addresses import Address
from ottla.client.errors import ClientError
from ottla.client.security import PLAINTEXT, Security
from ottla.net.listening import refusal
from ottla.node.alone import run_alone
from ottla.node.logs import write_text_logs
from ottla.node.services import CannotStart
from ottla.node.spark_host import SparkHost
from ottla.sql.server.persistent import SparkQueries
from ottla.sql.service import SqlService
from ottla.sql.settings import SqlSettings

logger = logging.getLogger(__name__)


class SqlWithSpark:
    """The server, and the host that its persistent queries run in. The host comes with the first of them."""

    def __init__(
        self,
        settings: SqlSettings,
        bootstrap: Sequence[Address],
        *,
        security: Security = PLAINTEXT,
        ports: Sequence[socket.socket] = (),
    ) -> None:
        directory = Path(settings["sql.state.dir"]).absolute()
        directory.mkdir(parents=True, exist_ok=True)
        self._host = SparkHost(directory)
        registry_url = settings["ksql.schema.registry.url"]
        self._queries = SparkQueries(
            self._host.client,
            service_id=settings["ksql.service.id"],
            bootstrap=",".join(map(str, bootstrap)),
            state_dir=str(directory / "queries"),
            registry_url=registry_url,
            defaults=settings.defaults,
        )
        self._registry = None
        if registry_url:
            from ottla.registry.client import RegistryClient  # noqa: PLC0415  few need it

            self._registry = RegistryClient(*registry_url.split(","))
        self.service = SqlService(
            settings, bootstrap, security=security, ports=ports, persistent=self._queries, registry=self._registry
        )

    def banner(self) -> Sequence[str]:
        return self.service.banner()

    async def start(self) -> None:
        await self.service.start()

    async def stop(self) -> None:
        await self.service.stop()
        await asyncio.to_thread(self._queries.close)
        await asyncio.to_thread(self._host.close)


def run_sql_server(settings: SqlSettings, bootstrap: list[Address], security: Security) -> int:
    """Until SIGTERM, SIGINT or SIGHUP. Raises CannotStart."""
    write_text_logs()
    return run_alone(
        "a SQL server",
        lambda: SqlWithSpark(settings, bootstrap, security=security),
        lambda both: _started(both, settings),
    )


async def _started(both: SqlWithSpark, settings: SqlSettings) -> None:
    try:
        await both.start()
    except ClientError as error:
        raise CannotStart(str(error)) from error
    except OSError as error:
        first = settings.listeners[0]
        raise CannotStart(refusal(error, first.host, first.port, "sql.listeners")) from error
