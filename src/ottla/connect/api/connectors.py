"""Connectors: list, create, read, change, delete."""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

from ottla.connect.api import replies
from ottla.connect.api.bodies import ConfigBody, CreateBody, named, texts
from ottla.connect.api.desk import Desk, base_of, passing
from ottla.connect.config_records import TargetState
from ottla.connect.configs import Connector
from ottla.connect.definitions import JAVA_BLANKS
from ottla.connect.herder import CreateConnector, DeleteConnector, Done, PutConnector
from ottla.http.answers import NO_CONTENT, Answer
from ottla.http.call import Call
from ottla.http.problems import Problem
from ottla.http.routes import Route

_INITIAL: Final = {
    "RUNNING": TargetState.STARTED,
    "PAUSED": TargetState.PAUSED,
    "STOPPED": TargetState.STOPPED,
}


class Connectors:
    __slots__ = ("_desk",)

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> tuple[Route, ...]:
        one, config = "/connectors/{connector}", "/connectors/{connector}/config"
        return (
            Route(
                "GET", "/connectors", self.list, "Names of all connectors.", query={"expand": "status, info, or both"}
            ),
            Route("POST", "/connectors", self.create, "Create a connector.", body=CreateBody),
            Route("GET", one, self.show, "A connector: config and tasks."),
            Route("DELETE", one, self.delete, "Delete a connector.", reply=NO_CONTENT),
            Route("GET", config, self.config, "A connector's config."),
            Route("PUT", config, self.put, "Create a connector, or change its config.", body=ConfigBody),
            Route("PATCH", config, self.patch, "Change some keys of a config; null removes one.", body=ConfigBody),
        )

    async def list(self, call: Call) -> Any:
        names = self._desk.worker.state.configs.connectors
        wanted = [
            value for name, value in parse_qsl(urlsplit(call.url).query, keep_blank_values=True) if name == "expand"
        ]
        if not wanted:
            return list(names)
        return {name: self._expanded(each, wanted) for name, each in names.items() if self._has_status(name, wanted)}

    def _has_status(self, name: str, wanted: Sequence[str]) -> bool:
        return "status" not in wanted or self._desk.worker.state.statuses.connector(name) is not None

    def _expanded(self, connector: Connector, wanted: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        kind = self._desk.kind(connector.config)
        statuses = self._desk.worker.state.statuses
        status = statuses.connector(connector.name)
        if "status" in wanted and status is not None:
            found["status"] = replies.status(connector.name, status, dict(statuses.tasks(connector.name)), kind)
        if "info" in wanted:
            found["info"] = replies.info(connector, kind)
        return found

    async def create(self, call: Call) -> Any:
        return await passing(self._create(call))

    async def _create(self, call: Call) -> Answer:
        body: CreateBody = call.body
        if body.config is None:
            raise Problem(400, 'The request has no config: {"name": ..., "config": {...}} is expected')
        state = None
        if body.initial_state is not None:
            state = _INITIAL.get(body.initial_state.upper())
            if state is None:
                raise Problem(400, f"initial_state: {body.initial_state} is none of {', '.join(_INITIAL)}")
        name = (body.name or "").strip(JAVA_BLANKS)
        config = named(name, body.config)
        await self._desk.lead_or_pass(call)
        await self._desk.check(config)
        await self._desk.submit(call, CreateConnector(name, config, state))
        return self._created(call, name)

    def _created(self, call: Call, name: str) -> Answer:
        found = self._desk.get(name)
        reply = replies.info(found, self._desk.kind(found.config), tasks=False)
        base = base_of(call, self._desk.scheme)
        return Answer(reply, 201, headers={"location": f"{base}/connectors/{quote(name, safe='+')}"})

    async def show(self, call: Call) -> Any:
        found = self._desk.get(call.path["connector"])
        return replies.info(found, self._desk.kind(found.config))

    async def config(self, call: Call) -> Any:
        return dict(self._desk.get(call.path["connector"]).config)

    async def delete(self, call: Call) -> Any:
        return await passing(self._delete(call))

    async def _delete(self, call: Call) -> Answer:
        await self._desk.submit(call, DeleteConnector(call.path["connector"]))
        return NO_CONTENT

    async def put(self, call: Call) -> Any:
        return await passing(self._put(call, named(call.path["connector"], call.body)))

    async def patch(self, call: Call) -> Any:
        return await passing(self._patch(call))

    async def _patch(self, call: Call) -> Any:
        await self._desk.lead_or_pass(call)
        name = call.path["connector"]
        before = self._desk.get(name).config
        changes = texts(call.body)
        merged = {key: value for key, value in {**before, **changes}.items() if changes.get(key, "") is not None}
        return await self._put(call, named(name, merged))

    async def _put(self, call: Call, config: dict[str, str | None]) -> Answer:
        name = call.path["connector"]
        await self._desk.lead_or_pass(call)
        await self._desk.check(config)
        reply = await self._desk.submit(call, PutConnector(name, config))
        if isinstance(reply, Done) and reply.created:
            return self._created(call, name)
        found = self._desk.get(name)
        return Answer(replies.info(found, self._desk.kind(found.config)))
