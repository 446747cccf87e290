"""The drafts of JSON Schema: how a schema names its own, and where in a schema others stand."""

from dataclasses import dataclass
from typing import Final

from ottla.registry.schemas.json_schema.json_text import Json


@dataclass(frozen=True, slots=True)
class Draft:
    name: str
    uri: str
    """Of its meta-schema, without the scheme."""
    number: int
    id_keyword: str = "$id"

    @property
    def ref_hides_siblings(self) -> bool:
        """Up to draft 7 whatever stands beside a $ref means nothing."""
        return self.number <= 7


DRAFT_4: Final = Draft("draft 4", "//json-schema.org/draft-04/schema", 4, "id")
DRAFT_6: Final = Draft("draft 6", "//json-schema.org/draft-06/schema", 6)
DRAFT_7: Final = Draft("draft 7", "//json-schema.org/draft-07/schema", 7)
DRAFT_2019_09: Final = Draft("draft 2019-09", "//json-schema.org/draft/2019-09/schema", 2019)
DRAFT_2020_12: Final = Draft("draft 2020-12", "//json-schema.org/draft/2020-12/schema", 2020)

_BY_URI: Final = {draft.uri: draft for draft in (DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019_09, DRAFT_2020_12)}

ONE: Final = frozenset(
    (
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    )
)
"""Keywords whose value is a schema."""
SEVERAL: Final = frozenset(("allOf", "anyOf", "items", "oneOf", "prefixItems"))
"""A list of schemas. `items` was one of both kinds until 2020-12."""
NAMED: Final = frozenset(
    ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
)
"""Schemas by name (in `dependencies` some values are lists of names)."""


def draft_of(schema: Json, otherwise: Draft = DRAFT_7) -> Draft:
    """By its `$schema`. One that is not known, or none, means draft 7, as for Confluent's server."""
    named = schema.get("$schema") if isinstance(schema, dict) else None
    if not isinstance(named, str):
        return otherwise
    return _BY_URI.get(_without_scheme(named), DRAFT_7)


def is_meta_schema(uri: str) -> bool:
    """Meta-schemas, and the vocabularies of the newer ones, need not be brought along."""
    return _without_scheme(uri).startswith("//json-schema.org/draft")


def subschemas(schema: dict[str, Json]) -> list[tuple[str, Json]]:
    """Each with its way from the schema: properties/a, allOf/0, not."""
    found: list[tuple[str, Json]] = []
    for keyword, value in schema.items():
        if isinstance(value, dict):
            if keyword in NAMED:
                found.extend((f"{keyword}/{escaped(name)}", inner) for name, inner in value.items())
            elif keyword in ONE:
                found.append((keyword, value))
        elif isinstance(value, list):
            if keyword in SEVERAL:
                found.extend((f"{keyword}/{index}", inner) for index, inner in enumerate(value))
        elif isinstance(value, bool) and keyword in ONE:
            found.append((keyword, value))
    return [(way, inner) for way, inner in found if isinstance(inner, dict | bool)]


def escaped(name: str) -> str:
    """One step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def unescaped(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def _without_scheme(uri: str) -> str:
    return uri.partition("#")[0].removeprefix("https:").removeprefix("http:").rstrip("/")
