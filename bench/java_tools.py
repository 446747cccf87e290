"""Apache's own performance tools, run as they are, and what they print, read back."""

import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench.kafka_jars import JAVA_SOURCES, java_command

TOOL_PATIENCE_SECONDS = 600.0
PRODUCED = re.compile(
    r"^(?P<records>\d+) (?:steady state )?records sent, (?P<rate>[\d.]+) records/sec .*?, "
    r"(?P<mean>[\d.]+) ms avg latency, [\d.]+ ms max latency, (?P<p50>\d+) ms 50th, \d+ ms 95th, (?P<p99>\d+) ms 99th",
    re.MULTILINE,
)
LATENCY_MEAN = re.compile(r"^Avg latency: ([\d.]+) ms", re.MULTILINE)
TRANSACTED = re.compile(
    r"^(?P<transactions>\d+) transactions, (?P<seconds>[\d.]+) s, p50 (?P<p50>[\d.]+) ms, p99 (?P<p99>[\d.]+) ms$",
    re.MULTILINE,
)
LATENCY_PERCENTILES = re.compile(r"^Percentiles: 50th = (\d+), 99th = (\d+),", re.MULTILINE)


class ToolFailed(RuntimeError):
    """A tool stopped early, or its output was not understood."""


class ProducerRun(NamedTuple):
    """`rate` is records per second in the steady part; latencies in milliseconds."""

    rate: float
    mean: float
    p50: float
    p99: float


class LatencyRun(NamedTuple):
    mean: float
    p50: float
    p99: float


class TransactionRun(NamedTuple):
    """`rate` is transactions per second; latencies of one in milliseconds."""

    rate: float
    p50: float
    p99: float


def producer_performance(
    bootstrap: str, topic: str, records: int, size: int, warmup: int, config: Path | None = None
) -> ProducerRun:
    """The tool's defaults but for acks=all, which is the client's default anyway and is named to be seen; and what
    `config`, a file of client settings, says."""
    arguments = ["--topic", topic, "--num-records", str(records), "--record-size", str(size), "--throughput", "-1"]
    arguments += ["--warmup-records", str(warmup), "--bootstrap-server", bootstrap, "--command-property", "acks=all"]
    arguments += _configured(config)
    return read_producer_run(_run(java_command("org.apache.kafka.tools.ProducerPerformance", *arguments)), records)


def read_producer_run(output: str, records: int) -> ProducerRun:
    """The last summary is the steady one; the first tells whether every record was acknowledged."""
    found = list(PRODUCED.finditer(output))
    if not found or int(found[0]["records"]) != records:
        raise ToolFailed(f"ProducerPerformance did not report {records} acknowledged records:\n{output[-2000:]}")
    steady = found[-1]
    return ProducerRun(float(steady["rate"]), float(steady["mean"]), float(steady["p50"]), float(steady["p99"]))


def transactional_producer(
    bootstrap: str, topic: str, *, producers: int, warmup: int, transactions: int, records: int, size: int
) -> TransactionRun:
    """`warmup` and `transactions` are of each producer."""
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--transactional-id", topic]
    arguments += ["--producers", str(producers), "--warmup-transactions", str(warmup)]
    arguments += ["--transactions", str(transactions), "--records-per-transaction", str(records)]
    arguments += ["--record-size", str(size)]
    printed = _run(java_command(str(JAVA_SOURCES / "TransactionalProducer.java"), *arguments))
    return read_transaction_run(printed, transactions * producers)


def read_transaction_run(output: str, transactions: int) -> TransactionRun:
    found = TRANSACTED.search(output)
    if found is None or int(found["transactions"]) != transactions:
        raise ToolFailed(f"TransactionalProducer did not commit {transactions} transactions:\n{output[-2000:]}")
    return TransactionRun(transactions / float(found["seconds"]), float(found["p50"]), float(found["p99"]))


def consumer_performance(
    bootstrap: str, topic: str, records: int, *, groups: bool, config: Path | None = None
) -> float:
    """Records per second without the time to join. Without groups on both servers, our AssignedConsumer stands in."""
    tool = "org.apache.kafka.tools.ConsumerPerformance" if groups else str(JAVA_SOURCES / "AssignedConsumer.java")
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(records), "--hide-header"]
    arguments += _configured(config)
    # The source launcher takes the class path and the heap as any other start of java does.
    return read_consumer_rate(_run(java_command(tool, *arguments)), records)


def _configured(config: Path | None) -> list[str]:
    return [] if config is None else ["--command-config", str(config)]


def read_consumer_rate(output: str, records: int) -> float:
    """start, end, MB, MB/s, records, records/s, join ms, fetch ms, fetch MB/s, fetch records/s"""
    for line in output.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 10 and fields[4].isdigit():
            if int(fields[4]) < records:
                break
            return float(fields[9])
    raise ToolFailed(f"ConsumerPerformance did not read {records} records:\n{output[-2000:]}")


def end_to_end_latency(bootstrap: str, topic: str, records: int, size: int) -> LatencyRun:
    """Ends the tool when it has printed its result: what follows is an offset commit, which is not measured."""
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(records)]
    arguments += ["--producer-acks", "all", "--record-size", str(size)]
    command = java_command("org.apache.kafka.tools.EndToEndLatency", *arguments)
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as tool,
    ):
        lines: list[str] = []
        assert tool.stdout is not None
        for line in tool.stdout:
            lines.append(line)
            if line.startswith("Percentiles:"):
                break
        tool.kill()
        errors.seek(0)
        trouble = errors.read()
    return read_latency_run("".join(lines) + trouble)


def read_latency_run(output: str) -> LatencyRun:
    mean, percentiles = LATENCY_MEAN.search(output), LATENCY_PERCENTILES.search(output)
    if mean is None or percentiles is None:
        raise ToolFailed(f"EndToEndLatency did not finish:\n{output[-2000:]}")
    return LatencyRun(float(mean[1]), float(percentiles[1]), float(percentiles[2]))


def list_topics(bootstrap: str) -> None:
    _run(java_command("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", bootstrap, "--list"))


def java_version() -> str:
    printed = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    return printed.split('"')[1]


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TOOL_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired as late:
        raise ToolFailed(f"{_tool_name(command)} took more than {TOOL_PATIENCE_SECONDS:.0f} s") from late
    if done.returncode != 0:
        raise ToolFailed(f"{_tool_name(command)} failed:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return done.stdout


def _tool_name(command: list[str]) -> str:
    return Path(command[command.index("-cp") + 2]).name
