"""What connectors do: status, pause, resume, stop, restart, tasks; and what workers ask of each other."""

from typing import Any

from ottla.connect.api import replies
from ottla.connect.api.desk import Desk, passing
from ottla.connect.config_records import TargetState
from ottla.connect.herder import RestartConnector, RestartPlan, RestartTask, SetTargetState
from ottla.http.answers import ACCEPTED, NO_CONTENT, Answer
from ottla.http.call import Call
from ottla.http.problems import Problem
from ottla.http.routes import Route

_STOP = "Stop a connector, so that its offsets can be altered."


class Lifecycle:
    __slots__ = ("_desk",)

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> tuple[Route, ...]:
        one, task = "/connectors/{connector}", "/connectors/{connector}/tasks/{task}"
        flags = {"includeTasks": "its tasks too", "onlyFailed": "only what has failed"}
        return (
            Route("GET", f"{one}/status", self.status, "What a connector and its tasks do."),
            Route("PUT", f"{one}/pause", self.pause, "Pause a connector; its place is kept.", reply=ACCEPTED),
            Route("PUT", f"{one}/resume", self.resume, "Go on with a connector.", reply=ACCEPTED),
            Route("PUT", f"{one}/stop", self.stop, _STOP, reply=NO_CONTENT),
            Route("POST", f"{one}/restart", self.restart, "Start a connector again.", query=flags),
            Route("GET", f"{one}/tasks", self.tasks, "The configs of a connector's tasks."),
            Route("POST", f"{one}/tasks", self.internal, "Between Java workers only: signed."),
            Route("PUT", f"{one}/fence", self.internal, "Between Java workers only: signed."),
            Route("GET", f"{task}/status", self.task_status, "What a task does."),
            Route("POST", f"{task}/restart", self.restart_task, "Start a task again.", reply=NO_CONTENT),
        )

    async def status(self, call: Call) -> Any:
        name = call.path["connector"]
        statuses = self._desk.worker.state.statuses
        found = statuses.connector(name)
        if found is None:
            raise Problem(404, f"No status found for connector {name}")
        return replies.status(name, found, dict(statuses.tasks(name)), self._kind(name))

    def _kind(self, name: str) -> str:
        found = self._desk.find(name)
        return "unknown" if found is None else self._desk.kind(found.config)

    async def task_status(self, call: Call) -> Any:
        name, number = call.path["connector"], _number(call)
        found = self._desk.worker.state.statuses.tasks(name).get(number)
        if found is None:
            raise Problem(404, f"No status found for task {name}-{number}")
        return replies.task_status(number, found)

    async def tasks(self, call: Call) -> Any:
        found = self._desk.get(call.path["connector"])
        return [
            {"id": {"connector": found.name, "task": number}, "config": dict(config)}
            for number, config in enumerate(found.tasks[: found.task_count])
        ]

    async def pause(self, call: Call) -> Any:
        return await passing(self._set(call, TargetState.PAUSED, ACCEPTED))

    async def resume(self, call: Call) -> Any:
        return await passing(self._set(call, TargetState.STARTED, ACCEPTED))

    async def stop(self, call: Call) -> Any:
        return await passing(self._set(call, TargetState.STOPPED, NO_CONTENT))

    async def _set(self, call: Call, state: TargetState, answer: Answer) -> Answer:
        await self._desk.submit(call, SetTargetState(call.path["connector"], state))
        return answer

    async def restart(self, call: Call) -> Any:
        return await passing(self._restart(call))

    async def _restart(self, call: Call) -> Answer:
        name = call.path["connector"]
        reply = await self._desk.submit(
            call, RestartConnector(name, call.flag("includeTasks"), call.flag("onlyFailed"))
        )
        if isinstance(reply, RestartPlan):
            return Answer(replies.status(name, reply.connector, dict(reply.tasks), self._kind(name)), 202)
        return NO_CONTENT

    async def restart_task(self, call: Call) -> Any:
        return await passing(self._restart_task(call))

    async def _restart_task(self, call: Call) -> Answer:
        await self._desk.submit(call, RestartTask(call.path["connector"], _number(call)))
        return NO_CONTENT

    async def internal(self, call: Call) -> Any:
        """Workers of ours write what they have to say into topics: nobody of this cluster asks so."""
        self._desk.require_signature(call)
        raise Problem(409, "This cluster has no Java workers: tasks are written by its leader.")


def _number(call: Call) -> int:
    text = call.path["task"]
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise Problem(404, "HTTP 404 Not Found")
    return int(text)
