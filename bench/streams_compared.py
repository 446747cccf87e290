"""One streams application after the other over the same input, Java's and ours in turn."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.context import Context
from bench.measures import Measure, Metric, Target, Trial, measures
from bench.rounds import interleaved
from bench.servers import Server
from bench.streams_runs import Topics, java_application, observed, ottla_application, running, steady

PARTITIONS = 2
MOST_ROUNDS = 3
QUICK_SHARE = 20


class Contender(NamedTuple):
    name: str
    command: Callable[[str, Server, Path, Topics], list[str]]


def java(what: str) -> Contender:
    return Contender("Kafka Streams", partial(java_application, what))


def ottla(file: str) -> Contender:
    def command(name: str, server: Server, state: Path, topics: Topics) -> list[str]:
        return ottla_application(file, server, state)

    return Contender("ottla", command)


class Case(NamedTuple):
    title: str
    what: str
    """As the Java application calls it."""
    file: str
    lines: int
    target: Target


def compared(context: Context, server: Server, case: Case, source: str, table: str = "") -> list[Measure]:
    metrics = (
        Metric("rate", "lines per second", "1/s", case.target),
        Metric("cpu", "application CPU per million lines", "s"),
    )
    lines = context.amount(case.lines, case.lines // QUICK_SHARE)
    one = partial(trial, context, server, source, table, lines)
    rounds = 1 if context.quick else min(context.rounds, MOST_ROUNDS)
    return measures(f"streams, {case.title}", metrics, interleaved((java(case.what), ottla(case.file)), rounds, one))


def trial(context: Context, server: Server, source: str, table: str, lines: int, contender: Contender) -> Trial:
    with context.topic(server, PARTITIONS, kept=True) as target:
        name = f"streams-{target}"
        topics = Topics(source, target, table)
        log = context.directory / f"{name}.log"
        command = contender.command(name, server, context.directory / name, topics)
        with running(command, name, topics, log) as process:
            rate, cpu = steady(observed(process, server, name, source, PARTITIONS, lines, log), lines)
    return {"rate": rate, "cpu": cpu}
