"""What another client sees while something goes on: `bench.probe` as a process of its own."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from bench.java_tools import ToolFailed
from bench.servers import REPOSITORY, Server

_PATIENCE_SECONDS: Final = 120.0


@contextmanager
def probe(server: Server, topic: str, rate: float) -> Iterator[dict[str, float]]:
    """Filled with what the probe saw (seconds: p50, p99, p999, max) when the block ends."""
    command = [sys.executable, "-m", "bench.probe", str(server.port), topic, str(rate)]
    found: dict[str, float] = {}
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        time.sleep(1)  # its own start is not what is measured
        yield found
        out, _ = process.communicate("\n", timeout=_PATIENCE_SECONDS)
    if process.returncode != 0:
        raise ToolFailed("the probing client failed")
    found.update(json.loads(out))
