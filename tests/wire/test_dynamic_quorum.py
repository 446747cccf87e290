"""A quorum that keeps its voters in the log (KIP-853): the first node begins it, the others join by themselves; an
operator takes a vote and gives it back."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.cli.app import run
from ottla.model.properties import Settings
from ottla.testing.node_thread import NodeThread
from tests.support.nodes import free_ports
from tests.support.patience import PATIENCE_SECONDS, eventually

DEADLINE_SECONDS = PATIENCE_SECONDS
NODE = """\
process.roles=broker,controller
node.id={node_id}
controller.quorum.bootstrap.servers={servers}
controller.quorum.auto.join.enable={joins}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={data}
max.connections.per.ip=1000000
"""


class Nodes:
    """Three nodes that name the same three controllers; the third does not ask for a vote by itself."""

    def __init__(self, directory: Path) -> None:
        ports = free_ports(6)
        self.ports, self.controllers = ports[:3], ports[3:]
        servers = ",".join(f"127.0.0.1:{port}" for port in self.controllers)
        self._settings = {
            number + 1: Settings.from_properties(
                NODE.format(
                    node_id=number + 1,
                    servers=servers,
                    joins="false" if number == 2 else "true",
                    port=self.ports[number],
                    controller=self.controllers[number],
                    data=directory / f"node-{number + 1}",
                )
            )
            for number in range(3)
        }
        self._threads: dict[int, NodeThread] = {}

    def start(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self._threads[node_id] = NodeThread(self._settings[node_id])
            self._threads[node_id].start()
        for node_id in node_ids:
            self._threads[node_id].ready()

    def stop(self, node_id: int) -> None:
        self._threads[node_id].stop()

    def close(self) -> None:
        for thread in self._threads.values():
            thread.kill()


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path)
    monkeypatch.setenv("OTTLA_BOOTSTRAP", ",".join(f"127.0.0.1:{port}" for port in nodes.ports))
    try:
        yield nodes
    finally:
        nodes.close()


def test_voters_join_leave_and_come_back(nodes: Nodes, capsys: pytest.CaptureFixture[str]) -> None:
    def who(role: str) -> set[int]:
        """Who votes or observes; the leader, whoever it is, votes."""
        capsys.readouterr()
        if run(["quorum", "status", "--json"]) != 0:
            return set()  # nobody leads for the moment
        told: Any = json.loads(capsys.readouterr().out)
        return {each["id"] for each in told["replicas"] if (each["role"] == "observer") == (role == "observer")}

    nodes.start(3, 2, 1)
    eventually(lambda: who("voter") == {1, 2} and who("observer") == {3})
    assert run(["quorum", "add", "3", "--endpoint", f"CONTROLLER://127.0.0.1:{nodes.controllers[2]}"]) == 0
    assert capsys.readouterr().out.endswith("controller 3 votes now\n")
    eventually(lambda: who("voter") == {1, 2, 3})
    nodes.stop(1)
    eventually(lambda: who("voter") == {1, 2, 3})  # the other two are a majority
    nodes.start(1)
    assert run(["quorum", "remove", "3"]) == 0
    eventually(lambda: who("voter") == {1, 2} and who("observer") == {3})
