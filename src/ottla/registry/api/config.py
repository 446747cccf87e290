"""/config: of a subject, of a context (`:.ctx:`), and of all."""

from typing import Any

from ottla.http.call import Call
from ottla.http.routes import Route
from ottla.registry.api.bodies import ConfigBody
from ottla.registry.api.desk import Desk, answered
from ottla.registry.api.subjects import required
from ottla.registry.entities import ConfigValue
from ottla.registry.machine import config, refusals
from ottla.registry.machine.commands import DeleteConfig, PutConfig
from ottla.registry.machine.names import GLOBAL, normal


class Config:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> tuple[Route, ...]:
        inherited = {"defaultToGlobal": "true: what is in force, wherever it is set"}
        rows: list[Route] = []
        for path, whose in (("/config", "of all"), ("/config/{subject}", "of a subject")):
            rows += (
                Route("GET", path, answered(self._get), f"The config {whose}", reply=ConfigValue, query=inherited),
                Route(
                    "PUT",
                    path,
                    answered(self._put),
                    f"Changes the config {whose}",
                    body=ConfigBody | None,
                    reply=ConfigBody,
                ),
                Route("DELETE", path, answered(self._delete), f"Takes away the config {whose}", reply=ConfigValue),
            )
        return tuple(rows)

    async def _get(self, call: Call) -> Any:
        machine, scope = self._desk.machine, scope_of(call)
        if call.flag("defaultToGlobal"):
            return machine.config_in_force(scope)
        found = config.own(machine.state, scope, machine.rules.default_level)
        if found is None:
            raise refusals.no_compatibility_set(scope)
        return found

    async def _put(self, call: Call) -> Any:
        body: ConfigBody = required(call)
        return await self._desk.write(call, PutConfig(scope_of(call), body.changes()), ConfigBody.of)

    async def _delete(self, call: Call) -> Any:
        return await self._desk.write(call, DeleteConfig(scope_of(call)), lambda value: value)


def scope_of(call: Call) -> str:
    """A subject, a context, or all; an alias has a config of its own."""
    return normal(call.path["subject"]) if "subject" in call.path else GLOBAL
