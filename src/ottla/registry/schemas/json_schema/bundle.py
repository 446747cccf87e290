"""A schema and its references as documents that need nobody else: copies in which every `$ref` says where it leads by
the number of the document and a pointer, and no `$id` is left that could mean something else."""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from ottla.registry.schemas.base import InvalidSchema
from ottla.registry.schemas.json_schema import tolerated
from ottla.registry.schemas.json_schema.documents import Documents, Place, joined
from ottla.registry.schemas.json_schema.drafts import escaped, is_meta_schema, subschemas
from ottla.registry.schemas.json_schema.json_text import Json
from ottla.registry.schemas.json_schema.validity import official_uri

PREFIX: Final = "https://schemas.invalid/"
"""Of the URIs of documents: a domain that by RFC 2606 is nobody's."""


@dataclass(slots=True)
class _Copies:
    uris: dict[int, str] = field(default_factory=dict)
    """Where each object of the original stands, by identity."""
    objects: dict[int, dict[str, Json]] = field(default_factory=dict)
    """Its copy."""

    def of(self, tree: Json, uri: str) -> Json:
        holder: list[Json] = []
        todo: list[tuple[Json, str, dict[str, Json] | list[Json], str]] = [(tree, f"{uri}#", holder, "")]
        for value, where, into, name in todo:
            copy: Json = value
            if isinstance(value, dict):
                copy = {}
                self.uris[id(value)], self.objects[id(value)] = where, copy
                todo.extend((inner, f"{where}/{_step(key)}", copy, key) for key, inner in value.items())
            elif isinstance(value, list):
                copy = []
                todo.extend((inner, f"{where}/{index}", copy, "") for index, inner in enumerate(value))
            if isinstance(into, dict):
                into[name] = copy
            else:
                into.append(copy)
        return holder[0]


def bundled(documents: Documents) -> list[tuple[str, Json]]:
    """URI and text of each. Raises InvalidSchema for a reference that leads nowhere."""
    copies = _Copies()
    bundle = [(f"{PREFIX}{index}", home) for index, home in enumerate(documents.homes)]
    texts = [copies.of(home.schema, uri) for uri, home in bundle]
    seen: set[int] = set()
    todo = list(documents.homes)
    for place in todo:
        schema = place.schema
        if not isinstance(schema, dict) or id(schema) in seen:
            continue
        seen.add(id(schema))
        todo.extend(_redirected(place, schema, copies))
        for _, inner in subschemas(schema):
            if isinstance(inner, dict):
                todo.append(documents.standing(inner, place))
    for (_, home), text in zip(bundle, texts, strict=True):
        tolerated.say_otherwise(text)
        if isinstance(text, dict):
            text["$schema"] = official_uri(home.draft)
    return [(uri, text) for (uri, _), text in zip(bundle, texts, strict=True)]


def _redirected(place: Place, schema: dict[str, Json], copies: _Copies) -> list[Place]:
    """Rewrites the copy of one schema; gives where it refers to."""
    copy = copies.objects[id(schema)]
    for keyword in ("$schema", "$anchor", place.draft.id_keyword):
        copy.pop(keyword, None)
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return []
    target = place.documents.follow(place, reference)
    if target is None:
        uri = joined(place.base, reference, keep_fragment=True) or reference
        if not is_meta_schema(uri):
            raise InvalidSchema(f"the reference {reference!r} leads nowhere")
        copy["$ref"] = uri
        return []
    if isinstance(target.schema, dict):
        copy["$ref"] = copies.uris[id(target.schema)]
        return [target]
    del copy["$ref"]
    branches = copy.get("allOf")
    copy["allOf"] = [*(branches if isinstance(branches, list) else ()), target.schema]
    return []


def _step(name: str) -> str:
    return quote(escaped(name), safe="~")
