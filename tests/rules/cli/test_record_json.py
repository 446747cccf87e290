"""What `consume --json` writes, `produce --json` reads."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.formats import Formatted
from ottla.cli.record_json import BadRecord, InputRecord, parse_record, record_line
from ottla.protocol.records import Record

content = st.none() | st.binary(max_size=8)
headers = st.lists(st.tuples(st.text(max_size=5), content), max_size=3).map(tuple)


@given(content, content, headers, st.integers(0, 2**53))
def test_a_record_survives_the_way_out_and_in(
    key: bytes | None, value: bytes | None, given_headers: tuple[tuple[str, bytes | None], ...], timestamp: int
) -> None:
    line = record_line(Formatted("orders", 2, Record(9, timestamp, key, value, given_headers)))
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert parse_record(line) == InputRecord(value, key, given_headers, 2, timestamp)


def test_text_stays_readable_and_bytes_go_under_another_name() -> None:
    line = record_line(Formatted("orders", 0, Record(7, 5, "ä".encode(), b"\xff", (("h", None),))))
    assert json.loads(line) == {
        "topic": "orders",
        "partition": 0,
        "offset": 7,
        "timestamp": 5,
        "key": "ä",
        "value_base64": "/w==",
        "headers": [{"key": "h", "value": None}],
    }


def test_values_may_be_json_themselves_and_headers_an_object() -> None:
    line = b'{"value": {"total": 3}, "headers": {"a": "1", "b": null}}'
    assert parse_record(line) == InputRecord(b'{"total":3}', None, (("a", b"1"), ("b", None)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"hello", "it is not JSON"),
        (b"[1]", "an object is expected"),
        (b'{"partition": "1"}', "partition is a whole number, not '1'"),
        (b'{"timestamp": true}', "timestamp is a whole number, not True"),
        (b'{"value_base64": "?"}', "value_base64 is not base64"),
        (b'{"headers": 3}', "headers are an object, or a list"),
        (b'{"headers": [{"value": "x"}]}', 'a header is an object with "key"'),
        (b"\xff", "it is not JSON"),
        (b'{"total": 3}', "'total' is not part of a record"),
        (b'{"value": "x", "Key": "y"}', "'Key' is not part of a record"),
    ],
)
def test_a_line_that_is_no_record_is_told_why(line: bytes, message: str) -> None:
    with pytest.raises(BadRecord, match=message):
        parse_record(line)
