"""`ottla configs`: what kafka-configs does, for topics, brokers and their loggers, the cluster's defaults, groups and
client metrics."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.cli.output import Json, Table, show, show_json
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError, suggestion
from ottla.cli.reach import REACH, SHOW, cluster, output, settings

if TYPE_CHECKING:
    from ottla.client.admin import ConfigChange
    from ottla.client.blocking.cluster import Cluster
    from ottla.protocol import messages

    Entry = messages.DescribeConfigsResponse.DescribeConfigsResourceResult

_TOPIC: Final = 2
_BROKER: Final = 4
_LOGGER: Final = 8
_CLIENT_METRICS: Final = 16
_GROUP: Final = 32

KINDS: Final = {
    "topic": _TOPIC, "topics": _TOPIC,
    "broker": _BROKER, "brokers": _BROKER,
    "cluster-default": _BROKER,
    "group": _GROUP, "groups": _GROUP,
    "client-metrics": _CLIENT_METRICS,
    "broker-logger": _LOGGER, "broker-loggers": _LOGGER,
}  # fmt: skip

SOURCES: Final = {
    1: "topic", 2: "broker", 3: "cluster", 4: "file", 5: "default", 6: "logger", 7: "client-metrics", 8: "group",
}  # fmt: skip
TYPES: Final = {
    1: "boolean", 2: "string", 3: "int", 4: "short", 5: "long", 6: "double", 7: "list", 8: "class", 9: "password",
}  # fmt: skip


class Resource(NamedTuple):
    """What a setting belongs to. The cluster's defaults are the broker resource without a name."""

    kind: int
    name: str

    def __str__(self) -> str:
        if self.kind == _BROKER:
            return f"broker {self.name}" if self.name else "the cluster's default"
        noun = {_TOPIC: "topic", _GROUP: "group", _CLIENT_METRICS: "client-metrics", _LOGGER: "loggers of broker"}
        return f"{noun[self.kind]} {self.name}"

    @property
    def own_source(self) -> str:
        """How a value is marked that was set on this very resource."""
        if self.kind == _BROKER:
            return "broker" if self.name else "cluster"
        return {_TOPIC: "topic", _GROUP: "group", _CLIENT_METRICS: "client-metrics", _LOGGER: "logger"}[self.kind]

    @property
    def broker(self) -> int:
        """Whom to ask: a broker's own settings are known to that broker alone."""
        return int(self.name) if self.kind in (_BROKER, _LOGGER) and self.name else -1


def _resource(arguments: Arguments) -> tuple[Resource, list[str]]:
    """The resource, and the words that follow it. Kafka's --entity-type/--entity-name/--topic/--broker work as well."""
    words = arguments.texts("resource")
    for noun in ("topic", "broker", "group"):
        given = arguments.optional(noun)
        if given is not None:
            return _named(noun, given), words
    kind = arguments.optional("entity_type")
    if kind is not None:
        if arguments.flag("entity_default"):
            return _named("cluster-default", None), words
        return _named(kind, arguments.optional("entity_name")), words
    if not words:
        raise UsageError(
            "RESOURCE is missing: topic NAME, broker ID, broker-loggers ID, cluster-default, group NAME or "
            "client-metrics NAME"
        )
    if words[0] == "cluster-default":
        return _named(words[0], None), words[1:]
    return _named(words[0], words[1] if len(words) > 1 else None), words[2:]


def _named(kind: str, name: str | None) -> Resource:
    if kind not in KINDS:
        meant = "" if name is None else suggestion(kind, KINDS)  # one word alone was meant as the name
        if meant:
            raise UsageError(f"{kind!r} has no settings{meant}")
        raise UsageError(
            f"say what {kind} is: topic {kind}, group {kind} or client-metrics {kind}; or broker ID, "
            "broker-loggers ID, cluster-default"
        )
    code = KINDS[kind]
    if kind == "cluster-default":
        return Resource(code, "")
    if name is None:
        raise UsageError(f"{kind} NAME: the name is missing")
    if code in (_BROKER, _LOGGER) and not name.isdigit():
        raise UsageError(f"{kind} {name}: a broker goes by its number (`ottla cluster info`)")
    return Resource(code, name)


def describe(arguments: Arguments) -> int:
    resource, names = _resource(arguments)
    with cluster(arguments) as server:
        entries = _entries(server, resource, documentation=arguments.flag("docs"), synonyms=arguments.flag("synonyms"))
    if names:
        unknown = [name for name in names if name not in {entry.name for entry in entries}]
        if unknown:
            raise UsageError(
                f"{unknown[0]} is no setting of {resource}{suggestion(unknown[0], [e.name for e in entries])}"
            )
        entries = [entry for entry in entries if entry.name in names]
    elif not arguments.flag("all"):
        entries = [entry for entry in entries if SOURCES.get(entry.config_source) == resource.own_source]
    entries = sorted(entries, key=lambda entry: entry.name)
    if output(arguments) == "json":
        show_json([_document(entry) for entry in entries])
        return 0
    if not entries:
        print(f"{resource} has no settings of its own; --all shows the values it gets from elsewhere")
        return 0
    _show_table(entries, arguments)
    return 0


