"""Serdes as Spark columns: bytes to values and back without leaving the JVM.

Reading is permissive: `decode_column` gives the value and, beside it, what is wrong with the bytes (null if nothing
is), so that a bad record can go to the dead letter topic and the query goes on. `decoded` gives both in one struct, for
half the price where there is something to parse.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from ottla.pipelines.type_names import named
from ottla.serdes import columns, primitives
from ottla.serdes.base import ColumnSerde, Serde, SerdeError
from ottla.serdes.json import JsonSerde
from ottla.serdes.lenient_json import LenientJsonSerde
from ottla.serdes.types import ANY, STRING, Type, common
from ottla.serdes.values import json_quoted
from ottla.streams.plan.columns import has_columns
from ottla.streams.run import lenient_json_columns as lenient
from ottla.streams.run.type_columns import (
    PLAIN_SCALE,
    READ_AS_TEXT,
    cast_column,
    decimal_text,
    ms_of,
    null_of,
    read_text,
    spark_type,
)
from ottla.streams.serdes import SessionWindowedSerde, TimeWindowedSerde
from ottla.streams.windows import LONGEST_MS

_FRACTION_BITS: Final = 52
_FRACTION: Final = (1 << _FRACTION_BITS) - 1
_SMALLEST: Final = 2.0**-1074
_BROKEN: Final = "__broken"
_JSON_FORM: Final = {"ignoreNullFields": "false"}


class Decoded(NamedTuple):
    value: Column
    error: Column
    """A text where the bytes cannot be read, else null."""


def is_native(serde: Serde[Any]) -> bool:
    """Whether Spark can read and write it by itself: a serde of the user's own cannot be known here."""
    return has_columns(serde)


# ---- reading


def decoded(serde: Serde[Any], column: Column) -> Column:
    """Both at once, as a struct of value and error. Select it, and take it apart in the select after: then the bytes
    are parsed one time, however many filters and fields follow."""
    if isinstance(serde, JsonSerde) and serde.type != ANY:
        return _computed_once(_decoded_json(serde, column))
    if isinstance(serde, LenientJsonSerde):
        return _computed_once(lenient.decoded_lenient(serde, column, _lenient_complaint(serde, column)))
    value, error = decode_column(serde, column)
    return _computed_once(F.struct(value.alias("value"), error.alias("error")))


def _lenient_complaint(serde: LenientJsonSerde, column: Column) -> Column:
    return _complaint(serde, f"JSON of {serde.content}", column)


def _decoded_json(serde: JsonSerde, column: Column) -> Column:
    text = _wrapped(column)

    def both(parsed: Column) -> Column:
        broken = _is_broken(text, parsed, serde.type)
        error = F.when(column.isNotNull() & broken, _json_complaint(serde, column))
        return F.struct(F.when(~broken, _typed(parsed["v"], serde.type)).alias("value"), error.alias("error"))

    return _through_variable(_parsed(serde, column), both)


def decode_column(serde: Serde[Any], column: Column, headers: Column | None = None) -> Decoded:
    """Of a binary column, null where it is null. `headers`: of the records, for serdes that look there."""
    match serde:
        case ColumnSerde():
            return _decode_in_python(serde, column, headers)
        case primitives.StringSerde():
            return Decoded(F.make_valid_utf8(column.cast(named("string"))), _no_error())
        case primitives.BytesSerde():
            return Decoded(column, _no_error())
        case primitives.LongSerde():
            return _of_length(serde, column, 8, long_of(column))
        case primitives.IntSerde():
            return _of_length(serde, column, 4, int_of(column))
        case primitives.DoubleSerde():
            return _of_length(serde, column, 8, double_of(column))
        case primitives.BooleanSerde():
            return _decode_boolean(serde, column)
        case JsonSerde():
            return _decode_any_json(serde, column) if serde.type == ANY else _decode_json(serde, column)
        case LenientJsonSerde():
            both = decoded(serde, column)
            return Decoded(both["value"], both["error"])
        case TimeWindowedSerde():
            return _decode_time_windowed(serde, column)
        case SessionWindowedSerde():
            return _decode_session_windowed(serde, column)
    raise TypeError(f"Spark cannot read {serde!r} by itself")


