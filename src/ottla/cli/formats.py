"""`--format`: a text with percent escapes, compiled once into parts that write one record each.

The letters are rpk's; but %T is the timestamp, as in kcat, where rpk has the length of the topic's name.
"""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.protocol.records import Record

Part = Callable[["Formatted"], bytes]
"""Writes one piece of one record."""
Modifier = Callable[[bytes | None], bytes]


class Formatted(NamedTuple):
    """A record and what is known around it."""

    topic: str
    partition: int
    record: Record
    leader_epoch: int = -1
    high_watermark: int = -1
    log_start_offset: int = -1
    number: int = 0


class BadFormat(ValueError):
    """The text names the place and what may stand there."""


HELP: Final = r"""
formats (-f):
  %t topic      %p partition   %o offset       %e leader epoch     %i number of the record, from 1
  %k key        %v value (%s)  %K %V their lengths in bytes, -1 when null (%S as %V)
  %T timestamp in milliseconds; %T{iso} or %T{strftime[%H:%M:%S]} in UTC (%d is the same)
  %h headers as name=value,...; %h{%k: %v; } gives the form of each; %H their number
  %[ log start offset          %] high watermark                   %% a percent sign
  %k{hex} %v{hex} %v{base64} %v{json} %v{repr} encode the bytes; numbers take {hex}, {big8} .. {big64}
  %k{int} %v{long} %v{double} read what Java's serializers of numbers write; other bytes are shown in hex
  \n \t \r \\ \xNN are what they look like. Null keys and values print as nothing.
"""

_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "\\": b"\\", "0": b"\0"}

_NUMBERS: Final[dict[str, Callable[[Formatted], int]]] = {
    "p": lambda f: f.partition,
    "o": lambda f: f.record.offset,
    "e": lambda f: f.leader_epoch,
    "i": lambda f: f.number,
    "K": lambda f: _length(f.record.key),
    "V": lambda f: _length(f.record.value),
    "S": lambda f: _length(f.record.value),
    "H": lambda f: len(f.record.headers),
    "[": lambda f: f.log_start_offset,
    "]": lambda f: f.high_watermark,
}

_TEXTS: Final[dict[str, Callable[[Formatted], bytes | None]]] = {
    "t": lambda f: f.topic.encode(),
    "k": lambda f: f.record.key,
    "v": lambda f: f.record.value,
    "s": lambda f: f.record.value,
}


def _length(value: bytes | None) -> int:
    return -1 if value is None else len(value)


class Format:
    """`Format("%k=%v\\n").render(record)`"""

    __slots__ = ("_parts",)

    def __init__(self, text: str) -> None:
        self._parts = _compile(text, _record_part)

    def render(self, record: Formatted) -> bytes:
        return b"".join([part(record) for part in self._parts])


def _compile(text: str, percent: "Callable[[str, int], tuple[Part, int]]") -> list[Part]:
    parts: list[Part] = []
    plain = bytearray()
    pos = 0
    while pos < len(text):
        char = text[pos]
        if char == "\\":
            piece, pos = _escape(text, pos)
            plain += piece
        elif char == "%" and text[pos + 1 : pos + 2] in ("%", "{", "}"):
            plain += text[pos + 1].encode()
            pos += 2
        elif char == "%":
            _close(parts, plain)
            part, pos = percent(text, pos)
            parts.append(part)
        else:
            plain += char.encode()
            pos += 1
    _close(parts, plain)
    return parts


def _close(parts: list[Part], plain: bytearray) -> None:
    if plain:
        piece = bytes(plain)
        parts.append(lambda _: piece)
        plain.clear()


def _escape(text: str, pos: int) -> tuple[bytes, int]:
    letter = text[pos + 1 : pos + 2]
    if letter == "x":
        digits = text[pos + 2 : pos + 4]
        try:
            return bytes.fromhex(digits) if len(digits) == 2 else _bad_escape(text, pos), pos + 4
        except ValueError:
            _bad_escape(text, pos)
    if letter not in _ESCAPES:
        _bad_escape(text, pos)
    return _ESCAPES[letter], pos + 2


def _bad_escape(text: str, pos: int) -> bytes:
    raise BadFormat(rf"{text[pos : pos + 4]!r} in the format: after a backslash stand n, t, r, 0, \ or xNN")


