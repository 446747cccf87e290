"""What is remembered of callers: for how long, how many, and never their secrets."""

from ottla.http.auth import Basic, Bearer
from ottla.registry.doors import proofs
from ottla.registry.doors.proofs import Proofs, Shown

KEY = b"k" * 32


def test_a_caller_is_known_until_its_time_is_over() -> None:
    known = Proofs(KEY, 60.0)
    mark = known.mark(Basic("alice", "secret"))
    assert known.principal(mark, 0.0) is None
    known.remember(mark, Shown("User:alice"), 0.0)
    assert known.principal(mark, 59.9) == "User:alice"
    assert known.principal(mark, 60.0) is None


def test_a_token_that_ends_sooner_is_known_no_longer_than_it_holds() -> None:
    known = Proofs(KEY, 60.0)
    mark = known.mark(Bearer("t"))
    known.remember(mark, Shown("User:alice", holds_s=5.0), 0.0)
    assert known.principal(mark, 4.9) == "User:alice"
    assert known.principal(mark, 5.0) is None


def test_every_caller_has_a_mark_of_its_own_which_tells_nothing_without_the_key() -> None:
    known = Proofs(KEY, 60.0)
    shown: list[Basic | Bearer] = [Basic("a", "b:c"), Basic("a", "c"), Basic("b", "c"), Bearer("a:b:c"), Bearer("a:c")]
    assert len({known.mark(each) for each in shown}) == len(shown)
    assert known.mark(shown[0]) != Proofs(b"o" * 32, 60.0).mark(shown[0])


def test_of_too_many_the_oldest_goes() -> None:
    known = Proofs(KEY, 60.0)
    marks = [known.mark(Basic(str(number), "x")) for number in range(proofs.MOST + 1)]
    for mark in marks:
        known.remember(mark, Shown("User:x"), 0.0)
    assert known.principal(marks[0], 1.0) is None
    assert known.principal(marks[1], 1.0) == "User:x"
    assert known.principal(marks[-1], 1.0) == "User:x"
