"""What every generated codec stands on: errors, base classes, and the slow paths of variable-length values.

The generated functions keep the common case inline (one-byte varints, short strings) and call in here for the rest, so
this file is where long varints, tag sections and refusals live. It knows no message.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NoReturn, Self, TypeVar

Buffer = bytes | bytearray | memoryview
Part = Any
"""What an encoder appends: bytes, or for a `records` field the very object that was given, if it has a length."""
Records = Any
"""memoryview when decoded; to encode, anything bytes-like or anything with a length (see `Message.encode_chunks`)."""
Decoder = Callable[[Buffer, int], tuple[Any, int]]
Encoder = Callable[[Any, list[Part]], None]

MAX_STRING: Final = 0x7FFF
"""Kafka's limit in both encodings, although a compact length could say more."""


class DecodeError(ValueError):
    """Bytes that are not the message they claim to be: cut short, a lying length, bad UTF-8, null where none may be."""


class EncodeError(ValueError):
    """A value that the asked version of a message cannot carry."""


class Struct:
    """A part of a message. Plain slots; compares and prints by field."""

    __slots__ = ()
    FIELDS: ClassVar[tuple[str, ...]] = ()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Struct) or self.FIELDS is not other.FIELDS:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.FIELDS)
        return f"{type(self).__qualname__}({fields})"


class Message(Struct):
    """A whole message, for all of its versions.

    DECODERS[version](buf, pos) gives (message, end); ENCODERS[version](message, parts) appends to a list. Both are flat
    functions for the hot path; `decode` and `encode` are the comfortable way to them.
    """

    __slots__ = ()
    API_KEY: ClassVar[int] = -1
    """Key of the request, type of the record; -1 where there is none."""
    FIRST_FLEXIBLE: ClassVar[int] = 0x8000
    DECODERS: ClassVar[dict[int, Decoder]] = {}
    ENCODERS: ClassVar[dict[int, Encoder]] = {}

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> Self:
        """The message that starts at `pos`; bytes after it are ignored, as Kafka does."""
        decoder = cls.DECODERS.get(version)
        if decoder is None:
            raise DecodeError(f"{cls.__name__} has no version {version}")
        message: Self = decoder(buf, pos)[0]
        return message

    def encode(self, version: int) -> bytes:
        parts = self._parts(version)
        try:
            return b"".join(parts)
        except TypeError as error:
            raise EncodeError(
                f"{type(self).__name__} holds records that are not bytes: encode_chunks can send them"
            ) from error

    def encode_chunks(self, version: int) -> list[Part]:
        """Like `encode`, but records are not copied: whatever is not plain `bytes` stands as a chunk of its own.

        A records object needs nothing but a `len()`, so a slice of a file can wait here for sendfile.
        """
        return joined(self._parts(version))

    def _parts(self, version: int) -> list[Part]:
        encoder = self.ENCODERS.get(version)
        if encoder is None:
            raise EncodeError(f"{type(self).__name__} has no version {version}")
        parts: list[Part] = []
        encoder(self, parts)
        return parts


ResponseT_co = TypeVar("ResponseT_co", bound=Message, covariant=True)

if TYPE_CHECKING:

    class Request(Message, Generic[ResponseT_co]):
        """A message that is answered by a ResponseT_co: who asks is given that and nothing else."""

else:

    class Request(Message):
        __slots__ = ()

        def __class_getitem__(cls, _response):
            return cls  # what answers it is for type checkers; an alias for each request would cost every start


class MetadataRecord(Message):
    """A message of the metadata log."""

    __slots__ = ()


def joined(parts: list[Part]) -> list[Part]:
    """The same bytes in fewer chunks: neighbouring `bytes` become one, everything else stays itself."""
    chunks: list[Part] = []
    start = 0
    for index in [index for index, part in enumerate(parts) if type(part) is not bytes]:
        if start < index:
            chunks.append(b"".join(parts[start:index]))
        chunks.append(parts[index])
        start = index + 1
    if start < len(parts):
        chunks.append(b"".join(parts[start:]))
    return chunks


class _Empty:
    """Stands for "a new empty list" in signatures, where None would mean null."""

    def __repr__(self) -> str:
        return "[]"


EMPTY: Any = _Empty()


T = TypeVar("T", bound=Struct)