def _record_part(text: str, pos: int) -> tuple[Part, int]:
    letter = text[pos + 1 : pos + 2]
    modifier, after = _modifier(text, pos + 2)
    if letter in _NUMBERS:
        return _number_part(_NUMBERS[letter], modifier), after
    if letter in _TEXTS:
        read, change = _TEXTS[letter], _text_modifier(modifier)
        return lambda f: change(read(f)), after
    if letter in ("T", "d"):
        return _time_part(modifier), after
    if letter == "h":
        return _headers_part(modifier), after
    raise BadFormat(
        f"%{letter} in the format means nothing: there are %t %p %o %e %i %k %v %K %V %T %h %H %[ %] and %%"
    )


def _modifier(text: str, pos: int) -> tuple[str | None, int]:
    """What stands in the braces behind an escape; braces may nest: `%h{%k{hex}}`."""
    if text[pos : pos + 1] != "{":
        return None, pos
    depth = 0
    for index in range(pos, len(text)):
        if text[index] in "{}" and text[index - 1] != "%":
            depth += 1 if text[index] == "{" else -1
            if depth == 0:
                return text[pos + 1 : index], index + 1
    raise BadFormat(f"{text[pos:]!r} in the format: the brace is never closed")


def _number_part(read: Callable[[Formatted], int], modifier: str | None) -> Part:
    if modifier is None or modifier == "ascii":
        return lambda f: b"%d" % read(f)
    if modifier == "hex":
        return lambda f: b"%x" % read(f)
    name, bits = modifier.rstrip("0123456789"), modifier.lstrip("abcdefghijklmnopqrstuvwxyz")
    if name in ("big", "little") and bits in ("8", "16", "32", "64"):
        width, order = int(bits) // 8, name
        mask = (1 << int(bits)) - 1
        return lambda f: (read(f) & mask).to_bytes(width, "big" if order == "big" else "little")
    raise BadFormat(f"{{{modifier}}} does not suit a number: use hex, big8, big16, big32, big64 or little8 ..")


def _text_modifier(modifier: str | None) -> Modifier:
    if modifier is None:
        return lambda value: value or b""
    if modifier == "hex":
        return lambda value: (value or b"").hex().encode()
    if modifier == "base64":
        from base64 import b64encode

        return lambda value: b64encode(value or b"")
    if modifier == "repr":
        return lambda value: repr(value).encode()
    if modifier == "json":
        import json

        return lambda value: b"null" if value is None else json.dumps(value.decode(errors="replace")).encode()
    if modifier in _LAYOUTS:
        return _number_reader(_LAYOUTS[modifier])
    raise BadFormat(f"{{{modifier}}} does not suit bytes: use hex, base64, json, repr, int, long or double")


_LAYOUTS: Final = {"int": ">i", "long": ">q", "double": ">d"}


def _number_reader(layout: str) -> Modifier:
    import struct

    size = struct.calcsize(layout)

    def read(value: bytes | None) -> bytes:
        if value is None or len(value) != size:
            return (value or b"").hex().encode()
        return str(struct.unpack(layout, value)[0]).encode()

    return read


def _time_part(modifier: str | None) -> Part:
    if modifier is None:
        return lambda f: b"%d" % f.record.timestamp
    if modifier in ("iso", "utc"):
        from ottla.cli.output import time_text

        return lambda f: time_text(f.record.timestamp).encode()
    if modifier.startswith("strftime[") and modifier.endswith("]"):
        pattern = modifier[len("strftime[") : -1]
        return lambda f: _strftime(pattern, f.record.timestamp)
    raise BadFormat(f"{{{modifier}}} does not suit a time: use iso or strftime[%Y-%m-%d]")


def _strftime(pattern: str, timestamp_ms: int) -> bytes:
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime(pattern).encode()
    except (OverflowError, ValueError, OSError):
        return b"%d" % timestamp_ms


def _headers_part(modifier: str | None) -> Part:
    if modifier is None:
        return lambda f: b",".join([name.encode() + b"=" + (value or b"") for name, value in f.record.headers])
    # A header looks like a record that has nothing but key and value.
    parts = _compile(modifier, _header_part)

    def render(record: Formatted) -> bytes:
        out = []
        for name, value in record.record.headers:
            header = Formatted("", 0, Record(0, 0, name.encode(), value))
            out += [part(header) for part in parts]
        return b"".join(out)

    return render


def _header_part(text: str, pos: int) -> tuple[Part, int]:
    if text[pos + 1 : pos + 2] not in ("k", "v", "K", "V"):
        raise BadFormat(f"%{text[pos + 1 : pos + 2]} inside %h{{}}: only %k %v %K %V stand there")
    return _record_part(text, pos)
