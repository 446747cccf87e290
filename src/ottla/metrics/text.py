"""Prometheus' text format, version 0.0.4, in pieces: whoever sends them may look after others between two of them.

All samples of a family stand together under its help and its type, so a family is written in one go, however many
pieces that takes.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

COUNTER: Final = "counter"
GAUGE: Final = "gauge"
SUMMARY: Final = "summary"
UNTYPED: Final = "untyped"

SLICE: Final = 200
"""Samples in one piece: a fraction of a millisecond."""

Value = int | float
Labels = str
"""As they stand in the text, braces and quotes included: `labels` makes them. Empty for none."""
Sample = tuple[Labels, Value]
Row = tuple[Any, ...]
"""Labels first, then a value for each family that its rows are of."""


class Family(NamedTuple):
    name: str
    kind: str
    help: str


def labels(**values: object) -> Labels:
    """labels(topic="words", partition=0) is {topic="words",partition="0"}."""
    return labelled(values.items())


def labelled(pairs: Iterable[tuple[str, object]]) -> Labels:
    inside = ",".join(f'{name}="{escaped(str(value))}"' for name, value in pairs)
    return f"{{{inside}}}" if inside else ""


def escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def head(family: Family) -> str:
    text = family.help.replace("\\", r"\\").replace("\n", r"\n")
    told = f"# HELP {family.name} {text}\n" if text else ""
    return f"{told}# TYPE {family.name} {family.kind}\n"


def number(value: Value) -> str:
    if isinstance(value, int):
        return str(value)
    return str(int(value)) if value.is_integer() else repr(value)


def one(family: Family, value: Value) -> str:
    """A family of one sample without labels."""
    return f"{head(family)}{family.name} {number(value)}\n"


def some(family: Family, samples: Iterable[Sample]) -> str:
    """A family of a few samples; nothing at all if there are none."""
    lines = "".join([f"{family.name}{mark} {number(value)}\n" for mark, value in samples])
    return head(family) + lines if lines else ""


def listed(family: Family, rows: Sequence[Row], column: int) -> Iterator[str]:
    """A family with a sample for each row, a slice at a time. For the long ones: nothing but a line for each."""
    name, head_of = family.name, head(family)
    for start in range(0, len(rows), SLICE):
        yield head_of + "".join([f"{name}{row[0]} {row[column]}\n" for row in rows[start : start + SLICE]])
        head_of = ""


def many(family: Family, samples: Iterable[Sample]) -> Iterator[str]:
    """A family of any number of samples, a slice at a time. `samples` is read as far as each piece needs."""
    lines: list[str] = []
    begun = False
    name = family.name
    for mark, value in samples:
        lines.append(f"{name}{mark} {value if isinstance(value, int) else number(value)}\n")
        if len(lines) >= SLICE:
            yield "".join(lines) if begun else head(family) + "".join(lines)
            begun, lines = True, []
    if lines:
        yield "".join(lines) if begun else head(family) + "".join(lines)
