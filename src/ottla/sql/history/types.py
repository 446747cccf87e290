"""Types of columns as JSON, from the Spark host to the server: names of fields may be anything there."""

from typing import Any

from ottla.serdes.types import Type


def as_json(kind: Type) -> dict[str, Any]:
    return {
        "name": kind.name,
        "element": None if kind.element is None else as_json(kind.element),
        "fields": [[name, as_json(part)] for name, part in kind.fields],
        "digits": [kind.precision, kind.scale],
    }


def of_json(document: dict[str, Any]) -> Type:
    element, (precision, scale) = document["element"], document["digits"]
    return Type(
        document["name"],
        element=None if element is None else of_json(element),
        fields=tuple((name, of_json(part)) for name, part in document["fields"]),
        precision=precision,
        scale=scale,
    )
