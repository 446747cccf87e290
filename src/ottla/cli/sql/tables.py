"""Rows of a query, drawn for people."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

_NARROWEST: Final = 6


def read_row(line: bytes) -> Any:
    """Numbers with a point stay as they were written: a DECIMAL(6, 2) is 5.00, where a float would say 5.0."""
    from msgspec import Raw

    return json.loads(line, parse_float=lambda digits: Raw(digits.encode()))


def as_text(value: Any) -> str:
    from msgspec.json import encode
    from msgspec.json import format as spaced

    return spaced(encode(value), indent=0).decode()


@dataclass(frozen=True, slots=True)
class Tables:
    """How rows are drawn."""

    width: int = 0
    """Of a column; 0: all together fit the terminal."""
    wraps: bool = True
    """Whether what does not fit goes on below; else it is cut."""

    def _width(self, columns: int) -> int:
        return self.width or max(_NARROWEST, (shutil.get_terminal_size().columns - 1) // max(columns, 1) - 1)

    def rule(self, columns: int) -> str:
        return "+" + "+".join("-" * self._width(columns) for _ in range(columns)) + "+"

    def row(self, cells: Sequence[Any], columns: int) -> str:
        width = self._width(columns)
        texts = [each if isinstance(each, str) else as_text(each) for each in cells]
        if not self.wraps:
            texts = [text if len(text) <= width else text[: max(width - 3, 0)] + "..." for text in texts]
        parts = [[text[at : at + width] for at in range(0, len(text), width)] or [""] for text in texts]
        height = max(map(len, parts), default=1)
        return "\n".join(
            "|" + "|".join((part[line] if line < len(part) else "").ljust(width) for part in parts) + "|"
            for line in range(height)
        )
