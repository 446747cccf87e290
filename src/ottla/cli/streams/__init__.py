"""`ottla streams`: runs applications on Spark, shows what they are and how they do, takes them back to the start."""

from typing import Final

from ottla.cli.parser import Argument, Command, Option
from ottla.cli.reach import BOOTSTRAP, COMMAND_CONFIG, JSON, OUTPUT, REACH, TIMEOUT
from ottla.cli.streams.prepare import prepare
from ottla.cli.streams.reset import reset
from ottla.cli.streams.run import run, views
from ottla.cli.streams.status import status, top
from ottla.cli.streams.topologies import describe, explain, package

FILE: Final = Argument("FILE", help="A Python file that defines `app`, a StreamsApp.")
OPTIONAL_FILE: Final = Argument("FILE", help="A Python file that defines `app`, a StreamsApp.", required=False)
APPLICATION_ID: Final = Option(
    "--application-id", value="ID", help="Another name: its own group, internal topics and state."
)
STATE_DIR: Final = Option(
    "--state-dir", value="DIR", help="Where checkpoints, state and views lie; ./ottla-streams unless the file says it."
)
PROPERTY: Final = Option(
    "--property",
    "-X",
    value="NAME=VALUE",
    many=True,
    help="A setting of Kafka Streams, such as commit.interval.ms=100; spark.* goes to Spark.",
)
APP: Final = (BOOTSTRAP, COMMAND_CONFIG, APPLICATION_ID, STATE_DIR, PROPERTY)
RUNNING: Final = (
    *APP,
    Option("--once", help="Process what is there now, then end."),
    Option("--master", value="URL", help="Where Spark runs: local[4], spark://HOST:PORT, yarn; else local[*]."),
    Option("--queries-port", value="PORT", number=True, help="Serve stores over HTTP at 127.0.0.1:PORT."),
    Option("--watch", help="Start again whenever the file, or a module beside it, has changed."),
    Option("--verbose", "-v", help="Show what Spark logs instead of writing it to a file."),
)
RESETTING: Final = (
    APPLICATION_ID,
    STATE_DIR,
    PROPERTY,
    Option("--input-topics", value="TOPICS", many=True, help="Only these; all that it reads when none is named."),
    Option("--to-earliest", help="To the first record there is; the default."),
    Option("--to-latest", help="To the end: only what comes from now on is processed."),
    Option("--to-offset", value="OFFSET", number=True, help="To this offset."),
    Option("--to-datetime", value="TIME", help="To the first record not older, such as 2026-11-01T12:00:00Z."),
    Option("--by-duration", value="SPAN", help="To the first record of the last 30m, 2h, 7d."),
    Option("--shift-by", value="N", number=True, help="Forward by N records, or back when N is negative."),
    Option("--from-file", value="FILE", help="To the offsets in a file: TOPIC,PARTITION,OFFSET in each line."),
    Option("--execute", help="Do it."),
    Option("--dry-run", help="Only show it; the default."),
    Option("--force", help="Even if it seems to run."),
    OUTPUT,
    JSON,
)

