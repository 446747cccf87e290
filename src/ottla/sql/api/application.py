"""The server's table of routes, how it speaks, and the one path whose body never ends."""

from collections.abc import Callable
from typing import Final

from ottla.http.addresses import Address, may_be_called
from ottla.http.application import Application, Manners
from ottla.http.asgi import Receive, Scope, Send
from ottla.http.limits import Limits
from ottla.http.media import JSON, Media
from ottla.sql.api import websockets
from ottla.sql.api.about import About
from ottla.sql.api.bodies import DELIMITED, KSQL_JSON, PROTOBUF, problem_body
from ottla.sql.api.doors import SqlDoor
from ottla.sql.api.inserts import PATH, Inserts
from ottla.sql.api.queries import Queries
from ottla.sql.api.statements import Statements
from ottla.sql.api.websockets import WebSocketQueries
from ottla.sql.server.engine import Engine

_ACCEPTED: Final = (KSQL_JSON, JSON, DELIMITED, "application/x-www-form-urlencoded")
MEDIA: Final = Media((KSQL_JSON, JSON, DELIMITED, PROTOBUF), _ACCEPTED, problems=JSON)


class SqlApplication:
    speaks_http2 = True
    speaks_websockets = True

    def __init__(
        self,
        engine: Engine,
        cluster_id: str,
        address: Address,
        limits: Limits,
        named: Callable[[], str],
        door: SqlDoor,
    ) -> None:
        families = (Statements(engine, door), Queries(engine, door), About(engine, cluster_id, named))
        routes = tuple(route for family in families for route in family.routes())
        self._address = address
        manners = Manners(media=MEDIA, problem_body=problem_body, doorkeeper=door, limits=limits)
        self._plain = Application(routes, address, manners)
        self._inserts = Inserts(engine, door)
        self._websockets = WebSocketQueries(engine, door)

    @property
    def limits(self) -> Limits:
        return self._plain.limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].rstrip("/")
        if scope["type"] == "websocket":
            if path == websockets.PATH and self._is_for_us(scope) and not _is_of_a_page(scope):
                await self._websockets(scope, receive, send)
            else:
                await receive()
                await send({"type": "websocket.close"})  # before it was accepted: 403
        elif path == PATH and self._is_for_us(scope):
            await self._inserts(scope, receive, send)
        else:
            await self._plain(scope, receive, send)

    def _is_for_us(self, scope: Scope) -> bool:
        """A page of a stranger in a browser is refused by the plain one."""
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        return len(hosts) <= 1 and may_be_called(self._address, hosts[0] if hosts else "")


def _is_of_a_page(scope: Scope) -> bool:
    """Browsers let any page open a WebSocket, and say so by its origin: none of them is a client of a server here."""
    return any(name == b"origin" for name, _ in scope["headers"])
