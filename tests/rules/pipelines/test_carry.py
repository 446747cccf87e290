"""What one micro-batch leaves, the next one finds; and so does one that runs again."""

from pathlib import Path

import pytest

from ottla.pipelines.carry import KEPT, Carry, CarryLost


def numbers(folder: Path) -> Carry[int]:
    return Carry(folder, lambda number: b"%d" % number, int)


def test_a_batch_takes_up_what_the_one_before_left(tmp_path: Path) -> None:
    carry = numbers(tmp_path / "new")
    assert carry.latest(10) is None
    carry.write(10, 10)
    carry.write(25, 25)
    assert [carry.latest(at) for at in (9, 10, 24, 25, 90)] == [None, 10, 10, 25, 25]
    assert (10 in carry, 11 in carry) == (True, False)


def test_a_batch_that_runs_again_finds_what_it_found_and_writes_what_it_wrote(tmp_path: Path) -> None:
    carry = numbers(tmp_path)
    carry.write(10, 10)
    for _ in range(2):
        assert carry.latest(10) == 10
        carry.write(20, 20)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["10", "20"]


def test_what_a_replay_may_still_need_is_kept(tmp_path: Path) -> None:
    carry = numbers(tmp_path)
    for end in range(1, KEPT + 5):
        carry.write(end, end)
    assert sorted(int(path.name) for path in tmp_path.iterdir()) == list(range(5, KEPT + 5))


@pytest.mark.parametrize("content", [b"", b"abc", b"1\0"])
def test_a_damaged_file_is_not_believed(tmp_path: Path, content: bytes) -> None:
    carry = numbers(tmp_path)
    carry.write(10, 10)
    (tmp_path / "10").write_bytes(content)
    with pytest.raises(CarryLost, match=r"/10 is damaged: .* needs a reset"):
        carry.latest(12)


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CarryLost, match=r"/7 is missing: .* needs a reset"):
        numbers(tmp_path).read(7)
