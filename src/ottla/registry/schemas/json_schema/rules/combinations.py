"""allOf, anyOf, oneOf: the criterion, the number of branches, and whether branches find partners."""

from typing import Final

from ottla.registry.schemas.json_schema.documents import Place
from ottla.registry.schemas.json_schema.findings import Findings, Matched
from ottla.registry.schemas.json_schema.shapes import Combination, Sub, shape_of

SMALL_UNION: Final = 64
"""Pairs of branches: so many are looked at without choosing."""


def compare(writer: Combination, reader: Combination, findings: Findings) -> None:
    if writer.criterion != reader.criterion:
        if not _may_become(writer, reader):
            findings.add("COMBINED_TYPE_CHANGED")
            return
        findings.add("COMBINED_TYPE_EXTENDED")
    written, read = _different(writer.parts), _different(reader.parts)
    kind = "PRODUCT" if reader.criterion == "allOf" else "SUM"
    if len(written) != len(read):
        findings.add(f"{kind}_TYPE_EXTENDED" if len(written) < len(read) else f"{kind}_TYPE_NARROWED")
    if written and read:
        findings.budget.spend(len(written) + len(read))
        sides = tuple(map(shape_of, written)), tuple(map(shape_of, read))
        likely = _likely(written, read)
        findings.all.append(Matched(*sides, likely, writer.criterion, "COMBINED_TYPE_SUBSCHEMAS_CHANGED"))


def _may_become(writer: Combination, reader: Combination) -> bool:
    if reader.criterion == "anyOf":
        return True
    if reader.criterion == "oneOf":
        return len(writer.parts) == 1
    return len(writer.parts) == len(reader.parts) == 1


def _different(parts: tuple[Sub, ...]) -> tuple[Sub, ...]:
    """Branches that stand twice count once."""
    distinct: dict[object, Sub] = {}
    for part in parts:
        distinct.setdefault(part.key if isinstance(part, Place) else part, part)
    return tuple(distinct.values())


def _likely(written: tuple[Sub, ...], read: tuple[Sub, ...]) -> tuple[tuple[int, ...], ...]:
    """Branches that go by one name: of what they refer to, their title, their type. In a small union, all."""
    if len(written) * len(read) <= SMALL_UNION:
        return (tuple(range(len(read))),) * len(written)
    by_name: dict[object, list[int]] = {}
    for index, part in enumerate(read):
        by_name.setdefault(_name(part), []).append(index)
    named = {name: tuple(indexes) for name, indexes in by_name.items()}
    return tuple(named.get(_name(part), ()) for part in written)


def _name(part: Sub) -> object:
    if isinstance(part, Place) and isinstance(part.schema, dict):
        for keyword in ("$ref", "title", "$id", "id", "const", "type"):
            if isinstance(name := part.schema.get(keyword), str):
                return keyword, name
    return type(shape_of(part))


RULES: Final = (compare,)
