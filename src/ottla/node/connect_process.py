"""A Connect worker as a process by itself, against any Kafka cluster: `ottla connect worker.properties`."""

import logging
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from ottla.client.addresses import Address
from ottla.client.errors import ClientError
from ottla.client.security import Security
from ottla.connect.failures import ConnectCannotStart
from ottla.connect.orders import ConnectorRunner, WorkerFacts
from ottla.connect.service import ConnectService, RunnerMaker
from ottla.connect.settings import ConnectSettings
from ottla.http.asking import NoAnswer, ask
from ottla.net.listening import refusal
from ottla.node.alone import run_alone
from ottla.node.logs import write_text_logs
from ottla.node.services import CannotStart

logger = logging.getLogger(__name__)

_PATIENCE_S: Final = 60.0


def runner_maker(settings: ConnectSettings) -> RunnerMaker:
    """Whoever runs the connectors has a Spark host, which comes with the first of them. Where no directory is named for
    it, one is there for as long as the process."""
    temporary: list[tempfile.TemporaryDirectory[str]] = []

    def made(facts: WorkerFacts) -> ConnectorRunner:
        from ottla.connect.jobs.runner import HostRunner  # noqa: PLC0415  with the worker
        from ottla.node.spark_host import SparkHost  # noqa: PLC0415

        named = settings["connect.state.dir"]
        if not named:
            temporary.append(tempfile.TemporaryDirectory(prefix="ottla-connect-", ignore_cleanup_errors=True))
            named = temporary[-1].name
        directory = Path(named)
        directory.mkdir(parents=True, exist_ok=True)
        host = SparkHost(directory, settings["connect.spark.master"])
        return HostRunner(facts, host, directory)

    return made


def run_connect(
    settings: ConnectSettings,
    bootstrap: list[Address],
    security: Security,
    connectors: Sequence[Mapping[str, str]] = (),
) -> int:
    """Until SIGTERM, SIGINT or SIGHUP. `connectors` are put once it runs, as connect-standalone does. Raises
    CannotStart."""
    write_text_logs()
    if settings.unused:
        logger.warning("not used, since no setting of a worker has such a name: %s", ", ".join(settings.unused))

    async def put_all(service: ConnectService) -> None:
        for connector in connectors:
            await _put(service, connector)

    return run_alone(
        "a Connect worker",
        lambda: ConnectService(settings, bootstrap, runner_maker(settings), security=security),
        lambda service: _started(service, settings),
        put_all,
    )


async def _started(service: ConnectService, settings: ConnectSettings) -> None:
    try:
        await service.start()
    except (ClientError, ConnectCannotStart) as error:
        raise CannotStart(str(error)) from error
    except OSError as error:
        first = settings.listeners[0]
        raise CannotStart(refusal(error, first.host, first.port, "listeners")) from error


async def _put(service: ConnectService, connector: Mapping[str, str]) -> None:
    """As a PUT of its config would; a config that is no good is said, and the others go on."""
    name = connector.get("name", "")
    try:
        reply = await ask(
            service.url,
            "PUT",
            f"/connectors/{quote(name, safe='')}/config",
            {"content-type": "application/json"},
            msgspec.json.encode(dict(connector)),
            connect_s=_PATIENCE_S,
            answer_s=_PATIENCE_S,
        )
    except NoAnswer as error:
        logger.error("the connector %s was not created: %s", name, error)
        return
    if reply.status >= 300:
        logger.error("the connector %s was not created: %s", name, reply.body.decode(errors="replace"))
