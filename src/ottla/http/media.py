"""Media types: which one a body is in, and which one a reply should be in (RFC 9110, 12.5.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"
TEXT: Final = "text/plain; charset=utf-8"
PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"
EVENTS: Final = "text/event-stream"

_MOST_RANGES: Final = 32
"""An Accept header with more is read up to here."""


@dataclass(frozen=True, slots=True)
class Media:
    """What a service reads and writes. The first of `offered` is the reply's type when the client does not care."""

    offered: tuple[str, ...] = (JSON,)
    accepted: tuple[str, ...] = (JSON,)
    problems: str | None = None
    """The type of error bodies; None: the one that was asked for."""


PLAIN: Final = Media(problems=PROBLEM)
"""Of services that follow nobody else's API."""


def name_of(content_type: str) -> str:
    """Without parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def chosen(accept: str, offered: Sequence[str]) -> str | None:
    """The offered type that the client likes best, by weight, then by our order. None: it takes none of them."""
    if not accept.strip():
        return offered[0]
    ranges = [_range(part) for part in accept.split(",")[:_MOST_RANGES] if part.strip()]
    weighed = [(_weight(name_of(each), ranges), -index) for index, each in enumerate(offered)]
    weight, negative_index = max(weighed)
    return offered[-negative_index] if weight > 0 else None


def _range(part: str) -> tuple[str, float]:
    name, *parameters = part.split(";")
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "q":
            return name.strip().lower(), _quality(value)
    return name.strip().lower(), 1.0


def _quality(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0


def _weight(name: str, ranges: Sequence[tuple[str, float]]) -> float:
    """That of the most specific range that covers the type."""
    group = name.partition("/")[0] + "/*"
    for pattern in (name, group, "*/*"):
        for each, quality in ranges:
            if each == pattern:
                return quality
    return 0.0
