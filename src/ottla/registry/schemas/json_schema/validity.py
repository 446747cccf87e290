"""Whether a schema that is about to be registered is one: by its draft's meta-schema, its patterns, its references."""

from functools import cache
from typing import Final

import jsonschema_rs

from ottla.registry.schemas.base import InvalidSchema
from ottla.registry.schemas.json_schema import tolerated
from ottla.registry.schemas.json_schema.documents import Documents, Place, joined
from ottla.registry.schemas.json_schema.drafts import (
    DRAFT_4,
    DRAFT_6,
    DRAFT_7,
    DRAFT_2019_09,
    DRAFT_2020_12,
    Draft,
    escaped,
    is_meta_schema,
    subschemas,
)
from ottla.registry.schemas.json_schema.json_text import MAX_DEPTH, Json, depth, read, too_deep
from ottla.registry.schemas.json_schema.patterns import complaint

VALIDATORS: Final[dict[Draft, type[jsonschema_rs.Validator]]] = {
    DRAFT_4: jsonschema_rs.Draft4Validator,
    DRAFT_6: jsonschema_rs.Draft6Validator,
    DRAFT_7: jsonschema_rs.Draft7Validator,
    DRAFT_2019_09: jsonschema_rs.Draft201909Validator,
    DRAFT_2020_12: jsonschema_rs.Draft202012Validator,
}
SHOWN: Final = 200
"""Characters of a value that a message shows."""


def official_uri(draft: Draft) -> str:
    return f"https:{draft.uri}" if draft.number >= 2019 else f"http:{draft.uri}#"


def check_new(text: str, tree: Json, documents: Documents) -> None:
    """Raises InvalidSchema, which says what is wrong and where."""
    if depth(tree) > MAX_DEPTH:
        raise InvalidSchema(too_deep())
    _check_meta(text, tree, documents.root.draft)
    todo: list[tuple[str, Place]] = [("#", documents.root)]
    for path, place in todo:
        schema = place.schema
        if isinstance(schema, dict):
            _check_patterns(path, schema)
            _check_references(path, place, schema)
            todo.extend(
                (f"{path}/{way}", documents.standing(inner, place))
                for way, inner in subschemas(schema)
                if isinstance(inner, dict)
            )


def _check_meta(text: str, tree: Json, draft: Draft) -> None:
    if isinstance(tree, bool):
        return  # draft 4 has no such schemas; Confluent's server takes them whatever the draft
    validator = _meta_validator(draft)
    if validator.is_valid(tree):
        return
    copy = read(text)
    tolerated.say_otherwise(copy)
    try:
        validator.validate(copy)
    except jsonschema_rs.ValidationError as error:
        where = "#" + "".join(f"/{escaped(str(step))}" for step in error.instance_path)
        said = error.message if len(error.message) <= SHOWN else error.message[:SHOWN] + "…"
        raise InvalidSchema(f"no schema of {draft.name}: {said} at {where}") from None


@cache
def _meta_validator(draft: Draft) -> jsonschema_rs.Validator:
    # Formats are not looked at: patterns may be Java's, and Confluent's server looks at no URI.
    return VALIDATORS[draft]({"$ref": official_uri(draft)}, validate_formats=False, offline=True)


def _check_patterns(path: str, schema: dict[str, Json]) -> None:
    named = schema.get("patternProperties")
    found = [(f"{path}/patternProperties", pattern) for pattern in (named if isinstance(named, dict) else ())]
    if isinstance(own := schema.get("pattern"), str):
        found.append((f"{path}/pattern", own))
    for where, pattern in found:
        if (wrong := complaint(pattern)) is not None:
            raise InvalidSchema(f"{pattern[:SHOWN]!r} at {where} is no regular expression: {wrong}")


def _check_references(path: str, place: Place, schema: dict[str, Json]) -> None:
    for keyword in ("$ref", "$dynamicRef"):
        reference = schema.get(keyword)
        if not isinstance(reference, str) or place.documents.follow(place, reference) is not None:
            continue
        if not is_meta_schema(joined(place.base, reference) or ""):
            raise InvalidSchema(
                f"the reference {reference[:SHOWN]!r} at {path}/{keyword} leads nowhere: it is not in this schema, and "
                "no schema of that name is among its references (nothing is fetched)"
            )
