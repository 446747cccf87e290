"""Connect's logical types: what their schemas are called, and how their values become what lies in a topic."""

from decimal import Decimal
from typing import Any, Final

from ottla.connect.data.dates import MILLIS_PER_DAY
from ottla.connect.data.errors import DataException, NullPointerException
from ottla.connect.data.schema import Schema
from ottla.connect.data.types import Instant, Type, wrapped

DECIMAL_NAME: Final = "org.apache.kafka.connect.data.Decimal"
DATE_NAME: Final = "org.apache.kafka.connect.data.Date"
TIME_NAME: Final = "org.apache.kafka.connect.data.Time"
TIMESTAMP_NAME: Final = "org.apache.kafka.connect.data.Timestamp"
LOGICAL_NAMES: Final = frozenset((DECIMAL_NAME, DATE_NAME, TIME_NAME, TIMESTAMP_NAME))

DATE: Final = Schema(Type.INT32, name=DATE_NAME, version=1)
TIME: Final = Schema(Type.INT32, name=TIME_NAME, version=1)
TIMESTAMP: Final = Schema(Type.INT64, name=TIMESTAMP_NAME, version=1)
OPTIONAL_DATE: Final = DATE.but(optional=True)
OPTIONAL_TIME: Final = TIME.but(optional=True)
OPTIONAL_TIMESTAMP: Final = TIMESTAMP.but(optional=True)


def decimal_schema(scale: int, **parts: Any) -> Schema:
    return Schema(Type.BYTES, name=DECIMAL_NAME, version=1, parameters={"scale": str(scale)}, **parts)


def decimal_scale(schema: Schema) -> int:
    if schema.parameters is None:
        raise NullPointerException("Invalid Decimal schema: it has no parameters, and so no scale.")
    text = schema.parameters.get("scale")
    if text is None:
        raise DataException("Invalid Decimal schema: scale parameter not found.")
    try:
        return int(text)
    except ValueError as error:
        raise DataException("Invalid scale parameter found in Decimal schema: ") from error


def scale_of(value: Decimal) -> int:
    """BigDecimal's scale."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise DataException(f"Decimal value {value} is no number.")
    return -exponent


def decimal_to_bytes(schema: Schema, value: Decimal) -> bytes:
    scale = decimal_scale(schema)
    if scale_of(value) != scale:
        raise DataException(
            "Decimal value has mismatching scale for given Decimal schema. "
            f"Schema has scale {scale}, value has scale {scale_of(value)}."
        )
    unscaled = unscaled_of(value)
    return unscaled.to_bytes((unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1, "big", signed=True)


def unscaled_of(value: Decimal) -> int:
    sign, digits, _ = value.as_tuple()
    whole = int("".join(map(str, digits)))
    return -whole if sign else whole


def decimal_from_bytes(schema: Schema, data: bytes) -> Decimal:
    if not data:
        from ottla.connect.data.errors import NumberFormatException  # noqa: PLC0415 (rare)

        raise NumberFormatException("Zero length BigInteger")
    return decimal_of(int.from_bytes(data, "big", signed=True), decimal_scale(schema))


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """Exact, whatever precision the thread's context has."""
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def date_to_days(schema: Schema, value: Instant) -> int:
    if schema.name != DATE_NAME:
        raise DataException("Requested conversion of Date object but the schema does not match.")
    days, rest = divmod(value, MILLIS_PER_DAY)
    if rest:
        raise DataException("Kafka Connect Date type should not have any time fields set to non-zero values.")
    return wrapped(days, 32)


def date_from_days(schema: Schema, days: int) -> Instant:
    if schema.name != DATE_NAME:
        raise DataException("Requested conversion of Date object but the schema does not match.")
    return Instant(days * MILLIS_PER_DAY)


def time_to_millis(schema: Schema, value: Instant) -> int:
    if schema.name != TIME_NAME:
        raise DataException("Requested conversion of Time object but the schema does not match.")
    if not 0 <= value <= MILLIS_PER_DAY:
        raise DataException("Kafka Connect Time type should not have any date fields set to non-zero values.")
    return int(value)


def time_from_millis(schema: Schema, millis: int) -> Instant:
    if schema.name != TIME_NAME:
        raise DataException("Requested conversion of Date object but the schema does not match.")
    if not 0 <= millis <= MILLIS_PER_DAY:
        raise DataException("Time values must use number of milliseconds greater than 0 and less than 86400000")
    return Instant(millis)


def timestamp_to_millis(schema: Schema, value: Instant) -> int:
    if schema.name != TIMESTAMP_NAME:
        raise DataException("Requested conversion of Timestamp object but the schema does not match.")
    return int(value)


def timestamp_from_millis(schema: Schema, millis: int) -> Instant:
    if schema.name != TIMESTAMP_NAME:
        raise DataException("Requested conversion of Timestamp object but the schema does not match.")
    return Instant(millis)
