"""JSON Schema, draft 4 to 2020-12: a core, which reads no clock and fetches nothing.

Theory of operation. `json_text` reads and writes JSON so that canonical texts are Confluent's to the byte. `documents`
holds a schema and its references and follows `$ref`; `shapes` turns what stands at a place into values of few kinds,
on demand. `comparison` puts pairs of shapes through the `rules` and settles which pairs can be read; `differences` is
the table of what each finding means in STRICT and in LENIENT, and how it is said. `validity` looks at schemas that are
about to be registered; `validation` checks instances. Whatever a schema can make large is bounded: nesting, numbers,
patterns, steps (`base.Budget`).
"""

from typing import Final

from ottla.registry.schemas.json_schema.schema import JsonSchema, JsonSchemaLanguage
from ottla.registry.schemas.json_schema.validation import validator

__all__ = ["JSON_SCHEMA", "JsonSchema", "JsonSchemaLanguage", "validator"]

JSON_SCHEMA: Final = JsonSchemaLanguage()
