"""`python -m bench`: runs the workloads, writes the table, and fails when a target is missed."""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from confluent_kafka import KafkaException

from bench import ledger
from bench.context import Context
from bench.java_tools import ToolFailed
from bench.kafka_jars import JarsMissing, fetch_jars
from bench.ledger import Entry, Ledger
from bench.machine import busy_share, commit, facts
from bench.measures import Measure
from bench.report import published, summary, table
from bench.servers import REPOSITORY, ApacheKafka, Ottla, ServerFailed, raise_file_limit
from bench.workloads import (
    acls,
    cluster_failover,
    cluster_idle,
    cluster_many_partitions,
    cluster_produce,
    cluster_ready,
    cluster_rolling,
    commits,
    compaction,
    connect,
    connect_cdc,
    connect_rates,
    connect_takeover,
    consume,
    encrypted,
    first_test,
    groups,
    guarded,
    logins,
    memory,
    metrics,
    mirror,
    monitored,
    produce,
    quotas,
    registry,
    registry_checks,
    registry_failover,
    restart,
    round_trip,
    schema_validation,
    secure_start,
    sql_history,
    sql_idle,
    sql_push,
    sql_select,
    sql_server,
    sql_windows,
    start,
    streams_counts,
    streams_joins,
    streams_keys,
    streams_latency,
    streams_sessions,
    streams_source,
    streams_start,
    streams_state,
    topics_list,
    transactions,
    unbatched,
)

# Those that start servers of their own come first: nothing else is alive while they run.
WORKLOADS: tuple[ModuleType, ...] = (
    start,
    secure_start,
    cluster_ready,
    first_test,
    memory,
    metrics,
    restart,
    cluster_idle,
    cluster_failover,
    cluster_rolling,
    cluster_many_partitions,
    cluster_produce,
    encrypted,
    guarded,
    monitored,
    acls,
    logins,
    streams_source,
    streams_counts,
    streams_joins,
    streams_sessions,
    streams_state,
    streams_latency,
    streams_start,
    streams_keys,
    mirror,
    sql_select,
    sql_windows,
    sql_history,
    sql_idle,
    connect_cdc,
    connect_rates,
    connect_takeover,
    connect,
    registry,
    registry_checks,
    registry_failover,
    schema_validation,
    sql_server,
    sql_push,
    produce,
    consume,
    round_trip,
    unbatched,
    quotas,
    topics_list,
    transactions,
    groups,
    commits,
    compaction,
)
PUBLISHED = REPOSITORY / "docs" / "BENCHMARKS.md"
LEDGER = REPOSITORY / "bench" / "ledger.json"
FAILURES = (ServerFailed, ToolFailed, KafkaException, OSError, TimeoutError)


class Control(ApacheKafka):
    """Apache Kafka in ottla's place: ratios must come out near 1.0, and how near tells the noise of the machine."""

    name = "Apache Kafka (control)"


def main() -> int:
    options = parse(sys.argv[1:])
    if options.ottla is not None:
        Ottla.executable = options.ottla.absolute()
    raise_file_limit()
    try:
        fetch_jars()
    except JarsMissing as missing:
        print(missing, file=sys.stderr)
        return 2
    chosen = [module for module in WORKLOADS if not options.only or short_name(module) in options.only]
    directory = Path(tempfile.mkdtemp(prefix="ottla-bench-", dir=options.dir))
    partitions = options.partitions or (1_000 if options.quick else 10_000)
    context = Context(directory, options.rounds, options.quick, partitions)
    if options.control:
        context.factories = (ApacheKafka, Control)
    try:
        entries = run(context, chosen)
    finally:
        context.close()
        shutil.rmtree(directory, ignore_errors=True)
    if not options.partial:
        publish(entries)
    measured = [measure for entry in entries.values() for measure in entry.measures]
    unfinished = [name for name, entry in entries.items() if not entry.finished]
    print(f"\n{table(measured, context.factories[1].name)}\n{summary(measured, unfinished)}{remark(options)}")
    return exit_code(measured, unfinished)


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
    parser.add_argument("--ottla", type=Path, help="the ottla to measure (default: the one of this environment)")
    parser.add_argument("--dir", help="where the servers keep their data (default: the temporary directory)")
    options = parser.parse_args(arguments)
    # What was not measured in full is no published result.
    options.partial = bool(options.quick or options.control or options.partitions or options.rounds < 3)
    return options


def run(context: Context, chosen: Sequence[ModuleType]) -> Ledger:
    entries: Ledger = {}
    for module in chosen:
        name, began, busy = short_name(module), time.monotonic(), busy_share()
        print(f"{name} ({busy:.0%} of the machine is in use)", flush=True, file=sys.stderr)
        measured: list[Measure] = []
        finished = True
        try:
            measured = module.run(context)
        except FAILURES as trouble:
            finished = False
            print(f"  failed: {trouble}", file=sys.stderr)
            context.close()
        day = time.strftime("%Y-%m-%d", time.gmtime())
        entries[name] = Entry(day, commit(), busy, context.rounds, tuple(facts()), tuple(measured), finished)
        print(f"  took {time.monotonic() - began:.0f} s", file=sys.stderr)
    return entries


def remark(options: argparse.Namespace) -> str:
    if options.control:
        return "A control run: Apache Kafka on both sides, to see the noise."
    if options.quick:
        return "A quick run, not a result: Kafka is still cold, so that every ratio flatters ottla."
    return "Too few rounds, or fewer partitions: not a result." if options.partial else ""


def publish(entries: Ledger) -> None:
    """What was measured in full takes the place of what was known of these workloads."""
    names = [short_name(module) for module in WORKLOADS]
    known = {**ledger.read(LEDGER), **entries}
    ledger.write(LEDGER, known, names)
    PUBLISHED.write_text(published(known, [(short_name(module), module.__doc__ or "") for module in WORKLOADS]))
    print(f"written: {os.path.relpath(PUBLISHED, REPOSITORY)}")


def exit_code(measured: Sequence[Measure], unfinished: Sequence[str]) -> int:
    """A run that measured nothing has shown nothing."""
    missed = any(measure.reached is False for measure in measured)
    return 1 if unfinished or missed or not measured else 0


def short_name(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


if __name__ == "__main__":
    sys.exit(main())