def _entries(server: Cluster, resource: Resource, *, documentation: bool, synonyms: bool) -> list[Entry]:
    from ottla.client import admin
    from ottla.client.errors import KafkaError

    if resource.broker >= 0:
        _learn_brokers(server, resource)
    results = admin.describe_configs(
        server, resource.kind, [resource.name], documentation=documentation, synonyms=synonyms, broker=resource.broker
    )
    (entries,) = results.values()
    if isinstance(entries, KafkaError):
        raise entries
    return entries


def _learn_brokers(server: Cluster, resource: Resource) -> None:
    from ottla.cli.failures import Failure

    server.metadata([])
    if resource.broker not in server.brokers:
        there = ", ".join(map(str, sorted(server.brokers)))
        raise Failure(f"{resource}: the cluster has no such broker; it has {there}")


def _show_table(entries: list[Entry], arguments: Arguments) -> None:
    columns = ["NAME", "VALUE", "SOURCE", "TYPE"]
    if arguments.flag("synonyms"):
        columns.append("SYNONYMS")
    if arguments.flag("docs"):
        columns.append("DOCUMENTATION")
    table = Table(*columns)
    for entry in entries:
        cells = [entry.name, _value(entry), _source(entry), TYPES.get(entry.config_type, "-")]
        if arguments.flag("synonyms"):
            cells.append(", ".join(f"{s.name}={s.value} ({SOURCES.get(s.source, '-')})" for s in entry.synonyms))
        if arguments.flag("docs"):
            cells.append(entry.documentation or "")
        table.add(*cells)
    show(table, "table")


def _value(entry: Entry) -> str:
    if entry.is_sensitive:
        return "(hidden)"
    return "-" if entry.value is None else entry.value


def _source(entry: Entry) -> str:
    source = SOURCES.get(entry.config_source, str(entry.config_source))
    return f"{source}, read-only" if entry.read_only else source


def _document(entry: Entry) -> Json:
    document: dict[str, Json] = {
        "name": entry.name,
        "value": entry.value,
        "source": SOURCES.get(entry.config_source, str(entry.config_source)),
        "type": TYPES.get(entry.config_type),
        "read_only": entry.read_only,
        "sensitive": entry.is_sensitive,
    }
    if entry.synonyms:
        document["synonyms"] = [
            {"name": s.name, "value": s.value, "source": SOURCES.get(s.source, str(s.source))} for s in entry.synonyms
        ]
    if entry.documentation:
        document["documentation"] = entry.documentation
    return document


def _change(arguments: Arguments, resource: Resource, changes: list[ConfigChange], done: str) -> int:
    from ottla.client import admin

    with cluster(arguments) as server:
        if resource.broker >= 0:
            _learn_brokers(server, resource)
        admin.alter_configs(server, resource.kind, resource.name, changes, validate_only=arguments.flag("dry_run"))
    print(f"would change {resource}" if arguments.flag("dry_run") else f"{resource}: {done}")
    return 0


def _set(arguments: Arguments) -> int:
    return _with_values(arguments, operation=0, verb="set")


def _append(arguments: Arguments) -> int:
    return _with_values(arguments, operation=2, verb="appended")


def _subtract(arguments: Arguments) -> int:
    return _with_values(arguments, operation=3, verb="subtracted")


def _with_values(arguments: Arguments, operation: int, verb: str) -> int:
    from ottla.client.admin import ConfigChange

    resource, words = _resource(arguments)
    values = settings(words)
    if not values:
        raise UsageError("NAME=VALUE is missing: which setting, and what to make of it?")
    changes = [ConfigChange(name, operation, value) for name, value in values.items()]
    return _change(arguments, resource, changes, f"{verb} {', '.join(words)}")


def delete(arguments: Arguments) -> int:
    from ottla.client.admin import DELETE, ConfigChange

    resource, names = _resource(arguments)
    if not names:
        raise UsageError("NAME is missing: which setting shall go back to its default?")
    changes = [ConfigChange(name, DELETE) for name in names]
    return _change(arguments, resource, changes, f"back to the default: {', '.join(names)}")


def alter(arguments: Arguments) -> int:
    """As kafka-configs says it: --alter --entity-type topics --entity-name orders --add-config a=1,b=[x,y]."""
    from ottla.client.admin import DELETE, SET, ConfigChange

    resource, _ = _resource(arguments)
    added = [word for text in arguments.texts("add_config") for word in split_config_list(text)]
    deleted = [word.strip() for text in arguments.texts("delete_config") for word in text.split(",")]
    changes = [ConfigChange(name, SET, value) for name, value in settings(added).items()]
    changes += [ConfigChange(name, DELETE) for name in deleted]
    if not changes:
        raise UsageError("nothing to alter: give --add-config NAME=VALUE,... or --delete-config NAME,...")
    return _change(arguments, resource, changes, ", ".join([*added, *(f"{name} deleted" for name in deleted)]))


