"""`ottla connect`: a Connect worker, and what a worker runs, ours or Java's."""

from typing import Final

from ottla.cli.connect.asking import list_connectors, logs, offsets, plugins, status, validate
from ottla.cli.connect.changing import create, delete, pause, restart, resume, stop
from ottla.cli.connect.redrive import redrive
from ottla.cli.connect.remote import REACH, SHOW
from ottla.cli.connect.run import run
from ottla.cli.connect.worker import worker
from ottla.cli.parser import Argument, Command, Option
from ottla.cli.reach import BOOTSTRAP, COMMAND_CONFIG
from ottla.cli.reach import SHOW as CLUSTER_SHOW

NAME: Final = Argument("NAME", help="A connector.")
NAMES: Final = Argument("NAME", help="Connectors.", many=True)
FILE: Final = Argument("FILE", help="JSON as POST or PUT takes it, or .properties; - is standard input.")

COMMANDS: Final = (
    Command(
        "worker",
        worker,
        of_file=True,
        summary="Start a worker, in front of any Kafka cluster. Ctrl-C or SIGTERM stops it.",
        details="""
It takes Kafka's connect-distributed.properties as it is, and connect-standalone.properties with the files of connectors
behind it; the word `worker` may be left out. Workers with one group.id share the connectors. All state is in the topics
that the file names, in Java's bytes: it goes on where Java's workers stopped. `ottla start` brings one along on port
8083.""",
        arguments=(Argument("FILE", help="Of the worker, then of connectors.", many=True, required=False),),
        options=(
            BOOTSTRAP,
            COMMAND_CONFIG,
            Option("--listen", value="URL", help="Where it answers. Default: http://127.0.0.1:8083, or the file's."),
            Option("--override", "-o", value="NAME=VALUE", many=True, help="A setting, as in the file."),
        ),
        examples=(
            ("As Java's was configured", "ottla connect config/connect-distributed.properties"),
            ("With connectors out of files", "ottla connect connect-standalone.properties file-source.properties"),
        ),
    ),
    Command(
        "list",
        list_connectors,
        summary="The connectors, what they do and where.",
        options=SHOW,
        examples=(("", "ottla connect list"), ("another cluster", "ottla connect list -u http://connect:8083")),
    ),
    Command(
        "create",
        create,
        summary="Create a connector, or change it if it is there.",
        arguments=(FILE,),
        options=(
            Option("--name", value="NAME", help="Where the file names none, or another one is wanted."),
            Option(
                "--state", value="STATE", choices=("RUNNING", "PAUSED", "STOPPED"), help="What a new one does first."
            ),
            *REACH,
        ),
        examples=(("", "ottla connect create orders-sink.json"),),
    ),
    Command(
        "status",
        status,
        summary="What a connector and its tasks do, and why not.",
        arguments=(NAME,),
        options=SHOW,
        examples=(("", "ottla connect status orders-sink"),),
    ),
    Command(
        "logs",
        logs,
        summary="Why a connector failed: its traces alone.",
        arguments=(NAME,),
        options=REACH,
        examples=(("", "ottla connect logs orders-sink"),),
    ),
    Command(
        "pause",
        pause,
        summary="Pause connectors.",
        arguments=(NAMES,),
        options=REACH,
        examples=(("", "ottla connect pause a b"),),
    ),
    Command(
        "resume",
        resume,
        summary="Go on with connectors.",
        arguments=(NAMES,),
        options=REACH,
        examples=(("", "ottla connect resume a b"),),
    ),
    Command(
        "stop",
        stop,
        summary="Stop connectors; their offsets can be changed then.",
        arguments=(NAMES,),
        options=REACH,
        examples=(("", "ottla connect stop orders-sink"),),
    ),
    Command(
        "restart",
        restart,
        summary="Start connectors again.",
        arguments=(NAMES,),
        options=(Option("--only-failed", help="Only those that have failed."), *REACH),
        examples=(("", "ottla connect restart orders-sink"),),
    ),
    Command(
        "delete",
        delete,
        summary="Delete connectors.",
        arguments=(NAMES,),
        options=REACH,
        examples=(("", "ottla connect delete orders-sink"),),
    ),
    Command(
        "offsets",
        offsets,
        summary="Where a connector stands; of a stopped one it can be set or forgotten.",
        arguments=(NAME,),
        options=(
            Option("--reset", help="Forget it: the connector begins anew."),
            Option("--set", value="FILE", help="JSON as PATCH /connectors/NAME/offsets takes it."),
            *SHOW,
        ),
        examples=(("", "ottla connect offsets orders-sink"), ("", "ottla connect offsets orders-sink --reset")),
    ),
    Command(
        "validate",
        validate,
        summary="Whether a config is any good, key by key.",
        arguments=(FILE,),
        options=SHOW,
        examples=(("", "ottla connect validate orders-sink.json"),),
    ),
    Command(
        "plugins",
        plugins,
        summary="The connectors, converters, transforms and predicates there are; the keys of one.",
        arguments=(Argument("NAME", help="A plug-in, for its keys.", required=False),),
        options=(Option("--all", help="Converters, transforms and predicates too."), *SHOW),
        examples=(("", "ottla connect plugins"), ("", "ottla connect plugins FileStreamSink")),
    ),
    Command(
        "run",
        run,
        summary="Run one connector without a worker, until Ctrl-C.",
        details="""
It stands in the same topics as with a worker (group.id connect-cluster), so one that is given to a worker later goes on
where it was. Do not run it in both places at once: the later one fences the earlier.""",
        arguments=(FILE,),
        options=(
            Option("--once", help="End when all that is there now is done."),
            Option("--group", value="NAME", default="connect-cluster", help="The group.id of the workers."),
            Option("--master", value="URL", default="local[*]", help="Of Spark."),
            Option("--state-dir", value="FOLDER", help="Where it keeps what may be lost. Default: a temporary one."),
            BOOTSTRAP,
            COMMAND_CONFIG,
        ),
        examples=(("", "ottla connect run orders-sink.json"), ("", "ottla connect run lines.json --once")),
    ),
    Command(
        "redrive",
        redrive,
        summary="Send dead letters once more, each once.",
        details="""
Back to the topic that each came from, as its headers tell (errors.deadletterqueue.context.headers.enable), or to the
one that --to names. Key, value and headers are as they were, without what Connect said about the failure. Which letters
were sent is remembered by the group connect-redrive-DLQ, in one transaction with them. With --connector they go past
the topic, into the target of a sink; those that it refuses once more stay.""",
        arguments=(Argument("DLQ", help="The topic of the dead letters."),),
        options=(
            Option(
                "--filter",
                value="CONDITION",
                many=True,
                help="topic, partition, offset, connector, stage, class, exception, message, key or value, then =, !=, "
                "~ or !~ (a pattern), then a text. All have to hold.",
            ),
            Option("--to", value="TOPIC", help="In place of the topics that they came from."),
            Option("--connector", value="FILE", help="Straight to the sink that this file describes, and to no topic."),
            Option("--dry-run", help="Show them only."),
            *CLUSTER_SHOW,
        ),
        examples=(
            ("What there is", "ottla connect redrive orders-dlq --dry-run"),
            ("Into the target, past the topic", "ottla connect redrive orders-dlq --connector orders-sink.json"),
            ("Those of one kind", "ottla connect redrive orders-dlq --filter stage=TASK_PUT --filter message~timeout"),
        ),
    ),
)
