"""/mode: of a subject, of a context (`:.ctx:`), and of all."""

from typing import Any

from ottla.http.call import Call
from ottla.http.routes import Route
from ottla.registry.api.bodies import ModeBody
from ottla.registry.api.config import scope_of
from ottla.registry.api.desk import Desk, answered
from ottla.registry.api.replies import ModeReply
from ottla.registry.api.subjects import required
from ottla.registry.machine import modes, refusals
from ottla.registry.machine.commands import DeleteMode, PutMode


class Mode:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> tuple[Route, ...]:
        inherited = {"defaultToGlobal": "true: what is in force, wherever it is set"}
        force = {"force": "true: IMPORT even where there are schemas already"}
        recursive = {"recursive": "true: those of the context's subjects too"}
        rows: list[Route] = []
        for path, whose in (("/mode", "of all"), ("/mode/{subject}", "of a subject")):
            rows += (
                Route("GET", path, answered(self._get), f"The mode {whose}", reply=ModeReply, query=inherited),
                Route(
                    "PUT",
                    path,
                    answered(self._put),
                    f"Changes the mode {whose}",
                    body=ModeBody | None,
                    reply=ModeReply,
                    query=force,
                ),
                Route(
                    "DELETE",
                    path,
                    answered(self._delete),
                    f"Takes away the mode {whose}",
                    reply=ModeReply,
                    query=recursive,
                ),
            )
        return tuple(rows)

    async def _get(self, call: Call) -> Any:
        state, scope = self._desk.machine.state, scope_of(call)
        found = modes.in_force(state, scope) if call.flag("defaultToGlobal") else modes.own(state, scope)
        if found is None:
            raise refusals.no_mode_set(scope)
        return ModeReply(found)

    async def _put(self, call: Call) -> Any:
        body: ModeBody = required(call)
        return await self._desk.write(call, PutMode(scope_of(call), body.mode, call.flag("force")), ModeReply)

    async def _delete(self, call: Call) -> Any:
        return await self._desk.write(call, DeleteMode(scope_of(call), call.flag("recursive")), ModeReply)
