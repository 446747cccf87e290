"""DescribeLogDirs: which directory holds what, and how full it is.

Versions 1 to 5. 2 is flexible; 3 has an error for the whole (KIP-784); 4 tells the size of the volume (KIP-827); 5
whether a directory is cordoned (KIP-1066), which none is here.
"""

from collections import defaultdict
from typing import TypeAlias

from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse
from ottla.storage.directory import LogDirectory

Result: TypeAlias = DescribeLogDirsResponse.DescribeLogDirsResult


def handle(
    services: Services, session: Session, request: DescribeLogDirsRequest, version: int
) -> DescribeLogDirsResponse:
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, partition) for topic in request.topics for partition in topic.partitions}
    return DescribeLogDirsResponse(
        results=[_describe(services, directory, wanted) for directory in services.replicas.directories]
    )


def _describe(services: Services, directory: LogDirectory, wanted: set[tuple[str, int]] | None) -> Result:
    if not directory.is_online:
        return Result(error_code=Errors.KAFKA_STORAGE_ERROR, log_dir=directory.path)
    topics: defaultdict[str, list[DescribeLogDirsResponse.DescribeLogDirsPartition]] = defaultdict(list)
    for partition in services.replicas.all():
        log = partition.log
        if log is None or partition.directory is not directory:
            continue
        if wanted is None or (partition.topic, partition.index) in wanted:
            topics[partition.topic].append(
                DescribeLogDirsResponse.DescribeLogDirsPartition(
                    partition_index=partition.index, partition_size=log.size, offset_lag=0, is_future_key=False
                )
            )
    usable, total = directory.space()
    return Result(
        error_code=Errors.NONE,
        log_dir=directory.path,
        topics=[
            DescribeLogDirsResponse.DescribeLogDirsTopic(name=name, partitions=found) for name, found in topics.items()
        ],
        total_bytes=total,
        usable_bytes=usable,
    )
