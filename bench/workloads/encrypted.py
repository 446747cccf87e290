"""Produce and consume over SASL_SSL: Apache's tools with their defaults, TLS 1.3, PLAIN, 1 KB records, 6 partitions.

Both servers have the same key (P-256) and the same settings, and the same Java clients talk to them, so the client's
side of the encryption costs both the same. Server CPU is what the kernel billed to the server, per gigabyte of values.
Kafka copies what it encrypts through its heap; ottla reads segments into one buffer and writes that with OpenSSL.
"""

from contextlib import ExitStack

from bench.context import Context
from bench.java_tools import consumer_performance, producer_performance
from bench.measures import Measure, Metric, Trial, measures, ratio_at_least, ratio_at_most
from bench.process_cost import Cpu, cpu_of
from bench.rounds import interleaved_when_warm
from bench.secured import address, certificates_in, with_logins
from bench.servers import Server

NAME = "encrypted"
METRICS = (
    Metric("rate", "throughput", "MB/s", ratio_at_least(1.0)),
    Metric("cpu", "server CPU per GB", "s", ratio_at_most(0.7)),
    Metric("user", "server user CPU per GB", "s"),
    Metric("system", "server system CPU per GB", "s"),
)
RECORD_SIZE = 1024
PARTITIONS = 6
WARM_UP_SHARE = 5


def run(context: Context) -> list[Measure]:
    certificates = context.directory / "certificates"
    config = certificates_in(certificates)
    records = context.amount(1_500_000, 200_000)
    servers = [context.new_server(with_logins(factory, certificates)) for factory in context.factories]
    for server in servers:
        server.start()

    def produce(server: Server) -> Trial:
        with context.topic(server, PARTITIONS) as topic:
            before = cpu_of(server.pid)
            tool = producer_performance(address(server), topic, records, RECORD_SIZE, records // WARM_UP_SHARE, config)
            return costs(tool.rate, records, cpu_of(server.pid).since(before))

    found = measures(
        f"{NAME}, produce 1 KB", METRICS, interleaved_when_warm(servers, context.rounds, produce, context.warmups)
    )
    with ExitStack() as stack:
        topics = {server: stack.enter_context(context.topic(server, PARTITIONS)) for server in servers}
        for server, topic in topics.items():
            producer_performance(address(server), topic, records, RECORD_SIZE, 0, config)

        def consume(server: Server) -> Trial:
            before = cpu_of(server.pid)
            rate = consumer_performance(address(server), topics[server], records, groups=True, config=config)
            return costs(rate, records, cpu_of(server.pid).since(before))

        taken = interleaved_when_warm(servers, context.rounds, consume, context.warmups)
    for server in servers:
        context.discard(server)
    return found + measures(f"{NAME}, consume 1 KB", METRICS, taken)


def costs(rate: float, records: int, cpu: Cpu) -> Trial:
    gigabytes = records * RECORD_SIZE / 1e9
    return {
        "rate": rate * RECORD_SIZE / 1e6,
        "cpu": cpu.total / gigabytes,
        "user": cpu.user / gigabytes,
        "system": cpu.system / gigabytes,
    }
