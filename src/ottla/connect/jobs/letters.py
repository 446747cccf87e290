"""A dead letter as a record that its topic takes: what makes it too large is cut, what is least missed first, and a
header says what. Else the letter of a large record would stop its connector for ever."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ottla.connect.dead_letters import CUT, PREFIX, Letter, LetterPolicy, RawHeader, letter_headers
from ottla.connect.jobs.raw_record import RawRecord
from ottla.connect.jobs.sizes import size_of

_TRACE: Final = f"{PREFIX}exception.stacktrace"
_MESSAGE: Final = f"{PREFIX}exception.message"
_TELLING: Final = 300
"""Bytes of the header that says so."""

_Step = Callable[[RawRecord, int], tuple[RawRecord, str]]
"""Of a record that is so many bytes too large: a smaller one, and what is gone."""


def letter_record(letter: Letter, policy: LetterPolicy, connector: str, task: int, timestamp: int | None) -> RawRecord:
    headers = letter_headers(letter, connector, task) if policy.with_headers else letter.headers
    return RawRecord(letter.key, letter.value, policy.topic, None, timestamp, headers)


def fitted(record: RawRecord, own_headers: int, most: int) -> RawRecord:
    """`own_headers`: how many the record brought; Connect's are behind them."""
    steps: Sequence[_Step] = (
        lambda given, over: _shorter(given, _TRACE, over),
        lambda given, over: _shorter(given, _MESSAGE, over),
        lambda given, _: _without_headers(given, own_headers),
        _without_value,
        _without_key,
    )
    cut: list[str] = []
    for step in steps:
        over = size_of(record) + _TELLING - most
        if over <= 0:
            break
        record, gone = step(record, over)
        cut += [gone] if gone else []
    return record._replace(headers=[*record.headers, (CUT, ", ".join(cut).encode())]) if cut else record


def _shorter(record: RawRecord, name: str, over: int) -> tuple[RawRecord, str]:
    """A trace tells at its end, a message at its beginning."""
    headers: list[RawHeader] = list(record.headers)
    for at, (header, value) in reversed(list(enumerate(headers))):
        if header == name and value:
            left = max(len(value) - over, 0)
            kept = value[len(value) - left :] if name == _TRACE else value[:left]
            headers[at] = (header, kept.decode(errors="ignore").encode())
            return record._replace(headers=headers), f"{name.removeprefix(PREFIX)} of {len(value)} bytes"
    return record, ""


def _without_headers(record: RawRecord, own: int) -> tuple[RawRecord, str]:
    return record._replace(headers=list(record.headers)[own:]), f"{own} headers" if own else ""


def _without_value(record: RawRecord, _: int) -> tuple[RawRecord, str]:
    return record._replace(value=None), f"value of {len(record.value)} bytes" if record.value else ""


def _without_key(record: RawRecord, _: int) -> tuple[RawRecord, str]:
    return record._replace(key=None), f"key of {len(record.key)} bytes" if record.key else ""
