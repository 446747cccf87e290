"""Properties of JSON Schemas. `[]` is inside an array, `[0]` one of its first items, `{…}` properties by pattern or the
additional ones, `<oneOf 0>` a branch, `#/definitions/x` a definition."""

import json
from typing import Any, Final

_NAMED: Final = ("properties", "patternProperties", "definitions", "$defs", "dependentSchemas")
_BRANCHES: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_ONE: Final = (
    "items",
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
)


def json_schema_fields(text: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    todo: list[tuple[str, Any, bool]] = [("", json.loads(text), False)]
    for path, schema, required in todo:
        found[path] = {"type": _type(schema), **_said(schema), **({"required": "yes"} if required else {})}
        if isinstance(schema, dict):
            todo.extend(_inside(path, schema))
    return found


def _inside(path: str, schema: dict[str, Any]) -> list[tuple[str, Any, bool]]:
    found: list[tuple[str, Any, bool]] = []
    required = schema.get("required")
    for keyword in _NAMED:
        named = schema.get(keyword)
        for name, inner in named.items() if isinstance(named, dict) else ():
            is_required = keyword == "properties" and isinstance(required, list) and name in required
            found.append((_way(path, keyword, name), inner, is_required))
    for keyword in _BRANCHES:
        branches = schema.get(keyword)
        for index, inner in enumerate(branches if isinstance(branches, list) else ()):
            way = f"[{index}]" if keyword == "prefixItems" else f"<{keyword} {index}>"
            found.append((f"{path}{way}", inner, False))
    for keyword in _ONE:
        inner = schema.get(keyword)
        if keyword == "items" and isinstance(inner, list):
            found.extend((f"{path}[{index}]", each, False) for index, each in enumerate(inner))
        elif isinstance(inner, dict):
            ways = {"items": "[]", "additionalProperties": "{}"}
            found.append((path + ways.get(keyword, f"<{keyword}>"), inner, False))
    return found


def _way(path: str, keyword: str, name: str) -> str:
    match keyword:
        case "properties":
            return f"{path}.{name}" if path else name
        case "patternProperties":
            return f"{path}{{{name}}}"
        case "dependentSchemas":
            return f"{path}<with {name}>"
        case _:
            return f"{path}#/{keyword}/{name}"


def _type(schema: Any) -> str:
    if isinstance(schema, bool):
        return "anything" if schema else "nothing"
    if isinstance(schema, dict):
        named = schema.get("type")
        if isinstance(named, list):
            return " | ".join(map(str, named))
        if isinstance(named, str):
            return named
        for keyword in ("$ref", "$dynamicRef"):
            if keyword in schema:
                return f"as {schema[keyword]}"
        for keyword in ("oneOf", "anyOf", "allOf", "enum", "const", "properties"):
            if keyword in schema:
                return "object" if keyword == "properties" else keyword
    return "anything"


def _said(schema: Any) -> dict[str, str]:
    """Everything but what has a path of its own."""
    if not isinstance(schema, dict):
        return {}
    said = {}
    for name, value in schema.items():
        structural = name in (*_NAMED, *_BRANCHES) or (name in _ONE and not isinstance(value, bool))
        if not structural and name not in ("type", "required", "$ref", "$dynamicRef"):
            said[name] = json.dumps(value, ensure_ascii=False)
    return said
