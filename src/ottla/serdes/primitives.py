"""Strings, bytes, numbers and booleans, byte for byte as Java's Serdes write them."""

import math
import struct
from typing import Final
from uuid import UUID

from ottla.serdes.base import Serde
from ottla.serdes.types import BINARY, BOOLEAN, DOUBLE, INT, LONG, STRING


class StringSerde(Serde[str]):
    """UTF-8. As in Java, bytes that are no UTF-8 are read as U+FFFD and are no error."""

    name = "string"
    type = STRING

    def encode(self, value: str) -> bytes:
        if not isinstance(value, str):
            self.not_written("a str", value)
        try:
            return value.encode()
        except UnicodeEncodeError:
            self.not_written("text without lone surrogates", value)

    def decode(self, data: bytes) -> str:
        return str(data, "utf-8", "replace")


class BytesSerde(Serde[bytes]):
    """As they are."""

    name = "bytes"
    type = BINARY

    def encode(self, value: bytes) -> bytes:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            self.not_written("bytes", value)
        return bytes(value)

    def decode(self, data: bytes) -> bytes:
        return bytes(data)


class _IntegerSerde(Serde[int]):
    """Big-endian, of fixed width."""

    form: struct.Struct

    def encode(self, value: int) -> bytes:
        if type(value) is not int and (not isinstance(value, int) or isinstance(value, bool)):
            self.not_written("an int", value)
        try:
            return self.form.pack(value)
        except struct.error:
            self.not_written(f"a number of at most {self.form.size} bytes", value)

    def decode(self, data: bytes) -> int:
        try:
            found: int = self.form.unpack(data)[0]
        except struct.error:
            self.not_read(f"{self.form.size} bytes", data)
        return found


class ShortSerde(_IntegerSerde):
    name = "short"
    type = INT
    form = struct.Struct(">h")


class IntSerde(_IntegerSerde):
    name = "int"
    type = INT
    form = struct.Struct(">i")


class LongSerde(_IntegerSerde):
    name = "long"
    type = LONG
    form = struct.Struct(">q")


class DoubleSerde(Serde[float]):
    """IEEE 754, big-endian. Every NaN is written as Java's one."""

    name = "double"
    type = DOUBLE
    _LAYOUT: Final = struct.Struct(">d")
    _NAN: Final = bytes.fromhex("7ff8000000000000")

    def encode(self, value: float) -> bytes:
        if not isinstance(value, (float, int)) or isinstance(value, bool):
            self.not_written("a float", value)
        return self._NAN if math.isnan(value) else self._LAYOUT.pack(value)

    def decode(self, data: bytes) -> float:
        if len(data) != 8:
            self.not_read("8 bytes", data)
        number: float = self._LAYOUT.unpack(data)[0]
        return number


class FloatSerde(Serde[float]):
    """IEEE 754 of single precision, big-endian. Every NaN is written as Java's one."""

    name = "float"
    type = DOUBLE
    _LAYOUT: Final = struct.Struct(">f")
    _NAN: Final = bytes.fromhex("7fc00000")

    def encode(self, value: float) -> bytes:
        if not isinstance(value, (float, int)) or isinstance(value, bool):
            self.not_written("a float", value)
        try:
            return self._NAN if math.isnan(value) else self._LAYOUT.pack(value)
        except OverflowError:
            self.not_written("a number of single precision", value)

    def decode(self, data: bytes) -> float:
        if len(data) != 4:
            self.not_read("4 bytes", data)
        number: float = self._LAYOUT.unpack(data)[0]
        return number


class UUIDSerde(Serde[UUID]):
    """As text, 36 characters."""

    name = "uuid"

    def encode(self, value: UUID) -> bytes:
        if not isinstance(value, UUID):
            self.not_written("a UUID", value)
        return str(value).encode()

    def decode(self, data: bytes) -> UUID:
        try:
            return UUID(bytes(data).decode())
        except ValueError:
            self.not_read("a UUID as text", data)


class BooleanSerde(Serde[bool]):
    """One byte, 0 or 1."""

    name = "boolean"
    type = BOOLEAN

    def encode(self, value: bool) -> bytes:
        if not isinstance(value, bool):
            self.not_written("a bool", value)
        return b"\1" if value else b"\0"

    def decode(self, data: bytes) -> bool:
        if data not in (b"\0", b"\1"):
            self.not_read("one byte, 0 or 1,", data)
        return bytes(data) == b"\1"
