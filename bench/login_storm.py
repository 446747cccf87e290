"""A process that logs in again and again, at a steady pace: `python -m bench.login_storm PORT CA RATE SECONDS`.

Each login is a connection of its own: TLS, ApiVersions, SCRAM-SHA-256 with 4,096 iterations; then it is closed. Prints
how many there were a second, how long they took and what they cost here, as JSON. One that could not begin in time
begins late and counts from when it should have begun.

It has one thread, and salts its password once: clients of a real storm are other machines, and threads that work out
keys would take from the server here what they cannot take there.
"""

import asyncio
import json
import sys
import time
from statistics import quantiles

import uvloop

from ottla.client.addresses import parse_bootstrap
from ottla.client.aio.connection import Connection
from ottla.client.security import security
from ottla.model.properties.jaas import SCRAM_MODULE, jaas_text

AT_ONCE = 100
PATIENCE_SECONDS = 60.0


async def storm(port: int, ca: str, rate: float, seconds: float) -> dict[str, float]:
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
    loop, under_way = asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE)
    taken: list[float] = []

    async def one(due: float) -> None:
        try:
            until_s = loop.time() + PATIENCE_SECONDS
            connection = await Connection.open(address, client_id="bench", until_s=until_s, security=how)
            taken.append(time.perf_counter() - due)
            connection.close()
        finally:
            under_way.release()

    began = time.perf_counter()
    async with asyncio.TaskGroup() as logins:
        for number in range(int(rate * seconds)):
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await under_way.acquire()
            logins.create_task(one(due))
    over = time.perf_counter() - began
    cpu = time.process_time() / len(taken)
    return {"rate": len(taken) / over, "p99": quantiles(taken, n=100)[98], "cpu": cpu}


def main() -> None:
    port, ca, rate, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
    print(json.dumps(uvloop.run(storm(port, ca, rate, seconds))))


if __name__ == "__main__":
    main()
