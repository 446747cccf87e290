"""What the queries of an application did, under the names that Kafka Streams gives its metrics."""

from collections.abc import Mapping, Sequence
from typing import Final

from ottla.pipelines.progress import WINDOW_S, Progress
from ottla.streams.run.running import Metric
from ottla.streams.tasks.sensors import LATENCY, PUNCTUATE, SENSOR

_PUNCTUATE: Final = PUNCTUATE.removeprefix(SENSOR)

CLIENT: Final = "stream-metrics"
THREAD: Final = "stream-thread-metrics"
TASK: Final = "stream-task-metrics"
STATE: Final = "stream-state-metrics"


def metrics_of(application_id: str, progress: Progress) -> list[Metric]:
    """Of one query, which stands for a thread of Kafka Streams."""
    tags = {"client-id": application_id, "thread-id": f"{application_id}-{progress.name}"}
    totals, seconds, rate, sst_bytes, found = progress.figures()
    sensors = dict(found)
    thread = {
        "process-total": (totals["read"], "Records read."),
        "process-rate": (rate, "Records read per second."),
        "commit-total": (totals["batches"], "Micro-batches committed."),
        "commit-rate": (len(seconds) / WINDOW_S, "Micro-batches committed per second."),
        "commit-latency-avg": (_average(seconds) * 1000, "Milliseconds to write and commit a micro-batch."),
        "commit-latency-max": (max(seconds, default=0.0) * 1000, "The longest of these."),
        "records-written-total": (totals["written"], "Records written, changelogs included."),
    }
    task = {"dropped-records-total": (totals["dropped"], "Records left out, such as late ones.")}
    stores = {"total-sst-files-size": (sst_bytes, "Bytes of the files that state lies in.")}
    punctuated, rate_of_them = sensors.pop(_PUNCTUATE, (0, 0.0))
    thread["punctuate-total"] = (punctuated, "Punctuators called.")
    thread["punctuate-rate"] = (rate_of_them, "Punctuators called per second.")
    latencies = {name.removesuffix(LATENCY): each for name, each in sensors.items() if name.endswith(LATENCY)}
    own = [
        metric
        for name, counted in sensors.items()
        if not name.endswith(LATENCY)
        for metric in _of_sensor(name, counted, latencies.get(name), tags)
    ]
    return [
        Metric(group, name, float(value), tags, text)
        for group, family in ((THREAD, thread), (TASK, task), (STATE, stores))
        for name, (value, text) in family.items()
    ] + own


def client_metrics(application_id: str, *, alive: int, failed: int, restored: int, to_restore: int) -> list[Metric]:
    """Of the application as a whole. A query stands for a thread."""
    tags = {"client-id": application_id}
    return [
        Metric(CLIENT, "alive-stream-threads", float(alive), tags, "Queries that run."),
        Metric(CLIENT, "failed-stream-threads", float(failed), tags, "Queries that have failed since it began."),
        Metric(TASK, "restore-total", float(restored), tags, "Records that stores were restored from."),
        Metric(TASK, "restore-remaining-records-total", float(to_restore), tags, "Offsets still to be restored from."),
    ]


def _of_sensor(
    name: str, counted: tuple[int, float], latency: tuple[int, float] | None, tags: Mapping[str, str]
) -> list[Metric]:
    """As StreamsMetrics.addRateTotalSensor names them, and addLatencyRateTotalSensor."""
    scope, entity, operation = name.split("/")
    group, own = f"stream-{scope}-metrics", {**tags, f"{scope}-id": entity}
    total, rate = counted
    mean = (latency[1] / rate if rate else latency[0] / total) / 1000 if latency is not None and total else None
    told = f"What was recorded of {operation}, on average."
    return ([] if mean is None else [Metric(group, f"{operation}-latency-avg", mean, own, told)]) + [
        Metric(group, f"{operation}-total", float(total), own, f"The total number of {operation}."),
        Metric(group, f"{operation}-rate", rate, own, f"{operation} per second."),
    ]


def _average(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0
