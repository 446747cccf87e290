"""From settings to the options of each part: every limit of a node is named here once."""

import resource

from ottla.broker.admission import Admission
from ottla.broker.server import SocketOptions
from ottla.broker.services import Limits
from ottla.broker.verification import Backoff
from ottla.model.ids import Millis
from ottla.model.properties import Listener, Settings

_DESCRIPTORS_KEPT_FREE = 256
_FRAME_OVERHEAD = 1 << 20
_DEFAULT_OPEN_FILES = 1024


def admission(settings: Settings) -> Admission:
    return Admission(
        settings.get_int("max.connections"),
        settings.get_int("max.connections.per.ip"),
        settings.get_int("ottla.connection.creation.rate.per.ip"),
    )


def _max_frame(settings: Settings) -> int:
    """A file that raises message.max.bytes alone would work with Kafka's 100 MiB frames: it works here too."""
    limit = settings.get_int("socket.request.max.bytes")
    if "socket.request.max.bytes" in settings.given:
        return limit
    return max(limit, settings.get_int("message.max.bytes") + _FRAME_OVERHEAD)


def options(settings: Settings) -> SocketOptions:
    return SocketOptions(
        max_frame_bytes=_max_frame(settings),
        backlog=settings.get_int("socket.listen.backlog.size"),
        send_buffer_bytes=settings.get_int("socket.send.buffer.bytes"),
        receive_buffer_bytes=settings.get_int("socket.receive.buffer.bytes"),
        idle=Millis(settings.get_int("connections.max.idle.ms")),
        slow_peer=Millis(settings.get_int("ottla.slow.peer.timeout.ms")),
    )


def limits(settings: Settings) -> Limits:
    return Limits(
        max_in_flight=settings.get_int("ottla.max.in.flight.requests.per.connection"),
        max_unsent_bytes=settings.get_int("ottla.write.buffer.bytes"),
        fetch_max_bytes=settings.get_int("fetch.max.bytes"),
        partitions_per_response=settings.get_int("max.request.partition.size.limit"),
    )


def verification_backoff(settings: Settings) -> Backoff:
    return Backoff(
        settings.get_int("add.partitions.to.txn.retry.backoff.ms"),
        settings.get_int("add.partitions.to.txn.retry.backoff.max.ms"),
    )


def open_files(settings: Settings) -> int:
    """Segments kept open: what the process may have, less what connections and the rest need."""
    asked = settings.get_int("ottla.open.files.max")
    if asked > 0:
        return asked
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    room = allowed - settings.get_int("max.connections") - _DESCRIPTORS_KEPT_FREE
    return max(64, min(_DEFAULT_OPEN_FILES, room))


def advertised(settings: Settings, taken: dict[str, int]) -> tuple[Listener, ...]:
    """The advertised listeners, with the ports that were really taken (by listener) where the file says 0."""
    return tuple(
        listener._replace(port=listener.port or taken.get(listener.name, 0))
        for listener in settings.advertised_listeners
    )