def _decode_in_python(serde: ColumnSerde[Any], column: Column, headers: Column | None) -> Decoded:
    """By a Python worker, a batch of Arrow at a time."""
    kind = f"struct<value: {spark_type(serde.type)}, error: string>"
    if headers is None:
        both = _by_batches(lambda data: _decoded_batch(serde, data, None), kind)(column)
    else:
        both = _by_batches(lambda data, beside: _decoded_batch(serde, data, beside), kind)(column, headers)
    once = _computed_once(both)
    return Decoded(once["value"], once["error"])


def _by_batches(function: Callable[..., pa.Array], kind: str) -> Callable[..., Column]:
    """A column function that is Python code over arrays of Arrow. pyspark warns of a named kind of function, infers it
    from annotations, and takes one without them (a lambda) for this kind: its stubs know only the first two."""
    made: Callable[..., Column] = arrow_udf(function, kind)  # type: ignore[call-overload]
    return made


def _decoded_batch(serde: ColumnSerde[Any], data: pa.Array, headers: pa.Array | None) -> pa.Array:
    values, errors = columns.decode(serde, data, headers)
    return pa.StructArray.from_arrays([values, errors], ["value", "error"])


def _no_error() -> Column:
    return F.lit(None).cast(named("string"))


def _complaint(serde: Serde[Any], expected: str, column: Column) -> Column:
    """The message of SerdeError, with the bytes in hexadecimal."""
    start = F.hex(F.substring(column, 1, 40))
    return F.concat(F.lit(f"{serde!r}: {expected} expected, found "), F.length(column), F.lit(" bytes: "), start)


def _where(serde: Serde[Any], column: Column, good: Column, value: Column, expected: str) -> Decoded:
    """The value where the bytes are good, the complaint where they are not."""
    bad = column.isNotNull() & ~F.coalesce(good, F.lit(False))
    return Decoded(F.when(good, value), F.when(bad, _complaint(serde, expected, column)))


def _of_length(serde: Serde[Any], column: Column, length: int, value: Column) -> Decoded:
    return _where(serde, column, F.length(column) == length, value, f"{length} bytes")


def long_of(column: Column) -> Column:
    """8 bytes, big-endian. A negative base makes `conv` give a signed number."""
    return F.conv(F.hex(column), 16, -10).cast("bigint")


def int_of(column: Column) -> Column:
    unsigned = F.conv(F.hex(column), 16, 10).cast("bigint")
    return F.shiftright(F.shiftleft(unsigned, 32), 32).cast("int")


def double_of(column: Column) -> Column:
    """IEEE 754 put together by arithmetic, which is exact: Spark has no function for it."""
    bits = long_of(column)
    exponent = F.shiftright(bits, _FRACTION_BITS).bitwiseAND(F.lit(0x7FF).cast("bigint"))
    fraction = bits.bitwiseAND(F.lit(_FRACTION))
    size = (
        F.when((exponent == 0x7FF) & (fraction == 0), F.lit(float("inf")))
        .when(exponent == 0x7FF, F.lit(float("nan")))
        .when(exponent == 0, fraction.cast("double") * F.lit(_SMALLEST))
        .otherwise((fraction + F.lit(_FRACTION + 1)).cast("double") * _power_of_two(exponent - 1075))
    )
    return F.when(bits < 0, F.negative(size)).otherwise(size)


def _power_of_two(exponent: Column) -> Column:
    return F.pow(F.lit(2.0), exponent.cast("double"))


def _decode_boolean(serde: primitives.BooleanSerde, column: Column) -> Decoded:
    yes, no = F.lit(b"\1"), F.lit(b"\0")
    return _where(serde, column, (column == yes) | (column == no), column == yes, "one byte, 0 or 1,")


def _decode_any_json(serde: JsonSerde, column: Column) -> Decoded:
    parsed = F.try_variant_get(F.try_parse_json(_wrapped(column)), "$.v", "variant")
    bad = column.isNotNull() & parsed.isNull()
    value = F.when(~F.is_variant_null(parsed), parsed)
    return Decoded(_computed_once(value), F.when(bad, _complaint(serde, "JSON", column)))


