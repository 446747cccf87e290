"""The node's own HTTP listeners (`http.listeners`): metrics, health, version.

A port is taken when the node starts, and what answers on it is loaded when somebody asks. An address that cannot be had
costs this service, never the node.
"""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.security.authorizer import Authorizer
from ottla.http.addresses import Address, parse
from ottla.http.asgi import AsgiApplication
from ottla.http.listening import Listening
from ottla.model.ids import Millis
from ottla.model.properties import Settings
from ottla.net.listening import refusal
from ottla.node.monitoring.watched import Watched
from ottla.node.services import Ending, Health, Service, ServiceTable, State

if TYPE_CHECKING:
    from ssl import SSLContext

    from ottla.http.auth import Doorkeeper
    from ottla.node.tls import NodeTls

logger = logging.getLogger(__name__)


class HttpListeners(Service):
    name = "http"

    def __init__(
        self,
        settings: Settings,
        watched: Watched,
        table: ServiceTable,
        loaded: Callable[[], None],
        authorizer: Authorizer,
        tls: "NodeTls | None" = None,
    ) -> None:
        self._tls = tls
        self._settings = settings
        self._authorizer = authorizer
        self._asked = [parse(each) for each in settings.get_list("http.listeners")]
        self._watched = watched
        self._table = table
        self._loaded = loaded
        self._open: list[Listening] = []
        self._missing: list[str] = []

    async def start(self) -> None:
        self._watched.begin()
        for address in self._asked:
            listening = Listening(address, self._application, tls=self._context(address))
            try:
                listening.open()
            except OSError as error:
                self._missing.append(refusal(error, address.host, address.port, "http.listeners"))
                logger.warning("no metrics and health: %s", self._missing[-1])
                continue
            listening.start()
            self._open.append(listening)

    def _context(self, address: Address) -> "SSLContext | None":
        if address.scheme != "https":
            return None
        from ottla.net.tls_listener import followed  # noqa: PLC0415  for who has TLS
        from ottla.node.tls import HTTPS  # noqa: PLC0415

        found = None if self._tls is None else self._tls.listener(HTTPS)
        assert found is not None, "the network has made the TLS of every address"
        return followed(found)

    def _application(self, address: Address) -> AsgiApplication:
        from ottla.node.monitoring import pages  # noqa: PLC0415  a node that nobody asks does without

        made = pages.application(self._watched, self._not_ready, address, self._door())
        self._loaded()
        return made

    def _door(self) -> "Doorkeeper":
        if self._settings.get_str("http.authentication.method").upper() == "NONE":
            from ottla.http.auth import OPEN_DOOR  # noqa: PLC0415  loaded with the pages

            return OPEN_DOOR
        from ottla.node.monitoring.door import NodeUsers, PagesDoor  # noqa: PLC0415  for who has one

        users = NodeUsers(self._settings, lambda: self._watched.control_plane.image)
        delay = Millis(self._settings.get_int("connection.failed.authentication.delay.ms"))
        return PagesDoor(users, self._authorizer, delay)

    async def _not_ready(self) -> dict[str, str]:
        """What keeps the node from doing its part, of all its services. An address that this one misses does not."""
        found: dict[str, str] = {}
        for name, health in (await self._table.health()).items():
            if health.state is State.STARTING:
                found[name] = f"{name} is starting"
            if name != self.name:
                found.update(health.reasons)
        return found

    async def stop(self, ending: Ending) -> None:
        for listening in self._open:
            await listening.stop()

    def abandon(self) -> None:
        for listening in self._open:
            listening.abandon()

    async def health(self) -> Health:
        return Health.of({"http_listeners": "; ".join(self._missing)} if self._missing else {})

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(str(listening.address) for listening in self._open)

    def banner(self) -> Sequence[str]:
        return [f"metrics  {address}/metrics" for address in self.addresses]
