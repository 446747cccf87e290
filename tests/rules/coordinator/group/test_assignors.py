"""Who gets which partition."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.coordinator.group.consumer.assignors import ASSIGNORS, MemberSpec, Partitions, uniform
from ottla.coordinator.group.consumer.assignors import range as range_assignor
from tests.support.examples import examples

TOPICS = [bytes([number]) * 16 for number in range(4)]


def member(*topics: int, target: Partitions | None = None, instance: str | None = None) -> MemberSpec:
    return MemberSpec(instance, tuple(TOPICS[topic] for topic in topics), target or {})


def test_range_gives_neighbouring_partitions_and_the_first_get_one_more() -> None:
    assigned = range_assignor.assign({"b": member(0), "a": member(0)}, {TOPICS[0]: 5})
    assert assigned == {"a": {TOPICS[0]: (0, 1, 2)}, "b": {TOPICS[0]: (3, 4)}}


def test_range_puts_the_same_partitions_of_alike_topics_together() -> None:
    counts = {TOPICS[0]: 4, TOPICS[1]: 4}
    for mine in range_assignor.assign({name: member(0, 1) for name in "abc"}, counts).values():
        assert mine.get(TOPICS[0]) == mine.get(TOPICS[1])


def test_range_ranks_static_members_by_their_instance() -> None:
    members = {"z": member(0, instance="1"), "a": member(0)}
    assert range_assignor.assign(members, {TOPICS[0]: 2}) == {"z": {TOPICS[0]: (0,)}, "a": {TOPICS[0]: (1,)}}


def test_uniform_moves_no_more_than_it_must_when_a_member_comes() -> None:
    before: dict[str, Partitions] = {"a": {TOPICS[0]: (0, 1, 2)}, "b": {TOPICS[0]: (3, 4, 5)}}
    members = {name: member(0, target=before.get(name)) for name in "abc"}
    after = uniform.assign(members, {TOPICS[0]: 6})
    assert {name: len(mine[TOPICS[0]]) for name, mine in after.items()} == {"a": 2, "b": 2, "c": 2}
    for name in "ab":
        assert set(after[name][TOPICS[0]]) <= set(before[name][TOPICS[0]])


def test_uniform_keeps_everything_when_nothing_changes() -> None:
    before: dict[str, Partitions] = {"a": {TOPICS[0]: (0, 2)}, "b": {TOPICS[0]: (1,)}}
    members = {name: member(0, target=target) for name, target in before.items()}
    assert uniform.assign(members, {TOPICS[0]: 3}) == before


def test_uniform_evens_out_what_can_be_evened_out() -> None:
    members = {"a": member(0, 1), "b": member(1)}
    assigned = uniform.assign(members, {TOPICS[0]: 3, TOPICS[1]: 3})
    assert assigned["a"] == {TOPICS[0]: (0, 1, 2)}
    assert assigned["b"] == {TOPICS[1]: (0, 1, 2)}


groups = st.dictionaries(
    st.sampled_from("abcdef"), st.lists(st.integers(0, 3), unique=True, max_size=4).map(tuple), min_size=1
)
sizes = st.lists(st.integers(1, 12), min_size=4, max_size=4)


@settings(max_examples=examples(150), deadline=None)
@given(groups, groups, sizes, st.booleans(), st.sampled_from(sorted(ASSIGNORS)))
def test_every_partition_has_one_owner_who_reads_it_also_after_a_change(
    first: dict[str, tuple[int, ...]],
    second: dict[str, tuple[int, ...]],
    partitions: list[int],
    alike: bool,
    assignor: str,
) -> None:
    counts = dict(zip(TOPICS, partitions, strict=True))
    targets: dict[str, Partitions] = {}
    for round_ in (first, second):
        wanted = {name: ((0, 1) if alike else topics) for name, topics in round_.items()}
        members = {name: member(*topics, target=targets.get(name)) for name, topics in wanted.items()}
        targets = ASSIGNORS[assignor](members, counts)
        owned = [(topic, index) for mine in targets.values() for topic, given_ in mine.items() for index in given_]
        read = {TOPICS[topic] for topics in wanted.values() for topic in topics}
        assert sorted(owned) == sorted((topic, index) for topic in read for index in range(counts[topic]))
        assert all(topic in members[name].topics for name, mine in targets.items() for topic in mine)
        loads = [sum(map(len, mine.values())) for mine in targets.values()]
        assert not (alike and assignor == "uniform") or max(loads) - min(loads) <= 1
