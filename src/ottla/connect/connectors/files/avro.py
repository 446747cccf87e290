"""Arrow tables as Avro files: the type of each column is one of Avro's, every one nullable."""

import io
from typing import Any, Final

import fastavro
import pyarrow as pa

from ottla.connect import spi

_PLAIN: Final = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "int"),
    (pa.types.is_int16, "int"),
    (pa.types.is_int32, "int"),
    (pa.types.is_integer, "long"),
    (pa.types.is_float32, "float"),
    (pa.types.is_floating, "double"),
    (pa.types.is_string, "string"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_date, {"type": "int", "logicalType": "date"}),
    (pa.types.is_time, {"type": "long", "logicalType": "time-micros"}),
    (pa.types.is_timestamp, {"type": "long", "logicalType": "timestamp-micros"}),
)


def write_avro(table: pa.Table, topic: str, codec: str) -> bytes:
    name = "".join(letter if letter.isalnum() or letter == "_" else "_" for letter in topic) or "record"
    name = f"_{name}" if name[0].isdigit() else name
    schema = fastavro.parse_schema(_record(name, list(table.schema)))
    out = io.BytesIO()
    # The marker that ends a block is made up by default: the same records are the same bytes.
    fastavro.writer(out, schema, table.to_pylist(), codec=codec, sync_marker=name.encode().ljust(16, b".")[:16])
    return out.getvalue()


def _record(name: str, fields: list[pa.Field]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": field.name, "type": ["null", _type(field.type, f"{name}_{field.name}")], "default": None}
            for field in fields
        ],
    }


def _type(kind: pa.DataType, name: str) -> Any:
    for is_it, avro in _PLAIN:
        if is_it(kind):
            return avro
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_struct(kind):
        return _record(name, [kind.field(at) for at in range(kind.num_fields)])
    if pa.types.is_map(kind):
        pair = [pa.field("key", kind.key_type), pa.field("value", kind.item_type)]
        return {"type": "array", "items": _record(f"{name}_entry", pair)}
    if pa.types.is_list(kind):
        return {"type": "array", "items": ["null", _type(kind.value_type, f"{name}_item")]}
    raise spi.ConnectorFailed(f"{name}: Avro has no type for {kind}")
