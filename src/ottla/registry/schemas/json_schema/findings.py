"""What a rule says about a pair of shapes. A rule does not compare what is inside: it names the inner pairs, and what
follows if they can be read or not, so that each pair is compared once however many paths lead to it."""

from dataclasses import dataclass, field
from typing import TypeAlias

from ottla.registry.schemas.base import Budget
from ottla.registry.schemas.json_schema.shapes import Shape, Sub, shape_of

Pair: TypeAlias = tuple[Shape, Shape]
"""Writer and reader."""


@dataclass(frozen=True, slots=True)
class Found:
    """A difference, compatible or not."""

    code: str
    path: str


@dataclass(frozen=True, slots=True)
class Inner:
    """All differences of a pair are also differences here."""

    path: str
    pair: Pair


@dataclass(frozen=True, slots=True)
class Covered:
    """As Inner, and then a word about it."""

    path: str
    pair: Pair
    readable: str
    unreadable: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a pair can be read, told as one difference and without those inside."""

    path: str
    pair: Pair
    readable: str
    unreadable: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """It is enough that one of the pairs can be read; else the rest counts."""

    pairs: tuple[Pair, ...]
    code: str | None
    """What to say then."""
    otherwise: "tuple[Finding, ...]"


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """Branches of a writer and of a reader: as many as the fewer side has must find a partner."""

    writers: tuple[Shape, ...]
    readers: tuple[Shape, ...]
    likely: tuple[tuple[int, ...], ...]
    """For each of the writers the readers to be tried first: mostly they are enough, and large unions have many."""
    keyword: str
    code: str
    """Said if they do not."""

    def pair(self, writer: int, reader: int) -> Pair:
        return self.writers[writer], self.readers[reader]


Finding: TypeAlias = Found | Inner | Covered | Verdict | OneOf | Matched


@dataclass(slots=True)
class Findings:
    budget: Budget
    all: list[Finding] = field(default_factory=list)

    def add(self, code: str, path: str = "") -> None:
        self.all.append(Found(code, path))

    def inside(self, path: str, writer: Sub, reader: Sub) -> None:
        self.all.append(Inner(path, (shape_of(writer), shape_of(reader))))

    def covered(self, path: str, writer: Sub, reader: Sub, what: str) -> None:
        self.all.append(
            Covered(
                path,
                (shape_of(writer), shape_of(reader)),
                f"{what}_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
                f"{what}_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
            )
        )
