"""What Kafka's serdes of windowed keys write, byte for byte."""

from typing import Any

import pytest

from ottla.serdes.base import Serde, SerdeError
from ottla.streams.serdes import Serdes
from ottla.streams.windows import LONGEST_MS, Window, Windowed


def test_time_windowed_keys_are_key_then_start() -> None:
    serde = Serdes.time_windowed(Serdes.string, 5000)
    key = Windowed("k", Window(5000, 10000))
    assert serde.serialize(key) == b"k" + (5000).to_bytes(8, "big")
    assert serde.deserialize(b"k" + (5000).to_bytes(8, "big")) == key
    assert serde.deserialize(b"") is None


def test_the_end_of_a_window_stops_at_the_longest_time() -> None:
    serde = Serdes.time_windowed(Serdes.string, 5000)
    assert serde.deserialize(b"k" + LONGEST_MS.to_bytes(8, "big")) == Windowed("k", Window(LONGEST_MS, LONGEST_MS))


def test_session_keys_are_key_then_end_then_start() -> None:
    serde = Serdes.session_windowed(Serdes.long)
    key = Windowed(7, Window(3, 9))
    assert serde.serialize(key) == bytes(7) + b"\7" + bytes(7) + b"\x09" + bytes(7) + b"\3"
    assert serde.deserialize(serde.serialize(key)) == key


@pytest.mark.parametrize(
    ("serde", "data", "message"),
    [
        (Serdes.time_windowed(Serdes.string, 5), b"short", "at least 8 bytes expected, found b'short'"),
        (Serdes.session_windowed(Serdes.string), b"too short", "at least 16 bytes expected"),
        (Serdes.time_windowed(Serdes.long, 5), b"0123456789", "Serdes.long: 8 bytes expected, found b'01'"),
    ],
)
def test_bytes_that_cannot_be_read_are_named(serde: Serde[Any], data: bytes, message: str) -> None:
    with pytest.raises(SerdeError) as caught:
        serde.deserialize(data)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("serde", "value", "message"),
    [
        (Serdes.time_windowed(Serdes.string, 5), "key", "a Windowed key expected"),
        (Serdes.session_windowed(Serdes.string), Windowed(None, Window(0, 5)), "a key in the window expected"),
    ],
)
def test_a_value_of_another_type_is_refused(serde: Serde[Any], value: object, message: str) -> None:
    with pytest.raises(SerdeError) as caught:
        serde.serialize(value)
    assert message in str(caught.value)


def test_a_windowed_serde_says_what_it_is_and_nothing_is_nothing() -> None:
    serde = Serdes.time_windowed(Serdes.string, 5)
    assert repr(serde) == "Serdes.time_windowed(Serdes.string, 5)"
    assert serde.serialize(None) is None
    assert serde.deserialize(None) is None
