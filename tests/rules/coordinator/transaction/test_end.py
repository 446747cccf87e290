"""EndTxn: the two ways a transaction ends, and every retry of it."""

import pytest

from ottla.coordinator.shard import Decision
from ottla.coordinator.transaction.machine import Producer, Transaction
from ottla.coordinator.transaction.shard import EndReply, WriteMarkers
from ottla.coordinator.transaction.states import TransactionState
from ottla.model.errors import Errors
from tests.rules.coordinator.transaction.scene import NAME, P0, P1, TIMEOUT, WALL, Scene

TV1, TV2 = 0, 2
PF, ITS, CONCURRENT = Errors.PRODUCER_FENCED, Errors.INVALID_TXN_STATE, Errors.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize("committed", [True, False])
def test_tv1_an_end_keeps_the_epoch(committed: bool) -> None:
    scene = Scene()
    producer = scene.begun()
    scene.add(producer, P0, P1)
    assert scene.end(producer, committed=committed, version=TV1) == EndReply(Errors.NONE)
    assert scene.effects == [WriteMarkers(NAME, producer, committed, (P0, P1), 7, 0)]
    scene.write_markers()
    done = TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT
    assert scene.transaction == Transaction(
        producer.id, 0, TIMEOUT, done, started=WALL, updated=WALL, previous_producer_id=producer.id
    )


@pytest.mark.parametrize("committed", [True, False])
def test_tv2_an_end_bumps_the_epoch_and_says_so(committed: bool) -> None:
    scene = Scene()
    producer = scene.begun()
    scene.add(producer, P0, version=TV2)
    bumped = Producer(producer.id, 1)
    assert scene.end(producer, committed=committed, version=TV2) == EndReply(Errors.NONE, *bumped)
    assert scene.effects == [WriteMarkers(NAME, bumped, committed, (P0,), 7, 2)]
    scene.write_markers()
    assert scene.transaction.producer == bumped
    assert scene.add(producer, version=TV2) == PF
    assert scene.add(bumped, version=TV2) == Errors.NONE


RETRY, CURRENT = -1, 0


@pytest.mark.parametrize(
    ("state", "committed", "epoch", "expected"),
    [
        ("empty", False, RETRY, PF),
        ("empty", False, CURRENT, "bump"),
        ("empty", True, RETRY, PF),
        ("empty", True, CURRENT, ITS),
        ("aborted", False, RETRY, "ok"),
        ("aborted", False, CURRENT, "bump"),
        ("aborted", True, RETRY, PF),  # KAFKA-20785; 4.3.1 says INVALID_TXN_STATE
        ("aborted", True, CURRENT, ITS),
        ("committed", False, RETRY, ITS),
        ("committed", False, CURRENT, "bump"),
        ("committed", True, RETRY, "ok"),
        ("committed", True, CURRENT, ITS),
    ],
)
def test_tv2_the_table_of_retries(state: str, committed: bool, epoch: int, expected: Errors | str) -> None:
    scene = Scene()
    producer = scene.begun()
    if state == "empty":
        scene.init()
        producer = scene.transaction.producer
    else:
        scene.add(producer, version=TV2)
        scene.ended(producer, committed=state == "committed", version=TV2)
        producer = scene.transaction.producer
    reply = scene.end(Producer(producer.id, producer.epoch + epoch), committed=committed, version=TV2)
    if expected == "ok":
        assert reply == EndReply(Errors.NONE, *producer)
    elif expected == "bump":
        assert reply == EndReply(Errors.NONE, producer.id, producer.epoch + 1)
        assert scene.transaction.state is TransactionState.PREPARE_ABORT
    else:
        assert isinstance(expected, Errors) and reply == EndReply(expected)


@pytest.mark.parametrize(
    ("state", "committed", "expected"),
    [
        ("empty", True, ITS),
        ("empty", False, ITS),
        ("committed", True, Errors.NONE),
        ("committed", False, ITS),
        ("aborted", True, ITS),
        ("aborted", False, Errors.NONE),
        ("prepared", True, CONCURRENT),
        ("prepared", False, CONCURRENT),
    ],
)
def test_tv1_the_table_of_ends(state: str, committed: bool, expected: Errors) -> None:
    scene = Scene()
    producer = scene.begun()
    if state != "empty":
        scene.add(producer)
        scene.end(producer, committed=state != "aborted", version=TV1)
    if state != "prepared":
        scene.write_markers()
    assert scene.end(producer, committed=committed, version=TV1) == EndReply(expected)


