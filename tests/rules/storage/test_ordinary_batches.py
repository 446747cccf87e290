"""Ordinary batches are admitted, written and settled, in three steps. The log is the same as by the long way."""

import errno
from collections.abc import Callable
from random import Random

import pytest

from ottla.protocol import batch as b
from ottla.protocol.messages import ProduceRequest
from ottla.protocol.ordinary_produce import DECODERS, OrdinaryProduce
from ottla.storage import ordinary
from ottla.storage.config import CODECS, LogConfig
from ottla.storage.fs import StorageError
from ottla.storage.leading import append_as_leader
from ottla.storage.log import Log
from ottla.storage.ordinary import Admitted, settle, withdraw_each, write_each
from ottla.testing.disk import SimDisk
from tests.rules.storage.scene import NOW, a_batch, accepted, append, created, everything, values

SMALL = LogConfig(segment_bytes=4000, index_interval_bytes=150, segment_ms=50_000)


def admit(log: Log, batch: bytearray, now: int = NOW, leader_epoch: int = 0) -> Admitted | None:
    """Through the front door: as the one batch of a request. Whatever cannot even be read there is not admitted."""
    request = ProduceRequest(
        acks=-1,
        topic_data=[ProduceRequest.TopicProduceData(partition_data=[ProduceRequest.PartitionProduceData(0, batch)])],
    )
    frame = memoryview(bytearray(request.encode(13)))
    read, end = DECODERS[13](frame, 0)
    assert end == len(frame)
    if not isinstance(read, OrdinaryProduce):
        return None
    (((view, header),),) = (batches for _, batches in read.topics)
    before = bytes(view)
    admitted = ordinary.admit(log, view, header, leader_epoch, now)
    assert admitted is not None or bytes(view) == before
    return admitted


def three_steps(log: Log, batch: bytearray, now: int = NOW) -> bool:
    """Whether the batch was ordinary."""
    admitted = admit(log, batch, now)
    if admitted is None:
        return False
    assert write_each({log: admitted}) is None
    assert settle(log, admitted) == log.log_end_offset - b.read_header(batch).record_count
    return True


def warm(log: Log) -> Log:
    """With two batches of producer 5: from now on its batches are ordinary."""
    append(log, b"a", producer=(5, 0, 0))
    append(log, b"b", producer=(5, 0, 1))
    return log


def a_life(seed: int) -> list[bytearray]:
    """Batches of two idempotent producers and one that is not, some of them sent twice, over several segments."""
    random = Random(seed)
    next_sequence = {7: 0, 8: 0}
    batches: list[bytearray] = []
    for number in range(120):
        payload = [b"%d" % number * random.randint(1, 60) for _ in range(random.randint(1, 4))]
        producer = random.choice([-1, 7, 8])
        who = (-1, -1, -1) if producer < 0 else (producer, 0, next_sequence[producer])
        batches.append(a_batch(*payload, at=NOW + number * 1000 + random.randint(-2000, 0), producer=who))
        if producer >= 0:
            next_sequence[producer] += len(payload)
        if random.random() < 0.1:
            batches.append(bytearray(batches[-1]))
    return batches


@pytest.mark.parametrize("seed", range(5))
def test_the_log_is_the_same_whichever_way_its_batches_came(seed: int) -> None:
    short_disk, long_disk = SimDisk(), SimDisk()
    short, long = created(short_disk, SMALL), created(long_disk, SMALL)
    ordinary = 0
    for number, batch in enumerate(a_life(seed)):
        now = NOW + number * 1000
        accepted(append_as_leader(long, bytearray(batch), 0, now))
        if three_steps(short, batch, now):
            ordinary += 1
        else:
            accepted(append_as_leader(short, batch, 0, now))
    assert ordinary > 40
    assert len(short.segments) > 3
    assert short.producers.producers == long.producers.producers
    for log in (short, long):
        log.close()
    assert everything(short_disk) == everything(long_disk)


@pytest.mark.parametrize("codec", CODECS.values(), ids=list(CODECS))
def test_a_batch_of_any_codec_is_ordinary(codec: int) -> None:
    assert three_steps(warm(created()), a_batch(b"c", producer=(5, 0, 2), codec=codec))


def patched(position: int, data: bytes) -> Callable[[bytearray], None]:
    def patch(batch: bytearray) -> None:
        batch[position : position + len(data)] = data
        b.seal(batch)

    return patch