COMMANDS: Final = (
    Command(
        "run",
        run,
        summary="Run an application on Spark, for ever or until what is there now has been processed.",
        details="Needs the extra `streams` (pyspark) and Java 17 or newer. Results are written exactly once.",
        arguments=(FILE,),
        options=RUNNING,
        examples=(
            ("Kafka's quick start", "ottla streams run examples/streams/word_count.py"),
            ("what is there now, then end", "ottla streams run word_count.py --once"),
            ("with its stores to be queried", "ottla streams run word_count.py --queries-port 7070"),
            ("a second version beside the first", "ottla streams run word_count.py --application-id word-count-2"),
        ),
    ),
    Command(
        "views",
        views,
        summary="Answer for the stores of an application, whether it runs or not.",
        details="Follows its changelogs by itself: without Spark, beside the application, as often as wanted. Answers "
        "hold what is committed.",
        arguments=(FILE,),
        options=(
            *APP,
            Option("--queries-port", value="PORT", number=True, help="Serve at 127.0.0.1:PORT; 8089 unless told."),
            Option("--views-dir", value="DIR", help="Keep the views here for the next time; made anew without it."),
        ),
        examples=(
            ("stays while the application restarts", "ottla streams views word_count.py --queries-port 8089"),
            ("with a folder, so that it is there at once", "ottla streams views word_count.py --views-dir views"),
        ),
    ),
    Command(
        "package",
        package,
        summary="Put an application and all that it needs into one archive, for the machines of a Spark cluster.",
        details="The application's file, what it has imported from its folder, ottla and its packages as they are on "
        "this machine, without Spark. `ottla streams run NAME.zip` runs it, spark-submit does too.",
        arguments=(FILE,),
        options=(
            Option("--output-file", "-o", value="FILE", help="APPLICATION_ID.zip in this folder unless told."),
            Option("--add", value="PATH", many=True, help="A file or folder that goes beside the application's file."),
            Option(
                "--with-package", value="NAME", many=True, help="A package of this environment, with what it needs."
            ),
            Option("--bare", help="Only the application and ottla: the machines have pyarrow and the rest already."),
        ),
        examples=(
            ("", "ottla streams package word_count.py"),
            ("with a model beside it", "ottla streams package score.py --add model.json --with-package scikit-learn"),
        ),
    ),
    Command(
        "describe",
        describe,
        summary="Show the topology as text, equal to that of Java's Topology.describe().",
        arguments=(FILE,),
        options=APP,
        examples=(("", "ottla streams describe word_count.py"),),
    ),
    Command(
        "explain",
        explain,
        summary="Show which Spark operator each node of the topology becomes, and why.",
        arguments=(FILE,),
        options=APP,
        examples=(("what is native and what runs Python", "ottla streams explain word_count.py"),),
    ),
    Command(
        "status",
        status,
        summary="Show whether applications run and how far they are behind.",
        arguments=(OPTIONAL_FILE,),
        options=(*APP, TIMEOUT, OUTPUT, JSON),
        examples=(
            ("every application", "ottla streams status"),
            ("one of them", "ottla streams status --application-id word-count"),
        ),
    ),
    Command(
        "top",
        top,
        summary="Show what the applications that run on this machine do, again and again.",
        options=(
            STATE_DIR,
            Option("--interval", value="SECONDS", number=True, help="How long from look to look; 2 unless said."),
            Option("--times", "-n", value="N", number=True, help="So many looks, then end."),
            OUTPUT,
            JSON,
        ),
        examples=(("until Ctrl-C", "ottla streams top"), ("one look", "ottla streams top -n 1")),
    ),
    Command(
        "prepare",
        prepare,
        summary="Do once for this installation of Spark what makes applications start sooner.",
        details="Runs small applications against a broker of its own and keeps an archive of the classes that the JVM "
        "loaded in ~/.cache/ottla. `ottla streams run` does it by itself after its first batch, in the background.",
        options=(Option("--again", help="Even if it was done before."),),
        examples=(("", "ottla streams prepare"),),
    ),
    Command(
        "reset",
        reset,
        summary="Take a stopped application back to the start. Shows what it would do unless --execute is given.",
        details="Moves its input offsets; deletes its internal topics, batch markers, checkpoints, state and views. "
        "Output topics stay.",
        arguments=(OPTIONAL_FILE,),
        options=(
            *REACH,
            *RESETTING,
        ),
        examples=(
            ("process everything again: first look, then do", "ottla streams reset word_count.py"),
            ("", "ottla streams reset word_count.py --execute"),
            ("from noon on", "ottla streams reset word_count.py --to-datetime 2026-11-01T12:00:00Z --execute"),
            ("without its file", "ottla streams reset --application-id word-count --input-topics lines --execute"),
        ),
    ),
)
