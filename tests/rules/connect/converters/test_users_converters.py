"""Converters as users write them: what they raise about a record is a letter, what they raise of the world is not."""

from typing import Any

import pytest

from ottla.connect import spi
from ottla.connect.converters.base import Converter
from ottla.connect.data.record import SchemaAndValue
from ottla.testing import connect

NUMBERS = {"one": 1, "two": 2}


class Words(Converter):
    """Knows two words."""

    def read(self, topic: str, data: bytes | None) -> SchemaAndValue:
        return SchemaAndValue(None, NUMBERS[(data or b"").decode()])

    def write(self, topic: str, given: SchemaAndValue) -> bytes | None:
        if given.value == "away":
            raise OSError("the dictionary is away")
        return b"%d" % NUMBERS[given.value]


class Talk(spi.Source[spi.Config]):
    said: tuple[str, ...] = ("one", "three", "two")

    def read(self, start: spi.Offset | None, limit: int) -> spi.Read:
        if start is not None:
            return spi.Read((), None)
        rows = [spi.Row("t", word, key=word, headers=[("h", word)]) for word in self.said]
        return spi.Read(rows, end={"done": True})


class Away(Talk):
    said = ("away",)


WORDS = f"{__name__}:Words"


@pytest.mark.parametrize("role", ["value", "key", "header"])
def test_a_record_that_a_converter_does_not_know_what_to_do_with_is_a_letter(role: str) -> None:
    tried: Any = connect(Talk, {f"{role}.converter": WORDS, "errors.tolerance": "all"})
    assert [letter.failure.stage for letter in tried.letters] == [f"{role.upper()}_CONVERTER"]
    assert [letter.failure.message for letter in tried.letters] == ["KeyError: 'three'"]
    assert len(tried.values) == 2


def test_a_converter_without_its_dictionary_makes_no_letters() -> None:
    with pytest.raises(Exception, match="the dictionary is away"):
        connect(Away, {"value.converter": WORDS, "errors.tolerance": "all"})
