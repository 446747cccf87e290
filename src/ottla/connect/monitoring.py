"""A worker's page for Prometheus: Connect's metrics (`kafka.connect:type=connect-worker-metrics` and the like) under
the names that the JMX exporter gives them with Strimzi's rules. Counts of records are those of the connectors that run
here, found out when somebody asks."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ottla.connect.counts import WorkerCounts
from ottla.connect.statuses import State
from ottla.connect.worker import Worker, now_ms
from ottla.metrics.text import COUNTER, GAUGE, Family, labels, one, some

_NAME: Final = "kafka_connect_"
CONNECTORS: Final = Family(f"{_NAME}worker_connector_count", GAUGE, "Connectors that run on this worker.")
TASKS: Final = Family(f"{_NAME}worker_task_count", GAUGE, "Tasks that run on this worker.")
LEADS: Final = Family(f"{_NAME}worker_rebalance_is_leader", GAUGE, "1 if this worker leads its group.")
EPOCH: Final = Family(f"{_NAME}worker_rebalance_epoch", GAUGE, "The generation of the group.")
STATUS: Final = Family(f"{_NAME}connector_status", GAUGE, "1 for the state that each connector of the cluster is in.")
TASK_STATUS: Final = Family(f"{_NAME}connector_task_status", GAUGE, "1 for the state that each task is in.")
RESTARTS: Final = Family(f"{_NAME}connector_auto_restarts", GAUGE, "How often in a row it was started again by itself.")

REBALANCES: Final = Family(f"{_NAME}worker_rebalance_completed_rebalances_total", COUNTER, "Rebalances of the group.")
REBALANCING: Final = Family(f"{_NAME}worker_rebalance_rebalancing", GAUGE, "1 while one is under way.")
REBALANCE_AVG: Final = Family(f"{_NAME}worker_rebalance_rebalance_avg_time_ms", GAUGE, "How long one takes.")
REBALANCE_MAX: Final = Family(f"{_NAME}worker_rebalance_rebalance_max_time_ms", GAUGE, "How long the longest took.")
REBALANCED_SINCE: Final = Family(f"{_NAME}worker_rebalance_time_since_last_rebalance_ms", GAUGE, "Since the last one.")

_GROUPS: Final = {
    "source-record-poll-total": ("source_task", COUNTER, "Records that a source has read."),
    "source-record-write-total": ("source_task", COUNTER, "Records that a source has written into topics."),
    "sink-record-read-total": ("sink_task", COUNTER, "Records that a sink has read out of topics."),
    "sink-record-send-total": ("sink_task", COUNTER, "Records that a sink has written."),
    "total-record-failures": ("task_error", COUNTER, "Records that could not be converted, transformed or written."),
    "total-record-errors": ("task_error", COUNTER, "Records that could not be converted, transformed or written."),
    "total-records-skipped": ("task_error", COUNTER, "Records that were left out for that."),
    "total-retries": ("task_error", COUNTER, "Attempts that were made again."),
    "total-errors-logged": ("task_error", COUNTER, "Such records that were logged."),
    "deadletterqueue-produce-requests": ("task_error", COUNTER, "Dead letters."),
    "deadletterqueue-produce-failures": ("task_error", COUNTER, "None: what is no letter is not committed either."),
    "last-error-timestamp": ("task_error", GAUGE, "When a record last failed, in ms since 1970."),
    "poll-batch-avg-time-ms": ("source_task", GAUGE, "How long a read of the connector takes."),
    "poll-batch-max-time-ms": ("source_task", GAUGE, "How long the longest took."),
    "transaction-size-avg": ("source_task", GAUGE, "Records in a transaction."),
    "transaction-size-min": ("source_task", GAUGE, "In the smallest."),
    "transaction-size-max": ("source_task", GAUGE, "In the largest."),
    "put-batch-avg-time-ms": ("sink_task", GAUGE, "How long a write of the connector takes."),
    "put-batch-max-time-ms": ("sink_task", GAUGE, "How long the longest took."),
    "offset-commit-completion-total": ("sink_task", COUNTER, "Commits of offsets."),
    "offset-commit-seq-no": ("sink_task", GAUGE, "The number of the last one."),
    "batch-size-avg": ("connector_task", GAUGE, "Records in a micro-batch."),
    "batch-size-max": ("connector_task", GAUGE, "In the largest."),
    "offset-commit-avg-time-ms": ("connector_task", GAUGE, "How long it takes to commit a micro-batch."),
    "offset-commit-max-time-ms": ("connector_task", GAUGE, "How long the longest took."),
}
"""Averages and extremes are of the last minute."""


async def page(worker: Worker) -> str:
    return "".join(_pieces(worker, await worker.jobs.progress()))


def _pieces(worker: Worker, progress: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    statuses = worker.state.statuses
    here = [name for name in worker.duties.held if (found := statuses.connector(name)) and found.state is State.RUNNING]
    yield one(CONNECTORS, len(here))
    yield one(TASKS, sum(len(statuses.tasks(name)) for name in here))
    yield one(LEADS, int(worker.leads))
    yield one(EPOCH, worker.duties.generation)
    yield from _of_worker(worker.counts, now_ms())
    yield from _of_tasks(worker)
    known = dict(sorted(statuses.connectors.items()))
    yield some(STATUS, [(labels(connector=name, status=each.state.value.lower()), 1) for name, each in known.items()])
    yield some(
        TASK_STATUS,
        [
            (labels(connector=name, task=number, status=task.state.value.lower()), 1)
            for name in known
            for number, task in statuses.tasks(name).items()
        ],
    )
    yield some(RESTARTS, [(labels(connector=name), each.restarts) for name, each in known.items()])
    for key, (group, kind, told) in _GROUPS.items():
        samples = [
            (labels(connector=name, task=task), numbers[key])
            for name, counts in sorted(progress.items())
            for task, numbers in counts.get("tasks", {}).items()
            if key in numbers
        ]
        if samples:
            yield some(Family(f"{_NAME}{group}_{key.replace('-', '_')}", kind, told), samples)
    yield from own_measures(progress)


def _of_worker(counts: WorkerCounts, now: int) -> Iterator[str]:
    for what, startups in (("connector", counts.connectors), ("task", counts.tasks)):
        for name, value in startups.told.items():
            told = f"Starts of {what}s on this worker: {name}."
            yield one(Family(f"{_NAME}worker_{what}_startup_{name}_total", COUNTER, told), value)
    found = counts.rebalances
    yield one(REBALANCES, found.completed)
    yield one(REBALANCING, int(found.began_ms is not None))
    if found.ended_ms is not None:
        yield one(REBALANCE_AVG, found.total_ms / found.completed)
        yield one(REBALANCE_MAX, found.most_ms)
        yield one(REBALANCED_SINCE, now - found.ended_ms)


def _of_tasks(worker: Worker) -> Iterator[str]:
    """Of the connectors that are this worker's."""
    statuses = worker.state.statuses
    states = {name: [task.state for task in statuses.tasks(name).values()] for name in sorted(worker.duties.held)}
    total = Family(f"{_NAME}worker_connector_total_task_count", GAUGE, "Tasks of a connector.")
    yield some(total, [(labels(connector=name), len(found)) for name, found in states.items()])
    for state in (State.RUNNING, State.PAUSED, State.FAILED, State.UNASSIGNED, State.RESTARTING):
        word = state.value.lower()
        family = Family(f"{_NAME}worker_connector_{word}_task_count", GAUGE, f"Those that are {state.value}.")
        yield some(family, [(labels(connector=name), found.count(state)) for name, found in states.items()])
    for name, state in (("running", State.RUNNING), ("pause", State.PAUSED)):
        family = Family(f"{_NAME}connector_task_{name}_ratio", GAUGE, f"1 while a task is {state.value}, else 0.")
        rows = [(each, number, found) for each in states for number, found in statuses.tasks(each).items()]
        yield some(family, [(labels(connector=each, task=at), int(found.state is state)) for each, at, found in rows])


def own_measures(progress: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Metrics that connectors have of their own: `kafka.connect.mirror:type=MirrorSourceConnector`, slots of CDC."""
    families: dict[str, list[tuple[str, float]]] = {}
    for _, counts in sorted(progress.items()):
        for group, name, told, value in counts.get("measures", ()):
            family = f"{_NAME}{group.lower().replace('.', '_')}_{name.replace('-', '_')}"
            families.setdefault(family, []).append((labels(**dict(told)), value))
    for family, samples in sorted(families.items()):
        kind = COUNTER if family.endswith("_count") else GAUGE
        yield some(Family(family, kind, f"As Kafka's own: {family.removeprefix(_NAME)}."), samples)
