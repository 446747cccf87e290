"""Where replicas go."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.controller.placement import place
from ottla.controller.refusal import Refusal
from ottla.metadata.image import BrokerRegistration
from ottla.model.errors import Errors
from tests.rules.controller.scene import uuid
from tests.support.examples import examples


def a_broker(broker_id: int, rack: str | None = None, *, fenced: bool = False) -> BrokerRegistration:
    return BrokerRegistration(
        id=broker_id,
        epoch=1,
        incarnation_id=uuid(broker_id),
        listeners=(),
        features={},
        rack=rack,
        fenced=fenced,
        in_controlled_shutdown=False,
        log_dirs=(uuid(900 + broker_id),),
        cordoned_log_dirs=(),
    )


def test_leaders_and_followers_spread_over_all_brokers() -> None:
    placed = place([a_broker(i) for i in range(4)], 4, 2, 0)
    assert placed == [(0, 1), (1, 2), (2, 3), (3, 0)]


def test_replicas_of_one_partition_are_in_different_racks_while_there_are_racks() -> None:
    racks = {0: "a", 1: "a", 2: "b", 3: "b", 4: "c", 5: "c"}
    placed = place([a_broker(i, rack) for i, rack in racks.items()], 12, 3, 5)
    assert not isinstance(placed, Refusal)
    assert [sorted(racks[b] for b in replicas) for replicas in placed] == [["a", "b", "c"]] * 12


def test_a_fenced_broker_follows_but_never_leads() -> None:
    placed = place([a_broker(1), a_broker(2, fenced=True)], 3, 2, 1)
    assert placed == [(1, 2)] * 3


def test_a_broker_whose_directories_are_all_cordoned_takes_no_replica() -> None:
    cordoned = a_broker(2)._replace(cordoned_log_dirs=(uuid(902),))
    assert place([a_broker(1), cordoned], 2, 1, 0) == [(1,), (1,)]
    refusal = place([a_broker(1), cordoned], 2, 2, 0)
    assert isinstance(refusal, Refusal)
    assert refusal.error == Errors.INVALID_REPLICATION_FACTOR


@settings(max_examples=examples(60), deadline=None)
@given(
    brokers=st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.booleans()), min_size=1, max_size=7),
    partitions=st.integers(1, 20),
    data=st.data(),
    start=st.integers(0, 2**32 - 1),
)
def test_every_placement_has_distinct_replicas_and_a_live_leader(
    brokers: list[tuple[str | None, bool]], partitions: int, data: st.DataObject, start: int
) -> None:
    registered = [a_broker(i, rack, fenced=fenced) for i, (rack, fenced) in enumerate(brokers)]
    factor = data.draw(st.integers(1, len(brokers)))
    placed = place(registered, partitions, factor, start)
    if all(fenced for _, fenced in brokers):
        assert isinstance(placed, Refusal)
        return
    assert not isinstance(placed, Refusal)
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert not registered[replicas[0]].fenced


def test_the_next_in_line_after_a_leader_is_not_always_the_same_broker() -> None:
    # Otherwise one broker would inherit all that a dead one led.
    placed = place([a_broker(i) for i in range(3)], 300, 3, 7)
    assert not isinstance(placed, Refusal)
    heirs = [replicas[1] for replicas in placed if replicas[0] == 0]
    assert len(heirs) == 100
    assert all(heirs.count(broker) > 30 for broker in (1, 2))


def test_each_round_gives_every_live_broker_one_leadership() -> None:
    placed = place([a_broker(i) for i in range(5)], 50, 2, 3)
    assert not isinstance(placed, Refusal)
    leaders = [replicas[0] for replicas in placed]
    assert [sorted(leaders[n : n + 5]) for n in range(0, 50, 5)] == [[0, 1, 2, 3, 4]] * 10
