"""Whether a node is alive, and whether it is ready: if not, what is missing.

Ready means: what the node is responsible for can be done now. A broker that is fenced or whose replicas have not
caught up may be alive and well on its way; a partition with too few replicas in sync takes no acks=all.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ottla.broker.services import Services
from ottla.metrics.text import SLICE
from ottla.node.monitoring.watched import Watched


@dataclass(slots=True)
class Readiness:
    """Reasons by what they are about; none: the node is ready."""

    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def is_ready(self) -> bool:
        return not self.reasons


def look(watched: Watched, readiness: Readiness) -> Iterator[None]:
    """Fills `readiness`. Gives the loop back now and then: a broker may have many partitions."""
    if watched.control_plane.leader_id < 0:
        readiness.reasons["no_controller"] = "no active controller is known"
    if watched.broker is not None:
        yield from _look_at_broker(watched, watched.broker.services, readiness.reasons)


def _look_at_broker(watched: Watched, services: Services, reasons: dict[str, str]) -> Iterator[None]:
    registered = watched.control_plane.image.brokers.get(watched.node_id)
    if registered is None:
        reasons["fenced"] = "the broker is not registered"
    elif registered.fenced:
        reasons["fenced"] = "the broker is fenced: no partition is led here"
    offline = [each.path for each in services.replicas.directories if not each.is_online]
    if offline:
        reasons["offline_directories"] = f"log directories that failed: {', '.join(offline)}"
    if any(runner.error is not None for runner in services.groups.runners()):
        reasons["loading"] = "coordinators are being read from their logs"
    yield from _look_at_partitions(watched, services, reasons)


def _look_at_partitions(watched: Watched, services: Services, reasons: dict[str, str]) -> Iterator[None]:
    image = watched.control_plane.image
    behind = under_min_isr = 0
    for at, partition in enumerate(list(services.replicas.all())):
        if at % SLICE == SLICE - 1:
            yield
        leader = partition.leader
        if leader is not None:
            under_min_isr += leader.under_min_isr
            continue
        placed = image.partition(partition.topic, partition.index)
        behind += placed is not None and watched.node_id not in placed.isr
    if behind:
        reasons["catching_up"] = f"{behind} replicas of this broker are not in sync"
    if under_min_isr:
        reasons["under_min_isr"] = f"{under_min_isr} partitions led here have fewer in sync than min.insync.replicas"
