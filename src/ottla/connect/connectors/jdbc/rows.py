"""Of which table and columns a record is, and what of it stands in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ottla.connect.connectors.jdbc.config import SinkConfig
from ottla.connect.connectors.jdbc.urls import DialectName
from ottla.connect.converters.json_writing import Writers, schemaless_text
from ottla.connect.data.errors import DataException
from ottla.connect.data.inference import inferred_schema
from ottla.connect.data.logical import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import INT32, INT64, STRING, Schema
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Type
from ottla.connect.spi import OneByOne

KAFKA_COLUMNS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")
_DAY_MS: Final = 86_400_000
_JSON: Final = Writers(decimals_as_numbers=True, replace_null=False, cache_size=1000)


class Shape(NamedTuple):
    """What rows of one kind have in common: made once for the schemas of a topic."""

    table: str
    columns: Mapping[str, Schema]
    keys: tuple[str, ...]
    """Of the columns; they come first."""
    deletes: bool = False


class Change(NamedTuple):
    """A row to be put or deleted. `values` are in the order of the columns."""

    at: int
    shape: Shape
    values: Sequence[Any]

    @property
    def key(self) -> tuple[Any, ...]:
        return tuple(map(_hashable, self.values[: len(self.shape.keys)]))


class Shapes:
    """Of one sink. Records with schemas are laid out by places that were found once."""

    __slots__ = ("_config", "_known", "_loose", "_typed")

    def __init__(self, config: SinkConfig) -> None:
        self._config = config
        self._known: dict[tuple[str, Schema, Schema], tuple[Shape, list[int], list[int]]] = {}
        self._loose: dict[tuple[Any, ...], Shape] = {}
        self._typed: dict[tuple[Any, ...], tuple[Shape, list[tuple[bool, str]]]] = {}
        """Of values without schemas, by the names and Python's types of what is in them."""

    def change(self, record: ConnectRecord, at: int) -> Change:
        """Raises DataException."""
        key, value = record.key, record.value
        if type(value) is Struct and type(key) is Struct and self._config.key_mode == "record_key":
            seen = (record.topic, key.schema, value.schema)
            known = self._known.get(seen) or self._learnt(seen, record)
            shape, from_key, from_value = known
            values = [key.values[place] for place in from_key]
            values += [value.values[place] for place in from_value]
            if None in values:
                values = [
                    _or_default(each, column) for each, column in zip(values, shape.columns.values(), strict=True)
                ]
                if None in values[: len(from_key)]:
                    raise DataException("A key column is null in the record's key")
            return Change(at, shape, values)
        if type(value) is dict and self._config.key_mode != "kafka":
            return self._by_types(record, at)
        return self._slowly(record, at)

    def _by_types(self, record: ConnectRecord, at: int) -> Change:
        """Where a record like it was laid out before, its values are only picked."""
        key, value = record.key, record.value
        if self._config.key_mode != "record_key":
            key = None
        of_key = (*key, *map(type, key.values())) if type(key) is dict else type(key)
        seen = (record.topic, of_key, *value, *map(type, value.values()))
        known = self._typed.get(seen)
        if known is None:
            made = self._slowly(record, at)
            if key is None or type(key) is not Struct:
                self._learn(seen, record, made.shape)
            return made
        shape, picked = known
        if type(key) is dict:
            return Change(at, shape, [key[name] if of_key else value[name] for of_key, name in picked])
        return Change(at, shape, [key if of_key else value[name] for of_key, name in picked])

    def _learn(self, seen: tuple[Any, ...], record: ConnectRecord, shape: Shape) -> None:
        """A decimal's type does not tell its scale."""
        inside = [*record.value.values(), *(record.key.values() if type(record.key) is dict else [record.key])]
        if any(type(each) not in _TELLING for each in inside):
            return
        if len(self._typed) >= MOST_SHAPES:
            self._typed.clear()
        by_key = shape.keys if self._config.key_mode == "record_key" else ()
        self._typed[seen] = shape, [(name in by_key, name) for name in shape.columns]

    def _slowly(self, record: ConnectRecord, at: int) -> Change:
        shape, found = shaped(record, self._config)
        same = self._loose.setdefault((shape.table, shape.deletes, shape.keys, tuple(shape.columns.items())), shape)
        if len(self._loose) > MOST_SHAPES:
            self._loose.clear()
        return Change(at, same, [found.get(name) for name in same.columns])

    def _learnt(self, seen: tuple[str, Schema, Schema], record: ConnectRecord) -> tuple[Shape, list[int], list[int]]:
        shape, _ = shaped(record, self._config)
        _, of_key, of_value = seen
        others = [name for name in shape.columns if name not in shape.keys]
        made = shape, _places(of_key, shape.keys), _places(of_value, others)
        if len(self._known) >= MOST_SHAPES:
            self._known.clear()
        self._known[seen] = made
        return made


