"""Counts that are no dropped records: a user's own, and of punctuators. They leave a task with those, under names that
no reason has."""

from typing import Final, Protocol

SENSOR: Final = "sensor:"
LATENCY: Final = "//latency"
"""Behind the name of a sensor: all that was recorded, in thousandths."""
PUNCTUATE: Final = f"{SENSOR}punctuate"


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


class LatencySensor:
    """Counts, and adds up what was recorded."""

    __slots__ = ("_count", "_sum")

    def __init__(self, counting: Counting, name: str) -> None:
        self._count = TaskSensor(counting, name)
        self._sum = TaskSensor(counting, name + LATENCY)

    def record(self, latency: float) -> None:
        self._count.record()
        self._sum.record(round(latency * 1000))


class TaskMetrics:
    __slots__ = ("_counting",)

    def __init__(self, counting: Counting) -> None:
        self._counting = counting

    def add_rate_total_sensor(self, scope: str, entity: str, operation: str) -> TaskSensor:
        return TaskSensor(self._counting, _named(scope, entity, operation))

    def add_latency_rate_total_sensor(self, scope: str, entity: str, operation: str) -> LatencySensor:
        return LatencySensor(self._counting, _named(scope, entity, operation))


def _named(scope: str, entity: str, operation: str) -> str:
    for word in (scope, entity, operation):
        if not word or "/" in word:
            raise ValueError(f"{word!r} cannot be part of a sensor's name: words without '/' are expected")
    return f"{SENSOR}{scope}/{entity}/{operation}"
