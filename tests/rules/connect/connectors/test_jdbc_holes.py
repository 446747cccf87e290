"""The position of a JDBC source among growing numbers: whatever commits late within the window comes, and once."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.connect.connectors.jdbc.holes import Holes


@given(st.lists(st.lists(st.integers(1, 40), max_size=12), max_size=6), st.integers(1, 7))
def test_every_number_comes_once_in_whatever_order_it_appears(rounds: list[list[int]], page: int) -> None:
    there: set[int] = set()
    seen: list[int] = []
    position = Holes()
    for committed in [[20], *rounds]:
        there |= set(committed)
        while True:
            found = sorted(each for each in there if _is_open(position, each))[:page]
            if not found:
                break
            seen += found
            position = Holes.of(position.after(found, look_back=100).offset())
    missed = {each for each in there if each not in seen}
    assert len(seen) == len(set(seen))
    assert all(each < 20 for each in missed)  # what was below the very first page is history


def _is_open(position: Holes, number: int) -> bool:
    if position.last is None:
        return True
    return number > position.last or any(low <= number <= high for low, high in position.ranges)


def test_what_is_too_far_back_is_given_up() -> None:
    position = Holes().after([1, 10], look_back=5)
    assert position == Holes(10, ((6, 9),))
    assert position.after([11, 30], look_back=5) == Holes(30, ((26, 29),))
