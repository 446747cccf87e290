"""JSON_SR: JSON as `json_values` has it, with the id of a schema in front of it."""

import json
from typing import Any, Final

from ottla.registry.lookup import Registry, UnknownSchema
from ottla.serdes import lenient_json
from ottla.serdes.base import Serde, SerdeError
from ottla.serdes.json import json_writer
from ottla.serdes.schema_ids import framed, schema_of
from ottla.serdes.types import Type
from ottla.sql.formats import registered
from ottla.sql.formats.format import Format
from ottla.sql.formats.json import is_wrapped
from ottla.sql.formats.rows import Columns, Headers, RowSerde

_SCALARS: Final[dict[str, dict[str, Any]]] = {
    "boolean": {"type": "boolean"},
    "int": {"type": "integer", "connect.type": "int32"},
    "long": {"type": "integer", "connect.type": "int64"},
    "double": {"type": "number", "connect.type": "float64"},
    "string": {"type": "string"},
    "binary": {"type": "string", "connect.type": "bytes"},
    "date": {"type": "integer", "connect.type": "int32", "title": "org.apache.kafka.connect.data.Date"},
    "time": {"type": "integer", "connect.type": "int32", "title": "org.apache.kafka.connect.data.Time"},
    "timestamp": {"type": "integer", "connect.type": "int64", "title": "org.apache.kafka.connect.data.Timestamp"},
}


def check(format: Format, columns: Columns, part: str) -> None:
    """It holds everything."""


def schema_text(content: Type) -> str:
    return json.dumps(_schema(content))


def _schema(kind: Type) -> dict[str, Any]:
    match kind.name:
        case "struct":
            parts = {
                name: {"connect.index": place, "oneOf": [{"type": "null"}, _schema(part)]}
                for place, (name, part) in enumerate(kind.fields)
            }
            return {"type": "object", "properties": parts}
        case "array":
            assert kind.element is not None
            return {"type": "array", "items": {"oneOf": [{"type": "null"}, _schema(kind.element)]}}
        case "map":
            assert kind.element is not None
            inner = {"oneOf": [{"type": "null"}, _schema(kind.element)]}
            return {"type": "object", "connect.type": "map", "additionalProperties": inner}
        case "decimal":
            return {
                "type": "number",
                "connect.type": "bytes",
                "title": "org.apache.kafka.connect.data.Decimal",
                "connect.version": 1,
                "connect.parameters": {"scale": str(kind.scale), "connect.decimal.precision": str(kind.precision)},
            }
    return dict(_SCALARS[kind.name])


class JsonSchemaRows(RowSerde):
    name = "JSON_SR"

    def __init__(self, columns: Columns, part: str, wrapped: bool, registry: Registry, schema_id: int | None) -> None:
        super().__init__(columns, part, wrapped)
        self._registry = registry
        self._schema_id = schema_id
        self._ids: dict[str, int] = {}

    def read_content(self, data: bytes, headers: Headers) -> Any:
        _, start = schema_of(data, headers, "key" if self.part == "key" else "value")
        return lenient_json.read(data[start:], self.content, self)

    def write_content(self, content: Any, topic: str) -> bytes:
        try:
            payload = json_writer(self.content)(content).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise SerdeError(f"{self!r}: {error}") from error
        return framed(self._id(topic), payload)

    def _id(self, topic: str) -> int:
        if self._schema_id is not None:
            return self._schema_id
        if topic not in self._ids:
            try:
                found = self._registry.register(f"{topic}-{self.part}", "JSON", schema_text(self.content))
            except UnknownSchema as error:
                raise SerdeError(f"{self!r}: its schema is refused for topic {topic}: {error}") from error
            self._ids[topic] = found.id
        return self._ids[topic]


def serde(format: Format, columns: Columns, part: str, registry: Registry) -> Serde[Any]:
    return JsonSchemaRows(columns, part, is_wrapped(format, part), registry, format.schema_id)


def inferred(format: Format, registry: Registry, topic: str, part: str) -> Columns:
    from ottla.serdes.json_schema import JsonSchemaSerde  # noqa: PLC0415  few need it

    found = registered.schema_of(format, registry, "JSON", topic, part)
    tree = json.loads(found.text)
    kind = _declared(tree) or JsonSchemaSerde(registry, found.text, part=part, references=found.references).type
    return registered.columns_of(kind, part, bare=not is_wrapped(format, part))


def _declared(tree: Any) -> Type | None:
    """The type that Connect's marks tell, which JSON Schema has no words for; None if there are none."""
    if not isinstance(tree, dict):
        return None
    one_of = [each for each in tree.get("oneOf", ()) if isinstance(each, dict) and each.get("type") != "null"]
    if len(one_of) == 1:
        return _declared(one_of[0])
    title = str(tree.get("title", ""))
    for known, kind in (("Date", "date"), ("Time", "time"), ("Timestamp", "timestamp")):
        if title == f"org.apache.kafka.connect.data.{known}":
            return Type(kind)
    if title == "org.apache.kafka.connect.data.Decimal":
        given = tree.get("connect.parameters", {})
        return Type(
            "decimal", precision=int(given.get("connect.decimal.precision", 38)), scale=int(given.get("scale", 0))
        )
    match tree.get("type"), tree.get("connect.type"):
        case "object", "map":
            inner = _declared(tree.get("additionalProperties"))
            return None if inner is None else Type("map", inner)
        case "object", _ if isinstance(tree.get("properties"), dict):
            parts = sorted(tree["properties"].items(), key=lambda each: each[1].get("connect.index", 0))
            fields = [(name, _declared(part)) for name, part in parts]
            if any(kind is None for _, kind in fields) or not fields:
                return None
            return Type("struct", fields=tuple((name, kind) for name, kind in fields if kind is not None))
        case "array", _:
            inner = _declared(tree.get("items"))
            return None if inner is None else Type("array", inner)
        case "integer", "int32" | "int16" | "int8":
            return Type("int")
        case "string", "bytes":
            return Type("binary")
    return {
        "integer": Type("long"),
        "number": Type("double"),
        "string": Type("string"),
        "boolean": Type("boolean"),
    }.get(str(tree.get("type")))
