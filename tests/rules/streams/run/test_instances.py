"""Of several instances of an application one is active."""

from ottla.client.membership import Peer
from ottla.streams.run.instances import About, choose


def peer(name: str, came_ms: int, *, active: bool = False) -> Peer:
    return Peer(name, None, About("host", 1, came_ms, active).encode())


def test_who_came_first_is_chosen() -> None:
    assert choose([peer("late", 20), peer("early", 10)]) == "early"


def test_who_is_active_stays_so() -> None:
    assert choose([peer("late", 20, active=True), peer("early", 10)]) == "late"


def test_of_two_that_believe_to_be_active_the_one_that_took_over_is() -> None:
    assert choose([peer("first", 10, active=True), peer("successor", 20, active=True)]) == "successor"
