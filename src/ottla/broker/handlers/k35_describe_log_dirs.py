"""DescribeLogDirs: which directory holds what, how full it is, and how far the logs are that move there (KIP-113).

Versions 1 to 5. 2 is flexible; 3 has an error for the whole (KIP-784); 4 tells the size of the volume (KIP-827); 5
whether a directory is cordoned (KIP-1066), which none is here.
"""

from collections import defaultdict
from typing import Final, TypeAlias

from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse
from ottla.storage.directory import LogDirectory
from ottla.storage.log import Log

Result: TypeAlias = DescribeLogDirsResponse.DescribeLogDirsResult
Described: TypeAlias = DescribeLogDirsResponse.DescribeLogDirsPartition

_NOBODY_KNOWS: Final = -1


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
        return Result(error_code=Errors.KAFKA_STORAGE_ERROR, log_dir=directory.absolute_path)
    topics: defaultdict[str, list[Described]] = defaultdict(list)
    for partition in services.replicas.all():
        log = partition.log
        if log is None or partition.directory is not directory:
            continue
        if wanted is None or (partition.topic, partition.index) in wanted:
            topics[partition.topic].append(
                Described(
                    partition_index=partition.index,
                    partition_size=log.size,
                    offset_lag=max(0, partition.high_watermark - log.log_end_offset),
                )
            )
    for name, future in directory.futures.items():
        if wanted is None or name in wanted:
            topics[name.topic].append(
                Described(
                    partition_index=name.partition,
                    partition_size=future.size,
                    offset_lag=_lag(services, name, future),
                    is_future_key=True,
                )
            )
    usable, total = directory.space()
    return Result(
        error_code=Errors.NONE,
        log_dir=directory.absolute_path,
        topics=[
            DescribeLogDirsResponse.DescribeLogDirsTopic(name=name, partitions=found) for name, found in topics.items()
        ],
        total_bytes=total,
        usable_bytes=usable,
    )


def _lag(services: Services, name: TopicPartition, future: Log) -> int:
    """Behind the log that it is a copy of."""
    partition = services.replicas.find(*name)
    if partition is None or partition.log is None:
        return _NOBODY_KNOWS
    return partition.log.log_end_offset - future.log_end_offset
