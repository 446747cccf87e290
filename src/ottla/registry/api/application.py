"""The registry as an ASGI application: its table of routes, and how it speaks."""

from dataclasses import replace
from typing import Final

from ottla import __version__
from ottla.http import openapi
from ottla.http.addresses import Address
from ottla.http.answers import Answer
from ottla.http.application import Application, Manners
from ottla.http.auth import OPEN_DOOR, Doorkeeper
from ottla.http.call import Call
from ottla.http.limits import Limits
from ottla.http.media import JSON, PROMETHEUS, Media
from ottla.http.problems import confluent_body
from ottla.http.routes import Route
from ottla.registry.api.absent import Associations, Keys
from ottla.registry.api.compatibility import Checks
from ottla.registry.api.config import Config
from ottla.registry.api.contexts import Contexts
from ottla.registry.api.desk import Desk
from ottla.registry.api.envelope import Envelope
from ottla.registry.api.mode import Mode
from ottla.registry.api.needs import SubjectDoor, with_needs
from ottla.registry.api.schemas import Schemas
from ottla.registry.api.server import Identity, Server
from ottla.registry.api.subjects import Subjects
from ottla.registry.api.versions import Versions
from ottla.registry.monitoring import Page, RequestCounts

V1: Final = "application/vnd.schemaregistry.v1+json"
_OFFERED: Final = (V1, "application/vnd.schemaregistry+json", JSON)
MEDIA: Final = Media(_OFFERED, (*_OFFERED, "application/octet-stream"))
_WATCHED: Final = Media(offered=(PROMETHEUS, JSON), problems=JSON)
_PROBLEM: Final = {
    "type": "object",
    "required": ["error_code", "message"],
    "properties": {"error_code": {"type": "integer"}, "message": {"type": "string"}},
}


def routes(desk: Desk, identity: Identity) -> tuple[Route, ...]:
    families = (Subjects(desk), Versions(desk), Schemas(desk), Checks(desk), Config(desk), Mode(desk), Contexts(desk))
    found = tuple(route for family in families for route in family.routes())
    found = with_needs(found) + Server(identity).routes() + Associations().routes() + Keys().routes()
    return openapi.described("Schema registry", __version__, found, MEDIA, _PROBLEM)


def application(
    desk: Desk,
    identity: Identity,
    address: Address,
    limits: Limits,
    doorkeeper: Doorkeeper = OPEN_DOOR,
    counts: RequestCounts | None = None,
) -> Envelope:
    """`counts` is shared by all listeners of a registry."""
    manners = Manners(
        media=MEDIA,
        problem_body=confluent_body,
        doorkeeper=SubjectDoor(doorkeeper, desk),
        limits=limits,
        empty_body_status=422,
    )
    counted = counts or RequestCounts()
    page = Page(counted, desk.runner)

    async def metrics(call: Call) -> Answer:
        return Answer(page.text().encode(), media_type=PROMETHEUS)

    watching = Route("GET", "/metrics", metrics, "Metrics in Prometheus' text format, under Confluent's names.")
    pages = Application((watching,), address, replace(manners, media=_WATCHED))
    return Envelope(Application(routes(desk, identity), address, manners), counted, pages)
