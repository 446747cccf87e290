"""Differences of counters between two looks: rates, averages and shares of late."""

from ottla.metrics.window import Passed, Window


def test_the_first_question_is_answered_from_the_beginning() -> None:
    window = Window(1_000, [10])
    assert window.look(3_000, [30]) == Passed(2_000, (20,))


def test_a_window_goes_back_to_the_latest_look_that_is_old_enough() -> None:
    window = Window(0, [0], span_ms=60_000)
    for second in (15, 30, 45, 60, 75):
        window.look(second * 1000, [second])
    assert window.look(90_000, [90]) == Passed(60_000, (60,))


def test_after_a_long_silence_the_window_is_as_long_as_the_silence() -> None:
    window = Window(0, [0], span_ms=60_000)
    window.look(15_000, [15])
    assert window.look(600_000, [615]) == Passed(585_000, (600,))


def test_two_who_ask_share_a_window_and_do_not_shorten_it_for_each_other() -> None:
    window = Window(0, [0], span_ms=60_000)
    for second in range(0, 120, 15):
        window.look(second * 1000, [second])
        window.look(second * 1000 + 500, [second])
    assert window.look(120_000, [120]) == Passed(60_000, (60,))


def test_questions_without_end_are_not_all_remembered() -> None:
    window = Window(0, [0], span_ms=60_000)
    for ms in range(200_000):
        window.look(ms, [ms])
    assert len(window._looks) < 70


def test_a_rate_is_an_amount_for_each_second() -> None:
    assert Passed(2_000, (30, 7)).per_second() == 15
    assert Passed(2_000, (30, 7)).per_second(1) == 3.5


def test_nothing_passes_in_no_time() -> None:
    assert Passed(0, (0,)).per_second() == 0


def test_an_average_is_a_sum_over_its_count_and_nothing_if_there_was_nothing() -> None:
    assert Passed(1_000, (30, 4)).share(0, 1) == 7.5
    assert Passed(1_000, (0, 0)).share(0, 1) == 0
