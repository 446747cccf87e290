"""The control plane: the controller's view of the cluster, and this node's part in the quorum."""

from collections.abc import Iterator

from ottla.metadata.image import MetadataImage
from ottla.metrics import names
from ottla.metrics.text import SLICE, labels, one, some
from ottla.node.monitoring.watched import QUORUM, Watched, quorum_totals
from ottla.runtime.raft_driver import LANES


def pieces(watched: Watched) -> Iterator[str]:
    if watched.settings.is_controller:
        yield from _controller(watched)
    yield from _raft(watched)


def _controller(watched: Watched) -> Iterator[str]:
    control_plane, image = watched.control_plane, watched.control_plane.image
    offline = imbalanced = partitions = 0
    for topic in image.topics.values():
        for placed in topic.partitions.values():
            partitions += 1
            if placed.leader < 0:
                offline += 1
            elif placed.leader != placed.replicas[0]:
                imbalanced += 1
            if partitions % SLICE == 0:
                yield ""
    fenced = sum(broker.fenced for broker in image.brokers.values())
    yield "".join(
        [
            one(names.ACTIVE_CONTROLLERS, int(control_plane.is_active)),
            one(names.OFFLINE_PARTITIONS, offline),
            one(names.IMBALANCED, imbalanced + offline),
            one(names.FENCED_BROKERS, fenced),
            one(names.ACTIVE_BROKERS, len(image.brokers) - fenced),
            one(names.GLOBAL_TOPICS, len(image.topics)),
            one(names.GLOBAL_PARTITIONS, partitions),
            one(names.APPLIED_OFFSET, image.offset),
            one(names.COMMITTED_OFFSET, control_plane.raft.high_watermark - 1),
            one(names.UNCLEAN_ELECTIONS, watched.elections.unclean),
        ]
    )


def _raft(watched: Watched) -> Iterator[str]:
    driver, image = watched.control_plane.raft, watched.control_plane.image
    quorum, counts = driver.quorum, driver.counts
    role = quorum.role
    state = type(role).__name__.lower() if quorum.is_voter else "observer"
    voted = getattr(role, "voted", None)
    vote = quorum.local.id if state in ("leader", "candidate") else -1 if voted is None else voted.id
    late = watched.of_late(QUORUM, quorum_totals(counts))
    lanes = [traffic for lane, traffic in watched.peers.traffic.items() if lane in LANES]
    yield "".join(
        [
            some(names.RAFT_STATE, [(labels(current_state=state), 1)]),
            one(names.RAFT_LEADER, quorum.leader_id),
            one(names.RAFT_EPOCH, quorum.epoch),
            one(names.RAFT_VOTE, vote),
            one(names.RAFT_HIGH_WATERMARK, quorum.high_watermark),
            one(names.RAFT_LOG_END, driver.metadata_log.end_offset),
            one(names.RAFT_LOG_END_EPOCH, driver.metadata_log.log.latest_epoch),
            one(names.RAFT_COMMIT_AVG, round(late.share(2, 3), 3)),
            one(names.RAFT_COMMIT_MAX, counts.commit_ms_max),
            one(names.RAFT_APPEND_RATE, round(late.per_second(0), 3)),
            one(names.RAFT_FETCH_RATE, round(late.per_second(1), 3)),
            one(names.RAFT_VOTERS, len(quorum.voters.voters)),
            one(names.RAFT_BYTES_IN, sum(each.received for each in lanes)),
            one(names.RAFT_BYTES_OUT, sum(each.sent for each in lanes)),
            one(names.RAFT_REQUESTS, counts.requests),
            one(names.RAFT_RESPONSES, counts.responses),
            one(names.METADATA_OFFSET, image.offset),
            one(names.METADATA_TIMESTAMP, image.timestamp),
        ]
    )


def exported(watched: Watched) -> str:
    """kafka_exporter's view of the brokers, told by the active controller."""
    if not watched.control_plane.is_active:
        return ""
    image = watched.control_plane.image
    alive = [broker for broker in image.brokers.values() if not broker.fenced]
    return one(names.BROKERS, len(alive)) + some(
        names.BROKER_INFO, [(labels(id=broker.id, address=_address(image, broker.id)), 1) for broker in alive]
    )


def _address(image: MetadataImage, broker_id: int) -> str:
    endpoints = image.brokers[broker_id].listeners
    return f"{endpoints[0].host}:{endpoints[0].port}" if endpoints else ""
