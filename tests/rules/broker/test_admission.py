"""Who gets in, and what is said of those who do not."""

from ottla.broker.front.admission import Admission, Limits, Refusals
from ottla.model.ids import Millis

NOW = Millis(0)
HERE = "PLAINTEXT"


def asked(door: Admission, *addresses: str, now: Millis = NOW, listener: str = HERE) -> list[str | None]:
    return [door.refusal(address, listener, now) for address in addresses]


def test_connections_are_limited_in_all() -> None:
    door = Admission(Limits(total=2))
    assert asked(door, "a", "b", "c") == [None, None, "max.connections"]
    door.left("a", HERE)
    assert asked(door, "c") == [None]


def test_connections_are_limited_per_address() -> None:
    door = Admission(Limits(per_address=1))
    assert asked(door, "a", "a", "b") == [None, "max.connections.per.ip", None]


def test_an_address_may_have_a_limit_of_its_own() -> None:
    door = Admission(Limits(per_address=1, addresses={"a": 2}))
    assert asked(door, "a", "a", "a", "b", "b") == [
        *(None, None, "max.connections.per.ip.overrides"),
        *(None, "max.connections.per.ip"),
    ]


def test_none_per_address_lets_in_only_those_with_a_limit_of_their_own() -> None:
    door = Admission(Limits(per_address=0, addresses={"a": 1}))
    assert asked(door, "a", "b") == [None, "max.connections.per.ip"]


def test_connections_are_limited_per_listener() -> None:
    door = Admission(Limits(listeners={HERE: 1, "OTHER": 5}))
    assert asked(door, "a", "a") == [None, "listener.name.plaintext.max.connections"]
    assert asked(door, "a", listener="OTHER") == [None]
    door.left("a", HERE)
    assert asked(door, "a") == [None]


def test_an_address_may_open_its_rate_at_once_and_then_one_by_one() -> None:
    door = Admission(Limits(rate_per_address=2))
    rate = "ottla.connection.creation.rate.per.ip"
    assert asked(door, "a", "a", "a") == [None, None, rate]
    assert asked(door, "b") == [None]
    assert asked(door, "a", now=Millis(499)) == [rate]
    assert asked(door, "a", now=Millis(1000)) == [None]


def test_a_refused_connection_does_not_count() -> None:
    door = Admission(Limits(total=1))
    asked(door, "a", "b")
    assert door.total == 1


def test_new_limits_hold_for_those_who_come_and_spare_those_who_are_there() -> None:
    door = Admission(Limits())
    asked(door, "a", "a", "a")
    door.limits = Limits(per_address=2)
    assert asked(door, "a") == ["max.connections.per.ip"]
    for _ in range(2):
        door.left("a", HERE)
    assert asked(door, "a") == [None]


def test_a_flood_of_refusals_is_told_in_a_line_now_and_then() -> None:
    told = Refusals()
    lines = [told.said("refusing a", Millis(at)) for at in range(0, 20_001, 5)]
    assert [line for line in lines if line] == [
        "refusing a",
        "refusing a (1999 more since the last line)",
        "refusing a (1999 more since the last line)",
    ]


def test_another_reason_is_told_at_once_but_not_a_flood_of_reasons() -> None:
    told = Refusals()
    assert [told.said(line, Millis(1)) for line in ("no TLS", "no TLS", "wrong CA")] == ["no TLS", None, "wrong CA"]
    made_up = [told.said(f"reason {number}", Millis(2)) for number in range(100)]
    assert len([line for line in made_up if line]) == 2
    assert told.said("no TLS", Millis(10_001)) == "no TLS (99 more since the last line)"
