"""Who gets in."""

from ottla.broker.admission import Admission
from ottla.model.ids import Millis

NOW = Millis(0)


def test_connections_are_limited_in_all() -> None:
    door = Admission(max_total=2, max_per_address=0, rate_per_address=0)
    assert [door.refusal(a, NOW) for a in ("a", "b", "c")] == [None, None, "max.connections"]
    door.left("a")
    assert door.refusal("c", NOW) is None


def test_connections_are_limited_per_address() -> None:
    door = Admission(max_total=0, max_per_address=1, rate_per_address=0)
    assert [door.refusal(a, NOW) for a in ("a", "a", "b")] == [None, "max.connections.per.ip", None]


def test_an_address_may_open_its_rate_at_once_and_then_one_by_one() -> None:
    door = Admission(max_total=0, max_per_address=0, rate_per_address=2)
    rate = "ottla.connection.creation.rate.per.ip"
    assert [door.refusal("a", NOW) for _ in range(3)] == [None, None, rate]
    assert door.refusal("b", NOW) is None
    assert door.refusal("a", Millis(499)) == rate
    assert door.refusal("a", Millis(1000)) is None


def test_a_refused_connection_does_not_count() -> None:
    door = Admission(max_total=1, max_per_address=0, rate_per_address=0)
    door.refusal("a", NOW)
    door.refusal("b", NOW)
    assert door.total == 1
