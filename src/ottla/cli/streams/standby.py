"""`ottla streams views`: answers for the stores of an application while that itself is away, restarts or moves."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import fcntl
import os
import signal
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.failures import Failure
from ottla.cli.output import note

if TYPE_CHECKING:
    from ottla.streams.app import StreamsApp

STANDBY_SERVER = "127.0.0.1:8089"


def serve(app: "StreamsApp", folder: str | None) -> None:
    """Until it is told to stop. It follows the changelogs, so it needs neither Spark nor the application."""
    from ottla.streams.run.config import ConfigError
    from ottla.streams.views.server import serving

    stopped = threading.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda _number, _frame: stopped.set())
    with ExitStack() as stack:
        kept = None if folder is None else Path(folder)
        if kept is not None:
            _hold(stack, kept)
        try:
            url = stack.enter_context(serving(app, folder=kept))
        except ConfigError as error:
            raise Failure(str(error)) from error
        except OSError as error:
            where = app.config["application.server"]
            reason = (error.strerror or str(error)).lower()
            raise Failure(f"views cannot be served at {where}: {reason}\n  --queries-port takes another") from error
        note(f"{app.application_id}: stores are served at {url}/stores; brokers at {app.config['bootstrap.servers']}")
        # With a time limit, since a wait without one is not left for a signal on every platform.
        while not stopped.wait(1.0):
            pass


def _hold(stack: ExitStack, folder: Path) -> None:
    """Views are written by one process at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    stack.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Failure(f"another process keeps its views in {folder}: name another --views-dir") from None
