"""DescribeQuorum (KIP-595, KIP-853), answered from the core."""

from typing import Final

from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol import messages
from ottla.raft.core import Quorum
from ottla.raft.roles import Leader, Replica
from ottla.raft.wire import TOPIC

_NEVER: Final = -1


def describe_quorum(
    quorum: Quorum, request: "messages.DescribeQuorumRequest", *, now: Millis, wall_clock: Millis
) -> "messages.DescribeQuorumResponse":
    """`now` is the time the core is given, `wall_clock` what the answer is written in."""
    kind = messages.DescribeQuorumResponse
    asked = [(t.topic_name, p.partition_index) for t in request.topics for p in t.partitions]
    if asked != [(TOPIC, 0)]:
        return _refused(request, Errors.UNKNOWN_TOPIC_OR_PARTITION)
    role = quorum.role
    if not isinstance(role, Leader):
        return _refused(request, Errors.NOT_LEADER_OR_FOLLOWER)
    shift = wall_clock - now
    own = (quorum.log.end_offset, wall_clock, wall_clock)
    voters = [
        _state(voter.id, voter.directory_id, *(own if voter.id == quorum.local.id else _facts(replica, shift)))
        for voter in quorum.voters.voters
        for replica in [role.replicas.get(voter.id)]
    ]
    observers = sorted(role.observers.values(), key=lambda r: (r.key.id, r.key.directory_id))
    partition = kind.PartitionData(
        partition_index=0,
        leader_id=quorum.local.id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=voters,
        observers=[_state(r.key.id, r.key.directory_id, *_facts(r, shift)) for r in observers],
    )
    nodes = [
        kind.Node(
            node_id=voter.id,
            listeners=[kind.Listener(name=e.name, host=e.host, port=e.port) for e in voter.endpoints],
        )
        for voter in quorum.voters.voters
    ]
    return kind(topics=[kind.TopicData(topic_name=TOPIC, partitions=[partition])], nodes=nodes)


def _facts(replica: Replica | None, shift: int) -> tuple[int, int, int]:
    if replica is None:
        return _NEVER, _NEVER, _NEVER
    fetched = replica.fetched_at + shift if replica.fetched_at >= 0 else _NEVER
    caught_up = replica.caught_up_at + shift if replica.caught_up_at >= 0 else _NEVER
    return replica.end_offset, fetched, caught_up


def _state(
    node_id: int, directory_id: bytes, end: int, fetched: int, caught_up: int
) -> "messages.DescribeQuorumResponse.ReplicaState":
    return messages.DescribeQuorumResponse.ReplicaState(
        replica_id=node_id,
        replica_directory_id=directory_id,
        log_end_offset=end,
        last_fetch_timestamp=fetched,
        last_caught_up_timestamp=caught_up,
    )


def _refused(request: "messages.DescribeQuorumRequest", error: Errors) -> "messages.DescribeQuorumResponse":
    kind = messages.DescribeQuorumResponse
    return kind(
        topics=[
            kind.TopicData(
                topic_name=topic.topic_name,
                partitions=[
                    kind.PartitionData(partition_index=p.partition_index, error_code=error, error_message=error.text)
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
