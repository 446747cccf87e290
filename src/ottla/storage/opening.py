"""Making a log: a new one, or that of files which lie there already."""

from ottla.model.ids import TopicPartition
from ottla.storage import names, recovery
from ottla.storage.checkpoints import CorruptCheckpoint, decode_partition_metadata
from ottla.storage.config import LogConfig
from ottla.storage.epochs import LeaderEpochs
from ottla.storage.fs import CorruptLog, Filesystem, Latch, parent
from ottla.storage.log import Log
from ottla.storage.producer_state import ProducerStates
from ottla.storage.segment import OpenFiles, Segment


def open_log(
    files: OpenFiles | Filesystem,
    path: str,
    topic_partition: TopicPartition,
    topic_id: bytes | None,
    config: LogConfig,
    *,
    now: int,
    clean: bool,
    recovery_point: int,
    log_start_offset: int,
    latch: Latch | None = None,
) -> Log:
    """Raises CorruptLog if committed data is damaged, StorageError if the disk fails."""
    files = files if isinstance(files, OpenFiles) else OpenFiles(files)
    latch = latch or Latch(parent(path))
    try:
        stored = _stored_topic_id(files.fs, path)
        if stored is not None and topic_id is not None and stored != topic_id:
            raise CorruptLog(path, "partition.metadata names another topic id")
        loaded = recovery.load(
            files, path, config, now=now, clean=clean, recovery_point=recovery_point, log_start_offset=log_start_offset
        )
        log = Log(
            files,
            latch,
            path,
            topic_partition=topic_partition,
            topic_id=stored or topic_id,
            config=config,
            loaded=loaded,
        )
        if stored is None and topic_id is not None:
            log.chain.write_topic_id(topic_id)
    except OSError as error:
        latch.fail(f"cannot open {path}", error)
    return log


def create_log(
    files: OpenFiles | Filesystem,
    path: str,
    topic_partition: TopicPartition,
    topic_id: bytes | None,
    config: LogConfig,
    *,
    now: int,
    log_start_offset: int = 0,
    latch: Latch | None = None,
) -> Log:
    files = files if isinstance(files, OpenFiles) else OpenFiles(files)
    latch = latch or Latch(parent(path))
    latch.check()
    try:
        files.fs.mkdir(path)
        loaded = recovery.Loaded(
            segments=[Segment.create(files, path, log_start_offset, now)],
            snapshots=[],
            epochs=LeaderEpochs(files.fs, path),
            producers=ProducerStates(log_start_offset),
            log_start_offset=log_start_offset,
            log_end_offset=log_start_offset,
            recovery_point=log_start_offset,
        )
        log = Log(files, latch, path, topic_partition=topic_partition, topic_id=topic_id, config=config, loaded=loaded)
        if topic_id is not None:
            log.chain.write_topic_id(topic_id)
        log.chain.unsynced += [path, parent(path)]
    except OSError as error:
        latch.fail(f"cannot create {path}", error)
    return log


def _stored_topic_id(fs: Filesystem, path: str) -> bytes | None:
    try:
        return decode_partition_metadata(fs.read(f"{path}/{names.PARTITION_METADATA}"))
    except (FileNotFoundError, CorruptCheckpoint):
        return None
