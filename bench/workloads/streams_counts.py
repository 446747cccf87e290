"""Java's Kafka Streams beside ottla's streams on Spark, both on one ottla node: words counted, and lines by window.

Both write their output exactly once (exactly_once_v2), with two threads or local[*] on 2 cores, and the defaults
otherwise. The input of 2 partitions lies in the topic before the application starts: lines of five words out of 10,000
(and 1,000 keys, 5,000 lines per second of event time, for the windows of 10 s). The rate is that of committed input
lines after the first third, until two million lines of words, or twelve million for the windows, are committed. Words
are split by a column expression once, by Python callables once.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.context import Context
from bench.measures import Measure, Metric, Trial, measures, ratio_at_least
from bench.rounds import interleaved
from bench.servers import Ottla, Server
from bench.streams_runs import feed, java_application, observed, ottla_application, running, steady

PARTITIONS = 2
MOST_ROUNDS = 3
Command = Callable[[str, Server, Path, str, str], list[str]]


class Contender(NamedTuple):
    name: str
    command: Command


def java(what: str) -> Contender:
    return Contender("Kafka Streams", partial(java_application, what))


def ottla(file: str) -> Contender:
    def command(name: str, server: Server, state: Path, source: str, target: str) -> list[str]:
        return ottla_application(file, server, state)

    return Contender("ottla", command)


class Case(NamedTuple):
    title: str
    what: str
    """As the Java application calls it."""
    file: str
    lines: int
    bound: float


CASES = (
    Case("words, column expressions", "words", "words.py", 2_000_000, 2.0),
    Case("words, Python callables", "words", "words_in_python.py", 2_000_000, 0.5),
    Case("windows, column expressions", "windows", "windows.py", 12_000_000, 2.0),
)
QUICK_SHARE = 20


def run(context: Context) -> list[Measure]:
    server = context.new_server(Ottla)
    server.start()
    found = []
    with context.topic(server, PARTITIONS, kept=True) as source:
        most = max(case.lines for case in CASES)
        feed(server, source, context.amount(most, most // QUICK_SHARE), PARTITIONS)
        for case in CASES:
            metrics = (
                Metric("rate", "lines per second", "1/s", ratio_at_least(case.bound)),
                Metric("cpu", "application CPU per million lines", "s"),
            )
            lines = context.amount(case.lines, case.lines // QUICK_SHARE)
            one = partial(trial, context, server, source, lines)
            rounds = 1 if context.quick else min(context.rounds, MOST_ROUNDS)
            taken = interleaved((java(case.what), ottla(case.file)), rounds, one)
            found += measures(f"streams, {case.title}", metrics, taken)
    context.discard(server)
    return found


def trial(context: Context, server: Server, source: str, lines: int, contender: Contender) -> Trial:
    with context.topic(server, PARTITIONS, kept=True) as target:
        name = f"counts-{target}"
        state = context.directory / name
        log = context.directory / f"{name}.log"
        command = contender.command(name, server, state, source, target)
        with running(command, name, source, target, log) as process:
            rate, cpu = steady(observed(process, server, name, source, PARTITIONS, lines, log), lines)
    return {"rate": rate, "cpu": cpu}
