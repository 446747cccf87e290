"""/compatibility: whether a schema could be registered, and why not."""

from typing import Any, Final

from ottla.http.call import Call
from ottla.http.routes import Route
from ottla.registry.api.bodies import SchemaBody
from ottla.registry.api.desk import Desk, answered
from ottla.registry.api.replies import Compatibility
from ottla.registry.api.subjects import required
from ottla.registry.machine import refusals
from ottla.registry.machine.versions import LATEST, SchemaVersion, number_of

_ALL: Final = "/compatibility/subjects/{subject}/versions"
_WISHES: Final = {"normalize": "true: made normal first", "verbose": "true: with the reasons"}


class Checks:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> tuple[Route, ...]:
        body = SchemaBody | None
        return (
            Route(
                "POST",
                _ALL,
                answered(self._with_all),
                "With the versions that the level names",
                body=body,
                reply=Compatibility,
                query=_WISHES,
            ),
            Route(
                "POST",
                f"{_ALL}/{{version}}",
                answered(self._with_one),
                "With one version",
                body=body,
                reply=Compatibility,
                query=_WISHES,
            ),
        )

    async def _with_all(self, call: Call) -> Any:
        known = self._desk.machine.state.subject(self._desk.subject(call))
        return await self._checked(call, list(known.ascending()) if known is not None else [])

    async def _with_one(self, call: Call) -> Any:
        number = number_of(call.path["version"])
        found = self._desk.machine.state.version(self._desk.subject(call), number)
        if found is None and number != LATEST:
            raise refusals.version_not_found(number)
        return await self._checked(call, [found] if found is not None else [])

    async def _checked(self, call: Call, previous: list[SchemaVersion]) -> Compatibility:
        body: SchemaBody = required(call)
        subject, sent = self._desk.subject(call), body.sent()
        normalize = call.flag("normalize")
        found = await self._desk.look(
            lambda machine: machine.incompatibilities(subject, sent, previous, normalize=normalize), sent
        )
        return Compatibility(not found, found if call.flag("verbose") else None)
