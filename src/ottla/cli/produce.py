"""`ottla produce`: lines, JSON or whole files become records."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import os
import select
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from ottla.cli.output import Json, note, show_json
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import OUTPUT, REACH, cluster

if TYPE_CHECKING:
    from ottla.cli.record_json import InputRecord, Parser
    from ottla.client.blocking.cluster import Cluster
    from ottla.client.blocking.producer import Producer
    from ottla.client.producing import Delivered
    from ottla.protocol.records import Header

LINGER_S: Final = 0.02
"""How long a record waits for company when input comes slowly."""
READ_BYTES: Final = 256 << 10
MAX_LINE_BYTES: Final = 64 << 20
ACKS: Final = {"all": -1, "-1": -1, "1": 1, "0": 0}


class Tally:
    """What was acknowledged, by partition."""

    __slots__ = ("places", "records")

    def __init__(self) -> None:
        self.records = 0
        self.places: dict[tuple[str, int], tuple[int, int, int]] = {}
        """Count, first and last offset (-1: unknown)."""

    def add(self, delivered: "Delivered") -> None:
        count = len(delivered.records)
        self.records += count
        before, first, _ = self.places.get(delivered.place, (0, delivered.base_offset, -1))
        last = delivered.base_offset + count - 1 if delivered.base_offset >= 0 else -1
        self.places[delivered.place] = (before + count, first, last)

    def text(self, topic: str) -> str:
        noun = "record" if self.records == 1 else "records"
        where = ""
        if 0 < len(self.places) <= 8:
            where = ": " + ", ".join(_place_text(p, *found) for (_, p), found in sorted(self.places.items()))
        return f"wrote {self.records} {noun} to {topic}{where}"

    def document(self, topic: str) -> Json:
        return {
            "topic": topic,
            "records": self.records,
            "partitions": [
                {"partition": p, "records": count, "first_offset": first, "last_offset": last}
                for (_, p), (count, first, last) in sorted(self.places.items())
            ],
        }


def _place_text(partition: int, count: int, first: int, last: int) -> str:
    if first < 0:
        return f"partition {partition} ({count})"
    return f"partition {partition} offset {first}" if count == 1 else f"partition {partition} offsets {first}-{last}"


def produce(arguments: Arguments) -> int:
    from ottla.client.blocking.producer import Producer
    from ottla.client.producing import CODECS

    topic = arguments.text("topic")
    parse = _parser(arguments)
    tally = Tally()
    with cluster(arguments) as server:
        producer = Producer(
            server,
            acks=ACKS[arguments.text("acks")],
            codec=CODECS[arguments.text("compression")],
            idempotent=not arguments.flag("no_idempotence"),
            on_delivery=tally.add,
        )
        if not _exists(server, topic):
            note(f"{topic} does not exist yet; the broker creates it, if it may")
        try:
            _send_all(arguments, producer, topic, parse)
        except KeyboardInterrupt:
            producer.flush()
        except Exception:
            if tally.records:
                note(f"ottla: {tally.text(topic)} before this:")
            raise
    if arguments.text("output") == "json":
        show_json(tally.document(topic))
    elif not arguments.flag("quiet"):
        print(tally.text(topic))
    return 0


def _exists(server: "Cluster", topic: str) -> bool:
    """A misspelt name should not pass unnoticed where brokers create topics by themselves. Raises KafkaError for one
    that cannot be a topic's."""
    from ottla.client.errors import check
    from ottla.model.errors import Errors

    (found,) = server.metadata([topic]).topics
    if found.error_code == Errors.INVALID_TOPIC_EXCEPTION:
        check(found.error_code, repr(topic))
    return not found.error_code


def _send_all(arguments: Arguments, producer: "Producer", topic: str, parse: "Parser") -> None:
    from ottla.cli.failures import Failure
    from ottla.cli.record_json import BadRecord

    for source, number, line in _inputs(arguments, producer.flush):
        try:
            record = parse(line)
        except BadRecord as error:
            producer.flush()
            raise Failure(f"{source}, line {number}: {error}") from error
        producer.send(
            topic,
            record.value,
            key=record.key,
            headers=record.headers,
            partition=record.partition,
            timestamp=record.timestamp,
        )
    producer.flush()


def _inputs(arguments: Arguments, idle: Callable[[], None]) -> Iterator[tuple[str, int, bytes]]:
    """Source, line number and bytes of each record-to-be."""
    paths = arguments.texts("file")
    if not paths:
        if sys.stdin.isatty():
            note("one record per line; Ctrl-D ends")
        yield from _pieces(arguments, "standard input", 0, idle)
    for path in paths:
        if path == "-":
            yield from _pieces(arguments, "standard input", 0, idle)
            continue
        fd = os.open(path, os.O_RDONLY)
        try:
            yield from _pieces(arguments, path, fd, idle)
        finally:
            os.close(fd)


def _pieces(arguments: Arguments, source: str, fd: int, idle: Callable[[], None]) -> Iterator[tuple[str, int, bytes]]:
    if arguments.flag("whole"):
        yield source, 1, b"".join(iter(lambda: os.read(fd, READ_BYTES), b""))
        return
    for number, line in enumerate(read_lines(fd, idle), 1):
        yield source, number, line


