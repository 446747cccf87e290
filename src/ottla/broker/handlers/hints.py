"""Where a partition really is, for clients who asked the wrong broker (KIP-951)."""

from typing import NamedTuple

from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.metadata.image import TopicImage
from ottla.model.errors import Errors
from ottla.model.ids import Uuid


class LeaderHint(NamedTuple):
    leader_id: int
    leader_epoch: int
    host: str
    port: int
    rack: str | None
    has_endpoint: bool
    """False if the leader has no address on the listener the client came by."""


def topic_in_image(services: Services, topic: str | bytes) -> TopicImage | None:
    """By name, or by id."""
    image = services.control_plane.image
    return image.topics_by_id.get(Uuid(topic)) if isinstance(topic, bytes) else image.topics.get(topic)


def absent_error(services: Services, topic: str | bytes, index: int) -> Errors:
    """For a partition that has no replica here."""
    known = topic_in_image(services, topic)
    if known is None:
        return Errors.UNKNOWN_TOPIC_ID if isinstance(topic, bytes) else Errors.UNKNOWN_TOPIC_OR_PARTITION
    return Errors.NOT_LEADER_OR_FOLLOWER if index in known.partitions else Errors.UNKNOWN_TOPIC_OR_PARTITION


def leader_hint(services: Services, session: Session, topic: str | bytes, index: int) -> LeaderHint | None:
    known = topic_in_image(services, topic)
    placed = known.partitions.get(index) if known is not None else None
    if placed is None or placed.leader < 0:
        return None
    broker = services.control_plane.image.brokers.get(placed.leader)
    endpoint = broker.listener(session.client.listener) if broker is not None else None
    if broker is None or endpoint is None:
        return LeaderHint(placed.leader, placed.leader_epoch, "", -1, None, False)
    return LeaderHint(placed.leader, placed.leader_epoch, endpoint.host, endpoint.port, broker.rack, True)
