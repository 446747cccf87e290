"""`ottla consume`: records of any partitions, by offset or time, once or as they arrive."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ottla.cli import formats
from ottla.cli.output import note
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import REACH, cluster

if TYPE_CHECKING:
    from ottla.cli.formats import Formatted
    from ottla.client.blocking.cluster import Cluster
    from ottla.client.blocking.consumer import Consumer
    from ottla.client.fetching import Fetched

POLL_S: Final = 1.0
ISOLATION: Final = {"read_uncommitted": 0, "read_committed": 1}


def consume(arguments: Arguments) -> int:
    render = _renderer(arguments)
    limit = arguments.optional_number("number")
    if limit is not None and limit < 0:
        raise UsageError(f"-n {limit}: how many records, 0 or more")
    with cluster(arguments) as server:
        consumer = _consumer(arguments, server)
        with suppress(KeyboardInterrupt):  # the usual way to end a consumer that follows
            _print_records(consumer, render, limit)
    return 0


def _renderer(arguments: Arguments) -> "Callable[[Formatted], bytes]":
    if arguments.flag("json"):
        from ottla.cli.record_json import record_line

        return record_line
    try:
        return formats.Format(arguments.text("format")).render
    except formats.BadFormat as error:
        raise UsageError(str(error)) from error


def _consumer(arguments: Arguments, server: "Cluster") -> "Consumer":
    from ottla.cli.spans import choose_partitions, range_of, resolve
    from ottla.client.blocking.consumer import Consumer

    if arguments.flag("from_beginning") and arguments.has("offset"):
        raise UsageError("--from-beginning and --offset exclude each other")
    wanted = range_of(arguments.optional("offset") or "start")
    if arguments.flag("exit_at_end"):
        wanted = wanted.until_end()
    isolation = ISOLATION[arguments.text("isolation")]
    places = choose_partitions(server, arguments.texts("topic"), arguments.texts("partition"))
    return Consumer(server, resolve(server, places, wanted, isolation), isolation=isolation)


def _print_records(consumer: "Consumer", render: "Callable[[Formatted], bytes]", limit: int | None) -> None:
    out = sys.stdout.buffer
    count = 0
    warned: set[object] = set()
    while consumer.active and (limit is None or count < limit):
        for fetched in consumer.poll(POLL_S):
            count = _print_fetched(out.write, fetched, render, count, limit)
        out.flush()
        for place, (first, last) in consumer.skipped.items():
            if place not in warned:
                warned.add(place)
                note(f"{place}: offsets {first} to {last - 1} are no longer there (retention, or trimmed)")


def _print_fetched(
    write: Callable[[bytes], object],
    fetched: "Fetched",
    render: "Callable[[Formatted], bytes]",
    count: int,
    limit: int | None,
) -> int:
    topic, partition = fetched.place
    for record in fetched.records:
        if count == limit:
            break
        count += 1
        about = (fetched.leader_epoch, fetched.high_watermark, fetched.log_start_offset)
        write(render(formats.Formatted(topic, partition, record, *about, count)))
    return count


COMMANDS = (
    Command(
        "",
        consume,
        summary="Read records from topics: by offset, by time, or as they arrive. No consumer group is involved.",
        details=r"""
offsets (-o), in each partition:
  start, end            the first record there is; the next one to come
  42                    offset 42
  +5, -10               five after the start; ten before the end
  10:20                 from 10 up to but without 20; start:end, :end, -10:end likewise
  @1700000000000        from a time on: milliseconds, or seconds, or 2026-11-01, 2026-11-01T12:00:00Z (UTC), or
                        @-1h: an hour ago (ms, s, m, h, d)
  @T1:T2                between two times; the second may be a length (@2026-11-01:6h) or end
Without a second part, and without -e, consuming goes on as records arrive; Ctrl-C ends it.
"""
        + formats.HELP.rstrip("\n"),
        arguments=(Argument("TOPIC", help="Topics to read.", many=True, flags=("--topic",)),),
        options=(
            Option("--offset", "-o", value="OFFSETS", help="Where to begin, and perhaps end. Default: start."),
            Option("--number", "-n", "--max-messages", value="N", number=True, help="Stop after so many records."),
            Option("--partition", "-p", value="N", many=True, help="Partitions, as 0, 0,2 or 4-7; else all."),
            Option("--format", "-f", value="FORMAT", default=r"%v\n", help="How a record is printed."),
            Option("--json", "-J", help="A JSON object per line."),
            Option("--exit-at-end", "-e", help="Stop at what is the end now instead of waiting for more."),
            Option("--from-beginning", help="As -o start.", hidden=True),
            Option(
                "--isolation",
                "--isolation-level",
                value="LEVEL",
                choices=tuple(ISOLATION),
                default="read_uncommitted",
                help="Whether records of open and aborted transactions are shown.",
            ),
            *REACH,
        ),
        examples=(
            ("Everything, then what arrives", "ottla consume orders"),
            ("The last ten records of each partition", "ottla consume orders -o -10:end"),
            ("Five records from offset 42 of partition 0", "ottla consume orders -p 0 -o 42 -n 5"),
            ("The last hour, with keys and times", r"ottla consume orders -o @-1h:end -f '%T{iso} %k=%v\n'"),
            ("For jq", "ottla consume orders -e --json | jq .value"),
        ),
    ),
)
