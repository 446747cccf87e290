"""Arrow tables as Avro files: the type of each column is one of Avro's, every one nullable. And back, of other writers'
files too: what a file says of its types decides."""

import io
from typing import Any, Final, NamedTuple

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
    fastavro.writer(
        out, schema, _without_maps(table).to_pylist(), codec=codec, sync_marker=name.encode().ljust(16, b".")[:16]
    )
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


def _without_maps(table: pa.Table) -> pa.Table:
    """Maps as lists of entries, which is how they are written: their keys are not always texts."""
    return table.cast(pa.schema([field.with_type(_listed(field.type)) for field in table.schema]))


def _listed(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_map(kind):
        return pa.list_(pa.struct([("key", _listed(kind.key_type)), ("value", _listed(kind.item_type))]))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_listed(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_listed(kind.value_type))
    return kind


# ---- reading

MOST_DEPTH: Final = 64
_ARROW: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "enum": pa.string(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
}
_LOGICAL: Final = {
    "date": pa.date32(),
    "time-millis": pa.time64("us"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("us", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "uuid": pa.string(),
}


class AvroRead(NamedTuple):
    table: pa.Table
    broken: str
    """Why what lies behind its rows cannot be read; empty: nothing does."""


def read_avro(data: bytes) -> AvroRead:
    """As far as it can be read."""
    rows: list[Any] = []
    schema = pa.schema([])
    try:
        reader = fastavro.reader(io.BytesIO(data))
        told: Any = reader.writer_schema
        if not isinstance(told, dict) or told.get("type") != "record":
            return AvroRead(schema.empty_table(), "its records are no objects: a row has fields")
        schema = pa.schema(list(_arrow(told, {}, 0)))
        rows.extend(reader)  # those before a broken one stay
    except Exception as error:  # noqa: BLE001  whatever foreign bytes make fastavro raise, and it is no few kinds
        return AvroRead(_table(rows, schema), f"it is no whole Avro file: {str(error) or type(error).__name__}")
    return AvroRead(_table(rows, schema), "")


def _table(rows: list[Any], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(rows, schema)


def _arrow(told: Any, known: dict[str, pa.DataType], depth: int) -> pa.DataType:
    """Raises ValueError for what has no columns."""
    if depth > MOST_DEPTH:
        raise ValueError(f"its schema is nested deeper than {MOST_DEPTH} levels")
    if isinstance(told, list):
        kinds = [each for each in told if each != "null"]
        if len(kinds) != 1:
            raise ValueError(f"a field has one of several types, {kinds}, and a column has one")
        return _arrow(kinds[0], known, depth + 1)
    if isinstance(told, str):
        return known[told] if told in known else _ARROW[told]
    kind, logical = told["type"], told.get("logicalType")
    if logical == "decimal":
        return pa.decimal128(int(told["precision"]), int(told.get("scale", 0)))
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    if isinstance(kind, dict | list):
        return _arrow(kind, known, depth + 1)
    if kind == "map":
        return pa.map_(pa.string(), _arrow(told["values"], known, depth + 1))
    if kind == "array":
        items = _arrow(told["items"], known, depth + 1)
        return pa.map_(items.field(0).type, items.field(1).type) if _is_entry(told["items"]) else pa.list_(items)
    if kind == "record":
        fields = [(each["name"], _arrow(each["type"], known, depth + 1)) for each in told["fields"]]
        known[told["name"]] = pa.struct(fields)
        return known[told["name"]]
    if kind in ("enum", "fixed"):
        known[told["name"]] = _ARROW[kind]
    return _ARROW[kind]


def _is_entry(items: Any) -> bool:
    return (
        isinstance(items, dict)
        and items.get("type") == "record"
        and [each["name"] for each in items["fields"]] == ["key", "value"]
        and str(items["name"]).endswith("_entry")
    )
