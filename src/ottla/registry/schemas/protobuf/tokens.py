"""The words of a .proto file: one pass with one pattern, comments dropped, every token with its place."""

import re
from dataclasses import dataclass
from typing import Final

from ottla.registry.schemas.base import Budget, InvalidSchema

_TOKEN: Final = re.compile(
    r"""
      (?P<skip>   [ \t\r\n\f\v]+ | //[^\n]* | /\*[\s\S]*?\*/ )
    | (?P<number> \.?[0-9](?:[eE][+-] | [A-Za-z0-9_.])* )
    | (?P<word>   [A-Za-z_.][A-Za-z0-9_.]* )
    | (?P<string> "[^"\\\n]*(?:\\[^\n][^"\\\n]*)*" | '[^'\\\n]*(?:\\[^\n][^'\\\n]*)*' )
    | (?P<mark>   [{}()\[\]<>=;:,/+-] )
    """,
    re.VERBOSE,
)

_COUNTED: Final = 1_000
"""Tokens that are paid for together."""
_TOKENS_PER_STEP: Final = 2

_ESCAPE: Final = re.compile(
    rb"\\(?:(?P<octal>[0-7]{1,3})|[xX](?P<hex>[0-9A-Fa-f]{1,2})"
    rb"|u(?P<four>[0-9A-Fa-f]{4})|U(?P<eight>[0-9A-Fa-f]{8})|(?P<one>[^0-7xXuU]))"
)
_ONE: Final = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


@dataclass(slots=True)
class Token:
    kind: str
    """word, number, string, mark; end after the last one."""
    text: str
    at: int


def tokens_of(text: str, budget: Budget) -> list[Token]:
    """Raises InvalidSchema, and TooComplex for more tokens than the budget has steps for: a semicolon is one, too."""
    found: list[Token] = []
    at, end = 0, len(text)
    match = _TOKEN.match
    while at < end:
        token = match(text, at)
        if token is None:
            raise syntax_error(text, at, _what_is_wrong(text, at))
        kind = token.lastgroup
        if kind != "skip":
            assert kind is not None
            found.append(Token(kind, token.group(), at))
            if not len(found) % _COUNTED:
                budget.spend(_COUNTED // _TOKENS_PER_STEP)
        at = token.end()
    found.append(Token("end", "", end))
    return found


def _what_is_wrong(text: str, at: int) -> str:
    if text.startswith("/*", at):
        return "unterminated comment"
    return "unterminated string" if text[at] in "\"'" else f"unexpected {text[at]!r}"


def syntax_error(text: str, at: int, what: str) -> InvalidSchema:
    """Worded as Wire does, so that who looks for a place in Confluent's messages finds it in ours."""
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return InvalidSchema(f"Syntax error in :{line}:{column}: {what}")


def unquoted(token: str) -> bytes:
    """What a string stands for. Raises ValueError if it holds an escape that there is not."""
    raw = token[1:-1].encode("utf-8")
    if b"\\" not in raw:
        return raw
    parts: list[bytes] = []
    at = 0
    while (slash := raw.find(b"\\", at)) >= 0:
        parts.append(raw[at:slash])
        escape = _ESCAPE.match(raw, slash)
        if escape is None:
            raise ValueError("a backslash with nothing known behind it")
        parts.append(_unescaped(escape))
        at = escape.end()
    parts.append(raw[at:])
    return b"".join(parts)


def _unescaped(escape: re.Match[bytes]) -> bytes:
    digits = escape.group(escape.lastgroup or 0)
    match escape.lastgroup:
        case "octal":
            return bytes([int(digits, 8) & 0xFF])
        case "hex":
            return bytes([int(digits, 16)])
        case "one":
            return _ONE.get(digits, digits)
        case _:
            return chr(int(digits, 16)).encode("utf-8")  # ValueError: beyond Unicode, or half a pair


def quoted(value: bytes) -> str:
    """As Wire's printer writes it; bytes that are no text stand by their number."""
    try:
        text = value.decode("utf-8").translate(_QUOTED)
    except UnicodeDecodeError:
        text = "".join(f"\\{byte:03o}" if byte >= 0x80 else chr(byte).translate(_QUOTED) for byte in value)
    return f'"{text}"'


_QUOTED: Final = {code: f"\\{code:03o}" for code in (*range(0x20), 0x7F)} | {
    ord(char): "\\" + char for char in "\\'\""
} | {
    raw[0]: "\\" + letter.decode() for letter, raw in _ONE.items()
}  # fmt: skip
