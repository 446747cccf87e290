"""Objects: which members they have, which they must have, and what else they allow."""

from typing import Final

from ottla.registry.schemas.base import Budget
from ottla.registry.schemas.json_schema.documents import Place
from ottla.registry.schemas.json_schema.findings import Findings
from ottla.registry.schemas.json_schema.patterns import finds
from ottla.registry.schemas.json_schema.rules import contents, limits
from ottla.registry.schemas.json_schema.shapes import Anything, Members, Nothing, Sub, has_default, shape_of

STEPS_OF_A_SEARCH: Final = 3
STEPS_OF_COMPILING: Final = 50
MANY_PATTERNS: Final = 100
"""From here on some may have to be compiled for each name."""


def required(writer: Members, reader: Members, findings: Findings) -> None:
    """Of members both know; a new one is a matter of `properties`."""
    for name in writer.properties:
        if name not in reader.properties or (name in writer.required) == (name in reader.required):
            continue
        if name in writer.required:
            findings.add("REQUIRED_ATTRIBUTE_REMOVED", f"required/{name}")
        elif has_default(reader.properties[name]):
            findings.add("REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED", f"required/{name}")
        else:
            findings.add("REQUIRED_ATTRIBUTE_ADDED", f"required/{name}")


def properties(writer: Members, reader: Members, findings: Findings) -> None:
    for name, schema in writer.properties.items():
        if name in reader.properties:
            findings.inside(f"properties/{name}", schema, reader.properties[name])
        else:
            _removed(name, schema, reader, findings)
    for name, schema in reader.properties.items():
        if name not in writer.properties:
            _added(name, schema, writer, reader, findings)


def _removed(name: str, schema: Place, reader: Members, findings: Findings) -> None:
    """Only the reader's model counts: it still gets the member."""
    path = f"properties/{name}"
    if _is_open(reader):
        findings.add("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", path)
    elif (covering := _covering(reader, name, findings.budget)) is not None:
        findings.covered(path, schema, covering, "PROPERTY_REMOVED")
    elif isinstance(shape_of(schema), Nothing):
        findings.add("PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)
    else:
        findings.add("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)


def _added(name: str, schema: Place, writer: Members, reader: Members, findings: Findings) -> None:
    """Only the writer's model counts: whether such a member may be there already."""
    path = f"properties/{name}"
    if _is_open(writer):
        if isinstance(shape_of(schema), Anything):
            findings.add("PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", path)
        else:
            findings.add(f"{_need(name, schema, reader)}_ADDED_TO_OPEN_CONTENT_MODEL", path)
        return
    if (covering := _covering(writer, name, findings.budget)) is not None:
        findings.covered(path, covering, schema, "PROPERTY_ADDED")
    findings.add(f"{_need(name, schema, reader)}_ADDED_TO_UNOPEN_CONTENT_MODEL", path)


def _need(name: str, schema: Place, reader: Members) -> str:
    if name not in reader.required:
        return "OPTIONAL_PROPERTY"
    return "REQUIRED_PROPERTY_WITH_DEFAULT" if has_default(schema) else "REQUIRED_PROPERTY"


def _is_open(members: Members) -> bool:
    return not members.patterns and contents.is_open(members.additional, members.unevaluated)


def _covering(members: Members, name: str, budget: Budget) -> Sub | None:
    for pattern, schema in members.patterns.items():
        budget.spend(STEPS_OF_A_SEARCH if len(members.patterns) < MANY_PATTERNS else STEPS_OF_COMPILING)
        if finds(pattern, name):
            return schema
    return contents.covering(members.additional, members.unevaluated)


def dependencies(writer: Members, reader: Members, findings: Findings) -> None:
    for name in {**writer.needed_with, **reader.needed_with}:
        _needed(name, writer.needed_with.get(name), reader.needed_with.get(name), findings)
    for name in {**writer.schemas_with, **reader.schemas_with}:
        path = f"dependencies/{name}"
        if name not in reader.schemas_with:
            findings.add("DEPENDENCY_SCHEMA_REMOVED", path)
        elif name not in writer.schemas_with:
            findings.add("DEPENDENCY_SCHEMA_ADDED", path)
        else:
            findings.inside(path, writer.schemas_with[name], reader.schemas_with[name])


def _needed(name: str, writer: frozenset[str] | None, reader: frozenset[str] | None, findings: Findings) -> None:
    path = f"dependencies/{name}"
    if reader is None:
        findings.add("DEPENDENCY_ARRAY_REMOVED", path)
    elif writer is None:
        findings.add("DEPENDENCY_ARRAY_ADDED", path)
    elif reader > writer:
        findings.add("DEPENDENCY_ARRAY_EXTENDED", path)
    elif reader < writer:
        findings.add("DEPENDENCY_ARRAY_NARROWED", path)
    elif reader != writer:
        findings.add("DEPENDENCY_ARRAY_CHANGED", path)


def others(writer: Members, reader: Members, findings: Findings) -> None:
    said = (writer.additional, reader.additional)
    contents.additional("additionalProperties", "ADDITIONAL_PROPERTIES", *said, findings)
    said = (writer.unevaluated, reader.unevaluated)
    contents.unevaluated("unevaluatedProperties", "UNEVALUATED_PROPERTIES", *said, findings)


def sizes(writer: Members, reader: Members, findings: Findings) -> None:
    limits.compare("maxProperties", "MAX_PROPERTIES", writer.max_properties, reader.max_properties, findings)
    limits.compare("minProperties", "MIN_PROPERTIES", writer.min_properties, reader.min_properties, findings)


RULES: Final = (required, properties, dependencies, others, sizes)
