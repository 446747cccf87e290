"""InitProducerId: who gets which epoch, and who is fenced (KIP-98, KIP-360)."""

import pytest

from ottla.coordinator.shard import Decision
from ottla.coordinator.transaction.machine import LAST_USABLE_EPOCH, Producer, Transaction
from ottla.coordinator.transaction.shard import InitProducerId, InitReply, TransactionSettings
from ottla.coordinator.transaction.states import TransactionState
from ottla.model.errors import Errors
from tests.rules.coordinator.transaction.scene import NAME, TIMEOUT, WALL, Scene, at


def test_a_new_transactional_id_gets_a_fresh_producer_id_with_epoch_0() -> None:
    scene = Scene()
    assert scene.init() == InitReply(Errors.NONE, 1001, 0)
    assert scene.transaction == Transaction(1001, 0, TIMEOUT, updated=WALL, previous_producer_id=1001)


def test_each_start_of_a_producer_bumps_the_epoch() -> None:
    scene = Scene()
    assert [scene.init().epoch for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (InitProducerId("", TIMEOUT), Errors.INVALID_REQUEST),
        (InitProducerId(NAME, 0), Errors.INVALID_TRANSACTION_TIMEOUT),
        (InitProducerId(NAME, 900_001), Errors.INVALID_TRANSACTION_TIMEOUT),
        (InitProducerId(NAME, TIMEOUT, two_phase_commit=True), Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (InitProducerId(NAME, TIMEOUT, keep_prepared=True), Errors.UNSUPPORTED_VERSION),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing_behind(command: InitProducerId, error: Errors) -> None:
    scene = Scene()
    assert scene.shard.init_producer_id(command, at(0), 5) == Decision(InitReply(error))
    assert not scene.shard.transactions


def test_with_two_phase_commit_a_transaction_has_no_timeout() -> None:
    scene = Scene(TransactionSettings(two_phase_commit=True))
    reply = scene.run(scene.shard.init_producer_id(InitProducerId(NAME, 5, two_phase_commit=True), at(0), 9))
    assert reply == InitReply(Errors.NONE, 9, 0)
    scene.add(Producer(9, 0))
    scene.time = 1 << 40
    scene.tick()
    assert scene.transaction.state is TransactionState.ONGOING


def test_kip_360_a_producer_that_names_its_epoch_gets_the_next_one() -> None:
    scene = Scene()
    producer = scene.begun()
    assert scene.init(expected=producer) == InitReply(Errors.NONE, producer.id, 1)


def test_kip_360_the_same_request_again_gets_the_same_epoch() -> None:
    scene = Scene()
    producer = scene.begun()
    first = scene.init(expected=producer)
    assert scene.init(expected=producer) == first


def test_kip_360_a_producer_fenced_by_a_later_start_is_told_so() -> None:
    scene = Scene()
    producer = scene.begun()
    scene.init()
    assert scene.init(expected=producer) == InitReply(Errors.PRODUCER_FENCED)


def test_kip_360_a_producer_of_another_id_is_fenced() -> None:
    scene = Scene()
    producer = scene.begun()
    assert scene.init(expected=Producer(producer.id + 50, 0)) == InitReply(Errors.PRODUCER_FENCED)


def test_kip_360_a_producer_whose_transactional_id_was_forgotten_starts_anew() -> None:
    scene = Scene()
    assert scene.init(expected=Producer(77, 3)) == InitReply(Errors.NONE, 1001, 0)


@pytest.mark.parametrize("known", [True, False])
def test_when_the_epochs_are_used_up_the_producer_goes_on_with_another_id(known: bool) -> None:
    scene = exhausted()
    old = scene.transaction.producer
    expected = old if known else None
    assert scene.init(expected) == InitReply(Errors.NONE, old.id + 1, 0)
    again = scene.init(old)
    # Only who named its epoch is known to be the same producer when it asks again.
    assert again == (InitReply(Errors.NONE, old.id + 1, 0) if known else InitReply(Errors.PRODUCER_FENCED))


def exhausted() -> Scene:
    scene = Scene()
    scene.begun()
    while scene.transaction.epoch < LAST_USABLE_EPOCH:
        scene.init()
        if scene.transaction.epoch < 10:
            state = scene.transaction._replace(epoch=32_760)
            scene.run(Decision(None, (scene.shard._record(NAME, state),)))
    return scene


def test_a_start_during_an_open_transaction_aborts_it_first_and_the_client_comes_again() -> None:
    scene = Scene()
    old = scene.begun()
    scene.add(old)
    assert scene.init() == InitReply(Errors.CONCURRENT_TRANSACTIONS)
    assert (scene.transaction.state, scene.transaction.epoch) == (TransactionState.PREPARE_ABORT, 1)
    assert scene.init() == InitReply(Errors.CONCURRENT_TRANSACTIONS)
    assert [markers.producer for markers in scene.write_markers()] == [Producer(old.id, 1)]
    assert scene.init() == InitReply(Errors.NONE, old.id, 2)
    assert scene.add(old) == Errors.PRODUCER_FENCED


def test_below_transaction_version_2_the_abort_of_a_start_is_fenced_by_the_epoch_too() -> None:
    scene = Scene(level=1)
    scene.add(scene.begun())
    assert scene.init() == InitReply(Errors.CONCURRENT_TRANSACTIONS)
    (markers,) = scene.write_markers()
    assert (markers.producer.epoch, markers.transaction_version) == (1, 0)
    assert scene.init().epoch == 2


def test_after_a_restart_of_the_coordinator_the_epoch_goes_on() -> None:
    scene = Scene()
    producer = scene.begun()
    assert scene.restarted().init() == InitReply(Errors.NONE, producer.id, 1)
