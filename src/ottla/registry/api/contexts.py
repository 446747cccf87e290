"""/contexts: which there are; one that is empty can be deleted."""

from typing import Any

from ottla.http.answers import NO_CONTENT
from ottla.http.call import Call
from ottla.http.routes import Route
from ottla.registry.api.desk import Desk, answered
from ottla.registry.machine import contexts
from ottla.registry.machine.commands import DeleteContext
from ottla.registry.machine.names import normal_context


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
            Route(
                "DELETE",
                "/contexts/{context}",
                answered(self._delete),
                "Deletes a context without subjects",
                reply=NO_CONTENT,
            ),
        )

    async def _list(self, call: Call) -> Any:
        prefix = call.query.get("contextPrefix", "")
        found = [each for each in contexts.all_contexts(self._desk.machine.state) if each.startswith(prefix)]
        return self._desk.page(call, found)

    async def _delete(self, call: Call) -> Any:
        command = DeleteContext(normal_context(call.path["context"]))
        return await self._desk.write(call, command, lambda _: NO_CONTENT)