def spoil(batch: bytearray) -> None:
    batch[-1] ^= 1


@pytest.mark.parametrize(
    "change",
    [
        spoil,
        lambda batch: batch.append(0),
        lambda batch: batch.pop(),
        lambda batch: batch.__delitem__(slice(60, None)),
        patched(b.MAGIC_OFFSET, b"\x01"),
        patched(0, (1).to_bytes(8, "big")),
        patched(b.CRC_START, b.CONTROL.to_bytes(2, "big")),
        patched(b.CRC_START, b.TRANSACTIONAL.to_bytes(2, "big")),
        patched(b.CRC_START, b.LOG_APPEND_TIME.to_bytes(2, "big")),
        patched(b.CRC_START, (7).to_bytes(2, "big")),
        patched(23, (5).to_bytes(4, "big")),
        patched(35, (NOW + 3_600_001).to_bytes(8, "big")),
        patched(43, (6).to_bytes(8, "big")),
        patched(51, (1).to_bytes(2, "big")),
        patched(53, (1).to_bytes(4, "big")),
        patched(53, (3).to_bytes(4, "big")),
        patched(57, (0).to_bytes(4, "big")),
    ],
    ids=[
        "crc", "longer", "shorter", "no header", "magic", "base offset", "control", "transactional", "append time",
        "codec", "offsets", "future", "unknown producer", "another epoch", "duplicate", "gap", "count",
    ],
)  # fmt: skip
def test_what_is_out_of_the_ordinary_changes_nothing(change: Callable[[bytearray], None]) -> None:
    disk = SimDisk()
    log = warm(created(disk))
    batch = a_batch(b"c", producer=(5, 0, 2))
    change(batch)
    before = everything(disk)
    assert admit(log, batch) is None
    assert (everything(disk), log.log_end_offset) == (before, 2)


@pytest.mark.parametrize(
    "config",
    [
        LogConfig(max_message_bytes=70),
        LogConfig(cleanup_policy=("compact",)),
        LogConfig(message_timestamp_type="LogAppendTime"),
        LogConfig(compression_type="gzip"),
        LogConfig(segment_bytes=160),
    ],
)
def test_a_new_configuration_counts_from_the_next_batch_on(config: LogConfig) -> None:
    log = warm(created())
    assert three_steps(log, a_batch(b"c", producer=(5, 0, 2)))
    log.update_config(config)
    assert admit(log, a_batch(b"d", producer=(5, 0, 3))) is None


def test_a_new_leader_epoch_is_out_of_the_ordinary() -> None:
    assert admit(warm(created()), a_batch(b"c", producer=(5, 0, 2)), leader_epoch=1) is None


def test_a_batch_that_is_withdrawn_is_as_it_came() -> None:
    log = warm(created())
    batch = a_batch(b"c", producer=(5, 0, 2))
    admitted = admit(log, batch)
    assert admitted is not None
    assert bytes(admitted[1]) != bytes(batch)
    withdraw_each({log: admitted})
    assert (bytes(admitted[1]), log.log_end_offset) == (bytes(batch), 2)


def test_a_truncated_log_goes_on_where_it_was_cut() -> None:
    log = warm(created())
    assert three_steps(log, a_batch(b"c", producer=(5, 0, 2)))
    log.truncate_to(1, NOW)
    accepted(append_as_leader(log, a_batch(b"x"), 0, NOW))
    assert three_steps(log, a_batch(b"y"))
    assert values(log) == [b"a", b"x", b"y"]


def test_a_disk_without_room_leaves_the_log_as_it_was() -> None:
    disk = SimDisk()
    log = warm(created(disk))
    before = everything(disk)
    admitted = admit(log, a_batch(b"c" * 100, producer=(5, 0, 2)))
    assert admitted is not None
    disk.room = disk.used + 50
    failure = write_each({log: admitted})
    assert failure is not None
    assert failure[0] is log
    with pytest.raises(StorageError) as raised:
        log.append_failed(failure[1])
    assert (raised.value.errno, log.is_online) == (errno.ENOSPC, True)
    assert (everything(disk), log.log_end_offset) == (before, 2)
    disk.room = None
    assert three_steps(log, a_batch(b"c", producer=(5, 0, 2)))
    assert values(log) == [b"a", b"b", b"c"]
