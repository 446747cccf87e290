"""The OpenAPI document of a service, made of the table of its routes."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from ottla.http.answers import Answer
from ottla.http.call import Call
from ottla.http.media import JSON, Media
from ottla.http.routes import Route, parts_of

_REFERENCE: Final = "#/components/schemas/{name}"
_PROBLEM_NAME: Final = "Problem"


def document(title: str, version: str, routes: Sequence[Route], media: Media, problem: Any) -> dict[str, Any]:
    """`problem` is the schema of the service's error bodies."""
    types = _types(routes)
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFERENCE) if types else ((), {})
    by_type = list(zip(types, schemas, strict=True))
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_type, media)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {"schemas": {**components, _PROBLEM_NAME: problem}},
    }


def described(title: str, version: str, routes: Sequence[Route], media: Media, problem: Any) -> tuple[Route, ...]:
    """The routes, and one more that tells of them all: /openapi.json."""

    async def told(call: Call) -> Answer:
        return Answer(document(title, version, routes, media, problem), media_type=JSON)

    return (*routes, Route("GET", "/openapi.json", told, "This document"))


def _types(routes: Iterable[Route]) -> list[Any]:
    found: list[Any] = []
    for route in routes:
        said = (each for each in (route.body, route.reply) if not (each in (None, bytes) or isinstance(each, Answer)))
        found += [each for each in said if each not in found]
    return found


def _operation(route: Route, by_type: Sequence[tuple[Any, Any]], media: Media) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": {
            **_done(route, by_type, media),
            "default": {
                "description": "refused",
                "content": {
                    kind: {"schema": {"$ref": _REFERENCE.format(name=_PROBLEM_NAME)}}
                    for kind in ((media.problems,) if media.problems else media.offered)
                },
            },
        },
    }
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": _content(route.body, by_type, media.accepted)}
    return operation


def _done(route: Route, by_type: Sequence[tuple[Any, Any]], media: Media) -> dict[str, Any]:
    if isinstance(route.reply, Answer):
        return {str(route.reply.status): {"description": "done"}}
    return {"200": {"description": "done", "content": _content(route.reply, by_type, media.offered)}}


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    named = (part[1:-1] for part in parts_of(route.path) if part.startswith("{"))
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in named]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "description": meaning, "schema": {"type": "string"}}
        for name, meaning in (route.query or {}).items()
    ]


def _content(kind: Any, by_type: Sequence[tuple[Any, Any]], names: Iterable[str]) -> dict[str, Any]:
    if kind is None:
        return {}
    if kind is bytes:
        return {name: {} for name in names}
    schema = next(schema for each, schema in by_type if each == kind)
    return {name: {"schema": schema} for name in names}
