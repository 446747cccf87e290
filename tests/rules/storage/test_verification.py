"""KIP-890: the first batch of a transaction needs a proof that the coordinator knows of it."""

from ottla.model.errors import Errors
from ottla.protocol import batch as b
from ottla.storage.answers import COORDINATOR, Appended, Rejected
from ottla.storage.leading import append_as_leader
from ottla.storage.log import Log
from ottla.storage.producer_state import Refusal, Verification
from tests.rules.storage.scene import NOW, a_batch, a_marker, accepted, created, rejected

PRODUCER = 7


def ask(log: Log, *, epoch: int = 0, sequence: int = 0, tv2: bool = False) -> Verification:
    proof = log.producers.begin_verification(PRODUCER, epoch, sequence, epoch_bump=tv2, now=NOW)
    assert isinstance(proof, Verification)
    return proof


def write(
    log: Log, proof: Verification | None, *, epoch: int = 0, sequence: int = 0, transactional: bool = True
) -> Appended | Rejected:
    batch = a_batch(b"v", producer=(PRODUCER, epoch, sequence), attributes=b.TRANSACTIONAL if transactional else 0)
    return append_as_leader(log, batch, 0, NOW, verification=proof)


def end(log: Log, *, epoch: int = 0, commit: bool = False, version: int = 0) -> Appended:
    marker = a_marker(PRODUCER, epoch, commit=commit, coordinator_epoch=0)
    return accepted(append_as_leader(log, marker, 0, NOW, origin=COORDINATOR, transaction_version=version))


def test_a_transaction_cannot_begin_without_a_proof() -> None:
    log = created()
    assert rejected(write(log, None)).error == Errors.INVALID_TXN_STATE
    assert log.log_end_offset == 0


def test_with_its_proof_it_begins_and_goes_on_without_one() -> None:
    log = created()
    accepted(write(log, ask(log)))
    assert log.producers.begin_verification(PRODUCER, 0, 1, epoch_bump=False, now=NOW) is None
    accepted(write(log, None, sequence=1))


def test_what_is_not_transactional_needs_no_proof() -> None:
    accepted(write(created(), None, transactional=False))


def test_kafka_14884_a_marker_between_answer_and_append_makes_the_proof_worthless() -> None:
    log = created()
    proof = ask(log)
    end(log)
    assert rejected(write(log, proof)).error == Errors.INVALID_TXN_STATE
    assert ask(log) is not proof


def test_after_the_end_the_next_transaction_needs_a_proof_of_its_own() -> None:
    log = created()
    proof = ask(log)
    accepted(write(log, proof))
    end(log, commit=True)
    assert rejected(write(log, proof, sequence=1)).error == Errors.INVALID_TXN_STATE
    accepted(write(log, ask(log, sequence=1), sequence=1))


def test_one_proof_serves_all_who_ask_before_the_first_append() -> None:
    log = created()
    assert ask(log) is ask(log)


def test_kafka_19690_an_old_epoch_is_told_before_a_missing_proof() -> None:
    log = created()
    end(log, epoch=3)
    refused = log.producers.begin_verification(PRODUCER, 2, 0, epoch_bump=False, now=NOW)
    assert isinstance(refused, Refusal) and refused.error == Errors.INVALID_PRODUCER_EPOCH
    assert rejected(write(log, None, epoch=2)).error == Errors.INVALID_PRODUCER_EPOCH


def test_a_later_epoch_is_another_transaction_even_while_one_is_open() -> None:
    log = created()
    accepted(write(log, ask(log)))
    assert rejected(write(log, None, epoch=1)).error == Errors.INVALID_TXN_STATE


def test_tv2_the_marker_of_a_transaction_leaves_the_proof_of_the_next_one() -> None:
    log = created()
    accepted(write(log, ask(log, tv2=True)))
    proof = ask(log, epoch=1, tv2=True)
    end(log, epoch=1, version=2)
    accepted(write(log, proof, epoch=1))


def test_kafka_14920_a_later_sequence_does_not_overtake_the_lowest_one_seen() -> None:
    log = created()
    proof = ask(log, sequence=4)
    assert ask(log, sequence=3) is proof
    assert rejected(write(log, proof, sequence=4)).error == Errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    accepted(write(log, proof, sequence=3))


def test_an_unknown_producer_begins_anywhere_with_tv1_and_at_0_with_tv2() -> None:
    accepted(write(log := created(), ask(log, sequence=9), sequence=9))
    log = created()
    refused = rejected(write(log, ask(log, sequence=9, tv2=True), sequence=9))
    assert refused.error == Errors.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_duplicate_is_answered_with_its_offset_whatever_became_of_its_transaction() -> None:
    log = created()
    first = accepted(write(log, ask(log)))
    end(log)
    again = accepted(write(log, None))
    assert (again.base_offset, again.duplicate) == (first.base_offset, True)


def test_what_coordinators_write_in_a_transaction_needs_a_proof_too() -> None:
    log = created()
    batch = a_batch(b"v", producer=(PRODUCER, 0, -1), attributes=b.TRANSACTIONAL)
    assert (
        rejected(append_as_leader(log, batch, 0, NOW, origin=COORDINATOR, verification=None)).error
        == Errors.INVALID_TXN_STATE
    )
    accepted(append_as_leader(log, batch, 0, NOW, origin=COORDINATOR, verification=ask(log, sequence=-1)))


def test_a_proof_nobody_used_is_forgotten_with_the_producer() -> None:
    log = created()
    proof = ask(log)
    log.expire_producers(NOW + log.config.producer_id_expiration_ms)
    assert ask(log) is not proof
