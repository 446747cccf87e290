"""The worker as an ASGI application: its table of routes, and how it speaks."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from ottla import __version__
from ottla.client.aio.cluster import Cluster
from ottla.connect.api.connectors import Connectors
from ottla.connect.api.desk import Desk
from ottla.connect.api.lifecycle import Lifecycle
from ottla.connect.api.loggers import Levels, Loggers
from ottla.connect.api.offsets import Offsets
from ottla.connect.api.plugins import Plugins
from ottla.connect.api.server import Server
from ottla.connect.api.topics import Topics
from ottla.connect.monitoring import page
from ottla.http import openapi
from ottla.http.addresses import Address
from ottla.http.answers import Answer
from ottla.http.application import Application, Manners
from ottla.http.asgi import Receive, Scope, Send
from ottla.http.auth import OPEN_DOOR, Doorkeeper
from ottla.http.call import Call
from ottla.http.limits import Limits
from ottla.http.media import JSON, PROMETHEUS, Media
from ottla.http.problems import confluent_body
from ottla.http.routes import Route

MEDIA: Final = Media((JSON,), (JSON,))
_WATCHED: Final = Media(offered=(PROMETHEUS, JSON), problems=JSON)
_PROBLEM: Final = {
    "type": "object",
    "required": ["error_code", "message"],
    "properties": {"error_code": {"type": "integer"}, "message": {"type": "string"}},
}


def routes(desk: Desk, cluster: Cluster, cluster_id: str, levels: Levels) -> tuple[Route, ...]:
    families = (
        Connectors(desk),
        Lifecycle(desk),
        Offsets(desk, cluster),
        Topics(desk),
        Plugins(desk),
        *((Loggers(desk, levels),) if desk.settings.has_admin else ()),
        Server(desk, cluster_id),
    )
    found = tuple(route for family in families for route in family.routes())
    return openapi.described("Connect", __version__, found, MEDIA, _PROBLEM)


class Pages:
    """The API, and beside it /metrics, which speaks another format."""

    __slots__ = ("_api", "_metrics")

    def __init__(self, api: Application, metrics: Application) -> None:
        self._api = api
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._metrics if scope.get("path") == "/metrics" else self._api)(scope, receive, send)

    @property
    def limits(self) -> Limits:
        return self._api.limits


def application(
    desk: Desk,
    cluster: Cluster,
    cluster_id: str,
    levels: Levels,
    address: Address,
    limits: Limits,
    door: Doorkeeper = OPEN_DOOR,
) -> Pages:
    manners = Manners(media=MEDIA, problem_body=confluent_body, limits=limits, doorkeeper=door)
    found, guard = routes(desk, cluster, cluster_id, levels), _guard(door)

    async def metrics(call: Call) -> Answer:
        return Answer((await page(desk.worker)).encode(), media_type=PROMETHEUS)

    watching = Route("GET", "/metrics", metrics, "Metrics in Prometheus' text format, under Connect's names.")
    watched = Application(guard((watching,)), address, replace(manners, media=_WATCHED))
    return Pages(Application(guard(found), address, manners), watched)


def _guard(door: Doorkeeper) -> Callable[[Sequence[Route]], tuple[Route, ...]]:
    if door is OPEN_DOOR:
        return tuple
    from ottla.connect.doors import with_needs  # noqa: PLC0415  for who has logins

    return with_needs
