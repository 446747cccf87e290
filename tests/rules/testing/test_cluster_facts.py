"""What replicas hold and what a cluster says of itself is held against the rules."""

from ottla.protocol.records import NewRecord, build_batch
from ottla.testing.checkers import (
    ExactlyOnceCopy,
    Leadership,
    OneLeaderPerEpoch,
    OneOwner,
    Ownership,
    ReplicasIdentical,
    Watermarks,
    WatermarksAdvance,
)


def batch(offset: int, *values: bytes) -> bytes:
    return bytes(build_batch([NewRecord(None, value, 0) for value in values], base_offset=offset))


A, B, C = batch(0, b"a", b"b"), batch(2, b"c"), batch(3, b"d")


def differing(high_watermark: int, **replicas: list[bytes]) -> list[tuple[int, ...]]:
    given = {int(name[1:]): segments for name, segments in replicas.items()}
    return [anomaly.values for anomaly in ReplicasIdentical().find("t-0", high_watermark, given)]


class TestReplicas:
    def test_equal_logs_pass_wherever_their_segments_begin(self) -> None:
        assert differing(4, n1=[A + B + C], n2=[A, B + C], n3=[A + B, C]) == []

    def test_above_the_high_watermark_they_may_differ(self) -> None:
        assert differing(3, n1=[A + B + C], n2=[A + B + batch(3, b"other")], n3=[A + B]) == []

    def test_below_it_they_may_not(self) -> None:
        assert differing(3, n1=[A + B], n2=[A + batch(2, b"x")], n3=[A + B]) == [(1, 2)]

    def test_the_same_records_in_other_batches_are_not_the_same_bytes(self) -> None:
        assert differing(3, n1=[A + B], n2=[batch(0, b"a"), batch(1, b"b", b"c")]) == [(1, 2)]

    def test_a_replica_that_ends_below_the_high_watermark_lacks_something(self) -> None:
        assert differing(4, n1=[A + B + C], n2=[A + B + C[:-1]]) == [(2,)]
        assert differing(4, n1=[A + B + C], n2=[]) == [(2,)]

    def test_old_segments_may_be_gone(self) -> None:
        assert differing(4, n1=[A, B + C], n2=[B + C]) == []


class TestWatermarks:
    def test_they_may_stand_still_and_advance(self) -> None:
        seen = [Watermarks("r", "t-0", 5, 5), Watermarks("r", "t-0", 5, 5), Watermarks("r", "t-0", 9, 7)]
        assert list(WatermarksAdvance().find(seen)) == []

    def test_readers_are_apart(self) -> None:
        assert list(WatermarksAdvance().find([Watermarks("r", "t-0", 5), Watermarks("s", "t-0", 4)])) == []

    def test_a_high_watermark_that_goes_back(self) -> None:
        (found,) = WatermarksAdvance().find(
            [Watermarks("r", "t-0", 5), Watermarks("r", "t-0", 4), Watermarks("r", "t-0", 5)]
        )
        assert found.values == (5, 4)

    def test_a_last_stable_offset_that_goes_back(self) -> None:
        (found,) = WatermarksAdvance().find([Watermarks("r", "t-0", 5, 4), Watermarks("r", "t-0", 6, 3)])
        assert found.values == (4, 3)

    def test_a_last_stable_offset_above_the_high_watermark(self) -> None:
        (found,) = WatermarksAdvance().find([Watermarks("r", "t-0", 5, 6)])
        assert found.values == (6, 5)


class TestLeaders:
    def test_one_leader_in_each_epoch(self) -> None:
        seen = [Leadership("t-0", 0, 1), Leadership("t-0", 1, 2), Leadership("t-0", 0, 1), Leadership("t-1", 0, 3)]
        assert list(OneLeaderPerEpoch().find(seen)) == []

    def test_nobody_is_no_leader(self) -> None:
        assert list(OneLeaderPerEpoch().find([Leadership("t-0", 1, -1), Leadership("t-0", 1, 2)])) == []

    def test_two_leaders_in_an_epoch(self) -> None:
        (found,) = OneLeaderPerEpoch().find([Leadership("t-0", 1, 3), Leadership("t-0", 1, 2)])
        assert found.values == (3, 2)


def owned(*intervals: tuple[str, int, int | None], partition: str = "t-0") -> list[Ownership]:
    return [Ownership("g", partition, member, since, until) for member, since, until in intervals]


class TestOwners:
    def test_one_after_the_other(self) -> None:
        assert list(OneOwner().find(owned(("a", 0, 5), ("b", 5, 9), ("a", 9, None)))) == []

    def test_other_partitions_and_groups_are_apart(self) -> None:
        seen = [*owned(("a", 0, None)), *owned(("b", 0, None), partition="t-1"), Ownership("h", "t-0", "c", 0)]
        assert list(OneOwner().find(seen)) == []

    def test_two_at_once(self) -> None:
        assert [a.values for a in OneOwner().find(owned(("b", 4, 9), ("a", 0, 5)))] == [(4,)]
        assert [a.values for a in OneOwner().find(owned(("a", 0, None), ("b", 4, 9)))] == [(4,)]

    def test_a_long_ownership_is_held_against_all_that_follow(self) -> None:
        assert [a.values for a in OneOwner().find(owned(("a", 0, 10), ("b", 2, 3), ("c", 5, 6)))] == [(2,), (5,)]


class TestCopies:
    def differences(self, source: list[int], copy: list[int]) -> list[tuple[int, ...]]:
        return [anomaly.values for anomaly in ExactlyOnceCopy().find("c-0", source, copy, lambda value: value // 10)]

    def test_every_record_once_in_order(self) -> None:
        assert self.differences([1, 2, 3], [10, 21, 39]) == []

    def test_a_record_twice(self) -> None:
        assert self.differences([1, 2], [10, 21, 22]) == [(2,)]

    def test_a_record_not_at_all(self) -> None:
        assert self.differences([1, 2], [20]) == [(1,)]

    def test_a_record_from_nowhere(self) -> None:
        assert self.differences([1], [10, 70]) == [(7,)]

    def test_another_order(self) -> None:
        assert self.differences([1, 2], [20, 10]) == [(2, 1)]
