"""Time, crashes and questions: what happens to transactional ids that nobody ends."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.coordinator.shard import Decision
from ottla.coordinator.transaction.machine import Producer, Transaction
from ottla.coordinator.transaction.shard import Listed, ListFilter, TransactionSettings, WriteMarkers
from ottla.coordinator.transaction.states import TITLES, TransactionState
from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol.messages import TransactionLogValue
from tests.rules.coordinator.transaction.scene import NAME, P0, P1, TIMEOUT, WALL, Scene
from tests.support.examples import examples

EVERY_STATE = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]


# ---- timeouts


def test_kip_98_a_transaction_open_past_its_timeout_is_aborted_and_its_producer_fenced() -> None:
    scene = Scene()
    producer = scene.begun()
    scene.add(producer)
    scene.time = TIMEOUT - 1
    assert scene.shard.tick(scene.now()) == Decision(None)
    scene.time = TIMEOUT
    scene.tick()
    assert scene.effects == [WriteMarkers(NAME, Producer(producer.id, 1), False, (P0,), 7, 2)]
    scene.write_markers()
    assert scene.transaction.state is TransactionState.COMPLETE_ABORT
    assert scene.end(producer, committed=True, version=0).error == Errors.PRODUCER_FENCED


def test_more_partitions_do_not_lengthen_a_transaction() -> None:
    scene = Scene()
    producer = scene.begun()
    scene.add(producer, P0)
    scene.time = TIMEOUT - 1
    scene.add(producer, P1)
    scene.time = TIMEOUT
    scene.tick()
    assert scene.transaction.state is TransactionState.PREPARE_ABORT


def test_a_transaction_that_ended_in_time_is_left_alone() -> None:
    scene = Scene()
    producer = scene.begun()
    scene.add(producer)
    scene.ended(producer, committed=True, version=0)
    scene.time = 10 * TIMEOUT
    assert scene.shard.tick(scene.now()) == Decision(None)


def test_timeouts_are_looked_for_no_more_often_than_the_setting_says() -> None:
    scene = Scene(TransactionSettings(timeout_check_ms=10_000))
    scene.add(scene.begun(timeout_ms=100))
    scene.begun(name="other", timeout_ms=100)
    assert scene.shard.next_tick() == 10_000
    scene.time = 10_000
    scene.tick()
    scene.add(scene.shard.transactions["other"].producer, name="other")
    assert scene.shard.next_tick() == 20_000


def test_a_wall_clock_that_jumps_times_nothing_out() -> None:
    scene = Scene()
    scene.add(scene.begun())
    jumped = scene.now()._replace(wall=Millis(scene.now().wall + 3_600_000))
    assert scene.shard.tick(jumped) == Decision(None)


def test_after_a_restart_an_open_transaction_has_the_time_that_was_left() -> None:
    scene = Scene()
    scene.add(scene.begun())
    scene.time = TIMEOUT // 2
    again = scene.restarted()
    again.time = TIMEOUT - 1
    again.tick()
    assert again.state() == TransactionState.ONGOING
    again.time = TIMEOUT
    again.tick()
    assert again.state() == TransactionState.PREPARE_ABORT


# ---- markers


@pytest.mark.parametrize("committed", [True, False])
def test_after_a_crash_the_markers_of_a_decided_transaction_are_sent_again(committed: bool) -> None:
    scene = Scene()
    producer = scene.begun()
    scene.add(producer, P0, P1)
    scene.end(producer, committed=committed, version=0)
    scene.run(scene.shard.markers_acknowledged(NAME, producer, (P0,), scene.now()))
    again = scene.restarted()
    assert again.effects == [WriteMarkers(NAME, producer, committed, (P0, P1), 8, 0)]
    again.write_markers()
    assert again.restarted().effects == []


def test_a_transaction_is_complete_when_the_last_partition_has_acknowledged() -> None:
    scene = Scene()
    producer = scene.begun()
    scene.add(producer, P0, P1)
    scene.end(producer, committed=True, version=0)
    assert scene.run(scene.shard.markers_acknowledged(NAME, producer, (P1,), scene.now())) is False
    assert scene.state() == TransactionState.PREPARE_COMMIT
    assert scene.run(scene.shard.markers_acknowledged(NAME, producer, (P0,), scene.now())) is True
    assert scene.state() == TransactionState.COMPLETE_COMMIT


def test_late_acknowledgements_of_a_transaction_that_is_over_are_ignored() -> None:
    scene = Scene()
    producer = scene.begun()
    scene.add(producer)
    scene.ended(producer, committed=True, version=2)
    after = scene.transaction.producer
    scene.add(after, P1, version=2)
    assert scene.shard.markers_acknowledged(NAME, after, (P0,), scene.now()) == Decision(True)
    scene.end(after, committed=True, version=2)
    assert scene.shard.markers_acknowledged(NAME, after, (P1,), scene.now()) == Decision(True)
    assert scene.transaction.state is TransactionState.PREPARE_COMMIT


def test_an_abort_of_nothing_is_complete_without_markers() -> None:
    scene = Scene()
    producer = scene.begun()
    scene.end(producer, committed=False, version=2)
    assert [markers.partitions for markers in scene.write_markers()] == [()]
    assert scene.transaction.state is TransactionState.COMPLETE_ABORT


# ---- forgetting


@pytest.mark.parametrize("state", EVERY_STATE)
def test_an_idle_transactional_id_is_forgotten_after_its_expiration(state: str) -> None:
    week = TransactionSettings().id_expiration_ms
    scene = in_state(state)
    scene.time = week - 1
    scene.run(scene.shard.tick(scene.now()))
    if state == "Ongoing":
        return  # it timed out long before
    assert NAME in scene.shard.transactions
    scene.time = week + TransactionSettings().expiration_check_ms
    scene.tick()
    assert (NAME in scene.shard.transactions) == (state in ("PrepareCommit", "PrepareAbort"))
    assert (NAME in scene.restarted().shard.transactions) == (NAME in scene.shard.transactions)


def in_state(state: str) -> Scene:
    scene = Scene()
    producer = scene.begun()
    if state != "Empty":
        scene.add(producer)
    if state not in ("Empty", "Ongoing"):
        scene.end(producer, committed=state.endswith("Commit"), version=2)
    if state.startswith("Complete"):
        scene.write_markers()
    assert TITLES[scene.transaction.state] == state
    return scene


# ---- questions


def test_list_transactions_filters_by_state_producer_duration_and_name() -> None:
    scene = Scene()
    idle = scene.begun(name="idle")
    busy = scene.begun(name="busy")
    scene.add(busy, name="busy")
    scene.time = 5_000
    ongoing = Listed("busy", busy.id, TransactionState.ONGOING)
    empty = Listed("idle", idle.id, TransactionState.EMPTY)

    def ask(wanted: ListFilter) -> list[Listed]:
        return scene.shard.listed(wanted, scene.now())

    assert ask(ListFilter()) == [empty, ongoing]
    assert ask(ListFilter(states=("Ongoing", "Nonsense"))) == [ongoing]
    assert ask(ListFilter(states=("Nonsense",))) == []
    assert ask(ListFilter(producer_ids=frozenset({idle.id}))) == [empty]
    assert ask(ListFilter(states=("Ongoing",), longer_than_ms=5_000)) == []
    assert ask(ListFilter(states=("Ongoing",), longer_than_ms=4_999)) == [ongoing]
    assert ask(ListFilter(matches=lambda name: name.startswith("i"))) == [empty]


# ---- the log


def test_without_flexible_records_the_log_holds_what_version_0_can() -> None:
    scene = Scene(level=0)
    producer = scene.begun()
    scene.add(producer, P0, P1)
    assert scene.journal[-1].version == 0
    assert scene.journal[-1].value == TransactionLogValue(
        producer_id=producer.id,
        producer_epoch=0,
        transaction_timeout_ms=TIMEOUT,
        transaction_status=1,
        transaction_partitions=[TransactionLogValue.PartitionsSchema("orders", [0, 1])],
        transaction_last_update_timestamp_ms=WALL,
        transaction_start_timestamp_ms=WALL,
    )


Script = list[tuple[str, int, bool]]


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["init", "recover", "add", "end1", "end2", "markers", "wait"]),
            st.integers(0, 2),
            st.booleans(),
        ),
        max_size=40,
    )
)
def test_replay_alone_rebuilds_the_shard(script: Script) -> None:
    scene = Scene()
    play(scene, script)
    assert scene.restarted().shard.transactions == scene.shard.transactions


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["init", "add", "end1", "end2", "markers"]), st.integers(0, 2), st.booleans()),
        max_size=40,
    )
)
def test_the_producer_and_its_epoch_never_go_back(script: Script) -> None:
    scene = Scene()
    seen: dict[str, list[tuple[int, int]]] = {}
    for step in script:
        play(scene, [step])
        for name, transaction in scene.shard.transactions.items():
            seen.setdefault(name, []).append(transaction.producer)
    for producers in seen.values():
        assert producers == sorted(producers)


def play(scene: Scene, script: Script) -> None:
    for what, which, flag in script:
        name = f"txn-{which}"
        known: Transaction | None = scene.shard.find(name)
        producer = known.producer if known is not None else Producer(1, 0)
        scene.time += 7
        if what == "init":
            scene.init(name=name)
        elif what == "recover":
            scene.init(expected=producer, name=name)
        elif what == "add":
            scene.add(producer, P0 if flag else P1, version=2, name=name)
        elif what in ("end1", "end2"):
            scene.end(producer, committed=flag, version=0 if what == "end1" else 2, name=name)
        elif what == "markers":
            scene.write_markers()
        else:
            scene.time += 20_000
            scene.tick()
