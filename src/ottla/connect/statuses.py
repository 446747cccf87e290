"""What is: the state of connectors and tasks, and the topics they use, as the status topic tells it in Java's bytes.

Written by the worker a connector fell to; all read it, so any of them can answer. A status of ours may carry how often
the connector was started again and when it is tried next: members that Java's workers pass over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import msgspec

from ottla.connect.config_records import Unreadable


class State(Enum):
    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class Status:
    state: State
    worker_id: str
    generation: int
    trace: str | None = None
    version: str | None = None
    restarts: int = 0
    """How often it was started again by itself since it last ran for long."""
    next_restart_ms: int | None = None
    """Since 1970; None: it is not tried again by itself."""


@dataclass(frozen=True, slots=True)
class ConnectorStatusPut:
    connector: str
    status: Status | None


@dataclass(frozen=True, slots=True)
class TaskStatusPut:
    connector: str
    task: int
    status: Status | None


@dataclass(frozen=True, slots=True)
class TopicUsed:
    """KIP-558."""

    connector: str
    topic: str
    task: int = 0
    seen_ms: int | None = 0
    """None: forgotten."""


StatusRecord: TypeAlias = ConnectorStatusPut | TaskStatusPut | TopicUsed

_CONNECTOR, _TASK, _TOPIC, _OF = "status-connector-", "status-task-", "status-topic-", ":connector-"


def encode(record: StatusRecord) -> tuple[bytes, bytes | None]:
    match record:
        case ConnectorStatusPut(connector, status):
            return f"{_CONNECTOR}{connector}".encode(), _written(status)
        case TaskStatusPut(connector, task, status):
            return f"{_TASK}{connector}-{task}".encode(), _written(status)
        case TopicUsed(connector, topic, task, seen_ms):
            key = f"{_TOPIC}{topic}{_OF}{connector}".encode()
            if seen_ms is None:
                return key, None
            inner = {"name": topic, "connector": connector, "task": task, "discoverTimestamp": seen_ms}
            return key, msgspec.json.encode({"topic": inner})


def _written(status: Status | None) -> bytes | None:
    if status is None:
        return None
    members: dict[str, Any] = {
        "state": status.state.value,
        "trace": status.trace,
        "worker_id": status.worker_id,
        "generation": status.generation,
        "version": status.version,
    }
    if status.restarts or status.next_restart_ms is not None:
        members |= {"restarts": status.restarts, "next_restart_ms": status.next_restart_ms}
    return msgspec.json.encode(members)


def decode(key: bytes | None, value: bytes | None) -> StatusRecord:
    """Raises Unreadable."""
    try:
        name = (key or b"").decode()
        found = None if value is None else msgspec.json.decode(value)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
        raise Unreadable(f"{key!r}: {error}") from None
    if name.startswith(_CONNECTOR) and name != _CONNECTOR:
        return ConnectorStatusPut(name.removeprefix(_CONNECTOR), _read(name, found))
    if name.startswith(_TASK):
        connector, dash, number = name.removeprefix(_TASK).rpartition("-")
        if not dash or not connector or not (number.isascii() and number.isdigit()) or len(number) > 7:
            raise Unreadable(f"{name}: a connector and the number of a task are expected")
        return TaskStatusPut(connector, int(number), _read(name, found))
    if name.startswith(_TOPIC):
        topic, separator, connector = name.removeprefix(_TOPIC).partition(_OF)
        if topic and separator and connector:
            return _read_topic(name, topic, connector, found)
    raise Unreadable(f"{name}: no record of this topic has such a key")


def _read(key: str, value: object) -> Status | None:
    if value is None:
        return None
    members = value if isinstance(value, dict) else {}
    try:
        state = State(members.get("state"))
    except ValueError:
        raise Unreadable(f"{key}: {members.get('state')!r} is no state") from None
    worker, generation, trace = members.get("worker_id"), members.get("generation"), members.get("trace")
    version, restarts, next_ms = members.get("version"), members.get("restarts"), members.get("next_restart_ms")
    if not isinstance(worker, str) or not isinstance(generation, int):
        raise Unreadable(f"{key}: worker_id and generation are expected")
    return Status(
        state,
        worker,
        generation,
        trace if isinstance(trace, str) else None,
        version if isinstance(version, str) else None,
        restarts if isinstance(restarts, int) else 0,
        next_ms if isinstance(next_ms, int) else None,
    )


def _read_topic(key: str, topic: str, connector: str, value: object) -> TopicUsed:
    if value is None:
        return TopicUsed(connector, topic, seen_ms=None)
    inner = value.get("topic") if isinstance(value, dict) else None
    if not isinstance(inner, dict):
        raise Unreadable(f"{key}: 'topic' has to be an object")
    task, seen = inner.get("task"), inner.get("discoverTimestamp")
    if not isinstance(task, int) or not isinstance(seen, int):
        raise Unreadable(f"{key}: task and discoverTimestamp are expected")
    return TopicUsed(connector, topic, task, seen)


class Statuses:
    """The topic, replayed. Its partitions come in any order; what belongs together has one key and so one partition."""

    __slots__ = ("_connectors", "_tasks", "_topics")

    def __init__(self) -> None:
        self._connectors: dict[str, Status] = {}
        self._tasks: dict[str, dict[int, Status]] = {}
        self._topics: dict[str, dict[str, TopicUsed]] = {}

    def replay(self, record: StatusRecord) -> None:
        match record:
            case ConnectorStatusPut(connector, None):
                self._connectors.pop(connector, None)
                self._tasks.pop(connector, None)
            case ConnectorStatusPut(connector, Status() as status):
                self._connectors[connector] = status
            case TaskStatusPut(connector, task, None):
                self._tasks.get(connector, {}).pop(task, None)
            case TaskStatusPut(connector, task, Status() as status):
                self._put_task(connector, task, status)
            case TopicUsed(connector, topic, _, None):
                self._topics.get(connector, {}).pop(topic, None)
            case TopicUsed(connector, topic):
                self._topics.setdefault(connector, {})[topic] = record

    def _put_task(self, connector: str, task: int, status: Status) -> None:
        before = self._tasks.setdefault(connector, {}).get(task)
        # KAFKA-12495: a worker that lost a task may say UNASSIGNED after the one that got it has said RUNNING.
        late = status.state is State.UNASSIGNED and before is not None and before.state is State.RUNNING
        if before is not None and late and before.generation >= status.generation:
            return
        self._tasks[connector][task] = status

    def connector(self, name: str) -> Status | None:
        return self._connectors.get(name)

    @property
    def connectors(self) -> Mapping[str, Status]:
        return self._connectors

    def tasks(self, connector: str) -> Mapping[int, Status]:
        return dict(sorted(self._tasks.get(connector, {}).items()))

    def topics(self, connector: str) -> Mapping[str, TopicUsed]:
        return self._topics.get(connector, {})