_TELLING: Final = frozenset((str, int, float, bool, bytes, list, dict, type(None)))
MOST_SHAPES: Final = 1000
"""That a sink remembers."""


def _places(schema: Schema, names: Sequence[str]) -> list[int]:
    fields = [schema.field(name) for name in names]
    return [field.index for field in fields if field is not None]


def _or_default(value: Any, schema: Schema) -> Any:
    return schema.default if value is None else value


def _hashable(value: Any) -> Any:
    return value if value.__hash__ is not None else repr(value)


def shaped(record: ConnectRecord, config: SinkConfig) -> tuple[Shape, dict[str, Any]]:
    """Raises DataException."""
    table = config.table_of(record.topic)
    key_columns, key_values = _key(record, config)
    keys = tuple(key_columns)
    if record.value is None:
        if config.delete_enabled and config.key_mode == "record_key":
            return Shape(table, key_columns, keys, deletes=True), key_values
        raise DataException(
            "A null value deletes a row with delete.enabled=true and pk.mode=record_key; here it is not to be written"
        )
    columns, values = _fields(record.value_schema, record.value, "value")
    if config.fields:
        allowed = frozenset((*config.fields, *keys))
        columns = {name: schema for name, schema in columns.items() if name in allowed}
    if config.insert_mode != "insert" and not keys:
        raise DataException(f"insert.mode={config.insert_mode} needs a key: set pk.mode and pk.fields")
    others = {name: schema for name, schema in columns.items() if name not in keys}
    if not (key_columns or others):
        raise DataException("Nothing of it becomes a column, and a row has one at least")
    return Shape(table, {**key_columns, **others}, keys), {**values, **key_values}


def _key(record: ConnectRecord, config: SinkConfig) -> tuple[dict[str, Schema], dict[str, Any]]:
    named = config.key_fields
    if config.key_mode == "none":
        return {}, {}
    if config.key_mode == "kafka":
        names = tuple(named) or KAFKA_COLUMNS
        if len(names) != 3:
            raise DataException(f"pk.mode=kafka has three columns, and pk.fields names {len(names)}")
        values = (record.topic, record.partition, record.offset)
        return dict(zip(names, (STRING, INT32, INT64), strict=True)), dict(zip(names, values, strict=True))
    if config.key_mode == "record_value":
        return _chosen(record.value_schema, record.value, named, "value")
    if record.key is None:
        raise DataException("pk.mode=record_key needs a key, and this record has none")
    if isinstance(record.key, Struct | dict):
        return _chosen(record.key_schema, record.key, named, "key")
    if len(named) != 1:
        raise DataException("The key is one value, and pk.fields has to name the one column it goes to")
    schema = record.key_schema or inferred_schema(record.key)
    return {named[0]: schema}, {named[0]: record.key}


def _chosen(
    schema: Schema | None, value: Any, named: Sequence[str], what: str
) -> tuple[dict[str, Schema], dict[str, Any]]:
    columns, values = _fields(schema, value, what)
    names = tuple(named) or tuple(columns)
    for name in names:
        if name not in columns:
            raise DataException(f"pk.fields names {name}, which the record's {what} does not have")
        if values[name] is None:
            raise DataException(f"The key column {name} is null in the record's {what}")
    return {name: columns[name] for name in names}, {name: values[name] for name in names}


