"""`.snapshot` files of producers, and the small text files of a log directory."""

from __future__ import annotations

import os
from typing import Final

from crc32c import crc32c

from ottla.cli.dump.lines import Dump
from ottla.cli.output import Json
from ottla.protocol import messages
from ottla.protocol.codec import DecodeError

SNAPSHOT_VERSION: Final = 1
_CRC_START: Final = 2
_CRC_END: Final = 6

CHECKPOINTS: Final = {
    "recovery-point-offset-checkpoint": ("topic", "partition", "offset"),
    "log-start-offset-checkpoint": ("topic", "partition", "offset"),
    "replication-offset-checkpoint": ("topic", "partition", "offset"),
    "cleaner-offset-checkpoint": ("topic", "partition", "offset"),
    "leader-epoch-checkpoint": ("epoch", "startOffset"),
}
"""Name of the file to the columns of its lines."""
PLAIN: Final = ("partition.metadata", "meta.properties", "quorum-state", ".kafka_cleanshutdown")


def dump_producer_snapshot(path: str, dump: Dump) -> None:
    with open(path, "rb") as file:
        data = file.read()
    if not data:
        dump.heading(f"{path} is empty.", {"empty": True})
        return
    version = int.from_bytes(data[:_CRC_START], "big")
    if version != SNAPSHOT_VERSION:
        dump.problem(f"version {version} is not known, only {SNAPSHOT_VERSION}")
        return
    if int.from_bytes(data[_CRC_START:_CRC_END], "big") != crc32c(data[_CRC_END:]):
        dump.problem("the checksum does not match, the snapshot is damaged")
        return
    try:
        snapshot = messages.ProducerSnapshot.decode(data, version, _CRC_START)
    except DecodeError as error:
        dump.problem(str(error))
        return
    for entry in snapshot.producer_entries:
        dump.line("producer", _producer_fields(entry))


def _producer_fields(entry: messages.ProducerSnapshot.ProducerEntry) -> dict[str, Json]:
    first_offset = entry.current_txn_first_offset
    fields: dict[str, Json] = {
        "producerId": entry.producer_id,
        "producerEpoch": entry.epoch,
        "coordinatorEpoch": entry.coordinator_epoch,
        "currentTxnFirstOffset": f"OptionalLong[{first_offset}]" if first_offset >= 0 else None,
        "lastTimestamp": entry.timestamp,
    }
    if entry.last_offset >= 0:  # a producer of which only a transaction marker is known has no batch
        fields |= {
            "firstSequence": (entry.last_sequence - entry.offset_delta) & 0x7FFFFFFF,
            "lastSequence": entry.last_sequence,
            "lastOffset": entry.last_offset,
            "offsetDelta": entry.offset_delta,
            "timestamp": entry.timestamp,
        }
    return fields


def dump_checkpoint(path: str, dump: Dump) -> None:
    """Text: version 0, the number of entries, then an entry per line."""
    columns = CHECKPOINTS[os.path.basename(path)]
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    if len(lines) < 2 or lines[0] != "0" or not lines[1].isdigit():
        dump.problem("it does not begin with version 0 and a number of entries")
        return
    entries = lines[2:]
    if int(lines[1]) != len(entries):
        dump.problem(f"{lines[1]} entries are announced, {len(entries)} are there")
    for number, entry in enumerate(entries, 3):
        words = entry.split(" ")
        numbers = words[1:] if columns[0] == "topic" else words
        if len(words) != len(columns) or not all(word.lstrip("-").isdigit() for word in numbers):
            dump.problem(f"line {number}: {entry!r} is not {' '.join(columns)}")
            continue
        dump.line("checkpoint", dict(zip(columns, words, strict=True)))


def dump_plain(path: str, dump: Dump) -> None:
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file.read().splitlines():
            dump.heading(line, {"line": line})
