"""Ten million keys of state: each counted once, then the application is stopped and started again.

`local[*]`, exactly once, 2 partitions, the defaults. The memory is the most that all processes of the application had
together at one moment; the restart is from the command to the result of a record that came while nobody was there.
"""

import time

from confluent_kafka import Producer

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, Trial, measures, value_at_most
from bench.process_cost import memory_of
from bench.servers import Ottla, Server
from bench.streams_compared import PARTITIONS
from bench.streams_runs import Topics, committed_of, ottla_application, running
from bench.workloads.streams_latency import ages, reader_of

METRICS = (
    Metric("memory", "10 million keys, most memory", "MB", value_at_most(2000)),
    Metric("rate", "10 million keys, records per second", "1/s"),
    Metric("restart", "10 million keys, restart to the next result", "s", value_at_most(30)),
)
KEYS = 10_000_000
PATIENCE_SECONDS = 900.0
LOOK_SECONDS = 0.5


def run(context: Context) -> list[Measure]:
    server = context.new_server(Ottla)
    server.start()
    taken = [trial(context, server)]
    context.discard(server)
    return measures("streams, many keys", METRICS, ([], taken))


def feed_keys(server: Server, topic: str, first: int, last: int) -> None:
    settings = {"bootstrap.servers": server.bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 500_000}
    producer = Producer(settings)
    for number in range(first, last):
        while True:
            try:
                producer.produce(topic, b"once", b"key%d" % number, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise ToolFailed("the keys could not be written")


def trial(context: Context, server: Server) -> Trial:
    keys = context.amount(KEYS, 100_000)
    with context.topic(server, PARTITIONS, kept=True) as source, context.topic(server, PARTITIONS, kept=True) as target:
        feed_keys(server, source, 0, keys)
        name, topics = f"keys-{target}", Topics(source, target)
        log = context.directory / f"{name}.log"
        command = ottla_application("keys.py", server, context.directory / name)
        with running(command, name, topics, log) as process:
            began, most = time.perf_counter(), 0
            while committed_of(server, name, source, PARTITIONS) < keys:
                if process.poll() is not None or time.perf_counter() - began > PATIENCE_SECONDS:
                    raise ToolFailed(f"the keys were not counted: {log.read_text(errors='replace')[-2000:]}")
                most = max(most, memory_of(process.pid).proportional)
                time.sleep(LOOK_SECONDS)
            took = time.perf_counter() - began
        reader = reader_of(server, target, latest=True)
        ages(reader, 5.0)
        feed_keys(server, source, keys, keys + 1)
        began = time.perf_counter()
        with running(command, name, topics, log):
            if not ages(reader, PATIENCE_SECONDS, first=True):
                raise ToolFailed(f"no result after the restart: {log.read_text(errors='replace')[-2000:]}")
            restart = time.perf_counter() - began
            reader.close()
    return {"memory": most / 1e6, "rate": keys / took, "restart": restart}
