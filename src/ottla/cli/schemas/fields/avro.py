"""Fields of Avro records. `[]` is inside an array, `{}` inside a map, `<Name>` a branch among several records."""

import json
from typing import Any, Final

_PRIMITIVES: Final = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
_SAID_OF_A_FIELD: Final = ("default", "doc", "aliases", "order")
_STRUCTURE: Final = frozenset(("type", "name", "namespace", "fields", "items", "values", "symbols", "size"))


def avro_fields(text: str) -> dict[str, dict[str, str]]:
    schema = json.loads(text)
    found: dict[str, dict[str, str]] = {"": {"type": _type(schema), **_others(schema)}}
    todo = [("", schema)]
    for path, inner in todo:
        if isinstance(inner, list):
            records = [branch for branch in inner if isinstance(branch, dict)]
            todo.extend((f"{path}<{_name(b)}>" if len(records) > 1 else path, b) for b in records)
        elif isinstance(inner, dict) and inner.get("type") in ("record", "error"):
            for field in inner.get("fields", ()):
                at = f"{path}.{field['name']}" if path else field["name"]
                said = {name: _value(field[name]) for name in _SAID_OF_A_FIELD if name in field}
                found[at] = {"type": _type(field["type"]), **said, **_others(field, _SAID_OF_A_FIELD)}
                todo.append((at, field["type"]))
        elif isinstance(inner, dict) and inner.get("type") == "array":
            todo.append((f"{path}[]", inner["items"]))
        elif isinstance(inner, dict) and inner.get("type") == "map":
            todo.append((f"{path}{{}}", inner["values"]))
        elif isinstance(inner, dict) and isinstance(inner.get("type"), dict | list):
            todo.append((path, inner["type"]))
    return found


def _type(schema: Any) -> str:
    if isinstance(schema, str):
        return schema
    if isinstance(schema, list):
        return " | ".join(_type(branch) for branch in schema)
    kind = schema["type"]
    match kind:
        case "array":
            return f"array of {_type(schema['items'])}"
        case "map":
            return f"map of {_type(schema['values'])}"
        case "enum":
            return f"enum {_name(schema)} ({', '.join(schema['symbols'])})"
        case "fixed":
            shown = f"fixed {_name(schema)} ({schema['size']} bytes)"
        case "record" | "error":
            return f"{kind} {_name(schema)}"
        case _:
            shown = _type(kind)
    if "logicalType" not in schema:
        return shown
    digits = ", ".join(str(schema[name]) for name in ("precision", "scale") if name in schema)
    return f"{shown} {schema['logicalType']}" + (f"({digits})" if digits else "")


def _name(schema: dict[str, Any]) -> str:
    space = schema.get("namespace")
    return f"{space}.{schema['name']}" if space and "." not in schema["name"] else str(schema.get("name", "?"))


def _others(schema: Any, known: tuple[str, ...] = ()) -> dict[str, str]:
    """Properties that Avro does not know, and doc and aliases of a type."""
    if not isinstance(schema, dict):
        return {}
    told = _STRUCTURE | set(known) | {"logicalType", "precision", "scale"}
    return {name: _value(value) for name, value in schema.items() if name not in told}


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
