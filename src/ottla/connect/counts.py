"""What a worker counts of itself for its metrics: starts of connectors, and rebalances of its group. A core."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Startups:
    """An attempt has come to its end when the connector runs, or fails before."""

    attempts: int = 0
    successes: int = 0
    failures: int = 0

    @property
    def told(self) -> dict[str, int]:
        return {"attempts": self.attempts, "success": self.successes, "failure": self.failures}


@dataclass(slots=True)
class Rebalances:
    completed: int = 0
    total_ms: int = 0
    most_ms: int = 0
    ended_ms: int | None = None
    began_ms: int | None = None
    """One is under way since."""

    def begins(self, now_ms: int) -> None:
        self.began_ms = now_ms if self.began_ms is None else self.began_ms

    def ends(self, now_ms: int) -> None:
        took_ms = 0 if self.began_ms is None else max(now_ms - self.began_ms, 0)
        self.completed += 1
        self.total_ms += took_ms
        self.most_ms = max(self.most_ms, took_ms)
        self.began_ms, self.ended_ms = None, now_ms


@dataclass(slots=True)
class WorkerCounts:
    connectors: Startups = field(default_factory=Startups)
    tasks: Startups = field(default_factory=Startups)
    rebalances: Rebalances = field(default_factory=Rebalances)
    _open: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By connector: the epoch that is being started, and of how many tasks."""

    def starts(self, connector: str, epoch: int, tasks: int) -> None:
        self._open[connector] = (epoch, tasks)
        self.connectors.attempts += 1
        self.tasks.attempts += tasks

    def runs(self, connector: str, epoch: int) -> None:
        tasks = self._of(connector, epoch)
        if tasks is not None:
            self.connectors.successes += 1
            self.tasks.successes += tasks

    def fails(self, connector: str, epoch: int) -> None:
        """One that ran before has not failed to start."""
        tasks = self._of(connector, epoch)
        if tasks is not None:
            self.connectors.failures += 1
            self.tasks.failures += tasks

    def stops(self, connector: str) -> None:
        """Whether it would have run is not known."""
        self._open.pop(connector, None)

    def _of(self, connector: str, epoch: int) -> int | None:
        opened = self._open.get(connector)
        if opened is None or opened[0] != epoch:
            return None
        del self._open[connector]
        return opened[1]
