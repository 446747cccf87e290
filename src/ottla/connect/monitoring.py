"""A worker's page for Prometheus: Connect's metrics (`kafka.connect:type=connect-worker-metrics` and the like) under
the names that the JMX exporter gives them with Strimzi's rules. Counts of records are those of the connectors that run
here, found out when somebody asks."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ottla.connect.statuses import State
from ottla.connect.worker import Worker
from ottla.metrics.text import COUNTER, GAUGE, Family, labels, one, some

_NAME: Final = "kafka_connect_"
CONNECTORS: Final = Family(f"{_NAME}worker_connector_count", GAUGE, "Connectors that run on this worker.")
TASKS: Final = Family(f"{_NAME}worker_task_count", GAUGE, "Tasks that run on this worker.")
LEADS: Final = Family(f"{_NAME}worker_rebalance_is_leader", GAUGE, "1 if this worker leads its group.")
EPOCH: Final = Family(f"{_NAME}worker_rebalance_epoch", GAUGE, "The generation of the group.")
STATUS: Final = Family(f"{_NAME}connector_status", GAUGE, "1 for the state that each connector of the cluster is in.")
TASK_STATUS: Final = Family(f"{_NAME}connector_task_status", GAUGE, "1 for the state that each task is in.")
RESTARTS: Final = Family(f"{_NAME}connector_auto_restarts", GAUGE, "How often in a row it was started again by itself.")

_GROUPS: Final = {
    "source-record-poll-total": ("source_task", COUNTER, "Records that a source has read."),
    "source-record-write-total": ("source_task", COUNTER, "Records that a source has written into topics."),
    "sink-record-read-total": ("sink_task", COUNTER, "Records that a sink has read out of topics."),
    "sink-record-send-total": ("sink_task", COUNTER, "Records that a sink has written."),
    "total-record-failures": ("task_error", COUNTER, "Records that could not be converted, transformed or written."),
    "total-record-errors": ("task_error", COUNTER, "Records that could not be converted, transformed or written."),
    "total-records-skipped": ("task_error", COUNTER, "Records that were left out for that."),
    "total-retries": ("task_error", COUNTER, "Attempts that were made again."),
    "deadletterqueue-produce-requests": ("task_error", COUNTER, "Dead letters."),
    "last-error-timestamp": ("task_error", GAUGE, "When a record last failed, in ms since 1970."),
}


async def page(worker: Worker) -> str:
    return "".join(_pieces(worker, await worker.jobs.progress()))


def _pieces(worker: Worker, progress: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    statuses = worker.state.statuses
    here = [name for name in worker.duties.held if (found := statuses.connector(name)) and found.state is State.RUNNING]
    yield one(CONNECTORS, len(here))
    yield one(TASKS, sum(len(statuses.tasks(name)) for name in here))
    yield one(LEADS, int(worker.leads))
    yield one(EPOCH, worker.duties.generation)
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
        samples = [(labels(connector=name), counts[key]) for name, counts in sorted(progress.items()) if key in counts]
        if samples:
            yield some(Family(f"{_NAME}{group}_{key.replace('-', '_')}", kind, told), samples)
    yield from own_measures(progress)


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
