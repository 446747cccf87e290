"""What a column of a type becomes: its schema, and how the server's text of a value is read and written as JSON.

Debezium's schemas and values. Types are told by their names in pg_type; domains were followed to what they stand for.
"""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ottla.connect.connectors.postgresql.config import Values
from ottla.connect.connectors.postgresql.texts import Array, array_of, hstore_of, interval_of
from ottla.connect.converters.json_texts import quoted
from ottla.connect.converters.json_writing import Writers
from ottla.connect.data.java_text import as_float32
from ottla.connect.data.logical import DATE, TIME, TIMESTAMP, decimal_schema
from ottla.connect.data.schema import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    Schema,
    array_schema,
    map_schema,
    struct_schema,
)
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Instant, Type

Read = Callable[[str], Any]
Write = Callable[[str], str]

DAY_MICROS: Final = 86_400_000_000
_EPOCH: Final = date(1970, 1, 1).toordinal()
_AVERAGE_MONTH: Final = 365.25 / 12.0
LARGEST_MICROS: Final = 9_223_372_036_825_200_000
"""What infinity is as a timestamp in Debezium: the driver's largest, in microseconds."""
SMALLEST_MICROS: Final = -9_223_372_036_832_400_000


class TypeName(NamedTuple):
    """Of a column, as the catalog has it."""

    name: str
    """In pg_type: int4, varchar, _text."""
    modifier: int = -1
    labels: tuple[str, ...] = ()
    """Of an enum."""
    element: TypeName | None = None
    """Of an array."""


class Kind(NamedTuple):
    """What values of a type become."""

    schema: Schema
    """Required, without a default."""
    read: Read
    """The server's text as a value of the schema. Raises ValueError."""
    zero: Any
    """What stands for null in a column that must not be null."""
    write: Write | None = None
    """The server's text as JSON, where that is quicker than by way of the value."""
    placeholder: Any = None
    """A large value that is not there; None if values are never large."""


def kind_of(named: TypeName, values: Values) -> Kind | None:
    """None: of a type that is left out."""
    found = _of_name(named, values)
    if found is not None:
        return found
    if named.labels:
        schema = Schema(
            Type.STRING, name="io.debezium.data.Enum", version=1, parameters={"allowed": ",".join(named.labels)}
        )
        return Kind(schema, str, "", quoted, values.unavailable_value_placeholder)
    if named.element is not None:
        return _array(named.element, values)
    return _bytes(values, str.encode) if values.include_unknown_datatypes else None


def _of_name(named: TypeName, values: Values) -> Kind | None:
    plain = _PLAIN.get(named.name)
    if plain is not None:
        # Texts may be large.
        return plain._replace(placeholder=values.unavailable_value_placeholder) if plain.zero == "" else plain
    made = _MADE.get(named.name)
    return None if made is None else made(named, values)


# ---- numbers


def _bare(text: str) -> str:
    return text


def _float(text: str) -> float:
    return float(text)


def float_json(text: str) -> str:
    """As Java writes it. Between a thousandth and ten millions both write the fewest digits, the server no point."""
    whole, point, part = text.partition(".")
    if len(whole) <= 7 and whole.lstrip("-").isdigit() and not (part.startswith("00") and whole in ("0", "-0")):
        if part.isdigit():
            return text
        if not point:
            return f"{text}.0"
    return _write_float(float(text))


_write_float: Final = Writers(decimals_as_numbers=False, replace_null=True, cache_size=10).of(FLOAT64)


def _float4(text: str) -> float:
    return as_float32(float(text))


def _numeric(named: TypeName, values: Values) -> Kind:
    mode = values.decimal_handling_mode
    if mode == "double":
        return Kind(FLOAT64, _float, 0.0)
    if mode == "string":
        return Kind(STRING, _plain_decimal, "0", lambda text: f'"{_plain_decimal(text)}"')
    if named.modifier < 4:
        return Kind(VARIABLE_DECIMAL, _variable_decimal, _variable_decimal("0"))
    scale = _scale(named.modifier)
    return Kind(decimal_schema_with_precision(named.modifier, scale), _scaled(scale), _scaled(scale)("0"))


VARIABLE_DECIMAL: Final = struct_schema(
    {"scale": INT32, "value": BYTES}, name="io.debezium.data.VariableScaleDecimal", version=1,
    doc="Variable scaled decimal",
)  # fmt: skip


