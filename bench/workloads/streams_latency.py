"""How soon a result is there: 5,000 words a second, each counted, from the record's timestamp to its count being read.

One application with the defaults, `local[*]`, exactly once, one partition; its output is read with read_committed. A
count carries the timestamp of the latest word in it, so what is seen is the age of the newest word of a key. Measured
for 20 s after a warm-up of 20 s. Then the input pauses, and the CPU of the idle application is taken over 20 s, all of
its processes together.
"""

import random
import threading
import time
from statistics import quantiles

from confluent_kafka import Consumer, Producer

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, Trial, measures, value_at_most
from bench.process_cost import Meter
from bench.servers import Ottla, Server
from bench.streams_runs import VOCABULARY, Topics, ottla_application, running

METRICS = (
    Metric("p50", "record in to result out, p50", "ms", value_at_most(300)),
    Metric("p99", "record in to result out, p99", "ms", value_at_most(700)),
    Metric("idle", "idle application, CPU", "% of a core", value_at_most(2)),
)
RATE = 5_000
SETTLED_SECONDS = 5.0
START_SECONDS = 90.0
LOOK_SECONDS = 0.25


def run(context: Context) -> list[Measure]:
    server = context.new_server(Ottla)
    server.start()
    taken = [trial(context, server) for _ in range(1 if context.quick else min(context.rounds, 3))]
    context.discard(server)
    return measures("streams, latency", METRICS, ([], taken))


class Words(threading.Thread):
    """Sends words at an even pace, each with the moment at which it was due as its timestamp."""

    def __init__(self, server: Server, topic: str) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 5})
        self._topic = topic
        self.ending = threading.Event()

    def run(self) -> None:
        dice, began, sent = random.Random(1), time.time(), 0
        while not self.ending.is_set():
            due = int((time.time() - began) * RATE)
            for number in range(sent, due):
                at = int((began + number / RATE) * 1000)
                self._producer.produce(self._topic, f"word{dice.randrange(VOCABULARY)}", timestamp=at)
            sent = due
            self._producer.poll(0)
            time.sleep(0.005)
        self._producer.flush(30)


def trial(context: Context, server: Server) -> Trial:
    seconds = context.amount(20, 5)
    with context.topic(server, 1) as source, context.topic(server, 1) as target:
        name = f"latency-{target}"
        log = context.directory / f"{name}.log"
        command = ottla_application("words.py", server, context.directory / name)
        words = Words(server, source)
        with running(command, name, Topics(source, target), log) as process:
            words.start()
            try:
                reader = reader_of(server, target)
                ages(reader, START_SECONDS, first=True)
                ages(reader, seconds)
                seen = ages(reader, seconds)
            finally:
                words.ending.set()
                words.join()
            time.sleep(SETTLED_SECONDS)
            idle = used(Meter(process.pid), seconds) / seconds
            reader.close()
    if len(seen) < 100:
        raise ToolFailed(f"only {len(seen)} results came: {log.read_text(errors='replace')[-2000:]}")
    percentiles = quantiles(seen, n=100)
    return {"p50": percentiles[49], "p99": percentiles[98], "idle": idle * 100}


def used(meter: Meter, seconds: float) -> float:
    before, until = meter.total(), time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
        after = meter.total()
    return after - before


def reader_of(server: Server, topic: str, *, latest: bool = False) -> Consumer:
    reader = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": f"bench-{topic}",
            "isolation.level": "read_committed",
            "auto.offset.reset": "latest" if latest else "earliest",
            "fetch.wait.max.ms": 10,
        }
    )
    reader.subscribe([topic])
    return reader


def ages(reader: Consumer, seconds: float, *, first: bool = False) -> list[float]:
    """Milliseconds from a word to its count, of all counts that come within so long; or until the first one comes."""
    found: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until and not (first and found):
        messages = reader.consume(1000, 0.02)
        now = time.time() * 1000
        found += [now - message.timestamp()[1] for message in messages if message.error() is None]
    return found
