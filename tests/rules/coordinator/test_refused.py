"""A log that refuses the records of a command changes nothing: any commands, any of them refused, both real shards.

After a refusal the shard is what it was before, to the last deadline. But time goes on: what was due and could not be
written is due again a second later, or when the shard looks for such things the next time.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.coordinator.group.classic.group import ClassicGroup, State
from ottla.coordinator.group.expiry import STEP
from ottla.coordinator.group.state import REFUSED_PAUSE_MS, Deadlines
from ottla.coordinator.transaction.machine import LAST_USABLE_EPOCH, Producer
from ottla.coordinator.undo import Undo
from ottla.metadata.image import MetadataImage
from ottla.model.errors import Errors
from ottla.model.ids import Millis
from tests.rules.coordinator.group import scene as groups
from tests.rules.coordinator.transaction import scene as transactions
from tests.support.examples import examples

NOT_STATE = ("_order", "_tokens", "_state")
"""Counters that only have to go up; and what is looked at already."""


def everything(subject: Any) -> Any:
    """All that an object holds, as plain values that can be compared."""
    if isinstance(subject, Deadlines):
        return {key: entry[0] for key, entry in subject._entries.items()}
    if isinstance(subject, dict):
        return {key: everything(value) for key, value in subject.items()}
    if isinstance(subject, MetadataImage):
        return subject.offset
    if isinstance(subject, tuple | list):
        return [everything(each) for each in subject]
    if isinstance(subject, Undo) or callable(subject):
        return None
    slots = [name for kind in type(subject).__mro__ for name in getattr(kind, "__slots__", ())]
    if slots and type(subject).__module__.startswith("ottla.coordinator"):
        return {name: everything(getattr(subject, name)) for name in slots if name not in NOT_STATE}
    return subject


# ---- groups

Steps = list[tuple[str, int]]


def play(scene: groups.Scene, what: str, which: int) -> None:
    """One request, as a client in the middle of its life might send it; the dice choose who and what."""
    group_id, dice = "gh"[which % 2], which // 2
    if what in CLASSIC_STEPS:
        play_classic(scene, what, group_id, dice)
    elif what in CONSUMER_STEPS:
        play_consumer(scene, what, group_id, dice)
    elif what == "commit":
        scene.commit(dice, group=group_id)
    elif what == "stage":
        scene.txn_commit(dice, 7, group=group_id)
    elif what == "end":
        scene.end_transaction(7, committed=bool(dice % 2))
    elif what == "delete":
        scene.take(scene.shard.delete_groups([group_id]))
    elif what == "topics":
        scene.topics_become({"orders": 4, "bills": 1 + dice % 3} if dice % 2 else {"orders": 4})
    else:
        if what == "time":
            scene.now += (10, 1_000, 10_000, 60_000, 700_000_000)[dice % 5]
        due = scene.shard.next_tick()
        if due is not None and due <= scene.now:
            scene.take(scene.shard.tick(scene.time))


def play_classic(scene: groups.Scene, what: str, group_id: str, dice: int) -> None:
    group: Any = scene.shard.state.groups.get(group_id)
    members = list(group.members) if group is not None else []
    pending = list(group.pending_joins) if isinstance(group, ClassicGroup) else []
    member = [*members, *pending, ""][dice % (len(members) + len(pending) + 1)]
    generation = getattr(group, "generation", 1)
    if what == "join":
        instance = (None, None, "i1")[dice % 3]
        scene.join(group_id, "" if instance else member, instance=instance, version=(3, 9)[dice % 2])
    elif what == "sync":
        leader = group.leader if isinstance(group, ClassicGroup) and dice % 2 else member
        scene.sync(leader or "x", generation, {each: b"\x01" for each in members}, group=group_id)
    elif what == "leave":
        scene.leave(member or "x", group=group_id)
    elif what == "beat":
        scene.beat(member, generation, group=group_id)
    else:
        scene.commit(dice, group=group_id, member=member, generation=generation)


def play_consumer(scene: groups.Scene, what: str, group_id: str, dice: int) -> None:
    group: Any = scene.shard.state.groups.get(group_id)
    name = f"m{dice % 3}"
    if what == "heartbeat":
        known = group.members.get(name) if group is not None else None
        topics = [["orders"], ["orders", "bills"]][dice % 2]
        epoch = getattr(known, "epoch", 0) if dice % 4 else 0
        scene.heartbeat(name, epoch, group=group_id, subscribed_topic_names=topics)
    elif what == "pattern":
        scene.heartbeat(name, 0, group=group_id, subscribed_topic_regex=("ord.*", "b.*")[dice % 2])
    elif what == "go":
        scene.heartbeat(name, -1, group=group_id)
    else:
        for run in scene.runs[:1]:
            scene.take(run.then(run.work(), scene.time))
            scene.runs.remove(run)


CLASSIC_STEPS = ("join", "sync", "leave", "beat", "member commits")
CONSUMER_STEPS = ("heartbeat", "pattern", "go", "thread")
GROUP_STEPS = (*CLASSIC_STEPS, *CONSUMER_STEPS, "commit", "stage", "end", "delete", "topics", "time", *["tick"] * 5)
scripts = st.lists(st.tuples(st.sampled_from(GROUP_STEPS), st.integers(0, 120)), max_size=40)


def as_if_later(before: Any, after: Any, now: int) -> Any:
    """`before`, with the one deadline that a refused tick put off."""
    was, became = before[0]["deadlines"], after[0]["deadlines"]
    moved = [key for key in was if was[key] != became.get(key)]
    assert len(moved) <= 1 and all(was[key] <= now for key in moved)
    was.update(dict.fromkeys(moved, now + REFUSED_PAUSE_MS))
    return before


def in_full_swing() -> groups.Scene:
    """g is a stable classic group, one of its two members static; h a consumer group with a member of each protocol."""
    scene = groups.Scene({"orders": 4, "bills": 1})
    static = scene.join(instance="i1")
    dynamic = scene.join(version=3)
    scene.pass_time(0)
    joined = groups.told(static)
    scene.sync(groups.told(dynamic).member_id, joined.generation_id)
    scene.sync(joined.member_id, joined.generation_id, {joined.member_id: b"\x01"})
    scene.heartbeat("m0", group="h")
    scene.join("h", version=3)
    assert groups.told(dynamic).error_code == 0
    assert {name: kind for name, (kind, _) in scene.groups().items()} == {"g": "classic", "h": "consumer"}
    return scene


def in_a_rebalance() -> groups.Scene:
    """g has joined and one member waits for the leader's assignment; h has a pattern; offsets, some of them old."""
    scene = groups.Scene({"orders": 4, "bills": 1}, offsets_retention=Millis(1_000))
    scene.commit(5, group="h", topic="bills")
    scene.commit(6, group="simple")
    leader, follower = [scene.join(version=3) for _ in range(2)]
    scene.pass_time(0)
    scene.sync(groups.told(follower).member_id, 1)
    assert scene.groups()["g"] == ("classic", "CompletingRebalance") and groups.told(leader).leader
    scene.heartbeat("m1", group="h", subscribed_topic_regex="o.*")
    return scene


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from([groups.Scene, in_full_swing, in_a_rebalance]), scripts)
def test_a_group_shard_is_what_it_was_before_a_command_that_the_log_refused(
    begin: Callable[[], groups.Scene], script: Steps
) -> None:
    """Each command is refused first, and then taken."""
    scene = begin()
    for what, which in script:
        before = everything((scene.shard.state, scene.shard._expiry))
        scene.refuses = True
        try:
            play(scene, what, which)
        except groups.Refused:
            after = everything((scene.shard.state, scene.shard._expiry))
            assert after == (as_if_later(before, after, scene.now) if what in ("time", "tick") else before)
            scene.refuses = False
            play(scene, what, which)


