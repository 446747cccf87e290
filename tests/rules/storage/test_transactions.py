"""Open and ended transactions: last stable offset, transaction index, markers."""

import pytest

from ottla.model.errors import Errors
from ottla.protocol import batch as b
from ottla.storage.answers import COORDINATOR, Appended, Rejected
from ottla.storage.index import AbortedTxn
from ottla.storage.leading import append_as_leader, append_end
from ottla.storage.log import Log
from ottla.storage.marker import Marker
from ottla.storage.reading import aborted_transactions
from ottla.storage.retention import delete_records_before
from ottla.testing.disk import SimDisk
from tests.rules.storage.scene import NOW, a_batch, a_marker, accepted, append, created, everything, rejected, reopened


def write(log: Log, producer_id: int, sequence: int, *, epoch: int = 0) -> Appended | Rejected:
    batch = a_batch(b"v", producer=(producer_id, epoch, sequence), attributes=b.TRANSACTIONAL)
    return append_as_leader(log, batch, 0, NOW)


def end(
    log: Log, producer_id: int, *, commit: bool, epoch: int = 0, coordinator_epoch: int = 0, version: int = 0
) -> Appended | Rejected:
    marker = a_marker(producer_id, epoch, commit=commit, coordinator_epoch=coordinator_epoch)
    return append_as_leader(log, marker, 0, NOW, origin=COORDINATOR, transaction_version=version)


def stability(log: Log) -> tuple[int | None, int]:
    """First unstable offset, and last stable offset once everything is replicated."""
    return log.producers.first_ongoing, log.last_stable_offset(log.log_end_offset)


def test_the_log_is_stable_up_to_its_oldest_open_transaction() -> None:
    log = created()
    append(log, b"plain")
    assert stability(log) == (None, 1)
    write(log, 1, 0)
    write(log, 2, 0)
    assert stability(log) == (1, 1)
    end(log, 1, commit=True)
    assert stability(log) == (2, 2)
    end(log, 2, commit=False)
    assert stability(log) == (None, 5)


def test_an_ended_transaction_counts_as_open_until_its_marker_is_replicated() -> None:
    log = created()
    write(log, 1, 0)
    end(log, 1, commit=True)
    assert [log.last_stable_offset(high_watermark) for high_watermark in (0, 1, 2)] == [0, 0, 2]


def test_aborts_go_to_the_transaction_index_and_commits_do_not() -> None:
    log = created()
    write(log, 1, 0)
    write(log, 2, 0)
    write(log, 3, 0)
    end(log, 2, commit=True)
    end(log, 3, commit=False)
    end(log, 1, commit=False)
    assert log.active.aborted_txns() == [AbortedTxn(3, 2, 4, 0), AbortedTxn(1, 0, 5, 6)]
    assert aborted_transactions(log, 0, 6) == [(3, 2), (1, 0)]
    assert aborted_transactions(log, 5, 6) == [(1, 0)]
    assert aborted_transactions(log, 0, 1) == [(1, 0)]


def test_aborted_transactions_are_found_across_segments() -> None:
    log = created()
    write(log, 1, 0)
    log.roll(NOW)
    write(log, 1, 1)
    end(log, 1, commit=False)
    assert aborted_transactions(log, 0, 1) == [(1, 0)]
    assert aborted_transactions(log, 2, 3) == [(1, 0)]


def test_a_tv1_marker_keeps_the_window_and_the_sequence_runs_on() -> None:
    log = created()
    write(log, 1, 0)
    end(log, 1, commit=True)
    assert write(log, 1, 0) == Appended(0, 0, -1, 0, duplicate=True)
    assert write(log, 1, 1) == Appended(2, 2, -1, 0)


def test_a_tv2_marker_bumps_the_epoch_and_clears_the_window() -> None:
    log = created()
    write(log, 1, 0)
    accepted(end(log, 1, commit=True, epoch=1, version=2))
    assert rejected(write(log, 1, 0, epoch=0)).error is Errors.INVALID_PRODUCER_EPOCH
    assert rejected(write(log, 1, 1, epoch=1)).error is Errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert write(log, 1, 0, epoch=1) == Appended(2, 2, -1, 0)


