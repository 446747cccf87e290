"""The door of a Spark host: a local socket, one JSON document per line in both directions.

    {"do": "start", "job": {"name": ..., "entry": "module:function", "arguments": {...}}}
    {"do": "stop", "name": ...}         answered when its last micro-batch has ended
    {"do": "status"}                    the process, and all jobs: state, and the reason where one has failed
    {"do": "status", "progress": true}  and what each of them has done so far
    {"do": "progress", "name": ...}     what a job has done so far
    {"do": "levels", "levels": {"ottla.connect": 10}}   of its loggers, as Python numbers them

An answer is {"ok": ...} or {"error": "what to do"}. Who may open the socket may run code: it is for its owner only.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final

FILE: Final = "host.socket"
FAREWELL: Final = "farewell"
"""What an owner says to its host before it lets it go."""
LONGEST_LINE: Final = 1 << 20
LONGEST_PATH: Final = 100
"""Of a local socket, on every system."""

Answering = Callable[[Mapping[str, Any]], object]
"""Raises an exception whose text is the answer then."""


class Refused(Exception):
    """The host says no; the text says why."""


class HostGone(Exception):
    """Nobody listens at the socket, or whoever did has ended."""


class Door:
    """Answers until `close`. Each connection has a thread: there are few, and a stop may take a while."""

    def __init__(self, directory: Path, answer: Answering, known: tuple[type[Exception], ...]) -> None:
        path = _path(directory)
        path.unlink(missing_ok=True)  # whoever made it is gone: we hold the lock of the directory
        before = os.umask(0o177)
        try:
            self._server = _Server(str(path), _handler(answer, known))
        finally:
            os.umask(before)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="door", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False


def _handler(answer: Answering, known: tuple[type[Exception], ...]) -> type[socketserver.StreamRequestHandler]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(ConnectionError):  # whoever asked was killed
                while line := self.rfile.readline(LONGEST_LINE):
                    if not line.endswith(b"\n"):
                        return  # too long, or cut off in the midst
                    self.wfile.write(json.dumps(_answered(answer, known, line), default=str).encode() + b"\n")

    return Handler


def _answered(answer: Answering, known: tuple[type[Exception], ...], line: bytes) -> Mapping[str, Any]:
    try:
        request = json.loads(line)
    except ValueError as error:
        return {"error": f"a line of JSON is expected: {error}"}
    if not isinstance(request, dict):
        return {"error": 'an object is expected, such as {"do": "status"}'}
    try:
        return {"ok": answer(request)}
    except known as error:
        return {"error": str(error)}


def _path(directory: Path) -> Path:
    path = directory.resolve() / FILE
    if len(str(path)) > LONGEST_PATH:
        raise ValueError(f"{path} is too long for a local socket: a directory with a shorter name is needed")
    return path


class HostClient:
    """Asks a host. One question at a time."""

    def __init__(self, directory: Path, timeout_s: float | None = 60.0) -> None:
        """Raises HostGone."""
        path = _path(directory)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout_s)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise HostGone(f"no Spark host listens at {path}: {error.strerror}") from error
        self._file = self._socket.makefile("rb")

    def start(self, name: str, entry: str, arguments: Mapping[str, Any] | None = None, *, keep: bool = True) -> None:
        """Without `keep` it is not written down, begun once, and not begun again. Raises Refused."""
        job = {"name": name, "entry": entry, "arguments": dict(arguments or {})}
        self._ask({"do": "start", "job": job, "keep": keep})

    def levels(self, levels: Mapping[str, int]) -> None:
        """Of the host's loggers, by name; in this order, as one may be above another. Raises Refused."""
        self._ask({"do": "levels", "levels": dict(levels)})

    def stop(self, name: str) -> None:
        """When it returns the job has ended. Raises Refused."""
        self._ask({"do": "stop", "name": name})

    def status(self) -> dict[str, Mapping[str, Any]]:
        """By name."""
        return self._all({"do": "status"})[1]

    def pid(self) -> int:
        """Of the host."""
        return self._all({"do": "status"})[0]

    def look(self) -> tuple[int, dict[str, Mapping[str, Any]]]:
        """Both, with the progress of each job, in one question."""
        return self._all({"do": "status", "progress": True})

    def _all(self, question: Mapping[str, Any]) -> tuple[int, dict[str, Mapping[str, Any]]]:
        answer = self._ask(question)
        return answer["pid"], {each["name"]: each for each in answer["jobs"]}

    def progress(self, name: str) -> Mapping[str, Any]:
        """Raises Refused."""
        found: Mapping[str, Any] = self._ask({"do": "progress", "name": name})
        return found

    def _ask(self, request: Mapping[str, Any]) -> Any:
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            line = self._file.readline()
        except OSError as error:
            raise HostGone(f"the Spark host does not answer: {error}") from error
        if not line.endswith(b"\n"):
            raise HostGone("the Spark host has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["ok"]

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def __enter__(self) -> HostClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
