"""Bytes: as text in several encodings, and as numbers."""

import base64
import re
import struct
from collections.abc import Callable
from typing import Any, Final, Literal

from ottla.serdes.types import BINARY, DOUBLE, INT, LONG, STRING
from ottla.streams.expressions.bound import Bound, Spark
from ottla.streams.expressions.functions.declare import binary, family, takes, text
from ottla.streams.expressions.limits import within

__all__ = [
    "double_from_bytes",
    "encode",
    "from_bytes",
    "int_from_bytes",
    "long_from_bytes",
    "to_bytes",
    "uuid_from_bytes",
]
declare: Final = family("bytes")

_HEX: Final = re.compile(r"(?:0[xX]([0-9a-fA-F]*)|[xX]'([0-9a-fA-F]*)'|([0-9a-fA-F]*))")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def _of_hex(given: str) -> bytes:
    found = _HEX.fullmatch(given)
    if found is None:
        raise ValueError("it has other characters than hexadecimal digits")
    return bytes.fromhex(next((part for part in found.groups() if part is not None), ""))


def _of_base64(given: str) -> bytes:
    if not _BASE64.fullmatch(given):
        raise ValueError("it has other characters than those of base64")
    return base64.b64decode(given, validate=True)


_READ: Final[dict[str, Callable[[str], bytes]]] = {
    "hex": _of_hex,
    "utf8": str.encode,
    "ascii": lambda given: given.encode("ascii"),
    "base64": _of_base64,
}
_WRITE: Final[dict[str, Callable[[bytes], str]]] = {
    "hex": bytes.hex,
    "utf8": bytes.decode,
    "ascii": lambda given: given.decode("ascii"),
    "base64": lambda given: base64.b64encode(given).decode(),
}


def _encoding(node: Bound, place: int) -> str | None:
    """The name of an encoding, if it is the same for all records."""
    argument = node.args[place]
    return argument.options[0].lower() if argument.function == "lit" and argument.options[0] is not None else None


def _written(given: bytes, encoding: str) -> str:
    within(2 * len(given))
    return _WRITE[encoding.lower()](given)


def _to_bytes_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    return args[0].cast("binary")


def _from_bytes_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    F = spark.F
    match _encoding(node, 1):
        case "hex":
            return F.lower(F.hex(args[0]))
        case "base64":
            return F.replace(F.base64(args[0]), F.lit("\r\n"), F.lit(""))  # Spark begins a line after 76 characters
    return F.try_validate_utf8(args[0].cast("string"))


to_bytes: Final = declare(
    "to_bytes",
    "text, encoding",
    takes(text, gives=BINARY),
    lambda given, encoding: _READ[encoding.lower()](given),
    typed_column=_to_bytes_column,
    no_column=lambda node: None if _encoding(node, 1) == "utf8" else "Spark reads bad hex and base64 in its own way",
    fails=True,
    about="The bytes of a text in `utf8`, `ascii`, `hex` (with or without 0x or X'…') or `base64`; null if it is none.",
)
from_bytes: Final = declare(
    "from_bytes",
    "bytes, encoding",
    takes(binary, text, gives=STRING),
    _written,
    typed_column=_from_bytes_column,
    no_column=lambda node: (
        None if _encoding(node, 1) in {"utf8", "hex", "base64"} else "Spark has no column for the encoding"
    ),
    fails=True,
    about="Bytes as `utf8`, `ascii`, `hex` or `base64`; null if they are none.",
)
encode: Final = declare(
    "encode",
    "text, from_encoding, to_encoding",
    takes(text, gives=STRING),
    lambda given, source, target: _written(_READ[source.lower()](given), target),
    fails=True,
    about="A text in one of `utf8`, `ascii`, `hex`, `base64`, written in another.",
)


# ---- numbers

_Order = Literal["big", "little"]


def _order(name: str) -> _Order:
    match name.upper():
        case "BIG_ENDIAN":
            return "big"
        case "LITTLE_ENDIAN":
            return "little"
    raise ValueError(f"{name!r} is neither BIG_ENDIAN nor LITTLE_ENDIAN")


def _integer(width: int) -> Callable[[bytes, str], int | None]:
    def read(given: bytes, order: str) -> int | None:
        return int.from_bytes(given, _order(order), signed=True) if len(given) == width else None

    return read


def _double(given: bytes, order: str) -> float | None:
    if len(given) != 8:
        return None
    made: float = struct.unpack(">d" if _order(order) == "big" else "<d", given)[0]
    return made


int_from_bytes: Final = declare(
    "int_from_bytes",
    "bytes, order='BIG_ENDIAN'",
    takes(binary, text, gives=INT),
    _integer(4),
    fails=True,
    about="An int of 4 bytes, `BIG_ENDIAN` or `LITTLE_ENDIAN`; null if there are not just 4.",
)
long_from_bytes: Final = declare(
    "long_from_bytes",
    "bytes, order='BIG_ENDIAN'",
    takes(binary, text, gives=LONG),
    _integer(8),
    fails=True,
    about="A long of 8 bytes. ksqlDB's BIGINT_FROM_BYTES.",
)
double_from_bytes: Final = declare(
    "double_from_bytes",
    "bytes, order='BIG_ENDIAN'",
    takes(binary, text, gives=DOUBLE),
    _double,
    fails=True,
    about="A double of 8 bytes.",
)


def _uuid(given: bytes) -> str | None:
    digits = given.hex()
    if len(given) != 16:
        return None
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _uuid_column(F: Any, given: Any) -> Any:
    digits = F.lower(F.hex(given))
    parts = [F.substring(digits, *part) for part in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))]
    return F.when(F.length(given) == 16, F.concat_ws("-", *parts))


uuid_from_bytes: Final = declare(
    "uuid_from_bytes",
    "bytes",
    takes(binary, gives=STRING),
    _uuid,
    column=_uuid_column,
    about="16 bytes as a UUID; null if there are not just 16.",
)
