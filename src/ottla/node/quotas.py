"""The quotas that are set in the cluster, brought to where this node acts on them."""

import asyncio
import logging
from collections.abc import Mapping

from ottla.broker.quotas.clients import ClientQuotas
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage, QuotaEntity
from ottla.model.properties import Settings
from ottla.model.quotas import CONNECTION_CREATION_RATE, IP
from ottla.node import options
from ottla.node.hosts import address_in, addresses_of
from ottla.node.network import Network
from ottla.node.services import Ending, Service
from ottla.runtime.control_plane import ControlPlane
from ottla.runtime.tasks import Tasks

logger = logging.getLogger(__name__)


class QuotasInForce(Service):
    """One book for the whole node: what a client does by any of its listeners counts together."""

    name = "quotas"

    def __init__(self, settings: Settings, network: Network, control_plane: ControlPlane) -> None:
        self.clients: ClientQuotas = options.client_quotas(settings)
        self._network = network
        self._control_plane = control_plane
        self._tasks = Tasks(asyncio.get_running_loop())
        self._addresses: dict[QuotaEntity, float] = {}

    async def start(self) -> None:
        self._set(self._control_plane.image)
        self._control_plane.subscribe(self._on_metadata)

    async def stop(self, ending: Ending) -> None:
        await self._tasks.stop()

    def _on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if "client_quotas" in delta.changed_security:
            self._set(image)

    def _set(self, image: MetadataImage) -> None:
        quotas = image.client_quotas
        if quotas or self.clients.in_force or self._addresses:
            self.clients.set(quotas)
            self._limit_addresses(quotas)

    def _limit_addresses(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Those that are named by a host's name follow when its addresses are known."""
        found: dict[QuotaEntity, float] = {}
        hosts: dict[str, float] = {}
        for entity, values in quotas.items():
            rate = values.get(CONNECTION_CREATION_RATE)
            if rate is None or entity[0][0] != IP:
                continue
            name = entity[0][1]
            address = None if name is None else address_in(name)
            if name is None or address is not None:
                found[((IP, address),)] = rate
            else:
                hosts[name] = rate
        self._addresses = found
        self._network.limit_addresses(found)
        if hosts:
            self._tasks.start(self._resolve(found, hosts), "addresses of hosts with quotas")

    async def _resolve(self, known: dict[QuotaEntity, float], hosts: dict[str, float]) -> None:
        found: dict[QuotaEntity, float] = {}
        for host, rate in hosts.items():
            try:
                addresses = await addresses_of(host)
            except OSError as error:
                logger.warning("the connection quota of %s has no effect: the host has no address: %s", host, error)
                continue
            found.update({((IP, address),): rate for address in addresses})
        if known is self._addresses:  # else others were set meanwhile
            self._addresses = {**found, **known}
            self._network.limit_addresses(self._addresses)
