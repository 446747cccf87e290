"""What the queries of an application did, under the names that Kafka Streams gives its metrics."""

from collections.abc import Mapping, Sequence
from typing import Final

from ottla.pipelines.progress import WINDOW_S, Progress
from ottla.streams.run.running import Metric

THREAD: Final = "stream-thread-metrics"
TASK: Final = "stream-task-metrics"
STATE: Final = "stream-state-metrics"


def metrics_of(application_id: str, progress: Progress) -> list[Metric]:
    """Of one query, which stands for a thread of Kafka Streams."""
    tags = {"client-id": application_id, "thread-id": f"{application_id}-{progress.name}"}
    totals, seconds, rate, sst_bytes, sensors = progress.figures()
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
    own = [metric for name, counted in sensors.items() for metric in _of_sensor(name, counted, tags)]
    return [
        Metric(group, name, float(value), tags, text)
        for group, found in ((THREAD, thread), (TASK, task), (STATE, stores))
        for name, (value, text) in found.items()
    ] + own


def _of_sensor(name: str, counted: tuple[int, float], tags: Mapping[str, str]) -> list[Metric]:
    """As StreamsMetrics.addRateTotalSensor names them."""
    scope, entity, operation = name.split("/")
    group, own = f"stream-{scope}-metrics", {**tags, f"{scope}-id": entity}
    total, rate = counted
    return [
        Metric(group, f"{operation}-total", float(total), own, f"The total number of {operation}."),
        Metric(group, f"{operation}-rate", rate, own, f"{operation} per second."),
    ]


def _average(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0
