"""What one worker has to do for the connectors that fell to it: which jobs to start and stop, what to say of them.

A core: it is told what was assigned, what is wanted (`Configs`), what became of jobs, and the time; it gives effects.
It compares what should run with what does, so it matters little in which order it is told. A job that fails is started
again after a pause that doubles, as the worker's defaults or the connector's own config say.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ottla.connect.config_records import RestartAsked, TargetState, Texts
from ottla.connect.configs import Configs, Connector
from ottla.connect.statuses import ConnectorStatusPut, State, Status, Statuses, StatusRecord, TaskStatusPut, TopicUsed
from ottla.model.ids import Millis

AUTO_RESTART = "connector.auto.restart"
AUTO_RESTART_FIRST_MS = "connector.auto.restart.backoff.ms"
AUTO_RESTART_LONGEST_MS = "connector.auto.restart.backoff.max.ms"


@dataclass(frozen=True, slots=True)
class RestartRule:
    """Of the worker; a connector's config may say otherwise."""

    on: bool = True
    first_ms: int = 1_000
    longest_ms: int = 300_000
    steady_ms: int = 600_000
    """Who ran so long begins with the short pause again."""

    def of(self, config: Texts) -> "RestartRule":
        """What cannot be read was refused by validation, or written by somebody else: then the worker's own counts."""
        on = (config.get(AUTO_RESTART) or "").strip().lower()
        first, longest = config.get(AUTO_RESTART_FIRST_MS) or "", config.get(AUTO_RESTART_LONGEST_MS) or ""
        return replace(
            self,
            on=on == "true" if on in ("true", "false") else self.on,
            first_ms=int(first) if first.isdecimal() and len(first) < 12 else self.first_ms,
            longest_ms=int(longest) if longest.isdecimal() and len(longest) < 12 else self.longest_ms,
        )

    def pause_ms(self, failures: int) -> int:
        return min(self.first_ms << min(max(failures - 1, 0), 30), self.longest_ms)


# Effects.


@dataclass(frozen=True, slots=True)
class StartJob:
    """`epoch` numbers the lives of a connector's jobs on this worker: reports of an earlier one are not listened to."""

    connector: str
    config: Texts = field(repr=False)
    tasks: int
    generation: int
    epoch: int


@dataclass(frozen=True, slots=True)
class StopJob:
    connector: str


@dataclass(frozen=True, slots=True)
class Say:
    """A record for the status topic."""

    record: StatusRecord


@dataclass(frozen=True, slots=True)
class StandBy:
    """Others run connectors that may fall to this worker at any moment: it gets ready for them."""


Effect: TypeAlias = StartJob | StopJob | Say | StandBy


@dataclass(slots=True)
class _Duty:
    """One connector here."""

    version: int
    """The config that its job was started with."""
    epoch: int
    tasks: int
    said: State | None = None
    running: bool = False
    """A job was started and has not ended."""
    begun_ms: int = 0
    failures: int = 0
    again_ms: int | None = None


