"""One topic of 1 KB records in 6 partitions, read from its beginning: by Apache's consumer and by librdkafka.

Apache's side is ConsumerPerformance with its defaults. Where one of the servers has no groups yet, both are read by
bench/java/AssignedConsumer.java instead, which is the same loop with the same settings and assigned partitions; the
title of the row tells which. librdkafka takes batches of records through confluent-kafka; when its own queue is full it
looks again after 10 ms, where its default of a second would be most of some rounds, on either server, and none of
others. The data is in the page cache.
"""

import time
from contextlib import ExitStack

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from bench.context import Context
from bench.java_tools import ToolFailed, consumer_performance, producer_performance
from bench.measures import Measure, Metric, Trial, measures, ratio_at_least, ratio_at_most
from bench.process_cost import Cpu, cpu_of
from bench.rounds import interleaved_when_warm
from bench.servers import Server
from bench.wire import JOIN_GROUP, served_apis

NAME = "consume"
METRICS = (
    Metric("rate", "throughput", "MB/s", ratio_at_least(1.0)),
    Metric("cpu", "server CPU per GB", "s", ratio_at_most(1.0)),
    Metric("user", "server user CPU per GB", "s"),
    Metric("system", "server system CPU per GB", "s"),
)
RECORD_SIZE = 1024
PARTITIONS = 6
SILENCE_SECONDS = 10.0
BATCH = 10_000


def run(context: Context) -> list[Measure]:
    records = context.amount(2_000_000, 300_000)
    servers = context.pair()
    groups = all(has_groups(server) for server in servers)
    with ExitStack() as stack:
        topics = {server: stack.enter_context(context.topic(server, PARTITIONS)) for server in servers}
        for server, topic in topics.items():
            producer_performance(server.bootstrap, topic, records, RECORD_SIZE, 0)

        def apache(server: Server) -> Trial:
            before = cpu_of(server.pid)
            rate = consumer_performance(server.bootstrap, topics[server], records, groups=groups)
            return costs(rate, records, cpu_of(server.pid).since(before))

        def librdkafka(server: Server) -> Trial:
            before = cpu_of(server.pid)
            rate = read_by_librdkafka(server, topics[server], records)
            return costs(rate, records, cpu_of(server.pid).since(before))

        by_apache = interleaved_when_warm(servers, context.rounds, apache, context.warmups)
        by_librdkafka = interleaved_when_warm(servers, context.rounds, librdkafka, context.warmups)
    tool = "ConsumerPerformance" if groups else "AssignedConsumer"
    return measures(f"{NAME}, {tool}", METRICS, by_apache) + measures(f"{NAME}, librdkafka", METRICS, by_librdkafka)


def costs(rate: float, records: int, cpu: Cpu) -> Trial:
    gigabytes = records * RECORD_SIZE / 1e9
    return {
        "rate": rate * RECORD_SIZE / 1e6,
        "cpu": cpu.total / gigabytes,
        "user": cpu.user / gigabytes,
        "system": cpu.system / gigabytes,
    }


def has_groups(server: Server) -> bool:
    with server.connect() as connection:
        return JOIN_GROUP in served_apis(connection)


def read_by_librdkafka(server: Server, topic: str, records: int) -> float:
    """Records per second from the first record on."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 10,
        }
    )
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
    first = consumer.consume(1, SILENCE_SECONDS)
    began = time.perf_counter()
    seen = len(first)
    while seen < records:
        batch = consumer.consume(min(BATCH, records - seen), SILENCE_SECONDS)
        if not batch or any(message.error() for message in batch):
            raise ToolFailed(f"librdkafka read {seen} of {records} records")
        seen += len(batch)
    seconds = time.perf_counter() - began
    consumer.close()
    return (seen - 1) / seconds
