"""allOf, anyOf, oneOf: the criterion, the number of branches, and whether branches find partners."""

from typing import Final

from ottla.registry.schemas.json_schema.documents import Place
from ottla.registry.schemas.json_schema.findings import Findings, Matched
from ottla.registry.schemas.json_schema.shapes import Combination, Shape, Sub, shape_of


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
        rows = tuple(tuple((left, right) for right in read) for left in written)
        findings.all.append(Matched(rows, writer.criterion, "COMBINED_TYPE_SUBSCHEMAS_CHANGED"))


def _may_become(writer: Combination, reader: Combination) -> bool:
    if reader.criterion == "anyOf":
        return True
    if reader.criterion == "oneOf":
        return len(writer.parts) == 1
    return len(writer.parts) == len(reader.parts) == 1


def _different(parts: tuple[Sub, ...]) -> tuple[Shape, ...]:
    """Branches that stand twice count once."""
    distinct: dict[object, Sub] = {}
    for part in parts:
        distinct.setdefault(part.key if isinstance(part, Place) else part, part)
    return tuple(shape_of(part) for part in distinct.values())


RULES: Final = (compare,)
