"""The server's table of routes, and how it speaks."""

from collections.abc import Callable
from typing import Final

from ottla.http.addresses import Address
from ottla.http.application import Application, Manners
from ottla.http.limits import Limits
from ottla.http.media import JSON, Media
from ottla.sql.api.about import About
from ottla.sql.api.bodies import DELIMITED, KSQL_JSON, problem_body
from ottla.sql.api.queries import Queries
from ottla.sql.api.statements import Statements
from ottla.sql.server.engine import Engine

_ACCEPTED: Final = (KSQL_JSON, JSON, DELIMITED, "application/x-www-form-urlencoded")
MEDIA: Final = Media((KSQL_JSON, JSON, DELIMITED), _ACCEPTED, problems=JSON)


def application(
    engine: Engine, cluster_id: str, address: Address, limits: Limits, named: Callable[[], str]
) -> Application:
    families = (Statements(engine), Queries(engine), About(engine, cluster_id, named))
    routes = tuple(route for family in families for route in family.routes())
    return Application(routes, address, Manners(media=MEDIA, problem_body=problem_body, limits=limits))
