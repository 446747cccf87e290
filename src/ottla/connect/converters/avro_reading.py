"""Avro's schemas as Connect's, and values that were read by them as Connect's values."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ottla.connect.data.errors import DataException
from ottla.connect.data.logical import (
    DATE_NAME,
    DECIMAL_NAME,
    LOGICAL_NAMES,
    TIME_NAME,
    TIMESTAMP_NAME,
    date_from_days,
    decimal_from_bytes,
    time_from_millis,
    timestamp_from_millis,
)
from ottla.connect.data.schema import Schema, array_schema, map_schema, struct_schema
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Type
from ottla.registry.schemas.avro.tree import Array, Enum, Field, Fixed, Map, Node, Primitive, Record, Union
from ottla.serdes.avro.binary import plain_name, plain_symbols

Read: TypeAlias = Callable[[Any], Any]

PACKAGE: Final = "io.confluent.connect.avro"
DEFAULT_NAME: Final = "ConnectDefault"
ENUM: Final = f"{PACKAGE}.Enum"
UNION: Final = f"{PACKAGE}.Union"
FIXED_SIZE: Final = "connect.fixed.size"
PRECISION: Final = "connect.decimal.precision"
MAP_ENTRY: Final = "MapEntry"
DEFAULT_PRECISION: Final = 64

_SCALARS: Final = {
    "boolean": Type.BOOLEAN,
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "bytes": Type.BYTES,
    "string": Type.STRING,
}
_NARROW: Final = {"int8": Type.INT8, "int16": Type.INT16}
_LOGICAL: Final = {
    ("int", "date"): DATE_NAME,
    ("int", "time-millis"): TIME_NAME,
    ("long", "timestamp-millis"): TIMESTAMP_NAME,
}


def connect_schema(node: Node, inside: tuple[int, ...] = ()) -> Schema:
    """Raises DataException for a schema that contains itself: Connect has no such."""
    if isinstance(node, Union):
        return _union(node, inside)
    if isinstance(node, Primitive):
        return _with_properties(_primitive(node), node.props)
    if isinstance(node, Fixed):
        schema = Schema(Type.BYTES, name=node.name.full, parameters={FIXED_SIZE: str(node.size)})
        if node.props.get("logicalType") == "decimal":
            schema = _decimal(node.props)
        return _with_properties(schema, node.props)
    if isinstance(node, Enum):
        symbols = {f"{ENUM}.{symbol}": symbol for symbol in node.symbols}
        schema = Schema(Type.STRING, name=ENUM, parameters={ENUM: node.name.full, **symbols}, doc=node.doc)
        return _with_properties(schema, node.props)
    if isinstance(node, Map):
        from_text = Schema(Type.STRING)
        return _with_properties(map_schema(from_text, connect_schema(node.values, inside)), node.props)
    if isinstance(node, Array):
        return _with_properties(_array(node, inside), node.props)
    return _record(node, inside)


def _primitive(node: Primitive) -> Schema:
    if node.kind == "null":
        raise DataException("Standalone null schemas are not supported by this converter")
    kind = node.props.get("connect.type")
    if isinstance(kind, str) and kind in _NARROW:
        return Schema(_NARROW[kind])
    logical = node.props.get("logicalType")
    if node.kind == "bytes" and logical == "decimal":
        return _decimal(node.props)
    name = _LOGICAL.get((node.kind, str(logical)))
    return Schema(_SCALARS[node.kind]) if name is None else Schema(_SCALARS[node.kind], name=name, version=1)


def _decimal(props: dict[str, Any]) -> Schema:
    parameters = {"scale": str(props.get("scale", 0))}
    precision = props.get("precision")
    if precision is not None and precision != DEFAULT_PRECISION:
        parameters[PRECISION] = str(precision)
    return Schema(Type.BYTES, name=DECIMAL_NAME, version=1, parameters=parameters)


def _with_properties(schema: Schema, props: dict[str, Any]) -> Schema:
    name, version = props.get("connect.name"), props.get("connect.version")
    doc, parameters = props.get("connect.doc"), props.get("connect.parameters")
    merged = schema.parameters
    if isinstance(parameters, dict):
        merged = {**(schema.parameters or {}), **{key: str(value) for key, value in parameters.items()}}
    if name is None and version is None and doc is None and merged == schema.parameters:
        return schema
    return schema.but(
        name=name if isinstance(name, str) else schema.name,
        version=version if isinstance(version, int) else schema.version,
        doc=doc if isinstance(doc, str) else schema.doc,
        parameters=merged,
    )


def _array(node: Array, inside: tuple[int, ...]) -> Schema:
    items = node.items
    if _is_entry(items):
        assert isinstance(items, Record)
        key, value = (items.by_name[name].type for name in ("key", "value"))
        return map_schema(connect_schema(key, inside), connect_schema(value, inside))
    return array_schema(connect_schema(items, inside))


def _is_entry(items: Node) -> bool:
    """Connect's maps with keys that are no texts are arrays of pairs."""
    if not isinstance(items, Record) or set(items.by_name) != {"key", "value"}:
        return False
    return items.props.get("connect.internal.type") == MAP_ENTRY or items.name.full == f"{PACKAGE}.{MAP_ENTRY}"


def _record(node: Record, inside: tuple[int, ...]) -> Schema:
    if id(node) in inside:
        raise DataException(f"The schema {node.name.full} contains itself, which Connect's schemas cannot")
    deeper = (*inside, id(node))
    fields = [(field.name, _field(field, deeper)) for field in node.fields]
    is_default = node.name.space == PACKAGE and node.name.simple.startswith(DEFAULT_NAME)
    schema = struct_schema(fields, name=None if is_default else node.name.full, doc=node.doc)
    return _with_properties(schema, node.props)