def _decode_json(serde: JsonSerde, column: Column) -> Decoded:
    parsed, text = _parsed(serde, column), _wrapped(column)
    bad = column.isNotNull() & _is_broken(text, parsed, serde.type)
    value = _through_variable(
        parsed, lambda found: F.when(~_is_broken(text, found, serde.type), _typed(found["v"], serde.type))
    )
    return Decoded(_computed_once(value), F.when(bad, _json_complaint(serde, column)))


def _parsed(serde: JsonSerde, column: Column) -> Column:
    schema = f"v {spark_type(_as_parsed(serde.type))}, {_BROKEN} string"
    strictly = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BROKEN, "allowSingleQuotes": "false"}
    return F.from_json(_wrapped(column), schema, strictly)


def _is_broken(text: Column, parsed: Column, kind: Type) -> Column:
    broken = text.isNull() | parsed[_BROKEN].isNotNull()
    return broken | F.coalesce(_wrong(parsed["v"], kind), F.lit(False)) if _is_checked(kind) else broken


def _is_checked(kind: Type) -> bool:
    """Whether there is something in it that Spark's own parser does not check."""
    return kind.has("map", *READ_AS_TEXT)


def _as_parsed(kind: Type) -> Type:
    """What the parser gives: types that JSON has not come as text. Of a number it would make a double first, unless it
    is asked for a VARIANT."""
    if kind.name == "decimal":
        return ANY
    if kind.name in READ_AS_TEXT:
        return STRING
    fields = tuple((name, _as_parsed(part)) for name, part in kind.fields)
    return replace(kind, element=None if kind.element is None else _as_parsed(kind.element), fields=fields)


def _typed(column: Column, kind: Type) -> Column:
    """Of what the parser gave."""
    if not kind.has(*READ_AS_TEXT):
        return column
    element = kind.element
    match kind.name:
        case "struct":
            fields = [_typed(column[name], part).alias(name) for name, part in kind.fields]
            return F.when(column.isNotNull(), F.struct(*fields))
        case "array" if element is not None:
            return F.transform(column, lambda each: _typed(each, element))
        case "map" if element is not None:
            return F.transform_values(column, lambda _, each: _typed(each, element))
    return read_text(_text_of(column, kind), kind)


def _text_of(column: Column, kind: Type) -> Column:
    return F.try_variant_get(column, "$", "string") if kind.name == "decimal" else column


def _wrong(column: Column, kind: Type) -> Column:
    """Whether something is not of its type. May be null instead of false."""
    element = kind.element
    match kind.name:
        case "struct":
            checked = [(name, part) for name, part in kind.fields if _is_checked(part)]
            found = [F.coalesce(_wrong(column[name], part), F.lit(False)) for name, part in checked]
            return reduce(or_, found)
        case "array" if element is not None:
            return F.exists(column, lambda each: F.coalesce(_wrong(each, element), F.lit(False)))
        case "map" if element is not None:
            keys = F.map_keys(column)
            twice = F.size(F.array_distinct(keys)) < F.size(keys)
            if not _is_checked(element):
                return twice
            return twice | F.exists(F.map_values(column), lambda each: F.coalesce(_wrong(each, element), F.lit(False)))
    text = _text_of(column, kind)
    return text.isNotNull() & read_text(text, kind).isNull()


def _json_complaint(serde: JsonSerde, column: Column) -> Column:
    return _complaint(serde, f"JSON of {serde.type}", column)


def _through_variable(parsed: Column, function: Callable[[Column], Column]) -> Column:
    """The function of a column that is computed once: Spark does not see that two from_json are the same."""
    return F.get(F.transform(F.array(parsed), function), 0)


def _computed_once(value: Column) -> Column:
    """Keeps the optimizer from moving a filter on a field below the parsing, which would then be done for each filter:
    it moves nothing past a column that it takes for not deterministic."""
    return F.when(F.spark_partition_id() >= 0, value)


def _wrapped(column: Column) -> Column:
    """In an object: then Spark reads documents of every type, null too, alike, and minds what follows them."""
    return F.concat(F.lit('{"v":'), F.try_validate_utf8(column.cast("string")), F.lit("}"))


def _decode_time_windowed(serde: TimeWindowedSerde, column: Column) -> Decoded:
    start = long_of(F.substring(column, -8, 8))
    end = F.coalesce(F.try_add(start, F.lit(serde.size_ms).cast("bigint")), F.lit(LONGEST_MS))
    return _decode_windowed(serde, column, 8, start, end)


