"""One record at a time: sent with acks=all, and the next one only after a consumer has returned it.

Twice. Apache's EndToEndLatency, whose consumer asks with fetch.max.wait.ms=0 and whose percentiles are whole
milliseconds (so its mean is judged as well). And librdkafka, whose consumer waits inside a Fetch until the record is
there: producer and consumer with linger.ms=0 and defaults else, in microseconds.
"""

import time
from collections.abc import Callable
from statistics import quantiles

from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition

from bench.context import Context
from bench.java_tools import ToolFailed, end_to_end_latency
from bench.measures import Measure, Metric, Trial, measures, ratio_at_most
from bench.process_cost import cpu_of
from bench.rounds import interleaved_when_warm
from bench.servers import Server

NAME = "round trip"
METRICS = (
    Metric("p50", "p50", "ms", ratio_at_most(1.0)),
    Metric("p99", "p99", "ms", ratio_at_most(1.0)),
    Metric("cpu", "server CPU per record", "µs"),
)
MEAN = Metric("mean", "mean", "ms", ratio_at_most(1.0))
RECORD_SIZE = 100
PATIENCE_SECONDS = 30.0
WARM_UP_RECORDS = 500


def run(context: Context) -> list[Measure]:
    servers = context.pair()
    by_apache = interleaved_when_warm(
        servers, context.rounds, apache(context, context.amount(10_000, 2_000)), context.warmups
    )
    by_librdkafka = interleaved_when_warm(
        servers, context.rounds, librdkafka(context, context.amount(5_000, 1_000)), context.warmups
    )
    return [
        *measures(f"{NAME}, EndToEndLatency", (MEAN, *METRICS), by_apache),
        *measures(f"{NAME}, librdkafka", METRICS, by_librdkafka),
    ]


def apache(context: Context, records: int) -> Callable[[Server], Trial]:
    def one(server: Server) -> Trial:
        with context.topic(server, 1) as topic:
            before = cpu_of(server.pid)
            found = end_to_end_latency(server.bootstrap, topic, records, RECORD_SIZE)
            cpu = cpu_of(server.pid).since(before)
        return {"mean": found.mean, "p50": found.p50, "p99": found.p99, "cpu": cpu.total * 1e6 / records}

    return one


def librdkafka(context: Context, records: int) -> Callable[[Server], Trial]:
    def one(server: Server) -> Trial:
        with context.topic(server, 1) as topic:
            clients = Clients(server, topic)
            for _ in range(WARM_UP_RECORDS):
                clients.round_trip()
            before = cpu_of(server.pid)
            taken = [clients.round_trip() for _ in range(records)]
            cpu = cpu_of(server.pid).since(before)
            clients.close()
        percentiles = quantiles(taken, n=100)
        return {"p50": percentiles[49] * 1e3, "p99": percentiles[98] * 1e3, "cpu": cpu.total * 1e6 / records}

    return one


class Clients:
    """A producer and a consumer of one partition."""

    def __init__(self, server: Server, topic: str) -> None:
        common = {"bootstrap.servers": server.bootstrap, "socket.nagle.disable": True}
        self.topic = topic
        self.value = b"x" * RECORD_SIZE
        self.producer = Producer({**common, "acks": "all", "linger.ms": 0})
        self.consumer = Consumer({**common, "group.id": "bench", "enable.auto.commit": False})
        # The end is asked for now: a consumer that resolves it later would miss the first record.
        _, end = self.consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_SECONDS)
        self.consumer.assign([TopicPartition(topic, 0, end if end >= 0 else OFFSET_END)])

    def round_trip(self) -> float:
        """Seconds."""
        began = time.perf_counter()
        self.producer.produce(self.topic, self.value, partition=0)
        message = self.consumer.poll(PATIENCE_SECONDS)
        seconds = time.perf_counter() - began
        if message is None or message.error():
            raise ToolFailed(f"librdkafka did not get its record back: {message and message.error()}")
        self.producer.poll(0)
        return seconds

    def close(self) -> None:
        self.producer.flush(PATIENCE_SECONDS)
        self.consumer.close()
