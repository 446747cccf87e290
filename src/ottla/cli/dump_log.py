"""`ottla dump-log`: what kafka-dump-log does, and the other files of a data directory as well."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ottla.cli.output import note
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import JSON, OUTPUT, output

if TYPE_CHECKING:
    from ottla.cli.dump.batches import Depth
    from ottla.cli.dump.lines import Dump
    from ottla.cli.dump.payloads import Decoder

SUFFIXES: Final = (".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot")
_IN_THE_MAKING: Final = (".deleted", ".swap", ".cleaned", ".part")
"""Suffixes behind a suffix: files that Kafka is about to remove or to rename."""


def dump_log(arguments: Arguments) -> int:
    from ottla.cli.dump.lines import Dump, one_per_line

    dump = Dump(as_json=output(arguments) == "json")
    for path in _files(arguments.texts("file")):
        dump.begin(path)
        _dump_file(path, arguments, dump)
    sys.stdout.flush()
    if dump.problems:
        note(f"{len(dump.problems)} {'problem' if len(dump.problems) == 1 else 'problems'}:")
        sys.stderr.write(one_per_line(dump.problems))
        return 1
    return 0


def _files(paths: list[str]) -> Iterator[str]:
    """A directory stands for the files in it, in the order of their names."""
    for path in paths:
        if os.path.isdir(path):
            yield from (os.path.join(path, name) for name in sorted(os.listdir(path)) if _kind(name))
        else:
            yield path


def _kind(name: str) -> str:
    """What a file is by its name: a suffix, or the name itself; empty when it is none of Kafka's."""
    from ottla.cli.dump.states import CHECKPOINTS, PLAIN

    if name in CHECKPOINTS or name in PLAIN:
        return name
    for suffix in _IN_THE_MAKING:
        name = name.removesuffix(suffix)
    stem, suffix = os.path.splitext(name)
    return suffix if stem and suffix in SUFFIXES else ""


def _dump_file(path: str, arguments: Arguments, dump: Dump) -> None:
    from ottla.cli.dump import batches, indexes, states

    kind = _kind(os.path.basename(path))
    quiet = arguments.flag("verify_index_only") or arguments.flag("index_sanity_check")
    if kind in (".log", ".checkpoint"):
        batches.dump_batches(path, _depth(arguments), _decoder(arguments, path, kind), dump)
    elif kind == ".index":
        indexes.dump_offset_index(path, dump, quiet=quiet)
    elif kind == ".timeindex":
        indexes.dump_time_index(path, dump, quiet=quiet)
    elif kind == ".txnindex":
        indexes.dump_txn_index(path, dump)
    elif kind == ".snapshot":
        states.dump_producer_snapshot(path, dump)
    elif kind in states.CHECKPOINTS:
        states.dump_checkpoint(path, dump)
    elif kind in states.PLAIN:
        states.dump_plain(path, dump)
    else:
        os.stat(path)  # what is not there is told as such
        raise UsageError(f"{path} is no file of Kafka's: {', '.join(SUFFIXES)} and checkpoints are")


def _depth(arguments: Arguments) -> Depth:
    from ottla.cli.dump.batches import Depth

    data = any(map(arguments.flag, ("data", "cluster_metadata", "offsets", "transactions", "share_state")))
    return Depth(
        arguments.flag("records"), data, arguments.flag("skip_record_metadata"), arguments.optional_number("max_bytes")
    )


def _decoder(arguments: Arguments, path: str, kind: str) -> Decoder:
    from ottla.cli.dump import payloads
    from ottla.protocol import messages

    if arguments.flag("cluster_metadata"):
        return payloads.metadata
    if arguments.flag("offsets"):
        return payloads.coordinator(messages.GROUP_RECORDS)
    if arguments.flag("transactions"):
        return payloads.coordinator(messages.TRANSACTION_RECORDS)
    if arguments.flag("share_state"):
        return payloads.coordinator(messages.SHARE_RECORDS)
    if kind == ".checkpoint":
        return payloads.metadata
    return payloads.decoder_for(os.path.basename(os.path.dirname(os.path.abspath(path))))


COMMANDS = (
    Command(
        "",
        dump_log,
        summary="Read and check Kafka's files: segments, indexes, snapshots, checkpoints. Needs no running node.",
        details="""
Segments (.log) and metadata snapshots (.checkpoint) show a line per batch; -d adds a line per record, --data its key
and value. What __cluster_metadata, __consumer_offsets, __transaction_state and __share_group_state hold is decoded.
Checked are checksums, order, torn ends, and indexes against their segments. Exit code 1 when something is wrong.""",
        arguments=(Argument("FILE", help="Files, or directories with such files.", many=True, flags=("--files",)),),
        options=(
            Option("--records", "-d", "--deep-iteration", help="A line per record."),
            Option("--data", "-p", "--print-data-log", help="Keys and values of records."),
            Option("--skip-record-metadata", help="With --data: nothing but keys and values."),
            Option("--max-bytes", value="N", number=True, help="Read only so much of a segment."),
            Option("--verify-index-only", help="Check indexes without printing their entries."),
            Option("--index-sanity-check", help="As --verify-index-only.", hidden=True),
            Option(
                "--cluster-metadata", "--cluster-metadata-decoder", help="Read records as those of the metadata log."
            ),
            Option("--offsets", "--offsets-decoder", help="Read records as those of __consumer_offsets."),
            Option("--transactions", "--transaction-log-decoder", help="Read records as those of __transaction_state."),
            Option(
                "--share-state", "--share-group-state-decoder", help="Read records as those of __share_group_state."
            ),
            OUTPUT,
            JSON,
        ),
        examples=(
            ("The batches of a segment", "ottla dump-log ottla-data/orders-0/00000000000000000000.log"),
            ("Every file of a partition, with its records", "ottla dump-log ottla-data/orders-0 -d --data"),
            ("What the controller wrote down", "ottla dump-log ottla-data/__cluster_metadata-0 --data"),
        ),
    ),
)
