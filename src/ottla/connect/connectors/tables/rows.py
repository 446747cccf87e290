"""Records to Arrow tables, column by column; a value that does not fit refuses its record, not the batch."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ottla.connect.connectors.tables.names import ANY, Misfit, Names, Spelling
from ottla.connect.data.columns import MOST_DIGITS, TIMESTAMP_TYPE, arrow_type
from ottla.connect.data.logical import DATE_NAME, TIME_NAME
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import Schema
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Instant, Type

MOST_LEVELS: Final = 50
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN: Final = frozenset((str, int, float, bool, bytes, Decimal, type(None)))
_NAMES: Final = frozenset((str,))
_MISFITS: Final = (
    pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, ValueError, TypeError,
)  # fmt: skip
_NO_COLUMN: Final = "no column can be made of it: it has no field but nulls and empty ones, and the table has none yet"


class Refusal(NamedTuple):
    at: int
    """Its place among the records."""
    reason: str


class Rows(NamedTuple):
    table: pa.Table
    refused: list[Refusal]


def rows_of(
    records: Sequence[ConnectRecord],
    known: pa.Schema | None,
    keys: Sequence[Mapping[str, Any]] | None = None,
    *,
    names: Names = ANY,
) -> Rows:
    """`known`: of the table as it is; its columns keep their types, and come first. `keys`: columns of each record that
    come from its key, and win over those of its value."""
    spelt = Spelling(names, known.names if known is not None else ())
    places: list[int] = []
    plain: list[dict[str, Any]] = []
    schemas: dict[int, Schema] = {}
    refused: list[Refusal] = []
    for at, record in enumerate(records):
        try:
            row = _row(record)
            row = row if keys is None else {**row, **keys[at]}
            plain.append(spelt.of(row))
        except Misfit as misfit:
            refused.append(Refusal(at, str(misfit)))
            continue
        places.append(at)
        if isinstance(record.value, Struct):
            schemas[id(record.value.schema)] = record.value.schema
    declared = {field.name: arrow_type(field.schema) for schema in schemas.values() for field in schema.fields}
    declared = {spelt.name(name): kind for name, kind in declared.items()}
    # Rows of one kind have the same names: those are told once.
    kinds = dict.fromkeys(map(tuple, plain))
    told = dict.fromkeys([*(known.names if known is not None else ()), *chain.from_iterable(kinds)])
    columns = [_column(name, [row.get(name) for row in plain], known, declared) for name in told]
    unfit: dict[int, str] = {}
    for column in columns:
        for at, reason in column.unfit.items():
            unfit.setdefault(at, reason)
    kept = [column for column in columns if not pa.types.is_null(column.type)]
    if not kept:
        unfit |= {at: _NO_COLUMN for at in range(len(plain)) if at not in unfit}
    refused += [Refusal(places[at], reason) for at, reason in unfit.items()]
    fits = [at for at in range(len(plain)) if at not in unfit] if unfit else None
    arrays = [column.array if fits is None else column.of(fits) for column in kept]
    return Rows(pa.table(arrays, schema=pa.schema([(column.name, column.type) for column in kept])), sorted(refused))


class _Column(NamedTuple):
    name: str
    type: pa.DataType
    values: Sequence[Any]
    array: pa.Array | None
    """None: some values do not fit."""
    unfit: Mapping[int, str]
    """Places of rows with a value that it does not take, and why."""

    def of(self, places: Sequence[int]) -> pa.Array:
        if self.array is not None:
            return self.array.take(pa.array(places, pa.int64()))
        return pa.array([self.values[at] for at in places], self.type)


def _column(name: str, values: Sequence[Any], known: pa.Schema | None, declared: Mapping[str, pa.DataType]) -> _Column:
    kind = _type_of(values, _known(known, name), declared.get(name))
    if pa.types.is_null(kind):
        odd = (at for at, value in enumerate(values) if value is not None and _type_alone(value) is None)
        told = {at: f"field {name}: {_shown(values[at])} is of several types" for at in odd}
        return _Column(name, kind, values, None, told)
    if not pa.types.is_nested(kind) or all(_is_like(value, kind) for value in values):
        try:
            return _Column(name, kind, values, pa.array(values, kind), {})
        except _MISFITS:
            pass  # it is found whose fault it is
    if pa.types.is_floating(kind):
        values = [_near(value) for value in values]
    reasons = ((at, _misfit(name, value, kind)) for at, value in enumerate(values))
    unfit = {at: reason for at, reason in reasons if reason is not None}
    return _Column(name, kind, values, None if unfit else pa.array(values, kind), unfit)


def _is_like(value: Any, kind: pa.DataType) -> bool:
    """Arrow would take a list for an object, if only the first of a column is one."""
    if value is None:
        return True
    if pa.types.is_struct(kind):
        return isinstance(value, dict) and all(_is_like(value.get(field.name), field.type) for field in kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return isinstance(value, list) and all(_is_like(each, kind.value_type) for each in value)
    return True


def _near(value: Any) -> Any:
    """A whole number among those with a point: Arrow refuses it where the nearest of them is another one."""
    try:
        return float(value) if type(value) is int else value
    except OverflowError:
        return value


def _row(record: ConnectRecord) -> dict[str, Any]:
    value = record.value
    if value is None:
        raise Misfit("it has no value: a tombstone deletes a row only where the connector upserts by key")
    if isinstance(value, Struct):
        return {field.name: _plain(value.get(field.name), field.schema, 0) for field in value.schema.fields}
    if isinstance(value, dict):  # of JSON: mostly nothing has to be made of it
        if _PLAIN.issuperset(map(type, value.values())) and _NAMES.issuperset(map(type, value)):
            return value
        return {str(name): _plain(item, None, 0) for name, item in value.items()}
    raise Misfit(f"its value is no object but {type(value).__name__}: a row has columns (HoistField gives it one)")


def _plain(value: Any, schema: Schema | None, level: int) -> Any:
    """In Python's own types, as Arrow takes them."""
    if level > MOST_LEVELS:
        raise Misfit(f"its value is nested deeper than {MOST_LEVELS} levels")
    if isinstance(value, Instant):
        return _moment(value, schema)
    if isinstance(value, Struct):
        return {field.name: _plain(value.get(field.name), field.schema, level + 1) for field in value.schema.fields}
    if isinstance(value, dict):
        inner = None if schema is None else schema.value_schema
        if schema is not None and schema.type is Type.MAP:
            return [
                (_plain(key, schema.key_schema, level + 1), _plain(item, inner, level + 1))
                for key, item in value.items()
            ]
        return {str(name): _plain(item, inner, level + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        inner = None if schema is None else schema.value_schema
        return [_plain(item, inner, level + 1) for item in value]
    if isinstance(value, bool | str | bytes | Decimal) or value is None:
        return value
    return int(value) if isinstance(value, int) else float(value)


def _moment(value: Instant, schema: Schema | None) -> Any:
    try:
        moment = _EPOCH + timedelta(milliseconds=int(value))
    except OverflowError:
        raise Misfit(f"{int(value)} ms is a time outside of the years 1 to 9999") from None
    if schema is not None and schema.name == DATE_NAME:
        return date(moment.year, moment.month, moment.day)
    if schema is not None and schema.name == TIME_NAME:
        return moment.time()
    return moment


def _known(schema: pa.Schema | None, name: str) -> pa.DataType | None:
    return schema.field(name).type if schema is not None and name in schema.names else None


def _type_of(values: Sequence[Any], known: pa.DataType | None, declared: pa.DataType | None) -> pa.DataType:
    """A column that is known keeps its type, but a struct in it may be given fields."""
    if known is not None and not pa.types.is_nested(known):
        return known
    found = declared if declared is not None else _inferred(values)
    if known is None:
        return found
    return known if pa.types.is_null(found) else _merged(known, found)


def _merged(known: pa.DataType, found: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(known) and pa.types.is_struct(found):
        fields = {field.name: field.type for field in known}
        for field in found:
            of_known = fields.get(field.name)
            fields[field.name] = field.type if of_known is None else _merged(of_known, field.type)
        return pa.struct([pa.field(name, kind) for name, kind in fields.items() if not pa.types.is_null(kind)])
    if pa.types.is_list(known) and pa.types.is_list(found):
        return pa.list_(_merged(known.value_type, found.value_type))
    return known


def _inferred(values: Sequence[Any]) -> pa.DataType:
    """Of values without a schema; where they differ, that of the first that has one, and the others are refused."""
    try:
        found = pa.infer_type(values)
    except _MISFITS:
        alone = (_type_alone(value) for value in values if value is not None)
        return next((kind for kind in alone if kind is not None and not pa.types.is_null(kind)), pa.null())
    return _in_tables(found)


def _type_alone(value: Any) -> pa.DataType | None:
    """None: of what no column can be, as a list of texts and lists."""
    try:
        return _in_tables(pa.infer_type([value]))
    except _MISFITS:
        return None


def _in_tables(found: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(found):
        return TIMESTAMP_TYPE
    if pa.types.is_decimal(found):
        return pa.decimal128(MOST_DIGITS, found.scale)
    return _without_nulls(found)


def _without_nulls(found: pa.DataType) -> pa.DataType:
    """Lists of nothing and empty objects have no type that a table could keep: they wait for one that has. Numbers
    beyond 64 bits and their sign have none either."""
    if pa.types.is_struct(found):
        fields = [pa.field(field.name, _without_nulls(field.type)) for field in found]
        kept = [field for field in fields if not pa.types.is_null(field.type)]
        return pa.struct(kept) if kept else pa.null()
    if pa.types.is_list(found):
        inner = _without_nulls(found.value_type)
        return pa.null() if pa.types.is_null(inner) else pa.list_(inner)
    return pa.int64() if pa.types.is_unsigned_integer(found) else found


def _misfit(name: str, value: Any, kind: pa.DataType) -> str | None:
    try:
        if _is_like(value, kind):
            pa.array([value], kind)
            return None
    except _MISFITS:
        pass
    return f"field {name}: {_shown(value)} is no {kind}"


def _shown(value: Any) -> str:
    shown = repr(value)
    return f"{shown[:100]}…" if len(shown) > 100 else shown
