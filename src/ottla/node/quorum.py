"""A node's part in the quorum: the metadata that every node follows and, on a controller, its listener and its vote."""

import asyncio
from collections.abc import Sequence

from ottla.broker.front.dispatch import Routes
from ottla.broker.quotas.clients import ClientQuotas
from ottla.broker.security.authorizer import Authorizer
from ottla.broker.services import ControllerServices
from ottla.model.errors import Errors
from ottla.model.properties import Listener, Settings
from ottla.node import options
from ottla.node.network import Network
from ottla.node.services import Ending, Health, Service
from ottla.node.storage import Storage
from ottla.node.surroundings import Surroundings
from ottla.protocol.apis import ListenerType
from ottla.runtime.cluster_news import ClusterNews
from ottla.runtime.control_plane import ControlPlane, controller_registration
from ottla.runtime.tasks import Tasks
from ottla.storage.fs import StorageError

_PAUSE_S = 1.0


class Metadata(Service):
    """The metadata log and its image, opened already: whatever stands above may read them, and is gone when they
    close."""

    name = "metadata"

    def __init__(self, control_plane: ControlPlane) -> None:
        self._control_plane = control_plane

    async def stop(self, ending: Ending) -> None:
        await self._control_plane.close()

    async def health(self) -> Health:
        return Health.of({"no_metadata": "the metadata log is lost"} if self._control_plane.failure else {})


class QuorumMember(Service):
    name = "quorum"

    def __init__(
        self,
        settings: Settings,
        world: Surroundings,
        network: Network,
        storage: Storage,
        control_plane: ControlPlane,
        authorizer: Authorizer,
        quotas: ClientQuotas,
    ) -> None:
        self._settings = settings
        self._world = world
        self._network = network
        self._storage = storage
        self._services = ControllerServices(
            node_id=settings.node_id,
            limits=options.limits(settings),
            clock=world.clock,
            control_plane=control_plane,
            authorizer=authorizer,
            quotas=quotas,
        )
        self._tasks = Tasks(asyncio.get_running_loop())
        self._news = ClusterNews(asyncio.get_running_loop(), control_plane, settings.node_id)
        self.control_plane = control_plane

    async def start(self) -> None:
        self._storage.identify()
        early, late = self._controller_listeners()
        routes = Routes(ListenerType.CONTROLLER)
        # Before the quorum is joined: the others must be able to reach this node to form it.
        self._network.serve(early, routes, self._services)
        await self.control_plane.start()
        self._network.serve(late, routes, self._services)
        self._news.start()
        if self._settings.is_controller:
            self._tasks.start(self._register(), "registration of the controller")

    def _controller_listeners(self) -> tuple[list[Listener], list[Listener]]:
        """Those that open at once, and those that wait for the metadata, ACLs included (KIP-801): by
        early.start.listeners, which has all of them unless it is set."""
        settings = self._settings
        listeners = settings.controller_listeners if settings.is_controller else ()
        named = settings["early.start.listeners"]
        early = [each.upper() for each in named] if isinstance(named, tuple) else [each.name for each in listeners]
        late = [each for each in listeners if each.name not in early]
        return [each for each in listeners if each not in late], late

    async def _register(self) -> None:
        request = controller_registration(self._settings, self._world.ids)
        while True:
            try:
                reply = await self.control_plane.submit(request)
            except StorageError:
                # It leads and has no room in its own metadata log, which tells so. Another leader may take it.
                await asyncio.sleep(_PAUSE_S)
                continue
            if reply.error_code != Errors.REQUEST_TIMED_OUT:
                return

    async def stop(self, ending: Ending) -> None:
        self._news.stop()
        await self._tasks.stop()
        self._network.stop_serving()

    async def health(self) -> Health:
        return Health.of({"no_controller": "no active controller is known"} if self.control_plane.leader_id < 0 else {})

    def banner(self) -> Sequence[str]:
        if self._settings.is_broker:
            return ()
        return [f"control  {each.host}:{each.port}  ({each.name})" for each in self._settings.controller_listeners]
