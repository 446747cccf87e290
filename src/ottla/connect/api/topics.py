"""The topics that connectors use (KIP-558)."""

from typing import Any

from ottla.connect.api.desk import Desk
from ottla.connect.duties import Say
from ottla.connect.statuses import TopicUsed
from ottla.http.answers import ACCEPTED
from ottla.http.call import Call
from ottla.http.problems import Problem
from ottla.http.routes import Route


class Topics:
    __slots__ = ("_desk",)

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> tuple[Route, ...]:
        path = "/connectors/{connector}/topics"
        return (
            Route("GET", path, self.show, "The topics that a connector has used."),
            Route("PUT", f"{path}/reset", self.reset, "Forget which topics a connector has used.", reply=ACCEPTED),
        )

    async def show(self, call: Call) -> Any:
        self._check()
        name = call.path["connector"]
        return {name: {"topics": list(self._desk.worker.state.statuses.topics(name))}}

    async def reset(self, call: Call) -> Any:
        self._check()
        if not self._desk.settings["topic.tracking.allow.reset"]:
            raise Problem(403, "Topic tracking reset is disabled.")
        name = call.path["connector"]
        worker = self._desk.worker
        worker.perform([Say(TopicUsed(name, topic, seen_ms=None)) for topic in worker.state.statuses.topics(name)])
        return ACCEPTED

    def _check(self) -> None:
        if not self._desk.settings["topic.tracking.enable"]:
            raise Problem(403, "Topic tracking is disabled.")
