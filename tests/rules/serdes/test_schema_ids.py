"""How records name their schemas, byte for byte as Confluent's serializers do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.serdes.base import SerdeError
from ottla.serdes.schema_ids import (
    MOST_INDEXES,
    SchemaId,
    framed,
    guid_header,
    read_indexes,
    schema_of,
    write_indexes,
)

GUID = "89791762-2336-4186-9674-299b90a802e2"
BY_GUID = bytes.fromhex("01" + GUID.replace("-", ""))


def test_an_id_is_a_zero_and_four_bytes_in_front() -> None:
    assert framed(258, b"x") == b"\0\0\0\1\2x"
    assert schema_of(b"\0\0\0\1\2x", (), "value") == (SchemaId(id=258), 5)


def test_a_guid_is_a_one_and_sixteen_bytes_in_a_header_or_in_front() -> None:
    assert guid_header(GUID) == BY_GUID
    headers = [("other", b"\0"), ("__value_schema_id", BY_GUID)]
    assert schema_of(b"payload", headers, "value") == (SchemaId(guid=GUID, indexes=b""), 0)
    assert schema_of(BY_GUID + b"payload", (), "value") == (SchemaId(guid=GUID), 17)


def test_a_header_counts_before_what_stands_in_front_and_for_its_own_part_only() -> None:
    headers = [("__value_schema_id", BY_GUID)]
    data = framed(7, b"x")
    assert schema_of(data, headers, "value") == (SchemaId(guid=GUID, indexes=b""), 0)
    assert schema_of(data, headers, "key") == (SchemaId(id=7), 5)
    assert schema_of(data, [("__value_schema_id", None)], "value") == (SchemaId(id=7), 5)


@pytest.mark.parametrize("data", [b"", b"\0\0\0\1", b"\2abcdefgh", BY_GUID[:-1], b"hello"])
def test_what_names_no_schema_is_refused(data: bytes) -> None:
    with pytest.raises(SerdeError, match="no schema id in front of it"):
        schema_of(data, (), "value")
    with pytest.raises(SerdeError, match="no schema id in front of it"):
        schema_of(framed(1, b""), [("__value_schema_id", data)], "value")


@pytest.mark.parametrize(
    ("indexes", "written"), [((0,), "00"), ((1,), "0202"), ((2, 0, 300), "060400d804"), ((0, 0), "040000")]
)
def test_message_indexes_are_zigzag_numbers_and_the_first_message_one_byte(
    indexes: tuple[int, ...], written: str
) -> None:
    assert write_indexes(indexes) == bytes.fromhex(written)
    assert read_indexes(b"ab" + bytes.fromhex(written) + b"rest", 2) == (indexes, 2 + len(written) // 2)


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=MOST_INDEXES))
def test_message_indexes_are_read_as_they_were_written(indexes: list[int]) -> None:
    written = write_indexes(indexes)
    assert read_indexes(written, 0) == (tuple(indexes), len(written))


@given(st.binary(max_size=40))
def test_no_bytes_break_the_reading_of_indexes(data: bytes) -> None:
    try:
        indexes, place = read_indexes(data, 0)
    except SerdeError:
        return
    assert len(indexes) <= MOST_INDEXES and place <= len(data)
