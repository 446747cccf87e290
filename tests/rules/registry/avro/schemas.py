"""Schemas in tests: made of Python values, with whatever they refer to."""

import json
from typing import Any

from ottla.registry.schemas.avro import Avro, AvroSchema
from ottla.registry.schemas.base import DEFAULT_STEPS, Budget, Reference, Resolved


def avro(schema: Any, *referenced: Resolved, new: bool = True) -> AvroSchema:
    """Of a text, or of the value that the text would be."""
    text = schema if isinstance(schema, str) and schema[:1] in '{["' else json.dumps(schema)
    return Avro().parse(text, referenced, Budget(DEFAULT_STEPS), new=new)


def record(name: str, *fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, type: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, **more}


def referring(name: str, schema: Any, *referenced: Resolved) -> Resolved:
    return Resolved(Reference(name, f"{name}-value", 1), avro(schema, *referenced).text)