def _decode_session_windowed(serde: SessionWindowedSerde, column: Column) -> Decoded:
    return _decode_windowed(
        serde, column, 16, long_of(F.substring(column, -8, 8)), long_of(F.substring(column, -16, 8))
    )


def _decode_windowed(
    serde: TimeWindowedSerde | SessionWindowedSerde, column: Column, suffix: int, start: Column, end: Column
) -> Decoded:
    filled = F.when(F.length(column) > 0, column)  # an empty key is null, as in Java
    inner = decode_column(serde.inner, filled.substr(F.lit(1), F.length(filled) - suffix))
    whole = F.struct(inner.value.alias("key"), start.alias("start"), end.alias("end"))
    outer = _where(serde, filled, F.length(filled) >= suffix, whole, f"at least {suffix} bytes")
    return Decoded(F.when(inner.error.isNull(), outer.value), F.coalesce(outer.error, inner.error))


# ---- writing


def encode_column(serde: Serde[Any], column: Column, kind: Type | None = None, topic: Column | None = None) -> Column:
    """A column of type `kind` (the serde's own if not given) as bytes. SerdeError if the serde cannot write it.

    `topic`: where it goes, for serdes that want to know."""
    given = serde.type if kind is None else kind
    match serde:
        case ColumnSerde():
            fitted = _fitted(serde, column, given, serde.type)
            encode = _by_batches(lambda values, topics: columns.encode(serde, values, topics), "binary")
            return encode(fitted, F.lit("") if topic is None else topic)
        case TimeWindowedSerde() | SessionWindowedSerde():
            return _encode_windowed(serde, column, given)
        case JsonSerde() if serde.type == ANY:
            return _any_json(column, given).cast("binary")
    if not is_native(serde):
        raise TypeError(f"Spark cannot write {serde!r} by itself")
    fitted = _fitted(serde, column, given, serde.type)
    match serde:
        case primitives.StringSerde():
            return fitted.cast("binary")
        case primitives.LongSerde():
            return bytes_of_long(fitted)
        case primitives.IntSerde():
            return bytes_of_int(fitted)
        case primitives.DoubleSerde():
            return bytes_of_double(fitted)
        case primitives.BooleanSerde():
            return F.when(fitted, F.lit(b"\1")).when(~fitted, F.lit(b"\0"))
        case JsonSerde():
            return _json(fitted, serde.type).cast("binary")
        case LenientJsonSerde():
            return _json(fitted if serde.single is None else fitted[serde.single], serde.content).cast("binary")
    return fitted


def _fitted(serde: Serde[Any], column: Column, given: Type, wanted: Type) -> Column:
    """What is of a narrower number type, or has no type, is converted; all else has to be right."""
    if given == wanted:
        return column
    if given.name == "null":
        return null_of(wanted)
    if given == ANY and wanted.name not in {"struct", "array", "map", "binary", *READ_AS_TEXT}:
        return F.try_variant_get(column, "$", spark_type(wanted))
    if given.name == wanted.name == "struct" and dict(given.fields).keys() <= dict(wanted.fields).keys():
        return _fitted_struct(serde, column, given, wanted)
    if not given.has("any") and common(given, wanted) == wanted:
        return cast_column(column, given, wanted)
    raise SerdeError(f"{serde!r} cannot write a column of type {given}; cast it, or name another serde")


def _fitted_struct(serde: Serde[Any], column: Column, given: Type, wanted: Type) -> Column:
    parts = []
    for name, part in wanted.fields:
        held = given.field(name)
        parts.append((null_of(part) if held is None else _fitted(serde, column[name], held, part)).alias(name))
    return F.when(column.isNotNull(), F.struct(*parts))


def bytes_of_long(column: Column) -> Column:
    return F.unhex(F.lpad(F.hex(column), 16, "0"))


def bytes_of_int(column: Column) -> Column:
    return F.unhex(F.lpad(F.hex(column.cast("bigint").bitwiseAND(F.lit(0xFFFF_FFFF))), 8, "0"))


def bytes_of_double(column: Column) -> Column:
    """Java's own bits. Spark calls a method of Java not deterministic, so this belongs in a select and nowhere else."""
    bits = F.reflect(F.lit("java.lang.Double"), F.lit("doubleToLongBits"), column)
    return F.when(column.isNotNull(), bytes_of_long(bits.cast("bigint")))


