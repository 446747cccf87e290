"""A worker is gone when nobody listens any more where it was."""

from ottla.connect.peers import Peers, Seen

LISTENS, REFUSES, SILENT = Seen.LISTENS, Seen.REFUSES, Seen.SILENT


def peers(*seen: Seen) -> tuple[Peers, list[bool]]:
    found = Peers()
    found.are({"m": "http://a:1"})
    return found, [found.saw("m", each) for each in seen]


def test_one_that_listened_and_refuses_twice_is_gone_and_that_is_said_once() -> None:
    watched, said = peers(LISTENS, REFUSES, REFUSES, REFUSES)
    assert said == [False, False, True, False]
    assert watched.watched == {}


def test_one_that_listens_again_in_between_is_there() -> None:
    assert peers(LISTENS, REFUSES, LISTENS, REFUSES)[1] == [False] * 4


def test_silence_proves_nothing() -> None:
    assert peers(LISTENS, SILENT, SILENT, SILENT)[1] == [False] * 4
    assert peers(LISTENS, REFUSES, SILENT, REFUSES)[1] == [False] * 4


def test_one_that_could_never_be_reached_from_here_is_not_judged() -> None:
    assert peers(REFUSES, REFUSES, REFUSES)[1] == [False] * 3


def test_what_was_seen_stays_over_a_generation_unless_it_is_somebody_else() -> None:
    watched, _ = peers(LISTENS, REFUSES)
    watched.are({"m": "http://a:1", "n": "http://b:1"})
    assert watched.saw("m", REFUSES)
    watched, _ = peers(LISTENS, REFUSES)
    watched.are({"m": "http://a:2"})
    assert not watched.saw("m", REFUSES)
    watched.are({})
    assert (watched.watched, watched.saw("m", REFUSES)) == ({}, False)
