"""Variable-length integers: unsigned ones frame flexible messages, zigzag ones frame records."""


class Truncated(ValueError):
    """The bytes end before the value does, or a length claims more than is left."""


def read_unsigned(buf: memoryview | bytes | bytearray, pos: int) -> tuple[int, int]:
    """Reads at most 5 bytes, as Kafka's ByteUtils does."""
    value = shift = 0
    while True:
        if pos >= len(buf):
            raise Truncated("varint runs past the end")
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFF, pos
        shift += 7
        if shift > 28:
            raise Truncated("varint is longer than 5 bytes")


def read_signed(buf: memoryview | bytes | bytearray, pos: int) -> tuple[int, int]:
    """Zigzag, at most 10 bytes: serves Kafka's varint and varlong alike."""
    value = shift = 0
    while True:
        if pos >= len(buf):
            raise Truncated("varint runs past the end")
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFFFFFFFFFFFFFF
            return (value >> 1) ^ -(value & 1), pos
        shift += 7
        if shift > 63:
            raise Truncated("varint is longer than 10 bytes")


def write_unsigned(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def write_signed(out: bytearray, value: int) -> None:
    write_unsigned(out, (value << 1) ^ (value >> 63) if value < 0 else value << 1)
