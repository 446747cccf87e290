"""Where a query goes on whose inputs have changed."""

from pathlib import Path

from ottla.model.ids import TopicPartition
from ottla.pipelines.checkpoint import batches_of
from ottla.streams.run.changed_inputs import last_ends, left_behind, renewed, unknown

A0, B0, B1, C0 = (TopicPartition(*place) for place in (("a", 0), ("b", 0), ("b", 1), ("c", 0)))


def checkpoint(folder: Path, begun: int, done: int | None, *, first: int = 0) -> str:
    """Of batches that read ten records of `a` each, from offset 5 on."""
    where = folder / "0"
    for kind, last in (("offsets", begun), ("commits", done)):
        (where / kind).mkdir(parents=True)
        for number in range(first, -1 if last is None else last + 1):
            (where / kind / str(number)).write_text(f'v1\n{{}}\n{{"a":{{"0":{15 + 10 * number}}}}}')
    (folder / "0.initial-offsets").write_text('{"a":{"0":5}}')
    return str(where)


def test_the_group_is_at_the_end_of_the_last_batch_or_of_the_one_before(tmp_path: Path) -> None:
    done, begun, first = (tmp_path / name for name in ("done", "begun", "first"))
    assert last_ends(checkpoint(done, 2, 2)) == [{A0: 35}]
    assert last_ends(checkpoint(begun, 2, 1)) == [{A0: 35}, {A0: 25}]
    assert last_ends(checkpoint(first, 0, None)) == [{A0: 15}, {A0: 5}]
    assert last_ends(str(tmp_path / "nothing")) == []
    assert batches_of(str(tmp_path / "nothing")) == (None, None)


def test_partitions_that_no_batch_has_are_unknown() -> None:
    assert unknown([A0, B0, B1], [{A0: 35, B0: 3}, {A0: 25}]) == [B1]
    assert unknown([A0], [{A0: 35}]) == []


def test_an_unknown_partition_is_begun_where_it_is_said_and_so_it_stays() -> None:
    first = renewed({A0: 5}, [{A0: 35}], [A0, B0], {B0: 17})
    assert first == {A0: 5, B0: 17}
    # A batch with it was begun, and runs again: it begins where it began.
    assert unknown([A0, B0], [{A0: 45, B0: 20}, {A0: 35}]) == []
    assert renewed(first, [{A0: 45, B0: 20}, {A0: 35}], [A0, B0], {}) == first


def test_what_is_not_read_any_more_is_known_by_its_end() -> None:
    without = renewed({A0: 5, B0: 2}, [{A0: 35, B0: 9}, {A0: 25, B0: 7}], [A0], {})
    assert without == {A0: 5, B0: 9}
    assert left_behind(without, [A0]) == 9
    assert left_behind(without, [A0, B0]) == 0


def test_what_is_read_again_goes_on_where_the_group_is() -> None:
    without = {A0: 5, B0: 9}
    ends = [{A0: 45}]
    assert unknown([A0, B0], ends) == [B0]
    assert renewed(without, ends, [A0, B0], {B0: 30}) == {A0: 5, B0: 30}


def test_all_inputs_may_be_others() -> None:
    assert renewed({A0: 5}, [{A0: 35}], [C0], {C0: 4}) == {A0: 35, C0: 4}