def test_a_member_whose_leave_the_log_refused_is_still_a_member() -> None:
    scene = groups.Scene()
    (member,) = scene.stable_group()
    scene.refuses = True
    with pytest.raises(groups.Refused):
        scene.leave(member)
    scene.refuses = False
    group: Any = scene.shard.state.groups["g"]
    assert (group.state, group.generation, list(group.members)) == (State.STABLE, 1, [member])
    assert scene.beat(member, 1) == Errors.NONE
    scene.pass_time(60_000)
    assert (group.state, list(group.members)) == (State.EMPTY, [])


def test_who_waits_waits_on_when_the_log_refuses_what_would_have_answered() -> None:
    scene = groups.Scene()
    leader, follower = ids = [scene.join().member_id for _ in range(2)]
    for member in ids:
        scene.join(member=member)
    scene.pass_time(0)
    waiting = scene.sync(follower, 1)
    scene.refuses = True
    with pytest.raises(groups.Refused):
        scene.sync(leader, 1, {follower: b"mine"})
    scene.refuses = False
    assert groups.told(waiting) is None
    scene.sync(leader, 1, {follower: b"mine"})
    assert groups.told(waiting).assignment == b"mine"


def test_who_waits_to_join_waits_on_when_the_log_refuses_that_all_leave() -> None:
    scene = groups.Scene()
    leader, follower = scene.stable_group(2)
    waiting = scene.join(member=leader)
    scene.refuses = True
    with pytest.raises(groups.Refused):
        scene.leave(leader, follower)
    scene.refuses = False
    assert groups.told(waiting) is None
    scene.join(member=follower)
    assert (groups.told(waiting).error_code, groups.told(waiting).generation_id) == (Errors.NONE, 2)


