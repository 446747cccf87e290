"""The lowest row of a node: whom limits of connections are for."""

import asyncio
import socket
import threading
from typing import Any

import pytest

from ottla.model.properties import Settings
from ottla.node.network import Network
from ottla.node.services import Ending
from ottla.node.surroundings import Surroundings

NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/data",
}


def with_limits(text: str) -> Settings:
    return Settings.from_properties({**NODE, "max.connections.per.ip.overrides": text})


def test_hosts_that_limits_name_are_looked_up_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name server that does not answer must not hold up a node whose settings change."""
    asked_by: list[threading.Thread] = []

    def lookup(host: str, *_: Any, **__: Any) -> list[Any]:
        asked_by.append(threading.current_thread())
        if host == "nowhere":
            raise socket.gaierror("no such host")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"10.0.0.{len(host)}", 0))]

    async def scene() -> None:
        network = Network(with_limits("one:1,10.9.9.9:9"), Surroundings())
        await network.start()
        limits = network._doors.clients
        assert limits.limits.addresses == {"10.0.0.3": 1, "10.9.9.9": 9}
        network.reconfigure(with_limits("one:2,three:3,nowhere:4,10.0.0.3:7"))
        assert limits.limits.addresses == {"10.0.0.3": 7}, "what is known holds at once"
        await asyncio.wait(list(network._tasks._running))
        assert limits.limits.addresses == {"10.0.0.3": 7, "10.0.0.5": 3}
        await network.stop(Ending())

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    asyncio.run(scene())
    assert threading.main_thread() not in asked_by
