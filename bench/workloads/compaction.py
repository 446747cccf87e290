"""How fast the cleaner works through a log, and what producers notice of it.

One partition is filled with 1 KB records (uncompressed, 16 KiB batches, each of 100,000 keys about ten times) and made
compacted. From then until the cleaner's checkpoint has reached the active segment, the closed segments' bytes are
counted as cleaned: reading them twice and writing what stays is included. A second process sends 500 single-record
Produce requests a second to another topic, first in peace, then meanwhile.
"""

import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, Target, Trial, measures, value_at_most
from bench.probing import probe
from bench.process_cost import cpu_of
from bench.rounds import interleaved
from bench.servers import Server, settle

NAME = "compaction"
METRICS = (
    Metric("rate", "cleaned", "MB/s", Target(100, of_ratio=False, at_least=True)),
    Metric("cpu", "server CPU per GB", "s"),
    Metric("quiet", "acknowledged in peace, p99", "ms"),
    Metric("busy", "acknowledged meanwhile, p99", "ms"),
    Metric("slower", "p99 meanwhile : in peace", "", value_at_most(2.0)),
    Metric("p50", "acknowledged meanwhile, p50", "ms"),
    Metric("kept", "bytes kept", "%"),
)
KEYS = 100_000
RECORD_SIZE = 1000
SEGMENT_BYTES = 100_000_000
PROBE_RATE = 500
NODE_ID = "1"
BACKOFF_MS = 100
DEFAULT_BACKOFF_SECONDS = 15
PATIENCE_SECONDS = 300.0
POLL_SECONDS = 0.02


def run(context: Context) -> list[Measure]:
    records = context.amount(1_200_000, 320_000)
    taken = interleaved(context.pair(), context.rounds, trial(context, records), warmups=context.amount(1, 0))
    return measures(NAME, METRICS, taken)


def trial(context: Context, records: int) -> Callable[[Server], Trial]:
    def one(server: Server) -> Trial:
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        alter(admin, ResourceType.BROKER, NODE_ID, {"log.cleaner.backoff.ms": str(BACKOFF_MS)})
        altered = time.monotonic()
        with context.topic(server, 1) as probed, context.topic(server, 1) as topic:
            alter(admin, ResourceType.TOPIC, topic, {"segment.bytes": str(SEGMENT_BYTES)})
            fill(server, topic, records)
            settle()
            with probe(server, probed, PROBE_RATE) as in_peace:
                # Not before the pause that was under way when its length was changed is over.
                time.sleep(max(context.amount(8, 3), altered + DEFAULT_BACKOFF_SECONDS - time.monotonic()))
            log = server.directory / "data" / f"{topic}-0"
            closed = sorted(log.glob("*.log"))[:-1]
            size = sum(path.stat().st_size for path in closed)
            active = max(int(path.stem) for path in log.glob("*.log"))
            before = cpu_of(server.pid)
            with probe(server, probed, PROBE_RATE) as meanwhile:
                began = time.perf_counter()
                policy = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
                alter(admin, ResourceType.TOPIC, topic, policy)
                wait_until_clean(server.directory / "data", topic, active)
                seconds = time.perf_counter() - began
            cpu = cpu_of(server.pid).since(before)
            kept = sum(path.stat().st_size for path in log.glob("*.log") if int(path.stem) < active)
        return {
            "rate": size / 1e6 / seconds,
            "cpu": cpu.total / (size / 1e9),
            "quiet": in_peace["p99"] * 1e3,
            "busy": meanwhile["p99"] * 1e3,
            "slower": meanwhile["p99"] / in_peace["p99"],
            "p50": meanwhile["p50"] * 1e3,
            "kept": kept / size * 100,
        }

    return one


def alter(admin: AdminClient, kind: ResourceType, name: str, values: dict[str, str]) -> None:
    entries = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in values.items()]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(PATIENCE_SECONDS)


def fill(server: Server, topic: str, records: int) -> None:
    """The same records for both servers."""
    producer = Producer(
        {
            "bootstrap.servers": server.bootstrap,
            "linger.ms": 50,
            "batch.size": 16384,
            "queue.buffering.max.messages": 50_000,
        }
    )
    dice = Random(7)
    value = dice.randbytes(RECORD_SIZE)
    for _ in range(records):
        key = b"key-%012d" % dice.randrange(KEYS)
        while True:
            try:
                producer.produce(topic, value, key, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(PATIENCE_SECONDS):
        raise ToolFailed(f"{server.name} did not take all records")


def wait_until_clean(data: Path, topic: str, offset: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            lines = (data / "cleaner-offset-checkpoint").read_text().splitlines()[2:]
        except FileNotFoundError:
            lines = []
        if any(line.split()[:2] == [topic, "0"] and int(line.split()[2]) >= offset for line in lines):
            return
        time.sleep(POLL_SECONDS)
    raise ToolFailed(f"{topic} is not clean after {PATIENCE_SECONDS} s")