def decimal_schema_with_precision(modifier: int, scale: int) -> Schema:
    made = decimal_schema(scale)
    precision = ((modifier - 4) >> 16) & 0xFFFF
    return made.but(parameters={"scale": str(scale), "connect.decimal.precision": str(precision)})


def _scale(modifier: int) -> int:
    """Eleven bits, signed since PostgreSQL 15."""
    return (((modifier - 4) & 0x7FF) ^ 1024) - 1024


def _plain_decimal(text: str) -> str:
    return {"NaN": "NAN", "Infinity": "POSITIVE_INFINITY", "-Infinity": "NEGATIVE_INFINITY"}.get(text, text)


def _finite(text: str) -> Decimal:
    found = Decimal(text)
    if not found.is_finite():
        raise ValueError(f"{text} is no number that decimal.handling.mode=precise has: set it to double or string")
    return found


def _scaled(scale: int) -> Callable[[str], Decimal]:
    unit = Decimal(1).scaleb(-scale)

    def read(text: str) -> Decimal:
        with localcontext() as context:
            context.prec = max(28, len(text) + abs(scale) + 2)
            return _finite(text).quantize(unit, ROUND_HALF_UP)

    return read


def _variable_decimal(text: str) -> Struct:
    found = _finite(text)
    sign, digits, exponent = found.as_tuple()
    assert isinstance(exponent, int)
    unscaled, scale = int("".join(map(str, digits)) or "0"), -exponent
    if scale < 0:
        unscaled, scale = unscaled * 10**-scale, 0
    while scale > 0 and unscaled % 10 == 0:
        unscaled, scale = unscaled // 10, scale - 1
    return Struct.of(VARIABLE_DECIMAL, [scale, _two_complement(-unscaled if sign else unscaled)])


def _two_complement(number: int) -> bytes:
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


_NOT_MONEY: Final = re.compile(r"[^0-9.\-()]")


def _money(_: TypeName, values: Values) -> Kind:
    digits = values.money_fraction_digits
    exact = _scaled(digits)

    def read(text: str) -> Decimal:
        bare = _NOT_MONEY.sub("", text)
        return exact(f"-{bare.strip('()-')}" if bare[:1] in "(-" else bare)

    if values.decimal_handling_mode == "double":
        return Kind(FLOAT64, lambda text: float(read(text)), 0.0)
    if values.decimal_handling_mode == "string":
        return Kind(STRING, lambda text: str(read(text)), str(exact("0")))
    return Kind(decimal_schema(digits), read, exact("0"))


# ---- dates and times


def days_of(text: str) -> int:
    """Since 1970, of `2024-02-29`, with years of any length and `BC`."""
    if text == "infinity":
        return 2_147_483_647
    if text == "-infinity":
        return -2_147_483_648
    if len(text) == 10:
        return date(int(text[:4]), int(text[5:7]), int(text[8:10])).toordinal() - _EPOCH
    bare = text.removesuffix(" BC")
    year_text, month, day = bare.rsplit("-", 2)
    year = int(year_text) if bare == text else 1 - int(year_text)
    shift = (year - 1) // 400 if not 1 <= year <= 9999 else 0
    return date(year - 400 * shift, int(month), int(day)).toordinal() + shift * 146_097 - _EPOCH


def time_micros(text: str) -> int:
    """Of `12:34:56.789`."""
    micros = (int(text[:2]) * 3600 + int(text[3:5]) * 60 + int(text[6:8])) * 1_000_000
    return micros + int(text[9:].ljust(6, "0")) if len(text) > 8 else micros


@lru_cache(10_000)
def _whole_seconds(text: str) -> int:
    """Rows of a transaction often have the same."""
    return days_of(text[:10]) * DAY_MICROS + time_micros(text[11:19])


def timestamp_micros(text: str) -> int:
    """Of `2024-02-29 12:34:56.789`, without a zone."""
    if text[10:11] == " " and text[-2:] != "BC":  # all but always
        rest = text[20:]
        return _whole_seconds(text[:19]) + (int(rest.ljust(6, "0")) if rest else 0)
    if text == "infinity":
        return LARGEST_MICROS
    if text == "-infinity":
        return SMALLEST_MICROS
    day, _, rest = text.partition(" ")
    if rest.endswith(" BC"):
        return days_of(f"{day} BC") * DAY_MICROS + time_micros(rest[:-3])
    return days_of(day) * DAY_MICROS + time_micros(rest)


