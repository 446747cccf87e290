"""What metrics cost who has them on: a node with `http.listeners` that is scraped every second, beside one without.

As `produce` of 1 KB records, as librdkafka's `round_trip`, and as `unbatched`, where what a request costs is all there
is. Counters are plain integers that stand beside the code that counts, on either node; what one pays more is the
listener, and writing the page fifteen times as often as Prometheus asks by default. Trials are short and many, each
server is first and last in turn, and there are two of each kind: a share is the median of those of all trials. Apache
Kafka has no counterpart without an exporter.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean

from bench.context import Context
from bench.measures import Measure, Metric, Target, Trial, value_at_most
from bench.rounds import rotated
from bench.secured import with_more
from bench.servers import Ottla, Server, free_ports
from bench.workloads import produce, round_trip, unbatched
from bench.workloads.metrics import scrape

NAME = "monitored"
TRIALS = 3
"""In each round."""
ALIKE = 2
"""Servers of each kind."""
SCRAPE_EVERY_SECONDS = 1.0
METRICS = (
    Metric("produced_off", "produced without metrics", "MB/s"),
    Metric("produced_on", "scraped every second", "MB/s"),
    Metric("produced_share", "of the first", "", Target(0.98, of_ratio=False, at_least=True)),
    Metric("gigabyte_off", "server CPU per GB without metrics", "s"),
    Metric("gigabyte_on", "scraped every second", "s"),
    Metric("rate_off", "requests per second without metrics", "1/s"),
    Metric("rate_on", "scraped every second", "1/s"),
    Metric("rate_share", "of the first", ""),
    Metric("cpu_off", "server CPU per request without metrics", "µs"),
    Metric("cpu_on", "scraped every second", "µs"),
    Metric("p50_off", "round trip without metrics, p50", "ms"),
    Metric("p50_on", "scraped every second", "ms"),
    Metric("p50_share", "of the first", "", value_at_most(1.02)),
)


def run(context: Context) -> list[Measure]:
    ports = free_ports(ALIKE)
    watched = [with_more(Ottla, "watched", f"http.listeners=http://127.0.0.1:{port}\n") for port in ports]
    kinds = [kind for one in watched for kind in (with_more(Ottla, "unwatched", ""), one)]
    servers = [context.new_server(kind) for kind in kinds]
    for server in servers:
        server.start()
    asked = dict(zip(servers[1::2], ports, strict=True))
    records = context.amount(1_000_000, 100_000)
    produced = taken(context, servers, asked, produce.trial(context, 1024, records))
    requests = taken(context, servers, asked, unbatched.trial(context, context.amount(3, 2)))
    trips = taken(context, servers, asked, round_trip.librdkafka(context, context.amount(3_000, 1_000)))
    for server in servers:
        context.discard(server)
    samples = {
        **beside("produced", produced, "rate"),
        **beside("gigabyte", produced, "cpu"),
        **beside("rate", requests, "rate"),
        **beside("cpu", requests, "cpu"),
        **beside("p50", trips, "p50"),
    }
    return [Measure(NAME, metric, (), samples[metric.key]) for metric in METRICS]


def taken(
    context: Context, servers: Sequence[Server], asked: dict[Server, int], trial: Callable[[Server], Trial]
) -> list[list[Trial]]:
    def one(server: Server) -> Trial:
        with scraped(asked.get(server)):
            return trial(server)

    return rotated(servers, TRIALS * context.rounds, one, warmups=1)


@contextmanager
def scraped(port: int | None) -> Iterator[None]:
    over = threading.Event()

    def ask() -> None:
        while port is not None and not over.wait(SCRAPE_EVERY_SECONDS):
            scrape(port)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        over.set()
        asking.join()


def beside(name: str, trials: Sequence[Sequence[Trial]], key: str) -> dict[str, tuple[float, ...]]:
    """By turn: a slow minute hits both."""
    off, on = (
        tuple(fmean(trial[key] for trial in turn) for turn in zip(*trials[kind::2], strict=True)) for kind in (0, 1)
    )
    return {
        f"{name}_off": off,
        f"{name}_on": on,
        f"{name}_share": tuple(this / that for this, that in zip(on, off, strict=True)),
    }