def read_lines(fd: int, idle: Callable[[], None]) -> Iterator[bytes]:
    """Lines without their newline as they come. `idle` is called when input pauses, so that nothing waits for more."""
    from ottla.cli.failures import Failure

    rest: list[bytes] = []
    size = 0
    readable = select.poll()  # select.select refuses descriptors of 1,024 and more
    readable.register(fd, select.POLLIN)
    while True:
        if not readable.poll(LINGER_S * 1000):
            idle()
        chunk = os.read(fd, READ_BYTES)
        if not chunk:
            break
        first, *others = chunk.split(b"\n")
        rest.append(first)
        size += len(first)
        if size > MAX_LINE_BYTES:
            raise Failure(f"a line is longer than {MAX_LINE_BYTES >> 20} MiB; --whole sends a file as one record")
        if others:
            yield b"".join(rest)
            yield from others[:-1]
            rest, size = [others[-1]], len(others[-1])
    if size:
        yield b"".join(rest)


def _parser(arguments: Arguments) -> "Parser":
    from ottla.cli.record_json import InputRecord, parse_record

    common = InputRecord(
        None,
        _encoded(arguments.optional("key")),
        tuple(_header(text) for text in arguments.texts("header")),
        arguments.optional_number("partition"),
        arguments.optional_number("timestamp"),
    )
    if arguments.flag("json"):
        return lambda line: _merged(parse_record(line), common)
    separator = _separator(arguments.optional("key_separator"))
    null = _encoded(arguments.optional("null"))
    return lambda line: _line_record(line, separator, null, common)


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode(errors="surrogateescape")


def _separator(text: str | None) -> bytes | None:
    if text is None:
        return None
    for escape, char in ((r"\t", "\t"), (r"\0", "\0")):
        text = text.replace(escape, char)
    if not text:
        raise UsageError("--key-separator is empty: a text is expected that stands between key and value")
    return text.encode()


def _header(text: str) -> "Header":
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--header {text}: NAME=VALUE is expected")
    return name, value.encode(errors="surrogateescape")


def _merged(record: "InputRecord", common: "InputRecord") -> "InputRecord":
    """What a line says itself goes before what was said for all."""
    return record._replace(
        key=common.key if record.key is None else record.key,
        headers=(*record.headers, *common.headers),
        partition=common.partition if record.partition is None else record.partition,
        timestamp=common.timestamp if record.timestamp is None else record.timestamp,
    )


def _line_record(line: bytes, separator: bytes | None, null: bytes | None, common: "InputRecord") -> "InputRecord":
    from ottla.cli.record_json import BadRecord

    key, value = common.key, line
    if separator is not None:
        key, found, value = line.partition(separator)
        if not found:
            raise BadRecord(f"no key separator {separator.decode()!r} in {line[:60]!r}")
    return common._replace(
        key=None if null is not None and key == null else key,
        value=None if null is not None and value == null else value,
    )


COMMANDS = (
    Command(
        "",
        produce,
        summary="Write records to a topic, from standard input or files.",
        details=r"""
With --json each line is an object as `ottla consume --json` writes it:
  {"key": "a", "value": "b", "headers": [{"key": "h", "value": "x"}], "partition": 0, "timestamp": 1700000000000}
All names may be left out; value_base64 and key_base64 carry bytes; a value that is an object is written as JSON.
Records with a key go to the partition that Java clients would choose; those without fill one partition at a time.""",
        arguments=(Argument("TOPIC", help="Topic to write to; the broker may create it.", flags=("--topic",)),),
        options=(
            Option("--key", "-k", value="KEY", help="Key of every record."),
            Option("--key-separator", "-K", value="TEXT", help=r"Lines are KEY TEXT VALUE; \t is a tab."),
            Option("--header", "-H", value="NAME=VALUE", many=True, help="A header of every record."),
            Option("--partition", "-p", value="N", number=True, help="Write to this partition."),
            Option("--timestamp", value="MS", number=True, help="Timestamp of every record; else now."),
            Option("--null", "-Z", value="TEXT", help="Keys and values that are exactly this are null (a tombstone)."),
            Option("--json", help="Lines are JSON objects."),
            Option("--file", "-f", value="PATH", many=True, help="Read from here; - is standard input."),
            Option("--whole", "-w", help="Each input is one record, newlines included."),
            Option(
                "--compression",
                "-z",
                "--compression-codec",
                value="CODEC",
                choices=("none", "gzip", "snappy", "lz4", "zstd"),
                default="none",
                help="How batches are compressed.",
            ),
            Option(
                "--acks",
                "-a",
                "--request-required-acks",
                value="ACKS",
                choices=tuple(ACKS),
                default="all",
                help="Who has to have a record before it counts as written.",
            ),
            Option("--no-idempotence", help="Do without a producer id: a retry may then write twice."),
            Option("--quiet", "-q", help="No summary at the end."),
            OUTPUT,
            *REACH,
        ),
        examples=(
            ("One record", "echo hello | ottla produce orders"),
            ("Keys and values", r"printf 'a:1\nb:2\n' | ottla produce orders -K :"),
            ("Headers, compression", "ottla produce orders -H source=shell -z zstd -f records.txt"),
            ("Delete key a of a compacted topic", "echo NULL | ottla produce users -k a --null NULL"),
            (
                "Copy a topic of three partitions, each record to the partition it had",
                "ottla topics create copy -p 3; ottla consume orders --json -o :end | ottla produce copy --json",
            ),
        ),
    ),
)
