"""`ottla transactions`: what is open, what hangs, and ending it."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from typing import TYPE_CHECKING, Final

from ottla.cli.output import Json, Table, note, show, show_json, time_text
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import REACH, SHOW, cluster, output

if TYPE_CHECKING:
    from ottla.client.blocking.cluster import Cluster
    from ottla.client.transactions import OpenTransaction, Transaction
    from ottla.model.ids import TopicPartition

OK: Final = 0
FAILED: Final = 1
_MINUTE_MS: Final = 60_000


def list_transactions(arguments: Arguments) -> int:
    from ottla.client import transactions

    with cluster(arguments) as server:
        listed = transactions.list_transactions(
            server,
            states=arguments.texts("state"),
            producer_ids=[_number(text, "--producer-id") for text in arguments.texts("producer_id")],
            longer_than_ms=-1 if (longer := arguments.optional_number("longer_than_ms")) is None else longer,
            pattern=arguments.optional("pattern"),
        )
    table = Table("TRANSACTIONAL ID", "COORDINATOR", "PRODUCER ID", "STATE")
    for each in listed:
        table.add(each.transactional_id, each.coordinator, each.producer_id, each.state)
    show(table, output(arguments))
    return OK


def describe(arguments: Arguments) -> int:
    from ottla.client import transactions

    with cluster(arguments) as server:
        found = [transactions.describe(server, name) for name in arguments.texts("transactional_id")]
    if output(arguments) == "json":
        show_json([_document(each) for each in found])
        return OK
    table = Table(
        "TRANSACTIONAL ID", "COORDINATOR", "PRODUCER ID", "EPOCH", "STATE", "TIMEOUT MS", "STARTED", "PARTITIONS"
    )
    for each in found:
        table.add(
            each.transactional_id,
            each.coordinator,
            each.producer_id,
            each.producer_epoch,
            each.state,
            each.timeout_ms,
            time_text(each.started_ms),
            " ".join(str(place) for place in each.partitions) or None,
        )
    show(table, "table")
    return OK


def _document(each: "Transaction") -> Json:
    return {
        "transactional_id": each.transactional_id,
        "coordinator": each.coordinator,
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "state": each.state,
        "timeout_ms": each.timeout_ms,
        "started": time_text(each.started_ms),
        "partitions": [{"topic": topic, "partition": index} for topic, index in each.partitions],
    }


def find_hanging(arguments: Arguments) -> int:
    from time import time

    from ottla.client import transactions
    from ottla.client.errors import KafkaError

    minutes = _number(arguments.text("max_transaction_timeout"), "--max-transaction-timeout")
    before_ms = int(time() * 1000) - minutes * _MINUTE_MS
    code = OK
    candidates: list[OpenTransaction] = []
    with cluster(arguments) as server:
        for outcome in transactions.open_transactions(server, _places(server, arguments)).values():
            if isinstance(outcome, KafkaError):
                note(str(outcome))
                code = FAILED
            else:
                candidates += [each for each in outcome if each.last_timestamp < before_ms]
        hanging = transactions.hanging(server, candidates)
    table = Table(
        "TOPIC", "PARTITION", "PRODUCER ID", "PRODUCER EPOCH", "COORDINATOR EPOCH", "START OFFSET", "LAST WRITE"
    )
    for each in sorted(hanging):
        table.add(
            *each.partition,
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.start_offset,
            time_text(each.last_timestamp),
        )
    show(table, output(arguments))
    return code


def _places(server: "Cluster", arguments: Arguments) -> "list[TopicPartition]":
    from ottla.model.ids import TopicPartition

    topic, partition = arguments.optional("topic"), arguments.optional_number("partition")
    if topic is None:
        if partition is not None:
            raise UsageError("--partition needs --topic")
        server.metadata(None)
        places = sorted(server.leaders)
    elif partition is not None:
        places = [TopicPartition(topic, partition)]
    else:
        places = [TopicPartition(topic, index) for index in server.partitions(topic)]
    broker = arguments.optional_number("broker")
    return places if broker is None else [place for place in places if server.leaders.get(place) == broker]


def abort(arguments: Arguments) -> int:
    from ottla.client import transactions

    name, topic = arguments.optional("transactional_id"), arguments.optional("topic")
    if (name is None) == (topic is None):
        raise UsageError("name either a transaction's --topic, --partition and --start-offset, or a --transactional-id")
    with cluster(arguments) as server:
        if name is not None:
            transactions.describe(server, name)  # a misspelt name must not come into being
            producer_id, epoch = transactions.fence(server, name)
            print(f"fenced {name}: producer {producer_id} is at epoch {epoch} now")
        else:
            assert topic is not None
            found = _find_open(server, arguments, topic)
            transactions.abort(server, found)
            print(f"aborted the transaction of producer {found.producer_id} on {found.partition}")
    return OK


def _find_open(server: "Cluster", arguments: Arguments, topic: str) -> "OpenTransaction":
    from ottla.client import transactions
    from ottla.client.errors import ClientError
    from ottla.model.ids import TopicPartition

    partition, start = arguments.optional_number("partition"), arguments.optional_number("start_offset")
    if partition is None or start is None:
        raise UsageError("--topic needs --partition and --start-offset: `ottla transactions find-hanging` shows them")
    place = TopicPartition(topic, partition)
    outcome = transactions.open_transactions(server, [place])[place]
    if isinstance(outcome, Exception):
        raise outcome
    for each in outcome:
        if each.start_offset == start:
            return each
    raise ClientError(f"no transaction that is open on {place} starts at offset {start}")


def _number(text: str, option: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{option} {text}: a number is expected") from None


TOPIC: Final = Option("--topic", "-t", value="TOPIC", help="Only this topic.")
PARTITION: Final = Option("--partition", "-p", value="N", number=True, help="Only this partition of the topic.")

COMMANDS: Final = (
    Command(
        "list",
        list_transactions,
        summary="List transactional ids with their coordinator, producer id and state.",
        options=(
            Option("--state", value="STATE", many=True, help="Only in this state, such as Ongoing or PrepareAbort."),
            Option("--producer-id", value="ID", many=True, help="Only of this producer."),
            Option(
                "--longer-than-ms",
                "--duration-filter",
                value="MS",
                number=True,
                help="Only those that began longer ago than this.",
            ),
            Option(
                "--pattern", "--transactional-id-pattern", value="REGEX", help="Only names that match as a whole (RE2)."
            ),
            *SHOW,
        ),
        examples=(
            ("every transactional id", "ottla transactions list"),
            ("open for more than a minute", "ottla transactions list --state Ongoing --longer-than-ms 60000"),
        ),
    ),
    Command(
        "describe",
        describe,
        summary="Show the state of transactional ids and the partitions they have written to.",
        arguments=(Argument("TRANSACTIONAL-ID", help="Transactional ids.", many=True, flags=("--transactional-id",)),),
        options=SHOW,
        examples=(("", "ottla transactions describe billing-0"),),
    ),
    Command(
        "find-hanging",
        find_hanging,
        summary="Find transactions that are open on a partition while their coordinator knows nothing of it.",
        options=(
            TOPIC,
            PARTITION,
            Option("--broker", "--broker-id", value="ID", number=True, help="Only partitions led by this broker."),
            Option(
                "--max-transaction-timeout",
                value="MINUTES",
                default="15",
                help="Leave out those written to within this time: they may just be open.",
            ),
            *SHOW,
        ),
        examples=(
            ("in the whole cluster", "ottla transactions find-hanging"),
            ("on one topic", "ottla transactions find-hanging --topic orders"),
        ),
    ),
    Command(
        "abort",
        abort,
        summary="Abort a hanging transaction on its partition, or fence a producer by its transactional id.",
        options=(
            TOPIC,
            PARTITION,
            Option("--start-offset", value="OFFSET", number=True, help="Where the transaction begins."),
            Option("--transactional-id", value="NAME", help="Abort what it has open and fence whoever uses it."),
            *REACH,
        ),
        examples=(
            ("one that hangs", "ottla transactions abort --topic orders --partition 3 --start-offset 4711"),
            ("what an application left open", "ottla transactions abort --transactional-id billing-0"),
        ),
    ),
)
