"""A letter is made to fit its topic, and says what is not in it."""

import pytest

from ottla.connect.dead_letters import CUT, PREFIX, Failure, Letter, LetterPolicy
from ottla.connect.jobs.letters import fitted, letter_record
from ottla.connect.jobs.raw_record import RawRecord
from ottla.connect.jobs.sizes import size_of

POLICY = LetterPolicy(topic="letters", with_headers=True)
LONG = "a line of a trace\n" * 1000


def record_of(value: bytes, *, headers: int = 0, trace: str = LONG, message: str = "no good") -> RawRecord:
    failure = Failure("TASK_PUT", "files-sink", "ConnectException", message, trace)
    own = [("own", b"x" * 1000)] * headers
    return letter_record(Letter(b"key", value, own, 5, "orders", 0, 7, failure), POLICY, "sink", 0, 5)


def said(record: RawRecord) -> dict[str, str]:
    return {name.removeprefix(PREFIX): (value or b"").decode() for name, value in record.headers}


def test_one_that_fits_is_left_as_it_is() -> None:
    record = record_of(b"v" * 50_000)
    assert fitted(record, 0, 1_000_000) == record


@pytest.mark.parametrize(
    ("value", "headers", "most", "cut"),
    [
        (50_000, 0, 60_000, "exception.stacktrace of 18000 bytes"),
        (50_000, 20, 60_000, "exception.stacktrace of 18000 bytes, exception.message of 7 bytes, 20 headers"),
        (5_000_000, 2, 1_048_588, "exception.stacktrace of 18000 bytes, exception.message of 7 bytes, 2 headers, "
         "value of 5000000 bytes"),
    ],
)  # fmt: skip
def test_what_is_least_missed_goes_first(value: int, headers: int, most: int, cut: str) -> None:
    made = fitted(record_of(b"v" * value, headers=headers), headers, most)
    assert size_of(made) <= most
    assert made.key == b"key"
    assert made.value == (None if "value" in cut else b"v" * value)
    assert said(made)["cut"] == cut
    assert {name: text for name, text in said(made).items() if name in ("topic", "partition", "offset")} == {
        "topic": "orders",
        "partition": "0",
        "offset": "7",
    }


def test_of_a_trace_its_end_is_kept_and_of_a_message_its_beginning() -> None:
    made = fitted(record_of(b"", trace="begin" + "-" * 9_000 + "end", message="first" + "-" * 9_000), 0, 3_000)
    assert said(made)["exception.message"].startswith("first-")
    made = fitted(record_of(b"", trace="begin" + "-" * 9_000 + "end"), 0, 3_000)
    assert said(made)["exception.stacktrace"].endswith("-end")


def test_a_letter_without_connects_headers_says_it_too() -> None:
    made = fitted(RawRecord(None, b"v" * 2_000, "letters", None, 0, [("own", b"x")]), 1, 1_000)
    assert (made.value, made.headers) == (None, [(CUT, b"1 headers, value of 2000 bytes")])
