"""Schemas of tests."""

import json

from ottla.registry.schemas.base import DEFAULT_STEPS, Budget, Policy, Reference, Resolved
from ottla.registry.schemas.json_schema import JSON_SCHEMA, JsonSchema


def parsed(schema: object, references: dict[str, object] | None = None, *, new: bool = True) -> JsonSchema:
    """Of text, or of what text would say."""
    resolved = [Resolved(Reference(name, name, 1), json.dumps(text)) for name, text in (references or {}).items()]
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return JSON_SCHEMA.parse(text, resolved, Budget(DEFAULT_STEPS), new=new)


def codes(writer: object, reader: object, policy: Policy = "STRICT") -> list[str]:
    """What keeps a reader from reading, as `CODE path`."""
    found = parsed(reader).reading(parsed(writer), policy, Budget(DEFAULT_STEPS))
    return [f"{each.code} {each.path}" for each in found]
