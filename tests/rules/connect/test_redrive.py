"""Redrive: each letter once, in whatever order they are asked for; and to the topics that they came from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.connect.run import told_counts
from ottla.connect.redrive import DeadLetter, Done, RedriveRefused, condition, require_whole
from ottla.model.ids import TopicPartition
from ottla.protocol.records import Record


@given(
    st.lists(st.integers(0, 200), unique=True, min_size=1).map(sorted),
    st.lists(st.sets(st.integers(0, 60), max_size=20), max_size=5),
)
def test_what_was_sent_is_remembered_exactly_also_as_text(known: list[int], rounds: list[set[int]]) -> None:
    done = Done(known[0])
    sent: set[int] = set()
    for chosen in rounds:
        these = {known[nth] for nth in chosen if nth < len(known)} - sent
        left = [offset for offset in known if offset >= done.first]
        done = done.plus(these, left)
        sent |= these
        done = Done.of(done.first, done.as_text())
        assert {offset for offset in known if offset in done} == sent


def letter(**said: str) -> DeadLetter:
    headers = tuple((f"__connect.errors.{name.replace('_', '.')}", value.encode()) for name, value in said.items())
    return DeadLetter(TopicPartition("dlq", 0), Record(0, 0, b"k", b"value", (("own", b"1"), *headers)))


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("stage=TASK_PUT", True),
        ("stage=TASK", False),
        ("stage!=TASK_PUT", False),
        ("message~tim.*out", True),
        ("message!~tim.*out", False),
        ("value=value", True),
        ("topic=", True),
    ],
)
def test_conditions(text: str, holds: bool) -> None:
    assert condition(text)(letter(stage="TASK_PUT", exception_message="a timed out")) is holds


@pytest.mark.parametrize("text", ["stage", "colour=red", "message~(", ""])
def test_a_condition_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(RedriveRefused):
        condition(text)


def test_a_letter_that_lacks_something_of_its_record_is_not_sent_again() -> None:
    whole = letter(cut="exception.stacktrace of 9000 bytes, exception.message of 70 bytes")
    require_whole([letter(), whole])
    with pytest.raises(RedriveRefused, match="letter 0:0 was too large for its topic: it has no value of 5000 bytes"):
        require_whole([whole, letter(cut="exception.stacktrace of 9000 bytes, value of 5000 bytes")])
    assert condition("cut=")(letter()) is True


def test_a_letter_keeps_its_own_headers_and_loses_what_was_said_of_its_failure() -> None:
    assert letter(stage="TASK_PUT").own_headers == [("own", b"1")]


def test_one_that_is_run_by_hand_tells_what_became_of_its_records() -> None:
    assert told_counts({"read": 3, "written": 3}) == "3 records read, 3 written"
    assert told_counts({"read": 3, "failed": 3, "letters": 3}) == (
        "3 records read, 0 written, 3 no good: 3 dead letters"
    )
    assert told_counts({"read": 3, "written": 2, "failed": 1}) == "3 records read, 2 written, 1 no good: left out"
