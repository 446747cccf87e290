"""A PostgreSQL server of its own for a workload, with logical decoding on."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.java_tools import ToolFailed

PATIENCE_SECONDS = 60.0
SETTINGS = ("wal_level=logical", "synchronous_commit=on", "max_wal_size=4GB", "shared_buffers=256MB")


def _program(name: str) -> str:
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = next((str(place / name) for place in places if (place / name).exists()), None) or shutil.which(name)
    if found is None:
        raise ToolFailed(f"{name} is not installed: apt-get install postgresql")
    return found


@contextmanager
def postgres(directory: Path) -> Iterator[tuple[int, int]]:
    """Its port, and its process."""
    directory.mkdir(parents=True)
    # It refuses to run as root, and whoever runs it has to reach its directory.
    nobody = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
    if nobody:
        for place in (directory, *directory.parents):
            if place.owner() == "root" and place.stat().st_mode & 0o777 == 0o700:
                place.chmod(0o711)
        shutil.chown(directory, "postgres", "postgres")
    data = str(directory / "data")
    words = [_program("initdb"), "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"]
    made = subprocess.run([*nobody, *words], capture_output=True, text=True, check=False, cwd=directory)
    if made.returncode:
        raise ToolFailed(f"initdb failed: {made.stderr}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    options = ["listen_addresses=127.0.0.1", f"port={port}", f"unix_socket_directories={directory}", *SETTINGS]
    flags = [part for each in options for part in ("-c", each)]
    log = directory / "log"
    with log.open("wb") as out:
        command = [*nobody, _program("postgres"), "-D", data, *flags]
        running = subprocess.Popen(command, stdout=out, stderr=out, cwd=directory)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while b"ready to accept connections" not in log.read_bytes():
            if running.poll() is not None or time.monotonic() > deadline:
                raise ToolFailed(f"PostgreSQL did not start: {log.read_text()[-2000:]}")
            time.sleep(0.05)
        yield port, running.pid
    finally:
        running.send_signal(2)
        running.wait(PATIENCE_SECONDS)
