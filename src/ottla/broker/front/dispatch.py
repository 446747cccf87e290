"""Which handler answers which request: the rows of `protocol.apis`, each with the file that bears its name."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from ottla.broker.security.missing import missing
from ottla.metrics.counts import RequestCounts
from ottla.model.errors import Errors
from ottla.model.permissions import CLUSTER_ACTION, CLUSTER_NAME, Permission
from ottla.protocol import messages
from ottla.protocol.apis import Entrance, ListenerType, OfCluster, entrances
from ottla.protocol.frames import NO_FLEXIBLE
from ottla.protocol.refusals import refused

API_VERSIONS: Final = 18
FETCH: Final = 1
PRODUCE: Final = 0

Handle = Callable[..., Any]
"""Takes services, session, request and version."""


@dataclass(frozen=True, slots=True)
class Route:
    key: int
    name: str
    min_version: int
    max_version: int
    first_flexible: int
    decoders: Any
    """By version: the message's own, unless the handler brings others."""
    handle: Handle
    streams_files: bool
    large_replies: bool
    """They may be so large that a thread writes them."""
    of_cluster: bool
    """What nodes ask of each other: the time that it takes is no client's."""
    counts: RequestCounts


class Routes:
    """The routes of one listener. A handler's module is imported when its first request comes."""

    __slots__ = ("_entrances", "_is_early", "loaded")

    def __init__(self, listener: ListenerType) -> None:
        self._entrances = {entrance.api.key: entrance for entrance in entrances(listener)}
        self._is_early = listener is ListenerType.CONTROLLER
        """Such a listener is open before the node knows the ACLs: the log that has them is read through it."""
        self.loaded: dict[int, Route] = {}
        """Those asked for so far, by key: a session looks here first."""

    def get(self, key: int) -> Route | None:
        route = self.loaded.get(key)
        if route is None and key in self._entrances:
            route = self.loaded[key] = load_route(self._entrances[key], is_early=self._is_early)
        return route

    def served(self) -> list[tuple[int, int, int]]:
        """Key, lowest and highest version of every API here."""
        return [(key, entrance.api.min_version, entrance.max_version) for key, entrance in self._entrances.items()]

    def api_versions_unsupported(self) -> Any:
        route = self.get(API_VERSIONS)
        assert route is not None
        module = import_module("ottla.broker.handlers.k18_api_versions")
        return module.unsupported(self)


def load_route(entrance: Entrance, *, is_early: bool = False) -> Route:
    api = entrance.api
    tells_errors = "error_code" in messages.response_class(api.key).FIELDS
    module = import_module(f"ottla.broker.handlers.{entrance.handler}")
    handle = module.handle
    if isinstance(entrance.needs, OfCluster):
        handle = _if_allowed(handle, entrance.needs.any_of)
    if is_early and entrance.needs is not None:
        handle = _if_ready(handle)
    return Route(
        key=api.key,
        name=api.name,
        min_version=api.min_version,
        max_version=entrance.max_version,
        first_flexible=NO_FLEXIBLE if api.first_flexible is None else api.first_flexible,
        decoders=getattr(module, "DECODERS", None) or messages.request_class(api.key).DECODERS,
        handle=handle,
        streams_files=api.key == FETCH,
        large_replies=getattr(module, "LARGE_REPLIES", False),
        of_cluster=isinstance(entrance.needs, OfCluster) and CLUSTER_ACTION in entrance.needs.any_of,
        counts=RequestCounts(api.min_version, entrance.max_version, has_error_code=tells_errors),
    )


def _if_allowed(handle: Handle, any_of: tuple[Permission, ...]) -> Handle:
    """The session's own question, put before the handler once and for all: the other routes do not pay for it."""

    *first, last = any_of

    def ask_first(services: Any, session: Any, request: Any, version: int) -> Any:
        client = session.client
        if any(client.sees(*each, CLUSTER_NAME) for each in first) or client.may(*last, CLUSTER_NAME):
            return handle(services, session, request, version)
        return refused(request, Errors.CLUSTER_AUTHORIZATION_FAILED, missing(client.principal, any_of, CLUSTER_NAME))

    return ask_first


def _if_ready(handle: Handle) -> Handle:
    """Before a controller has read the ACLs nobody but super users is served, with Kafka's answer."""

    def wait_first(services: Any, session: Any, request: Any, version: int) -> Any:
        if services.authorizer.is_ready_for(session.client.principal):
            return handle(services, session, request, version)
        return refused(request, Errors.UNKNOWN_SERVER_ERROR, "this node has not read the ACLs yet; try again")

    return wait_first
