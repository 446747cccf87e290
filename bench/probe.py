"""A client that asks how long an acknowledgement takes, at a steady pace, while something else goes on.

Run as a process of its own (`python -m bench.probe PORT TOPIC RATE`): one Produce of a 1 KB record (v12, acks=all) at a
time, RATE of them a second, until its standard input ends. Then it prints what it saw as JSON. A request that is late
because the one before it was slow counts from when it should have been sent: a stalled server must not look fast.
"""

import json
import select
import sys
import time
from statistics import quantiles

from bench import wire

RECORD_SIZE = 1000
WARM_UP_REQUESTS = 200


def probe(connection: wire.Connection, frame: bytes, rate: float) -> list[float]:
    """Seconds of every request."""
    taken: list[float] = []
    due = time.perf_counter()
    while not select.select([sys.stdin], [], [], 0)[0]:
        due += 1 / rate
        wait = due - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
        sent = min(due, time.perf_counter())
        if wire.produced(connection.ask(frame)).error:
            raise ConnectionError("Produce was refused")
        taken.append(time.perf_counter() - sent)
    return taken


def main() -> None:
    port, topic, rate = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    frame = wire.produce_request(topic, 0, wire.one_record_batch(b"x" * RECORD_SIZE))
    with wire.Connection(port) as connection:
        for _ in range(WARM_UP_REQUESTS):
            connection.ask(frame)
        taken = probe(connection, frame, rate)
    percentiles = quantiles(taken, n=1000)
    found = {"requests": len(taken), "p50": percentiles[499], "p99": percentiles[989], "p999": percentiles[998]}
    print(json.dumps({**found, "max": max(taken)}))


if __name__ == "__main__":
    main()