def _fraction(micros: int) -> str:
    return f".{micros:06}".rstrip("0") if micros else ""


def _clock_text(micros: int) -> str:
    seconds, rest = divmod(micros, 1_000_000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{_fraction(rest)}"


def _day_text(days: int) -> str:
    """As Java writes it: years behind 9999 with a sign, those before 0 too."""
    if 1 - _EPOCH <= days <= date.max.toordinal() - _EPOCH:
        return (date(1970, 1, 1) + timedelta(days)).isoformat()
    shift = (days + _EPOCH - 1) // 146_097
    found = date.fromordinal(days + _EPOCH - shift * 146_097)
    year = found.year + 400 * shift
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04}-{found.month:02}-{found.day:02}"


_OFFSET: Final = re.compile(r"([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?$")


def _offset_micros(found: re.Match[str]) -> int:
    sign, hours, minutes, seconds = found.groups()
    whole = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    return (whole if sign == "+" else -whole) * 1_000_000


def zoned_timestamp(digits: int) -> Callable[[str], str]:
    """In UTC, with so many digits of a fraction: `2024-02-29T12:34:56.789000Z`; 0: as many as there are."""

    def read(text: str) -> str:
        if text[-3:] == "+00" and text[10:11] == " ":  # as a session in UTC has them
            return f"{text[:10]}T{_clock(text[11:-3], digits)}Z"
        if text in ("infinity", "-infinity"):
            return text
        bare = text.removesuffix(" BC")
        found = _OFFSET.search(bare)
        if found is None:
            raise ValueError(f"{text!r} has no zone")
        local = timestamp_micros(bare[: found.start()] + (" BC" if bare != text else ""))
        days, rest = divmod(local - _offset_micros(found), DAY_MICROS)
        return f"{_day_text(days)}T{_clock(_clock_text(rest), digits)}Z"

    return read


def _clock(clock: str, digits: int) -> str:
    if not digits:
        return clock
    return (f"{clock}." if len(clock) == 8 else clock).ljust(9 + digits, "0")


_AS_LONG_AS_IT_IS: Final = zoned_timestamp(0)


def zoned_time(text: str) -> str:
    """In UTC: `12:34:56.789Z`."""
    found = _OFFSET.search(text)
    if found is None:
        raise ValueError(f"{text!r} has no zone")
    micros = (time_micros(text[: found.start()]) - _offset_micros(found)) % DAY_MICROS
    return f"{_clock_text(micros)}Z"


def _named(type_: Type, name: str) -> Schema:
    return Schema(type_, name=name, version=1)


def _number_kind(schema: Schema, read: Callable[[str], int], as_instant: bool = False) -> Kind:
    if as_instant:
        return Kind(schema, lambda text: Instant(read(text)), Instant(0), lambda text: str(read(text)))
    return Kind(schema, read, 0, lambda text: str(read(text)))


def _date(_: TypeName, values: Values) -> Kind:
    mode = values.time_precision_mode
    if mode == "isostring":
        return Kind(
            _named(Type.STRING, "io.debezium.time.IsoDate"), lambda text: f"{_day_text(days_of(text))}Z", "1970-01-01Z"
        )
    if mode == "connect":
        return Kind(DATE, lambda text: Instant(days_of(text) * 86_400_000), Instant(0), lambda text: str(days_of(text)))
    return _number_kind(_named(Type.INT32, "io.debezium.time.Date"), days_of)


def _precision(named: TypeName) -> int:
    return 6 if named.modifier < 0 else named.modifier


