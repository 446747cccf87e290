"""A schema registry as a process by itself, against any Kafka cluster: `ottla registry`."""

import logging

from ottla.client.addresses import Address
from ottla.client.errors import ClientError
from ottla.client.security import Security
from ottla.net.listening import refusal
from ottla.node.alone import run_alone
from ottla.node.logs import write_text_logs
from ottla.node.services import CannotStart
from ottla.registry.journal.topic import WrongTopic
from ottla.registry.service import RegistryService, StartFailed
from ottla.registry.settings import RegistrySettings

logger = logging.getLogger(__name__)


def run_registry(settings: RegistrySettings, bootstrap: list[Address], security: Security) -> int:
    """Until SIGTERM, SIGINT or SIGHUP. Raises CannotStart."""
    write_text_logs()
    if settings.unused:
        logger.warning("not used, since no setting of a registry has such a name: %s", ", ".join(settings.unused))
    return run_alone(
        "a schema registry",
        lambda: RegistryService(settings, bootstrap, security=security),
        lambda service: _started(service, settings),
    )


async def _started(service: RegistryService, settings: RegistrySettings) -> None:
    try:
        await service.start()
    except (ClientError, StartFailed, WrongTopic) as error:
        raise CannotStart(str(error)) from error
    except OSError as error:
        first = settings.listeners[0]
        raise CannotStart(refusal(error, first.host, first.port, "listeners")) from error
