"""Requests that wait for bytes or for the high watermark."""

from sys import getrefcount

from ottla.broker.waiting.purgatory import FetchWait, ProduceWait, Purgatory, StableFetchWait
from ottla.model.ids import Millis


def fetch(missing: int, deadline: int = 500) -> FetchWait:
    return FetchWait(Millis(deadline), missing, resume=None)


def test_kip_74_a_fetch_completes_when_the_bytes_over_all_its_partitions_reach_min_bytes() -> None:
    purgatory: Purgatory[str] = Purgatory()
    wait = fetch(missing=100)
    purgatory.watch(wait, ["a", "b"])
    assert purgatory.touched("a", 60) == []
    assert purgatory.touched("b", 39) == []
    assert purgatory.touched("a", 1) == [wait]
    assert purgatory.waiting == 0


def test_a_completed_wait_is_returned_once_however_many_partitions_watch_it() -> None:
    purgatory: Purgatory[str] = Purgatory()
    wait = fetch(missing=1)
    purgatory.watch(wait, ["a", "b"])
    assert purgatory.touched("a", 1) == [wait]
    assert purgatory.touched("b", 1) == []
    assert purgatory.expired(Millis(10_000)) == []


def test_a_produce_completes_when_every_partitions_high_watermark_has_passed() -> None:
    purgatory: Purgatory[str] = Purgatory()
    wait = ProduceWait(Millis(500), {"a": 10, "b": 20}, resume=None)
    purgatory.watch(wait, ["a", "b"])
    assert purgatory.touched("a", 9) == []
    assert purgatory.touched("b", 25) == []
    assert purgatory.touched("a", 10) == [wait]


def test_a_wait_expires_at_its_deadline_and_not_before() -> None:
    purgatory: Purgatory[str] = Purgatory()
    late, soon = fetch(1, deadline=900), fetch(1, deadline=300)
    purgatory.watch(late, ["a"])
    purgatory.watch(soon, ["a"])
    assert purgatory.next_deadline() == 300
    assert purgatory.expired(Millis(299)) == []
    assert purgatory.expired(Millis(300)) == [soon]
    assert purgatory.next_deadline() == 900
    assert purgatory.expired(Millis(900)) == [late]
    assert purgatory.next_deadline() is None


def test_a_cancelled_wait_neither_completes_nor_expires() -> None:
    purgatory: Purgatory[str] = Purgatory()
    wait = fetch(1)
    purgatory.watch(wait, ["a"])
    purgatory.cancel(wait)
    assert (purgatory.touched("a", 5), purgatory.expired(Millis(10_000)), purgatory.waiting) == ([], [], 0)


def test_a_partition_that_goes_away_releases_everyone_who_waits_for_it() -> None:
    purgatory: Purgatory[str] = Purgatory()
    here, elsewhere = fetch(1), fetch(1)
    purgatory.watch(here, ["a", "b"])
    purgatory.watch(elsewhere, ["b"])
    assert purgatory.released("a") == [here]
    assert purgatory.touched("b", 1) == [elsewhere]


def test_a_produce_waits_on_for_the_partitions_that_are_still_led_here() -> None:
    """Told to come again for all of them, a producer without sequence numbers would write twice."""
    purgatory: Purgatory[str] = Purgatory()
    wait = ProduceWait(Millis(500), {"a": 10, "b": 20, "c": 30}, resume=None)
    purgatory.watch(wait, ["a", "b", "c"])
    assert purgatory.released("a") == []
    assert purgatory.touched("b", 20) == []
    purgatory.watch(wait, ["a"])  # led here again, with other records
    assert purgatory.touched("a", 10) == []
    assert purgatory.released("c") == [wait]
    assert wait.required == {"a": 10, "c": 30}


def test_a_produce_is_over_with_the_last_partition_that_is_still_led_here() -> None:
    purgatory: Purgatory[str] = Purgatory()
    wait = ProduceWait(Millis(500), {"a": 10, "b": 20}, resume=None)
    purgatory.watch(wait, ["a", "b"])
    assert purgatory.released("a") == []
    assert purgatory.touched("b", 20) == [wait]
    assert wait.required == {"a": 10}


def test_long_polls_on_a_partition_nobody_writes_to_do_not_pile_up() -> None:
    purgatory: Purgatory[str] = Purgatory()
    for at in range(10_000):
        purgatory.watch(fetch(1, deadline=at), ["silent"])
        purgatory.expired(Millis(at))
    assert purgatory.waiting == 0
    assert len(purgatory._watched["silent"]) < 100


def test_a_wait_that_is_over_is_forgotten_long_before_its_deadline() -> None:
    purgatory: Purgatory[str] = Purgatory()
    waits = [fetch(missing=1, deadline=30_000) for _ in range(100)]
    for wait in waits:
        purgatory.watch(wait, ["a"])
        assert purgatory.touched("a", 1) == [wait]
    kept = [number for number in range(100) if getrefcount(waits[number]) > 2]  # known to the list and to the question
    assert kept == list(range(100 - len(kept), 100))
    assert len(kept) < 20


def test_forgetting_those_that_are_over_keeps_the_deadlines_of_the_others() -> None:
    purgatory: Purgatory[str] = Purgatory()
    late = fetch(missing=1, deadline=900)
    purgatory.watch(late, ["slow"])
    for number in range(100):
        purgatory.watch(fetch(missing=1, deadline=500 + number), ["a"])
        purgatory.touched("a", 1)
    soon = fetch(missing=1, deadline=300)
    purgatory.watch(soon, ["slow"])
    assert purgatory.next_deadline() == 300
    assert purgatory.expired(Millis(10_000)) == [soon, late]


def test_a_reader_of_committed_records_waits_for_the_stable_offset_not_for_bytes() -> None:
    stable = {"a": 5, "b": 0}
    purgatory: Purgatory[str] = Purgatory()
    wait = StableFetchWait(Millis(100), 1, None, stable, stable.__getitem__)
    purgatory.watch(wait, stable)
    assert purgatory.touched("a", 1_000_000) == []
    stable["b"] = 1
    assert purgatory.touched("a", 1_000_000) == []
    assert purgatory.touched("b", 1) == [wait]
