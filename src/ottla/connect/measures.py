"""Metrics that connectors have of their own, as Kafka's sensors keep them: rates and extremes of the last minute.

A core: time comes in with what was observed. Two windows of 30 seconds are kept, so that a rate or a maximum is of the
last 30 to 60 seconds, as Kafka's defaults (`metrics.num.samples`, `metrics.sample.window.ms`) have it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from ottla.connect.spi.measures import GAUGE, METER, Observed

WINDOW_MS: Final = 30_000
MOST: Final = 10_000
"""Series of one connector: a mirror of more partitions than that tells the first ones."""

Labels: TypeAlias = tuple[tuple[str, str], ...]


class Sample(NamedTuple):
    group: str
    name: str
    labels: Labels
    value: float


@dataclass(slots=True)
class _Window:
    begun_ms: int
    total: float = 0.0
    count: int = 0
    least: float = float("inf")
    most: float = float("-inf")

    def take(self, observed: Observed) -> None:
        self.total += observed.total
        self.count += observed.times
        self.least = min(self.least, observed.least)
        self.most = max(self.most, observed.most)


@dataclass(slots=True)
class _Series:
    total: float = 0.0
    last: float = 0.0
    windows: list[_Window] = field(default_factory=list)

    def take(self, observed: Observed, now_ms: int) -> None:
        self.total += observed.total
        self.last = observed.last
        self.drop_old(now_ms)
        if not self.windows or now_ms - self.windows[-1].begun_ms >= WINDOW_MS:
            self.windows.append(_Window(now_ms))
        self.windows[-1].take(observed)

    def drop_old(self, now_ms: int) -> None:
        self.windows = [each for each in self.windows if now_ms - each.begun_ms < 2 * WINDOW_MS]

    def meter(self, now_ms: int) -> dict[str, float]:
        seconds = max(now_ms - self.windows[0].begun_ms, WINDOW_MS) / 1000 if self.windows else 1.0
        return {"-count": self.total, "-rate": sum(each.total for each in self.windows) / seconds}

    def value(self) -> dict[str, float]:
        count = sum(each.count for each in self.windows)
        if not count:
            return {"": self.last}
        return {
            "": self.last,
            "-min": min(each.least for each in self.windows),
            "-max": max(each.most for each in self.windows),
            "-avg": sum(each.total for each in self.windows) / count,
        }


@dataclass(slots=True)
class Measures:
    """Of one connector."""

    _series: dict[tuple[str, str, str, Labels], _Series] = field(default_factory=dict)

    def take(self, observed: Sequence[Observed], now_ms: int) -> None:
        for each in observed:
            key = each.group, each.name, each.kind, each.labels
            if key not in self._series and len(self._series) >= MOST:
                continue
            self._series.setdefault(key, _Series()).take(each, now_ms)

    def samples(self, now_ms: int) -> list[Sample]:
        found = []
        for (group, name, kind, labels), series in self._series.items():
            series.drop_old(now_ms)
            parts = series.meter(now_ms) if kind == METER else {"": series.last} if kind == GAUGE else series.value()
            found += [Sample(group, f"{name}{part}", labels, value) for part, value in parts.items()]
        return found
