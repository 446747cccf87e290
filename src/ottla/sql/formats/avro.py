"""AVRO: a record of the columns, all nullable, by the schema of a registry; a single key column is the bare value."""

import json
from typing import Any, Final

from ottla.registry.lookup import Registry
from ottla.serdes.base import Serde
from ottla.serdes.types import Type
from ottla.sql.arguments import Refused
from ottla.sql.formats.format import Format
from ottla.sql.formats.json import is_wrapped
from ottla.sql.formats.registered import RegisteredRows, columns_of, schema_of
from ottla.sql.formats.rows import Columns
from ottla.sql.types import sql_text

RECORD: Final = "io.confluent.ksql.avro_schemas.KsqlDataSourceSchema"

_SCALARS: Final[dict[str, Any]] = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "int", "logicalType": "time-millis"},
    "timestamp": {"type": "long", "logicalType": "timestamp-millis"},
}


def check(format: Format, columns: Columns, part: str) -> None:
    for name, _ in columns:
        if not (name.isidentifier() and name.isascii()):
            raise Refused(f"Avro has no field named {name!r}: letters, digits and _ alone; rename it with AS")
    if format.schema_id is not None and format.schema_full_name is not None:
        raise Refused(
            f"{part.upper()}_SCHEMA_ID says the schema and its name: leave {part.upper()}_SCHEMA_FULL_NAME out"
        )
    for name, kind in columns if part == "key" else ():
        if kind.has("map"):
            raise Refused(f"a key holds no MAP, and {name} is {sql_text(kind)}")


def schema_text(content: Type, full_name: str) -> str:
    return json.dumps(_schema(content, full_name))


def _schema(kind: Type, full_name: str) -> Any:
    match kind.name:
        case "struct":
            namespace, _, name = full_name.rpartition(".")
            fields = [
                {"name": field, "type": ["null", _schema(part, f"{full_name}_{field}")], "default": None}
                for field, part in kind.fields
            ]
            made = {"type": "record", "name": name, "fields": fields}
            return {**made, "namespace": namespace} if namespace else made
        case "array":
            assert kind.element is not None
            return {"type": "array", "items": ["null", _schema(kind.element, full_name)]}
        case "map":
            assert kind.element is not None
            return {"type": "map", "values": ["null", _schema(kind.element, full_name)]}
        case "decimal":
            return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    return _SCALARS[kind.name]


def serde(format: Format, columns: Columns, part: str, registry: Registry) -> Serde[Any]:
    from ottla.serdes.avro import AvroSerde  # noqa: PLC0415  few need it

    wrapped = is_wrapped(format, part)
    content = Type("struct", fields=columns) if wrapped or len(columns) != 1 else columns[0][1]
    text = (
        registry.by_id(format.schema_id).text
        if format.schema_id is not None
        else schema_text(content, format.schema_full_name or RECORD)
    )
    return RegisteredRows(
        columns, part, wrapped, AvroSerde(registry, part=part), AvroSerde(registry, text, part=part), "AVRO"
    )


def inferred(format: Format, registry: Registry, topic: str, part: str) -> Columns:
    from ottla.serdes.avro import AvroSerde  # noqa: PLC0415  few need it

    found = schema_of(format, registry, "AVRO", topic, part)
    kind = AvroSerde(registry, found.text, part=part, references=found.references).type
    return columns_of(kind, part, bare=not is_wrapped(format, part))
