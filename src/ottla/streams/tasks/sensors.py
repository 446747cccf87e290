"""Counts of a user's own. They leave a task with those of dropped records, under names that no reason has."""

from typing import Final, Protocol

SENSOR: Final = "sensor:"


class Counting(Protocol):
    """Whoever counts dropped records, by reason."""

    dropped: dict[str, int]


class TaskSensor:
    """Adds to what its task counts."""

    __slots__ = ("_counting", "_name")

    def __init__(self, counting: Counting, name: str) -> None:
        self._counting = counting
        self._name = name

    def record(self, number: int = 1) -> None:
        counts = self._counting.dropped
        counts[self._name] = counts.get(self._name, 0) + number


class TaskMetrics:
    __slots__ = ("_counting",)

    def __init__(self, counting: Counting) -> None:
        self._counting = counting

    def add_rate_total_sensor(self, scope: str, entity: str, operation: str) -> TaskSensor:
        for word in (scope, entity, operation):
            if not word or "/" in word:
                raise ValueError(f"{word!r} cannot be part of a sensor's name: words without '/' are expected")
        return TaskSensor(self._counting, f"{SENSOR}{scope}/{entity}/{operation}")
