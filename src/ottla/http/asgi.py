"""The three words of ASGI, as types."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
AsgiApplication = Callable[[Scope, Receive, Send], Awaitable[None]]
