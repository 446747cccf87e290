"""A rehearsal: small applications that between them use what applications use, so that the JVM sees its classes once.

What it has loaded when it ends it leaves in an archive (`pipelines.jvm`), which later ones map.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any, Final

from ottla.client import admin
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.producer import Producer
from ottla.pipelines import jvm
from ottla.pipelines.settings import session_settings
from ottla.streams.app import StreamsApp
from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Consumed, Grouped, Materialized, Produced, StreamJoined
from ottla.streams.expressions import value
from ottla.streams.serdes import Serdes
from ottla.streams.windows import JoinWindows, TimeWindows

MASTER: Final = "local[2]"
LINES: Final = "rehearsal-lines"
RESULTS: Final = "rehearsal-results"
DUMP_S: Final = 300.0
_TEXT: Final = Serdes.string
_CONSUMED: Final[Consumed[str, str]] = Consumed(_TEXT, _TEXT)


def rehearse(bootstrap: str, installation: jvm.Installation) -> None:
    """Against brokers that hold nothing of worth. Raises JvmFailed, OSError."""
    installation.folder.mkdir(parents=True, exist_ok=True)
    draft = installation.archive.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    jvm.begin(MASTER, session_settings(MASTER, {}), [f"-XX:ArchiveClassesAtExit={draft}"])
    _fill(bootstrap)
    with tempfile.TemporaryDirectory(prefix="ottla-rehearsal-") as folder:
        for number, build in enumerate((_words, _windows, _shouts, _joined)):
            builder = StreamsBuilder()
            build(builder)
            config = {"bootstrap.servers": bootstrap, "state.dir": folder}
            StreamsApp(f"rehearsal-{number}", builder.build(), **config).run(once=True, master=MASTER)
        jvm.end(DUMP_S)  # the archive is written while it ends
    if not draft.exists():
        raise jvm.JvmFailed(f"Java left no archive at {draft}")
    for former in installation.folder.glob("*.jsa"):
        former.unlink()
    draft.replace(installation.archive)


def _fill(bootstrap: str) -> None:
    with Cluster(parse_bootstrap(bootstrap)) as cluster:
        admin.create_topics(cluster, [admin.NewTopic(topic, 1, 1) for topic in (LINES, RESULTS)])
        producer = Producer(cluster)
        for number in range(100):
            producer.send(LINES, b"all streams lead to kafka", key=b"%d" % (number % 7))
        producer.flush()


def _words(builder: StreamsBuilder) -> None:
    words = builder.stream(LINES, _CONSUMED).flat_map_values(value.lower().split(r"\W+")).group_by(value)
    words.count(Materialized("counts")).to_stream().to(RESULTS, Produced(_TEXT, Serdes.long))


def _windows(builder: StreamsBuilder) -> None:
    grouped = builder.stream(LINES, _CONSUMED).filter(value.length() > 2).group_by_key(Grouped(_TEXT, _TEXT))
    counts = grouped.windowed_by(TimeWindows.of(1000, grace_ms=0)).count(Materialized("windows"))
    counts.to_stream().to(RESULTS, Produced(Serdes.time_windowed(_TEXT, 1000), Serdes.long))


def _shouts(builder: StreamsBuilder) -> None:
    shout: Callable[[Any], Any] = str.upper
    builder.stream(LINES, _CONSUMED).map_values(shout).to(RESULTS, Produced(_TEXT, _TEXT))


def _joined(builder: StreamsBuilder) -> None:
    lines = builder.stream(LINES, _CONSUMED)
    options = StreamJoined(_TEXT, _TEXT, _TEXT)
    both = lines.join(lines, lambda one, other: one + other, JoinWindows.of(100, grace_ms=0), options)
    both.to(RESULTS, Produced(_TEXT, _TEXT))
