"""Decides what a command of the REST API means: the records for `connect-configs`, or why not, in Java's words.

The worker that leads its group runs it; the records it gives are written, and replayed by every worker, this one
included: only that changes anything. Whether a config is any good was judged before (`validation`): that loads
plug-ins, which takes time and may fail in any way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from ottla.connect.config_records import (
    ConfigRecord,
    ConnectorPut,
    LoggerLevelPut,
    RestartAsked,
    SessionKeyPut,
    TargetState,
    TargetStatePut,
    TaskPut,
    TasksCommitted,
    Texts,
)
from ottla.connect.configs import Configs, Connector
from ottla.connect.statuses import State, Status, Statuses
from ottla.model.core import Decision
from ottla.model.ids import Millis

# Commands.


@dataclass(frozen=True, slots=True)
class CreateConnector:
    name: str
    config: Texts
    state: TargetState | None = None
    """None: started, and nothing is written of it."""


@dataclass(frozen=True, slots=True)
class PutConnector:
    """Creates it or changes it."""

    name: str
    config: Texts


@dataclass(frozen=True, slots=True)
class DeleteConnector:
    name: str


@dataclass(frozen=True, slots=True)
class SetTargetState:
    name: str
    state: TargetState


@dataclass(frozen=True, slots=True)
class RestartConnector:
    name: str
    include_tasks: bool = False
    only_failed: bool = False


@dataclass(frozen=True, slots=True)
class RestartTask:
    name: str
    task: int


@dataclass(frozen=True, slots=True)
class CheckStopped:
    """Before offsets are altered."""

    name: str


@dataclass(frozen=True, slots=True)
class PutSessionKey:
    key: bytes
    algorithm: str


@dataclass(frozen=True, slots=True)
class PutLoggerLevel:
    namespace: str
    level: str


Command: TypeAlias = (
    CreateConnector
    | PutConnector
    | DeleteConnector
    | SetTargetState
    | RestartConnector
    | RestartTask
    | CheckStopped
    | PutSessionKey
    | PutLoggerLevel
)

# Replies.


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    message: str


@dataclass(frozen=True, slots=True)
class Done:
    created: bool = False


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """The states as they will be: RESTARTING where something is started again."""

    connector: Status
    tasks: Mapping[int, Status]


Reply: TypeAlias = Refusal | Done | RestartPlan
HerderDecision: TypeAlias = Decision[Reply, ConfigRecord]

TaskConfigs: TypeAlias = Callable[[Texts], tuple[Texts, ...]]
"""How a connector's config is shared out among its tasks."""

MUST_BE_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done "
    "for the specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
)


