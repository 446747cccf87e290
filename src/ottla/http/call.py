"""One request, as the coroutine that answers it sees it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ottla.http.auth import Caller
from ottla.http.problems import Problem


@dataclass(frozen=True, slots=True)
class Call:
    method: str
    path: Mapping[str, str]
    """The named parts of the route's path, unquoted."""
    query: Mapping[str, str]
    """Of a name that comes twice, the first value, as Confluent's servers have it."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Any
    """A value of the route's `body` type; bytes if the route says bytes; None if it has none."""
    caller: Caller
    reply_type: str
    """The media type that the reply will have."""
    url: str
    """Path and query as they came, for who has to pass the request on; the body too."""
    raw_body: bytes = b""

    def flag(self, name: str, default: bool = False) -> bool:
        """`?name=true`. A name alone means true; anything that is not a truth value means false, as in Java."""
        text = self.query.get(name)
        return default if text is None else text.lower() in ("true", "")

    def number(self, name: str, default: int, *, least: int, most: int) -> int:
        text = self.query.get(name, "")
        if not text:
            return default
        if text.removeprefix("-").isdecimal() and len(text) <= 20 and least <= int(text) <= most:
            return int(text)
        raise Problem(400, f"{name}={text}: a number from {least} to {most} is expected")