@pytest.mark.parametrize("version", [TV1, TV2])
def test_strangers_cannot_end_a_transaction(version: int) -> None:
    scene = Scene()
    producer = scene.begun()
    scene.add(producer)
    ends = [
        scene.end(Producer(producer.id + 9, 0), committed=True, version=version),
        scene.end(Producer(producer.id, 1), committed=True, version=version),
        scene.end(producer, committed=True, version=version, name="nobody"),
        scene.end(producer, committed=True, version=version, name=""),
    ]
    assert [reply.error for reply in ends] == [
        Errors.INVALID_PRODUCER_ID_MAPPING,
        PF,
        Errors.INVALID_PRODUCER_ID_MAPPING,
        Errors.INVALID_REQUEST,
    ]


def test_while_markers_are_written_the_client_has_to_wait_whatever_id_it_uses() -> None:
    scene = Scene()
    producer = scene.begun()
    scene.add(producer, version=TV2)
    reply = scene.end(producer, committed=True, version=TV2)
    after = Producer(reply.producer_id, reply.epoch)
    assert [scene.add(each, version=TV2) for each in (producer, after)] == [CONCURRENT, CONCURRENT]
    assert scene.end(producer, committed=True, version=TV2) == EndReply(CONCURRENT)
    assert scene.end(after, committed=False, version=TV2) == EndReply(CONCURRENT)


def at_epoch(epoch: int) -> Scene:
    scene = Scene()
    scene.begun()
    state = scene.transaction._replace(epoch=epoch)
    scene.run(Decision(None, (scene.shard._record(NAME, state),)))
    return scene


def test_tv2_from_epoch_32760_the_producer_id_changes_at_32766_and_no_transaction_is_lost() -> None:
    scene = at_epoch(32_760)
    producer, seen = scene.transaction.producer, []
    for _ in range(10):
        assert scene.add(producer, version=TV2) == Errors.NONE
        reply = scene.ended(producer, committed=True, version=TV2)
        assert reply.error == Errors.NONE
        again = scene.end(producer, committed=True, version=TV2)
        assert again == reply, "a retry across the change of ids succeeds"
        producer = Producer(reply.producer_id, reply.epoch)
        seen.append(producer)
    first = 1001
    assert seen == [Producer(first, epoch) for epoch in range(32_761, 32_767)] + [
        Producer(first + 1, epoch) for epoch in range(4)
    ]


def test_tv2_the_last_marker_of_a_producer_id_bears_epoch_32767() -> None:
    scene = at_epoch(32_766)
    old = scene.transaction.producer
    scene.add(old, version=TV2)
    scene.end(old, committed=True, version=TV2)
    assert scene.transaction.next_producer_id == 1002
    (markers,) = scene.write_markers()
    assert markers.producer == Producer(old.id, 32_767)
    assert scene.transaction.producer == Producer(1002, 0)
    assert scene.transaction.previous_producer_id == old.id


def test_tv2_a_retry_across_the_change_of_ids_succeeds_after_a_restart_too() -> None:
    scene = at_epoch(32_766)
    old = scene.transaction.producer
    scene.add(old, version=TV2)
    reply = scene.ended(old, committed=True, version=TV2)
    assert scene.restarted().end(old, committed=True, version=TV2) == reply
    assert scene.restarted().end(old, committed=False, version=TV2) == EndReply(ITS)


def test_a_transaction_with_used_up_epochs_that_times_out_goes_on_under_a_new_id() -> None:
    scene = at_epoch(32_766)
    producer = scene.transaction.producer
    scene.add(producer)
    scene.time = TIMEOUT + 1
    scene.tick()
    (effect,) = scene.effects
    scene.run(scene.shard.time_out(NAME, producer, scene.now(), 4000))
    scene.effects.remove(effect)
    assert [markers.producer.epoch for markers in scene.write_markers()] == [32_767]
    assert scene.transaction.producer == Producer(4000, 0)
