"""`ottla streams prepare`: what is done once for an installation of Spark, so that applications start sooner."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import fcntl
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ottla.cli.failures import Failure
from ottla.cli.output import note, size_text
from ottla.cli.parser import Arguments

if TYPE_CHECKING:
    from ottla.pipelines.jvm import Installation

NEVER: Final = "OTTLA_PREPARE"
"""Of the environment: with the value `never` nothing is prepared unless it is asked for."""
BROKER_S: Final = 30.0


def prepare(arguments: Arguments) -> int:
    from ottla.pipelines.installed import CannotRun, check_spark
    from ottla.pipelines.jvm import Installation, JvmFailed

    try:
        check_spark()
    except CannotRun as error:
        raise Failure(str(error)) from error
    installation = Installation.found()
    if installation is None:
        raise Failure("Spark is not as pip installs it here, and starts in its own way: there is nothing to prepare")
    with _alone(installation) as alone:
        if not alone:
            raise Failure("another process prepares it at this moment")
        if installation.archive.exists() and not arguments.flag("again"):
            note(f"{installation.archive} is there already")
            return 0
        note("Rehearsing with small applications and a broker of its own; it takes about a minute, once.")
        try:
            with _broker() as bootstrap:
                from ottla.streams.rehearsal import rehearse

                rehearse(bootstrap, installation)
        except JvmFailed as error:
            raise Failure(f"it could not be prepared: {error}") from error
    note(f"{installation.archive}: {size_text(installation.archive.stat().st_size)}")
    return 0


def prepare_behind() -> None:
    """In a process of its own that yields to all others, if it was never done: the next start is quicker."""
    from ottla.pipelines.jvm import Installation

    installation = Installation.found()
    if installation is None or installation.archive.exists() or os.environ.get(NEVER) == "never":
        return
    command = ["nice", "-n", "19", sys.executable, "-m", "ottla", "streams", "prepare"]
    try:
        installation.folder.mkdir(parents=True, exist_ok=True)
        with open(installation.folder / "prepare.log", "wb") as log:
            behind = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        behind.returncode = 0  # nobody waits for it: without this Python would warn that it runs on
    except OSError:
        return
    note("Once, in the background: `ottla streams prepare`, which makes later starts quicker.")


@contextmanager
def _alone(installation: "Installation") -> Iterator[bool]:
    installation.folder.mkdir(parents=True, exist_ok=True)
    with open(installation.folder / "prepare.lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextmanager
def _broker() -> Iterator[str]:
    """One that goes again, with its data."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="ottla-rehearsal-") as data:
        command = [sys.executable, "-m", "ottla", "start", "--data", data, "--port", str(port)]
        with open(os.path.join(data, "broker.log"), "wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            _wait_for(port, process)
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + BROKER_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise Failure("the broker for the rehearsal did not start")
