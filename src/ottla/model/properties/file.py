"""Java's .properties format, as java.util.Properties reads it. Owns the text only: names and values come out raw."""

from collections.abc import Mapping

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Name to value; a name given twice keeps its last value. Raises ValueError with the line of a bad escape."""
    found: dict[str, str] = {}
    for number, line in _logical_lines(text):
        end = _key_end(line)
        rest = line[end:].lstrip(_BLANKS)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANKS)
        found[_unescape(line[:end], number)] = _unescape(rest, number)
    return found


def format_properties(values: Mapping[str, str]) -> str:
    """What `parse_properties` reads as `values`. Only values are escaped: names of settings need none."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in values.items())


def _escaped(value: str) -> str:
    for char, escape in (("\\", "\\"), *((char, letter) for letter, char in _ESCAPES.items())):
        value = value.replace(char, f"\\{escape}")
    return f"\\{value}" if value.startswith(" ") else value


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Comments and blank lines dropped, lines ending in an odd number of backslashes joined with the next."""
    lines: list[tuple[int, str]] = []
    joined: str | None = None
    began = 0
    for number, natural in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        line = natural.lstrip(_BLANKS)
        if joined is None:
            if not line or line[0] in "#!":
                continue
            joined, began = "", number
        trailing = len(line) - len(line.rstrip("\\"))
        if trailing % 2:
            joined += line[:-1]
            continue
        lines.append((began, joined + line))
        joined = None
    if joined:
        lines.append((began, joined))
    return lines


def _key_end(line: str) -> int:
    position = 0
    while position < len(line):
        if line[position] == "\\":
            position += 1
        elif line[position] in "=: \t\f":
            break
        position += 1
    return min(position, len(line))


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "\\" and position < len(text):
            char = text[position]
            position += 1
            if char == "u":
                char = _code_point(text[position : position + 4], line)
                position += 4
            else:
                char = _ESCAPES.get(char, char)
        out.append(char)
    # Java writes a character beyond the first plane as two \u escapes.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _code_point(digits: str, line: int) -> str:
    if len(digits) != 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
        raise ValueError(f"line {line}: \\u has to be followed by four hexadecimal digits, not {digits!r}")
    return chr(int(digits, 16))