def test_a_tv2_marker_must_exceed_the_epoch_unless_it_is_a_retry() -> None:
    log = created()
    write(log, 1, 0, epoch=3)
    assert rejected(end(log, 1, commit=True, epoch=3, version=2)).error is Errors.INVALID_PRODUCER_EPOCH
    accepted(end(log, 1, commit=True, epoch=4, version=2))
    accepted(end(log, 1, commit=True, epoch=4, version=2))
    assert rejected(end(log, 1, commit=True, epoch=3, version=2)).error is Errors.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(
    ("epoch", "version", "coordinator_epoch"), [(3, 0, 7), (4, 2, 7), (3, 2, 7), (2, 0, 7), (4, 2, 5)]
)
def test_an_end_that_this_node_seals_is_taken_as_any_other_would_be(
    epoch: int, version: int, coordinator_epoch: int, commit: bool
) -> None:
    """Without a look at what is in it."""
    outcomes, disks, logs = [], [SimDisk(), SimDisk()], []
    for disk, is_short in zip(disks, (False, True), strict=True):
        log = created(disk)
        accepted(end(log, 1, commit=True, epoch=3, coordinator_epoch=6))
        write(log, 1, 0, epoch=3)
        batch = a_marker(1, epoch, commit=commit, coordinator_epoch=coordinator_epoch)
        if is_short:
            outcomes.append(append_end(log, batch, 1, epoch, Marker(commit, coordinator_epoch), 0, NOW, version))
        else:
            outcomes.append(append_as_leader(log, batch, 0, NOW, origin=COORDINATOR, transaction_version=version))
        logs.append(log)
    assert outcomes[0] == outcomes[1]
    assert everything(disks[0]) == everything(disks[1])
    assert stability(logs[0]) == stability(logs[1])
    assert logs[0].producers.producers == logs[1].producers.producers


def test_a_tv1_marker_of_an_older_epoch_is_fenced() -> None:
    log = created()
    write(log, 1, 0, epoch=3)
    assert rejected(end(log, 1, commit=True, epoch=2)).error is Errors.INVALID_PRODUCER_EPOCH
    accepted(end(log, 1, commit=True, epoch=3))


def test_a_zombie_coordinator_is_fenced() -> None:
    log = created()
    write(log, 1, 0)
    accepted(end(log, 1, commit=True, coordinator_epoch=5))
    write(log, 1, 1)
    outcome = rejected(end(log, 1, commit=False, coordinator_epoch=4))
    assert outcome.error is Errors.TRANSACTION_COORDINATOR_FENCED


def test_a_plain_batch_inside_an_open_transaction_is_refused() -> None:
    log = created()
    write(log, 1, 0)
    outcome = append_as_leader(log, a_batch(b"v", producer=(1, 0, 1)), 0, NOW)
    assert rejected(outcome).error is Errors.INVALID_TXN_STATE


def test_a_marker_without_a_transaction_is_written_and_changes_nothing_visible() -> None:
    log = created()
    assert end(log, 9, commit=False) == Appended(0, 0, -1, 0)
    assert (aborted_transactions(log, 0, 1), log.last_stable_offset(1)) == ([], 1)


@pytest.mark.parametrize("clean", [True, False])
def test_open_and_aborted_transactions_are_known_after_a_restart(clean: bool) -> None:
    fs = SimDisk()
    log = created(fs)
    write(log, 1, 0)
    write(log, 2, 0)
    end(log, 1, commit=False)
    expected = log.active.aborted_txns(), log.producers.producers, log.producers.ongoing
    if clean:
        log.close()
    log = reopened(fs.killed(), clean=clean)
    assert (log.active.aborted_txns(), log.producers.producers, log.producers.ongoing) == expected
    assert (log.producers.first_ongoing, aborted_transactions(log, 0, 3)) == (1, [(1, 0)])


def test_truncation_reopens_a_transaction_whose_marker_goes() -> None:
    log = created()
    write(log, 1, 0)
    end(log, 1, commit=False)
    log.truncate_to(1, NOW)
    assert (log.producers.first_ongoing, aborted_transactions(log, 0, 1)) == (0, [])


def test_a_transaction_that_began_below_the_log_start_holds_only_what_is_left() -> None:
    log = created()
    write(log, 1, 0)
    append(log, b"a")
    delete_records_before(log, 1)
    assert log.last_stable_offset(2) == 1


@pytest.mark.parametrize("damage", [b"odd", b"\0\7" + bytes(32)])
def test_a_damaged_transaction_index_is_rebuilt_when_it_is_needed(damage: bytes) -> None:
    disk = SimDisk()
    log = created(disk)
    write(log, 1, 0)
    log.roll(NOW)
    write(log, 2, 0)
    end(log, 1, commit=False)
    end(log, 2, commit=False)
    log.close()
    path = log.active.path(".txnindex")
    good = bytes(disk.names[path].data)
    disk.names[path].data[:] = damage
    log = reopened(disk, clean=True)
    assert aborted_transactions(log, 0, 4) == [(1, 0), (2, 1)]
    assert bytes(disk.names[path].data) == good
