"""Records inside a batch, as far as the cleaner has to look: where each ends, its key, whether it has a value.

These loops are where a cleaner spends its time. They read plain `bytes` at absolute positions, know that nearly every
varint is one or two bytes long, and copy nothing but keys. A wheel has them compiled.
"""

from typing import Final, NamedTuple

from ottla.protocol.varint import read_signed, write_signed
from ottla.storage.cleaner.key_map import DROP, KEEP, SHORT, TOMBSTONE, name_of

_DROPPED: Final = bytes([DROP])


def scan(body: bytes, pos: int, count: int) -> tuple[list[bytes | None], bytearray]:
    """Names of the keys of `count` records from `pos` on, and their flags: KEEP, TOMBSTONE, DROP without a key."""
    names: list[bytes | None] = []
    flags = bytearray([KEEP]) * count
    for place in range(count):
        low = body[pos]
        if low < 0x80:
            end = pos + 1 + (low >> 1)
            pos += 2  # the attributes are skipped along
        elif (high := body[pos + 1]) < 0x80:
            end = pos + 2 + ((low & 0x7F | high << 7) >> 1)
            pos += 3
        else:
            length, pos = read_signed(body, pos)
            end = pos + length
            pos += 1
        while body[pos] >= 0x80:  # timestamp
            pos += 1
        pos += 1
        while body[pos] >= 0x80:  # offset
            pos += 1
        size = body[pos + 1]
        if size < 0x80:
            pos += 2
            size = -1 if size & 1 else size >> 1
        else:
            size, pos = read_signed(body, pos + 1)
        key_end = pos + size
        if key_end >= end:
            raise IndexError(key_end)
        if size < 0:
            names.append(None)
            flags[place] = DROP
        else:
            names.append(body[pos:key_end] if size <= SHORT else name_of(body[pos:key_end]))
            # The lowest bit of a zigzag number is its sign, however many bytes follow; a value of length -1 is none.
            if body[key_end] & 1:
                flags[place] = TOMBSTONE
        pos = end
    return names, flags


class Picked(NamedTuple):
    records: bytes
    number: int
    max_timestamp: int


def pick(body: bytes, pos: int, flags: bytes | bytearray, base_timestamp: int) -> Picked:
    """The flagged records, unchanged: offsets and timestamps stay relative to the same bases."""
    pieces: list[bytes] = []
    count, max_delta = 0, None
    run_start = run_end = pos
    for flag in flags.rstrip(_DROPPED):  # nobody has to know where the records behind the last flagged one end
        start = pos
        low = body[pos]
        if low < 0x80:
            end = pos + 1 + (low >> 1)
            pos += 2
        elif (high := body[pos + 1]) < 0x80:
            end = pos + 2 + ((low & 0x7F | high << 7) >> 1)
            pos += 3
        else:
            length, pos = read_signed(body, pos)
            end = pos + length
            pos += 1
        if flag:
            low = body[pos]
            delta = low >> 1 ^ -(low & 1) if low < 0x80 else read_signed(body, pos)[0]
            if max_delta is None or delta > max_delta:
                max_delta = delta
            count += 1
            if start != run_end:
                pieces.append(body[run_start:run_end])
                run_start = start
            run_end = end
        pos = end
    pieces.append(body[run_start:run_end])
    return Picked(b"".join(pieces), count, base_timestamp + (max_delta or 0))


def pick_rebased(
    body: bytes, pos: int, flags: bytes | bytearray, base_timestamp: int, new_base: int, append_time: int | None
) -> Picked:
    """The flagged records with their timestamps relative to `new_base`, which takes the delete horizon (KIP-534)."""
    out = bytearray()
    count, max_timestamp = 0, -1
    for flag in flags:
        length, pos = read_signed(body, pos)
        end = pos + length
        if flag:
            delta, rest = read_signed(body, pos + 1)
            timestamp = base_timestamp + delta if append_time is None else append_time
            max_timestamp = max(max_timestamp, timestamp)
            record = bytearray(body[pos : pos + 1])
            write_signed(record, timestamp - new_base)
            record += body[rest:end]
            write_signed(out, len(record))
            out += record
            count += 1
        pos = end
    return Picked(bytes(out), count, max_timestamp)
