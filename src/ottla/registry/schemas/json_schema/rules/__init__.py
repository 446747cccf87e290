"""The rules of compatibility, a file for each kind of shape; here is which of them a pair is put through.

A rule takes a writer's and a reader's shape of its kind and adds what it finds. Its cases are those of Confluent's
server, in its order.
"""

from collections.abc import Callable
from typing import Any, Final

from ottla.registry.schemas.base import Budget
from ottla.registry.schemas.json_schema.findings import Finding, Findings, Found, OneOf
from ottla.registry.schemas.json_schema.rules import arrays, combinations, notes, numbers, objects, strings, values
from ottla.registry.schemas.json_schema.shapes import (
    Anything,
    Choices,
    Combination,
    Constant,
    Elements,
    Members,
    Negation,
    Nothing,
    Numeric,
    Shape,
    Text,
    Unknown,
    shape_of,
)

# A rule is found by the kind of both shapes, so that it may take them as what they are.
_RULES: Final[dict[type[Shape], tuple[Callable[[Any, Any, Findings], None], ...]]] = {
    Text: strings.RULES,
    Numeric: numbers.RULES,
    Members: objects.RULES,
    Elements: arrays.RULES,
    Choices: (values.choices,),
    Constant: (values.constant,),
    Negation: (values.negation,),
    Unknown: (values.unknown,),
    Combination: combinations.RULES,
}


def findings_of(writer: Shape, reader: Shape, budget: Budget) -> tuple[Finding, ...]:
    if writer is reader:
        return ()
    alternatives = _union_and_element(writer, reader)
    rest = _of_one_kind(writer, reader, budget)
    if alternatives is None:
        return rest
    pairs, code = alternatives
    return (OneOf(pairs, code, rest),)


def _of_one_kind(writer: Shape, reader: Shape, budget: Budget) -> tuple[Finding, ...]:
    if type(writer) is not type(reader):
        nothing_written, all_read = isinstance(writer, Nothing), isinstance(reader, Anything)
        return () if nothing_written or all_read else (Found("TYPE_CHANGED", ""),)
    findings = Findings(budget)
    if writer.notes is not reader.notes:
        notes.compare(writer.notes, reader.notes, findings)
    for rule in _RULES.get(type(writer), ()):
        rule(writer, reader, findings)
    return tuple(findings.all)


def _union_and_element(writer: Shape, reader: Shape) -> tuple[tuple[tuple[Shape, Shape], ...], str | None] | None:
    """A combination beside a plain shape: a union of one is its element, a new union may hold the old type, and of what
    all of allOf asked for one part may be left."""
    if isinstance(reader, Combination) and not isinstance(writer, Combination):
        if len(reader.parts) != 1 and reader.criterion == "allOf":
            return None
        pairs = tuple((writer, shape_of(part)) for part in reader.parts)
        return pairs, None if len(pairs) == 1 else "SUM_TYPE_EXTENDED"
    if isinstance(writer, Combination) and not isinstance(reader, Combination):
        if len(writer.parts) != 1 and writer.criterion != "allOf":
            return None
        pairs = tuple((shape_of(part), reader) for part in writer.parts)
        return pairs, None if len(pairs) == 1 else "PRODUCT_TYPE_NARROWED"
    return None
