"""From settings to the options of each part: every limit of a node is named here once."""

import logging
import resource
from collections.abc import Mapping, Sequence

from ottla.broker.coordination.verification import Backoff
from ottla.broker.front.admission import UNLIMITED, Admission, Doors, Limits
from ottla.broker.front.server import SocketOptions
from ottla.broker.quotas.clients import ClientQuotas, Windows
from ottla.broker.quotas.connections import ConnectionRates, CreationRates
from ottla.broker.services import Limits as RequestLimits
from ottla.model.ids import Millis
from ottla.model.properties import Listener, Settings
from ottla.node.hosts import address_in

_DESCRIPTORS_KEPT_FREE = 256
_FRAME_OVERHEAD = 1 << 20
_DEFAULT_OPEN_FILES = 1024
_FEWEST = 64
"""Connections, and segments kept open: with fewer a node is of no use."""
_LEAST_DESCRIPTORS = 256
"""Room for so many of both, and for indexes, checkpoints, segments being sent and connections to other nodes."""


logger = logging.getLogger(__name__)


class TooFewDescriptors(Exception):
    """The process may open so few files that its storage would fail sooner or later."""


def check_descriptors() -> None:
    if _descriptors() < _LEAST_DESCRIPTORS:
        raise TooFewDescriptors(
            f"the process may open {_descriptors()} files (ulimit -n), {_LEAST_DESCRIPTORS} at least are needed. Raise "
            "the limit; with 10000 or more it is of no concern."
        )


def doors(settings: Settings) -> Doors:
    most = _connections_with_descriptors(settings)
    if most < settings.get_int("max.connections"):
        logger.warning("%d connections at most: the process may open no more files (ulimit -n)", most)
    return Doors(_door(settings), _door(settings))


def _door(settings: Settings) -> Admission:
    door = Admission(connection_limits(settings, {}), ConnectionRates(*_windows(settings, "quota")))
    door.rates.limits = creation_rates(settings)
    return door


def creation_rates(settings: Settings) -> CreationRates:
    name = "max.connection.creation.rate"
    node, listeners = settings.get_int(name), [listener.name for listener in settings.listeners]
    own = {each: settings.for_listener(each, name) for each in listeners}
    return CreationRates(
        node=None if node >= UNLIMITED else node,
        listeners={each: rate for each, rate in own.items() if isinstance(rate, int) and rate != node},
        protected=settings.inter_broker_listener if len(settings.broker_listeners) > 1 else "",
    )


def client_quotas(settings: Settings) -> ClientQuotas:
    return ClientQuotas(
        _windows(settings, "quota"),
        _windows(settings, "controller.quota"),
        limit=settings.get_int("ottla.quota.buckets.max"),
    )


def _windows(settings: Settings, prefix: str) -> Windows:
    return Windows(settings.get_int(f"{prefix}.window.num"), 1000 * settings.get_int(f"{prefix}.window.size.seconds"))


def connection_limits(settings: Settings, hosts: Mapping[str, Sequence[str]]) -> Limits:
    """`hosts`: the addresses of those that limits name."""
    per_listener = {
        listener.name: settings.for_listener(listener.name, "max.connections") for listener in settings.listeners
    }
    return Limits(
        total=min(settings.get_int("max.connections"), _connections_with_descriptors(settings)),
        per_address=settings.get_int("max.connections.per.ip"),
        addresses=_addresses(settings.connection_overrides, hosts),
        listeners={name: most for name, most in per_listener.items() if isinstance(most, int)},
        rate_per_address=settings.get_int("ottla.connection.creation.rate.per.ip") or UNLIMITED,
    )


def _addresses(limits: Mapping[str, int], hosts: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Hosts may be named; connections come from addresses. One that is written down beats what a name stands for."""
    named = {address: limits[host] for host, addresses in hosts.items() if host in limits for address in addresses}
    written = {address: most for host, most in limits.items() if (address := address_in(host)) is not None}
    return {**named, **written}


def hosts_of_limits(settings: Settings) -> tuple[str, ...]:
    """Those that have to be looked up."""
    return tuple(host for host in settings.connection_overrides if address_in(host) is None)


def _connections_with_descriptors(settings: Settings) -> int:
    """A node that runs out of descriptors fails in its storage: connections get what segments leave."""
    return max(_FEWEST, _descriptors() - open_files(settings) - _DESCRIPTORS_KEPT_FREE)


def _descriptors() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> None:
    """To what the system allows, as a JVM does: the usual 1,024 are for programs that talk to a few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError) as error:
        logger.warning("no more than %d files can be open: %s", soft, error)


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
        handshake=Millis(settings.get_int("ottla.tls.handshake.timeout.ms")),
        half_open_handshakes=settings.get_int("ottla.tls.half.open.handshakes.max"),
        listeners=settings.listeners,
    )


def limits(settings: Settings) -> RequestLimits:
    return RequestLimits(
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
        return min(asked, _descriptors() - _LEAST_DESCRIPTORS + _FEWEST)
    room = _descriptors() - settings.get_int("max.connections") - _DESCRIPTORS_KEPT_FREE
    return max(_FEWEST, min(_DEFAULT_OPEN_FILES, room))


def advertised(settings: Settings, taken: dict[str, int]) -> tuple[Listener, ...]:
    """The advertised listeners, with the ports that were really taken (by listener) where the file says 0."""
    return tuple(
        listener._replace(port=listener.port or taken.get(listener.name, 0))
        for listener in settings.advertised_listeners
    )