def _fields(schema: Schema | None, value: Any, what: str) -> tuple[dict[str, Schema], dict[str, Any]]:
    if isinstance(value, Struct):
        fields = value.schema.fields
        return {f.name: f.schema for f in fields}, {f.name: value.get(f.name) for f in fields}
    if isinstance(value, dict):
        # Without a schema, what is null says nothing of its column.
        known = {str(name): each for name, each in value.items() if each is not None}
        columns = {name: _column_schema(each) for name, each in known.items()}
        return columns, known
    kind = "nothing" if value is None else type(value).__name__
    raise DataException(f"The record's {what} has to be a struct or a JSON object to be a row, and is {kind}")


def _column_schema(value: Any) -> Schema:
    """Lists and objects are JSON whatever is in them."""
    if isinstance(value, list):
        return Schema(Type.ARRAY, optional=True)
    if isinstance(value, dict):
        return Schema(Type.MAP, optional=True)
    return inferred_schema(value)


# ---- Arrow


def laid_out(topic: str, first: Any, rows: pa.Table, config: SinkConfig) -> tuple[Shape, pa.Table]:
    """Rows of JSON that all have the same fields, none of them null or nested, of each key the last. `first` is the
    first of them, from which a table would be made. Raises OneByOne where they have not."""
    if any(column.null_count or pa.types.is_nested(column.type) for column in rows.columns):
        raise OneByOne
    try:
        shape, _ = shaped(ConnectRecord(topic, value=first), config)
    except DataException as error:
        raise OneByOne from error
    found = rows.select(list(shape.columns))
    if any(field.type != _ARROW[shape.columns[field.name].type]() for field in found.schema):
        raise OneByOne  # whole numbers among others, say
    if not shape.keys:
        return shape, found
    keys = zip(*(found.column(name).to_pylist() for name in shape.keys), strict=True)
    last = {key: at for at, key in enumerate(keys)}
    return shape, found if len(last) == len(found) else found.take(pa.array(sorted(last.values())))


def staged(changes: Sequence[Change], dialect: DialectName) -> pa.Table:
    """Decimals and times go as texts, which the table's own type reads; JSON as well."""
    columns = changes[0].shape.columns
    by_column = zip(*(change.values for change in changes), strict=True)
    arrays = [_array(values, schema, dialect) for values, schema in zip(by_column, columns.values(), strict=True)]
    return pa.table(arrays, names=list(columns))


def _array(values: Sequence[Any], schema: Schema, dialect: DialectName) -> pa.Array:
    if schema.name == DECIMAL_NAME:
        return pa.array([None if each is None else f"{Decimal(each):f}" for each in values], pa.string())
    if dialect != "sqlite" and schema.name in (DATE_NAME, TIMESTAMP_NAME, TIME_NAME):
        numbers = [None if each is None else int(each) for each in values]
        if schema.name == DATE_NAME:
            return pa.array([None if each is None else each // _DAY_MS for each in numbers], pa.int32()).cast(
                pa.date32()
            )
        if schema.name == TIMESTAMP_NAME:
            return pa.array(numbers, pa.int64()).cast(pa.timestamp("ms"))
        return pa.array([None if each is None else _clock(each) for each in numbers], pa.string())
    if schema.type in (Type.ARRAY, Type.MAP, Type.STRUCT):
        return pa.array([None if each is None else _json(each, schema) for each in values], pa.string())
    if schema.type is Type.BYTES:
        return pa.array([None if each is None else bytes(each) for each in values], pa.binary())
    return pa.array(values, _ARROW[schema.type]())


def _clock(millis: int) -> str:
    seconds, rest = divmod(millis, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:03}"


def _json(value: Any, schema: Schema) -> str:
    known = schema.value_schema is not None or schema.fields
    return _JSON.of(schema)(value) if known else schemaless_text(value)


_ARROW: Final[dict[Type, Any]] = {
    Type.INT8: pa.int16,
    Type.INT16: pa.int16,
    Type.INT32: pa.int32,
    Type.INT64: pa.int64,
    Type.FLOAT32: pa.float32,
    Type.FLOAT64: pa.float64,
    Type.BOOLEAN: pa.bool_,
    Type.STRING: pa.string,
}
