"""The pages of a node: /metrics, /healthz, /readyz, /version. Imported when somebody asks for one."""

import asyncio
import platform
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

from ottla import __version__
from ottla.http.addresses import Address
from ottla.http.answers import Answer, Stream
from ottla.http.application import Application, Manners
from ottla.http.asgi import AsgiApplication
from ottla.http.auth import OPEN_DOOR, Doorkeeper
from ottla.http.call import Call
from ottla.http.limits import Limits
from ottla.http.media import JSON, PROBLEM, PROMETHEUS, Media
from ottla.http.routes import Route
from ottla.model.permissions import DESCRIBE_CLUSTER
from ottla.node.monitoring import scrape
from ottla.node.monitoring.elsewhere import ends_elsewhere
from ottla.node.monitoring.watched import Watched

LIMITS: Final = Limits(body_bytes=0, head_bytes=16 << 10, connections=64)
"""For a few who ask again and again: more would be a mistake, and must not cost the broker its descriptors."""
_AT_ONCE: Final = 64 << 10
"""Bytes in one write. Each piece by itself, of which there may be hundreds, would take longer to send than to make."""
_LOOK: Final = DESCRIBE_CLUSTER
_MEDIA: Final = Media(offered=(JSON, PROMETHEUS), problems=PROBLEM)

NotReady = Callable[[], Awaitable[Mapping[str, str]]]
"""What keeps the node from doing its part; nothing: it is ready."""


def application(
    watched: Watched, not_ready: NotReady, address: Address, door: Doorkeeper = OPEN_DOOR
) -> AsgiApplication:
    return Application(routes(watched, not_ready), address, Manners(media=_MEDIA, doorkeeper=door, limits=LIMITS))


def routes(watched: Watched, not_ready: NotReady) -> tuple[Route, ...]:
    async def metrics(call: Call) -> Stream:
        return Stream(_metrics(watched), PROMETHEUS)

    async def alive(call: Call) -> Answer:
        return Answer({"status": "alive"}, media_type=JSON)

    async def ready(call: Call) -> Answer:
        reasons = await not_ready()
        if not reasons:
            return Answer({"status": "ready"}, media_type=JSON)
        return Answer({"status": "not ready", "reasons": reasons}, 503, JSON)

    async def version(call: Call) -> Answer:
        return Answer(_version(watched), media_type=JSON)

    return (
        Route("GET", "/metrics", metrics, "Metrics in Prometheus' text format, under Kafka's names.", needs=_LOOK),
        Route("GET", "/healthz", alive, "200 while the node runs."),
        Route("GET", "/readyz", ready, "200 when the node can do its part; else 503 and what is missing."),
        Route("GET", "/version", version, "What runs here.", needs=_LOOK),
    )


async def _metrics(watched: Watched) -> AsyncIterator[bytes]:
    broker = watched.broker
    ends = {} if broker is None else await ends_elsewhere(broker.services, watched.peers, watched.max_partitions)
    gathered: list[bytes] = []
    size = 0
    for piece in scrape.pieces(watched, ends):
        gathered.append(piece.encode())
        size += len(piece)
        if size < _AT_ONCE:
            await asyncio.sleep(0)
            continue
        yield b"".join(gathered)
        gathered, size = [], 0
    if gathered:
        yield b"".join(gathered)


def _version(watched: Watched) -> dict[str, Any]:
    return {
        "version": __version__,
        "kafka": "4.3",
        "python": platform.python_version(),
        "cluster_id": watched.control_plane.image.cluster_id,
        "node_id": watched.node_id,
    }
