"""The worker as an ASGI application: its table of routes, and how it speaks."""

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
from ottla.http import openapi
from ottla.http.addresses import Address
from ottla.http.application import Application, Manners
from ottla.http.limits import Limits
from ottla.http.media import JSON, Media
from ottla.http.problems import confluent_body
from ottla.http.routes import Route

MEDIA: Final = Media((JSON,), (JSON,))
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
        Loggers(desk, levels),
        Server(desk, cluster_id),
    )
    found = tuple(route for family in families for route in family.routes())
    return openapi.described("Connect", __version__, found, MEDIA, _PROBLEM)


def application(
    desk: Desk, cluster: Cluster, cluster_id: str, levels: Levels, address: Address, limits: Limits
) -> Application:
    manners = Manners(media=MEDIA, problem_body=confluent_body, limits=limits)
    return Application(routes(desk, cluster, cluster_id, levels), address, manners)
