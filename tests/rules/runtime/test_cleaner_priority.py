"""The cleaner is idle until it is starved, then nice for a while: it disturbs nobody, and still gets its work done."""

from ottla.runtime.cleaner.priority import LOOK_SECONDS, NICE_SECONDS, STARVED_SHARE, Standing


def test_one_that_is_seldom_kept_waiting_stays_idle() -> None:
    standing = Standing(now=100.0, waited=7.0)
    assert standing.is_idle(now=101.0, waited=7.0 + STARVED_SHARE - 0.01)
    assert standing.is_idle(now=103.0, waited=7.0 + 3 * (STARVED_SHARE - 0.01))


def test_one_that_is_starved_becomes_nice_and_tries_again_later() -> None:
    standing = Standing(now=100.0, waited=0.0)
    assert not standing.is_idle(now=101.0, waited=STARVED_SHARE)
    assert not standing.is_idle(now=101.0 + NICE_SECONDS - 0.1, waited=STARVED_SHARE)
    assert standing.is_idle(now=101.0 + NICE_SECONDS, waited=STARVED_SHARE)


def test_one_that_is_starved_even_while_nice_does_not_step_back_further() -> None:
    standing = Standing(now=0.0, waited=0.0)
    assert not any(standing.is_idle(now=float(second), waited=float(second)) for second in range(1, 60))


def test_it_is_looked_at_now_and_then() -> None:
    standing = Standing(now=5.0, waited=0.0)
    assert not standing.is_due(5.0 + LOOK_SECONDS / 2)
    assert standing.is_due(5.0 + 2 * LOOK_SECONDS)
