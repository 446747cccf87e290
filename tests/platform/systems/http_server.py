"""A real HTTP server that fails on command, and remembers what it was sent."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Got(NamedTuple):
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Answer(NamedTuple):
    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = {}
    hang_up: bool = False
    """The connection ends without an answer."""
    silent: bool = False
    """Nothing comes, and the connection stays, until the server is stopped."""
    cut: int = 0
    """So many bytes of the body do not come, and the connection ends."""


def fine(_: Got) -> Answer:
    return Answer()


class CommandedServer:
    """`answer` decides about each request; `taken` holds those that were answered with 2xx."""

    def __init__(self) -> None:
        self.answer: Callable[[Got], Answer] = fine
        self.got: list[Got] = []
        self.taken: list[Got] = []
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def values(self) -> list[object]:
        """What was taken, as JSON has it, each idempotency key once."""
        by_key = {each.headers["idempotency-key"]: each.body for each in self.taken}
        return [json.loads(body) for body in by_key.values()]

    def _decide(self, got: Got) -> Answer:
        with self._lock:
            self.got.append(got)
            answer = self.answer(got)
            if 200 <= answer.status < 300 and not (answer.hang_up or answer.silent or answer.cut):
                self.taken.append(got)
        return answer

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body are two writes: the second would wait 40 ms for the first to be acknowledged.
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                self.do_POST()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                answer = server._decide(Got(self.command, self.path, headers, body))
                if answer.silent:
                    server._stopped.wait()
                if answer.hang_up or answer.silent:
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body[: len(answer.body) - answer.cut])
                self.close_connection |= answer.cut > 0

            do_PUT = do_PATCH = do_POST

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


@contextmanager
def commanded_server() -> Iterator[CommandedServer]:
    server = CommandedServer()
    server.start()
    try:
        yield server
    finally:
        server.stop()
