"""The records of `connect-configs`: what each says, and its bytes, Java's to the letter, since both take over from each
other.

The key is text; the value is JSON without a schema, members in the order in which Java's structs have them. A connector
may have any name, so a key is read from the front: what stands behind the prefix is the name, whatever it holds.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import msgspec


class Unreadable(ValueError):
    """A record that neither we nor Java would write; it is passed over and said."""


class TargetState(Enum):
    """What somebody wants of a connector."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


Texts: TypeAlias = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class ConnectorPut:
    connector: str
    config: Texts | None
    """None: deleted."""


@dataclass(frozen=True, slots=True)
class TaskPut:
    """Counts from the next `TasksCommitted` on."""

    connector: str
    task: int
    config: Texts


@dataclass(frozen=True, slots=True)
class TasksCommitted:
    connector: str
    tasks: int


@dataclass(frozen=True, slots=True)
class TargetStatePut:
    connector: str
    state: TargetState | None
    """None: with the connector it is gone, and of one that is still there it is STARTED."""


@dataclass(frozen=True, slots=True)
class TaskCountPut:
    """KIP-618: how many producers of the tasks before have to be fenced."""

    connector: str
    tasks: int


@dataclass(frozen=True, slots=True)
class SessionKeyPut:
    """KIP-507: what workers sign requests to each other with."""

    key: bytes = field(repr=False)
    algorithm: str
    created_ms: int


@dataclass(frozen=True, slots=True)
class RestartAsked:
    """KIP-745. Means something to who is there to see it, nothing when it is replayed."""

    connector: str
    include_tasks: bool
    only_failed: bool


@dataclass(frozen=True, slots=True)
class LoggerLevelPut:
    """KIP-976. As a restart, only for who is there."""

    namespace: str
    level: str


ConfigRecord: TypeAlias = (
    ConnectorPut
    | TaskPut
    | TasksCommitted
    | TargetStatePut
    | TaskCountPut
    | SessionKeyPut
    | RestartAsked
    | LoggerLevelPut
)

_SESSION_KEY = "session-key"
_MOST_TASKS = 1 << 20


def encode(record: ConfigRecord) -> tuple[bytes, bytes | None]:
    key, value = _written(record)
    return key.encode(), None if value is None else msgspec.json.encode(value)


def _written(record: ConfigRecord) -> tuple[str, dict[str, Any] | None]:
    match record:
        case ConnectorPut(connector, config):
            return f"connector-{connector}", None if config is None else {"properties": dict(config)}
        case TaskPut(connector, task, config):
            return f"task-{connector}-{task}", {"properties": dict(config)}
        case TasksCommitted(connector, tasks):
            return f"commit-{connector}", {"tasks": tasks}
        case TargetStatePut(connector, state):
            return f"target-state-{connector}", None if state is None else _state(state)
        case TaskCountPut(connector, tasks):
            return f"tasks-fencing-{connector}", {"task-count": tasks}
        case SessionKeyPut(key, algorithm, created_ms):
            encoded = base64.b64encode(key).decode()
            return _SESSION_KEY, {"key": encoded, "algorithm": algorithm, "creation-timestamp": created_ms}
        case RestartAsked(connector, include_tasks, only_failed):
            return f"restart-connector-{connector}", {"include-tasks": include_tasks, "only-failed": only_failed}
        case LoggerLevelPut(namespace, level):
            return f"logger-cluster-{namespace}", {"level": level}


def _state(state: TargetState) -> dict[str, str]:
    # KIP-875: workers that do not know STOPPED read `state` and pause, which is the next best.
    old = TargetState.PAUSED if state is TargetState.STOPPED else state
    return {"state": old.value, "state.v2": state.value}


def decode(key: bytes | None, value: bytes | None) -> ConfigRecord:
    """Raises Unreadable."""
    try:
        name = (key or b"").decode()
        found = None if value is None else msgspec.json.decode(value)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
        raise Unreadable(f"{key!r}: {error}") from None
    # `tasks-fencing-` begins with `task`, but not with `task-`; no prefix is the beginning of another.
    for prefix, read in _READERS.items():
        if name.startswith(prefix):
            return read(name.removeprefix(prefix), found)
    if name == _SESSION_KEY:
        return _session_key(_members(name, found))
    raise Unreadable(f"{name}: no record of this topic has such a key")


def _members(key: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unreadable(f"{key}: an object is expected, not {type(value).__name__}")
    return value


def _whole(key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_TASKS:
        raise Unreadable(f"{key}: a number of tasks is expected, not {value!r}")
    return value


def _properties(key: str, value: object) -> dict[str, str | None]:
    found = _members(key, value).get("properties")
    if not isinstance(found, dict) or not all(each is None or isinstance(each, str) for each in found.values()):
        raise Unreadable(f"{key}: 'properties' has to be an object of texts")
    return found


def _connector(name: str, value: object) -> ConfigRecord:
    return ConnectorPut(name, None if value is None else _properties(f"connector-{name}", value))


def _task(rest: str, value: object) -> ConfigRecord:
    connector, dash, number = rest.rpartition("-")
    if not dash or not connector or not (number.isascii() and number.isdigit()) or len(number) > 7:
        raise Unreadable(f"task-{rest}: a connector and the number of a task are expected")
    return TaskPut(connector, int(number), _properties(f"task-{rest}", value))


def _commit(name: str, value: object) -> ConfigRecord:
    return TasksCommitted(name, _whole(f"commit-{name}", _members(f"commit-{name}", value).get("tasks")))


def _target_state(name: str, value: object) -> ConfigRecord:
    if value is None:
        return TargetStatePut(name, None)
    members = _members(f"target-state-{name}", value)
    said = members.get("state.v2")
    said = said if isinstance(said, str) else members.get("state")
    try:
        return TargetStatePut(name, TargetState(said))
    except ValueError:
        raise Unreadable(f"target-state-{name}: {said!r} is no state") from None


def _task_count(name: str, value: object) -> ConfigRecord:
    key = f"tasks-fencing-{name}"
    return TaskCountPut(name, _whole(key, _members(key, value).get("task-count")))


def _restart(name: str, value: object) -> ConfigRecord:
    members = _members(f"restart-connector-{name}", value)
    return RestartAsked(name, members.get("include-tasks") is True, members.get("only-failed") is True)


def _logger(name: str, value: object) -> ConfigRecord:
    level = _members(f"logger-cluster-{name}", value).get("level")
    if not isinstance(level, str):
        raise Unreadable(f"logger-cluster-{name}: 'level' has to be text")
    return LoggerLevelPut(name, level)


def _session_key(members: dict[str, Any]) -> ConfigRecord:
    key, algorithm, created = members.get("key"), members.get("algorithm"), members.get("creation-timestamp")
    if not isinstance(key, str) or not isinstance(algorithm, str) or not isinstance(created, int):
        raise Unreadable("session-key: key, algorithm and creation-timestamp are expected")
    try:
        return SessionKeyPut(base64.b64decode(key, validate=True), algorithm, created)
    except binascii.Error:
        raise Unreadable("session-key: the key is not base64") from None


_READERS = {
    "connector-": _connector,
    "task-": _task,
    "commit-": _commit,
    "target-state-": _target_state,
    "tasks-fencing-": _task_count,
    "restart-connector-": _restart,
    "logger-cluster-": _logger,
}
