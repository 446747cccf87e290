"""DELIMITED: a line of values with a delimiter between them, in quotes where needed, as RFC 4180 has it.

TIMESTAMP is milliseconds, TIME milliseconds of the day, DATE days since 1970, BYTES base64; an empty value is null.
"""

import base64
import binascii
import csv
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from ottla.serdes import dates, decimals
from ottla.serdes import values as v
from ottla.serdes.base import Serde, SerdeError, shown
from ottla.serdes.types import Type
from ottla.sql.arguments import Refused
from ottla.sql.formats.format import Format
from ottla.sql.formats.rows import Columns, Headers, RowSerde
from ottla.sql.types import sql_text

LONGEST_VALUE: Final = 16 << 20
"""Characters of one value."""


def check(format: Format, columns: Columns, part: str) -> None:
    if len(format.separator) != 1:
        raise Refused(f"a delimiter is one character, TAB or SPACE, not {format.delimiter!r}")
    for name, kind in columns:
        if kind.name in {"array", "map", "struct"}:
            raise Refused(f"DELIMITED has no {sql_text(kind)} ({name}): use {part.upper()}_FORMAT='JSON' or another")
    if format.wrap is not None and len(columns) == 1:
        raise Refused("DELIMITED has neither wrapped nor unwrapped columns: leave WRAP_SINGLE_VALUE out")


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = int(text)
        if not low <= number <= high or text.strip() != text or "_" in text:
            raise ValueError(f"{text!r} does not fit")
        return number

    return read


def _decimal(kind: Type) -> Callable[[str], Decimal]:
    def read(text: str) -> Decimal:
        found = decimals.parsed(text)
        fitted = None if found is None else decimals.fit_exactly(found, kind)
        if fitted is None:
            raise ValueError(f"{text!r} is no {sql_text(kind)}")
        return fitted

    return read


def _moment(convert: Callable[[int], Any], high: int) -> Callable[[str], Any]:
    whole = _whole(-high - 1, high)

    def read(text: str) -> Any:
        found = convert(whole(text))
        if found is None:
            raise ValueError(f"{text!r} is out of range")
        return found

    return read


def _double(text: str) -> float:
    found = v.string_to_double(text)
    if found is None:
        raise ValueError(f"{text!r} is no number")
    return found


def _reader(kind: Type) -> Callable[[str], Any]:
    return _decimal(kind) if kind.name == "decimal" else _READ[kind.name]


_READ: Final[dict[str, Callable[[str], Any]]] = {
    "boolean": lambda text: text.lower() == "true",
    "int": _whole(v.INT_MIN, v.INT_MAX),
    "long": _whole(v.LONG_MIN, v.LONG_MAX),
    "double": _double,
    "string": str,
    "binary": lambda text: base64.b64decode(text, validate=True),
    "date": _moment(dates.date_of, v.INT_MAX),
    "time": _moment(dates.time_of, v.INT_MAX),
    "timestamp": _moment(dates.timestamp_of, v.LONG_MAX),
}
_WRITTEN: Final[dict[str, Callable[[Any], str]]] = {
    "boolean": lambda given: "true" if given else "false",
    "int": str,
    "long": str,
    "double": v.double_text,
    "decimal": decimals.plain,
    "string": str,
    "binary": lambda given: base64.b64encode(given).decode(),
    "date": lambda given: str(dates.days_of(given)),
    "time": lambda given: str(dates.ms_of_day(given)),
    "timestamp": lambda given: str(dates.ms_of(given)),
}


class DelimitedSerde(RowSerde):
    name = "DELIMITED"

    def __init__(self, columns: Columns, part: str, separator: str) -> None:
        super().__init__(columns, part, wrapped=True)
        self.separator = separator

    def read_content(self, data: bytes, headers: Headers) -> Any:
        try:
            values = self._split(str(data, "utf-8"))
            if len(values) != len(self.columns):
                raise ValueError(f"{len(self.columns)} values expected, {len(values)} found")
            return {
                name: None if text == "" else _reader(kind)(text)
                for (name, kind), text in zip(self.columns, values, strict=True)
            }
        except (ValueError, csv.Error, binascii.Error, OverflowError) as error:
            raise SerdeError(f"{self!r}: {error}, in {shown(data)}") from error

    def _split(self, line: str) -> list[str]:
        if csv.field_size_limit() < LONGEST_VALUE:
            csv.field_size_limit(LONGEST_VALUE)
        rows = csv.reader([line] if "\n" not in line else line.splitlines(keepends=True), delimiter=self.separator)
        return next(rows, [])

    def write_content(self, content: Any, topic: str) -> bytes:
        try:
            texts = [
                self._quoted(None if (each := content.get(name)) is None else _WRITTEN[kind.name](each), place == 0)
                for place, (name, kind) in enumerate(self.columns)
            ]
        except (AttributeError, TypeError, ValueError) as error:
            raise SerdeError(f"{self!r}: {error}") from error
        return self.separator.join(texts).encode()

    def _quoted(self, text: str | None, first: bool) -> str:
        """In quotes where a reader would stumble, and where Java's library has them: an empty first value, blanks at an
        end."""
        if text is None:
            return ""
        if text == "":
            return '""' if first else ""
        special = any(each in text for each in (self.separator, '"', "\n", "\r"))
        if special or text[0] <= "#" or text[-1] <= " ":
            return '"' + text.replace('"', '""') + '"'
        return text


def serde(format: Format, columns: Columns, part: str) -> Serde[Any]:
    return DelimitedSerde(columns, part, format.separator)
