"""AddPartitionsToTxn: what is in a transaction, and who may say so."""

import pytest

from ottla.coordinator.shard import Decision
from ottla.coordinator.transaction.machine import Producer
from ottla.coordinator.transaction.states import TransactionState
from ottla.model.errors import Errors
from tests.rules.coordinator.transaction.scene import NAME, P0, P1, WALL, Scene


def test_the_first_partition_begins_the_transaction() -> None:
    scene = Scene()
    producer = scene.begun()
    scene.time = 50
    assert scene.add(producer, P0) == Errors.NONE
    assert (scene.transaction.state, scene.transaction.started) == (TransactionState.ONGOING, WALL + 50)
    scene.time = 90
    assert scene.add(producer, P1) == Errors.NONE
    assert (scene.transaction.started, list(scene.transaction.partitions)) == (WALL + 50, [P0, P1])


def test_adding_what_is_there_writes_nothing() -> None:
    scene = Scene()
    producer = scene.begun()
    scene.add(producer, P0, P1)
    decision = scene.shard.add_partitions(NAME, producer, (P1,), 0, scene.now())
    assert decision == Decision(Errors.NONE)


def test_the_version_of_the_last_request_decides_how_markers_are_checked() -> None:
    scene = Scene()
    producer = scene.begun()
    scene.add(producer, P0, version=2)
    assert scene.transaction.client_version == 2


@pytest.mark.parametrize(
    ("name", "shift", "error"),
    [
        ("", (0, 0), Errors.INVALID_REQUEST),
        ("nobody", (0, 0), Errors.INVALID_PRODUCER_ID_MAPPING),
        (NAME, (1, 0), Errors.INVALID_PRODUCER_ID_MAPPING),
        (NAME, (0, -1), Errors.PRODUCER_FENCED),
        (NAME, (0, 1), Errors.PRODUCER_FENCED),
    ],
)
def test_strangers_are_refused_whether_they_add_or_verify(name: str, shift: tuple[int, int], error: Errors) -> None:
    scene = Scene()
    scene.begun()
    scene.init()
    current = scene.transaction.producer
    producer = Producer(current.id + shift[0], current.epoch + shift[1])
    assert scene.add(producer, P0, name=name) == error
    assert scene.shard.verify_partitions(name, producer, (P0,)) == {P0: error}


def test_kip_890_a_partition_is_verified_only_while_its_transaction_is_open() -> None:
    scene = Scene()
    producer = scene.begun()
    ask = scene.shard.verify_partitions
    assert ask(NAME, producer, (P0,)) == {P0: Errors.TRANSACTION_ABORTABLE}
    scene.add(producer, P0)
    assert ask(NAME, producer, (P0, P1)) == {P0: Errors.NONE, P1: Errors.TRANSACTION_ABORTABLE}
    scene.end(producer, committed=True, version=0)
    assert ask(NAME, producer, (P0,)) == {P0: Errors.CONCURRENT_TRANSACTIONS}
    scene.write_markers()
    assert ask(NAME, producer, (P0,)) == {P0: Errors.TRANSACTION_ABORTABLE}
