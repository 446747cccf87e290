"""Arrays: the schema of every item, those of the first ones, and what else is allowed."""

from typing import Final

from ottla.registry.schemas.json_schema.findings import Findings
from ottla.registry.schemas.json_schema.rules import contents, limits
from ottla.registry.schemas.json_schema.shapes import Anything, Elements, Nothing, Sub, shape_of


def every_item(writer: Elements, reader: Elements, findings: Findings) -> None:
    if writer.every is not None and reader.every is not None:
        findings.inside("items", writer.every, reader.every)
    elif reader.every is not None:
        findings.add("SCHEMA_ADDED", "items")
    elif writer.every is not None:
        findings.add("SCHEMA_REMOVED", "items")


def first_items(writer: Elements, reader: Elements, findings: Findings) -> None:
    both = min(len(writer.first), len(reader.first))
    for index in range(both):
        findings.inside(f"items/{index}", writer.first[index], reader.first[index])
    for index, schema in enumerate(writer.first[both:], both):
        _removed(f"items/{index}", schema, reader, findings)
    for index, schema in enumerate(reader.first[both:], both):
        _added(f"items/{index}", schema, writer, findings)


def _removed(path: str, schema: Sub, reader: Elements, findings: Findings) -> None:
    if contents.is_open(reader.additional, reader.unevaluated):
        findings.add("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL", path)
    elif (covering := contents.covering(reader.additional, reader.unevaluated)) is not None:
        findings.covered(path, schema, covering, "ITEM_REMOVED")
    elif isinstance(shape_of(schema), Nothing):
        findings.add("ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)
    else:
        findings.add("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)


def _added(path: str, schema: Sub, writer: Elements, findings: Findings) -> None:
    if contents.is_open(writer.additional, writer.unevaluated):
        empty = isinstance(shape_of(schema), Anything)
        what = "ITEM_WITH_EMPTY_SCHEMA" if empty else "ITEM"
        findings.add(f"{what}_ADDED_TO_OPEN_CONTENT_MODEL", path)
    elif (covering := contents.covering(writer.additional, writer.unevaluated)) is not None:
        findings.covered(path, covering, schema, "ITEM_ADDED")
    else:
        findings.add("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", path)


def others(writer: Elements, reader: Elements, findings: Findings) -> None:
    contents.additional("additionalItems", "ADDITIONAL_ITEMS", writer.additional, reader.additional, findings)
    contents.unevaluated("unevaluatedItems", "UNEVALUATED_ITEMS", writer.unevaluated, reader.unevaluated, findings)


def sizes(writer: Elements, reader: Elements, findings: Findings) -> None:
    limits.compare("maxItems", "MAX_ITEMS", writer.max_items, reader.max_items, findings)
    limits.compare("minItems", "MIN_ITEMS", writer.min_items, reader.min_items, findings)
    if writer.are_unique != reader.are_unique:
        findings.add("UNIQUE_ITEMS_REMOVED" if writer.are_unique else "UNIQUE_ITEMS_ADDED", "uniqueItems")
    limits.compare("maxContains", "MAX_CONTAINS", writer.max_contains, reader.max_contains, findings)
    limits.compare("minContains", "MIN_CONTAINS", writer.min_contains, reader.min_contains, findings)


RULES: Final = (every_item, first_items, others, sizes)
