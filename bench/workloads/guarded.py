"""Unbatched requests on a plain listener of ottla alone: without locks, with an authorizer and 1,000 ACLs, with quotas.

As `unbatched`: one record of 100 B per Produce request. The ratios say what locks cost who does without TLS: the first
server has none, the second decides each topic by ACLs, the third measures its clients too, by quotas nobody reaches.
Trials are short and many, and each server is first, second and so on in turn: a share is the median of as many. There
are two servers of each kind, taken together: of two alike one is quicker by a percent for as long as it lives.
"""

from collections.abc import Sequence
from statistics import fmean

from bench.context import Context, Factory
from bench.measures import Measure, Metric, Target, Trial
from bench.rounds import rotated
from bench.secured import AUTHORIZED, with_more
from bench.servers import Ottla, Server
from bench.workloads.unbatched import trial
from ottla.client import quotas
from ottla.client.acls import create_acls
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster
from ottla.model.acls import Acl, Pattern, PermissionType
from ottla.model.permissions import Operation, Resource

NAME = "guarded"
ACLS = 1_000
TRIALS = 3
"""In each round."""
ALIKE = 2
"""Servers of each kind."""
METRICS = (
    Metric("open", "requests per second without locks", "1/s"),
    Metric("acls", "with 1,000 ACLs", "1/s"),
    Metric("acls_share", "of the first", "", Target(0.97, of_ratio=False, at_least=True)),
    Metric("quotas", "with quotas besides", "1/s"),
    Metric("quotas_share", "of the first", "", Target(0.95, of_ratio=False, at_least=True)),
    Metric("open_cpu", "server CPU per request without locks", "µs"),
    Metric("acls_cpu", "with 1,000 ACLs", "µs"),
    Metric("quotas_cpu", "with quotas besides", "µs"),
)


def run(context: Context) -> list[Measure]:
    kinds: tuple[Factory, ...] = (
        with_more(Ottla, "open", ""),
        with_more(Ottla, "acls", AUTHORIZED),
        with_more(Ottla, "quotas", AUTHORIZED),
    )
    servers = [context.new_server(kind) for kind in kinds * ALIKE]
    for number, server in enumerate(servers):
        server.start()
        kind = number % len(kinds)
        if kind >= 1:
            allow(server)
        if kind == 2:
            limit(server)
    one = trial(context, context.amount(3, 2))
    taken = rotated(servers, TRIALS * context.rounds, one, warmups=1)
    for server in servers:
        context.discard(server)
    rates = [together(taken[kind :: len(kinds)], "rate") for kind in range(len(kinds))]
    cpu = [together(taken[kind :: len(kinds)], "cpu") for kind in range(len(kinds))]
    samples = {
        **dict(zip(("open_cpu", "acls_cpu", "quotas_cpu"), cpu, strict=True)),
        "open": rates[0],
        "acls": rates[1],
        "quotas": rates[2],
        "acls_share": shares(rates[1], rates[0]),
        "quotas_share": shares(rates[2], rates[0]),
    }
    return [Measure("unbatched, with locks", metric, (), samples[metric.key]) for metric in METRICS]


def together(alike: Sequence[Sequence[Trial]], key: str) -> tuple[float, ...]:
    """By round: what servers of one kind had."""
    return tuple(fmean(trial[key] for trial in trials) for trials in zip(*alike, strict=True))


def shares(rates: tuple[float, ...], of: tuple[float, ...]) -> tuple[float, ...]:
    """By round: a slow minute hits all three."""
    return tuple(rate / other for rate, other in zip(rates, of, strict=True))


def allow(server: Server) -> None:
    """The client by a prefix; the others are about other topics and other users."""
    everything = Acl(
        Resource.TOPIC, "bench-", Pattern.PREFIXED, "User:ANONYMOUS", "*", Operation.ALL, PermissionType.ALLOW
    )
    others = [
        Acl(Resource.TOPIC, f"t-{each}", Pattern.LITERAL, f"User:u{each}", "*", Operation.WRITE, PermissionType.ALLOW)
        for each in range(ACLS - 1)
    ]
    with Cluster(parse_bootstrap(server.bootstrap), client_id="bench") as cluster:
        refused = [error for error in create_acls(cluster, [everything, *others]) if error is not None]
    assert not refused, refused


def limit(server: Server) -> None:
    with Cluster(parse_bootstrap(server.bootstrap), client_id="bench") as cluster:
        limits = {"producer_byte_rate": 1e12, "consumer_byte_rate": 1e12, "request_percentage": 1e6}
        quotas.alter(cluster, (("client-id", None),), limits)