def split_config_list(text: str) -> list[str]:
    """`a=1,b=[x,y]`: commas inside square brackets belong to the value, the brackets do not."""
    words: list[str] = []
    depth, word = 0, ""
    for char in text:
        if char == "[" and depth == 0:
            depth = 1
        elif char == "]" and depth == 1:
            depth = 0
        elif char == "," and depth == 0:
            words.append(word)
            word = ""
        else:
            word += char
    words.append(word)
    return [word for word in words if word.strip()]


_RESOURCE = Argument(
    "RESOURCE",
    help="topic NAME, broker ID, broker-loggers ID, cluster-default, group NAME or client-metrics NAME.",
    many=True,
    required=False,
)
_KAFKAS = (
    Option("--entity-type", value="KIND", help="As in kafka-configs.", hidden=True),
    Option("--entity-name", value="NAME", help="As in kafka-configs.", hidden=True),
    Option("--entity-default", help="As in kafka-configs.", hidden=True),
    Option("--topic", value="NAME", help="As in kafka-configs.", hidden=True),
    Option("--broker", value="ID", help="As in kafka-configs.", hidden=True),
    Option("--group", value="NAME", help="As in kafka-configs.", hidden=True),
)
_DRY_RUN = Option("--dry-run", "--validate-only", help="Check only; change nothing.")

COMMANDS = (
    Command(
        "describe",
        describe,
        summary="Show settings: those that were changed, or with --all every one with its source.",
        arguments=(_RESOURCE,),
        form="RESOURCE [NAME...]",
        options=(
            Option("--all", "-a", help="Also what comes from defaults, from the file and from the cluster."),
            Option("--docs", help="With what each setting means."),
            Option("--synonyms", help="With the names under which the value was looked for, in order."),
            *_KAFKAS,
            *SHOW,
        ),
        examples=(
            ("What was changed on a topic", "ottla configs describe topic orders"),
            (
                "One setting, and where its value comes from",
                "ottla configs describe topic orders retention.ms --synonyms",
            ),
            ("Everything broker 1 runs with, explained", "ottla configs describe broker 1 --all --docs"),
        ),
        aliases=("get", "list"),
    ),
    Command(
        "set",
        _set,
        summary="Set one or more settings.",
        arguments=(_RESOURCE,),
        form="RESOURCE NAME=VALUE...",
        options=(*_KAFKAS, _DRY_RUN, *REACH),
        examples=(
            ("Keep records for a day", "ottla configs set topic orders retention.ms=86400000"),
            ("For all brokers", "ottla configs set cluster-default log.retention.ms=86400000"),
            ("For one broker", "ottla configs set broker 1 log.cleaner.threads=2"),
            (
                "More in its log, until it stops",
                "ottla configs set broker-loggers 1 ottla.broker.replicas=DEBUG",
            ),
        ),
    ),
    Command(
        "delete",
        delete,
        summary="Take settings back to their defaults.",
        arguments=(_RESOURCE,),
        form="RESOURCE NAME...",
        options=(*_KAFKAS, _DRY_RUN, *REACH),
        examples=(("", "ottla configs delete topic orders retention.ms"),),
        aliases=("reset", "unset"),
    ),
    Command(
        "append",
        _append,
        summary="Add values to settings that are lists.",
        arguments=(_RESOURCE,),
        form="RESOURCE NAME=VALUE...",
        options=(*_KAFKAS, _DRY_RUN, *REACH),
        examples=(("Compact as well as delete", "ottla configs append topic orders cleanup.policy=compact"),),
    ),
    Command(
        "subtract",
        _subtract,
        summary="Take values out of settings that are lists.",
        arguments=(_RESOURCE,),
        form="RESOURCE NAME=VALUE...",
        options=(*_KAFKAS, _DRY_RUN, *REACH),
        examples=(("Compact no longer", "ottla configs subtract topic orders cleanup.policy=compact"),),
    ),
    Command(
        "alter",
        alter,
        summary="Set and delete in one go, with the flags of kafka-configs.",
        arguments=(_RESOURCE,),
        form="RESOURCE",
        options=(
            Option("--add-config", value="NAME=VALUE,...", many=True, help="Settings; [a,b] keeps a list together."),
            Option("--delete-config", value="NAME,...", many=True, help="Settings that go back to their defaults."),
            *_KAFKAS,
            _DRY_RUN,
            *REACH,
        ),
        examples=(
            (
                "As with kafka-configs",
                "ottla configs --alter --entity-type topics --entity-name orders --add-config retention.ms=1000",
            ),
        ),
    ),
)
