"""A SQL server as a process of its own in front of a node, and questions to it."""

import http.client
import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from bench.java_tools import ToolFailed
from bench.servers import Ottla, Server, free_ports

PATIENCE_SECONDS = 180.0


class SqlServer(NamedTuple):
    port: int
    process: "subprocess.Popen[bytes]"
    started_s: float
    """From its start to its first answer."""

    def ask(self, path: str, body: object) -> bytes:
        return ask(self.port, path, body)

    def ksql(self, text: str) -> list[Any]:
        found: list[Any] = json.loads(self.ask("/ksql", {"ksql": text}))
        return found

    def rows(self, sql: str) -> list[Any]:
        """Of a query that ends."""
        return [json.loads(line) for line in self.ask("/query-stream", {"sql": sql}).splitlines()[1:]]

    @contextmanager
    def pushed(self, sql: str) -> Iterator[Iterator[Any]]:
        """Rows of a query that goes on."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        connection.request("POST", "/query-stream", json.dumps({"sql": sql}), {"content-type": "application/json"})
        try:
            response = connection.getresponse()
            if response.status != http.client.OK:
                raise ToolFailed(response.read().decode())
            response.readline()
            yield (json.loads(line) for line in iter(response.readline, b""))
        finally:
            connection.close()


@contextmanager
def running(node: Server, settings: Mapping[str, str] | None = None) -> Iterator[SqlServer]:
    (port,) = free_ports(1)
    words = [word for name, value in (settings or {}).items() for word in ("-o", f"{name}={value}")]
    command = [str(Ottla.executable), "sql-server", "-b", node.bootstrap, "--listen", f"http://127.0.0.1:{port}"]
    began = time.perf_counter()
    process = subprocess.Popen(
        [*command, *words], cwd=node.directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _first_answer(port)
        yield SqlServer(port, process, time.perf_counter() - began)
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def ask(port: int, path: str, body: object) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    try:
        method = "GET" if body is None else "POST"
        connection.request(method, path, json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise ToolFailed(answer.decode())
    return answer


def _first_answer(port: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            ask(port, "/info", None)
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.01)