class Duties:
    __slots__ = ("_assigned", "_configs", "_duties", "_epochs", "_rule", "_stands_by", "_statuses",
                 "_tracks_topics", "_versions", "generation", "worker_id")  # fmt: skip

    def __init__(
        self,
        worker_id: str,
        configs: Configs,
        statuses: Statuses,
        rule: RestartRule,
        versions: Mapping[str, str],
        *,
        stands_by: bool = True,
        tracks_topics: bool = True,
    ) -> None:
        """`versions`: of connector classes, for the status. `tracks_topics`: whether it is written down which ones
        connectors use."""
        self.worker_id = worker_id
        self._configs = configs
        self._statuses = statuses
        self._rule = rule
        self._versions = versions
        self._assigned: dict[str, None] = {}
        self._duties: dict[str, _Duty] = {}
        self._epochs = 0
        self._stands_by = stands_by
        """It has not got ready yet, and should when others run something."""
        self._tracks_topics = tracks_topics
        self.generation = -1

    @property
    def held(self) -> tuple[str, ...]:
        """Connectors of this worker: what it tells the leader."""
        return tuple(self._assigned)

    # What it is told.

    def assigned(self, connectors: Iterable[str], generation: int, now: Millis) -> list[Effect]:
        self.generation = generation
        wanted = dict.fromkeys(connectors)
        gone = [name for name in self._assigned if name not in wanted]
        self._assigned = wanted
        effects: list[Effect] = []
        for name in gone:
            effects += self._end(name, State.UNASSIGNED if name in self._configs.connectors else None)
        return effects + self.reconcile(now)

    def may_inherit(self) -> list[Effect]:
        """Other workers have connectors, that would fall to this one if they died."""
        if not self._stands_by:
            return []
        run = [each.name for each in self._configs.connectors.values() if each.state is TargetState.STARTED]
        if not run or any(name in self._assigned for name in run):
            return []  # nobody needs to be ready, or what runs here sees to it
        self._stands_by = False  # once is enough: what is ready stays so
        return [StandBy()]

    def lost(self) -> list[Effect]:
        """Others may have them already: the jobs end, and nothing is said of them any more."""
        stops: list[Effect] = [StopJob(name) for name, duty in self._duties.items() if duty.running]
        self._duties.clear()
        self._assigned.clear()
        return stops

    def reconcile(self, now: Millis) -> list[Effect]:
        """After `connect-configs` was read further."""
        effects: list[Effect] = []
        for name in list(self._assigned):
            connector = self._configs.connectors.get(name)
            if connector is None:
                if name in self._duties:
                    effects += self._forget(name)
            else:
                effects += self._mind(connector, now)
        return effects

    def restart(self, asked: RestartAsked, now: Millis) -> list[Effect]:
        connector, duty = self._configs.connectors.get(asked.connector), self._duties.get(asked.connector)
        if connector is None or duty is None or connector.state is not TargetState.STARTED:
            return []
        if asked.only_failed and duty.running:
            return []
        effects: list[Effect] = [StopJob(asked.connector)] if duty.running else []
        duty.failures = 0
        effects += self._say(connector, State.RESTARTING)
        return effects + self._start(connector, duty, now)

    def began(self, name: str, epoch: int) -> list[Effect]:
        """Its job runs."""
        connector, duty = self._current(name, epoch)
        if connector is None or duty is None or duty.said is State.RUNNING:
            return []
        return self._say(connector, State.RUNNING)

    def failed(self, name: str, epoch: int, trace: str, now: Millis) -> list[Effect]:
        connector, duty = self._current(name, epoch)
        if connector is None or duty is None:
            return []
        rule = self._rule.of(connector.config)
        duty.running = False
        duty.failures = 1 if now - duty.begun_ms >= rule.steady_ms else duty.failures + 1
        duty.again_ms = now + rule.pause_ms(duty.failures) if rule.on else None
        return self._say(connector, State.FAILED, f"{trace.rstrip()}\n\n{self._what_next(duty, now)}")

    def ended(self, name: str, epoch: int, now: Millis) -> list[Effect]:
        """It stopped by itself without a failure: it has read all that there will ever be."""
        connector, duty = self._current(name, epoch)
        if connector is None or duty is None:
            return []
        duty.running = False
        return []

    def uses(self, name: str, topics: Iterable[str], now: Millis) -> list[Effect]:
        """A connector read or wrote these topics."""
        if not self._tracks_topics:
            return []
        known = self._statuses.topics(name)
        return [Say(TopicUsed(name, topic, 0, now)) for topic in topics if topic not in known]

    def tick(self, now: Millis) -> list[Effect]:
        effects: list[Effect] = []
        for name, duty in list(self._duties.items()):
            connector = self._configs.connectors.get(name)
            if duty.again_ms is not None and now >= duty.again_ms and connector is not None:
                effects += self._say(connector, State.RESTARTING)
                effects += self._start(connector, duty, now)
        return effects

    def sweep(self) -> list[Effect]:
        """For who leads: what is still said of connectors that were deleted while nobody had them is taken back."""
        stray = [name for name in self._statuses.connectors if name not in self._configs.connectors]
        return [effect for name in stray if name not in self._duties for effect in self._forget(name)]

    def next_tick_ms(self) -> int | None:
        return min((duty.again_ms for duty in self._duties.values() if duty.again_ms is not None), default=None)

    # One connector.

    def _current(self, name: str, epoch: int) -> tuple[Connector | None, _Duty | None]:
        duty = self._duties.get(name)
        return (self._configs.connectors.get(name), duty) if duty is not None and duty.epoch == epoch else (None, None)

    def _mind(self, connector: Connector, now: Millis) -> list[Effect]:
        """Brings one connector from what it does to what it should do."""
        duty = self._duties.get(connector.name)
        if duty is None:
            duty = self._duties[connector.name] = _Duty(-1, 0, 0)
        if connector.state is not TargetState.STARTED:
            state = State.PAUSED if connector.state is TargetState.PAUSED else State.STOPPED
            return self._rest(connector, duty, state)
        ready = connector.task_count > 0 and not connector.inconsistent
        same = duty.version == connector.version and duty.tasks == connector.task_count
        if not ready or (same and duty.said not in (State.PAUSED, State.STOPPED)):
            return []
        stop: list[Effect] = [StopJob(connector.name)] if duty.running else []
        stop += self._say(connector, State.RESTARTING if duty.running else State.UNASSIGNED)
        duty.failures = 0
        return stop + self._start(connector, duty, now)

    def _start(self, connector: Connector, duty: _Duty, now: Millis) -> list[Effect]:
        self._epochs += 1
        duty.epoch = self._epochs
        duty.version, duty.tasks = connector.version, connector.task_count
        duty.running, duty.begun_ms, duty.again_ms = True, now, None
        job = StartJob(connector.name, connector.config, connector.task_count, self.generation, duty.epoch)
        return [job]

    def _rest(self, connector: Connector, duty: _Duty, state: State) -> list[Effect]:
        if duty.said is state and not duty.running:
            return []
        stop: list[Effect] = [StopJob(connector.name)] if duty.running else []
        duty.running, duty.again_ms, duty.failures = False, None, 0
        duty.version, duty.tasks = connector.version, connector.task_count
        return stop + self._say(connector, state)

    def _end(self, name: str, state: State | None) -> list[Effect]:
        duty = self._duties.pop(name, None)
        connector = self._configs.connectors.get(name)
        effects: list[Effect] = [StopJob(name)] if duty is not None and duty.running else []
        if state is not None and connector is not None:
            effects += self._statements(connector, state, None, 0, None)
        return effects

    def _forget(self, name: str) -> list[Effect]:
        """It was deleted: what was said of it goes as well."""
        effects = self._end(name, None)
        for task in self._statuses.tasks(name):
            effects.append(Say(TaskStatusPut(name, task, None)))
        effects.append(Say(ConnectorStatusPut(name, None)))
        effects += [Say(TopicUsed(name, topic, seen_ms=None)) for topic in self._statuses.topics(name)]
        return effects

    def _say(self, connector: Connector, state: State, trace: str | None = None) -> list[Effect]:
        duty = self._duties[connector.name]
        duty.said = state
        return self._statements(connector, state, trace, max(duty.failures - 1, 0), duty.again_ms)

    def _statements(
        self, connector: Connector, state: State, trace: str | None, restarts: int, again_ms: int | None
    ) -> list[Effect]:
        version = self._versions.get(connector.class_name)
        status = Status(state, self.worker_id, self.generation, trace, version, restarts, again_ms)
        effects: list[Effect] = [Say(ConnectorStatusPut(connector.name, status))]
        wanted = 0 if state is State.STOPPED else connector.task_count
        effects += [Say(TaskStatusPut(connector.name, number, status)) for number in range(wanted)]
        known = self._statuses.tasks(connector.name)
        effects += [Say(TaskStatusPut(connector.name, number, None)) for number in known if number >= wanted]
        return effects

    def _what_next(self, duty: _Duty, now: Millis) -> str:
        if duty.again_ms is None:
            return f"It stays failed until somebody restarts it: {AUTO_RESTART} is false."
        pause_s = (duty.again_ms - now) / 1000
        return f"It is started again in {pause_s:g} s, after failure number {duty.failures} in a row."
