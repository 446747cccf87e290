"""300 SCRAM logins a second over TLS, what another client feels of them, and what an idle connection keeps.

Logins come from a process of their own, each by a new connection (P-256, TLS 1.3, SCRAM-SHA-256 with 4,096 iterations).
The other client produces 100 times a second on the plain listener. Idle connections are those that have logged in: the
node's resident memory with 1,000 of them, less that before, divided by their number.
"""

import json
import subprocess
import sys
import time
from contextlib import ExitStack

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, Target, value_at_most
from bench.probing import probe
from bench.process_cost import cpu_of, memory_of
from bench.secured import certificates_in, with_logins
from bench.servers import REPOSITORY, Ottla
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.connection import Connection
from ottla.client.security import Security, security, settings_of
from ottla.client.users import NewCredential, alter_users
from ottla.metadata.scram import SCRAM_SHA_256, new_salt

NAME = "logins"
RATE = 300
METRICS = (
    Metric("rate", "logins by SCRAM over TLS", "1/s", Target(RATE * 0.99, of_ratio=False, at_least=True)),
    Metric("login_p99", "a login, p99", "ms"),
    Metric("cpu", "server CPU of a login", "ms"),
    Metric("quiet_p99", "another client's produce without them, p99", "ms"),
    Metric("p99", "the same beside them, p99", "ms", value_at_most(50)),
    Metric("idle", "an idle TLS connection keeps", "KB", value_at_most(40)),
)
PROBE_RATE = 100.0
IDLE = 1_000
NO_LIMITS = "ottla.connection.creation.rate.per.ip=0\nmax.connections.per.ip=100000\n"
PATIENCE_SECONDS = 120.0


def run(context: Context) -> list[Measure]:
    certificates = context.directory / "login-certificates"
    config = security(settings_of(certificates_in(certificates)))
    found: list[dict[str, float]] = []
    for _ in range(min(3, context.rounds)):
        server = context.new_server(with_logins(Ottla, certificates, NO_LIMITS))
        server.start()
        port: int = server.secured_port  # type: ignore[attr-defined]
        with Cluster(parse_bootstrap(server.bootstrap), client_id="bench") as cluster:
            user = NewCredential.of("bench", "bench-secret", SCRAM_SHA_256, 4096, new_salt(b"x" * 17))
            alter_users(cluster, [user])
        seconds = context.amount(20, 4)
        with context.topic(server, 1) as topic:
            with probe(server, topic, PROBE_RATE) as quiet:
                time.sleep(seconds / 2)
            before = cpu_of(server.pid)
            with probe(server, topic, PROBE_RATE) as beside:
                storm = stormed(port, f"{certificates}/ca.pem", seconds)
            cpu = cpu_of(server.pid).since(before).total
        kept = idle_bytes(server.pid, port, config)
        context.discard(server)
        found.append(
            {
                "rate": storm["rate"],
                "login_p99": storm["p99"] * 1000,
                "cpu": cpu * 1000 / (RATE * seconds),
                "quiet_p99": quiet["p99"] * 1000,
                "p99": beside["p99"] * 1000,
                "idle": kept / 1024,
            }
        )
    return [Measure("logins", metric, (), tuple(each[metric.key] for each in found)) for metric in METRICS]


def idle_bytes(pid: int, port: int, how: Security) -> float:
    """Resident memory that one more connection takes."""
    (address,) = parse_bootstrap(f"127.0.0.1:{port}")
    with ExitStack() as opened:

        def log_in(count: int) -> None:
            for _ in range(count):
                deadline = time.monotonic() + PATIENCE_SECONDS
                each = Connection.open(address, client_id="bench", deadline=deadline, security=how)
                opened.callback(each.close)

        log_in(100)  # what the first ones load is not theirs
        before = memory_of(pid).resident
        log_in(IDLE)
        return (memory_of(pid).resident - before) / IDLE


def stormed(port: int, ca: str, seconds: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.login_storm", str(port), ca, str(RATE), str(seconds)]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    if done.returncode != 0:
        raise ToolFailed(f"the client that logs in failed: {done.stderr[-1000:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found
