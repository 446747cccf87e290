"""A process that logs in again and again, at a steady pace: `python -m bench.login_storm PORT CA RATE SECONDS`.

Each login is a connection of its own: TLS, ApiVersions, SCRAM-SHA-256 with 4,096 iterations; then it is closed. Prints
how many there were, and how long they took, as JSON. One that could not begin in time begins late and counts from when
it should have begun.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import quantiles

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.connection import Connection
from ottla.client.security import security
from ottla.model.properties.jaas import SCRAM_MODULE, jaas_text

THREADS = 16
PATIENCE_SECONDS = 60.0


def main() -> None:
    port, ca, rate, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
    (address,) = parse_bootstrap(f"127.0.0.1:{port}")
    how = security(
        {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": ca,
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": jaas_text(SCRAM_MODULE, username="bench", password="bench-secret"),
        }
    )
    began = time.perf_counter()

    def one(number: int) -> float:
        due = began + number / rate
        time.sleep(max(0.0, due - time.perf_counter()))
        deadline = time.monotonic() + PATIENCE_SECONDS
        Connection.open(address, client_id="bench", deadline=deadline, security=how).close()
        return time.perf_counter() - due

    with ThreadPoolExecutor(THREADS) as threads:
        taken = list(threads.map(one, range(int(rate * seconds))))
    over = time.perf_counter() - began
    print(json.dumps({"rate": len(taken) / over, "p99": quantiles(taken, n=100)[98], "cpu": time.process_time()}))


if __name__ == "__main__":
    main()
