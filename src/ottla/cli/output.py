"""What a person or a program reads: aligned tables, JSON, sizes and times. No terminal library: import time is felt."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
Cell = str | int | None

GAP: Final = "  "
_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")


class Table:
    """Rows under headings. `records` is the same content for `--output json`."""

    __slots__ = ("headings", "rows")

    def __init__(self, *headings: str) -> None:
        self.headings = headings
        self.rows: list[tuple[Cell, ...]] = []

    def add(self, *cells: Cell) -> None:
        assert len(cells) == len(self.headings)
        self.rows.append(cells)

    def text(self) -> str:
        """Numbers to the right, words to the left, no trailing spaces; an unknown cell is a dash."""
        shown = [[_shown(cell) for cell in row] for row in self.rows]
        widths = [max(map(len, column)) for column in zip(self.headings, *shown, strict=True)]
        right = [self._is_number(index) for index in range(len(self.headings))]
        lines = [_line(cells, widths, right) for cells in ([*self.headings], *shown)]
        return "\n".join(lines) + "\n"

    def records(self) -> list[dict[str, Json]]:
        keys = [heading.lower().replace(" ", "_").replace("-", "_") for heading in self.headings]
        return [dict(zip(keys, row, strict=True)) for row in self.rows]

    def _is_number(self, column: int) -> bool:
        cells = [row[column] for row in self.rows if row[column] is not None]
        return bool(cells) and all(isinstance(cell, int) for cell in cells)


def _shown(cell: Cell) -> str:
    text = "-" if cell is None else str(cell)
    # A control character in a topic's config must not move the cursor of who looks at it.
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width, to_right in zip(cells, widths, right, strict=True)
    )
    return GAP.join(padded).rstrip()


def show(table: Table, output: str) -> None:
    if output == "json":
        show_json(table.records())
    else:
        sys.stdout.write(table.text())


def show_json(document: Json) -> None:
    import json

    json.dump(document, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


def note(text: str) -> None:
    """For people, beside the data: standard error, so that pipes stay clean. If nobody can read it, nothing is lost."""
    with suppress(OSError):
        print(text, file=sys.stderr)


def counted(number: int, noun: str, plural: str = "") -> str:
    """1 partition, 2 partitions"""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"


def size_text(size: int) -> str:
    """1536 -> 1.5 KiB"""
    if size < 1024:
        return f"{size} B"
    power = min((size.bit_length() - 1) // 10, len(_UNITS))
    return f"{size / (1 << 10 * power):.1f} {_UNITS[power - 1]}"


def time_text(timestamp_ms: int) -> str:
    """ISO 8601 in UTC with milliseconds; Kafka's -1 (no time) is a dash, and so is what no calendar holds."""
    from datetime import UTC, datetime

    if timestamp_ms < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(timestamp_ms // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{timestamp_ms % 1000:03d}Z"
