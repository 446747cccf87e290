"""Requests by API, connections by listener, and who waits."""

from collections.abc import Iterator
from time import thread_time_ns
from typing import Final

from ottla.broker.front.server import Server
from ottla.broker.services import Services
from ottla.metrics import names
from ottla.metrics.counts import RequestCounts
from ottla.metrics.histogram import BUCKETS, quantile_us
from ottla.metrics.text import Sample, head, labels, number, one, some
from ottla.model.errors import Errors
from ottla.node.monitoring.watched import LOOP, Watched

QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)

Counted = dict[str, list[RequestCounts]]
"""By the name of the API: it may be served on several listeners."""


def pieces(watched: Watched) -> Iterator[str]:
    counted = _counted(watched.server)
    yield some(names.REQUESTS, _versions(counted))
    yield some(names.REQUEST_ERRORS, _errors(counted))
    yield from _times(watched, counted)
    yield from _connections(watched.server)
    yield from _idle(watched)


def _counted(server: Server) -> Counted:
    found: Counted = {}
    for routes in {id(each): each for each in server.routes.values()}.values():  # listeners of clients share theirs
        for route in routes.loaded.values():
            found.setdefault(route.name, []).append(route.counts)
    return found


def _versions(counted: Counted) -> Iterator[Sample]:
    for name, several in counted.items():
        totals: dict[int, int] = {}
        for counts in several:
            for version, requests in enumerate(counts.versions, counts.min_version):
                if requests:
                    totals[version] = totals.get(version, 0) + requests
        for version, requests in totals.items():
            yield labels(request=name, version=version), requests


def _errors(counted: Counted) -> Iterator[Sample]:
    for name, several in counted.items():
        totals: dict[int, int] = {}
        for counts in several:
            for code, times in counts.errors.items():
                totals[code] = totals.get(code, 0) + times
        for code, times in totals.items():
            yield labels(request=name, error=Errors(code).name), times


def _times(watched: Watched, counted: Counted) -> Iterator[str]:
    family = names.REQUEST_TIMES
    lines = [head(family)]
    for name, several in counted.items():
        buckets = [sum(counts.times.buckets[at] for counts in several) for at in range(BUCKETS)]
        late = watched.of_late(f"request {name}", buckets).amounts
        for share in QUANTILES:
            told = labels(request=name, quantile=share)
            lines.append(f"{family.name}{told} {number(round(quantile_us(late, share) / 1000, 3))}\n")
        told = labels(request=name)
        lines.append(f"{family.name}_sum{told} {number(sum(counts.times.sum_us for counts in several) / 1000)}\n")
        lines.append(f"{family.name}_count{told} {sum(buckets)}\n")
        yield "".join(lines)
        lines.clear()


def _connections(server: Server) -> Iterator[str]:
    traffic = {name: (_of(name), counted) for name, counted in server.traffic.items()}
    yield some(names.CONNECTIONS, [(told, server.connections_of(name)) for name, (told, _) in traffic.items()])
    yield some(names.SOCKET_BYTES_IN, [(told, counted.received) for told, counted in traffic.values()])
    yield some(names.SOCKET_BYTES_OUT, [(told, counted.sent) for told, counted in traffic.values()])


def _of(listener: str) -> str:
    return labels(listener=listener, networkProcessor=0)


def _idle(watched: Watched) -> Iterator[str]:
    """One loop reads, works and writes: its free time is that of Kafka's network and handler threads."""
    busy = watched.of_late(LOOP, [thread_time_ns()])
    idle = max(0.0, 1 - busy.amounts[0] / 1e6 / busy.ms) if busy.ms > 0 else 1.0
    yield one(names.HANDLER_IDLE, round(idle, 4))
    yield one(names.NETWORK_IDLE, round(idle, 4))


def waiting(services: Services) -> str:
    parked = services.waiting
    return some(
        names.PURGATORY,
        [
            (labels(delayedOperation="Fetch"), parked.fetches.waiting + parked.copies.waiting),
            (labels(delayedOperation="Produce"), parked.produces.waiting),
            (labels(delayedOperation="DeleteRecords"), parked.deletes.waiting),
        ],
    ) + one(names.FETCH_SESSIONS, len(services.fetch_sessions))
