"""DescribeQuorum (KIP-595, KIP-853), answered from the core."""

from typing import Final

from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol import messages
from ottla.raft.core import Leader, Quorum

TOPIC: Final = "__cluster_metadata"


def describe_quorum(
    quorum: Quorum, request: "messages.DescribeQuorumRequest", *, log_end_offset: int, now: Millis
) -> "messages.DescribeQuorumResponse":
    kind = messages.DescribeQuorumResponse
    asked = [(t.topic_name, p.partition_index) for t in request.topics for p in t.partitions]
    if asked != [(TOPIC, 0)]:
        return _refused(request, Errors.UNKNOWN_TOPIC_OR_PARTITION)
    if not isinstance(quorum.role, Leader):
        return _refused(request, Errors.NOT_LEADER_OR_FOLLOWER)
    voters = [
        kind.ReplicaState(
            replica_id=voter.id,
            replica_directory_id=voter.directory_id,
            log_end_offset=log_end_offset if voter.id == quorum.local.id else -1,
            last_fetch_timestamp=now if voter.id == quorum.local.id else -1,
            last_caught_up_timestamp=now if voter.id == quorum.local.id else -1,
        )
        for voter in quorum.voters.voters
    ]
    partition = kind.PartitionData(
        partition_index=0,
        leader_id=quorum.local.id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=voters,
        observers=[],
    )
    nodes = [
        kind.Node(
            node_id=voter.id,
            listeners=[kind.Listener(name=e.name, host=e.host, port=e.port) for e in voter.endpoints],
        )
        for voter in quorum.voters.voters
    ]
    return kind(topics=[kind.TopicData(topic_name=TOPIC, partitions=[partition])], nodes=nodes)


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
