"""A quota of 1 MB/s for one client over a minute, produced and fetched with librdkafka, and what its neighbour feels.

A client may use ten seconds' worth at once before it is held (Kafka's rule), and when that is forgotten, eleven seconds
later, again: who always wants more gets nine of every eleven seconds' bytes at once. A minute has five such bursts or
six, and its rate is 0.9 or 1.05 of the quota by where it begins (computed with Kafka's arithmetic; 0.99 to 1.00 over
ten minutes). So what is told is the mean of all minutes that begin within one such rhythm. Counted are the bytes of
values alone. The neighbour produces a record of 100 B every 10 ms all the while, and a minute before that: its 99th
percentile must not move by more than a few milliseconds.
"""

import time
from bisect import bisect_right
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.context import Context
from bench.measures import Measure, Metric, Trial, measures, value_at_most
from bench.rounds import interleaved
from bench.servers import Server
from ottla.client import quotas
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster

NAME = "quotas"
METRICS = (
    Metric("produced", "produced by who may 1 MB/s", "MB/s"),
    Metric("produced_off", "beside the quota", "%", value_at_most(5.0)),
    Metric("fetched", "fetched by who may 1 MB/s", "MB/s"),
    Metric("fetched_off", "beside the quota", "%", value_at_most(5.0)),
    Metric("alone_p99", "a neighbour's produce without them, p99", "ms"),
    Metric("beside_p99", "the same beside them, p99", "ms"),
    Metric("moved", "moved by", "ms", value_at_most(5.0)),
)
RATE = 1_000_000
VALUE_BYTES = 10_000
BURST_SECONDS = 15
RHYTHM_SECONDS = 11
LIMITED = "limited"
PATIENCE_SECONDS = 60.0


def run(context: Context) -> list[Measure]:
    return measures(NAME, METRICS, interleaved(context.pair(), context.rounds, trial(context, context.amount(60, 12))))


def trial(context: Context, seconds: int) -> Callable[[Server], Trial]:
    def one(server: Server) -> Trial:
        with (
            context.topic(server, 1) as topic,
            context.topic(server, 1) as filled,
            context.topic(server, 1) as other,
            ProcessPoolExecutor(1, mp_context=get_context("spawn")) as elsewhere,
            Cluster(parse_bootstrap(server.bootstrap), client_id="bench", timeout_s=PATIENCE_SECONDS) as cluster,
        ):
            fill(server, filled, (2 * BURST_SECONDS + RHYTHM_SECONDS + seconds) * RATE)  # before anybody is looked at
            alone = elsewhere.submit(neighbours_p99, server.bootstrap, other, float(seconds)).result()
            entity = (("client-id", LIMITED),)
            quotas.alter(cluster, entity, {"producer_byte_rate": RATE, "consumer_byte_rate": RATE})
            meanwhile = 2.0 * (seconds + BURST_SECONDS + RHYTHM_SECONDS)
            neighbour = elsewhere.submit(neighbours_p99, server.bootstrap, other, meanwhile)
            produced = rate_of_producing(server, topic, seconds)
            fetched = rate_of_fetching(server, filled, seconds)
            beside = neighbour.result()
            quotas.alter(cluster, entity, {"producer_byte_rate": None, "consumer_byte_rate": None})
        return {
            "produced": produced / 1e6,
            "produced_off": abs(produced - RATE) / RATE * 100,
            "fetched": fetched / 1e6,
            "fetched_off": abs(fetched - RATE) / RATE * 100,
            "alone_p99": alone,
            "beside_p99": beside,
            "moved": max(0.0, beside - alone),
        }

    return one


def rate_of_producing(server: Server, topic: str, seconds: int) -> float:
    """Bytes a second that were acknowledged, once the first ten seconds' worth is used up."""
    acknowledged = 0
    points: list[tuple[float, int]] = []

    def count(error: object, message: object) -> None:
        nonlocal acknowledged
        acknowledged += VALUE_BYTES if error is None else 0  # what is purged in the end

    producer = Producer(
        {
            "bootstrap.servers": server.bootstrap,
            "client.id": LIMITED,
            "linger.ms": 20,
            "batch.size": 100_000,
            "queue.buffering.max.kbytes": 2_000,
            "message.timeout.ms": 300_000,
            "log_level": 0,
        }
    )

    def produce_until(end: float) -> None:
        while time.monotonic() < end:
            points.append((time.monotonic(), acknowledged))
            try:
                producer.produce(topic, value=bytes(VALUE_BYTES), on_delivery=count)
                producer.poll(0)
            except BufferError:
                producer.poll(0.01)

    produce_until(time.monotonic() + BURST_SECONDS + seconds + RHYTHM_SECONDS)
    producer.purge()
    producer.flush(PATIENCE_SECONDS)
    return held(points, seconds)


def rate_of_fetching(server: Server, topic: str, seconds: int) -> float:
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "client.id": LIMITED,
            "group.id": topic,
            "fetch.message.max.bytes": 200_000,
            "queued.max.messages.kbytes": 1_000,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])

    taken = 0
    points: list[tuple[float, int]] = []
    end = time.monotonic() + BURST_SECONDS + seconds + RHYTHM_SECONDS
    while time.monotonic() < end:
        points.append((time.monotonic(), taken))
        taken += sum(len(message.value() or b"") for message in consumer.consume(50, 0.02))
    consumer.close()
    return held(points, seconds)


def held(points: list[tuple[float, int]], seconds: int) -> float:
    """Bytes a second: the mean over stretches of so many seconds, of which one begins every tenth of a second, for one
    rhythm from the end of the first burst on. `points` are moments and what there was by then."""
    began = points[0][0] + BURST_SECONDS
    moments = [moment for moment, _ in points]

    def total(moment: float) -> int:
        return points[max(0, bisect_right(moments, moment) - 1)][1]

    starts = [began + tenth / 10 for tenth in range(RHYTHM_SECONDS * 10)]
    return sum(total(start + seconds) - total(start) for start in starts) / len(starts) / seconds


def fill(server: Server, topic: str, size: int) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap, "client.id": "free", "linger.ms": 20})
    for _ in range(size // VALUE_BYTES):
        while True:
            try:
                producer.produce(topic, value=bytes(VALUE_BYTES))
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    producer.flush(PATIENCE_SECONDS)


def neighbours_p99(bootstrap: str, topic: str, seconds: float) -> float:
    """Another client, which has no quota, in a process of its own: milliseconds to its acknowledgement."""
    settings = {"bootstrap.servers": bootstrap, "client.id": "neighbour", "linger.ms": 0, "log_level": 0}
    producer = Producer(settings)
    times_ms: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        producer.produce(topic, value=bytes(100))
        producer.flush(PATIENCE_SECONDS)
        times_ms.append((time.monotonic() - began) * 1000)
        time.sleep(0.01)
    return sorted(times_ms)[int(len(times_ms) * 0.99)]
