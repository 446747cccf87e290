"""What each route needs to be allowed, where callers have rights: a permission on the topic of its subject, or on the
cluster. Lists and ids need nothing: they leave out what the caller may not see."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ottla.http.auth import Caller, Doorkeeper
from ottla.http.routes import Route
from ottla.model.permissions import (
    ALTER_CLUSTER_CONFIGS,
    ALTER_TOPIC_CONFIGS,
    DELETE_TOPIC,
    DESCRIBE_TOPIC,
    WRITE_TOPIC,
    Permission,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.http.call import Call
    from ottla.registry.api.desk import Desk

_VERSIONS: Final = "/subjects/{subject}/versions"
NEEDS: Final[dict[tuple[str, str], Permission]] = {
    ("POST", "/subjects/{subject}"): DESCRIBE_TOPIC,
    ("DELETE", "/subjects/{subject}"): DELETE_TOPIC,
    ("GET", "/subjects/{subject}/metadata"): DESCRIBE_TOPIC,
    ("GET", _VERSIONS): DESCRIBE_TOPIC,
    ("POST", _VERSIONS): WRITE_TOPIC,
    ("GET", f"{_VERSIONS}/{{version}}"): DESCRIBE_TOPIC,
    ("DELETE", f"{_VERSIONS}/{{version}}"): DELETE_TOPIC,
    ("GET", f"{_VERSIONS}/{{version}}/schema"): DESCRIBE_TOPIC,
    ("GET", f"{_VERSIONS}/{{version}}/referencedby"): DESCRIBE_TOPIC,
    ("POST", f"{_VERSIONS}/{{version}}/tags"): WRITE_TOPIC,
    ("POST", f"/compatibility{_VERSIONS}"): DESCRIBE_TOPIC,
    ("POST", f"/compatibility{_VERSIONS}/{{version}}"): DESCRIBE_TOPIC,
    ("GET", "/config/{subject}"): DESCRIBE_TOPIC,
    ("PUT", "/config/{subject}"): ALTER_TOPIC_CONFIGS,
    ("DELETE", "/config/{subject}"): ALTER_TOPIC_CONFIGS,
    ("PUT", "/config"): ALTER_CLUSTER_CONFIGS,
    ("DELETE", "/config"): ALTER_CLUSTER_CONFIGS,
    ("GET", "/mode/{subject}"): DESCRIBE_TOPIC,
    ("PUT", "/mode/{subject}"): ALTER_TOPIC_CONFIGS,
    ("DELETE", "/mode/{subject}"): ALTER_TOPIC_CONFIGS,
    ("PUT", "/mode"): ALTER_CLUSTER_CONFIGS,
    ("DELETE", "/mode"): ALTER_CLUSTER_CONFIGS,
    ("DELETE", "/contexts/{context}"): ALTER_CLUSTER_CONFIGS,
}
FREE: Final = (
    ("GET", "/config"),
    ("GET", "/mode"),
    ("GET", "/contexts"),
    ("GET", "/subjects"),
    ("GET", "/schemas"),
    ("GET", "/schemas/types"),
    ("GET", "/schemas/ids/{id}"),
    ("GET", "/schemas/ids/{id}/schema"),
    ("GET", "/schemas/ids/{id}/subjects"),
    ("GET", "/schemas/ids/{id}/versions"),
    ("GET", "/schemas/guids/{guid}"),
    ("GET", "/schemas/guids/{guid}/ids"),
)
"""For everybody who is let in; of subjects they show what the caller may see."""


def with_needs(routes: "Iterable[Route]") -> tuple[Route, ...]:
    return tuple(replace(route, needs=NEEDS.get((route.method, route.path))) for route in routes)


class SubjectDoor:
    """Whoever knows the callers says who they are; what they may is asked of the subject that is meant."""

    def __init__(self, door: Doorkeeper, desk: "Desk") -> None:
        self._door = door
        self._desk = desk

    async def admit(self, headers: "Mapping[str, str]", host: str) -> Caller:
        caller = await self._door.admit(headers, host)
        if self._desk.rights is not None:
            await self._desk.rights.fresh()
        return caller

    def may(self, caller: Caller, need: object, call: "Call") -> bool:
        """Raises Problem, which says what is missing."""
        assert isinstance(need, Permission)
        if self._desk.rights is not None:
            named = "subject" in call.path
            self._desk.rights.check(
                caller, need, self._desk.subject(call) if named else "", f"{call.method} {call.url}"
            )
        return True
