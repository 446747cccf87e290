"""AlterReplicaLogDirs: replicas of this broker are to lie in other log directories (KIP-113).

Versions 1 and 2. 2 is flexible. The answer comes at once: DescribeLogDirs tells how far each move is.
"""

from collections import defaultdict

from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.model.ids import TopicPartition
from ottla.protocol.messages import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse


def handle(
    services: Services, session: Session, request: AlterReplicaLogDirsRequest, version: int
) -> AlterReplicaLogDirsResponse:
    kind = AlterReplicaLogDirsResponse
    wanted = {
        TopicPartition(topic.name, partition): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for partition in topic.partitions
    }
    topics: defaultdict[str, list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult]] = defaultdict(list)
    for name, path in wanted.items():
        error = services.moves.alter(name, path)
        topics[name.topic].append(kind.AlterReplicaLogDirPartitionResult(name.partition, error))
    return kind(results=[kind.AlterReplicaLogDirTopicResult(name, found) for name, found in topics.items()])
