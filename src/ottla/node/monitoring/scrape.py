"""All that a node serves under /metrics, in pieces."""

from collections.abc import Callable, Iterator, Mapping

from ottla import __version__
from ottla.broker.services import Services
from ottla.metrics import names
from ottla.metrics.text import labels, one, some
from ottla.node.monitoring import groups, partitions, process, quorum, quotas, requests, topics
from ottla.node.monitoring.elsewhere import end_here
from ottla.node.monitoring.watched import BrokerView, Watched

Ends = Mapping[tuple[str, int], int]
"""By topic and partition: what leaders elsewhere have told of how far consumers may read."""


def pieces(watched: Watched, ends_elsewhere: Ends) -> Iterator[str]:
    """Some are empty: pauses in which others may have the loop."""
    found = partitions.Found()
    if watched.broker is not None:
        yield from _broker(watched, watched.broker, found, ends_elsewhere)
    if watched.control_plane.is_active:
        yield from partitions.walk_leaderless(watched.control_plane.image, watched.max_partitions, found)
    yield from partitions.exported(watched, found)
    yield quorum.exported(watched)
    yield some(names.EXPORTER_INFO, [(labels(version=__version__, program="ottla"), 1)])
    yield from requests.pieces(watched)
    yield from quotas.pieces(watched)
    yield from quorum.pieces(watched)
    yield from process.pieces()


def _broker(watched: Watched, broker: BrokerView, found: partitions.Found, ends_elsewhere: Ends) -> Iterator[str]:
    services = broker.services
    replicas = services.replicas
    yield from topics.pieces(replicas, watched.max_partitions)
    yield from partitions.walk(watched, replicas, found)
    yield from partitions.pieces(watched, replicas, found)
    yield requests.waiting(services)
    yield one(names.UNCLEANABLE, len(broker.cleaning.uncleanable)) + one(names.CLEANING, len(broker.cleaning.working))
    registered = watched.control_plane.image.brokers.get(watched.node_id)
    state = 1 if registered is None else 2 if registered.fenced else 3
    yield one(names.BROKER_STATE, state)
    known = groups.FoundGroups()
    yield from groups.walk(services, watched.max_partitions, known)
    yield from groups.pieces(known)
    yield from groups.exported(known, _end_of(services, ends_elsewhere))


def _end_of(services: Services, ends_elsewhere: Ends) -> Callable[[str, int], int | None]:
    def end_of(topic: str, index: int) -> int | None:
        known = end_here(services, topic, index)
        return ends_elsewhere.get((topic, index)) if known is None else known

    return end_of
