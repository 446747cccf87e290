"""kill -9 of the schema registry that leads while schemas are registered through the other one.

Two registries of their own (`ottla registry`) in front of one node, and a client that registers one schema after the
other, each of a new subject, through the one that does not lead. Counted from the kill until the next one is
acknowledged; the one that was killed is started again, and the roles are changed. At the end every schema that was
acknowledged has to be there with its id, and no id may stand for two. Judged is the longest of all kills.
"""

import http.client
import json
import subprocess
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, value_at_most
from bench.rounds import progress
from bench.servers import Ottla, Server, free_ports
from bench.workloads.registry import schema_of

NAME = "2 schema registries, kill -9 of the leader"
METRICS = (
    Metric("longest", "the next schema acknowledged, longest", "s", value_at_most(1.0)),
    Metric("median", "the next schema acknowledged, median", "s"),
    Metric("failed", "registrations that were refused or not answered", "", value_at_most(0)),
    Metric("lost", "acknowledged schemas that are gone, or whose id is another's", "", value_at_most(0)),
)
PATIENCE_SECONDS = 120.0
BETWEEN_KILLS = 50
"""Schemas."""


class Instance:
    """A registry in a process of its own."""

    def __init__(self, server: Server, port: int) -> None:
        self._log: Path = server.directory / f"registry-{port}.log"
        self._command = [str(Ottla.executable), "registry", "-b", server.bootstrap]
        self._command += ["--listen", f"http://127.0.0.1:{port}"]
        self.port = port
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            with suppress(OSError):
                self.ask("GET", "/subjects")
                return
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise ToolFailed(f"a registry does not answer: {self._log.read_text()[-1000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE_SECONDS)

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, int]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {"content-type": JSON})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


JSON = "application/vnd.schemaregistry.v1+json"


class Client:
    """Registers new schemas, and remembers what it was told."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.failed = 0
        self._next = 0

    def register(self, through: Instance) -> None:
        """One more, tried until it is acknowledged."""
        number, self._next = self._next, self._next + 1
        while True:
            try:
                status, told = through.ask("POST", f"/subjects/s{number}/versions", {"schema": schema_of(number)})
            except OSError:
                status, told = 0, {}
            if status == http.HTTPStatus.OK:
                self.known[f"s{number}"] = told["id"]
                return
            self.failed += 1

    def lost(self, at: Instance) -> int:
        there = {name: at.ask("GET", f"/subjects/{name}/versions/1")[1].get("id") for name in self.known}
        wrong = sum(there[name] != id for name, id in self.known.items())
        return wrong + len(self.known) - len(set(self.known.values()))


def run(context: Context) -> list[Measure]:
    trials = [trial(context, context.amount(5, 2)) for _ in range(min(3, context.rounds))]
    return [Measure(NAME, metric, (), tuple(found[metric.key] for found in trials)) for metric in METRICS]


def trial(context: Context, kills: int) -> dict[str, float]:
    server = context.new_server(Ottla)
    server.start()
    taken, client = [], Client()
    with ExitStack() as opened:
        instances = []
        for port in free_ports(2):
            instances.append(Instance(server, port))
            opened.callback(instances[-1].kill)
        leader, other = instances
        client.register(leader)  # who is asked first leads
        for kill in range(kills):
            for _ in range(BETWEEN_KILLS):
                client.register(other)
            leader.kill()
            began = time.perf_counter()
            client.register(other)
            taken.append(time.perf_counter() - began)
            progress(f"kill {kill + 1}", "ottla", {"seconds": taken[-1]})
            leader.start()
            leader, other = other, leader
        lost = client.lost(other)
    context.discard(server)
    taken.sort()
    return {"longest": taken[-1], "median": taken[len(taken) // 2], "failed": client.failed, "lost": lost}