def test_an_empty_consumer_group_keeps_its_name_when_the_log_refuses_the_classic_one() -> None:
    scene = groups.Scene()
    scene.heartbeat("m1")
    scene.heartbeat("m1", -1)
    assert scene.groups() == {"g": ("consumer", "Empty")}
    before = everything(scene.shard.state)
    scene.refuses = True
    with pytest.raises(groups.Refused):
        scene.join()
    assert everything(scene.shard.state) == before
    scene.refuses = False
    scene.join()
    assert scene.groups() == {"g": ("classic", "Empty")}


def test_a_session_that_ended_while_the_log_refused_ends_a_second_later() -> None:
    scene = groups.Scene()
    (member,) = scene.stable_group(session=10_000)
    scene.now += 10_000
    scene.refuses = True
    with pytest.raises(groups.Refused):
        scene.take(scene.shard.tick(scene.time))
    scene.refuses = False
    group: Any = scene.shard.state.groups["g"]
    assert list(group.members) == [member]
    scene.pass_time(REFUSED_PAUSE_MS)
    assert not group.members


def nobody_came_back() -> groups.Scene:
    """Somebody joined and left again, and the only member that was there before has not come back in time."""
    scene = groups.Scene()
    scene.stable_group(session=60_000, rebalance=5_000)
    scene.join(version=3, session=60_000, rebalance=5_000)
    group: Any = scene.shard.state.groups["g"]
    assert scene.leave(list(group.members)[-1]) == [Errors.NONE]
    assert (group.state, len(group.members)) == (State.PREPARING_REBALANCE, 1)
    return scene


def nobody_synced() -> groups.Scene:
    scene = groups.Scene()
    for _ in range(2):
        scene.join(version=3, session=60_000, rebalance=5_000)
    scene.pass_time(0)
    assert scene.groups()["g"] == ("classic", "CompletingRebalance")
    return scene


def offsets_are_too_old() -> groups.Scene:
    """More of them than one step of a round looks at."""
    scene = groups.Scene(offsets_retention=Millis(1_000), offsets_retention_check=Millis(2_000))
    for number in range(STEP):
        scene.commit(5, group=f"simple-{number}")
    return scene


def some_old_offsets_are_gone() -> groups.Scene:
    scene = offsets_are_too_old()
    scene.pass_time(2_000)
    assert 0 < len(scene.groups()) < STEP
    return scene


@pytest.mark.parametrize("begin", [nobody_came_back, nobody_synced, offsets_are_too_old, some_old_offsets_are_gone])
def test_what_time_does_and_the_log_refuses_is_done_a_second_later(begin: Callable[[], groups.Scene]) -> None:
    scene = begin()
    at = scene.shard.next_tick()
    assert at is not None
    scene.now, written = at, len(scene.log)
    before = everything((scene.shard.state, scene.shard._expiry))
    scene.refuses = True
    with pytest.raises(groups.Refused):
        scene.take(scene.shard.tick(scene.time))
    after = everything((scene.shard.state, scene.shard._expiry))
    assert after == as_if_later(before, after, scene.now)
    scene.refuses = False
    scene.pass_time(REFUSED_PAUSE_MS - 1)
    assert len(scene.log) == written
    scene.pass_time(1)
    assert len(scene.log) > written


# ---- transactions

