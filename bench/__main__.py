"""`python -m bench`: runs the workloads, writes the table, and fails when a target is missed."""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

from confluent_kafka import KafkaException

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.kafka_jars import JarsMissing, fetch_jars
from bench.machine import busy_share, facts
from bench.measures import Failure, Measure
from bench.report import document, summary, table
from bench.servers import REPOSITORY, ApacheKafka, ServerFailed, raise_file_limit
from bench.workloads import (
    cluster_failover,
    cluster_idle,
    cluster_many_partitions,
    cluster_produce,
    cluster_ready,
    cluster_rolling,
    commits,
    compaction,
    consume,
    groups,
    memory,
    produce,
    restart,
    round_trip,
    start,
    topics_list,
    transactions,
    unbatched,
)

# Those that start servers of their own come first: nothing else is alive while they run.
WORKLOADS: tuple[ModuleType, ...] = (
    start,
    cluster_ready,
    memory,
    restart,
    cluster_idle,
    cluster_failover,
    cluster_rolling,
    cluster_many_partitions,
    cluster_produce,
    produce,
    consume,
    round_trip,
    unbatched,
    topics_list,
    transactions,
    groups,
    commits,
    compaction,
)
PUBLISHED = REPOSITORY / "docs" / "BENCHMARKS.md"
RESULTS = REPOSITORY / "bench" / "results"
FAILURES = (ServerFailed, ToolFailed, KafkaException, OSError, TimeoutError)


class Control(ApacheKafka):
    """Apache Kafka in ottla's place: ratios must come out near 1.0, and how near tells the noise of the machine."""

    name = "Apache Kafka (control)"


def main() -> int:
    options = parse(sys.argv[1:])
    raise_file_limit()
    try:
        fetch_jars()
    except JarsMissing as missing:
        print(missing, file=sys.stderr)
        return 2
    chosen = [module for module in WORKLOADS if not options.only or short_name(module) in options.only]
    directory = Path(tempfile.mkdtemp(prefix="ottla-bench-", dir=options.dir))
    partitions = options.partitions or (1_000 if options.quick else 10_000)
    busy = busy_share()
    context = Context(directory, options.rounds, options.quick, partitions)
    if options.control:
        context.factories = (ApacheKafka, Control)
    try:
        measured, failures = run(context, chosen)
    finally:
        context.close()
        shutil.rmtree(directory, ignore_errors=True)
    candidate = context.factories[1].name
    methods = [(short_name(module), module.__doc__ or "") for module in chosen]
    page = document(
        measured,
        failures,
        rounds=options.rounds,
        facts=facts(busy),
        methods=methods,
        remark=remark(options),
        candidate=candidate,
    )
    publish(page, measured, failures, partial=options.partial)
    print(f"\n{table(measured, candidate)}\n{summary(measured, failures)}{remark(options)}")
    return exit_code(measured, failures)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench", description="ottla beside Apache Kafka, measured in one run.")
    names = [short_name(module) for module in WORKLOADS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="WORKLOAD", help=f"some of: {', '.join(names)}")
    parser.add_argument("--rounds", type=int, default=5, help="how often each workload runs on each server (default 5)")
    parser.add_argument("--quick", action="store_true", help="small amounts: shows that all works, not how fast")
    parser.add_argument("--partitions", type=int, help="partitions of the restart (default 10,000; quick 1,000)")
    parser.add_argument(
        "--control", action="store_true", help="a second Apache Kafka in ottla's place, to see the noise"
    )
    parser.add_argument("--dir", help="where the servers keep their data (default: the temporary directory)")
    options = parser.parse_args(arguments)
    # What was not asked for in full is no published result.
    options.partial = bool(options.only or options.quick or options.control or options.partitions or options.rounds < 3)
    return options


def run(context: Context, chosen: Sequence[ModuleType]) -> tuple[list[Measure], list[Failure]]:
    measured: list[Measure] = []
    failures: list[Failure] = []
    for module in chosen:
        began = time.monotonic()
        print(short_name(module), flush=True, file=sys.stderr)
        try:
            measured += module.run(context)
        except FAILURES as trouble:
            failures.append(Failure(short_name(module), str(trouble)))
            print(f"  failed: {trouble}", file=sys.stderr)
            context.close()
        print(f"  took {time.monotonic() - began:.0f} s", file=sys.stderr)
    return measured, failures


def remark(options: argparse.Namespace) -> str:
    if options.control:
        return "A control run: Apache Kafka on both sides, to see the noise."
    if options.quick:
        return "A quick run, not a result: Kafka is still cold, so that every ratio flatters ottla."
    return "A partial run, not a result." if options.partial else ""


def publish(page: str, measured: list[Measure], failures: list[Failure], *, partial: bool) -> None:
    """The published page is replaced by whole runs only; failures keep their full text in the raw results."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    raw = {"measures": [asdict(measure) for measure in measured], "failures": [asdict(failure) for failure in failures]}
    (RESULTS / "latest.json").write_text(json.dumps(raw, indent=1))
    target = RESULTS / PUBLISHED.name if partial else PUBLISHED
    target.write_text(page)
    print(f"written: {os.path.relpath(target, REPOSITORY)}")


def exit_code(measured: Sequence[Measure], failures: Sequence[Failure]) -> int:
    """A run that measured nothing has shown nothing."""
    missed = any(measure.reached is False for measure in measured)
    return 1 if failures or missed or not measured else 0


def short_name(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


if __name__ == "__main__":
    sys.exit(main())
