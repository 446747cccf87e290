"""Connectors are shared out evenly, and never run at two places."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.connect.assignment import Shares, share_out


def test_new_connectors_go_to_who_has_least() -> None:
    found = share_out({"w1": ["a"], "w2": []}, ["a", "b", "c"])
    assert found == Shares({"w1": ("a", "c"), "w2": ("b",)}, unfinished=False)


def test_a_worker_that_comes_gets_what_others_gave_back_a_generation_later() -> None:
    first = share_out({"w1": ["a", "b", "c", "d"], "w2": []}, "abcd")
    assert first == Shares({"w1": ("a", "b"), "w2": ()}, unfinished=True)
    assert share_out(first.parts, "abcd") == Shares({"w1": ("a", "b"), "w2": ("c", "d")}, unfinished=False)


def test_what_a_dead_worker_had_is_taken_over_at_once() -> None:
    assert share_out({"w1": ["a"]}, "ab") == Shares({"w1": ("a", "b")}, unfinished=False)


def test_what_two_claim_is_given_back_by_both_before_anybody_runs_it() -> None:
    first = share_out({"w1": ["a"], "w2": ["a"]}, "a")
    assert first == Shares({"w1": (), "w2": ()}, unfinished=True)
    assert share_out(first.parts, "a") == Shares({"w1": ("a",), "w2": ()}, unfinished=False)


connectors = st.lists(st.sampled_from("abcdefgh"), unique=True)
members = st.dictionaries(st.sampled_from(["w1", "w2", "w3", "w4"]), connectors, min_size=1)


@given(members, connectors)
def test_shares_settle_evenly_and_no_connector_starts_while_another_worker_has_it(
    held: dict[str, list[str]], wanted: list[str]
) -> None:
    now = {worker: tuple(part) for worker, part in held.items()}
    for _ in range(10):
        shares = share_out(now, wanted)
        assert shares == share_out(now, list(reversed(wanted)))
        for worker, part in shares.parts.items():
            for name in part:
                others = [each for each in now if each != worker and name in now[each]]
                assert name in now[worker] or not others
        every = [name for part in shares.parts.values() for name in part]
        assert len(every) == len(set(every))
        done, now = not shares.unfinished, dict(shares.parts)
        if done:
            break
    assert done, "it never settles"
    assert sorted(every) == sorted(wanted)
    sizes = [len(part) for part in now.values()]
    assert max(sizes) - min(sizes) <= 1
