"""A schema registry as a process by itself, against any Kafka cluster: `ottla registry`."""

import asyncio
import logging

from ottla import __version__
from ottla.client.addresses import Address
from ottla.client.errors import ClientError
from ottla.client.security import Security
from ottla.net.listening import refusal
from ottla.node.logs import write_text_logs
from ottla.node.process import new_event_loop
from ottla.node.services import CannotStart
from ottla.registry.journal.topic import WrongTopic
from ottla.registry.service import RegistryService, StartFailed
from ottla.registry.settings import RegistrySettings
from ottla.runtime.standard_streams import announce
from ottla.runtime.stop_signals import stop_signals

logger = logging.getLogger(__name__)


def run_registry(settings: RegistrySettings, bootstrap: list[Address], security: Security) -> int:
    """Until SIGTERM, SIGINT or SIGHUP. Raises CannotStart."""
    write_text_logs()
    if settings.unused:
        logger.warning("not used, since no setting of a registry has such a name: %s", ", ".join(settings.unused))
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(_serve(settings, bootstrap, security))
    finally:
        loop.close()


async def _serve(settings: RegistrySettings, bootstrap: list[Address], security: Security) -> int:
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    for number in stop_signals():
        loop.add_signal_handler(number, asked.set)
    service = RegistryService(settings, bootstrap, security=security)
    starting = loop.create_task(_started(service, settings))
    stopping = loop.create_task(asked.wait())
    try:
        await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            await starting
            told = "\n".join(f"  {line}" for line in service.banner())
            announce(f"ottla {__version__}: a schema registry is ready\n{told}\n  stop with Ctrl-C")
            await stopping
    finally:
        for task in (starting, stopping):
            task.cancel()
        await asyncio.gather(starting, stopping, return_exceptions=True)
        await service.stop()
    return 0


async def _started(service: RegistryService, settings: RegistrySettings) -> None:
    try:
        await service.start()
    except (ClientError, StartFailed, WrongTopic) as error:
        raise CannotStart(str(error)) from error
    except OSError as error:
        first = settings.listeners[0]
        raise CannotStart(refusal(error, first.host, first.port, "listeners")) from error