def _time(named: TypeName, values: Values) -> Kind:
    mode = values.time_precision_mode
    if mode == "isostring":
        return Kind(
            _named(Type.STRING, "io.debezium.time.IsoTime"),
            lambda text: f"{_clock_text(time_micros(text))}Z",
            "00:00:00Z",
        )
    if mode == "connect":
        return _number_kind(TIME, lambda text: time_micros(text) // 1000, as_instant=True)
    if mode == "nanoseconds":
        return _number_kind(_named(Type.INT64, "io.debezium.time.NanoTime"), lambda text: time_micros(text) * 1000)
    if mode == "adaptive" and _precision(named) <= 3:
        return _number_kind(_named(Type.INT32, "io.debezium.time.Time"), lambda text: time_micros(text) // 1000)
    return _number_kind(_named(Type.INT64, "io.debezium.time.MicroTime"), time_micros)


def _iso_timestamp(text: str) -> str:
    bare = text.removesuffix(" BC")
    return _AS_LONG_AS_IT_IS(f"{bare}+00" if bare == text else f"{bare}+00 BC")


def _timestamptz(named: TypeName, _: Values) -> Kind:
    read = zoned_timestamp(_precision(named))
    schema = _named(Type.STRING, "io.debezium.time.ZonedTimestamp")
    return Kind(schema, read, "1970-01-01T00:00:00.000000Z", lambda text: f'"{read(text)}"')


def _timestamp(named: TypeName, values: Values) -> Kind:
    mode = values.time_precision_mode
    if mode == "isostring":
        return Kind(
            _named(Type.STRING, "io.debezium.time.IsoTimestamp"),
            _iso_timestamp,
            "1970-01-01T00:00:00Z",
        )
    if mode == "connect":
        return _number_kind(TIMESTAMP, lambda text: timestamp_micros(text) // 1000, as_instant=True)
    if mode == "nanoseconds":
        return _number_kind(
            _named(Type.INT64, "io.debezium.time.NanoTimestamp"), lambda text: timestamp_micros(text) * 1000
        )
    if mode != "microseconds" and _precision(named) <= 3:
        return _number_kind(
            _named(Type.INT64, "io.debezium.time.Timestamp"), lambda text: timestamp_micros(text) // 1000
        )
    return _number_kind(_named(Type.INT64, "io.debezium.time.MicroTimestamp"), timestamp_micros)


def _interval(_: TypeName, values: Values) -> Kind:
    if values.interval_handling_mode == "string":
        schema = _named(Type.STRING, "io.debezium.time.Interval")
        return Kind(schema, lambda text: interval_of(text).iso_text(), "P0Y0M0DT0H0M0S")
    return _number_kind(
        _named(Type.INT64, "io.debezium.time.MicroDuration"), lambda text: interval_of(text).micros(_AVERAGE_MONTH)
    )


# ---- texts, bytes and what is made of them


def _bytes(values: Values, given: Callable[[str], bytes]) -> Kind:
    placeholder = values.unavailable_value_placeholder
    match values.binary_handling_mode:
        case "base64":
            return Kind(STRING, lambda text: b64encode(given(text)).decode(), "", None, _b64(placeholder))
        case "base64-url-safe":
            return Kind(
                STRING,
                lambda text: urlsafe_b64encode(given(text)).decode(),
                "",
                None,
                urlsafe_b64encode(placeholder.encode()).decode(),
            )
        case "hex":
            return Kind(STRING, lambda text: given(text).hex(), "", None, placeholder)
    return Kind(BYTES, given, b"", lambda text: f'"{b64encode(given(text)).decode()}"', placeholder.encode())


def _b64(text: str) -> str:
    return b64encode(text.encode()).decode()


def bytea_of(text: str) -> bytes:
    """Of `\\x00ff`, as the connection asks for."""
    if not text.startswith("\\x"):
        raise ValueError("bytea_output is not hex")
    return bytes.fromhex(text[2:])


def _bits(named: TypeName, _: Values) -> Kind:
    length = named.modifier
    if named.name == "bit" and length in (-1, 1):
        return Kind(BOOLEAN, lambda text: text == "1", False)
    most = 2_147_483_647 if length < 0 else length
    if most == 1:
        return Kind(BOOLEAN, lambda text: text == "1", False)
    schema = Schema(Type.BYTES, name="io.debezium.data.Bits", version=1, parameters={"length": str(most)})
    return Kind(schema, _bit_bytes, b"")


def _bit_bytes(text: str) -> bytes:
    """The last bit first, and no zeros at the end."""
    number = int(text or "0", 2)
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


POINT: Final = struct_schema(
    {
        "x": FLOAT64,
        "y": FLOAT64,
        "wkb": Schema(Type.BYTES, optional=True),
        "srid": Schema(Type.INT32, optional=True),
    },
    name="io.debezium.data.geometry.Point",
    version=1,
    doc="Geometry (POINT)",
)


def _point(text: str) -> Struct:
    import struct  # noqa: PLC0415  few have points

    x, y = (float(each) for each in text.strip("()").split(","))
    return Struct.of(POINT, [x, y, struct.pack("<BIdd", 1, 1, x, y), None])


def _hstore(_: TypeName, values: Values) -> Kind:
    placeholder = values.unavailable_value_placeholder
    if values.hstore_handling_mode == "map":
        return Kind(map_schema(STRING, OPTIONAL_STRING), hstore_of, {}, None, {placeholder: placeholder})
    return Kind(_named(Type.STRING, "io.debezium.data.Json"), _hstore_json, "{}", None, placeholder)


def _hstore_json(text: str) -> str:
    pairs = hstore_of(text).items()
    return "{" + ",".join(f"{quoted(key)}:{'null' if each is None else quoted(each)}" for key, each in pairs) + "}"


def _array(element: TypeName, values: Values) -> Kind | None:
    inner = kind_of(element, values)
    if inner is None or element.name in _NO_ARRAYS:
        return None
    schema = array_schema(inner.schema if element.labels else inner.schema.but(optional=True))
    read = inner.read

    def elements(found: Array) -> list[Any]:
        return [elements(each) if isinstance(each, list) else None if each is None else read(each) for each in found]

    placeholder = [inner.placeholder] if inner.placeholder is not None else []
    return Kind(schema, lambda text: elements(array_of(text)), [], None, placeholder)


_NO_ARRAYS: Final = frozenset(("money", "name", "interval", "varbit", "xml", "point", "refcursor", "bit"))
"""Arrays of these Debezium leaves out."""
_TEXT: Final = Kind(STRING, str, "", quoted)


def _text_named(name: str) -> Kind:
    return Kind(_named(Type.STRING, name), str, "", quoted)


_PLAIN: Final[dict[str, Kind]] = {
    "bool": Kind(BOOLEAN, lambda text: text == "t", False, lambda text: "true" if text == "t" else "false"),
    "int2": Kind(INT16, int, 0, _bare),
    "int4": Kind(INT32, int, 0, _bare),
    "int8": Kind(INT64, int, 0, _bare),
    "oid": Kind(INT64, int, 0, _bare),
    "float4": Kind(FLOAT32, _float4, 0.0),
    "float8": Kind(FLOAT64, _float, 0.0, float_json),
    **dict.fromkeys(
        (
            "text", "varchar", "bpchar", "char", "name", "citext", "inet", "cidr", "macaddr", "macaddr8", "int4range",
            "int8range", "numrange", "tsrange", "tstzrange", "daterange", "int4multirange", "int8multirange",
            "nummultirange", "tsmultirange", "tstzmultirange", "datemultirange", "isbn",
        ),
        _TEXT,
    ),
    "uuid": Kind(
        _named(Type.STRING, "io.debezium.data.Uuid"), str, "00000000-0000-0000-0000-000000000000",
        lambda text: f'"{text}"',
    ),
    "json": _text_named("io.debezium.data.Json"),
    "jsonb": _text_named("io.debezium.data.Json"),
    "xml": _text_named("io.debezium.data.Xml"),
    "ltree": _text_named("io.debezium.data.Ltree"),
    "tsvector": _text_named("io.debezium.data.TsVector"),
    "timetz": Kind(_named(Type.STRING, "io.debezium.time.ZonedTime"), zoned_time, "00:00:00Z"),
    "point": Kind(POINT, _point, None),
}  # fmt: skip
_MADE: Final[dict[str, Callable[[TypeName, Values], Kind]]] = {
    "numeric": _numeric,
    "money": _money,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
    "interval": _interval,
    "bytea": lambda _, values: _bytes(values, bytea_of),
    "bit": _bits,
    "varbit": _bits,
    "hstore": _hstore,
}

WRITERS: Final = Writers(decimals_as_numbers=False, replace_null=True, cache_size=1000)


def json_writer(kind: Kind) -> Write:
    """The server's text as a JsonConverter would write its value."""
    if kind.write is not None:
        return kind.write
    write, read = WRITERS.of(kind.schema), kind.read
    return lambda text: write(read(text))
