"""What was measured, what it must reach, and whether it does. Pure: no process, no clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on the ratio ottla : Apache Kafka, or on ottla's own value."""

    bound: float
    of_ratio: bool
    at_least: bool = False

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}"


def ratio_at_least(bound: float) -> Target:
    return Target(bound, of_ratio=True, at_least=True)


def ratio_at_most(bound: float) -> Target:
    return Target(bound, of_ratio=True)


def value_at_most(bound: float) -> Target:
    return Target(bound, of_ratio=False)


@dataclass(frozen=True, slots=True)
class Metric:
    """One number that a trial reports under `key`."""

    key: str
    title: str
    unit: str
    target: Target | None = None


@dataclass(frozen=True, slots=True)
class Measure:
    """All samples of one metric. Kafka's may be missing where it has no counterpart."""

    workload: str
    metric: Metric
    kafka: tuple[float, ...]
    ottla: tuple[float, ...]

    @property
    def ratio(self) -> float | None:
        if not self.kafka or not self.ottla or median(self.kafka) == 0:
            return None
        return median(self.ottla) / median(self.kafka)

    @property
    def reached(self) -> bool | None:
        """None where nothing was asked. A target that could not be measured is missed."""
        target = self.metric.target
        if target is None:
            return None
        if not self.ottla or (target.of_ratio and not self.kafka):
            return False
        found = median(self.ottla)
        # Compared as products: a whole-millisecond percentile of 0 has no ratio and yet an order.
        bound = target.bound * median(self.kafka) if target.of_ratio else target.bound
        return found >= bound if target.at_least else found <= bound


Trial = Mapping[str, float]


def measures(workload: str, metrics: Sequence[Metric], taken: Sequence[Sequence[Trial]]) -> list[Measure]:
    kafka, ottla = taken
    return [Measure(workload, metric, _samples(metric, kafka), _samples(metric, ottla)) for metric in metrics]


def _samples(metric: Metric, trials: Sequence[Trial]) -> tuple[float, ...]:
    return tuple(trial[metric.key] for trial in trials if metric.key in trial)
