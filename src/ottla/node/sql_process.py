"""A SQL server with its Spark host: beside a node (`node.platform_process`), or as a process by itself
(`ottla sql-server`), against any Kafka cluster."""

import asyncio
import logging
import socket
from collections.abc import Sequence
from pathlib import Path

from ottla import __version__
from ottla.client.addresses import Address
from ottla.client.errors import ClientError
from ottla.client.security import PLAINTEXT, Security
from ottla.net.listening import refusal
from ottla.node.logs import write_text_logs
from ottla.node.process import new_event_loop
from ottla.node.services import CannotStart
from ottla.node.spark_host import SparkHost
from ottla.runtime.standard_streams import announce
from ottla.runtime.stop_signals import stop_signals
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

    async def start(self) -> None:
        await self.service.start()

    async def stop(self) -> None:
        await self.service.stop()
        await asyncio.to_thread(self._queries.close)
        await asyncio.to_thread(self._host.close)


def run_sql_server(settings: SqlSettings, bootstrap: list[Address], security: Security) -> int:
    """Until SIGTERM, SIGINT or SIGHUP. Raises CannotStart."""
    write_text_logs()
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(_serve(settings, bootstrap, security))
    finally:
        loop.close()


async def _serve(settings: SqlSettings, bootstrap: list[Address], security: Security) -> int:
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    for number in stop_signals():
        loop.add_signal_handler(number, asked.set)
    both = SqlWithSpark(settings, bootstrap, security=security)
    starting = loop.create_task(_started(both, settings))
    stopping = loop.create_task(asked.wait())
    try:
        await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            await starting
            told = "\n".join(f"  {line}" for line in both.service.banner())
            announce(f"ottla {__version__}: a SQL server is ready\n{told}\n  stop with Ctrl-C")
            await stopping
    finally:
        for task in (starting, stopping):
            task.cancel()
        await asyncio.gather(starting, stopping, return_exceptions=True)
        await both.stop()
    return 0


async def _started(both: SqlWithSpark, settings: SqlSettings) -> None:
    try:
        await both.start()
    except ClientError as error:
        raise CannotStart(str(error)) from error
    except OSError as error:
        first = settings.listeners[0]
        raise CannotStart(refusal(error, first.host, first.port, "sql.listeners")) from error
