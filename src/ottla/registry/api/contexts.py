"""/contexts: which there are; one that is empty can be deleted."""

from typing import Any

from ottla.http.answers import NO_CONTENT
from ottla.http.call import Call
from ottla.http.routes import Route
from ottla.registry.api.desk import Desk, answered
from ottla.registry.api.rights import CHANGE_CONFIG
from ottla.registry.machine import contexts
from ottla.registry.machine.commands import DeleteContext
from ottla.registry.machine.names import DEFAULT_CONTEXT, GLOBAL, context_of, normal_context


class Contexts:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> tuple[Route, ...]:
        listing = {
            "contextPrefix": "only those that begin so",
            "offset": "how many to leave out",
            "limit": "how many at most",
        }
        return (
            Route("GET", "/contexts", answered(self._list), "All contexts", reply=list[str], query=listing),
            Route("DELETE", "/contexts/{context}", answered(self._delete), "Deletes a context without subjects"),
        )

    async def _list(self, call: Call) -> Any:
        prefix = call.query.get("contextPrefix", "")
        state, sees = self._desk.machine.state, self._desk.rights.sees(call.caller)
        hidden = {context_of(name) for name in state.subjects} - {
            context_of(name) for name in filter(sees, state.subjects)
        }
        every = contexts.all_contexts(state)
        found = [each for each in every if each.startswith(prefix) and (each == DEFAULT_CONTEXT or each not in hidden)]
        return self._desk.page(call, found)

    async def _delete(self, call: Call) -> Any:
        self._desk.rights.check(call.caller, CHANGE_CONFIG, GLOBAL)
        command = DeleteContext(normal_context(call.path["context"]))
        return await self._desk.write(call, command, lambda _: NO_CONTENT)
