"""The words of ASGI, as types, and what a server has to know of an application."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ottla.http.limits import Limits

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class AsgiApplication(Protocol):
    @property
    def limits(self) -> "Limits":
        """Of its bodies and of its connections."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...
