"""Old and new value of a row on the wire, byte for byte as Kafka Streams writes them."""

import pytest

from ottla.serdes.base import SerdeError
from ottla.streams.record import Change
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.change_serde import ChangeSerde

SERDE = ChangeSerde(Serdes.string)

EXAMPLES = [
    (Change("new", None), b"new\x01"),
    (Change(None, "old"), b"old\x00"),
    (Change("new", "old"), b"\x06newold\x02"),
    (Change("", ""), b"\x00\x02"),
    (Change("x" * 100, "y"), b"\xc8\x01" + b"x" * 100 + b"y\x02"),
]


@pytest.mark.parametrize(("change", "data"), EXAMPLES)
def test_a_change_and_its_bytes(change: Change, data: bytes) -> None:
    assert SERDE.serialize(change) == data
    assert SERDE.deserialize(data) == change


def test_a_change_that_is_not_the_latest_is_read() -> None:
    assert SERDE.deserialize(b"old\x00\x03") == Change(None, "old", is_latest=False)
    assert SERDE.deserialize(b"new\x01\x04") == Change("new", None, is_latest=True)
    assert SERDE.deserialize(b"\x06newold\x00\x05") == Change("new", "old", is_latest=False)


def test_a_change_without_values_cannot_be_written() -> None:
    with pytest.raises(SerdeError, match="neither an old nor a new value"):
        SERDE.serialize(Change(None, None))


@pytest.mark.parametrize("data", [b"", b"x\x06", b"\x03", b"x\x07\x03", b"\xff\xff\xff\xff\xff\xff\x02"])
def test_bytes_that_are_no_change_are_refused(data: bytes) -> None:
    with pytest.raises(SerdeError):
        SERDE.deserialize(data)