class Herder:
    """Reads `configs` and `statuses`, changes neither."""

    __slots__ = ("_configs", "_key_ttl_ms", "_statuses", "_task_configs")

    def __init__(
        self, configs: Configs, statuses: Statuses, task_configs: TaskConfigs, session_key_ttl_ms: int = 3_600_000
    ) -> None:
        self._configs = configs
        self._statuses = statuses
        self._task_configs = task_configs
        self._key_ttl_ms = session_key_ttl_ms

    def decide(self, command: Command, now: Millis) -> HerderDecision:
        match command:
            case CreateConnector(name, config, state):
                if name in self._configs.connectors:
                    return Decision(Refusal(409, f"Connector {name} already exists"))
                # As Java's, one that is not to run yet gets its tasks when it does.
                tasks = self._task_configs(config) if state in (None, TargetState.STARTED) else None
                return Decision(Done(created=True), self._put(name, config, state, tasks))
            case PutConnector(name, config):
                return self._changed(name, config)
            case DeleteConnector(name):
                if name not in self._configs.connectors:
                    return Decision(Refusal(404, f"Connector {name} not found"))
                return Decision(Done(), (ConnectorPut(name, None), TargetStatePut(name, None)))
            case SetTargetState(name, state):
                return self._set_state(name, state)
            case RestartConnector(name, include_tasks, only_failed):
                return self._restart(name, include_tasks, only_failed)
            case RestartTask(name, task):
                return self._restart_task(name, task)
            case CheckStopped(name):
                return Decision(self._stopped(name))
            case PutSessionKey(key, algorithm):
                return Decision(Done(), (SessionKeyPut(key, algorithm, now),))
            case PutLoggerLevel(namespace, level):
                return Decision(Done(), (LoggerLevelPut(namespace, level),))

    def tick(self, now: Millis) -> HerderDecision:
        """What whoever leads puts in order: connectors whose tasks are not all there write them anew."""
        records: list[ConfigRecord] = []
        for connector in self._configs.connectors.values():
            if self._lacks_tasks(connector):
                records += self._task_records(connector.name, self._task_configs(connector.config))
        return Decision(Done(), tuple(records))

    def _lacks_tasks(self, connector: Connector) -> bool:
        if connector.state is not TargetState.STARTED:
            return connector.inconsistent and connector.state is TargetState.PAUSED
        # A connector that its leader died over has a config and never a commit.
        return connector.inconsistent or connector.task_count == 0

    def needs_session_key(self, now: Millis) -> bool:
        key = self._configs.session_key
        return key is None or now - key.created_ms >= self._key_ttl_ms

    # Connectors.

    def _changed(self, name: str, config: Texts) -> HerderDecision:
        before = self._configs.connectors.get(name)
        if before is None:
            return Decision(Done(created=True), self._put(name, config, None, self._tasks(config, None)))
        tasks = self._tasks(config, before.state)
        # Java writes the tasks of a connector anew when they, or its config, have changed.
        changed = tasks is not None and (tasks != before.tasks or dict(config) != dict(before.config))
        return Decision(Done(), self._put(name, config, None, tasks if changed else None))

    def _tasks(self, config: Texts, state: TargetState | None) -> tuple[Texts, ...] | None:
        return None if state is TargetState.STOPPED else self._task_configs(config)

    def _put(
        self, name: str, config: Texts, state: TargetState | None, tasks: tuple[Texts, ...] | None
    ) -> tuple[ConfigRecord, ...]:
        records: list[ConfigRecord] = [] if state is None else [TargetStatePut(name, state)]
        records.append(ConnectorPut(name, config))
        if tasks is not None:
            records += self._task_records(name, tasks)
        elif state is TargetState.STOPPED:
            records.append(TasksCommitted(name, 0))
        return tuple(records)

    def _task_records(self, name: str, tasks: tuple[Texts, ...]) -> list[ConfigRecord]:
        puts = [TaskPut(name, number, config) for number, config in enumerate(tasks)]
        return [*puts, TasksCommitted(name, len(tasks))]

    def _set_state(self, name: str, state: TargetState) -> HerderDecision:
        connector = self._configs.connectors.get(name)
        if connector is None:
            return Decision(Refusal(404, f"Unknown connector {name}"))
        put = TargetStatePut(name, state)
        if state is TargetState.STOPPED:
            return Decision(Done(), (TasksCommitted(name, 0), put))
        if connector.task_count == 0:
            return Decision(Done(), (put, *self._task_records(name, self._task_configs(connector.config))))
        return Decision(Done(), (put,))

    # Restarts.

    def _restart(self, name: str, include_tasks: bool, only_failed: bool) -> HerderDecision:
        if name not in self._configs.connectors:
            return Decision(Refusal(404, f"Unknown connector: {name}"))
        record = RestartAsked(name, include_tasks, only_failed)
        if not include_tasks and not only_failed:
            return Decision(Done(), (record,))
        status = self._statuses.connector(name)
        if status is None:
            return Decision(Refusal(404, f"Status for connector {name} not found"))
        tasks = {
            number: _to_be(task, include_tasks, only_failed) for number, task in self._statuses.tasks(name).items()
        }
        return Decision(RestartPlan(_to_be(status, True, only_failed), tasks), (record,))

    def _restart_task(self, name: str, task: int) -> HerderDecision:
        connector = self._configs.connectors.get(name)
        if connector is None:
            return Decision(Refusal(404, f"Unknown connector: {name}"))
        if not 0 <= task < connector.task_count:
            return Decision(Refusal(404, f"Unknown task: {name}-{task}"))
        return Decision(Done(), (RestartAsked(name, include_tasks=True, only_failed=False),))

    # Offsets.

    def _stopped(self, name: str) -> Reply:
        connector = self._configs.connectors.get(name)
        if connector is None:
            return Refusal(404, f"Connector {name} not found")
        if connector.state is not TargetState.STOPPED or connector.task_count != 0:
            return Refusal(400, MUST_BE_STOPPED.replace("{name}", name))
        return Done()


def _to_be(status: Status, included: bool, only_failed: bool) -> Status:
    restarts = included and (not only_failed or status.state is State.FAILED)
    return replace(status, state=State.RESTARTING) if restarts else status