LOOKED = ("_looked", "_looked_for_expired")


def play_transaction(scene: transactions.Scene, what: str, which: int) -> None:
    name, dice = f"txn-{which % 2}", which // 2
    known = scene.shard.find(name)
    producer = known.producer if known is not None else Producer(1, 0)
    scene.time += 7
    if what == "init":
        scene.init(name=name, expected=(None, producer, producer._replace(epoch=producer.epoch - 1))[dice % 3])
    elif what == "add":
        scene.add(producer, (transactions.P0, transactions.P1)[dice % 2], version=2, name=name)
    elif what == "end":
        scene.end(producer, committed=bool(dice % 2), version=dice % 3, name=name)
    elif what == "acknowledge":
        partitions = (transactions.P0,) if dice % 2 else (transactions.P0, transactions.P1)
        scene.run(scene.shard.markers_acknowledged(name, producer, partitions, scene.now()))
    elif what == "last epoch":
        if known is not None and known.state.is_idle:
            record = scene.shard._record(name, known._replace(epoch=32766))
            scene.shard.replay(transactions.through_bytes(record), len(scene.journal))
    else:
        scene.time += (10, 61_000, 605_000_000)[dice % 3]
        scene.tick()


TRANSACTION_STEPS = ["init", "add", "add", "end", "acknowledge", "last epoch", "time"]


def prepared(epoch: int | None = None) -> transactions.Scene:
    """txn-0 has ended and waits for the second of its markers."""
    scene = transactions.Scene()
    producer = scene.begun("txn-0")
    if epoch is not None:
        record = scene.shard._record("txn-0", scene.shard.transactions["txn-0"]._replace(epoch=epoch))
        scene.shard.replay(transactions.through_bytes(record), 0)
        producer = producer._replace(epoch=epoch)
    scene.add(producer, transactions.P0, transactions.P1, version=2, name="txn-0")
    assert scene.end(producer, committed=True, version=2, name="txn-0").error == Errors.NONE
    ended = scene.shard.transactions["txn-0"].producer
    assert not scene.run(scene.shard.markers_acknowledged("txn-0", ended, [transactions.P0], scene.now()))
    return scene


BEGINNINGS = [transactions.Scene, prepared, partial(prepared, LAST_USABLE_EPOCH)]


@settings(max_examples=examples(300), deadline=None)
@given(
    st.sampled_from(BEGINNINGS),
    st.lists(st.tuples(st.sampled_from(TRANSACTION_STEPS), st.integers(0, 60)), max_size=40),
)
def test_a_transaction_shard_is_what_it_was_before_a_command_that_the_log_refused(
    begin: Callable[[], transactions.Scene], script: Steps
) -> None:
    """Each command is refused first, and then taken."""
    scene = begin()
    for what, which in script:
        before = everything(scene.shard)
        scene.refuses = True
        try:
            play_transaction(scene, what, which)
        except transactions.Refused:
            after = everything(scene.shard)
            for looked in LOOKED if what == "time" else ():
                before[looked] = after[looked]
            assert after == before
            scene.refuses = False
            play_transaction(scene, what, which)


def test_a_producer_is_still_known_by_its_last_epoch_after_a_refused_init() -> None:
    """KIP-360: whoever lost the answer to its InitProducerId asks again with the epoch it had."""
    scene = transactions.Scene()
    producer = scene.begun()
    bumped = scene.init(expected=producer)
    scene.refuses = True
    with pytest.raises(transactions.Refused):
        scene.init(expected=Producer(bumped.producer_id, bumped.epoch))
    scene.refuses = False
    assert scene.init(expected=producer) == bumped


def test_a_transaction_whose_completion_the_log_refused_completes_when_its_markers_are_acknowledged_again() -> None:
    scene = transactions.Scene()
    producer = scene.begun()
    scene.add(producer, transactions.P0, version=2)
    scene.end(producer, committed=True, version=2)
    acknowledge: Callable[[], object] = scene.write_markers
    kept = list(scene.effects)
    scene.refuses = True
    with pytest.raises(transactions.Refused):
        acknowledge()
    scene.refuses, scene.effects = False, kept
    assert list(scene.shard.find(transactions.NAME).partitions) == [transactions.P0]  # type: ignore[union-attr]
    acknowledge()
    assert scene.state().title == "CompleteCommit"
