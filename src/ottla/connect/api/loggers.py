"""Levels of loggers (KIP-495, KIP-976): Python's own, under Java's names for levels."""

import logging
import time
from collections.abc import Callable
from typing import Any, Final

from ottla.connect.api.bodies import ConfigBody, texts
from ottla.connect.api.desk import Desk, passing
from ottla.connect.config_records import LoggerLevelPut
from ottla.connect.herder import PutLoggerLevel
from ottla.http.answers import NO_CONTENT, Answer
from ottla.http.call import Call
from ottla.http.problems import Problem
from ottla.http.routes import Route
from ottla.pipelines.loggers import named, set_level

_LEVELS: Final = {
    "OFF": logging.CRITICAL + 10,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
    "ALL": 1,
}


class Levels:
    """What was changed when; one for a worker."""

    __slots__ = ("_changed", "_tell")

    def __init__(self, tell: Callable[[str, int], None]) -> None:
        """`tell`: where connectors run, which is another process."""
        self._tell = tell
        self._changed: dict[str, int] = {}

    def set(self, namespace: str, level: str) -> list[str]:
        """All loggers of a name space; a new one is made. Gives the names it touched."""
        names = set_level(namespace, _LEVELS[level])
        self._changed |= dict.fromkeys(names, time.time_ns() // 1_000_000)
        self._tell(namespace, _LEVELS[level])
        return names

    def follow(self, record: LoggerLevelPut) -> None:
        if record.level.upper() in _LEVELS:
            self.set(record.namespace, record.level.upper())

    def shown(self, name: str) -> dict[str, Any] | None:
        if name != "root" and name not in logging.root.manager.loggerDict and name not in self._changed:
            return None
        level = named(name).getEffectiveLevel()
        nearest = min(_LEVELS, key=lambda each: abs(_LEVELS[each] - level))
        return {"level": nearest, "last_modified": self._changed.get(name)}

    def all(self) -> dict[str, Any]:
        loggers = logging.root.manager.loggerDict
        told = [name for name, each in loggers.items() if isinstance(each, logging.Logger) and each.level]
        return {name: self.shown(name) for name in sorted({"root", *told, *self._changed})}


class Loggers:
    __slots__ = ("_desk", "_levels")

    def __init__(self, desk: Desk, levels: Levels) -> None:
        self._desk = desk
        self._levels = levels

    def routes(self) -> tuple[Route, ...]:
        one = "/admin/loggers/{logger}"
        scope = {"scope": "worker (this one, if nothing is said) or cluster"}
        return (
            Route("GET", "/admin/loggers", self.list, "Loggers with a level of their own."),
            Route("GET", one, self.show, "The level of a logger."),
            Route(
                "PUT", one, self.put, "Set the level of a logger and of those below it.", body=ConfigBody, query=scope
            ),
        )

    async def list(self, call: Call) -> Any:
        return self._levels.all()

    async def show(self, call: Call) -> Any:
        name = call.path["logger"]
        found = self._levels.shown(name)
        if found is None:
            raise Problem(404, f"Logger {name} not found.")
        return found

    async def put(self, call: Call) -> Any:
        return await passing(self._put(call))

    async def _put(self, call: Call) -> Any:
        said = texts(call.body).get("level")
        if said is None:
            raise Problem(400, "Desired 'level' parameter was not specified in request.")
        if said.upper() not in _LEVELS:
            raise Problem(404, f"invalid log level '{said}'.")
        name = call.path["logger"]
        if call.query.get("scope", "").lower() != "cluster":
            return Answer(self._levels.set(name, said.upper()))
        await self._desk.submit(call, PutLoggerLevel(name, said.upper()))
        return NO_CONTENT
