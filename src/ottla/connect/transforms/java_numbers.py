"""Texts as numbers, as Java's Long.parseLong and Double.parseDouble take them."""

import re
from typing import Final

from ottla.connect.data.errors import NumberFormatException

_WHOLE: Final = re.compile(r"[+-]?\d+")
_FRACTION: Final = re.compile(r"[+-]?(NaN|Infinity|((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)[fFdD]?)", re.ASCII)
_HEX: Final = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+[fFdD]?", re.ASCII)
_BLANKS: Final = "".join(map(chr, range(33)))
_MOST_DIGITS: Final = 4000
"""Python itself refuses to make a number of more."""


def parse_whole(text: str, bits: int) -> int:
    if len(text) <= _MOST_DIGITS and _WHOLE.fullmatch(text):
        number = int(text)
        if -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            return number
    raise NumberFormatException(f'For input string: "{text[:100]}"')


def parse_double(text: str) -> float:
    trimmed = text.strip(_BLANKS)
    if len(trimmed) <= _MOST_DIGITS:
        if _FRACTION.fullmatch(trimmed):
            bare = trimmed.rstrip("fFdD") if trimmed[-1] in "fFdD" else trimmed
            return float(bare)
        if _HEX.fullmatch(trimmed):
            return float.fromhex(trimmed.rstrip("fFdD"))
    raise NumberFormatException(f'For input string: "{trimmed[:100]}"' if trimmed else "empty String")
