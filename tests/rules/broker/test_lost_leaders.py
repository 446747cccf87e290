"""Metadata that would name a leader who has just been lost waits for the controller's verdict."""

from ottla.broker.lost_leaders import LostLeaders
from ottla.model.ids import Millis


def test_news_of_a_lost_leader_are_awaited_for_a_while() -> None:
    leaders = LostLeaders(300)
    assert not leaders.any(Millis(1000))
    leaders.lost(2, Millis(1000))
    assert leaders.any(Millis(1000))
    assert leaders.is_awaited([1, 2], Millis(1299))
    assert not leaders.is_awaited([1, 3], Millis(1299))
    assert not leaders.is_awaited([1, 2], Millis(1300))
    assert not leaders.any(Millis(1300))


def test_a_leader_that_stays_unreachable_is_waited_for_only_once() -> None:
    leaders = LostLeaders(300)
    leaders.lost(2, Millis(1000))
    leaders.lost(2, Millis(1500))
    assert not leaders.is_awaited([2], Millis(1501))


def test_a_leader_that_was_reached_again_may_be_lost_again() -> None:
    leaders = LostLeaders(300)
    leaders.lost(2, Millis(1000))
    leaders.reached(2)
    assert not leaders.is_awaited([2], Millis(1001))
    leaders.lost(2, Millis(5000))
    assert leaders.is_awaited([2], Millis(5299))


def test_a_wait_of_nothing_is_none() -> None:
    leaders = LostLeaders(0)
    leaders.lost(2, Millis(1000))
    assert not leaders.any(Millis(1000))
