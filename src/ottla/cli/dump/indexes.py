"""`.index`, `.timeindex`, `.txnindex`: entries of fixed size, checked against the segment beside them."""

import os
from collections.abc import Iterator
from struct import Struct
from typing import Final

from ottla.cli.dump.batches import Torn, read_batches
from ottla.cli.dump.lines import Dump

OFFSET_ENTRY: Final = Struct(">ii")
TIME_ENTRY: Final = Struct(">qi")
TXN_ENTRY: Final = Struct(">hqqqq")


def _entries(path: str, layout: Struct, dump: Dump) -> Iterator[tuple[int, ...]]:
    with open(path, "rb") as file:
        data = file.read()
    left = len(data) % layout.size
    if left:
        dump.problem(f"its {len(data)} bytes are no multiple of {layout.size}: the last entry is torn")
    yield from layout.iter_unpack(data[: len(data) - left])


def _base_offset(path: str) -> int:
    stem = os.path.basename(path).split(".")[0]
    if not stem.isdigit():
        raise ValueError(f"{path}: the name of an index is the first offset of its segment")
    return int(stem)


def _segment(path: str) -> str:
    return os.path.join(os.path.dirname(path), os.path.basename(path).split(".")[0] + ".log")


def dump_offset_index(path: str, dump: Dump, *, quiet: bool) -> None:
    base = _base_offset(path)
    found: list[tuple[int, int]] = []
    for relative, position in _entries(path, OFFSET_ENTRY, dump):
        # Kafka allocates ahead: after a crash the rest of the file is zeros.
        if found and relative == 0:
            break
        offset = base + relative
        if found and (offset <= found[-1][0] or position <= found[-1][1]):
            dump.problem(f"offset {offset} at position {position} comes after {found[-1][0]} at {found[-1][1]}")
        found.append((offset, position))
        if not quiet:
            dump.line("index", {"offset": offset, "position": position})
    if not found:
        dump.heading(f"{path} is empty.", {"empty": True})
        return
    _compare_positions(_segment(path), found, dump)


def _compare_positions(segment: str, found: list[tuple[int, int]], dump: Dump) -> None:
    """An entry holds the last offset of the batch that stands at its position."""
    if not os.path.exists(segment):
        dump.problem(f"{segment} is not there to compare with")
        return
    with open(segment, "rb") as file:
        for offset, position in found:
            try:
                placed = next(read_batches(file, headers_only=True, start=position), None)
            except Torn as torn:
                dump.problem(f"offset {offset}: no batch at position {position} of the segment ({torn.reason})")
                continue
            last = None if placed is None else placed.header.last_offset
            if last != offset:
                dump.problem(f"Index offset: {offset}, log offset: {last}")


def dump_time_index(path: str, dump: Dump, *, quiet: bool) -> None:
    base = _base_offset(path)
    times = _max_timestamps(_segment(path), dump)
    previous = -1
    for index, (timestamp, relative) in enumerate(_entries(path, TIME_ENTRY, dump)):
        if index and relative == 0:
            break
        offset = base + relative
        if not quiet:
            dump.line("timeindex", {"timestamp": timestamp, "offset": offset})
        if timestamp <= previous:
            dump.problem(f"timestamp {timestamp} comes after {previous}")
        previous = timestamp
        if times is None or (timestamp == 0 and relative == 0):
            continue
        if offset not in times:
            dump.problem(f"no batch of the segment ends at the indexed offset {offset}")
        elif times[offset] != timestamp:
            dump.problem(f"Index timestamp: {timestamp}, log timestamp: {times[offset]} at offset {offset}")


def _max_timestamps(segment: str, dump: Dump) -> dict[int, int] | None:
    """Last offset of each batch to its largest timestamp; headers alone tell it."""
    if not os.path.exists(segment):
        dump.problem(f"{segment} is not there to compare with")
        return None
    times: dict[int, int] = {}
    with open(segment, "rb") as file:
        try:
            for placed in read_batches(file, headers_only=True):
                times[placed.header.last_offset] = placed.header.max_timestamp
        except Torn:
            pass  # the segment's own dump tells about it
    return times


def dump_txn_index(path: str, dump: Dump) -> None:
    for version, producer_id, first, last, stable in _entries(path, TXN_ENTRY, dump):
        if version != 0:
            dump.problem(f"an entry has version {version}, not 0")
        if first > last:
            dump.problem(f"producer {producer_id}: offset {first} to {last} is no range")
        dump.line(
            "txnindex",
            {
                "version": version,
                "producerId": producer_id,
                "firstOffset": first,
                "lastOffset": last,
                "lastStableOffset": stable,
            },
        )
