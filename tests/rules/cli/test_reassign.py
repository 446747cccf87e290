"""Where `ottla reassign move` puts replicas, and which plans `ottla reassign execute` takes."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.cli.parser import UsageError
from ottla.cli.reassign import read_log_dirs, read_plan, spread
from ottla.client.partitions import Placed
from ottla.model.ids import TopicPartition
from tests.support.examples import examples


def placed(*partitions: tuple[int, ...]) -> dict[TopicPartition, Placed]:
    return {
        TopicPartition("t", i): Placed(replicas[0], replicas, replicas, ()) for i, replicas in enumerate(partitions)
    }


def on(*brokers: int, **racks: str) -> dict[int, str | None]:
    return {broker: racks.get(f"b{broker}") for broker in brokers}


def test_what_lies_well_stays() -> None:
    now = placed((1, 2), (2, 3), (3, 1))
    assert spread(now, on(1, 2, 3)) == {place: each.replicas for place, each in now.items()}


def test_only_what_lies_on_other_brokers_moves_off_them() -> None:
    assert list(spread(placed((1, 2), (3, 1), (2, 3)), on(1, 2)).values()) == [(1, 2), (1, 2), (2, 1)]


def test_a_new_broker_gets_its_share_and_no_replica_is_moved_twice() -> None:
    now = placed((1, 2), (2, 1), (1, 2), (2, 1), (1, 2), (2, 1))
    then = spread(now, on(1, 2, 3))
    assert Counter(broker for target in then.values() for broker in target) == {1: 4, 2: 4, 3: 4}
    assert Counter(target[0] for target in then.values()) == {1: 2, 2: 2, 3: 2}
    assert all(len(set(target) - set(now[place].replicas)) <= 1 for place, target in then.items())


def test_more_copies_keep_those_there_are_and_fewer_keep_the_first() -> None:
    assert list(spread(placed((1,), (2,)), on(1, 2, 3), 3).values()) == [(1, 3, 2), (2, 1, 3)]
    assert list(spread(placed((1, 2, 3), (2, 3, 1), (3, 1, 2)), on(1, 2, 3), 1).values()) == [(1,), (2,), (3,)]


def test_new_copies_go_to_racks_that_have_none() -> None:
    racks = on(1, 2, 3, 4, b1="a", b2="a", b3="b", b4="b")
    assert [set(target) for target in spread(placed((1,), (2,)), racks, 2).values()] == [{1, 3}, {2, 4}]


def test_leaders_are_dealt_out() -> None:
    then = spread(placed((1, 2), (1, 2), (1, 2), (1, 2)), on(1, 2))
    assert [target[0] for target in then.values()] == [2, 2, 1, 1]


@pytest.mark.parametrize("copies", [0, 3])
def test_copies_that_cannot_be_are_refused_with_the_way_out(copies: int) -> None:
    with pytest.raises(UsageError, match=rf"t-0 would have {copies} copies on 2 brokers: .* with -r"):
        spread(placed((1, 2)), on(1, 2), copies)


@settings(max_examples=examples(60))
@given(st.data())
def test_each_partition_has_its_copies_on_different_brokers_and_shares_are_fair(data: st.DataObject) -> None:
    brokers = on(*range(1, data.draw(st.integers(1, 6)) + 1))
    copies = data.draw(st.integers(1, len(brokers)))
    some = st.lists(st.integers(1, 8), min_size=1, max_size=4, unique=True).map(tuple)
    now = placed(*data.draw(st.lists(some, min_size=1, max_size=12)))
    then = spread(now, brokers, copies)
    assert all(len(set(target)) == len(target) == copies and set(target) <= set(brokers) for target in then.values())
    held = Counter(broker for target in then.values() for broker in target)
    assert max(held.values()) - min(held[broker] for broker in brokers) <= 1
    settled = {place: Placed(target[0], target, target, ()) for place, target in then.items()}
    assert spread(settled, brokers, copies) == then


def test_a_plan_is_what_kafkas_tool_writes() -> None:
    text = '{"version":1,"partitions":[{"topic":"t","partition":1,"replicas":[2,3],"log_dirs":["any","any"]}]}'
    assert read_plan(text) == {TopicPartition("t", 1): (2, 3)}
    assert read_log_dirs(text) == {}


def test_a_plan_may_name_directories() -> None:
    text = '{"version":1,"partitions":[{"topic":"t","partition":1,"replicas":[2,3],"log_dirs":["any","/b"]}]}'
    assert read_log_dirs(text) == {3: {TopicPartition("t", 1): "/b"}}
    with pytest.raises(UsageError, match="one entry for each replica"):
        read_log_dirs(text.replace('"any",', ""))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"partitions":[{"topic":"t"}]}', '{"partitions":[{"topic":"t","partition":0,"replicas":1}]}'],
)
def test_another_file_is_refused_with_an_example_of_a_plan(text: str) -> None:
    with pytest.raises(UsageError, match=r'"partitions":\[\{"topic":"t","partition":0,"replicas":\[1,2\]\}\]'):
        read_plan(text)