def _field(field: Field, inside: tuple[int, ...]) -> Schema:
    schema = connect_schema(field.type, inside)
    if schema.doc is None and field.doc is not None:
        schema = schema.but(doc=field.doc)
    if not field.has_default or field.default is None:
        return schema
    node = field.type.branches[0] if isinstance(field.type, Union) else field.type
    try:
        default = reader(node, schema)(plain_default(node, field.default))
    except (ValueError, LookupError, TypeError) as error:
        raise DataException(f"The default of the field {field.name} is not of its schema: {error}") from error
    return schema.but(default=default)


def plain_default(node: Node, default: Any) -> Any:
    """Bytes are texts of Latin-1 in JSON; what else a default is, it is in bytes too."""
    if isinstance(node, Fixed) or node.kind == "bytes":
        return str(default).encode("latin-1")
    if isinstance(node, Enum):
        return plain_symbols(node)[node.symbols.index(default)]
    if isinstance(node, Array):
        return [plain_default(node.items, each) for each in default]
    if isinstance(node, Map):
        return {key: plain_default(node.values, each) for key, each in default.items()}
    if isinstance(node, Record):
        return {field.name: plain_default(field.type, default.get(field.name, field.default)) for field in node.fields}
    return default


def _union(node: Union, inside: tuple[int, ...]) -> Schema:
    known = [branch for branch in node.branches if branch.kind != "null"]
    optional = len(known) < len(node.branches)
    if len(known) == 1:
        schema = connect_schema(known[0], inside)
        return schema.but(optional=True) if optional else schema
    fields = [(_branch_name(branch), connect_schema(branch, inside).but(optional=True)) for branch in known]
    return struct_schema(fields, name=UNION, optional=optional)


def _branch_name(node: Node) -> str:
    return node.name.simple if isinstance(node, Record | Enum | Fixed) else node.kind


# ---- values


def reader(node: Node, schema: Schema) -> Read:
    """Of what `Binary` reads."""
    if isinstance(node, Union):
        return _union_reader(node, schema)
    if schema.name in LOGICAL_NAMES and schema.type in (Type.INT32, Type.INT64, Type.BYTES):
        return _logical_reader(schema)
    if isinstance(node, Record):
        readers = [
            (field.name, reader(field.type, schema.fields[place].schema)) for place, field in enumerate(node.fields)
        ]
        return lambda value: Struct.of(schema, [read(value[name]) for name, read in readers])
    if isinstance(node, Array) and schema.type is Type.MAP:
        assert isinstance(node.items, Record) and schema.key_schema is not None and schema.value_schema is not None
        keys = reader(node.items.by_name["key"].type, schema.key_schema)
        values = reader(node.items.by_name["value"].type, schema.value_schema)
        return lambda value: {keys(each["key"]): values(each["value"]) for each in value}
    if isinstance(node, Array):
        assert schema.value_schema is not None
        items = reader(node.items, schema.value_schema)
        return lambda value: [items(each) for each in value]
    if isinstance(node, Map):
        assert schema.value_schema is not None
        of_values = reader(node.values, schema.value_schema)
        return lambda value: {key: of_values(each) for key, each in value.items()}
    if isinstance(node, Enum):
        symbols = dict(zip(plain_symbols(node), node.symbols, strict=True))
        return lambda value: symbols[value]
    return lambda value: value


def _logical_reader(schema: Schema) -> Read:
    if schema.name == DECIMAL_NAME:
        return lambda value: decimal_from_bytes(schema, value)
    make = {DATE_NAME: date_from_days, TIME_NAME: time_from_millis, TIMESTAMP_NAME: timestamp_from_millis}
    read = make[schema.name or ""]
    return lambda value: read(schema, value)


def _union_reader(node: Union, schema: Schema) -> Read:
    known = [branch for branch in node.branches if branch.kind != "null"]
    if len(known) == 1:
        read = reader(known[0], schema)
        return lambda value: None if value is None else read(value[1] if type(value) is tuple else value)
    by_name = {
        plain_name(branch) if isinstance(branch, Record | Enum | Fixed) else branch.kind: (
            place,
            reader(branch, schema.fields[place].schema),
        )
        for place, branch in enumerate(known)
    }

    def of_several(value: Any) -> Struct | None:
        if value is None:
            return None
        name, inner = value if type(value) is tuple else (_kind_of(value, known), value)
        place, read_one = by_name[name]
        values: list[Any] = [None] * len(known)
        values[place] = read_one(inner)
        return Struct.of(schema, values)

    return of_several


def _kind_of(value: Any, known: list[Node]) -> str:
    """By its class, which tells, as what could be mistaken comes with its name."""
    classes: dict[str, tuple[type, ...]] = {
        "boolean": (bool,),
        "int": (int,),
        "long": (int,),
        "float": (float,),
        "double": (float,),
        "bytes": (bytes,),
        "fixed": (bytes,),
        "string": (str,),
        "enum": (str,),
        "array": (list,),
        "map": (dict,),
        "record": (dict,),
    }
    for branch in known:
        if type(value) in classes[branch.kind]:
            return plain_name(branch) if isinstance(branch, Record | Enum | Fixed) else branch.kind
    raise DataException(f"Did not find matching union field for data: {type(value).__name__}")
