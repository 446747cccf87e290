"""Apache's producer with its defaults, 100 records of 1 KB in each transaction, 6 partitions: one producer, then eight.

ProducerPerformance ends transactions by time only, so bench/java/TransactionalProducer.java stands in: the next
transaction begins when commitTransaction has returned. Throughput and latency are counted after the first fifth of the
transactions, on the same client for both servers; server CPU is of all of them. One producer waits for the server and
shows how quickly a transaction ends; eight keep it busy. Afterwards the last stable offsets must cover every record and
a marker for each transaction.
"""

import time
from collections.abc import Callable

from confluent_kafka import Consumer, TopicPartition

from bench.context import Context
from bench.java_tools import ToolFailed, transactional_producer
from bench.measures import Measure, Metric, Trial, measures, ratio_at_least, ratio_at_most
from bench.process_cost import cpu_of
from bench.rounds import interleaved_when_warm
from bench.servers import Server

NAME = "transactions"
METRICS = (
    Metric("rate", "throughput", "MB/s", ratio_at_least(1.0)),
    Metric("transactions", "transactions per second", "1/s"),
    Metric("cpu", "server CPU per transaction", "ms"),
    Metric("user", "server user CPU per transaction", "ms"),
    Metric("p50", "begun to committed, p50", "ms", ratio_at_most(1.0)),
    Metric("p99", "begun to committed, p99", "ms"),
)
RECORDS = 100
RECORD_SIZE = 1024
PARTITIONS = 6
WARM_UP_SHARE = 5
PATIENCE_SECONDS = 10.0


def run(context: Context) -> list[Measure]:
    found = []
    for title, producers, each in (
        ("1 producer", 1, context.amount(500, 100)),
        ("8 producers", 8, context.amount(200, 40)),
    ):
        one = trial(context, producers, each)
        taken = interleaved_when_warm(context.pair(), context.rounds, one, context.warmups)
        found += measures(f"{NAME}, {title}", METRICS, taken)
    return found


def trial(context: Context, producers: int, each: int) -> Callable[[Server], Trial]:
    warmup = each // WARM_UP_SHARE

    def one(server: Server) -> Trial:
        with context.topic(server, PARTITIONS) as topic:
            before = cpu_of(server.pid)
            tool = transactional_producer(
                server.bootstrap,
                topic,
                producers=producers,
                warmup=warmup,
                transactions=each,
                records=RECORDS,
                size=RECORD_SIZE,
            )
            cpu = cpu_of(server.pid).since(before)
            must_be_committed(server, topic, (warmup + each) * producers)
        transactions = (warmup + each) * producers
        return {
            "rate": tool.rate * RECORDS * RECORD_SIZE / 1e6,
            "transactions": tool.rate,
            "cpu": cpu.total * 1e3 / transactions,
            "user": cpu.user * 1e3 / transactions,
            "p50": tool.p50,
            "p99": tool.p99,
        }

    return one


def must_be_committed(server: Server, topic: str, transactions: int) -> None:
    """The last markers may be on their way still when the producer has its answer."""
    consumer = Consumer(
        {"bootstrap.servers": server.bootstrap, "group.id": "bench", "isolation.level": "read_committed"}
    )
    wanted = transactions * (RECORDS + 1)
    deadline = time.monotonic() + PATIENCE_SECONDS
    stable = 0
    while time.monotonic() < deadline:
        partitions = [TopicPartition(topic, index) for index in range(PARTITIONS)]
        stable = sum(consumer.get_watermark_offsets(one, PATIENCE_SECONDS)[1] for one in partitions)
        if stable >= wanted:
            consumer.close()
            return
        time.sleep(0.1)
    consumer.close()
    raise ToolFailed(f"{server.name} shows {stable} stable offsets after {transactions} transactions")
