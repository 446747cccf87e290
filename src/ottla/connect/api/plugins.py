"""Plug-ins: which there are, their keys, and whether a config is any good."""

import asyncio
from typing import Any, Final

from ottla.connect.api import replies
from ottla.connect.api.bodies import ConfigBody, texts
from ottla.connect.api.desk import Desk
from ottla.connect.definitions import ConfigError
from ottla.connect.plugins import PluginType
from ottla.http.call import Call
from ottla.http.problems import Problem
from ottla.http.routes import Route

_ORDER: Final = (
    PluginType.SINK,
    PluginType.SOURCE,
    PluginType.TRANSFORMATION,
    PluginType.PREDICATE,
    PluginType.CONVERTER,
    PluginType.HEADER_CONVERTER,
)


class Plugins:
    __slots__ = ("_desk",)

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> tuple[Route, ...]:
        one = "/connector-plugins/{plugin}/config"
        only = {"connectorsOnly": "false lists converters, transforms and predicates too"}
        return (
            Route("GET", "/connector-plugins", self.list, "The plug-ins there are.", query=only),
            Route("GET", one, self.show, "The config keys of a plug-in.", query={"version": "of the plug-in"}),
            Route("PUT", f"{one}/validate", self.validate, "Judge a connector's config.", body=ConfigBody),
        )

    async def list(self, call: Call) -> Any:
        kinds = _ORDER[:2] if call.flag("connectorsOnly", default=True) else _ORDER
        return [
            {"class": row.class_name, "type": row.kind.value, "version": row.version}
            for kind in kinds
            for row in self._desk.judge.catalogue.of(kind)
        ]

    async def show(self, call: Call) -> Any:
        name, version = call.path["plugin"], call.query.get("version", "latest")
        found = self._desk.judge.catalogue.find(name)
        if found is None:
            raise Problem(404, f"Unknown plugin {name}.")
        if version not in ("latest", "", found.version):
            raise Problem(400, f"Plugin {name} has no version {version}: there is {found.version}")
        try:
            keys = await asyncio.to_thread(self._desk.judge.definitions, found)
        except ConfigError as error:
            raise Problem(500, str(error)) from None
        return [replies.definition(key) for key in keys]

    async def validate(self, call: Call) -> Any:
        name, config = call.path["plugin"], texts(call.body)
        said = config.get("connector.class")
        if said is not None and not self._same(said, name):
            raise Problem(400, f"Included connector type {said} does not match request type {name}")
        return replies.verdict(await self._desk.judged(config))

    def _same(self, said: str, name: str) -> bool:
        if _bare(said).endswith(_bare(name)):
            return True
        catalogue = self._desk.judge.catalogue
        found = catalogue.find(said, PluginType.SOURCE, PluginType.SINK)
        return found is not None and found == catalogue.find(name, PluginType.SOURCE, PluginType.SINK)


def _bare(name: str) -> str:
    return name.removesuffix("Connector") or name
