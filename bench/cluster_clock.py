"""Times `ottla.testing.Cluster()`; run as a process of its own (`python -m bench.cluster_clock COUNT`)."""

import json
import sys
import time

from bench import wire
from ottla.testing import Cluster


def ready_in_seconds() -> float:
    began = time.perf_counter()
    with Cluster() as kafka:
        port = int(kafka.bootstrap_servers.rpartition(":")[2])
        with wire.Connection(port) as connection:
            connection.ask(wire.metadata_request([]))
            return time.perf_counter() - began


def main() -> None:
    print(json.dumps([ready_in_seconds() for _ in range(int(sys.argv[1]))]))


if __name__ == "__main__":
    main()