def _any_json(column: Column, kind: Type) -> Column:
    """Fields sorted by name, as a VARIANT has them."""
    if kind == ANY:
        return F.when(~F.is_variant_null(column), F.to_json(column))
    if kind.name in {"windowed", "binary"}:
        raise SerdeError(f"Serdes.json cannot write a column of type {kind}; cast it, or name another serde")
    return _json(_sorted(column, kind), _sorted_type(kind))


def _sorted_type(kind: Type) -> Type:
    fields = tuple(sorted((name, _sorted_type(part)) for name, part in kind.fields))
    return replace(kind, element=None if kind.element is None else _sorted_type(kind.element), fields=fields)


def _sorted(column: Column, kind: Type) -> Column:
    """With the fields of structs in the order of their names."""
    wanted = _sorted_type(kind)
    return column if wanted == kind else cast_column(column, kind, wanted)


def _json(column: Column, kind: Type) -> Column:
    """The text that `serdes.json` writes."""
    if any(part.scale > PLAIN_SCALE for part in _decimals_in(kind)):
        return _json_by_hand(column, kind)
    plain = _for_json(column, kind)
    if kind.name in {"struct", "array", "map"}:
        return F.to_json(plain, _JSON_FORM)
    listed = F.to_json(F.array(plain))
    return F.when(column.isNotNull(), listed.substr(F.lit(2), F.length(listed) - 2))


def _decimals_in(kind: Type) -> list[Type]:
    found = [each for part in kind.parts() for each in _decimals_in(part)]
    return [kind, *found] if kind.name == "decimal" else found


def _for_json(column: Column, kind: Type) -> Column:
    """Dates and timestamps as numbers, the keys of maps in order."""
    if not kind.has("map", "date", "timestamp"):
        return column
    element = kind.element
    match kind.name:
        case "date":
            return F.unix_date(column)
        case "timestamp":
            return ms_of(column)
        case "struct":
            fields = [_for_json(column[name], part).alias(name) for name, part in kind.fields]
            return F.when(column.isNotNull(), F.struct(*fields))
        case "array" if element is not None:
            return F.transform(column, lambda each: _for_json(each, element))
        case "map" if element is not None:
            keys = F.array_sort(F.map_keys(column))
            values = F.transform(keys, lambda key: _for_json(F.try_element_at(column, key), element))
            return F.map_from_arrays(keys, values)
    raise AssertionError(f"{kind} holds nothing that is to be changed")


def _json_by_hand(column: Column, kind: Type) -> Column:
    """Spark's own would write small decimals with an exponent."""

    def part(value: Column, of: Type) -> Column:
        return F.coalesce(_json_by_hand(value, of), F.lit("null"))

    element = kind.element
    match kind.name:
        case "decimal":
            return decimal_text(column, kind)
        case "struct":
            fields = [F.concat(F.lit(json_quoted(name) + ":"), part(column[name], of)) for name, of in kind.fields]
            return F.when(column.isNotNull(), F.concat(F.lit("{"), F.concat_ws(",", *fields), F.lit("}")))
        case "array" if element is not None:
            items = F.transform(column, lambda each: part(each, element))
            return F.concat(F.lit("["), F.array_join(items, ","), F.lit("]"))
        case "map" if element is not None:
            keys = F.array_sort(F.map_keys(column))
            entries = F.transform(
                keys,
                lambda key: F.concat(_json(key, STRING), F.lit(":"), part(F.try_element_at(column, key), element)),
            )
            return F.concat(F.lit("{"), F.array_join(entries, ","), F.lit("}"))
    return _json(column, kind)


def _encode_windowed(serde: TimeWindowedSerde | SessionWindowedSerde, column: Column, given: Type) -> Column:
    inner = given.element
    if given.name != "windowed" or inner is None:
        raise SerdeError(f"{serde!r} cannot write a column of type {given}")
    parts = [encode_column(serde.inner, column["key"], inner)]
    if isinstance(serde, SessionWindowedSerde):
        parts.append(bytes_of_long(column["end"]))
    return F.concat(*parts, bytes_of_long(column["start"]))
