"""A MariaDB server of its own, in a directory of its own on a free port.

The one that is installed; where there is none, Debian's packages are fetched and unpacked beside the caches, without
installing anything. Skips by name where neither can be had.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.nodes import free_ports
from tests.support.patience import PATIENCE_SECONDS

_PACKAGES = ("mariadb-server-core", "liburing2", "libaio1")
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ottla" / "mariadb"
_FIRST = (
    "CREATE DATABASE mysql;",
    "CREATE DATABASE test;",
    "USE mysql;",
    "SET @auth_root_socket = NULL;",
    "SET @skip_auth_anonymous = 1;",
)


class _Server(NamedTuple):
    program: Path
    share: Path
    """Messages, and the tables of a new server."""
    environment: Mapping[str, str]


def _installed() -> _Server | None:
    for name in ("mariadbd", "mysqld"):
        found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
        share = Path("/usr/share/mysql")
        if found and (share / "mysql_system_tables.sql").exists():
            return _Server(Path(found), share, os.environ)
    return None


def _unpacked(place: Path) -> _Server:
    libraries = [place / folder / "x86_64-linux-gnu" for folder in ("usr/lib", "lib")]
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, libraries))}
    return _Server(place / "usr/sbin/mariadbd", place / "usr/share/mysql", environment)


def _fetched() -> _Server:
    if not _CACHE.exists():
        if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
            pytest.skip("MariaDB is not installed, and there is no apt-get to fetch it: install mariadb-server")
        _CACHE.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_CACHE.parent) as made:
            debs = Path(made, "debs")
            debs.mkdir()
            got = subprocess.run(
                ["apt-get", "download", *_PACKAGES], cwd=debs, capture_output=True, text=True, check=False
            )
            if got.returncode != 0:
                pytest.skip(f"MariaDB is not installed, and cannot be fetched: {got.stderr.strip()[:200]}")
            for each in debs.iterdir():
                subprocess.run(["dpkg", "-x", each, Path(made, "root")], check=True)
            if not _CACHE.exists():  # another test run may have been quicker
                Path(made, "root").rename(_CACHE)
    return _unpacked(_CACHE)


class MariaDb:
    """A server that runs, until it is told to crash: then it runs again, at the same address."""

    def __init__(self, command: list[str], port: int, place: Path, environment: Mapping[str, str]) -> None:
        self.url = f"jdbc:mariadb://127.0.0.1:{port}/test?user=root"
        self._command = command
        self._place = place
        self._environment = environment
        self._lives = 0
        self._start()

    def crash(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.wait(PATIENCE_SECONDS)
        self._start()

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_SECONDS)

    def _start(self) -> None:
        self._lives += 1
        path = self._place / f"log-{self._lives}"
        with path.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, cwd=self._place, env=self._environment
            )
        _wait(self._process, path)


@contextmanager
def mariadb(*settings: str) -> Iterator[str]:
    """The address of a new database, as `jdbc:mariadb://…`."""
    with mariadb_server(*settings) as server:
        yield server.url


@contextmanager
def mariadb_server(*settings: str) -> Iterator[MariaDb]:
    server = _installed() or _fetched()
    place = Path(tempfile.mkdtemp(prefix="ottla-mariadb-"))
    data = place / "data"
    data.mkdir()
    told = [str(server.program), "--no-defaults", f"--datadir={data}", f"--lc-messages-dir={server.share}"]
    told += ["--user=root"] if os.getuid() == 0 else []
    try:
        tables = "\n".join(
            (*_FIRST, *((server.share / f"mysql_system_tables{part}.sql").read_text() for part in ("", "_data")))
        )
        made = subprocess.run(
            [*told, "--bootstrap"], input=tables, capture_output=True, text=True, check=False, env=server.environment
        )
        assert made.returncode == 0, made.stderr
        (port,) = free_ports(1)
        options = ["--bind-address=127.0.0.1", f"--port={port}", f"--socket={place}/socket", "--log-bin"]
        options += ["--binlog-format=ROW", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M"]
        running = MariaDb([*told, *options, *settings], port, place, server.environment)
        try:
            yield running
        finally:
            running.close()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _wait(running: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while b"ready for connections" not in log.read_bytes():
        assert running.poll() is None and time.monotonic() < until, log.read_text()
        time.sleep(0.05)
