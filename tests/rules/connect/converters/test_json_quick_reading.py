"""The quick way to read objects of plain values gives what the other one gives, or gives up."""

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ottla.connect.converters.json_reading import quick_reader, reader_of
from ottla.connect.converters.json_texts import parsed
from ottla.connect.data.schema import (
    FLOAT64,
    INT8,
    INT64,
    OPTIONAL_BOOLEAN,
    OPTIONAL_INT32,
    OPTIONAL_STRING,
    STRING,
    array_schema,
    struct_schema,
)

ROW = struct_schema(
    {
        "a": INT8,
        "b": INT64,
        "c": FLOAT64,
        "d": STRING,
        "e": OPTIONAL_STRING,
        "f": OPTIONAL_BOOLEAN,
        "g": OPTIONAL_INT32,
    }
)
ANY = st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.integers(-200, 200) | st.floats() | st.text()
NAMES = st.sampled_from([*(field.name for field in ROW.fields), "more"])


@given(st.dictionaries(NAMES, ANY, min_size=4))
def test_it_agrees_or_gives_up(found: dict[str, Any]) -> None:
    quick = quick_reader(ROW)
    assert quick is not None
    data = json.dumps(found, allow_nan=False, default=str).encode() if _is_json(found) else b"{}"
    try:
        row = quick(data)
    except msgspec.DecodeError:
        return
    assert row == reader_of(ROW, True)(parsed(data))


def _is_json(found: dict[str, Any]) -> bool:
    return all(not isinstance(each, float) or each - each == 0 for each in found.values())


def test_it_takes_what_is_plain_in_any_order_with_fields_left_out() -> None:
    quick = quick_reader(ROW)
    assert quick is not None
    assert quick(b'{"more":[1],"b":2,"a":-128,"c":3,"d":"x"}').values == [-128, 2, 3.0, "x", None, None, None]


def test_there_is_none_for_what_is_not_plain() -> None:
    assert quick_reader(struct_schema({"list": array_schema(INT64)})) is None
    assert quick_reader(struct_schema({"n": OPTIONAL_INT32.but(default=3)})) is None
    assert quick_reader(struct_schema({'"': INT64})) is None
    assert quick_reader(INT64) is None
