"""A SQL server with its Spark host: beside a node (`node.platform_process`), or as a process by itself
(`ottla sql-server`), against any Kafka cluster."""

import asyncio
import logging
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from ottla.client.addresses import Address
from ottla.client.errors import ClientError
from ottla.client.reach import Reach, secured, write_private
from ottla.client.security import security
from ottla.model.properties.file import format_properties
from ottla.net.listening import refusal
from ottla.node.alone import run_alone
from ottla.node.logs import write_text_logs
from ottla.node.services import CannotStart
from ottla.node.spark_host import SparkHost
from ottla.sql.registry import TRUSTED, URL, USER_INFO, registry_at
from ottla.sql.server.history import HistoryHost
from ottla.sql.server.persistent import SparkQueries
from ottla.sql.server.processing_log import log_topic
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
        client: Mapping[str, str] | None = None,
        ports: Sequence[socket.socket] = (),
    ) -> None:
        """`client`: Kafka's client settings, by which the server and its queries reach the brokers. Raises
        SecurityRefused."""
        directory = Path(settings["sql.state.dir"]).absolute()
        directory.mkdir(parents=True, exist_ok=True)
        self._host = SparkHost(directory)
        reach = Reach(",".join(map(str, bootstrap)), _kept(directory / "client.properties", secured(client or {})))
        registry = _registry_of(settings, directory)
        self._queries = SparkQueries(
            self._host.client,
            missing=self._host.missing,
            service_id=settings["ksql.service.id"],
            reach=reach,
            state_dir=str(directory / "queries"),
            registry=registry,
            dead_letters=settings["sql.dead.letter.topic"],
            processing_log={
                "topic": log_topic(settings),
                "rows": settings["ksql.logging.processing.rows.include"],
            },
            defaults=settings.defaults,
        )
        known = {name: settings[name] for name in (USER_INFO, TRUSTED)}
        self._registry = registry_at(settings[URL], known)
        self.service = SqlService(
            settings,
            bootstrap,
            security=security(client or {}),
            ports=ports,
            persistent=self._queries,
            history=HistoryHost(
                self._host.client,
                service_id=settings["ksql.service.id"],
                reach=reach,
                folder=directory / "history",
                registry=registry,
                defaults=settings.defaults,
            ),
            registry=self._registry,
        )

    def banner(self) -> Sequence[str]:
        return self.service.banner()

    async def start(self) -> None:
        await self.service.start()

    async def stop(self) -> None:
        await self.service.stop()
        await asyncio.to_thread(self._queries.close)
        await asyncio.to_thread(self._host.close)


def _kept(path: Path, settings: Mapping[str, str]) -> str:
    """Where queries find settings that have secrets. Their host writes down what it runs, and begins it again by
    itself: so the file is always the same one, written anew at each start."""
    if not settings:
        path.unlink(missing_ok=True)
        return ""
    write_private(path, format_properties(settings).encode())
    return str(path)


def _registry_of(settings: SqlSettings, directory: Path) -> dict[str, str]:
    """As queries are told of it."""
    own = {name: str(settings[name]) for name in (USER_INFO, TRUSTED) if settings[name]}
    return {"url": settings[URL], "file": _kept(directory / "registry.properties", own)}


def run_sql_server(settings: SqlSettings, bootstrap: list[Address], client: Mapping[str, str]) -> int:
    """Until SIGTERM, SIGINT or SIGHUP. Raises CannotStart."""
    write_text_logs()
    return run_alone(
        "a SQL server",
        lambda: SqlWithSpark(settings, bootstrap, client=client),
        lambda both: _started(both, settings),
    )


async def _started(both: SqlWithSpark, settings: SqlSettings) -> None:
    try:
        await both.start()
    except (ClientError, ValueError) as error:
        raise CannotStart(str(error)) from error
    except OSError as error:
        first = settings.listeners[0]
        raise CannotStart(refusal(error, first.host, first.port, "sql.listeners")) from error
