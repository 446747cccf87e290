"""A store that speaks S3: moto's server, in a process of its own."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.patience import eventually


@contextmanager
def object_store() -> Iterator[str]:
    """Its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def listens() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return False
        return True

    try:
        eventually(listens, "the store")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
