"""`ottla topics`: what kafka-topics and kafka-delete-records do."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.cli.output import Json, Table, note, show, show_json
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import REACH, SHOW, cluster, output, settings

if TYPE_CHECKING:
    from ottla.client.blocking.cluster import Cluster
    from ottla.client.offsets import Found
    from ottla.client.routing import Outcomes
    from ottla.protocol import messages

    Topic = messages.MetadataResponse.MetadataResponseTopic


SETTLE_S: Final = 5.0


def list_topics(arguments: Arguments) -> int:
    with cluster(arguments) as server:
        found = sorted(server.metadata().topics, key=lambda topic: topic.name or "")
    shown = [topic for topic in found if arguments.flag("internal") or not _internal(topic)]
    if arguments.flag("names"):
        print("".join(f"{topic.name}\n" for topic in shown), end="")
        return 0
    table = Table("NAME", "PARTITIONS", "REPLICAS")
    for topic in shown:
        table.add(topic.name, len(topic.partitions), _replicas(topic))
    if not shown and output(arguments) == "table":
        note("no topics yet: `ottla topics create NAME` makes one")
        return 0
    show(table, output(arguments))
    return 0


def _internal(topic: Topic) -> bool:
    return topic.is_internal or (topic.name or "").startswith("__")


def _replicas(topic: Topic) -> int:
    return max((len(partition.replica_nodes) for partition in topic.partitions), default=0)


def create(arguments: Arguments) -> int:
    from ottla.client import admin
    from ottla.client.errors import KafkaError
    from ottla.model.errors import Errors

    assignment = parse_assignment(arguments.optional("assignment"))
    new = [
        admin.NewTopic(
            name,
            _or_default(arguments.optional_number("partitions")),
            _or_default(arguments.optional_number("replication_factor")),
            settings(arguments.texts("config")),
            assignment,
        )
        for name in arguments.texts("topic")
    ]
    with cluster(arguments) as server:
        results = admin.create_topics(server, new, validate_only=arguments.flag("dry_run"))
        if not arguments.flag("dry_run"):
            created = [name for name, result in results.items() if not isinstance(result, KafkaError)]
            _await_metadata(server, created, lambda topic: bool(topic.partitions) and not topic.error_code)
    verb = "would create" if arguments.flag("dry_run") else "created"
    failures: list[Exception] = []
    for name, result in results.items():
        if not isinstance(result, KafkaError):
            size = (_count(result.partitions, "partition"), _count(result.replication_factor, "replica"))
            print(f"{verb} {name} ({', '.join(size)})")
        elif result.error == Errors.TOPIC_ALREADY_EXISTS and arguments.flag("if_not_exists"):
            print(f"{name} exists already")
        else:
            failures.append(result)
    return _report(failures)


def _await_metadata(server: Cluster, names: list[str], ready: Callable[[Topic], bool]) -> None:
    """A controller's yes reaches brokers a little later; who calls one command after another should not notice.

    When the cluster is slow the change is made all the same, so running out of time is no failure.
    """
    from ottla.client.blocking.deadline import Deadline
    from ottla.client.errors import KafkaError, TimedOut
    from ottla.model.errors import Errors

    deadline = Deadline(min(SETTLE_S, server.timeout_s))
    while names:
        names = [topic.name or "" for topic in server.metadata(names).topics if not ready(topic)]
        if names:
            try:
                deadline.pause("seeing the change", KafkaError(Errors.LEADER_NOT_AVAILABLE, names[0]))
            except TimedOut:
                return


def _await_partitions(server: Cluster, topic: str, count: int) -> None:
    _await_metadata(server, [topic], lambda found: len(found.partitions) >= count)


def _or_default(number: int | None) -> int:
    """0 is not the default: the broker shall refuse it by its name."""
    return -1 if number is None else number


def parse_assignment(text: str | None) -> list[list[int]]:
    """Kafka's form: partitions separated by commas, brokers of one partition by colons, as 1:2,2:3."""
    if text is None:
        return []
    try:
        return [[int(broker) for broker in partition.split(":")] for partition in text.split(",")]
    except ValueError as error:
        raise UsageError(f"--assignment {text}: broker ids are expected, as in 1:2,2:3 (two partitions)") from error


