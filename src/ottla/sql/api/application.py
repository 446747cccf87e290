"""The server's table of routes, how it speaks, and the one path whose body never ends."""

from collections.abc import Callable
from typing import Final

from ottla.http.addresses import Address, may_be_called
from ottla.http.application import Application, Manners
from ottla.http.asgi import Receive, Scope, Send
from ottla.http.limits import Limits
from ottla.http.media import JSON, Media
from ottla.sql.api.about import About
from ottla.sql.api.bodies import DELIMITED, KSQL_JSON, problem_body
from ottla.sql.api.inserts import PATH, Inserts
from ottla.sql.api.queries import Queries
from ottla.sql.api.statements import Statements
from ottla.sql.server.engine import Engine

_ACCEPTED: Final = (KSQL_JSON, JSON, DELIMITED, "application/x-www-form-urlencoded")
MEDIA: Final = Media((KSQL_JSON, JSON, DELIMITED), _ACCEPTED, problems=JSON)


class SqlApplication:
    speaks_http2 = True

    def __init__(
        self, engine: Engine, cluster_id: str, address: Address, limits: Limits, named: Callable[[], str]
    ) -> None:
        families = (Statements(engine), Queries(engine), About(engine, cluster_id, named))
        routes = tuple(route for family in families for route in family.routes())
        self._address = address
        self._plain = Application(routes, address, Manners(media=MEDIA, problem_body=problem_body, limits=limits))
        self._inserts = Inserts(engine)

    @property
    def limits(self) -> Limits:
        return self._plain.limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].rstrip("/") == PATH and self._is_for_us(scope):
            await self._inserts(scope, receive, send)
        else:
            await self._plain(scope, receive, send)

    def _is_for_us(self, scope: Scope) -> bool:
        """A page of a stranger in a browser is refused by the plain one."""
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        return len(hosts) <= 1 and may_be_called(self._address, hosts[0] if hosts else "")