def _frozen(self: Struct, name: str, value: object) -> NoReturn:
    raise AttributeError(f"{name} belongs to a default that all messages share: assign a new {type(self).__qualname__}")


def shared_default(cls: type[T]) -> T:
    """The default of a struct-valued field, made once: a fetch response has three per partition.

    Sharing is safe because the instance refuses to be changed.
    """
    frozen = type(cls.__name__, (cls,), {"__slots__": (), "__qualname__": cls.__qualname__})
    shared: T = frozen()
    frozen.__setattr__ = _frozen  # type: ignore[method-assign, assignment]
    return shared


ONE: Final = tuple(bytes((value,)) for value in range(128))
"""The varints of one byte."""


def varint(value: int) -> bytes:
    """Unsigned, at most five bytes. Spelt out, because the length of every batch goes through here."""
    if value < 0x80:
        return ONE[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x200000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    high = value >> 21
    low = (value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14 & 0x7F | 0x80)
    return bytes((*low, high)) if high < 0x80 else bytes((*low, high & 0x7F | 0x80, high >> 7))


def string_head(size: int) -> bytes:
    """The compact length of a string whose length plus one is `size`; refuses what Kafka would refuse."""
    if size > MAX_STRING + 1:
        raise EncodeError(f"a string of {size - 1} bytes is longer than Kafka's {MAX_STRING}")
    return varint(size)


def long_varint(buf: Buffer, pos: int, first: int) -> tuple[int, int]:
    """Goes on where a first byte above 127 has been read; at most five bytes in all, as in Kafka's ByteUtils."""
    byte = buf[pos]
    if byte < 128:
        return first & 0x7F | byte << 7, pos + 1
    value = first & 0x7F | (byte & 0x7F) << 7
    byte = buf[pos + 1]
    if byte < 128:
        return value | byte << 14, pos + 2
    value |= (byte & 0x7F) << 14
    byte = buf[pos + 2]
    if byte < 128:
        return value | byte << 21, pos + 3
    value |= (byte & 0x7F) << 21
    byte = buf[pos + 3]
    if byte < 128:
        return (value | byte << 28) & 0xFFFFFFFF, pos + 4
    raise DecodeError("a varint is longer than 5 bytes")


def long_string(buf: Buffer, pos: int, first: int) -> tuple[int, int]:
    value, pos = long_varint(buf, pos, first)
    if value > MAX_STRING + 1:
        raise DecodeError(f"a string claims {value - 1} bytes, more than Kafka's {MAX_STRING}")
    return value, pos


def read_varint(buf: Buffer, pos: int) -> tuple[int, int]:
    first = buf[pos]
    return (first, pos + 1) if first < 128 else long_varint(buf, pos + 1, first)


def tag_head(buf: Buffer, pos: int, size: int) -> tuple[int, int, int]:
    """Tag, where its value starts, where it ends: inside the buffer for sure."""
    tag, pos = read_varint(buf, pos)
    length, pos = read_varint(buf, pos)
    if length > size - pos:
        raise DecodeError(f"tagged field {tag} claims {length} bytes where {size - pos} are left")
    return tag, pos, pos + length


def skip_tags(buf: Buffer, pos: int, count: int, size: int) -> int:
    """Over a section of which no tag is known (KIP-482). Each round eats two bytes, so a lying count soon runs dry."""
    if count > 127:
        count, pos = long_varint(buf, pos, count)
    for _ in range(count):
        _, _, pos = tag_head(buf, pos, size)
    return pos


def bad_length(field: str, length: int, left: int) -> DecodeError:
    if length == -1:
        return DecodeError(f"{field} is null and may not be")
    return DecodeError(f"{field} claims a length of {length} where {left} bytes are left")


def bad_tag(field: str, pos: int, end: int) -> DecodeError:
    return DecodeError(f"tagged field {field} ends {pos - end:+d} bytes from where its length says")


def malformed(message: str, error: Exception) -> DecodeError:
    return DecodeError(f"{message} is malformed: {error}")


def unwritable(message: str, error: Exception) -> EncodeError:
    return error if isinstance(error, EncodeError) else EncodeError(f"{message} cannot be written: {error}")


def not_in_version(field: str) -> EncodeError:
    return EncodeError(f"{field} is set, but this version of the message has no such field and it may not be dropped")


def bad_uuid(field: str) -> EncodeError:
    return EncodeError(f"{field} is not 16 bytes")
