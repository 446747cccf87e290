"""Serdes as Spark columns: bytes to values and back without leaving the JVM.

Reading is permissive: `decode_column` gives the value and, beside it, what is wrong with the bytes (null if nothing
is), so that a bad record can go to the dead letter topic and the query goes on. `decoded` gives both in one struct, for
half the price where there is something to parse.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

from ottla.serdes import primitives
from ottla.serdes.base import Serde, SerdeError
from ottla.serdes.json import JsonSerde
from ottla.serdes.types import ANY, Type
from ottla.streams.run.expression_columns import spark_type
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
    if isinstance(serde, (TimeWindowedSerde, SessionWindowedSerde)):
        return is_native(serde.inner)
    return type(serde) in _NATIVE


_NATIVE: Final = (
    primitives.StringSerde,
    primitives.BytesSerde,
    primitives.IntSerde,
    primitives.LongSerde,
    primitives.DoubleSerde,
    primitives.BooleanSerde,
    JsonSerde,
)


# ---- reading


def decoded(serde: Serde[Any], column: Column) -> Column:
    """Both at once, as a struct of value and error. Select it, and take it apart in the select after: then the bytes
    are parsed one time, however many filters and fields follow."""
    if isinstance(serde, JsonSerde) and serde.type != ANY:
        return _computed_once(_decoded_json(serde, column))
    value, error = decode_column(serde, column)
    return _computed_once(F.struct(value.alias("value"), error.alias("error")))


def _decoded_json(serde: JsonSerde, column: Column) -> Column:
    text = _wrapped(column)

    def both(parsed: Column) -> Column:
        bad = column.isNotNull() & _is_broken(text, parsed)
        error = F.when(bad, _json_complaint(serde, column))
        return F.struct(_unless_broken(parsed).alias("value"), error.alias("error"))

    return _through_variable(_parsed(serde, column), both)


def decode_column(serde: Serde[Any], column: Column) -> Decoded:
    """Of a binary column, null where it is null."""
    match serde:
        case primitives.StringSerde():
            return Decoded(F.make_valid_utf8(column.cast("string")), _no_error())
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
        case TimeWindowedSerde():
            return _decode_time_windowed(serde, column)
        case SessionWindowedSerde():
            return _decode_session_windowed(serde, column)
    raise TypeError(f"Spark cannot read {serde!r} by itself")


def _no_error() -> Column:
    return F.lit(None).cast("string")


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
    parsed = _parsed(serde, column)
    bad = column.isNotNull() & _is_broken(_wrapped(column), parsed)
    return Decoded(
        _computed_once(_through_variable(parsed, _unless_broken)), F.when(bad, _json_complaint(serde, column))
    )


def _parsed(serde: JsonSerde, column: Column) -> Column:
    schema = f"v {spark_type(serde.type)}, {_BROKEN} string"
    strictly = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BROKEN, "allowSingleQuotes": "false"}
    return F.from_json(_wrapped(column), schema, strictly)


def _unless_broken(parsed: Column) -> Column:
    return F.when(parsed[_BROKEN].isNull(), parsed["v"])


def _is_broken(text: Column, parsed: Column) -> Column:
    return text.isNull() | parsed[_BROKEN].isNotNull()


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


def encode_column(serde: Serde[Any], column: Column, kind: Type | None = None) -> Column:
    """A column of type `kind` (the serde's own if not given) as bytes. SerdeError if the serde cannot write it."""
    given = serde.type if kind is None else kind
    match serde:
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
            return F.to_json(fitted, _JSON_FORM).cast("binary")
    return fitted


def _fitted(serde: Serde[Any], column: Column, given: Type, wanted: Type) -> Column:
    """What is of a narrower number type, or has no type, is converted; all else has to be right."""
    if given == wanted:
        return column
    if given.name == "null":
        return F.lit(None).cast(spark_type(wanted))
    if given == ANY and wanted.name not in {"struct", "array", "binary"}:
        return F.try_variant_get(column, "$", spark_type(wanted))
    if (given.name, wanted.name) in {("int", "long"), ("int", "double"), ("long", "double")}:
        return column.cast(spark_type(wanted))
    if given.name == wanted.name == "struct" and dict(given.fields).keys() <= dict(wanted.fields).keys():
        return _fitted_struct(serde, column, given, wanted)
    raise SerdeError(f"{serde!r} cannot write a column of type {given}; cast it, or name another serde")


def _fitted_struct(serde: Serde[Any], column: Column, given: Type, wanted: Type) -> Column:
    parts = []
    for name, part in wanted.fields:
        held = given.field(name)
        missing = F.lit(None).cast(spark_type(part))
        parts.append((missing if held is None else _fitted(serde, column[name], held, part)).alias(name))
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
    if kind.name in {"struct", "array"}:
        return F.to_json(_sorted(column, kind), _JSON_FORM)
    if kind.name in {"windowed", "binary"}:
        raise SerdeError(f"Serdes.json cannot write a column of type {kind}; cast it, or name another serde")
    listed = F.to_json(F.array(column))
    return F.when(column.isNotNull(), listed.substr(F.lit(2), F.length(listed) - 2))


def _sorted(column: Column, kind: Type) -> Column:
    if kind.name == "array" and kind.element is not None and _has_structs(kind.element):
        element = kind.element
        return F.transform(column, lambda each: _sorted(each, element))
    if kind.name == "struct":
        fields = sorted(kind.fields)
        if fields == list(kind.fields) and not any(_has_structs(part) for _, part in fields):
            return column
        return F.when(column.isNotNull(), F.struct(*[_sorted(column[name], part).alias(name) for name, part in fields]))
    return column


def _has_structs(kind: Type) -> bool:
    return kind.name == "struct" or (kind.element is not None and _has_structs(kind.element))


def _encode_windowed(serde: TimeWindowedSerde | SessionWindowedSerde, column: Column, given: Type) -> Column:
    inner = given.element
    if given.name != "windowed" or inner is None:
        raise SerdeError(f"{serde!r} cannot write a column of type {given}")
    parts = [encode_column(serde.inner, column["key"], inner)]
    if isinstance(serde, SessionWindowedSerde):
        parts.append(bytes_of_long(column["end"]))
    return F.concat(*parts, bytes_of_long(column["start"]))
