"""The table of a service: one row per method and path."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from ottla.http.call import Call


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str
    """`/subjects/{subject}/versions/{version}`: a name in braces stands for one part, whatever it holds."""
    answer: Callable[[Call], Awaitable[Any]]
    summary: str
    body: Any = None
    """The type that a body is read into (anything that msgspec decodes; bytes: as it came). None: there is none."""
    reply: Any = None
    """The type of the reply, for the OpenAPI document; ACCEPTED or NO_CONTENT where it is only a head."""
    needs: object = None
    """What the doorkeeper is asked for. None: nothing, for health and the like."""
    query: Mapping[str, str] | None = None
    """Query parameters by name, with what they mean."""


@dataclass(slots=True)
class _Place:
    """A node in the tree of paths: fixed parts go before named ones."""

    fixed: dict[str, "_Place"]
    named: "_Place | None"
    routes: dict[str, tuple[Route, tuple[str, ...]]]
    """By method, with the names of the parts that were passed on the way."""


class Routes:
    def __init__(self, routes: Iterable[Route]) -> None:
        self.rows = tuple(routes)
        self._root = _Place({}, None, {})
        for route in self.rows:
            self._add(route)

    def _add(self, route: Route) -> None:
        place, names = self._root, []
        for part in parts_of(route.path):
            if part.startswith("{"):
                names.append(part[1:-1])
                place.named = place.named or _Place({}, None, {})
                place = place.named
            else:
                place = place.fixed.setdefault(part, _Place({}, None, {}))
        assert route.method not in place.routes, f"{route.method} {route.path} is declared twice"
        place.routes[route.method] = route, tuple(names)

    @property
    def beginnings(self) -> list[str]:
        """The first parts of all paths, for who went astray."""
        return list(dict.fromkeys("/" + "".join(parts_of(route.path)[:1]) for route in self.rows))

    def found(self, raw_path: str) -> dict[str, tuple[Route, dict[str, str]]]:
        """By method: what is at this path. Empty: nothing is."""
        parts = parts_of(raw_path)
        place, values = self._walk(self._root, parts, 0, ())
        if place is None:
            return {}
        unquoted = [unquote(value) for value in values]
        return {
            method: (route, dict(zip(names, unquoted, strict=True))) for method, (route, names) in place.routes.items()
        }

    def _walk(
        self, place: _Place, parts: list[str], index: int, values: tuple[str, ...]
    ) -> tuple[_Place | None, tuple[str, ...]]:
        if index == len(parts):
            return (place, values) if place.routes else (None, ())
        part = parts[index]
        if part in place.fixed:
            found = self._walk(place.fixed[part], parts, index + 1, values)
            if found[0] is not None:
                return found
        if place.named is not None:
            return self._walk(place.named, parts, index + 1, (*values, part))
        return None, ()


def parts_of(raw_path: str) -> list[str]:
    """A slash at the end means nothing; one inside a part is written %2F."""
    return raw_path.strip("/").split("/") if raw_path.strip("/") else []
