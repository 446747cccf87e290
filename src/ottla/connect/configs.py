"""What is wanted: connectors, their target states and tasks, as `connect-configs` tells. Changed by `replay` alone.

Task configs count when their commit is read, and only if all that it promises are there: compaction may have taken some
of an earlier round, and a leader may have died between writing them and the commit. Then the connector is inconsistent,
and whoever leads writes its tasks anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ottla.connect.config_records import (
    ConfigRecord,
    ConnectorPut,
    LoggerLevelPut,
    RestartAsked,
    SessionKeyPut,
    TargetState,
    TargetStatePut,
    TaskCountPut,
    TaskPut,
    TasksCommitted,
    Texts,
)


@dataclass(frozen=True, slots=True)
class Connector:
    """One connector as it is wanted now."""

    name: str
    config: Texts
    state: TargetState
    tasks: tuple[Texts, ...] = ()
    """By number; shorter than `task_count` while inconsistent."""
    task_count: int = 0
    inconsistent: bool = False
    version: int = 0
    """The offset of the record that gave the config: another version is to be started anew."""

    @property
    def class_name(self) -> str:
        return self.config.get("connector.class") or ""


@dataclass(slots=True)
class _Draft:
    """What came of a connector since it was last committed."""

    tasks: dict[int, Texts] = field(default_factory=dict)


class Configs:
    """The topic, replayed up to `position`."""

    __slots__ = ("_connectors", "_drafts", "_states", "fencing_counts", "pending_fencing", "position", "session_key")

    def __init__(self) -> None:
        self._connectors: dict[str, Connector] = {}
        self._states: dict[str, TargetState] = {}
        """Also of connectors that do not exist yet: a POST with an initial state writes that first."""
        self._drafts: dict[str, _Draft] = {}
        self.fencing_counts: dict[str, int] = {}
        self.pending_fencing: dict[str, None] = {}
        """Connectors whose tasks were written after their producers were last fenced (KIP-618)."""
        self.session_key: SessionKeyPut | None = None
        self.position = 0

    @property
    def connectors(self) -> Mapping[str, Connector]:
        return self._connectors

    def replay(self, record: ConfigRecord, offset: int) -> None:
        match record:
            case ConnectorPut(name, config):
                self._put(name, config, offset)
            case TargetStatePut(name, state):
                self._set_state(name, state)
            case TaskPut(name, task, config):
                self._drafts.setdefault(name, _Draft()).tasks[task] = config
            case TasksCommitted(name, tasks):
                self._commit(name, tasks)
            case TaskCountPut(name, tasks):
                self.fencing_counts[name] = tasks
                self.pending_fencing.pop(name, None)
            case SessionKeyPut():
                self.session_key = record
            case RestartAsked() | LoggerLevelPut():
                pass  # for who is there to see them: nothing that lasts
        self.position = offset + 1

    def _put(self, name: str, config: Texts | None, offset: int) -> None:
        if config is None:
            self._remove(name)
            return
        state = self._states.setdefault(name, TargetState.STARTED)
        before = self._connectors.get(name)
        if before is None:
            self._connectors[name] = Connector(name, config, state, version=offset)
        else:
            self._connectors[name] = replace(before, config=config, version=offset)

    def _remove(self, name: str) -> None:
        self._connectors.pop(name, None)
        self._drafts.pop(name, None)

    def _set_state(self, name: str, state: TargetState | None) -> None:
        connector = self._connectors.get(name)
        if state is None and connector is None:
            self._states.pop(name, None)
            return
        self._states[name] = state or TargetState.STARTED
        if connector is not None:
            self._connectors[name] = replace(connector, state=self._states[name])

    def _commit(self, name: str, tasks: int) -> None:
        connector = self._connectors.get(name)
        draft = self._drafts.pop(name, _Draft()).tasks
        if connector is None:
            return  # deleted since, and compaction has taken both its config and the tombstone
        # More than were promised may be there: those of a larger round before, which compaction has kept.
        complete = all(number in draft for number in range(tasks))
        configs = tuple(draft[number] for number in range(tasks)) if complete else connector.tasks
        self._connectors[name] = replace(connector, tasks=configs, task_count=tasks, inconsistent=not complete)
        self.pending_fencing[name] = None