def _count(number: int, noun: str) -> str:
    if number < 0:  # brokers before CreateTopics v5 do not say
        return f"default {noun}s"
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _report(failures: list[Exception]) -> int:
    """Every refusal, not only the first: the others were carried out."""
    from ottla.cli.failures import explain

    for failure in failures:
        note(f"ottla: {explain(failure)}")
    return 1 if failures else 0


class _Described(NamedTuple):
    topic: Topic
    overrides: dict[str, str | None]
    starts: Outcomes[Found]
    ends: Outcomes[Found]

    def partitions(self) -> Table:
        table = Table("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "OFFLINE", "START", "END")
        for p in sorted(self.topic.partitions, key=lambda p: p.partition_index):
            start, end = (_offset(found, self.topic.name, p.partition_index) for found in (self.starts, self.ends))
            leader = p.leader_id if p.leader_id >= 0 else None
            lists = (_ids(p.replica_nodes), _ids(p.isr_nodes), _ids(p.offline_replicas) or None)
            table.add(p.partition_index, leader, p.leader_epoch, *lists, start, end)
        return table

    def document(self) -> Json:
        from ottla.model.ids import uuid_text

        return {
            "name": self.topic.name,
            "id": uuid_text(self.topic.topic_id),
            "internal": self.topic.is_internal,
            "configs": self.overrides,
            "partitions": [
                {**row, "replicas": p.replica_nodes, "isr": p.isr_nodes, "offline": p.offline_replicas}
                for row, p in zip(
                    self.partitions().records(),
                    sorted(self.topic.partitions, key=lambda p: p.partition_index),
                    strict=True,
                )
            ],
        }

    def text(self) -> str:
        from ottla.model.ids import uuid_text

        lines = [f"topic       {self.topic.name}", f"id          {uuid_text(self.topic.topic_id)}"]
        lines += [f"partitions  {len(self.topic.partitions)}", f"replicas    {_replicas(self.topic)}"]
        lines += [f"config      {name}={value}" for name, value in sorted(self.overrides.items())]
        return "\n".join(lines) + "\n\n" + self.partitions().text()


def _ids(brokers: list[int]) -> str:
    return ",".join(map(str, brokers))


def _offset(found: Outcomes[Found], topic: str | None, partition: int) -> int | None:
    """None while a partition has no leader to ask."""
    from ottla.client.offsets import Found
    from ottla.model.ids import TopicPartition

    outcome = found.get(TopicPartition(topic or "", partition))
    return outcome.offset if isinstance(outcome, Found) else None


def describe(arguments: Arguments) -> int:
    names = arguments.texts("topic")
    with cluster(arguments) as server:
        topics = [topic for topic in _existing(server, names or None) if names or not _internal(topic)]
        described = _describe(server, topics) if topics else []
    if output(arguments) == "json":
        show_json([one.document() for one in described])
    else:
        print("\n".join(one.text() for one in described), end="")
    return 0


def _describe(server: Cluster, topics: list[Topic]) -> list[_Described]:
    """Four requests in all, however many topics there are."""
    from ottla.client import admin
    from ottla.client.errors import KafkaError
    from ottla.client.offsets import EARLIEST, LATEST, list_offsets
    from ottla.model.ids import TopicPartition

    led = [TopicPartition(t.name or "", p.partition_index) for t in topics for p in t.partitions if p.leader_id >= 0]
    starts = list_offsets(server, dict.fromkeys(led, EARLIEST))
    ends = list_offsets(server, dict.fromkeys(led, LATEST))
    configs = admin.describe_configs(server, admin.TOPIC, [topic.name or "" for topic in topics])
    described = []
    for topic in topics:
        entries = configs.get(topic.name or "")
        if isinstance(entries, KafkaError):
            raise entries
        overrides = {entry.name: entry.value for entry in entries or () if entry.config_source == admin.FROM_TOPIC}
        described.append(_Described(topic, overrides, starts, ends))
    return described


def _existing(server: Cluster, names: list[str] | None) -> list[Topic]:
    from ottla.client.errors import KafkaError, known
    from ottla.model.errors import Errors

    topics = server.metadata(names).topics
    for topic in topics:
        if topic.error_code not in (0, Errors.LEADER_NOT_AVAILABLE):
            raise KafkaError(known(topic.error_code), f"topic {topic.name}")
    return sorted(topics, key=lambda topic: topic.name or "")


def alter(arguments: Arguments) -> int:
    """Kafka's --alter: more partitions, other settings, or both."""
    from ottla.client import admin

    count = arguments.optional_number("partitions")
    changes = [
        admin.ConfigChange(name, admin.SET, value) for name, value in settings(arguments.texts("config")).items()
    ]
    changes += [admin.ConfigChange(name, admin.DELETE) for name in arguments.texts("delete_config")]
    if count is None and not changes:
        raise UsageError("nothing to alter: give --partitions N, --config NAME=VALUE or --delete-config NAME")
    with cluster(arguments) as server:
        for topic in arguments.texts("topic"):
            if changes:
                admin.alter_configs(server, admin.TOPIC, topic, changes)
            if count is not None:
                admin.create_partitions(server, topic, count)
                _await_partitions(server, topic, count)
            print(f"altered {topic}")
    return 0


def add_partitions(arguments: Arguments) -> int:
    from ottla.client import admin

    more = arguments.optional_number("number")
    total = arguments.optional_number("total")
    if (more is None) == (total is None):
        raise UsageError("say either how many to add (-n 2) or how many there should be (--total 6)")
    with cluster(arguments) as server:
        for topic in arguments.texts("topic"):
            count = total if total is not None else len(server.partitions(topic)) + (more or 0)
            admin.create_partitions(server, topic, count, validate_only=arguments.flag("dry_run"))
            if not arguments.flag("dry_run"):
                _await_partitions(server, topic, count)
            print(f"{topic} {'would have' if arguments.flag('dry_run') else 'has'} {_count(count, 'partition')}")
    return 0


def delete(arguments: Arguments) -> int:
    from ottla.client import admin
    from ottla.model.errors import Errors

    failures: list[Exception] = []
    with cluster(arguments) as server:
        results = admin.delete_topics(server, arguments.texts("topic"))
        deleted = [name for name, error in results.items() if error is None]
        _await_metadata(server, deleted, lambda topic: topic.error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION)
    for name, error in results.items():
        if error is None:
            print(f"deleted {name}")
        elif error.error == Errors.UNKNOWN_TOPIC_OR_PARTITION and arguments.flag("if_exists"):
            print(f"{name} does not exist")
        else:
            failures.append(error)
    return _report(failures)


def trim(arguments: Arguments) -> int:
    """DeleteRecords: everything below an offset goes."""
    from ottla.cli.spans import choose_partitions, resolve
    from ottla.client import admin
    from ottla.client.errors import KafkaError

    topic = arguments.text("topic")
    failures: list[Exception] = []
    table = Table("TOPIC", "PARTITION", "START")
    with cluster(arguments) as server:
        places = choose_partitions(server, [topic], arguments.texts("partition"))
        spans = resolve(server, places, arguments.text("offset"))
        results = admin.delete_records(server, {place: spans[place].first for place in places})
    for place in places:
        result = results[place]
        if isinstance(result, KafkaError):
            failures.append(result)
        else:
            table.add(place.topic, place.partition, result)
    if table.rows:
        show(table, output(arguments))
    return _report(failures)


_TOPICS = Argument("TOPIC", help="Name of the topic, or several.", many=True, flags=("--topic",))
_TOPIC = Argument("TOPIC", help="Name of the topic.", flags=("--topic",))
_CONFIG = Option("--config", "-c", value="NAME=VALUE", many=True, help="A setting, such as retention.ms=86400000.")
_DRY_RUN = Option("--dry-run", "--validate-only", help="Check only; change nothing.")

COMMANDS = (
    Command(
        "list",
        list_topics,
        summary="List topics.",
        options=(
            Option(
                "--internal", "-i", help="Include topics that Kafka keeps for itself (__consumer_offsets and such)."
            ),
            Option("--names", "-q", help="Names only, one per line, for scripts."),
            *SHOW,
        ),
        examples=(
            ("Every topic with its partitions and replicas", "ottla topics list"),
            ("For a loop in a shell", "ottla topics list --names"),
        ),
    ),
    Command(
        "create",
        create,
        summary="Create topics.",
        arguments=(_TOPICS,),
        options=(
            Option("--partitions", "-p", value="N", number=True, help="Partitions; else the broker's num.partitions."),
            Option(
                "--replication-factor",
                "-r",
                value="N",
                number=True,
                help="Replicas of each partition; else the broker's default.replication.factor.",
            ),
            Option(
                "--assignment",
                "--replica-assignment",
                value="IDS",
                help="Brokers of each partition instead of the two numbers: 1:2,2:3 gives two partitions.",
            ),
            _CONFIG,
            Option("--if-not-exists", help="A topic that is there already is no failure."),
            _DRY_RUN,
            *REACH,
        ),
        examples=(
            ("Three partitions", "ottla topics create orders --partitions 3"),
            ("Keep the latest record of each key for ever", "ottla topics create users -c cleanup.policy=compact"),
            ("Would it work?", "ottla topics create orders -r 3 --dry-run"),
        ),
    ),
    Command(
        "describe",
        describe,
        summary="Show partitions, leaders, replicas, offsets and changed settings.",
        arguments=(Argument("TOPIC", help="Topics; else all.", many=True, required=False, flags=("--topic",)),),
        options=SHOW,
        examples=(
            ("One topic", "ottla topics describe orders"),
            ("For a program", "ottla topics describe orders --output json"),
        ),
    ),
    Command(
        "alter",
        alter,
        summary="Change a topic's number of partitions or its settings.",
        arguments=(_TOPICS,),
        options=(
            Option("--partitions", "-p", value="N", number=True, help="Partitions there should be in all."),
            _CONFIG,
            Option("--delete-config", value="NAME", many=True, help="A setting that goes back to its default."),
            *REACH,
        ),
        examples=(
            ("Grow to six partitions", "ottla topics alter orders --partitions 6"),
            ("Keep records for a day", "ottla topics alter orders -c retention.ms=86400000"),
        ),
    ),
    Command(
        "add-partitions",
        add_partitions,
        summary="Add partitions. Records stay where they are; keys may go elsewhere from now on.",
        arguments=(_TOPICS,),
        options=(
            Option("--number", "-n", value="N", number=True, help="How many to add."),
            Option("--total", value="N", number=True, help="How many there should be in all."),
            _DRY_RUN,
            *REACH,
        ),
        examples=(("Two more", "ottla topics add-partitions orders -n 2"),),
    ),
    Command(
        "delete",
        delete,
        summary="Delete topics with all of their records.",
        arguments=(_TOPICS,),
        options=(Option("--if-exists", help="A topic that is not there is no failure."), *REACH),
        examples=(("Two at once", "ottla topics delete orders payments"),),
    ),
    Command(
        "trim",
        trim,
        summary="Delete records from the start of a topic's partitions, up to but without an offset.",
        arguments=(_TOPIC,),
        options=(
            Option("--offset", "-o", value="OFFSET", default="end", help="First offset to keep; as in `consume`."),
            Option("--partition", "-p", value="N", many=True, help="Partitions, as 0, 0,2 or 4-7; else all."),
            *SHOW,
        ),
        examples=(
            ("Empty a topic", "ottla topics trim orders"),
            ("Keep the last hundred records of each partition", "ottla topics trim orders -o -100"),
            ("Drop what is older than a day", "ottla topics trim orders -o @-1d"),
            ("Drop offsets 0 to 41 of partition 0", "ottla topics trim orders -p 0 -o 42"),
        ),
        aliases=("delete-records",),
    ),
)
