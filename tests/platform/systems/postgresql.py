"""A PostgreSQL server of its own, in a directory of its own on a free port; skips by name where there is none."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS

_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def _program(name: str) -> str:
    found = next((str(place / name) for place in _PLACES if (place / name).exists()), None) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: apt-get install postgresql")
    return found


def _as_nobody() -> list[str]:
    """It refuses to run as root."""
    if os.getuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed, and PostgreSQL does not run as root")
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


@contextmanager
def postgresql(*settings: str) -> Iterator[str]:
    """The address of a new database, as `jdbc:postgresql://…`."""
    initdb, server = _program("initdb"), _program("postgres")
    place = Path(tempfile.mkdtemp(prefix="ottla-pg-"))
    nobody = _as_nobody()
    if nobody:
        shutil.chown(place, "postgres", "postgres")
    try:
        data = str(place / "data")
        made = subprocess.run(
            [*nobody, initdb, "-D", data, "-A", "trust", "-U", "postgres", "-N", "-E", "UTF8", "--locale=C"],
            capture_output=True,
            text=True,
            check=False,
            cwd=place,
        )
        assert made.returncode == 0, made.stderr
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = ["listen_addresses=127.0.0.1", f"port={port}", f"unix_socket_directories={place}", "fsync=off"]
        flags = [part for each in (*options, *settings) for part in ("-c", each)]
        with open(place / "log", "wb") as log:
            running = subprocess.Popen([*nobody, server, "-D", data, *flags], stdout=log, stderr=log, cwd=place)
        try:
            _wait(port, running, place / "log")
            yield f"jdbc:postgresql://127.0.0.1:{port}/postgres?user=postgres"
        finally:
            running.send_signal(signal.SIGINT)  # fast: it does not wait for those who are connected
            running.wait(PATIENCE_SECONDS)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _wait(port: int, running: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while b"ready to accept connections" not in log.read_bytes():
        assert running.poll() is None and time.monotonic() < until, log.read_text()
        time.sleep(0.05)
