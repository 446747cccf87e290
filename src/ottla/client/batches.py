"""What a fetch response carries: whole batches, checked, without those a reader must not see."""

from collections import deque
from collections.abc import Iterator, Sequence

from ottla.client.errors import CorruptAnswer
from ottla.protocol import batch as b
from ottla.protocol.records import read_records


def readable_batches(
    place: str, data: memoryview, aborted: Sequence[tuple[int, int]] = ()
) -> Iterator[tuple[b.BatchHeader, memoryview | None]]:
    """Whole batches in order; None in place of one that holds nothing for a reader: control batches, and those of
    `aborted` transactions, each given by its first offset and its producer (KIP-98). Raises CorruptAnswer."""
    waiting = deque(sorted(aborted))
    gone: set[int] = set()
    pos = 0
    while len(data) - pos >= b.HEADER_SIZE:
        header = b.read_header(data, pos)
        batch = data[pos : pos + header.size]
        if header.magic == b.MAGIC_V2 and len(batch) < header.size:
            return  # cut off at the end of the response: it comes whole with the next one
        if header.magic != b.MAGIC_V2 or header.size < b.HEADER_SIZE or b.computed_crc(batch) != header.crc:
            raise CorruptAnswer(f"the batch at offset {header.base_offset} of {place} fails its checksum")
        pos += header.size
        while waiting and waiting[0][0] <= header.last_offset:
            gone.add(waiting.popleft()[1])
        if header.is_control:
            if _is_abort(batch):
                gone.discard(header.producer_id)
            yield header, None
        elif header.is_transactional and header.producer_id in gone:
            yield header, None
        else:
            yield header, batch


def _is_abort(batch: memoryview) -> bool:
    """A control record's key is int16 version, int16 type."""
    marker = next(iter(read_records(batch)), None)
    return marker is not None and marker.key is not None and marker.key[2:4] == b"\0\0"
